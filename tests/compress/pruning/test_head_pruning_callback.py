"""The callback that prunes heads during a training: schedule, resuming, calibration, errors, saving."""

import copy
import functools
import json
import random
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from accelerate.data_loader import IterableDatasetShard
from transformers import AutoModelForSequenceClassification, BertForNextSentencePrediction, EarlyStoppingCallback

from hf_mwp.compress.pruning import (
    AttentionEntropy,
    CombinedImportance,
    GateGradient,
    HeadGates,
    HeadPruningCallback,
    RandomImportance,
    prune_heads,
)
from tests.compress.pruning.encoders import tiny_batch, tiny_encoder
from tests.compress.pruning.pruned_trainings import (
    SCHEDULE,
    StopAt,
    assert_code_is_beside,
    assert_same_weights,
    classifier_trainer,
    num_closed,
    trainer_of,
)
from tests.compress.trainers.distilling import pad
from tests.slow_parameters import slow_after
from tests.tiny import tiny_classifier_rows


def test_schedule_by_hand():
    callback = HeadPruningCallback(max_ratio=0.5, min_ratio=0.1, power=2, num_pruning_steps=4, end_fraction=0.5)
    # T is 20 of 40 steps.
    assert callback.event_steps(40) == [0, 5, 10, 15, 20]
    ratios = [callback.ratio_at(step, 40) for step in (0, 10, 20, 30)]
    assert ratios == pytest.approx([0.1, 0.1 + 0.4 * 0.25, 0.5, 0.5])
    assert HeadPruningCallback(num_pruning_steps=3).event_steps(8) == [3, 6, 8]


@pytest.mark.parametrize("end_fraction", [0.1, 0.3, 0.5, 0.75, 1.0])
def test_last_event_reaches_the_ratio(end_fraction):
    callback = HeadPruningCallback(max_ratio=0.5, end_fraction=end_fraction, num_pruning_steps=3)
    for max_steps in range(3, 40):
        last_step = callback.event_steps(max_steps)[-1]
        assert callback.ratio_at(last_step, max_steps) == 0.5


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_ratio", 1.0),
        ("min_ratio", 0.4),
        ("min_ratio", -0.1),
        ("power", 0),
        ("end_fraction", 0),
        ("num_pruning_steps", 0),
        ("calibration_examples", 0),
        ("calibration_batch_size", 0),
        ("min_heads_per_layer", -1),
        ("mode", "now"),
    ],
)
def test_impossible_options_raise(name, value):
    with pytest.raises(ValueError, match=name):
        HeadPruningCallback(**{name: value})


@pytest.mark.parametrize("name", slow_after(1, ["bert", "modernbert"]))
def test_plain_trainer_ends_with_a_smaller_model(name, tmp_path):
    callback = HeadPruningCallback(**SCHEDULE)
    trainer = classifier_trainer(tmp_path, callback, name)
    trainer.train()
    # Twelve heads: 12.5, 25, 37.5, 50 %, rounded down. Closed heads stay closed.
    closed = set()
    numbers = {}
    for event in callback.log:
        heads = set()
        for layer, row in event["heads"].items():
            heads |= {(layer, head) for head in row}
        assert closed <= heads
        closed = heads
        numbers[event["step"]] = len(heads)
    assert numbers == {2: 1, 4: 3, 6: 4, 8: 6}
    trainer.save_model()
    assert_code_is_beside(tmp_path)
    small = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert sum(small.config.heads_per_layer) == 6 and min(small.config.heads_per_layer) >= 1
    assert small.num_parameters() < trainer.model.num_parameters()
    batch = tiny_batch(trainer.model)
    torch.testing.assert_close(small(**batch).logits, trainer.model.eval()(**batch).logits, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_pruning_no_head_leaves_a_training_with_dropout_unchanged(tmp_path):
    callback = HeadPruningCallback(max_ratio=0.0, num_pruning_steps=4, importance=AttentionEntropy())
    trainer = classifier_trainer(tmp_path, callback, "mwp_student", sizes={}, max_steps=4)
    trainer.train()
    plain = classifier_trainer(tmp_path, callback, "mwp_student", sizes={}, max_steps=4)
    plain.remove_callback(HeadPruningCallback)
    plain.train()
    assert_same_weights(trainer.model, plain.model)


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory):
    """The checkpoint of a training with `SCHEDULE` that ended after five of eight steps."""
    folder = tmp_path_factory.mktemp("interrupted")
    callback = HeadPruningCallback(**SCHEDULE)
    trainer = classifier_trainer(folder, callback, sizes={}, save_strategy="steps", save_steps=5)
    trainer.add_callback(StopAt(5))
    trainer.train()
    return str(folder / "checkpoint-5")


