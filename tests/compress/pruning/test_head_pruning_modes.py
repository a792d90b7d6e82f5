"""Heads that are cut out of a model while it trains (`mode="slice"`), compared with heads closed by gates."""

import functools

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForSequenceClassification

from hf_mwp import DistillationConfig, DistillationTrainer, MwpSolver, SolverTrainer, SolverTrainingConfig
from hf_mwp.compress.distillation.objectives import AttentionMaps, AttentionRelations, SoftLabels
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.pruning import HeadPruningCallback, RandomImportance
from tests.compress.pruning.encoders import tiny_batch, tiny_encoder
from tests.compress.pruning.pruned_trainings import (
    SCHEDULE,
    LastHeadsFirst,
    StopAt,
    arguments,
    assert_code_is_beside,
    assert_same_weights,
    classifier_trainer,
    losses,
    num_closed,
    solver_trainer,
    trainer_of,
)
from tests.other_tokens import in_other_tokens, other_processor
from tests.slow_parameters import slow_after
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


@pytest.mark.parametrize(
    "new_trainer",
    slow_after(1, [classifier_trainer, functools.partial(classifier_trainer, name="modernbert"), solver_trainer]),
)
def test_slicing_learns_as_gates_do_and_resumes(new_trainer, tmp_path):
    fields = {"weight_decay": 0.1, "learning_rate": 1e-3, "save_strategy": "steps", "save_steps": 5}
    callbacks = {}
    trainers = {}
    for name in ("gated", "sliced", "interrupted", "resumed"):
        callbacks[name] = HeadPruningCallback(**SCHEDULE, mode="mask" if name == "gated" else "slice")
        folder = tmp_path / name.replace("interrupted", "resumed")
        trainers[name] = new_trainer(folder, callbacks[name], **fields)
        if name == "interrupted":
            trainers[name].add_callback(StopAt(5))
        trainers[name].train(resume_from_checkpoint=name == "resumed")
        trainers[name].save_model()
    gated = trainers["gated"]
    sliced = trainers["sliced"]
    sliced_events = [event["heads"] for event in callbacks["sliced"].log]
    assert sliced_events == [event["heads"] for event in callbacks["gated"].log]
    assert losses(sliced) == pytest.approx(losses(gated), abs=1e-5)
    assert losses(trainers["resumed"]) == losses(sliced) and callbacks["resumed"].log == callbacks["sliced"].log
    assert_same_weights(sliced.model, trainers["resumed"].model)
    # The averages of AdamW are cut with the heads.
    layer, heads = next(iter(callbacks["sliced"].closed.items()))
    sliced_layer = layer_parts(sliced.model)[layer]
    assert sliced_layer.num_heads == layer_parts(gated.model)[layer].num_heads - len(heads)
    for linear in sliced_layer.head_projections:
        assert sliced.optimizer.state[linear.weight]["exp_avg_sq"].shape == linear.weight.shape
    # All save the same model.
    gated_weights = load_file(tmp_path / "gated" / "model.safetensors")
    sliced_weights = load_file(tmp_path / "sliced" / "model.safetensors")
    resumed_weights = load_file(tmp_path / "resumed" / "model.safetensors")
    for name, weight in sliced_weights.items():
        torch.testing.assert_close(weight, gated_weights[name], rtol=0, atol=5e-5)
        assert torch.equal(weight, resumed_weights[name])


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_after(1, ["bert", "modernbert"]))
@pytest.mark.parametrize("resumes", slow_after(1, [False, True]))
def test_heads_are_counted_from_the_whole_model_when_a_sliced_one_trains_again(name, resumes, tmp_path):
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2, importance=LastHeadsFirst(), mode="slice")
    fields = {"save_strategy": "steps", "save_steps": 1, "max_steps": 4}
    trainer = classifier_trainer(tmp_path, callback, name, **fields)
    trainer.train()
    heads = callback.closed
    if resumes:
        # From before the first heads were cut.
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    else:
        trainer = trainer_of(trainer.model, tmp_path, callback, **fields)
        trainer.train()
    assert callback.closed == heads == {0: [2, 3], 1: [2, 3], 2: [2, 3]}
    trainer.save_model(tmp_path / "saved")
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
    assert loaded.config.cut_heads == [[2, 3]] * 3


@pytest.mark.slow
@pytest.mark.parametrize("name", slow_after(1, ["bert", "mwp_student"]))
def test_second_training_keeps_the_heads_of_the_first(name, tmp_path):
    runs = []
    for mode in ("mask", "slice"):
        callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2, calibration_examples=8, mode=mode)
        trainer = classifier_trainer(tmp_path, callback, name, max_steps=4)
        trainer.train()
        closed = callback.closed
        trainer.train()
        assert callback.closed == closed and num_closed(callback) == 6
        assert [event["step"] for event in callback.log] == [2, 4]
        assert callback.pruned(trainer.model).config.cut_heads == [sorted(closed.get(layer, [])) for layer in range(3)]
        runs.append((closed, losses(trainer)))
    assert runs[0][0] == runs[1][0]
    assert runs[0][1] == pytest.approx(runs[1][1], abs=1e-5)


