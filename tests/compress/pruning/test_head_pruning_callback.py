import copy
import functools
import json
import random
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate.data_loader import IterableDatasetShard
from safetensors.torch import load_file
from transformers import (
    AutoModelForSequenceClassification,
    BertForQuestionAnswering,
    EarlyStoppingCallback,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from hf_mwp import DistillationConfig, DistillationTrainer, MwpSolver, SolverTrainer, SolverTrainingConfig
from hf_mwp.compress.distillation.objectives import AttentionMaps, AttentionRelations, SoftLabels
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.pruning import (
    AttentionEntropy,
    CombinedImportance,
    GateGradient,
    HeadGates,
    HeadPruningCallback,
    RandomImportance,
    prune_heads,
)
from hf_mwp.compress.pruning.pruned_saving import save_pruned
from tests.compress.pruning.encoders import tiny_batch, tiny_encoder
from tests.compress.trainers.distilling import pad
from tests.other_tokens import in_other_tokens, other_processor
from tests.tiny import tiny_classifier_rows, tiny_processor, tiny_rows, tiny_solver


def arguments(folder, kind=TrainingArguments, **fields):
    defaults = {"per_device_train_batch_size": 4, "max_steps": 8, "save_strategy": "no", "logging_steps": 1}
    return kind(output_dir=str(folder), use_cpu=True, report_to="none", disable_tqdm=True, **(defaults | fields))


def classifier_trainer(folder, callback, name="bert", sizes=None, **fields):
    return Trainer(
        model=tiny_encoder(name, "ForSequenceClassification", **(sizes or {})),
        args=arguments(folder, **fields),
        train_dataset=tiny_classifier_rows(32),
        eval_dataset=tiny_classifier_rows(8, seed=1),
        data_collator=pad,
        callbacks=[callback],
    )


def test_the_schedule_by_hand():
    callback = HeadPruningCallback(max_ratio=0.5, min_ratio=0.1, power=2, num_pruning_steps=4, end_fraction=0.5)
    # T is 20 of 40 steps.
    assert callback.event_steps(40) == [0, 5, 10, 15, 20]
    ratios = [callback.ratio_at(step, 40) for step in (0, 10, 20, 30)]
    assert ratios == pytest.approx([0.1, 0.1 + 0.4 * 0.25, 0.5, 0.5])
    assert HeadPruningCallback(num_pruning_steps=3).event_steps(8) == [3, 6, 8]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_pruning_steps": 2.5}, "`num_pruning_steps`.* whole .*2.5"),
        ({"num_pruning_steps": "3"}, "`num_pruning_steps`.* whole .*'3'"),
        ({"calibration_examples": None}, "`calibration_examples`.* whole "),
        ({"calibration_batch_size": "8"}, "`calibration_batch_size`.* whole .*'8'"),
        ({"min_heads_per_layer": 0.5}, "`min_heads_per_layer`.* whole "),
        ({"max_ratio": "0.3"}, "`max_ratio`.* number.*'0.3'"),
        ({"min_ratio": None}, "`min_ratio`.* number"),
        ({"power": "2"}, "`power`.* number"),
        ({"end_fraction": [1.0]}, "`end_fraction`.* number"),
        ({"alpha": "0.5"}, "`alpha`.* number"),
    ],
)
def test_what_is_no_number_is_named(options, message):
    with pytest.raises(TypeError, match=message):
        HeadPruningCallback(**options)


def test_the_last_event_reaches_the_ratio_whatever_share_of_the_steps_it_comes_after():
    for end_fraction in (0.1, 0.3, 0.5, 0.75, 1.0):
        callback = HeadPruningCallback(max_ratio=0.5, end_fraction=end_fraction, num_pruning_steps=3)
        for max_steps in range(3, 40):
            assert callback.ratio_at(callback.event_steps(max_steps)[-1], max_steps) == 0.5


