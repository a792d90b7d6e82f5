"""Distillation with a cache trains as it does without."""

import copy
import io
import shutil
from collections import namedtuple

import pytest
import torch
from rich.console import Console
from transformers import (
    DataCollatorForLanguageModeling,
    T5Config,
    T5ForConditionalGeneration,
    TrainerCallback,
)

from hf_mwp.commands.terminal.progress import RichProgressCallback
from hf_mwp.compress.distillation import CacheError
from hf_mwp.solver.models import MwpSolver, MwpSolverConfig
from hf_mwp.utils import row_store
from tests.compress.trainers.distilling import bart, distinct_rows, pad, training_logs
from tests.tiny import tiny_classifier_rows, tiny_dataset, tiny_masked_lm, tiny_rows, tiny_solver, tiny_tokenizer


PARTS = ("loss", "loss_soft", "loss_hard", "loss_hidden_1", "loss_hidden_2", "loss_embedding", "grad_norm")


def with_bottlenecks(solver, layers, size):
    fields = {"bottleneck_layers": layers, "bottleneck_size": size}
    config = MwpSolverConfig(
        encoder_config=solver.config.encoder_config, decoder_config=solver.config.decoder_config, **fields
    )
    torch.manual_seed(0)
    return MwpSolver(config, encoder=solver.encoder, decoder=solver.decoder)


def masked_rows(count=16):
    """Rows for a masked language model, masked once and for all."""
    rows = tiny_classifier_rows(count)
    for row in rows:
        row["labels"] = [token if place % 3 == 0 else -100 for place, token in enumerate(row["input_ids"])]
        row["input_ids"] = [4 if place % 3 == 0 else token for place, token in enumerate(row["input_ids"])]
    return rows


def t5(width, seed):
    torch.manual_seed(seed)
    sizes = {"d_model": width, "d_kv": 8, "num_heads": 2, "d_ff": 24, "num_layers": 2, "vocab_size": 40}
    return T5ForConditionalGeneration(
        T5Config(**sizes, num_decoder_layers=1, dropout_rate=0.0, pad_token_id=0, decoder_start_token_id=0)
    )


def seq2seq_rows():
    return [{**row, "labels": row["input_ids"][: 2 + number % 3]} for number, row in enumerate(tiny_classifier_rows())]


def pairs(kind, solvers, others, processor):
    """Makes a trainer of some kind of models, anew with each call."""
    if kind == "solvers":
        return lambda **fields: solvers(keywords={"train_dataset": distinct_rows()}, **fields)
    if kind == "solvers in random order":
        # Batches of mixed lengths: what is read is padded otherwise than what was built.
        return lambda **fields: solvers(
            keywords={"train_dataset": distinct_rows()}, train_sampling_strategy="random", **fields
        )
    if kind in ("bottlenecks", "bottlenecks not used"):
        teacher = tiny_solver(processor, layers=4, hidden_size=24, seed=1)
        return lambda **fields: solvers(
            teacher=with_bottlenecks(copy.deepcopy(teacher), [2, 4], 16),
            keywords={"train_dataset": distinct_rows()},
            use_bottlenecks=kind == "bottlenecks",
            **fields,
        )
    if kind == "classifiers":
        return others
    if kind == "masked language models":
        teacher = {"hidden_size": 24, "num_hidden_layers": 4}
        rows = masked_rows()
        return lambda **fields: others(tiny_masked_lm(), tiny_masked_lm(1, **teacher), rows, rows, **fields)
    make = {"BART": bart, "T5": t5}[kind]
    rows = seq2seq_rows()
    return lambda **fields: others(make(16, 0), make(24, 1), rows, rows, **fields)


