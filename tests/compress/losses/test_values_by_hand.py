"""Values of the losses worked out by hand, and arguments that they refuse."""

import math

import pytest
import torch

from hf_mwp.compress.losses import (
    AttentionMSELoss,
    CKALoss,
    CKDPairLoss,
    CKDTripleLoss,
    CosineLoss,
    FSPLoss,
    GramLoss,
    HiddenMSELoss,
    NSTLoss,
    PKDLoss,
    ProcrustesLoss,
    RelationLoss,
)


NAN = math.nan
FIRST_TOKEN = [[1, 0]]
# Attention of two heads over two tokens.
STUDENT_MAPS = [[[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]]]
TEACHER_MAPS = [[[[0.5, 0.5], [0.5, 0.5]], [[0.0, 1.0], [1.0, 0.0]]]]
STUDENT_HEAD = [[[[1.0, 0.0], [0.5, 0.5]]]]
# Cosines of three items: 0, 1, 0 and 1, 0, 0.
STUDENT_ITEMS = [[[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]]]
TEACHER_ITEMS = [[[5.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 4.0]]]
# At the middle item a right angle (0) and a straight line (-1), at the others 45 degrees and the same side (1).
CORNER = [[[1.0, 0.0], [0.0, 0.0], [0.0, 1.0]]]
LINE = [[[1.0], [0.0], [-1.0]]]
CORNER_AND_LINE = (1.0 + 2 * (math.sqrt(0.5) - 1) ** 2) / 3
# Two layers whose flow H1ᵀ H2 / 2 is [[1, 7], [0, 3]] / 2; the first token's is [[1, 1], [0, 0]].
LAYERS = ([[[1.0, 0.0], [2.0, 1.0]]], [[[1.0, 1.0], [0.0, 3.0]]])
NO_LAYERS = (torch.zeros(1, 2, 2), torch.zeros(1, 2, 2))
# Centred: (-1, 0, 1) and the columns (-1, 0, 1), (1, -2, 1). S'T = (2, 0), S'S = 2, T'T = diag(2, 6).
COLUMN = [[[0.0], [1.0], [2.0]]]
COLUMNS = [[[0.0, 3.0], [1.0, 0.0], [2.0, 3.0]]]
# Of two texts one has a token, its second one.
STUDENT_TEXTS = [[[9.0, 9.0], [3.0, 4.0]], [[1.0, 1.0], [1.0, 1.0]]]
TEACHER_TEXTS = [[[0.0, 7.0], [2.0, 0.0]], [[5.0, 1.0], [1.0, 1.0]]]


def relation_loss(score):
    """Rows of relations: even ones of the student, `(e^score, 1)` and an even one of the teacher."""
    p = 1 / (1 + math.exp(-score))
    return (p * math.log(2 * p) + (1 - p) * math.log(2 * (1 - p))) / 2