@pytest.mark.slow
# `CombinedImportance` is the default; the number of examples per step stays the same.
@pytest.mark.parametrize(
    ("options", "batch_size", "accumulation"),
    slow_after(1, [({"importance": CombinedImportance()}, 4, 1), ({}, 1, 4)]),
)
def test_resumed_training_equals_an_uninterrupted_one(options, batch_size, accumulation, interrupted, tmp_path):
    fields = {"per_device_train_batch_size": batch_size, "gradient_accumulation_steps": accumulation}
    callback = HeadPruningCallback(**SCHEDULE, **options)
    resumed = classifier_trainer(tmp_path, callback, sizes={}, **fields)
    resumed.train(resume_from_checkpoint=interrupted)
    assert num_closed(callback) == 6
    if accumulation == 1:
        uninterrupted = HeadPruningCallback(**SCHEDULE)
        trainer = classifier_trainer(tmp_path, uninterrupted, sizes={})
        trainer.train()
        assert callback.closed == uninterrupted.closed and callback.log == uninterrupted.log
        assert_same_weights(resumed.model, trainer.model)


@pytest.mark.parametrize(
    ("options", "fields", "message"),
    slow_after(
        3,
        [
            ({"max_ratio": 0.25}, {}, "max_ratio: 0.5 -> 0.25"),
            (
                {"end_fraction": 0.5, "min_heads_per_layer": 0},
                {},
                "end_fraction: 1.0 -> 0.5, min_heads_per_layer: 1 -> 0",
            ),
            ({"mode": "slice"}, {}, "mode: 'mask' -> 'slice'"),
            ({"alpha": 1.0}, {}, r"CombinedImportance\(alpha=0.5\).* -> 'CombinedImportance\(alpha=1.0"),
            ({"importance": RandomImportance(1)}, {}, r"-> 'RandomImportance\(seed=1\)'"),
            ({}, {"per_device_train_batch_size": 8}, "examples_per_step: 4 -> 8"),
            ({}, {"gradient_accumulation_steps": 2}, "examples_per_step: 4 -> 8"),
        ],
    ),
)
def test_resuming_with_other_options_raises(options, fields, message, interrupted, tmp_path):
    trainer = classifier_trainer(tmp_path, HeadPruningCallback(**SCHEDULE | options), **fields)
    with pytest.raises(ValueError, match=message):
        trainer.train(resume_from_checkpoint=interrupted)


class Recorded(RandomImportance):
    """Random scores that record the token ids of the batches on which they are measured."""

    needs_batches = True

    def __init__(self):
        super().__init__()
        self.batches = []

    def __repr__(self):
        return "Recorded()"

    def measure(self, model, batches):
        self.batches.append([batch["input_ids"].tolist() for batch in batches])
        return super().measure(model, batches)


def pad_with_random_tokens(features):
    """Collator that replaces tokens at random, with the random numbers of torch, NumPy and Python."""
    batch = pad(features)
    batch["input_ids"][:, 0] = torch.randint(5, 40, (len(features),))
    batch["input_ids"][:, 1] = int(np.random.randint(5, 40))
    batch["input_ids"][:, 2] = random.randint(5, 39)
    return batch


def test_heads_are_scored_on_the_same_batches_for_each_batch_size(tmp_path):
    runs = []
    for batch_size, accumulation in ((8, 1), (2, 4)):
        importance = Recorded()
        callback = HeadPruningCallback(
            num_pruning_steps=2, calibration_examples=7, calibration_batch_size=3, importance=importance
        )
        fields = {"per_device_train_batch_size": batch_size, "gradient_accumulation_steps": accumulation}
        trainer = classifier_trainer(tmp_path, callback, max_steps=2, **fields)
        trainer.data_collator = pad_with_random_tokens
        trainer.train()
        # The first batch is scored before the training.
        sizes = [list(map(len, batches)) for batches in importance.batches]
        assert sizes == [[3], [3, 3, 1], [3, 3, 1]]
        assert importance.batches[1] == importance.batches[2]
        runs.append(importance.batches)
    assert runs[0] == runs[1]