@pytest.mark.parametrize("name", ["bert", "distilbert", "narrow electra", "mwp_student", "modernbert", "deberta-v3"])
def test_a_plain_trainer_ends_with_a_smaller_model(name, tmp_path):
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=4, calibration_examples=8)
    trainer = classifier_trainer(tmp_path, callback, name)
    trainer.train()
    # Twelve heads: 12.5, 25, 37.5, 50 %, rounded down; what is closed stays so.
    counts = [sum(len(heads) for heads in event["heads"].values()) for event in callback.log]
    assert counts == [1, 3, 4, 6] and [event["step"] for event in callback.log] == [2, 4, 6, 8]
    for before, after in zip(callback.log, callback.log[1:], strict=False):
        assert all(set(heads) <= set(after["heads"][layer]) for layer, heads in before["heads"].items())
    trainer.save_model()
    # Its code is beside it, so that it loads where hf_mwp is not installed.
    auto_map = json.loads((tmp_path / "config.json").read_text())["auto_map"]
    assert all((tmp_path / f"{reference.partition('.')[0]}.py").is_file() for reference in auto_map.values())
    small = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert sum(small.config.heads_per_layer) == 6 and min(small.config.heads_per_layer) >= 1
    batch = tiny_batch(trainer.model)
    trainer.model.eval()
    torch.testing.assert_close(small(**batch).logits, trainer.model(**batch).logits, rtol=0, atol=1e-5)
    assert sum(p.numel() for p in small.parameters()) < sum(p.numel() for p in trainer.model.parameters())


def test_a_pruned_training_that_prunes_nothing_is_the_training_itself(tmp_path):
    # Scoring draws no random number and leaves no trace, dropout and all.
    weights = []
    for callback in (None, HeadPruningCallback(max_ratio=0.0, num_pruning_steps=8, importance=AttentionEntropy())):
        trainer = classifier_trainer(
            tmp_path, callback or HeadPruningCallback(max_ratio=0.0, num_pruning_steps=1), "mwp_student"
        )
        if callback is None:
            trainer.remove_callback(HeadPruningCallback)
        trainer.train()
        weights.append(trainer.model.state_dict())
    assert weights[0].keys() == weights[1].keys()
    assert all(torch.equal(value, weights[1][name]) for name, value in weights[0].items())


def test_interrupted_and_resumed(tmp_path):
    whole = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=4, calibration_examples=8)
    trainer = classifier_trainer(tmp_path / "whole", whole, "mwp_student")
    trainer.train()
    parts = []
    for resume in (None, True):
        callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=4, calibration_examples=8)
        other = classifier_trainer(tmp_path / "parts", callback, "mwp_student", save_strategy="steps", save_steps=5)
        if resume is None:
            other.add_callback(StopAt(5))
        other.train(resume_from_checkpoint=resume)
        parts.append(callback)
    assert parts[1].closed == whole.closed and parts[1].log == whole.log
    for name, value in trainer.model.state_dict().items():
        assert torch.equal(value, other.model.state_dict()[name]), name


NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def new_classifier_trainer(folder, callback, name="bert", **fields):
    return classifier_trainer(folder, callback, name, sizes=NO_DROPOUT, **fields)


def new_trainer_of(name):
    return functools.partial(new_classifier_trainer, name=name)


def new_solver_trainer(folder, callback, **fields):
    processor = tiny_processor(max_length=32)
    return SolverTrainer(
        model=tiny_solver(processor),
        args=arguments(folder, SolverTrainingConfig, **fields),
        train_dataset=tiny_rows(),
        processing_class=processor,
        callbacks=[callback],
    )


