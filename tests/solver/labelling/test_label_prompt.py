"""Prompts for language models."""

import re

import pytest

from hf_mwp import MathWordProblem
from hf_mwp.solver.labelling.label_prompt import PROMPTS, load_prompts
from hf_mwp.solver.labelling.replies import read_reply
from hf_mwp.utils.usage_error import UsageError


VALUES = {"zh": [6, 30, 200, 14, 6, 78.5], "en": [6, 30, 200, 24, 30, 75]}


@pytest.mark.parametrize("language", PROMPTS)
def test_examples_of_the_prompts_are_replies_that_are_read(language):
    values = []
    for text, reply in PROMPTS[language].examples:
        problem = MathWordProblem(text, language=language)
        expression = read_reply(reply, problem)
        assert any(leaf.is_slot for leaf in expression.leaves())
        values.append(float(expression.evaluate(problem.values)))
    assert values == VALUES[language]


def test_messages_are_instruction_examples_and_question():
    messages = PROMPTS["en"].messages(MathWordProblem("Has {text} 3 or 4?", language="en"))
    assert [message["role"] for message in messages] == [*["user", "assistant"] * 6, "user"]
    assert messages[0]["content"].startswith("Write each math word problem")
    assert messages[0]["content"].endswith("How many pieces of fruit does he have?\nEquation:")
    assert messages[1]["content"] == "4+2"
    assert messages[-1]["content"] == "Problem: Has {text} 3 or 4?\nEquation:"


def write(tmp_path, content):
    path = tmp_path / "prompt.yaml"
    path.write_text(content, encoding="utf-8")
    return path


def test_a_file_replaces_the_prompts_of_its_languages(tmp_path):
    prompts = load_prompts(write(tmp_path, "en:\n  instruction: Solve.\n  question: '{numbers} in {text}'\n"))
    assert prompts["zh"] == PROMPTS["zh"]
    messages = prompts["en"].messages(MathWordProblem("3 or four?", language="en"))
    assert messages == [{"role": "user", "content": "Solve.\n\n3, 4 in 3 or four?"}]
    examples = "  examples:\n  - text: 1 and 2?\n    reply: 1+2\n"
    prompts = load_prompts(write(tmp_path, "en:\n  instruction: Solve.\n  question: '{text}'\n" + examples))
    assert prompts["en"].examples == (("1 and 2?", "1+2"),)


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ("", "mapping from languages"),
        ("- en", "mapping from languages"),
        ("en: [", "cannot be read"),
        ("fr: {instruction: a, question: '{text}'}", "language 'fr'; expected zh or en"),
        ("en: {instruction: a}", "en: expected the fields instruction, question"),
        ("en: {instruction: a, question: '{text}', example: []}", "expected the fields"),
        ("en: {instruction: 3, question: '{text}'}", "en, instruction: expected a text, got 3"),
        ("en: {instruction: a, question: text}", "en, question: {text} is missing"),
        (
            "en: {instruction: a, question: '{text}', examples: [{text: b}]}",
            r"examples\[0\]: expected the fields text",
        ),
        ("en: {instruction: a, question: '{text}', examples: 3}", r"examples\[0\]"),
    ],
)
def test_fault_of_a_file_is_named(tmp_path, content, fault):
    path = write(tmp_path, content)
    with pytest.raises(UsageError, match=f"{re.escape(str(path))}.*{fault}"):
        load_prompts(path)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"--llm_prompt: .*nowhere\.yaml"):
        load_prompts(tmp_path / "nowhere.yaml")
