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
SYSTEM = MathWordProblem(text="4 and 2", equation="x+y=4 ; x-y=2", answer="3", language="en")
TWICE = MathWordProblem(text="3 boys and 3 girls, 2 left", equation="3-2", answer="1", language="en")
BOUGHT = MathWordProblem("小明有15元，买了3支笔，小明有多少元？", "x=15", "15.0")


def score(problem, prediction, **options):
    expression = None if prediction is None else Expression.from_infix(prediction)
    return score_prediction(problem, expression, **options)


def score_of_text(prediction, **fields):
    return score(MathWordProblem(text="4 and 2", language="en", **fields), prediction)


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
        # Two mentions of a number are not told apart.
        (TWICE, "N0-N2", True, True, True, "correct"),
        (TWICE, "N1-N2", True, True, True, "correct"),
        # A number of the text is an answer.
        (BOUGHT, "N0", True, True, True, "correct"),
        (BOUGHT, "N1", False, False, False, "wrong_number"),
        (BOUGHT, "N0-N1", False, False, False, "extra_step"),
    ],
)
def test_score_of_a_prediction(problem, prediction, answer, equation, canonical, reason):
    result = score(problem, prediction)
    assert (result.answer_correct, result.equation_correct, result.canonical_correct) == (answer, equation, canonical)
    assert result.reason == reason
    assert result.level == "low"


def test_value_is_exact():
    assert score(SCALE, "N0/N1").value == Fraction(1, 250)


def test_equation_value_is_compared_with_the_target_equation():
    assert score(CONFLICT, "N0+N1", answer_match="equation_value").answer_correct
    assert not score(CONFLICT, "N0", answer_match="equation_value").answer_correct
    assert score(CONFLICT, "N0").answer_correct


def test_rounded_answer_is_compared():
    problem = MathWordProblem("50 children, 6 in a van. How many vans?", answer="9", language="en")
    assert not score(problem, "N0/N1").answer_correct
    rounded = score(problem, "N0/N1", rounded=Fraction(9))
    assert (rounded.answer_correct, rounded.value, rounded.reason) == (True, 9, "correct")


def test_missing_answers_and_equations():
    assert score_of_text("N0+N1", equation="4+2").answer_correct
    unlabelled = score_of_text("N0+N1")
    assert (unlabelled.answer_correct, unlabelled.reason, unlabelled.value) == (None, "unlabelled", 6)
    assert score_of_text("N0+N1", answer="8").reason == "wrong_value"
    unreadable = score_of_text("N0+N1", equation="x=4+*2", answer="6")
    assert (unreadable.answer_correct, unreadable.level) == (True, None)


def test_text_without_numbers_is_wrong_for_its_own_reason():
    result = score(MathWordProblem(text="没有数字", answer="3"), None)
    assert (result.answer_correct, result.reason) == (False, "no_numbers")
    assert accuracy_report([result])["num_problems"] == 1


def test_report():
    scores = [score(APPLES, "N0+N1"), score(APPLES, "N0-N1"), score(LONG, None), score(APPLES, "N1+N0")]
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


def test_unlabelled_problems_are_counted_separately():
    assert accuracy_report([score_of_text(None)]) == {"num_equations": 0, "num_problems": 0, "num_unjudged": 1}
    assert accuracy_report([]) == {"num_equations": 0, "num_problems": 0}


def test_problems_with_equations_are_counted_separately():
    scores = [score(APPLES, "N0+N1"), score(SYSTEM, "N0-1"), score(SYSTEM, None)]
    assert accuracy_report(scores) == {
        "answer_accuracy": 2 / 3,
        "equation_accuracy": 1.0,
        "canonical_equation_accuracy": 1.0,
        "num_equations": 1,
        "answer_accuracy_low": 1.0,
        "num_problems_low": 1,
        "num_problems": 3,
    }


def test_equation_value_leaves_out_problems_without_a_readable_target():
    scores = [score(problem, "N0+N1", answer_match="equation_value") for problem in (APPLES, SYSTEM, SYSTEM)]
    report = accuracy_report(scores)
    assert (report["num_problems"], report["num_equations"], report["num_unjudged"]) == (1, 1, 2)


def test_a_context_counts_if_all_its_answers_are_right():
    right = score(APPLES, "N0+N1")
    wrong = score(APPLES, "N0-N1")
    contexts = ["a", "b", "a", "b", "alone", "", "", "c", "c"]
    scores = [right, right, right, wrong, wrong, wrong, wrong, right, score_of_text("N0+N1")]
    assert context_report(contexts, scores) == {"context_accuracy": 0.5, "num_contexts": 2}
    assert context_report(["", "alone"], [right, right]) == {}
