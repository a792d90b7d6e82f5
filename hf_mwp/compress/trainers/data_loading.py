"""Data loaders of trainers: samplers, collators and the preparation of evaluation rows."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from torch.utils.data import RandomSampler
from transformers.trainer_utils import has_length

from .length_grouped_sampler import LengthGroupedSampler


class DataLoading:
    """Mixin for trainers with batches of similar lengths that a resumed training repeats, and with separate collators
    for training and evaluation. `rules` prepares the evaluation rows."""

    @contextmanager
    def _collating(self, collator: Any, training: bool = False) -> Iterator[None]:
        """Create data loaders with a different collator inside the context, which keep all rows except in training."""
        args = self.args
        usual_collator = self.data_collator
        drop_last = args.dataloader_drop_last
        strategy = args.train_sampling_strategy
        self.data_collator = collator
        args.dataloader_drop_last = training and drop_last
        if not training and not self._numbers_rows:
            # `Trainer` would group evaluation rows by length too, and `predict` would return them in that order.
            args.train_sampling_strategy = "sequential"
        try:
            yield
        finally:
            self.data_collator = usual_collator
            args.dataloader_drop_last = drop_last
            args.train_sampling_strategy = strategy

    def _get_train_sampler(self, train_dataset=None):
        dataset = train_dataset
        if dataset is None:
            dataset = self.train_dataset
        if self.args.train_sampling_strategy != "group_by_length" or not has_length(dataset):
            return super()._get_train_sampler(train_dataset)
        lengths = self._lengths(dataset)
        if lengths is None:
            return RandomSampler(dataset)
        args = self.args
        size = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
        seed = args.data_seed
        if seed is None:
            seed = args.seed
        return LengthGroupedSampler(lengths, size, seed, first_epoch=lambda: int(self.state.epoch or 0))

    def get_eval_dataloader(self, eval_dataset=None):
        """Return the loader of the evaluation rows, which may be raw or encoded."""
        if eval_dataset is None:
            self._evaluated = self.eval_dataset
        elif isinstance(eval_dataset, str):
            self._evaluated = self.eval_dataset[eval_dataset]
        else:
            # With persistent workers, `Trainer` would keep the loader of the first rows for all others.
            return self.get_test_dataloader(eval_dataset)
        with self._collating(self.evaluation_collator):
            return super().get_eval_dataloader(eval_dataset)

    def get_test_dataloader(self, test_dataset):
        """Return the loader of test rows, which may be raw or encoded."""
        self._evaluated = self._prepare_evaluation(test_dataset)
        with self._collating(self.evaluation_collator):
            return super().get_test_dataloader(self._evaluated)

    @property
    def evaluation_collator(self) -> Any:
        """Collator of evaluation batches; `data_collator` is used for training batches."""
        return self.rules.evaluation_collator(self.data_collator)

    @property
    def _numbers_rows(self) -> bool:
        """`True` if evaluation rows are numbered and can be evaluated in any order."""
        return self.rules.numbers_rows

    def _prepare_evaluation(self, rows: Any) -> Any:
        return self.rules.evaluation_rows(rows)

    def _lengths(self, dataset: Any) -> Sequence[int] | None:
        """Return the length of each example, or `None` if it is not known."""
        column = self.args.length_column_name
        if column in (getattr(dataset, "column_names", None) or ()):
            return dataset[column]
        if self._length(dataset[0]) is None:
            return None
        # A dataset that has only `__getitem__` may accept any index.
        return [self._length(row) for _, row in zip(range(len(dataset)), dataset, strict=False)]

    def _length(self, row: Any) -> int | None:
        """Return the length of an example, or `None` if it is no sequence (such as an image)."""
        name = getattr(self.processing_class, "model_input_names", ["input_ids"])[0]
        values = row.get(name) if isinstance(row, Mapping) else None
        return self.rules.row_length(values) if hasattr(values, "__len__") else None
