"""Distillation with a cache trains as it does without."""

import copy
import shutil
from collections import namedtuple

import pytest
import torch
from datasets import Dataset
from transformers import DataCollatorForLanguageModeling, TrainerCallback

from hf_mwp.compress.distillation import CacheError
from tests.compress.trainers.distilling import (
    distinct_rows,
    first_losses,
    losses_of,
    pad,
    training_logs,
    without_labels,
)
from tests.tiny import tiny_classifier_rows, tiny_masked_lm, tiny_solver, tiny_tokenizer


@pytest.fixture(scope="module")
def encoded_distinct_rows(processor):
    return processor.prepare_dataset(Dataset.from_list(distinct_rows()))


@pytest.fixture
def cached_trainer(solver_trainer, encoded_distinct_rows):
    """Makes a trainer of solvers with a cache, whose rows differ from each other."""

    def make(rows=None, callbacks=(), **fields):
        keywords = {"train_dataset": encoded_distinct_rows if rows is None else rows, "callbacks": list(callbacks)}
        return solver_trainer(keywords=keywords, **({"cache_teacher_outputs": True} | fields))

    return make


def test_a_cached_teacher_teaches_as_a_live_one_and_is_not_run_again(cached_trainer):
    # Batches of mixed lengths: what is read is padded otherwise than what was built.
    fields = {"train_sampling_strategy": "random", "num_train_epochs": 2, "learning_rate": 1e-3}
    live = cached_trainer(cache_teacher_outputs=False, **fields)
    live.train()
    cached = cached_trainer(**fields)
    teacher_calls = []
    cached.teacher_model.register_forward_hook(lambda *args: teacher_calls.append(1))
    cached.train()
    assert len(training_logs(live)) == 6
    for live_entry, cached_entry in zip(training_logs(live), training_logs(cached), strict=True):
        assert losses_of(cached_entry) == pytest.approx(losses_of(live_entry), rel=3e-3, abs=1e-5)
    weights = live.model.state_dict()
    for name, value in cached.model.state_dict().items():
        torch.testing.assert_close(value, weights[name], rtol=1e-2, atol=1e-3)
    num_calls = len(teacher_calls)
    cached.train()
    assert len(teacher_calls) == num_calls


