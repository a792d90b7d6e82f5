import math

import pytest
import torch
from transformers.modeling_outputs import MaskedLMOutput, SequenceClassifierOutput

from hf_mwp.compress.distillation.features import Features
from hf_mwp.compress.distillation.objectives.objective import TeacherRequest
from hf_mwp.compress.distillation.teacher_cache import OutputLayout
from hf_mwp.solver.models.mwp_solver import MwpSolverOutput


MIN = torch.finfo(torch.float32).min


def nbytes(row):
    return sum(array.nbytes for array in row.values())


def through(layout, output, inputs, rows=None, **other):
    """What comes back of an output; `rows` and `other` choose another batch of the same rows."""
    packed = layout.pack(Features(output), inputs)
    packed = packed if rows is None else [packed[row] for row in rows]
    return layout.restore(layout.assemble(packed, other or inputs), torch.float32).recorded


def test_states_come_back_where_tokens_are():
    states = torch.arange(24.0).view(2, 3, 4)
    output = MaskedLMOutput(hidden_states=(states, states + 100, states + 200))
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    layout = OutputLayout.of(Features(output), TeacherRequest(("hidden_0", "hidden_2")))
    assert layout.states == {"hidden_0": 4, "hidden_2": 4}
    back = through(layout, output, {"attention_mask": mask})
    assert back.keys() == {"hidden_0", "hidden_2"}
    assert torch.equal(back["hidden_2"], (states + 200) * mask.unsqueeze(-1))
    # In another batch: other rows, other padding, on the other side.
    other = torch.tensor([[0, 1, 1, 1], [0, 0, 1, 1]])
    back = through(layout, output, {"attention_mask": mask}, rows=[1, 0], attention_mask=other)
    assert torch.equal(back["hidden_0"][0, 1:], states[1]) and not back["hidden_0"][0, 0].any()
    assert torch.equal(back["hidden_0"][1, 2:], states[0, :2]) and not back["hidden_0"][1, :2].any()


def test_logits_of_rows_and_of_labelled_positions():
    logits = torch.tensor([[0.5, -1.25, 3.0], [1.0, 2.0, -4.0]])
    output = SequenceClassifierOutput(logits=logits)
    layout = OutputLayout.of(Features(output), TeacherRequest(("logits",)))
    back = through(layout, output, {"labels": torch.tensor([0, 2])})
    assert torch.equal(back["logits"], logits)

    labels = torch.tensor([[-100, 3, -100], [2, -100, 4]])
    output = MaskedLMOutput(logits=torch.arange(30.0).view(2, 3, 5))
    layout = OutputLayout.of(Features(output), TeacherRequest(("logits",)))
    packed = layout.pack(Features(output), {"labels": labels})
    assert [row["logits"].shape for row in packed] == [(1, 5), (2, 5)] and nbytes(packed[0]) == 10
    back = through(layout, output, {"labels": labels})
    assert torch.equal(back["logits"], output.logits * (labels != -100).unsqueeze(-1))
    # Without labels the tokens count, and without a mask all positions.
    assert torch.equal(through(layout, output, {})["logits"], output.logits)
    with pytest.raises(ValueError, match=r"\[3, 2\].*\[1, 2\].*collator"):
        through(layout, output, {"labels": labels}, labels=torch.tensor([[1, 1, 1], [1, -100, 1]]))
    with pytest.raises(ValueError, match=r"\(1, 2, 3, 4\).*`cache_teacher_outputs=False`"):
        OutputLayout.of(Features(MaskedLMOutput(logits=torch.zeros(1, 2, 3, 4))), TeacherRequest(("logits",)))


def test_numbers_that_a_problem_lacks_are_forbidden():
    # Two symbols and up to three numbers; the first problem has one number, the second has lost its second one.
    logits = torch.tensor([[[1.0, 2.0, 3.0, MIN, MIN]] * 2, [[4.0, 5.0, 6.0, MIN, 7.0], [0.0] * 5]])
    inputs = {
        "labels": torch.tensor([[0, 1], [1, -100]]),
        "number_positions": torch.tensor([[4, -1, -1], [2, -1, 3]]),
    }
    layout = OutputLayout.of(Features(MaskedLMOutput(logits=logits)), TeacherRequest(("logits",)), num_symbols=2)
    packed = layout.pack(MaskedLMOutput(logits=logits), inputs)
    assert [row["logits"].shape[1] for row in packed] == [3, 5]
    assert torch.equal(through(layout, MaskedLMOutput(logits=logits), inputs)["logits"], logits)
    wider = {"labels": inputs["labels"], "number_positions": torch.tensor([[4, -1, -1, -1], [2, -1, 3, -1]])}
    back = through(layout, MaskedLMOutput(logits=logits), inputs, **wider)["logits"]
    assert torch.equal(back[..., :5], logits) and torch.equal(back[..., 5], torch.tensor([[MIN, MIN], [MIN, 0.0]]))


def test_rows_beyond_fp16_are_kept_in_fp32():
    states = torch.tensor([[[1.0, 2.0]], [[70000.123, -3.0]], [[0.1, 65504.0]]])
    layout = OutputLayout.of(Features(MaskedLMOutput(hidden_states=(states,))), TeacherRequest(("hidden_0",)))
    packed = layout.pack(Features(MaskedLMOutput(hidden_states=(states,))), {})
    assert [row["hidden_0"].dtype.name for row in packed] == ["float16", "float32", "float16"]
    assert nbytes(packed[1]) == 8
    back = through(layout, MaskedLMOutput(hidden_states=(states,)), {})["hidden_0"]
    assert torch.equal(back[1], states[1])
    torch.testing.assert_close(back, states, rtol=2**-11, atol=0)
    for broken in (math.nan, math.inf):
        states[0, 0, 0] = broken
        with pytest.raises(ValueError, match="NaN"):
            layout.pack(Features(MaskedLMOutput(hidden_states=(states,))), {})


def test_numbers_come_in_the_students_dtype():
    output = SequenceClassifierOutput(logits=torch.tensor([[0.1, 0.2]]))
    layout = OutputLayout.of(Features(output), TeacherRequest(("logits",)))
    parts = layout.assemble(layout.pack(Features(output), {}), {})
    assert parts["logits"].dtype == torch.float16
    assert layout.restore(parts, torch.float16)["logits"].dtype == torch.float16
    # bf16 would be less exact than what is stored.
    assert layout.restore(parts, torch.bfloat16)["logits"].dtype == torch.float32


def test_lists_of_scores_have_the_length_of_their_row():
    logits = torch.tensor([[1.0, -2.0, 4.0], [0.5, MIN, MIN], [MIN] * 3])
    answers = torch.tensor([[3.0, -1.5], [2.0, MIN], [MIN, MIN]])
    output = Features(MwpSolverOutput(logits=logits, answer_logits=answers))
    request = TeacherRequest(("answer_logits", "logits"), listed=("logits", "answer_logits"))
    layout = OutputLayout.of(output, request)
    packed = layout.pack(output, {})
    # Two bytes a score: three candidates and two thoughts, one of each, and a problem without a plan.
    assert [nbytes(row) for row in packed] == [10, 4, 0]
    restored = layout.restore(layout.assemble(packed, {}), torch.float32)
    assert torch.equal(restored["logits"], logits) and torch.equal(restored["answer_logits"], answers)
    # Alone, a row is as long as it needs to be.
    assert layout.assemble(packed[1:2], {})["logits"].tolist() == [[0.5]]
