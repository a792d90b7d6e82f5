from fractions import Fraction

import pytest

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.metrics import accuracy_report, context_report, reason_counts, score_prediction


APPLES = MathWordProblem(
    text="Tom has 4 apples and 2 pears. How many fruits?", equation="x=4+2", answer="6", language="en"
)
SCALE = MathWordProblem(text="一个数的20%是50，这个数是多少？", equation="x=50/20%", answer="250")
CONFLICT = MathWordProblem(text="98个加0.33个，共多少个？", equation="x=98+0.33", answer="98")
LONG = MathWordProblem(text="1 2 3 4 5 6", equation="x=1+2+3+4+5+6", answer="21", language="en")


def expression(text):
    return Expression.from_infix(text)


@pytest.mark.parametrize(
    ("problem", "prediction", "answer", "equation", "canonical", "reason"),
    [
        (APPLES, "N0+N1", True, True, True, "correct"),
        (APPLES, "N1+N0", True, False, True, "correct"),
        (APPLES, "N0*N1-2", True, False, False, "correct"),
        (APPLES, "N0-N1", False, False, False, "wrong_operator"),
        (APPLES, "N0/(N1-2)", False, False, False, "evaluation_error"),
        (APPLES, "N0+N7", False, False, False, "evaluation_error"),
        (APPLES, None, False, False, False, "no_prediction"),
        (SCALE, "N1/N0", True, True, True, "correct"),
        (SCALE, "N0/N1", False, False, False, "swapped_operands"),
        (CONFLICT, "N0+N1", False, True, True, "label_conflict"),
        (CONFLICT, "N1+N0", False, False, True, "label_conflict"),
    ],
)
def test_one_prediction(problem, prediction, answer, equation, canonical, reason):
    score = score_prediction(problem, None if prediction is None else expression(prediction))
    assert (score.answer_correct, score.equation_correct, score.canonical_correct) == (answer, equation, canonical)
    assert score.reason == reason
    assert score.level == "low"


def test_value_is_exact():
    assert score_prediction(SCALE, expression("N0/N1")).value == Fraction(1, 250)


def test_peers_rule_compares_with_the_target_equation():
    assert score_prediction(CONFLICT, expression("N0+N1"), answer_match="equation_value").answer_correct
    assert not score_prediction(CONFLICT, expression("N0"), answer_match="equation_value").answer_correct
    assert score_prediction(CONFLICT, expression("N0")).answer_correct


def test_two_mentions_of_one_number_are_not_told_apart():
    problem = MathWordProblem(text="3 boys and 3 girls, 2 left", equation="3-2", answer="1", language="en")
    assert score_prediction(problem, expression("N0-N2")).equation_correct
    assert score_prediction(problem, expression("N1-N2")).equation_correct


def test_without_an_annotated_answer_the_equation_decides():
    problem = MathWordProblem(text="4 and 2", equation="4+2", language="en")
    assert score_prediction(problem, expression("N0+N1")).answer_correct
    unlabelled = MathWordProblem(text="4 and 2", language="en")
    score = score_prediction(unlabelled, expression("N0+N1"))
    assert (score.answer_correct, score.reason, score.value) == (None, "unlabelled", 6)
    answer_only = MathWordProblem(text="4 and 2", answer="8", language="en")
    assert score_prediction(answer_only, expression("N0+N1")).reason == "wrong_value"


def test_an_equation_that_does_not_parse_is_no_target():
    problem = MathWordProblem(text="4 and 2", equation="x=4+*2", answer="6", language="en")
    score = score_prediction(problem, expression("N0+N1"))
    assert (score.answer_correct, score.level) == (True, None)


def score_predictions(problems, predictions, **options):
    return [score_prediction(*pair, **options) for pair in zip(problems, predictions, strict=True)]


def test_report():
    predictions = ["N0+N1", "N0-N1", None, "N1+N0"]
    scores = score_predictions(
        [APPLES, APPLES, LONG, APPLES], [None if text is None else expression(text) for text in predictions]
    )
    assert accuracy_report(scores) == {
        "answer_accuracy": 0.5,
        "equation_accuracy": 0.25,
        "canonical_equation_accuracy": 0.5,
        "num_equations": 4,
        "answer_accuracy_low": 2 / 3,
        "num_problems_low": 3,
        "answer_accuracy_high": 0.0,
        "num_problems_high": 1,
        "num_problems": 4,
    }
    assert reason_counts(scores) == {"wrong_operator": 1, "no_prediction": 1}


def test_report_of_unjudged_problems():
    scores = score_predictions([MathWordProblem(text="4 and 2", language="en")], [None])
    assert accuracy_report(scores) == {"num_equations": 0, "num_problems": 0, "num_unjudged": 1}
    assert accuracy_report([]) == {"num_equations": 0, "num_problems": 0}


def test_equations_have_a_count_of_their_own():
    system = MathWordProblem(text="4 and 2", equation="x+y=4 ; x-y=2", answer="3", language="en")
    scores = score_predictions([APPLES, system, system], [expression("N0+N1"), expression("N0-1"), None])
    assert accuracy_report(scores) == {
        "answer_accuracy": 2 / 3,
        "equation_accuracy": 1.0,
        "canonical_equation_accuracy": 1.0,
        "num_equations": 1,
        "answer_accuracy_low": 1.0,
        "num_problems_low": 1,
        "num_problems": 3,
    }


def test_the_peers_rule_leaves_out_what_has_no_readable_target():
    system = MathWordProblem(text="4 and 2", equation="x+y=4 ; x-y=2", answer="3", language="en")
    report = accuracy_report(
        score_predictions([APPLES, system, system], [expression("N0+N1")] * 3, answer_match="equation_value")
    )
    assert (report["num_problems"], report["num_equations"], report["num_unjudged"]) == (1, 1, 2)


def test_a_text_without_numbers_is_wrong_for_a_reason_of_its_own():
    problem = MathWordProblem(text="没有数字", answer="3")
    score = score_prediction(problem, None)
    assert (score.answer_correct, score.reason) == (False, "no_numbers")
    assert accuracy_report([score])["num_problems"] == 1


def test_a_context_counts_if_all_its_questions_are_right():
    right, wrong = (score_prediction(APPLES, expression(tree)) for tree in ("N0+N1", "N0-N1"))
    unjudged = score_prediction(MathWordProblem("3 and 4?", language="en"), expression("N0+N1"))
    contexts = ["a", "b", "a", "b", "alone", "", "", "c", "c"]
    scores = [right, right, right, wrong, wrong, wrong, wrong, right, unjudged]
    assert context_report(contexts, scores) == {"context_accuracy": 0.5, "num_contexts": 2}
    assert context_report(["", "alone"], [right, right]) == {}


def test_a_number_of_the_text_is_an_answer():
    problem = MathWordProblem("小明有15元，买了3支笔，小明有多少元？", "x=15", "15.0")
    for tree, reason in (("N0", "correct"), ("N1", "wrong_number"), ("N0-N1", "extra_step")):
        score = score_prediction(problem, expression(tree))
        assert (score.answer_correct, score.level) == (tree == "N0", "low")
        assert score.reason == reason