@pytest.mark.parametrize(
    "new_trainer",
    [
        new_classifier_trainer,
        new_solver_trainer,
        *(pytest.param(new_trainer_of(name), id=name) for name in ("modernbert", "deberta-v2", "mpnet")),
    ],
)
def test_cutting_at_each_event_learns_as_gates_do_and_is_resumed(new_trainer, tmp_path):
    fields = {"weight_decay": 0.1, "learning_rate": 1e-3, "save_strategy": "steps", "save_steps": 5}
    trainers = {}
    for name, mode, resume in [("gated", "mask", None), ("whole", "slice", None), ("parts", "slice", True)]:
        callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=4, calibration_examples=8, mode=mode)
        if resume:
            broken = new_trainer(
                tmp_path / name,
                HeadPruningCallback(max_ratio=0.5, num_pruning_steps=4, calibration_examples=8, mode=mode),
                **fields,
            )
            broken.add_callback(StopAt(5))
            broken.train()
        trainers[name] = trainer = new_trainer(tmp_path / name, callback, **fields)
        trainer.train(resume_from_checkpoint=resume)
        trainer.save_model()
        trainer.pruning = callback
    gated, whole, parts = trainers.values()
    assert [event["heads"] for event in whole.pruning.log] == [event["heads"] for event in gated.pruning.log]
    for ours, theirs in zip(losses(whole), losses(gated), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-5)
    assert losses(parts) == losses(whole) and parts.pruning.log == whole.pruning.log
    for name, value in whole.model.state_dict().items():
        assert torch.equal(value, parts.model.state_dict()[name]), name
    # The averages of AdamW went with the heads.
    layer, heads = next(iter(whole.pruning.closed.items()))
    cut = layer_parts(whole.model)[layer]
    dense = layer_parts(gated.model)[layer]
    assert cut.num_heads == dense.num_heads - len(heads)
    for linear in cut.head_projections:
        assert whole.optimizer.state[linear.weight]["exp_avg_sq"].shape == linear.weight.shape
    # All three write the same model.
    saved = [load_file(tmp_path / name / "model.safetensors") for name in trainers]
    for name, value in saved[0].items():
        torch.testing.assert_close(saved[1][name], value, rtol=0, atol=1e-5)
        assert torch.equal(saved[1][name], saved[2][name])


@pytest.mark.parametrize("name", ["bert", "modernbert"])
@pytest.mark.parametrize("resume", [None, True])
def test_heads_are_counted_from_the_whole_model_when_the_same_objects_train_again(name, resume, tmp_path):
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2, importance=Falling(), mode="slice")
    fields = {"save_strategy": "steps", "save_steps": 1, "max_steps": 4}
    trainer = new_classifier_trainer(tmp_path, callback, name, **fields)
    trainer.train()
    heads = callback.closed
    if resume:
        # From before the first heads were cut.
        trainer.train(resume_from_checkpoint=str(tmp_path / "checkpoint-1"))
    else:
        data = {"train_dataset": tiny_classifier_rows(32), "data_collator": pad, "callbacks": [callback]}
        trainer = Trainer(trainer.model, arguments(tmp_path, **fields), **data)
        trainer.train()
    assert callback.closed == heads
    trainer.save_model(tmp_path / "saved")
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "saved")
    assert again.config.cut_heads == [heads[layer] for layer in range(3)]


@pytest.mark.parametrize("dropout", ["hidden", "attention"])
def test_cutting_at_each_event_draws_the_same_numbers_where_attention_has_no_dropout(dropout, tmp_path):
    sizes = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1 if dropout == "attention" else 0.0}
    runs = []
    for mode in ("mask", "slice"):
        callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=4, calibration_examples=8, mode=mode)
        trainer = classifier_trainer(tmp_path / mode, callback, sizes=sizes, learning_rate=1e-3)
        trainer.train()
        runs.append((losses(trainer), [event["heads"] for event in callback.log]))
    # The first heads go after the second step.
    same = len(runs[0][0]) if dropout == "hidden" else 2
    assert runs[0][0][:same] == pytest.approx(runs[1][0][:same], abs=1e-5)
    assert (runs[0][1] == runs[1][1]) or dropout == "attention"


@pytest.mark.parametrize("name", ["bert", "mwp_student"])
def test_a_second_training_keeps_the_heads_of_the_first(name, tmp_path):
    found = []
    for mode in ("mask", "slice"):
        callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2, calibration_examples=8, mode=mode)
        trainer = classifier_trainer(tmp_path / mode, callback, name, sizes=NO_DROPOUT)
        trainer.train()
        first = callback.closed
        trainer.train()
        assert callback.closed == first and sum(map(len, first.values())) == 6
        assert [event["step"] for event in callback.log] == [4, 8]
        config = callback.pruned(trainer.model).config
        assert config.cut_heads == [sorted(first.get(layer, [])) for layer in range(3)]
        found.append((config.heads_per_layer, losses(trainer)))
    assert found[0][0] == found[1][0] and sum(found[0][0]) == 6
    assert found[0][1] == pytest.approx(found[1][1], abs=1e-5)


