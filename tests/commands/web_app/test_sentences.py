"""Chinese for every sentence of the runtime that the page can show."""

import ast
import inspect
import textwrap
import tomllib
from pathlib import Path

import pytest

from hf_mwp.commands.web_app.sentences import in_both_languages, in_chinese
from hf_mwp.runtime import answer as answers
from hf_mwp.runtime import numbers
from hf_mwp.runtime import plausibility as plausibility_package
from hf_mwp.runtime.answer import Answer
from hf_mwp.runtime.expressions import Expression, ExpressionError, evaluation
from hf_mwp.runtime.plausibility.features import FEATURES
from hf_mwp.runtime.problems import MathWordProblem, refusal


COMPLAINTS = sorted({feature.complaint for feature in FEATURES if feature.complaint})
FIELD = "7"  # stands for each value that is filled in


def parsed(function):
    return ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function))))


def texts_in(tree):
    """Return the strings in code, without docstrings, with `FIELD` for each value that is filled in."""
    skipped = set()  # docstrings, and parts of other strings
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            skipped.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            skipped.update(part for value in node.values for part in ast.walk(value))
    texts = []
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.JoinedStr):
            parts = [part.value if isinstance(part, ast.Constant) else FIELD for part in node.values]
            texts.append("".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(node.value)
    return texts


def sentences_of_answers():
    functions = (refusal, Answer.error.fget, answers.not_finite, answers._warnings, answers._described)
    texts = []
    for function in functions:
        texts += texts_in(parsed(function))
    return [text for text in texts if text.endswith(".")]


def notes_on_numbers():
    texts = []
    for path in Path(numbers.__file__).parent.glob("*.py"):
        texts += texts_in(ast.parse(path.read_text("utf-8")))
    return [text for text in texts if " read as " in text]


def reasons_of_evaluation():
    reasons = ["the result is too large"]
    for node in ast.walk(ast.parse(inspect.getsource(evaluation))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "ExpressionError":
            reasons += texts_in(node.args[0])
    return reasons


def kinds_of_answers():
    kinds = {"answer"}
    for language in ("en", "zh"):
        path = Path(plausibility_package.__file__).with_name(f"words_{language}.toml")
        for kind in tomllib.loads(path.read_text("utf-8"))["kinds"]:
            kinds.add(kind["name"].replace("counted", "count"))
    return sorted(kinds)


@pytest.mark.parametrize("sentence", sentences_of_answers())
def test_every_error_and_warning_has_chinese(sentence):
    assert in_chinese(sentence) is not None


@pytest.mark.parametrize("note", notes_on_numbers())
def test_every_note_on_a_number_has_chinese(note):
    assert note not in in_chinese(f"Check the numbers: {note}; {note}.")


@pytest.mark.parametrize("reason", reasons_of_evaluation())
def test_every_reason_of_an_equation_without_a_value_has_chinese(reason):
    for sentence in (f"The equation has no value: {reason}.", f"The equation has no value: {reason} (at 2: '/')."):
        assert reason not in in_chinese(sentence)


@pytest.mark.parametrize("complaint", COMPLAINTS)
def test_every_violation_has_chinese(complaint):
    violation = complaint.format(value="2.4", unit="count", kind="money")
    chinese = in_chinese(violation)
    assert chinese is not None
    assert not any(letter.isascii() and letter.isalpha() for letter in chinese)


@pytest.mark.parametrize("kind", kinds_of_answers())
def test_every_kind_of_answer_has_chinese(kind):
    assert in_chinese(kind) is not None


def test_sources_of_sentences_are_found():
    assert len(sentences_of_answers()) > 10
    assert len(notes_on_numbers()) > 5
    assert len(reasons_of_evaluation()) > 4
    assert len(COMPLAINTS) > 30


def division_by_zero():
    with pytest.raises(ExpressionError) as raised:
        Expression.from_infix("3/(2-2)").evaluate()
    return f"The equation has no value: {raised.value}."


@pytest.mark.parametrize(
    ("sentence", "chinese"),
    [
        (refusal(MathWordProblem("1/0")), "题目中除以零（1/0），没有结果。"),
        (refusal(MathWordProblem("9" * 100_001)), "题目超过 100,000 个字符，请缩短。"),
        (division_by_zero(), "算式没有结果：除以零。"),
        (
            answers.not_finite("runs/a", ["w"]),
            "求解器 runs/a 算出了 NaN 或无穷大的分数，因为权重 w 中有这样的值。请重新下载，或用更低的学习率重新训练。",
        ),
        ("2.4 人", "2.4 人"),
        ("negative count", "数量为负数"),
        ("2 is a number in the text", "2 是题目中已有的数"),
        (
            "Check the numbers: 8折 was read as 80%; a pair of was not read as a number.",
            "请检查题目中的数：“8折”读作 80%；“a pair of”没有读作数。",
        ),
    ],
)
def test_sentence_in_chinese(sentence, chinese):
    assert in_chinese(sentence) == chinese


def test_unknown_sentence_remains_english():
    assert in_chinese("something-else") is None
    assert in_both_languages("something-else") == {"en": "something-else", "zh": "something-else"}