class Stream(torch.utils.data.IterableDataset):
    """Rows without a length."""

    def __init__(self, rows):
        self.rows = rows

    def __iter__(self):
        return iter(self.rows)


def test_streams_are_scored_on_their_first_examples_in_each_process():
    callback = HeadPruningCallback(calibration_examples=4, importance=Recorded())
    rows = tiny_classifier_rows(12)
    stream = IterableDatasetShard(Stream(rows), batch_size=2, num_processes=2, process_index=1)
    loader = SimpleNamespace(dataset=stream, collate_fn=pad)
    model = tiny_encoder("bert", "ForSequenceClassification")
    [batch] = callback._calibration(SimpleNamespace(seed=0), model, loader, 4)
    assert batch["input_ids"].tolist() == pad(rows[:4])["input_ids"].tolist()


def use_an_empty_stream(trainer):
    trainer.train_dataset = Stream([])


def break_weights(trainer):
    trainer.model.base_model.encoder.layer[1].attention.self.key.weight.data[0] = torch.nan


def hide_attention(trainer):
    """The model returns its loss only."""
    forward = trainer.model.forward
    trainer.model.forward = functools.wraps(forward)(lambda **batch: {"loss": forward(**batch).loss})


def predict_sentences(trainer):
    trainer.model = BertForNextSentencePrediction(trainer.model.config)


def use_adafactor(trainer):
    trainer.args.optim = "adafactor"


def change_nothing(trainer):
    pass


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        (use_an_empty_stream, {}, "needs examples"),
        (break_weights, {}, "WeightNorm.*heads of layer 1"),
        (change_nothing, {"max_ratio": 0.9}, r"\b10 heads.*\b9\b.*\b1 "),
        (hide_attention, {}, r"BertForSequenceClassification.*attention.*`alpha=1\.0`"),
        (predict_sentences, {}, r"BertForNextSentencePrediction.*\(BertModel\)"),
        (use_adafactor, {"mode": "slice"}, r'`mode="slice"`.*Adafactor.*`optim`.*`mode="mask"`'),
        (change_nothing, {"mode": "slice", "min_heads_per_layer": 0}, r'`mode="slice"`.*`min_heads_per_layer`.* 1'),
    ],
)
def test_later_failures_raise_before_the_training(change, options, message, tmp_path):
    trainer = classifier_trainer(tmp_path, HeadPruningCallback(**{"num_pruning_steps": 4} | options))
    change(trainer)
    with pytest.raises(ValueError, match=message):
        trainer.train()
    assert trainer.state.global_step == 0


@pytest.mark.parametrize(
    ("fsdp", "accelerate_fsdp", "world_size", "message"),
    [
        ("full_shard", "false", 1, "FSDP.*DDP"),
        (None, "true", 2, "FSDP.*DDP"),
        (None, "false", 2, r'`mode="slice"`.*DDP.*`mode="mask"`'),
    ],
)
def test_split_or_copied_weights_raise(fsdp, accelerate_fsdp, world_size, message, monkeypatch):
    monkeypatch.setenv("ACCELERATE_USE_FSDP", accelerate_fsdp)
    args = SimpleNamespace(fsdp=fsdp, world_size=world_size)
    state = SimpleNamespace(max_steps=20, global_step=0)
    with pytest.raises(ValueError, match=message):
        HeadPruningCallback(mode="slice").on_train_begin(args, state, None, tiny_encoder("bert"), optimizer=None)


def test_restoring_by_the_trainer_raises(tmp_path):
    with pytest.raises(ValueError, match="`restore_callback_states_from_checkpoint=False`"):
        classifier_trainer(tmp_path, HeadPruningCallback(), restore_callback_states_from_checkpoint=True)


