import math

import pytest
import torch

from hf_mwp.compress.losses import LogitDistillationLoss
from hf_mwp.compress.models.prediction_kind import CANDIDATES, CLASSES, EXPRESSION_POSITIONS


LOWEST = torch.finfo(torch.float32).min


def logit(probability):
    return math.log(probability / (1 - probability))


def loss_of(output, student, teacher, mask):
    student = CANDIDATES.class_scores(output, student)
    teacher = CANDIDATES.class_scores(output, teacher)
    return LogitDistillationLoss(temperature=1.0, reduction="batchmean")(student, teacher, mask).item()


def test_each_candidate_is_compared_as_a_binary_decision():
    student = torch.tensor([[logit(0.5), logit(0.2)], [logit(0.9), LOWEST]])
    teacher = torch.tensor([[logit(0.8), logit(0.2)], [logit(0.6), LOWEST]])
    mask = CANDIDATES.mask("logits", student, None)
    assert mask.tolist() == [[True, True], [True, False]]
    # Of two problems the mean: 0.8 ln(0.8/0.5) + 0.2 ln(0.2/0.5), nothing, and 0.6 ln(0.6/0.9) + 0.4 ln(0.4/0.1).
    assert loss_of("logits", student, teacher, mask) == pytest.approx((0.192745 + 0.311239) / 2, abs=1e-5)


def test_answer_is_compared_as_one_candidate_of_all():
    student = torch.tensor([[0.0, 0.0, LOWEST], [LOWEST] * 3])
    teacher = torch.tensor([[math.log(3), 0.0, LOWEST], [LOWEST] * 3])
    mask = CANDIDATES.mask("answer_logits", student, None)
    assert mask.tolist() == [True, False]
    # 3/4 ln(3/2) + 1/4 ln(1/2), of two problems.
    assert loss_of("answer_logits", student, teacher, mask) == pytest.approx(0.130812 / 2, abs=1e-5)


def test_class_scores_are_converted_back_to_logits():
    logits = torch.tensor([[1.5, -2.0, LOWEST]])
    for output in CANDIDATES.outputs:
        assert torch.equal(CANDIDATES.from_class_scores(output, CANDIDATES.class_scores(output, logits)), logits)
    assert CLASSES.from_class_scores("logits", CLASSES.class_scores("logits", logits)) is logits


def test_missing_numbers_are_forbidden():
    logits = torch.zeros(1, 2, 4)
    positions = torch.tensor([[3, -1]])
    masked = EXPRESSION_POSITIONS.mask_missing_numbers("logits", logits, positions)
    assert (masked == LOWEST).tolist() == [[[False, False, False, True]] * 2]
    assert CANDIDATES.mask_missing_numbers("logits", logits, positions) is logits