@pytest.mark.parametrize(
    "kind",
    [
        "solvers",
        "solvers in random order",
        "bottlenecks",
        "bottlenecks not used",
        "classifiers",
        "masked language models",
        "BART",
        "T5",
    ],
)
def test_training_is_the_same_up_to_fp16(kind, solvers, others, processor):
    make = pairs(kind, solvers, others, processor)
    trainers = [make(num_train_epochs=2, cache_teacher_outputs=cache, learning_rate=1e-3) for cache in (False, True)]
    asked = []
    trainers[1].teacher_model.register_forward_hook(lambda *args: asked.append(1))
    for trainer in trainers:
        trainer.train()
    ours, theirs = (
        [{name: entry[name] for name in PARTS if name in entry} for entry in training_logs(trainer)]
        for trainer in trainers
    )
    assert len(ours) in (4, 6)
    assert "loss_soft" in ours[0] and "loss_hidden_2" in ours[0] and "loss_embedding" in ours[0]
    for a, b in zip(ours, theirs, strict=True):
        assert a == pytest.approx(b, rel=3e-3, abs=1e-5)
    weights = trainers[0].model.state_dict()
    for name, value in trainers[1].model.state_dict().items():
        if not name.endswith("key.bias"):  # its gradient is zero but for rounding, which Adam enlarges
            torch.testing.assert_close(value, weights[name], rtol=1e-2, atol=1e-3)
    # Questions before the build, and one per batch of it: not one in an epoch.
    before = len(asked)
    trainers[1].train()
    assert len(asked) == before


def test_only_what_is_compared_is_kept(solvers, processor):
    trainer = solvers(cache_teacher_outputs=True, layer_mapping="2:4", embedding_weight=0.0, max_steps=1)
    trainer.train()
    layout = trainer.teacher_source.cache.layout
    assert dict(layout.states) == {"hidden_4": 24} and layout.logits == "nodes"
    trainer = solvers(
        cache_teacher_outputs=True, hidden_loss=None, embedding_weight=0.0, keywords={"train_dataset": tiny_dataset()}
    )
    trainer.train()
    assert not trainer.teacher_source.cache.layout.states
    trainer = solvers(cache_teacher_outputs=True, soft_label_weight=0.0, max_steps=1)
    trainer.train()
    assert trainer.teacher_source.cache.layout.logits is None
    teacher = with_bottlenecks(tiny_solver(processor, layers=4, hidden_size=24, seed=1), [2, 4], 16)
    trainer = solvers(teacher=teacher, cache_teacher_outputs=True, max_steps=1)
    trainer.train()
    assert dict(trainer.teacher_source.cache.layout.states) == {
        "bottleneck_0": 16,
        "bottleneck_1": 16,
        "hidden_0": 24,
    }


def test_accumulation_and_loader_processes_change_nothing(solvers):
    runs = []
    for fields in (
        {"per_device_train_batch_size": 8},
        {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "dataloader_num_workers": 2},
    ):
        trainer = solvers(
            cache_teacher_outputs=True, num_train_epochs=2, keywords={"train_dataset": distinct_rows()}, **fields
        )
        trainer.train()
        runs.append(training_logs(trainer))
    for a, b in zip(*runs, strict=True):
        assert {n: a[n] for n in PARTS} == pytest.approx({n: b[n] for n in PARTS}, rel=1e-4, abs=1e-6)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_teacher_in_half_precision(solvers, processor, dtype):
    # The batches of the cache have more numbers than those of the training.
    teacher = tiny_solver(processor, layers=4, hidden_size=24, seed=1).to(dtype)
    runs = []
    for cached in (False, True):
        trainer = solvers(teacher=teacher, cache_teacher_outputs=cached, per_device_train_batch_size=1, max_steps=3)
        trainer.train()
        runs.append(training_logs(trainer))
    for live, stored in zip(*runs, strict=True):
        assert {n: live[n] for n in PARTS} == pytest.approx({n: stored[n] for n in PARTS}, rel=1e-2)


def test_evaluation_has_no_part_in_it(solvers):
    trainer = solvers(cache_teacher_outputs=True, eval_strategy="epoch", max_steps=2)
    collator = trainer.data_collator
    trainer.train()
    assert trainer.data_collator is collator
    assert trainer.evaluate()["eval_num_problems"] == 12