@pytest.mark.parametrize("mode", ["mask", "slice"])
def test_another_model_begins_with_all_its_heads(mode, tmp_path):
    callback = HeadPruningCallback(max_ratio=0.25, num_pruning_steps=1, importance=RandomImportance(), mode=mode)
    for folder in ("first", "second"):
        trainer = classifier_trainer(tmp_path / folder, callback, max_steps=1)
        trainer.train()
        assert sum(callback.pruned(trainer.model).config.heads_per_layer) == 9


SCHEDULE = {"max_ratio": 0.5, "num_pruning_steps": 4, "calibration_examples": 8}


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """The checkpoint of a training with `SCHEDULE` that ended after five of eight steps."""
    folder = tmp_path_factory.mktemp("interrupted")
    trainer = classifier_trainer(folder, HeadPruningCallback(**SCHEDULE), save_strategy="steps", save_steps=5)
    trainer.add_callback(StopAt(5))
    trainer.train()
    return str(folder / "checkpoint-5")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_ratio": 0.25}, "max_ratio: 0.5 -> 0.25"),
        ({"min_ratio": 0.25}, "min_ratio: 0.0 -> 0.25"),
        ({"power": 2}, "power: 1.0 -> 2"),
        ({"end_fraction": 0.5, "min_heads_per_layer": 0}, "end_fraction: 1.0 -> 0.5, min_heads_per_layer: 1 -> 0"),
        ({"num_pruning_steps": 2}, "num_pruning_steps: 4 -> 2"),
        ({"calibration_examples": 4}, "calibration_examples: 8 -> 4"),
        ({"calibration_batch_size": 4}, "calibration_batch_size: 8 -> 4"),
        ({"mode": "slice"}, "mode: 'mask' -> 'slice'"),
        ({"alpha": 1.0}, r"CombinedImportance\(alpha=0.5\).* -> 'CombinedImportance\(alpha=1.0"),
        ({"importance": RandomImportance(1)}, r"-> 'RandomImportance\(seed=1\)'"),
    ],
)
def test_a_resumed_training_is_pruned_with_the_same_options(options, message, checkpoint, tmp_path):
    other = classifier_trainer(tmp_path, HeadPruningCallback(**(SCHEDULE | options)))
    with pytest.raises(ValueError, match=message):
        other.train(resume_from_checkpoint=checkpoint)


class Recorded(RandomImportance):
    """Random scores that keep the token ids of the batches on which they are measured."""

    needs_batches = True

    def __init__(self):
        super().__init__()
        self.batches = []

    def __repr__(self):
        return "Recorded()"

    def measure(self, model, batches):
        self.batches.append([batch["input_ids"].tolist() for batch in batches])
        return super().measure(model, batches)


class RandomTokens:
    """Collator that replaces tokens at random, with the random numbers of torch, NumPy and Python."""

    def __call__(self, features):
        batch = pad(features)
        batch["input_ids"][:, 0] = torch.randint(5, 40, (len(features),))
        batch["input_ids"][:, 1] = int(np.random.randint(5, 40))
        batch["input_ids"][:, 2] = random.randint(5, 39)
        return batch


@pytest.mark.parametrize("collator", [pad, RandomTokens()])
def test_heads_are_scored_on_the_same_batches_for_each_batch_size_of_the_training(collator, tmp_path):
    scored = []
    for batch_size, accumulation in ((8, 1), (2, 4), (1, 2)):
        importance = Recorded()
        callback = HeadPruningCallback(
            num_pruning_steps=2, calibration_examples=7, calibration_batch_size=3, importance=importance
        )
        fields = {"per_device_train_batch_size": batch_size, "gradient_accumulation_steps": accumulation}
        trainer = classifier_trainer(tmp_path, callback, max_steps=2, **fields)
        trainer.data_collator = collator
        trainer.train()
        # The first batch is scored before the training.
        assert [[len(batch) for batch in batches] for batches in importance.batches] == [[3], [3, 3, 1], [3, 3, 1]]
        scored.append(importance.batches)
    assert scored[0] == scored[1] == scored[2]
    assert scored[0][1] == scored[0][2]


