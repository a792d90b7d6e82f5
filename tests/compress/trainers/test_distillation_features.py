"""Which inner states of the models are compared: attention, hidden states and bottleneck networks."""

import pytest
import torch

from hf_mwp.compress.pruning import prune_heads
from tests.compress.trainers.distilling import (
    eager,
    encoded_batch,
    first_losses,
    solver_with_bottlenecks,
)
from tests.slow_parameters import slow_after
from tests.tiny import tiny_classifier, tiny_solver


def test_attention_that_cannot_be_compared_is_refused(solver_trainer, processor):
    student = tiny_solver(processor)
    teacher = tiny_solver(processor, layers=4, seed=1)
    eager_student = eager(tiny_solver(processor))
    eager_teacher = eager(tiny_solver(processor, layers=4, seed=1))
    with pytest.raises(ValueError, match=r'student.*attention.*set_attn_implementation\("eager"\)'):
        solver_trainer(student, eager_teacher, hidden_loss="attention")
    with pytest.raises(ValueError, match=r'teacher.*attention.*set_attn_implementation\("eager"\)'):
        solver_trainer(eager_student, teacher, hidden_loss="attention")
    with pytest.raises(ValueError, match=r"\[0, 0\].*attention"):
        solver_trainer(eager_student, eager_teacher, hidden_loss="attention", layer_mapping="0:0,2:4")


@pytest.mark.parametrize(("pruned", "cached"), slow_after(1, [("both", True), ("student", False), ("teacher", True)]))
def test_a_layer_without_heads_has_no_relations(model_trainer, pruned, cached):
    student = tiny_classifier()
    teacher = tiny_classifier(1)
    if pruned != "teacher":
        student = prune_heads(student, {0: [0, 1]})
    if pruned != "student":
        teacher = prune_heads(teacher, {0: [0, 1]})
    fields = {"hidden_loss": "minilm", "embedding_weight": 0.0, "cache_teacher_outputs": cached, "max_steps": 1}
    losses = first_losses(model_trainer(student, teacher, **fields))
    assert losses["loss_hidden_1"] == 0.0
    assert losses["loss_hidden_2"] > 0.0


def test_narrow_states_are_the_targets_of_layers_with_bottlenecks(solver_trainer, processor):
    fields = {"per_device_train_batch_size": 24, "max_steps": 1, "soft_label_weight": 0.0, "embedding_weight": 0.0}
    trainer = solver_trainer(teacher=solver_with_bottlenecks(processor), **fields)
    assert trainer.teacher_source.request.features == ("bottleneck_0", "bottleneck_1")
    assert len(trainer.projections) == 0
    losses = first_losses(trainer)
    batch = encoded_batch(processor)
    valid = batch["attention_mask"].bool()
    with torch.no_grad():
        states = tiny_solver(processor)(**batch, output_hidden_states=True).hidden_states
        narrow_states = trainer.teacher_model(**batch, output_hidden_states=True).bottleneck_states
    for layer in (1, 2):
        difference = (states[layer] - narrow_states[layer - 1])[valid]
        assert losses[f"loss_hidden_{layer}"] == pytest.approx(difference.square().mean().item(), rel=1e-4)


@pytest.mark.parametrize(
    ("layers", "size", "shapes"),
    slow_after(
        1,
        [
            ([1, 4], 16, {"hidden_1.weight": (24, 16), "embedding.weight": (24, 16)}),
            ([2, 4], 8, {"hidden_1.weight": (8, 16), "hidden_2.weight": (8, 16), "embedding.weight": (24, 16)}),
        ],
    ),
)
def test_layers_without_a_bottleneck_and_other_widths_are_projected(solver_trainer, processor, layers, size, shapes):
    trainer = solver_trainer(teacher=solver_with_bottlenecks(processor, layers, size), max_steps=1)
    weights = trainer.projections.module.state_dict()
    assert {name: tuple(value.shape) for name, value in weights.items()} == shapes
    trainer.train()


@pytest.mark.filterwarnings("ignore:`gradient_checkpointing:FutureWarning")
@pytest.mark.parametrize(
    "fields",
    [
        {"torch_compile": True},
        {"gradient_checkpointing": True, "gradient_checkpointing_kwargs": {"use_reentrant": True}},
    ],
)
def test_hooks_that_would_be_skipped_are_refused(model_trainer, fields):
    with pytest.raises(ValueError, match="hidden need hooks.*`torch_compile=False`"):
        model_trainer(hidden_loss="minilm", max_steps=1, **fields).train()
