import math

import pytest

from hf_mwp.runtime.answer import Answer, Beam, answer_records, read_trees
from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.plausibility import PlausibilityReranker
from hf_mwp.runtime.problems import MathWordProblem
from tests.tiny import tiny_processor


def test_only_finished_trees_are_read():
    processor = tiny_processor()
    slot = processor.vocabulary.token_to_id("N0")
    rows = [([0, slot, slot + 1, -100], -0.5), ([slot, -100, -100, -100], -1.0), ([-100] * 4, -math.inf)]
    trees = read_trees(rows, processor.decode)
    assert [tree.to_infix() for tree, _ in trees] == ["N0+N1", "N0"]
    assert [score for _, score in trees] == [-0.5, -1.0]


@pytest.mark.parametrize(
    ("text", "language", "is_warned"),
    [
        ("Tom has 4 apples and 2 pears.", "zh", True),
        ("Tom has 4 apples and 2 pears.", "en", False),
        ("小明有4个apple和2个pear，how many？", "zh", False),
        ("4km + 2km = ?", "zh", False),
    ],
)
def test_a_chinese_solver_warns_of_text_in_latin_letters(text, language, is_warned):
    beam = Beam(((Expression.from_prefix(["+", "N0", "N1"]), -0.1),), unknown_share=0.0)
    (record,) = answer_records(Answer(MathWordProblem(text, language=language), beam))
    assert record["answer"] == 6.0
    assert ("not Chinese" in record.get("warning", "")) is is_warned


def test_uncertain_numbers_are_named_in_the_warnings():
    beam = Beam(((Expression.from_prefix(["-", "N0", "N1"]), -0.1),), unknown_share=0.0)
    (record,) = answer_records(Answer(MathWordProblem("小明有l2个，吃了3个，又买两盒，"), beam))
    message = "Check the numbers: l2 was read as 12; 两盒 was not read as a number."
    assert (record["value"], record["warnings"], record["warning"]) == ("9", [message], message)
    (record,) = answer_records(Answer(MathWordProblem("小明有12个，吃了3个"), beam))
    assert "warnings" not in record and "warning" not in record


def test_rounded_answers_have_their_quotient():
    problem = MathWordProblem("50个小朋友去划船，每条船坐6人，至少要租多少条船？")
    trees = ((Expression.from_infix("N0/N1"), -0.1),)
    ranked = tuple(PlausibilityReranker.from_pretrained("zh").rerank(problem, trees))
    (record,) = answer_records(Answer(problem, Beam(trees, unknown_share=0.0), ranked))
    fields = [record[name] for name in ("equation", "value", "answer", "rounded", "quotient")]
    assert fields == ["50/6", "9", 9.0, "up", "25/3"]