def test_streams_are_scored_on_their_first_examples_in_each_process(tmp_path):
    importance = Recorded()
    callback = HeadPruningCallback(calibration_examples=4, importance=importance)
    rows = tiny_classifier_rows(12)
    stream = IterableDatasetShard(Stream(rows), batch_size=2, num_processes=2, process_index=1)
    loader = SimpleNamespace(dataset=stream, collate_fn=pad)
    model = tiny_encoder("bert", "ForSequenceClassification")
    [batch] = callback._calibration(SimpleNamespace(seed=0), model, loader, 4)
    assert batch["input_ids"].tolist() == pad(rows[:4])["input_ids"].tolist()


@pytest.mark.parametrize(
    ("batch_size", "accumulation", "message"),
    [
        (4, 1, None),
        (2, 2, None),
        (1, 4, None),
        (8, 1, "examples_per_step: 4 -> 8"),
        (4, 2, "examples_per_step: 4 -> 8"),
    ],
)
def test_a_training_resumes_with_the_same_number_of_examples_per_step(
    batch_size, accumulation, message, checkpoint, tmp_path
):
    fields = {"per_device_train_batch_size": batch_size, "gradient_accumulation_steps": accumulation}
    other = classifier_trainer(tmp_path, HeadPruningCallback(**SCHEDULE), **fields)
    with nullcontext() if message is None else pytest.raises(ValueError, match=message):
        other.train(resume_from_checkpoint=checkpoint)


@pytest.mark.parametrize(
    "name", ["bert", "roberta", "distilbert", "electra", "mwp_student", "modernbert", "deberta-v3", "mpnet", "albert"]
)
def test_auto_classes_load_checkpoints_of_models_that_are_sliced(name, tmp_path):
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2, importance=Falling(), mode="slice")
    fields = {"max_steps": 2, "save_strategy": "steps", "save_steps": 1}
    trainer = new_classifier_trainer(tmp_path, callback, name, **fields)
    kind = type(trainer.model)
    config = trainer.model.config
    trainer.train()
    assert type(trainer.model) is kind and trainer.model.config is config
    loaded, info = AutoModelForSequenceClassification.from_pretrained(
        tmp_path / "checkpoint-2", output_loading_info=True
    )
    assert not any(info[keys] for keys in ("missing_keys", "unexpected_keys", "mismatched_keys"))
    assert sum(loaded.config.heads_per_layer) == 6
    batch = tiny_batch(trainer.model)
    assert torch.equal(loaded.eval()(**batch).logits, trainer.model.eval()(**batch).logits)
    # Its code is beside it, so that it loads where hf_mwp is not installed.
    auto_map = json.loads((tmp_path / "checkpoint-2" / "config.json").read_text())["auto_map"]
    assert all((tmp_path / "checkpoint-2" / f"{path.partition('.')[0]}.py").is_file() for path in auto_map.values())


def test_solvers_load_checkpoints_of_models_that_are_sliced(tmp_path):
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
    batch = processor([row["text"] for row in tiny_rows(3)])
    expected = trainer.model.eval().solve(**batch, num_beams=2)
    solved = loaded.solve(**batch, num_beams=2)
    assert torch.equal(solved.sequences, expected.sequences) and torch.equal(solved.scores, expected.scores)


