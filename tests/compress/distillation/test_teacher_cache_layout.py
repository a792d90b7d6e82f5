import math

import pytest
import torch
from transformers.modeling_outputs import MaskedLMOutput, SequenceClassifierOutput

from hf_mwp.compress.distillation.features import Features
from hf_mwp.compress.distillation.objectives.objective import TeacherRequest
from hf_mwp.compress.distillation.teacher_cache import OutputLayout
from hf_mwp.solver.models.mwp_solver import MwpSolverOutput


MIN = torch.finfo(torch.float32).min


def layout_of(output, *names, **options):
    return OutputLayout.of(Features(output), TeacherRequest(names), **options)


def nbytes(row):
    return sum(array.nbytes for array in row.values())


def restored(layout, rows, inputs):
    return layout.restore(layout.assemble(rows, inputs), torch.float32).recorded


def stored_and_restored(layout, output, inputs):
    return restored(layout, layout.pack(Features(output), inputs), inputs)


def test_states_come_back_where_tokens_are():
    states = torch.arange(24.0).view(2, 3, 4)
    output = MaskedLMOutput(hidden_states=(states, states + 100, states + 200))
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    layout = layout_of(output, "hidden_0", "hidden_2")
    assert layout.states == {"hidden_0": 4, "hidden_2": 4}
    rows = layout.pack(Features(output), {"attention_mask": mask})
    features = restored(layout, rows, {"attention_mask": mask})
    assert features.keys() == {"hidden_0", "hidden_2"}
    assert torch.equal(features["hidden_2"], (states + 200) * mask.unsqueeze(-1))
    # In another batch: other rows, other padding, on the other side.
    left_padded = torch.tensor([[0, 1, 1, 1], [0, 0, 1, 1]])
    restored_states = restored(layout, [rows[1], rows[0]], {"attention_mask": left_padded})["hidden_0"]
    assert torch.equal(restored_states[0, 1:], states[1])
    assert torch.equal(restored_states[1, 2:], states[0, :2])
    assert not restored_states[0, 0].any()
    assert not restored_states[1, :2].any()


def test_logits_of_labelled_positions_come_back():
    labels = torch.tensor([[-100, 3, -100], [2, -100, 4]])
    output = MaskedLMOutput(logits=torch.arange(30.0).view(2, 3, 5))
    layout = layout_of(output, "logits")
    rows = layout.pack(Features(output), {"labels": labels})
    assert [row["logits"].shape for row in rows] == [(1, 5), (2, 5)]
    assert nbytes(rows[0]) == 10
    features = restored(layout, rows, {"labels": labels})
    assert torch.equal(features["logits"], output.logits * (labels != -100).unsqueeze(-1))
    # Without labels the tokens count, and without a mask all positions.
    assert torch.equal(stored_and_restored(layout, output, {})["logits"], output.logits)
    with pytest.raises(ValueError, match=r"\[3, 2\].*\[1, 2\].*collator"):
        restored(layout, rows, {"labels": torch.tensor([[1, 1, 1], [1, -100, 1]])})
    with pytest.raises(ValueError, match=r"\(1, 2, 3, 4\).*`cache_teacher_outputs=False`"):
        layout_of(MaskedLMOutput(logits=torch.zeros(1, 2, 3, 4)), "logits")


def test_numbers_that_a_problem_lacks_are_forbidden():
    # Two symbols and up to three numbers; the first problem has one number, the second has lost its second one.
    logits = torch.tensor([[[1.0, 2.0, 3.0, MIN, MIN]] * 2, [[4.0, 5.0, 6.0, MIN, 7.0], [0.0] * 5]])
    output = MaskedLMOutput(logits=logits)
    inputs = {
        "labels": torch.tensor([[0, 1], [1, -100]]),
        "number_positions": torch.tensor([[4, -1, -1], [2, -1, 3]]),
    }
    layout = layout_of(output, "logits", num_symbols=2)
    rows = layout.pack(output, inputs)
    assert [row["logits"].shape[1] for row in rows] == [3, 5]
    assert torch.equal(restored(layout, rows, inputs)["logits"], logits)
    inputs["number_positions"] = torch.tensor([[4, -1, -1, -1], [2, -1, 3, -1]])
    wider = restored(layout, rows, inputs)["logits"]
    assert torch.equal(wider[..., :5], logits)
    assert torch.equal(wider[..., 5], torch.tensor([[MIN, MIN], [MIN, 0.0]]))


def test_rows_beyond_fp16_are_stored_in_fp32():
    states = torch.tensor([[[1.0, 2.0]], [[70000.123, -3.0]], [[0.1, 65504.0]]])
    output = MaskedLMOutput(hidden_states=(states,))
    layout = layout_of(output, "hidden_0")
    rows = layout.pack(Features(output), {})
    assert [row["hidden_0"].dtype.name for row in rows] == ["float16", "float32", "float16"]
    assert nbytes(rows[1]) == 8
    restored_states = restored(layout, rows, {})["hidden_0"]
    assert torch.equal(restored_states[1], states[1])
    torch.testing.assert_close(restored_states, states, rtol=2**-11, atol=0)
    for not_finite in (math.nan, math.inf):
        states[0, 0, 0] = not_finite
        with pytest.raises(ValueError, match="NaN"):
            layout.pack(Features(output), {})


def test_outputs_have_the_students_dtype():
    output = SequenceClassifierOutput(logits=torch.tensor([[0.1, 0.2]]))
    layout = layout_of(output, "logits")
    assembled = layout.assemble(layout.pack(Features(output), {}), {})
    assert assembled["logits"].dtype == torch.float16
    assert layout.restore(assembled, torch.float16)["logits"].dtype == torch.float16
    # bf16 would be less exact than what is stored.
    assert layout.restore(assembled, torch.bfloat16)["logits"].dtype == torch.float32


def test_lists_of_scores_have_the_length_of_their_row():
    logits = torch.tensor([[1.0, -2.0, 4.0], [0.5, MIN, MIN], [MIN] * 3])
    answers = torch.tensor([[3.0, -1.5], [2.0, MIN], [MIN, MIN]])
    output = Features(MwpSolverOutput(logits=logits, answer_logits=answers))
    request = TeacherRequest(("answer_logits", "logits"), listed=("logits", "answer_logits"))
    layout = OutputLayout.of(output, request)
    rows = layout.pack(output, {})
    # Two bytes a score: three candidates and two thoughts, one of each, and a problem without a plan.
    assert [nbytes(row) for row in rows] == [10, 4, 0]
    features = restored(layout, rows, {})
    assert torch.equal(features["logits"], logits)
    assert torch.equal(features["answer_logits"], answers)
    # Alone, a row is as long as it needs to be.
    assert layout.assemble(rows[1:2], {})["logits"].tolist() == [[0.5]]
