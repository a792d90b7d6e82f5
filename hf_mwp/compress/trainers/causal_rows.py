"""Rows and batches of causal language models: texts, prompts with completions, and conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_at_least_one

from .causal_row_reader import RowReader
from .row_packing import IGNORED, RowPacker


if TYPE_CHECKING:
    from datasets import Dataset, DatasetDict, IterableDataset


# Tokenizers without a limit name a number above this one as their limit.
NO_LIMIT = 10**9
# Rows that are packed together.
PACKED_ROWS = 1000


@checked
def tokenize_causal_rows(
    dataset: Dataset | IterableDataset | DatasetDict | Sequence,
    tokenizer: PreTrainedTokenizerBase,
    max_length: int | None = None,
    completion_only_loss: bool | None = None,
    packing: bool = False,
    max_positions: int | None = None,
) -> Dataset | IterableDataset | DatasetDict:
    """
    Tokenize rows for a causal language model. Each row has one of the forms that TRL's `SFTTrainer` reads:

    - `messages`: a conversation, a list of dictionaries with `role` and `content`, for the tokenizer's chat template.
    - `prompt` and `completion`: two strings, or two lists of messages.
    - `text`: a string.
    - `input_ids`, with `labels` or a `completion_mask` or `assistant_masks` if not all tokens are learnt, and
      `position_ids` or `seq_lengths` if the row consists of several documents: tokenised before.

    If a row has several forms, the first in this list is read, but `input_ids` before all others. Columns `tools`
    and `chat_template_kwargs` are passed to the chat template. The end-of-text token is added to strings.

    Args:
        dataset (`Dataset`, `IterableDataset`, `DatasetDict` or `Sequence[Mapping]`): Rows.
        tokenizer (`PreTrainedTokenizerBase`): Tokenizer of the model.
        max_length (`int`, *optional*): Number of tokens to which longer rows are truncated, or of a packed row.
        completion_only_loss (`bool`, *optional*): Whether only completions, or the assistant's messages, are learnt.
            By default, they are, and texts are learnt completely. Of a conversation, all messages of the assistant
            are learnt if the chat template marks them by `{% generation %}`, otherwise only the last one. (TRL learns
            conversations completely, unless `assistant_only_loss` is set.)
        packing (`bool`, *optional*, defaults to `False`): Whether rows of a thousand neighbours are put together, the
            longest first, to rows of at most `max_length` tokens.
        max_positions (`int`, *optional*): Number of positions of the model, which no row may exceed. Defaults to the
            tokenizer's limit.

    Returns:
        The dataset with the columns `input_ids` and `labels`, which are not shifted and -100 for tokens that are not
        learnt, and, if any rows are packed, `position_ids`, which restart in each document.

    Raises:
        ValueError: A row has none of these forms, has more tokens than positions, or has nothing to learn; or the
            tokenizer has no chat template. The message names the row, counted from 0, and the field.

    References: the dataset formats of TRL (https://huggingface.co/docs/trl/dataset_formats). Fewer Truncations Improve
    Language Modeling (ICML 2024): packing by best fit decreasing, which does not cut rows.

    Example:
        >>> rows = [{"prompt": "2+3=", "completion": "5"}]
        >>> train_dataset = tokenize_causal_rows(rows, tokenizer)
    """
    sizes = {"max_length": max_length, "max_positions": max_positions}
    check_at_least_one(sizes, *sizes)
    if isinstance(dataset, Mapping):
        splits = {}
        for name, split in dataset.items():
            splits[name] = tokenize_causal_rows(
                split, tokenizer, max_length, completion_only_loss, packing, max_positions
            )
        return type(dataset)(splits)
    if max_positions is None and tokenizer.model_max_length < NO_LIMIT:
        max_positions = tokenizer.model_max_length
    limit = max_length or max_positions
    if max_positions is not None and limit > max_positions:
        raise ValueError(f"`max_length` is {max_length}, but the model has only {max_positions} positions.")
    if packing and limit is None:
        raise ValueError("`packing=True` needs the length of packed rows. Pass `max_length`.")
    if isinstance(dataset, Sequence) and not isinstance(dataset, str):
        dataset = _dataset_of_rows(dataset)
    columns = dataset.column_names
    if columns is None:
        # A stream knows its columns only when it is read.
        columns = list(next(iter(dataset)))
    reader = RowReader(tokenizer, completion_only_loss, max_length, max_positions, packing)
    rows = dataset.map(reader.read, with_indices=True, remove_columns=columns)
    if packing:
        packer = RowPacker(limit)
        rows = rows.map(packer.pack, batched=True, batch_size=PACKED_ROWS)
    return rows


def _dataset_of_rows(rows: Sequence[Mapping[str, Any]]) -> Dataset:
    from datasets import Dataset

    if not rows:
        raise ValueError("`dataset` has no rows. Pass at least one.")
    # `from_list` only reads the columns of the first row.
    names: dict[str, None] = {}
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise TypeError(f"Rows must be dictionaries, got {row!r} as row {index}.")
        names.update(dict.fromkeys(row))
    complete_rows = []
    for row in rows:
        complete_rows.append({name: row.get(name) for name in names})
    return Dataset.from_list(complete_rows)


@checked
@dataclass
class CausalCollator:
    """
    Collator of the rows of [`tokenize_causal_rows`]. It pads on the tokenizer's `padding_side`; labels of padding are
    -100. Rows without labels are learnt completely.

    A batch of single documents has an `attention_mask` and, if it is padded on the left, `position_ids` that count
    from the first token. A batch with packed rows has `position_ids` that restart in each document and no
    `attention_mask`: from these positions, Transformers derives masks that separate documents, but only if there is
    neither an attention mask nor a cache, so the batch also has `use_cache=False`. Each token of padding is a document
    of its own; [`~models.model_kind.find_token_mask`] finds them.

    Args:
        tokenizer (`PreTrainedTokenizerBase`): Tokenizer with the padding token and side. Without a padding token, the
            end-of-text token is used.
        padding_free (`bool`, *optional*, defaults to `False`): Whether to join the rows of a batch to one row of
            packed documents. Flash attention needs it for packed rows, because it ignores documents in batches of
            several rows.
        pad_to_multiple_of (`int`, *optional*): Number that divides the length of batches.

    Inputs: rows with `input_ids` and, optionally, `labels`, `attention_mask` and `position_ids` (lists, arrays or
    tensors of the same length).

    Returns: `input_ids` and `labels` `(batch, length)`, and of this shape `attention_mask` or `position_ids`, or both.

    Raises `ValueError` if the tokenizer has neither a padding nor an end-of-text token.
    """

    tokenizer: PreTrainedTokenizerBase
    padding_free: bool = False
    pad_to_multiple_of: int | None = None

    def __post_init__(self):
        check_at_least_one(self, "pad_to_multiple_of")
        self.pad_token_id = self.tokenizer.pad_token_id
        if self.pad_token_id is None:
            self.pad_token_id = self.tokenizer.eos_token_id
        if self.pad_token_id is None:
            raise ValueError("The tokenizer has no padding token. Set `tokenizer.pad_token`.")

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        rows = []
        is_packed = self.padding_free
        for row in features:
            rows.append(_tensors(row))
            is_packed = is_packed or row.get("position_ids") is not None
        if self.padding_free:
            rows = [_joined(rows)]
        batch: dict[str, Any] = {
            "input_ids": self._padded(rows, "input_ids", self.pad_token_id),
            "labels": self._padded(rows, "labels", IGNORED),
        }
        if is_packed:
            batch["position_ids"] = self._padded(rows, "position_ids", 0)
            batch["labels"] = batch["labels"].masked_fill(batch["position_ids"] == 0, IGNORED)
            batch["use_cache"] = False
            return batch
        batch["attention_mask"] = self._padded(rows, "attention_mask", 0)
        if self.tokenizer.padding_side == "left":
            positions = batch["attention_mask"].cumsum(1) - 1
            batch["position_ids"] = positions.clamp(min=0)
        return batch

    def _padded(self, rows: list[dict[str, Tensor]], name: str, value: int) -> Tensor:
        """Return a column of the rows as a tensor `(batch, length)`."""
        length = max(len(row[name]) for row in rows)
        if self.pad_to_multiple_of is not None:
            length += -length % self.pad_to_multiple_of
        padded = torch.full((len(rows), length), value, dtype=torch.long)
        for row, values in zip(padded, rows, strict=True):
            num_values = len(values[name])
            start = 0
            if self.tokenizer.padding_side == "left":
                start = length - num_values
            row[start : start + num_values] = values[name]
        return padded


def _tensors(row: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the complete columns of a row, without padding, as tensors `(tokens,)`."""
    input_ids = torch.as_tensor(row["input_ids"], dtype=torch.long)
    columns = {
        "input_ids": input_ids,
        "labels": input_ids,
        "attention_mask": torch.ones_like(input_ids),
        "position_ids": torch.arange(len(input_ids)),
    }
    for name in columns:
        if row.get(name) is not None:
            columns[name] = torch.as_tensor(row[name], dtype=torch.long)
    is_token = columns["attention_mask"] != 0
    return {name: values[is_token] for name, values in columns.items()}


def _joined(rows: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return one row with the tokens of all rows."""
    joined = {}
    for name in rows[0]:
        values = [row[name] for row in rows]
        joined[name] = torch.cat(values)
    return joined