@pytest.mark.parametrize("mode", ["mask", "slice"])
@pytest.mark.parametrize("other_library", [False, True])
def test_undo_leaves_the_attributes_and_hooks_that_the_model_had(mode, other_library, tmp_path):
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=1, mode=mode)
    trainer = classifier_trainer(tmp_path, callback, max_steps=1)
    model = trainer.model
    calls = []

    def save_elsewhere(*args, **kwargs):
        calls.append(args)

    if other_library:
        model.save_pretrained = save_elsewhere
    before = vars(model).get("save_pretrained")
    # Twice, as a second training replaces the method of the first.
    trainer.train()
    trainer.train()
    trainer.save_model()
    assert sum(AutoModelForSequenceClassification.from_pretrained(tmp_path).config.heads_per_layer) == 6
    callback.undo()
    callback.undo()
    assert vars(model).get("save_pretrained") is before and not calls
    assert not model._load_state_dict_pre_hooks
    assert HeadGates.found_on(model) is None
    assert not any(module._forward_pre_hooks for module in model.modules())


def test_the_same_score_under_another_name_resumes(checkpoint, tmp_path):
    same = HeadPruningCallback(**SCHEDULE, importance=CombinedImportance())
    classifier_trainer(tmp_path, same).train(resume_from_checkpoint=checkpoint)
    assert sum(map(len, same.closed.values())) == 6


def losses(trainer):
    return [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]


class Falling(RandomImportance):
    """The later head of a layer matters less."""

    def measure(self, model, batches):
        return [torch.arange(parts.num_heads, 0, -1.0) for parts in layer_parts(model)]


def test_the_last_heads_of_all_layers_are_cut_at_once(tmp_path):
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2, importance=Falling(), mode="slice")
    classifier_trainer(tmp_path, callback, max_steps=2).train()
    assert callback.closed == {0: [2, 3], 1: [2, 3], 2: [2, 3]}


@pytest.mark.parametrize("mode", ["mask", "slice"])
def test_the_best_checkpoint_has_all_heads_pruned_and_brings_its_own_gates(mode, tmp_path):
    callback = HeadPruningCallback(
        max_ratio=0.5, num_pruning_steps=2, end_fraction=0.5, importance=RandomImportance(), mode=mode
    )
    fields = {"save_strategy": "steps", "save_steps": 1, "eval_strategy": "steps", "eval_steps": 1}
    fields |= {"load_best_model_at_end": True, "metric_for_best_model": "loss", "learning_rate": 0.5}
    trainer = classifier_trainer(tmp_path, callback, **fields)
    # Evaluations before all heads are pruned are none without an improvement, and their figures are what they are.
    trainer.add_callback(EarlyStoppingCallback(1))
    assert trainer.evaluate()["eval_loss"] < 2
    trainer.train()
    # Learning at this rate ruins the model: without a rule the first checkpoint were the best.
    best = int(trainer.state.best_model_checkpoint.rsplit("-", 1)[1])
    assert best >= 4
    saved = json.loads((tmp_path / f"checkpoint-{best}" / "trainer_state.json").read_text("utf-8"))
    heads = saved["stateful_callbacks"]["HeadPruningCallback"]["attributes"]["heads"]
    assert sorted(map(tuple, heads)) == sorted((layer, head) for layer, row in callback.closed.items() for head in row)
    assert len(heads) == 6
    config = callback.pruned(trainer.model).config
    assert config.cut_heads == [sorted(callback.closed.get(layer, [])) for layer in range(3)]
    assert config.heads_per_layer == [4 - len(heads) for heads in config.cut_heads]


def test_copies_save_themselves_and_a_second_training_its_checkpoints(tmp_path):
    trainer = classifier_trainer(
        tmp_path, HeadPruningCallback(num_pruning_steps=1), max_steps=2, save_strategy="steps", save_steps=1
    )
    trainer.train()
    copied = copy.deepcopy(trainer.model)
    copied.classifier.bias.data.fill_(7.0)
    # As trainers give it where weights are gathered.
    copied.save_pretrained(tmp_path / "copy", state_dict=copied.state_dict())
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "copy")
    assert again.classifier.bias.tolist() == [7.0] * 3 and sum(again.config.heads_per_layer) == 9
    assert torch.equal(again.base_model.pooler.dense.weight, trainer.model.bert.pooler.dense.weight)
    trainer.train()
    assert json.loads((tmp_path / "checkpoint-1" / "config.json").read_text("utf-8"))["model_type"] == "bert"