@pytest.mark.slow
def test_accumulation_and_loader_processes_change_nothing(cached_trainer):
    runs = []
    for fields in (
        {"per_device_train_batch_size": 8},
        {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2, "dataloader_num_workers": 2},
    ):
        trainer = cached_trainer(**fields)
        trainer.train()
        runs.append(training_logs(trainer))
    for entry, other_entry in zip(*runs, strict=True):
        assert losses_of(entry) == pytest.approx(losses_of(other_entry), rel=1e-4, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_cached_teacher_in_half_precision_equals_the_live_one(cached_trainer, processor, dtype):
    # The batches of the cache have more numbers than those of the training.
    teacher = tiny_solver(processor, layers=4, hidden_size=24, seed=1).to(dtype)
    fields = {"teacher": teacher, "per_device_train_batch_size": 1, "max_steps": 2}
    live = first_losses(cached_trainer(cache_teacher_outputs=False, **fields))
    assert first_losses(cached_trainer(**fields)) == pytest.approx(live, rel=1e-2)


def test_a_cache_is_found_again_and_extended(cached_trainer, tmp_path):
    progress = []

    class Watch(TrainerCallback):
        def on_teacher_cache(self, args, state, control, done, total, **kwargs):
            progress.append((done, total))

    def fill(rows, **fields):
        progress.clear()
        trainer = cached_trainer(rows, [Watch()], teacher_cache_dir=str(tmp_path / "shared"), **fields)
        trainer.get_train_dataloader()
        return trainer.teacher_source.cache.folder

    folder = fill(distinct_rows(10), per_device_eval_batch_size=4)
    assert progress == [(4, 10), (8, 10), (10, 10)]
    assert fill(distinct_rows(10)[::-1]) == folder
    assert not progress
    assert fill(distinct_rows(16)) == folder
    assert progress == [(6, 6)]
    # Other layers have a cache of their own.
    assert fill(distinct_rows(16), layer_mapping="last") != folder
    assert progress == [(16, 16)]


@pytest.mark.slow
@torch.compiler.set_stance("force_eager")
def test_cached_outputs_of_a_compiled_teacher_are_the_same(cached_trainer):
    losses = []
    for compiled in (False, True):
        losses.append(first_losses(cached_trainer(max_steps=1, torch_compile=compiled)))
    # Trees of compiled models are padded: their cache is another one, and sums have another order.
    assert losses[1] == pytest.approx(losses[0], rel=1e-5)


def test_each_teacher_has_its_own_cache(cached_trainer, processor, tmp_path):
    teacher = tiny_solver(processor, layers=4, hidden_size=24, seed=1)
    first = cached_trainer(teacher=copy.deepcopy(teacher))
    first.get_train_dataloader()
    with torch.no_grad():
        teacher.decoder.operator_scorer.bias[0] += 1
    second = cached_trainer(teacher=teacher)
    second.get_train_dataloader()
    first_folder = first.teacher_source.cache.folder
    second_folder = second.teacher_source.cache.folder
    assert first_folder != second_folder
    assert first_folder.parent == second_folder.parent == tmp_path / "teacher_cache"
    # A folder under the name that belongs to another one.
    shutil.rmtree(second_folder)
    first_folder.rename(second_folder)
    with pytest.raises(CacheError, match="fingerprint.*`teacher_cache_dir"):
        second.train()


@pytest.mark.slow
def test_each_collation_has_its_own_cache(model_trainer):
    folders = []
    for limit in (3, 4, 3):

        def pad_and_cut(rows, limit=limit):
            batch = pad(rows)
            batch["input_ids"] = batch["input_ids"][:, :limit]
            batch["attention_mask"] = batch["attention_mask"][:, :limit]
            return batch

        trainer = model_trainer(cache_teacher_outputs=True)
        trainer.data_collator = pad_and_cut
        trainer.get_train_dataloader()
        folders.append(trainer.teacher_source.cache.folder)
    assert folders[0] == folders[2] != folders[1]


@pytest.mark.slow
def test_random_numbers_continue_as_without_a_cache(cached_trainer, processor):
    results = []
    for cached in (False, True):
        trainer = cached_trainer(student=tiny_solver(processor, dropout=0.3), cache_teacher_outputs=cached)
        trainer.train()
        results.append((torch.rand(1).item(), training_logs(trainer)[-1]["loss"]))
    assert results[0] == pytest.approx(results[1], rel=1e-3)


def test_random_masking_cannot_be_cached(model_trainer):
    rows = without_labels(tiny_classifier_rows())
    models = (tiny_masked_lm(vocab_size=90), tiny_masked_lm(1, vocab_size=90))
    trainer = model_trainer(*models, rows, rows, soft_label_weight=1.0, cache_teacher_outputs=True)
    trainer.data_collator = DataCollatorForLanguageModeling(tiny_tokenizer(), mlm_probability=0.3)
    with pytest.raises(ValueError, match="'input_ids'.*`dataset.map`.*`cache_teacher_outputs=False`"):
        trainer.train()


class RandomRows(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        row = tiny_classifier_rows()[index]
        row["input_ids"] = torch.randint(5, 40, (len(row["input_ids"]),)).tolist()
        return row


class RowsThatChangeLater(RandomRows):
    """Changes its rows after they have been cached and checked."""

    num_reads = 0

    def __getitem__(self, index):
        self.num_reads += 1
        row = tiny_classifier_rows()[index]
        if self.num_reads >= 80:
            row["input_ids"][0] = 5
        return row


def test_random_rows_cannot_be_cached(model_trainer):
    with pytest.raises(ValueError, match="transform.*`dataset.map`.*`cache_teacher_outputs=False`"):
        model_trainer(rows=RandomRows(), cache_teacher_outputs=True).train()
    with pytest.raises(CacheError, match=r"example \d.*`cache_teacher_outputs=False`"):
        model_trainer(rows=RowsThatChangeLater(), cache_teacher_outputs=True, num_train_epochs=10).train()


def test_streams_cannot_be_cached(model_trainer):
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(tiny_classifier_rows())

    fields = {"max_steps": 2, "train_sampling_strategy": "random"}
    trainer = model_trainer(rows=Stream(), cache_teacher_outputs=True, **fields)
    with pytest.raises(ValueError, match="`Stream`.*`cache_teacher_outputs=False`"):
        trainer.train()


@pytest.mark.slow
def test_a_cache_needs_room_on_the_disk(cached_trainer, monkeypatch, tmp_path):
    usage = namedtuple("usage", "total used free")
    trainer = cached_trainer()
    trainer.get_train_dataloader()
    size = trainer.teacher_source.cache.nbytes

    def fill(free, folder):
        monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(0, 0, int(free)))
        cached_trainer(teacher_cache_dir=str(tmp_path / folder)).get_train_dataloader()

    # Estimated from eight rows.
    fill(1.1 * size, "enough")
    with pytest.raises(OSError, match="KB.*KB.*teacher_cache_dir"):
        fill(0.9 * size, "little")
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file/"):
        fill(size, "file")


def test_progress_is_shown_without_callbacks(cached_trainer, capsys, monkeypatch):
    # The commands turn the bars of the libraries off.
    monkeypatch.setattr("transformers.utils.logging._tqdm_active", True)
    cached_trainer().get_train_dataloader()
    assert "Teacher cache: 100%" in capsys.readouterr().err