def test_a_cache_is_found_again_and_extended(solvers, tmp_path):
    fields = {"cache_teacher_outputs": True, "teacher_cache_dir": str(tmp_path / "shared"), "max_steps": 1}
    progress = []

    class Watch(TrainerCallback):
        def on_teacher_cache(self, args, state, control, done, total, **kwargs):
            progress.append((done, total))

    def train(rows, **changes):
        progress.clear()
        keywords = {"train_dataset": rows, "callbacks": [Watch()]}
        trainer = solvers(keywords=keywords, **(fields | changes))
        trainer.train()
        return trainer.teacher_source.cache.folder

    first = train(distinct_rows(10), per_device_eval_batch_size=4)
    assert progress == [(4, 10), (8, 10), (10, 10)]
    assert train(distinct_rows(10)[::-1]) == first and not progress
    assert train(distinct_rows(16)) == first and progress == [(6, 6)]
    # Not those of other layers.
    assert train(distinct_rows(16), layer_mapping="last") != first and progress == [(16, 16)]


@torch.compiler.set_stance("force_eager")
def test_a_compiled_teacher_has_the_same_cache(solvers, tmp_path):
    losses = []
    for compiled in (False, True):
        trainer = solvers(max_steps=2, cache_teacher_outputs=True, torch_compile=compiled)
        trainer.train()
        losses.append([logs["loss"] for logs in training_logs(trainer)])
    assert losses[0] == losses[1]
    assert len([*(tmp_path / "teacher_cache").iterdir()]) == 1


def test_another_teacher_has_another_cache(solvers, processor, tmp_path):
    fields = {"cache_teacher_outputs": True, "max_steps": 1}
    teacher = tiny_solver(processor, layers=4, hidden_size=24, seed=1)
    folders = set()
    for _ in range(2):
        trainer = solvers(teacher=copy.deepcopy(teacher), **fields)
        trainer.train()
        folders.add(trainer.teacher_source.cache.folder)
        assert folders == {trainer.teacher_source.cache.folder} or len(folders) == 2
        with torch.no_grad():
            teacher.decoder.operator_scorer.bias[0] += 1
    assert len(folders) == 2 and all(folder.parent == tmp_path / "teacher_cache" for folder in folders)
    # A folder under the name that belongs to another one.
    (tmp_path / "teacher_cache").rename(tmp_path / "mine")
    (tmp_path / "teacher_cache").mkdir()
    last = trainer.teacher_source.cache.folder.name
    other = next(folder.name for folder in folders if folder.name != last)
    (tmp_path / "mine" / other).rename(tmp_path / "teacher_cache" / last)
    with pytest.raises(CacheError, match="fingerprint.*`teacher_cache_dir"):
        trainer.train()


def test_another_collation_has_another_cache(others):
    folders = set()
    for limit in (3, 4, 3):
        trainer = others(cache_teacher_outputs=True, max_steps=1)
        trainer.data_collator = lambda rows, limit=limit: {
            name: value if value.dim() == 1 else value[:, :limit] for name, value in pad(rows).items()
        }
        trainer.train()
        folders.add(trainer.teacher_source.cache.folder)
    assert len(folders) == 2


def test_random_numbers_go_on_as_without(solvers, processor):
    after = []
    for cache in (False, True):
        student = tiny_solver(processor, dropout=0.3)
        trainer = solvers(student, cache_teacher_outputs=cache, num_train_epochs=1)
        trainer.train()
        after.append((torch.rand(1).item(), training_logs(trainer)[-1]["loss"]))
    assert after[0] == pytest.approx(after[1], rel=1e-3)