def test_pickled_models_save_themselves(tmp_path):
    model = tiny_encoder("mwp_student", "ForSequenceClassification")
    HeadGates(model).close({0: [1], 2: [0, 3]})
    model.save_pretrained = functools.partial(save_pruned, model)
    torch.save(model, tmp_path / "pickle")
    loaded = torch.load(tmp_path / "pickle", weights_only=False)
    loaded.classifier.bias.data.fill_(7.0)
    loaded.save_pretrained(tmp_path / "folder")
    again = AutoModelForSequenceClassification.from_pretrained(tmp_path / "folder")
    assert again.classifier.bias.tolist() == [7.0] * 3 and again.config.heads_per_layer == [3, 4, 2]


def test_solvers_are_pruned_while_they_learn_and_while_they_are_distilled(tmp_path):
    processor = tiny_processor(max_length=32)
    teacher = tiny_solver(processor, layers=4)
    student = tiny_solver(processor)
    for model in (student, teacher):
        model.set_attn_implementation("eager")
    makers = {
        "train": lambda folder, callback: SolverTrainer(
            model=tiny_solver(processor),
            args=arguments(folder, SolverTrainingConfig),
            train_dataset=tiny_rows(),
            processing_class=processor,
            callbacks=[callback],
        ),
        "distil": lambda folder, callback: DistillationTrainer(
            model=student,
            teacher_model=teacher,
            args=arguments(folder, DistillationConfig),
            objectives=[SoftLabels(), AttentionMaps(), AttentionRelations()],
            train_dataset=tiny_rows(),
            processing_class=processor,
            callbacks=[callback],
        ),
    }
    for name, make in makers.items():
        callback = HeadPruningCallback(
            max_ratio=0.5, num_pruning_steps=2, end_fraction=0.5, mode="slice" if name == "distil" else "mask"
        )
        trainer = make(tmp_path / name, callback)
        trainer.train()
        trainer.save_model()
        small = MwpSolver.from_pretrained(tmp_path / name)
        assert sum(small.config.encoder_config.heads_per_layer) == 2
        batch = processor([row["text"] for row in tiny_rows(3)])
        expected = trainer.model.eval().solve(**batch, num_beams=2)
        assert torch.equal(small.solve(**batch, num_beams=2).sequences, expected.sequences)


@pytest.mark.parametrize("reads", ["the same", "other tokens"])
def test_the_batches_of_a_distillation_bring_more_along(reads, tmp_path):
    processor = tiny_processor(max_length=32)
    teacher = tiny_solver(processor, layers=4, seed=1)
    fields = {"cache_teacher_outputs": True}
    keywords = {"processing_class": processor}
    if reads == "other tokens":
        keywords["teacher_processing_class"] = other = other_processor(processor)
        teacher = in_other_tokens(teacher, processor, other)
        fields = {"hidden_loss": None, "embedding_weight": 0.0}
    trainer = DistillationTrainer(
        model=tiny_solver(processor),
        teacher_model=teacher,
        args=arguments(tmp_path, DistillationConfig, **fields),
        train_dataset=tiny_rows(),
        callbacks=[HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2)],
        **keywords,
    )
    trainer.train()
    trainer.save_model()
    assert sum(MwpSolver.from_pretrained(tmp_path).config.encoder_config.heads_per_layer) == 2


class StopAt(TrainerCallback):
    """Ends a training after some steps, as if it had been killed after its checkpoint."""

    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        control.should_training_stop = state.global_step >= self.step


@pytest.mark.parametrize(
    "fields",
    [
        *(
            {"max_ratio": 1.0},
            {"min_ratio": 0.4},
            {"min_ratio": -0.1},
            {"power": 0},
            {"power": -1.0},
            {"end_fraction": 0},
        ),
        *({"num_pruning_steps": 0}, {"calibration_examples": 0}, {"calibration_batch_size": 0}),
        *({"min_heads_per_layer": -1}, {"mode": "now"}),
    ],
)
def test_impossible_schedules(fields):
    with pytest.raises(ValueError, match=next(iter(fields))):
        HeadPruningCallback(**fields)