@pytest.mark.parametrize("mode", slow_after(1, ["mask", "slice"]))
def test_another_model_begins_with_all_its_heads(mode, tmp_path):
    callback = HeadPruningCallback(max_ratio=0.25, num_pruning_steps=1, importance=RandomImportance(), mode=mode)
    for _ in range(2):
        trainer = classifier_trainer(tmp_path, callback, max_steps=1)
        trainer.train()
        assert sum(callback.pruned(trainer.model).config.heads_per_layer) == 9


@pytest.mark.parametrize("name", slow_after(1, ["bert", "distilbert", "mwp_student", "deberta-v3", "albert"]))
def test_auto_classes_load_checkpoints_of_sliced_models(name, tmp_path):
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2, importance=LastHeadsFirst(), mode="slice")
    trainer = classifier_trainer(tmp_path, callback, name, max_steps=2, save_strategy="steps", save_steps=1)
    model_class = type(trainer.model)
    config = trainer.model.config
    trainer.train()
    assert type(trainer.model) is model_class and trainer.model.config is config
    folder = tmp_path / "checkpoint-2"
    loaded, info = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"] and not info["mismatched_keys"]
    assert sum(loaded.config.heads_per_layer) == 6
    batch = tiny_batch(trainer.model)
    assert torch.equal(loaded.eval()(**batch).logits, trainer.model.eval()(**batch).logits)
    assert_code_is_beside(folder)


def assert_solves_alike(solver, other_solver, processor):
    batch = processor([row["text"] for row in tiny_rows(3)])
    solution = solver.eval().solve(**batch, num_beams=2)
    other_solution = other_solver.eval().solve(**batch, num_beams=2)
    assert torch.equal(solution.sequences, other_solution.sequences)
    torch.testing.assert_close(solution.scores, other_solution.scores, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_checkpoints_of_sliced_solvers_load(tmp_path):
    processor = tiny_processor(max_length=32)
    encoder = tiny_encoder("bert", vocab_size=len(processor.tokenizer))
    trainer = SolverTrainer(
        model=MwpSolver.from_encoder_decoder_pretrained(encoder, processor),
        args=arguments(tmp_path, SolverTrainingConfig, max_steps=2, save_strategy="steps", save_steps=2),
        train_dataset=tiny_rows(),
        processing_class=processor,
        callbacks=[HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2, mode="slice")],
    )
    trainer.train()
    loaded = MwpSolver.from_pretrained(tmp_path / "checkpoint-2")
    assert sum(loaded.config.encoder_config.heads_per_layer) == 6
    assert trainer.model.config.encoder_config.model_type == "bert"
    assert_solves_alike(loaded, trainer.model, processor)


def distil(folder, student, teacher, mode, config, **options):
    """Distil a solver while its heads are pruned; return the trainer and what it saves."""
    trainer = DistillationTrainer(
        model=student,
        teacher_model=teacher,
        args=arguments(folder, DistillationConfig, max_steps=4, **config),
        train_dataset=tiny_rows(),
        callbacks=[HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2, end_fraction=0.5, mode=mode)],
        **options,
    )
    trainer.train()
    trainer.save_model()
    return trainer, MwpSolver.from_pretrained(folder)


@pytest.mark.slow
def test_sliced_student_follows_the_attention_of_its_teacher(tmp_path):
    processor = tiny_processor(max_length=32)
    teacher = tiny_solver(processor, layers=4)
    student = tiny_solver(processor)
    for model in (student, teacher):
        model.set_attn_implementation("eager")
    objectives = [SoftLabels(), AttentionMaps(), AttentionRelations()]
    options = {"objectives": objectives, "processing_class": processor}
    trainer, saved = distil(tmp_path, student, teacher, "slice", {}, **options)
    assert sum(saved.config.encoder_config.heads_per_layer) == 2
    assert_solves_alike(saved, trainer.model, processor)


@pytest.mark.slow
@pytest.mark.parametrize("has_other_tokens", slow_after(1, [False, True]))
def test_student_of_cached_teacher_outputs_is_pruned(has_other_tokens, tmp_path):
    processor = tiny_processor(max_length=32)
    teacher = tiny_solver(processor, layers=4, seed=1)
    config = {"cache_teacher_outputs": True}
    options = {"processing_class": processor}
    if has_other_tokens:
        teacher_processor = other_processor(processor)
        teacher = in_other_tokens(teacher, processor, teacher_processor)
        config = {"hidden_loss": None, "embedding_weight": 0.0}
        options["teacher_processing_class"] = teacher_processor
    _, saved = distil(tmp_path, tiny_solver(processor), teacher, "mask", config, **options)
    assert sum(saved.config.encoder_config.heads_per_layer) == 2