def test_random_masking(others):
    rows = [{name: row[name] for name in ("input_ids", "attention_mask")} for row in tiny_classifier_rows()]
    models = tiny_masked_lm(vocab_size=90), tiny_masked_lm(1, vocab_size=90)
    collator = DataCollatorForLanguageModeling(tiny_tokenizer(), mlm_probability=0.3)
    trainer = others(*models, rows, rows, max_steps=1, soft_label_weight=1.0, cache_teacher_outputs=True)
    trainer.data_collator = collator
    with pytest.raises(ValueError, match="'input_ids'.*`dataset.map`.*`cache_teacher_outputs=False`"):
        trainer.train()


def test_random_rows(others):
    class Noisy(torch.utils.data.Dataset):
        def __len__(self):
            return 16

        def __getitem__(self, index):
            row = tiny_classifier_rows()[index]
            return {**row, "input_ids": [int(torch.randint(5, 40, ())) for _ in row["input_ids"]]}

    with pytest.raises(ValueError, match="transform.*`dataset.map`.*`cache_teacher_outputs=False`"):
        others(rows=Noisy(), cache_teacher_outputs=True).train()

    class Shifting(Noisy):
        """Changes later, when nobody asks any more."""

        reads = 0

        def __getitem__(self, index):
            self.reads += 1
            row = tiny_classifier_rows()[index]
            return row if self.reads < 80 else {**row, "input_ids": [5] + row["input_ids"][1:]}

    with pytest.raises(CacheError, match=r"example \d.*`cache_teacher_outputs=False`"):
        others(rows=Shifting(), cache_teacher_outputs=True, num_train_epochs=10).train()


def test_streams(others):
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(tiny_classifier_rows())

    trainer = others(rows=Stream(), cache_teacher_outputs=True, max_steps=2, train_sampling_strategy="random")
    with pytest.raises(ValueError, match="`Stream`.*`cache_teacher_outputs=False`"):
        trainer.train()


def test_attention_matrices(solvers, processor):
    models = []
    for model in (tiny_solver(processor), tiny_solver(processor, layers=4, seed=1)):
        model.encoder.set_attn_implementation("eager")
        models.append(model)
    with pytest.raises(ValueError, match="attention.*`cache_teacher_outputs=False`"):
        solvers(*models, hidden_loss="attention", cache_teacher_outputs=True)


def test_no_room(solvers, monkeypatch, tmp_path):
    usage = namedtuple("usage", "total used free")
    data = {"train_dataset": distinct_rows()}
    trainer = solvers(cache_teacher_outputs=True, max_steps=1, keywords=data)
    trainer.train()
    size = trainer.teacher_source.cache.nbytes

    def train(free, folder):
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, int(free)))
        fields = {"cache_teacher_outputs": True, "max_steps": 1, "teacher_cache_dir": str(tmp_path / folder)}
        solvers(**fields, keywords=data).train()

    # Estimated from eight rows.
    train(1.1 * size, "enough")
    with pytest.raises(OSError, match="KB.*KB.*teacher_cache_dir"):
        train(0.9 * size, "little")
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file/"):
        train(size, "file")


@pytest.mark.parametrize("terminal", [False, True])
def test_the_command_line_shows_progress(solvers, terminal, monkeypatch):
    monkeypatch.setattr(row_store, "FILE_BYTES", 1)
    out = io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=100, highlight=False)
    trainer = solvers(cache_teacher_outputs=True, max_steps=1, keywords={"train_dataset": distinct_rows()})
    progress = RichProgressCallback.attach(trainer, console, "student")
    trainer.train()
    progress.close()
    # Without a terminal, what takes less than a minute prints nothing.
    assert ("teacher cache: 24 of 24" in out.getvalue()) == terminal


def test_progress_is_shown_without_callbacks(solvers, capsys, monkeypatch):
    # The commands turn the bars of the libraries off.
    monkeypatch.setattr("transformers.utils.logging._tqdm_active", True)
    solvers(cache_teacher_outputs=True, max_steps=1, keywords={"train_dataset": tiny_rows()}).train()
    assert "Teacher cache: 100%" in capsys.readouterr().err