def mute(model):
    """The model keeps its attention matrices to itself."""
    forward = model.forward
    model.forward = functools.wraps(forward)(lambda **batch: {"loss": forward(**batch).loss})


class Stream(torch.utils.data.IterableDataset):
    """Rows without a length."""

    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)


class Nothing(torch.utils.data.IterableDataset):
    """No examples, as nobody knows before they are asked for."""

    def __iter__(self):
        return iter(())


def break_weights(model):
    model.base_model.encoder.layer[1].attention.self.key.weight.data[0] = torch.nan


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (lambda trainer: setattr(trainer, "train_dataset", Nothing()), {}, "needs examples"),
        (lambda trainer: break_weights(trainer.model), {}, "WeightNorm.*heads of layer 1"),
        (lambda trainer: None, {"max_ratio": 0.9}, r"\b10 heads.*\b9\b.*\b1 "),
        (lambda trainer: mute(trainer.model), {}, r"BertForSequenceClassification.*attention.*`alpha=1\.0`"),
        (
            lambda trainer: setattr(trainer, "model", BertForQuestionAnswering(trainer.model.config)),
            {},
            r"BertForQuestionAnswering.*\(BertModel\)",
        ),
        (
            lambda trainer: setattr(trainer.args, "optim", "adafactor"),
            {"mode": "slice"},
            r'`mode="slice"`.*Adafactor.*`optim`.*`mode="mask"`',
        ),
        (
            lambda trainer: None,
            {"mode": "slice", "min_heads_per_layer": 0},
            r'`mode="slice"`.*`min_heads_per_layer`.* 1',
        ),
    ],
)
def test_what_would_fail_later_fails_before_the_training(change, options, message, tmp_path):
    trainer = classifier_trainer(tmp_path, HeadPruningCallback(**({"num_pruning_steps": 4} | options)))
    change(trainer)
    with pytest.raises(ValueError, match=message):
        trainer.train()
    assert trainer.state.global_step == 0


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"fsdp": "full_shard"}, "FSDP.*DDP"),
        ({"ACCELERATE_USE_FSDP": "true", "world_size": 2}, "FSDP.*DDP"),
        ({"world_size": 2}, r'`mode="slice"`.*DDP.*`mode="mask"`'),
    ],
)
def test_what_splits_or_copies_the_weights(fields, message, monkeypatch):
    for name in [name for name in fields if name.isupper()]:
        monkeypatch.setenv(name, fields[name])
    callback = HeadPruningCallback(mode="slice")
    args = SimpleNamespace(**({"fsdp": None, "world_size": 1} | fields))
    with pytest.raises(ValueError, match=message):
        callback.on_train_begin(
            args, SimpleNamespace(max_steps=20, global_step=0), None, tiny_encoder("bert"), optimizer=None
        )


@pytest.mark.parametrize("mode", ["mask", "slice"])
def test_a_pruned_model_is_pruned_further_by_gradients(mode, tmp_path):
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2, importance=GateGradient(), mode=mode)
    trainer = classifier_trainer(tmp_path, callback, max_steps=2)
    trainer.model = prune_heads(trainer.model, {0: [0, 2], 1: [3]})
    trainer.train()
    # Of the nine heads that were left four go; all are counted as in the first of the models.
    config = callback.pruned(trainer.model).config
    assert sum(config.heads_per_layer) == 5
    assert {0, 2} <= {*config.cut_heads[0]} and 3 in config.cut_heads[1]
    assert [len(cut) + left for cut, left in zip(config.cut_heads, config.heads_per_layer, strict=True)] == [4, 4, 4]
    # Gradients may be far below 1, so scores are not rounded.
    scores = [score for row in callback.log[-1]["scores"] for score in row if score is not None]
    assert scores and all(score != round(score, 6) for score in scores)


def test_the_callback_restores_itself(tmp_path):
    with pytest.raises(ValueError, match="`restore_callback_states_from_checkpoint=False`"):
        classifier_trainer(tmp_path, HeadPruningCallback(), restore_callback_states_from_checkpoint=True)
