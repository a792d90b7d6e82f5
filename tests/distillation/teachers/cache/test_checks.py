import pytest
import torch
from transformers.modeling_outputs import SequenceClassifierOutput

from hf_mwp.distillation.features import Features
from hf_mwp.distillation.teachers import TeacherRequest
from hf_mwp.distillation.teachers.cache.checks import check_equal
from hf_mwp.distillation.teachers.cache.output_layout import OutputLayout


def check(together, alone):
    """Checks a regression that says something to some rows, and something to the last one alone. Returns the sizes."""
    outputs = [Features(SequenceClassifierOutput(logits=torch.tensor(each).view(-1, 1))) for each in (together, alone)]
    layout = OutputLayout.of(outputs[0], TeacherRequest(("logits",)))
    packed, last = (layout.pack(output, {}) for output in outputs)
    check_equal(packed[-1:], last, packed, "depend on longer rows (attention mask?)")
    return [row["logits"].nbytes for row in packed]


def test_a_row_may_differ_by_rounding_of_its_size_or_of_that_of_others():
    assert check([3.0, 4.0, 2.0], [2.03]) == [2, 2, 2]
    # One number of a regression may be all but zero.
    assert check([3.0, 4.0, 0.01], [0.03]) == [2, 2, 2]


@pytest.mark.parametrize(
    ("together", "alone"), [([3.0, 4.0, 2.0], [2.2]), ([3.0, 4.0, 0.01], [0.2]), ([0.0] * 3, [1.0])]
)
def test_a_row_that_depends_on_its_batch_is_refused(together, alone):
    with pytest.raises(ValueError, match="attention mask.*logits.*`cache_teacher_outputs=False`"):
        check(together, alone)