@pytest.mark.parametrize(
    ("loss", "student", "teacher", "mask", "expected"),
    [
        # Each head differs by 0.25 + 0.25, over 2 heads of 4 pairs; the first token by 0.25 and 0.
        (AttentionMSELoss(), STUDENT_MAPS, TEACHER_MAPS, None, 1 / 8),
        # The teacher's means: [[0.25, 0.75], [0.75, 0.25]].
        (AttentionMSELoss("mean"), STUDENT_HEAD, TEACHER_MAPS, None, (2 * 0.75**2 + 2 * 0.25**2) / 4),
        # A token counts the same whatever the length of its text.
        (HiddenMSELoss(), torch.zeros(2, 2, 1), [[[1.0], [1.0]], [[5.0], [NAN]]], [[1, 1], [1, 0]], (1 + 1 + 25) / 3),
        (FSPLoss(), LAYERS, NO_LAYERS, None, (1 + 49 + 9) / 4 / 4),
        (FSPLoss(), LAYERS, NO_LAYERS, FIRST_TOKEN, 2 / 4),
        # [[2, 2], [2, 4]] / 2 against [[4, 2], [2, 1]] / 1
        (NSTLoss(), [[[1.0, 1.0], [0.0, 2.0]]], [[[2.0], [1.0]]], None, (9 + 1 + 1 + 1) / 4),
        (CKDPairLoss(), STUDENT_ITEMS, TEACHER_ITEMS, None, 2 / 3),
        (CKDPairLoss(), STUDENT_ITEMS, TEACHER_ITEMS, [[1, 0, 0]], 0.0),
        (CKDTripleLoss(), CORNER, LINE, None, CORNER_AND_LINE),
        # The first valid token counts, with the directions (3/5, 4/5) and (1, 0), and empty texts do not.
        (PKDLoss(), [STUDENT_TEXTS], [TEACHER_TEXTS], [[0, 1], [0, 0]], 0.8),
        # A second head without relations halves the mean; with one head its zeros make the scores smaller.
        (RelationLoss(2), torch.zeros(1, 2, 2), [[[1.0, 0.0], [0.0, 0.0]]], None, relation_loss(1) / 2),
        (RelationLoss(), torch.zeros(1, 2, 4), [[[1.0, 0.0], [0.0, 0.0]]], None, relation_loss(1 / math.sqrt(2))),
        (CKALoss(squared=True), COLUMN, COLUMNS, None, 1 - 4 / (2 * math.sqrt(40))),
        # Unit norms divide by sqrt(2) and sqrt(8).
        (ProcrustesLoss(), COLUMN, COLUMNS, None, 2 - 2 * 2 / 4),
        (GramLoss(), COLUMN, COLUMNS, None, 1 + 40 / 64 - 2 * 4 / 16),
        (CosineLoss(), [[[3.0, 4.0], [1.0, 0.0]]], [[[0.0, 2.0], [-1.0, 0.0]]], None, ((1 - 0.8) + 2) / 2),
    ],
)
def test_value_by_hand(loss, student, teacher, mask, expected):
    def tensors(values):
        if isinstance(values, tuple):
            return [torch.as_tensor(layer) for layer in values]
        if isinstance(loss, PKDLoss):
            return [torch.tensor(values[0])]
        return torch.as_tensor(values)

    value = loss(tensors(student), tensors(teacher), None if mask is None else torch.tensor(mask))
    assert value.item() == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "is_changed"), [(NSTLoss(), False), (RelationLoss(), False), (RelationLoss(2), True)], ids=repr
)
def test_rotated_features_change_only_relations_of_heads(loss, is_changed):
    generator = torch.Generator().manual_seed(0)
    states = torch.randn(2, 5, 8, generator=generator)
    rotation = torch.linalg.qr(torch.randn(8, 8, generator=generator)).Q
    assert (loss(states @ rotation, states).item() > 1e-4) == is_changed


STATES = torch.zeros(1, 2, 3)
WIDE = torch.zeros(1, 2, 4)
LONG = torch.zeros(1, 4, 3)


@pytest.mark.parametrize(
    ("loss", "student", "teacher", "message"),
    [
        (AttentionMSELoss(), torch.zeros(1, 1, 2, 2), torch.zeros(1, 2, 2, 2), '1 heads.* 2.*"attention_mean"'),
        (AttentionMSELoss("sum"), torch.zeros(1, 1, 2, 2), torch.zeros(1, 2, 2, 2), '1 heads.* 2.*"attention_mean"'),
        (AttentionMSELoss(), torch.zeros(1, 0, 2, 2), torch.zeros(1, 2, 2, 2), r"\(1, 0, 2, 2\)"),
        (HiddenMSELoss(), STATES, WIDE, "projection"),
        (FSPLoss(), [STATES] * 2, [WIDE] * 2, "projection"),
        (FSPLoss(), [STATES], [STATES] * 2, "2 layers.* 1"),
        (FSPLoss(), [STATES, LONG], [STATES] * 2, r"\(1, 2\).*\(1, 4\)"),
        (NSTLoss(), [STATES], STATES, "2 layers.* 1"),
        (PKDLoss(), [STATES], [STATES] * 2, r"\b1 layers.*\b2\b"),
        (PKDLoss(), [STATES], [WIDE], "projection"),
        (RelationLoss(3), WIDE, torch.zeros(1, 2, 6), r"\b4 .*\b3 relation heads"),
    ],
)
def test_tensors_that_do_not_fit_raise(loss, student, teacher, message):
    with pytest.raises(ValueError, match=message):
        loss(student, teacher)


@pytest.mark.parametrize(
    ("loss_class", "options", "name"),
    [
        (AttentionMSELoss, {"heads": "all"}, "heads"),
        (RelationLoss, {"heads": 0}, "heads"),
        (CKDTripleLoss, {"window": 0}, "window"),
    ],
)
def test_impossible_options_raise(loss_class, options, name):
    with pytest.raises(ValueError, match=f"`{name}`"):
        loss_class(**options)