@pytest.mark.parametrize(("mode", "is_replaced"), slow_after(1, [("mask", True), ("slice", False)]))
def test_undo_restores_attributes_and_hooks_of_the_model(mode, is_replaced, tmp_path):
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=1, mode=mode)
    trainer = classifier_trainer(tmp_path, callback, max_steps=1)
    model = trainer.model
    calls = []
    if is_replaced:
        # As another library does.
        model.save_pretrained = calls.append
    before = vars(model).get("save_pretrained")
    # A second training replaces the method of the first.
    trainer.train()
    trainer.train()
    trainer.save_model()
    assert sum(AutoModelForSequenceClassification.from_pretrained(tmp_path).config.heads_per_layer) == 6
    callback.undo()
    callback.undo()
    assert vars(model).get("save_pretrained") is before and not calls
    assert not model._load_state_dict_pre_hooks
    assert HeadGates.found_on(model) is None
    for module in model.modules():
        assert not module._forward_pre_hooks


@pytest.mark.parametrize("mode", slow_after(1, ["mask", "slice"]))
def test_best_checkpoint_has_all_heads_pruned_and_its_own_gates(mode, tmp_path):
    callback = HeadPruningCallback(
        max_ratio=0.5, num_pruning_steps=2, end_fraction=0.5, importance=RandomImportance(), mode=mode
    )
    fields = {"save_strategy": "steps", "save_steps": 1, "eval_strategy": "steps", "eval_steps": 1}
    fields |= {"load_best_model_at_end": True, "metric_for_best_model": "loss", "learning_rate": 0.5}
    trainer = classifier_trainer(tmp_path, callback, max_steps=4, **fields)
    # Evaluations before all heads are pruned do not count as failed improvements.
    trainer.add_callback(EarlyStoppingCallback(1))
    assert trainer.evaluate()["eval_loss"] < 2
    trainer.train()
    # This learning rate ruins the model: without the rule the first checkpoint would be the best.
    best_step = int(trainer.state.best_model_checkpoint.rsplit("-", 1)[1])
    assert best_step >= 2
    saved = json.loads((tmp_path / f"checkpoint-{best_step}" / "trainer_state.json").read_text("utf-8"))
    saved_heads = saved["stateful_callbacks"]["HeadPruningCallback"]["attributes"]["heads"]
    closed_heads = []
    for layer, heads in callback.closed.items():
        closed_heads += [[layer, head] for head in heads]
    assert sorted(saved_heads) == sorted(closed_heads) and len(closed_heads) == 6
    config = callback.pruned(trainer.model).config
    assert config.cut_heads == [sorted(callback.closed.get(layer, [])) for layer in range(3)]
    assert config.heads_per_layer == [4 - len(heads) for heads in config.cut_heads]


@pytest.mark.slow
def test_copies_save_themselves_and_a_second_training_its_checkpoints(tmp_path):
    fields = {"max_steps": 2, "save_strategy": "steps", "save_steps": 1}
    trainer = classifier_trainer(tmp_path, HeadPruningCallback(num_pruning_steps=1), **fields)
    trainer.train()
    copied = copy.deepcopy(trainer.model)
    copied.classifier.bias.data.fill_(7.0)
    # As trainers give it where weights are gathered.
    copied.save_pretrained(tmp_path / "copy", state_dict=copied.state_dict())
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path / "copy")
    assert loaded.classifier.bias.tolist() == [7.0] * 3 and sum(loaded.config.heads_per_layer) == 9
    assert torch.equal(loaded.base_model.pooler.dense.weight, trainer.model.bert.pooler.dense.weight)
    trainer.train()
    assert json.loads((tmp_path / "checkpoint-1" / "config.json").read_text("utf-8"))["model_type"] == "bert"


@pytest.mark.parametrize("mode", slow_after(1, ["mask", "slice"]))
def test_pruned_model_is_pruned_further_by_gradients(mode, tmp_path):
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2, importance=GateGradient(), mode=mode)
    model = prune_heads(tiny_encoder("bert", "ForSequenceClassification"), {0: [0, 2], 1: [3]})
    trainer = trainer_of(model, tmp_path, callback, max_steps=2)
    trainer.train()
    # Four of the nine heads are pruned; all are counted as in the first of the models.
    config = callback.pruned(trainer.model).config
    assert sum(config.heads_per_layer) == 5
    assert config.heads_per_layer == [4 - len(heads) for heads in config.cut_heads]
    assert {0, 2} <= {*config.cut_heads[0]} and 3 in config.cut_heads[1]
    # Gradients may be far below 1, so scores are not rounded.
    scores = [score for score in callback.log[-1]["scores"][2] if score is not None]
    assert scores[0] != round(scores[0], 6)
