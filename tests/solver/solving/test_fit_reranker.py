import math
import random

import pytest
import torch

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityError
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.solving.fit_reranker import _fit, calibrate, fit_confidence, fit_plausibility


def make_beam(**probabilities):
    """A beam of expressions with these probabilities; their names are those of operators."""
    equations = {"difference": "N0-N1", "reverse": "N1-N0", "quotient": "N0/N1", "total": "N0+N1", "product": "N0*N1"}
    beam = []
    for name, probability in sorted(probabilities.items(), key=lambda item: -item[1]):
        beam.append((Expression.from_infix(equations[name]), math.log(probability)))
    return beam


def problems_and_beams(count=40, seed=0):
    """Problems for which the wrong order of the operands is as often the more probable one as not."""
    rng = random.Random(seed)
    problems = []
    beams = []
    for _ in range(count):
        subtrahend, minuend = sorted(rng.sample(range(2, 50), 2))
        text = f"有{minuend}人，走了{subtrahend}人，还剩几人？"
        problems.append(MathWordProblem(text, answer=str(minuend - subtrahend)))
        probability = rng.choice([0.6, 0.3])
        beams.append(make_beam(reverse=probability, difference=0.9 - probability, quotient=0.05))
    return problems, beams


def test_absurd_answers_get_negative_weights():
    problems, beams = problems_and_beams()
    fitted = fit_plausibility(problems, beams, num_beams=3, fitted_on={"dataset": "toy"})
    assert fitted.weights["negative"] < -1
    assert fitted.fitted_on == {"dataset": "toy", "num_problems": 40, "num_used": 40, "regularization": 1.0}
    new_problems, new_beams = problems_and_beams(seed=1)
    for problem, beam in zip(new_problems, new_beams, strict=True):
        assert fitted.rerank(problem, beam)[0].value == problem.answer_value


def test_regularization_keeps_the_weights_close_to_the_probability():
    fitted = fit_plausibility(*problems_and_beams(), num_beams=3, regularization=1e6)
    expected = {feature.name: float(feature.name == "log_mass") for feature in FEATURES}
    assert fitted.weights == pytest.approx(expected, abs=1e-3)


def test_the_gradient_is_zero_at_the_fit():
    rows = torch.randn(30, len(FEATURES), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    right = torch.arange(30) % 3 == 1
    right[0] = True  # two right values in one beam
    weights = _fit(rows, right, torch.arange(30) // 3, 0.7).requires_grad_()
    prior = torch.tensor([float(feature.name == "log_mass") for feature in FEATURES])
    # The loss beam by beam.
    loss = 0.7 * (weights - prior).square().sum()
    for start in range(0, 30, 3):
        log_shares = (rows[start : start + 3] @ weights).log_softmax(0)
        loss = loss - log_shares[right[start : start + 3]].logsumexp(0)
    (gradient,) = torch.autograd.grad(loss, weights)
    assert gradient.abs().max() < 1e-4


def test_beams_without_a_choice_are_left_out():
    problems, beams = problems_and_beams(4)
    problems[0] = MathWordProblem(problems[0].text, answer="1234")
    problems[1] = MathWordProblem(problems[1].text)
    beams[2] = []
    assert fit_plausibility(problems, beams, num_beams=3).fitted_on["num_used"] == 1
    with pytest.raises(PlausibilityError, match=r"\b3 problems"):
        fit_plausibility(problems[:3], beams[:3], num_beams=3)


def test_equations_replace_missing_answers():
    problems, beams = problems_and_beams(4)
    with_equations = []
    for problem in problems:
        minuend, subtrahend = problem.numbers
        with_equations.append(MathWordProblem(problem.text, f"{minuend}-{subtrahend}"))
    assert fit_plausibility(with_equations, beams, 3).weights == fit_plausibility(problems, beams, 3).weights


def test_plausibilities_become_the_share_of_right_answers():
    """Of answers that are 0.6 and 0.2 and 0.2 probable, 3 in 8 are right: 1 / (1 + 2 / 3^s) = 3/8 gives s = 0.166."""
    fitted = fit_plausibility(*problems_and_beams(), num_beams=3, regularization=1e9)
    text = "有9人，走了4人，还剩几人？"
    problems = [MathWordProblem(text, answer="5")] * 3 + [MathWordProblem(text, answer="7")] * 5
    beam = make_beam(difference=0.6, total=0.2, product=0.2)
    scaled = calibrate(fitted, problems, [beam] * 8)
    before = fitted.rerank(problems[0], beam)
    after = scaled.rerank(problems[0], beam)
    assert before[0].plausibility == pytest.approx(0.6, abs=1e-3)
    assert after[0].plausibility == pytest.approx(3 / 8, abs=0.005)
    assert scaled.weights["log_mass"] == pytest.approx(math.log(6 / 5) / math.log(3), abs=0.01)
    assert [answer.value for answer in after] == [answer.value for answer in before]
    # Beams without a choice change nothing.
    assert calibrate(fitted, problems[:1], [beam[:1]]) == fitted


def test_wrong_arguments_are_named():
    problems, beams = problems_and_beams(2)
    english = MathWordProblem("5 and 2?", answer="3", language="en")
    with pytest.raises(PlausibilityError, match="en and zh"):
        fit_plausibility([problems[0], english], beams, num_beams=3)
    with pytest.raises(PlausibilityError, match="`regularization`.* 0"):
        fit_plausibility(problems, beams, num_beams=3, regularization=0)
    with pytest.raises(ValueError, match="shorter"):
        fit_plausibility(problems, beams[:1], num_beams=3)


def test_confidence_becomes_the_share_of_right_answers():
    """Of these first answers, 3 in 8 are right."""
    plain = fit_plausibility(*problems_and_beams(), num_beams=3, regularization=1e9)
    beam = [(Expression.from_infix("N0-N1"), math.log(0.6)), (Expression.from_infix("N0+N1"), math.log(0.2))]
    problems = []
    for number in range(8):
        problems.append(MathWordProblem("有9人，走了4人，还剩几人？", answer="5" if number < 3 else "7"))
    beams = [beam] * len(problems)
    fitted = fit_confidence(plain, problems, beams)
    assert fitted.rerank(problems[0], beams[0])[0].plausibility == pytest.approx(3 / 8, abs=1e-3)
    assert fitted.weights == plain.weights
    with pytest.raises(PlausibilityError, match="right and with wrong"):
        fit_confidence(plain, problems[:3], beams[:3])


def test_confidence_tells_answers_with_a_fault_from_others():
    """Numbers of people are whole: all first answers with a fraction are wrong, all others right."""
    plain = fit_plausibility(*problems_and_beams(), num_beams=3, regularization=1e9)
    problems = []
    beams = []
    for number in range(40):
        problems.append(MathWordProblem("有9人，走了4人，还剩几人？", answer="5"))
        first = "N0-N1" if number % 2 else "N0/N1"
        trees = [(first, 0.6), ("N0+N1", 0.2)]
        beams.append([(Expression.from_infix(text), math.log(probability)) for text, probability in trees])
    fitted = fit_confidence(plain, problems, beams)
    assert fitted.rerank(problems[0], beams[0])[0].plausibility < 0.2
    assert fitted.rerank(problems[1], beams[1])[0].plausibility > 0.8
