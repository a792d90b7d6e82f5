"""Data collator for encoded problems."""

from typing import Any

from hf_mwp.utils.checked_types import checked

from .mwp_processor import MwpProcessor
from .padding import pad_rows
from .tree_batch import TreeBatch


class MwpCollator:
    """Data collator that pads encoded problems to the longest problem of the batch and creates their target trees.

    Args:
        processor ([`MwpProcessor`]): Processor that encoded the problems.
        trees (`bool`, *optional*, defaults to `True`): Whether to create target trees.

    Attributes:
        columns (`tuple[str, ...]`): Columns that are padded. A derived class may add `"question_positions"`.
        pad_trees (`bool`): Whether levels of trees are padded to a few sizes, for compiled models; see [`TreeBatch`].
    """

    columns: tuple[str, ...] = ("input_ids", "number_positions", "number_groups")
    pad_trees: bool = False

    @checked
    def __init__(self, processor: MwpProcessor, trees: bool = True) -> None:
        self.processor = processor
        self.trees = trees

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """Return `input_ids`, `attention_mask`, `number_positions` and `number_groups`. If all problems have labels,
        the batch also contains `labels` of shape `(B, T)`, padded with -100, and `trees` ([`TreeBatch`])."""
        columns = {}
        for name in self.columns:
            columns[name] = [feature[name] for feature in features]
        batch = dict(self.processor.pad(columns))
        labels = [feature.get("labels") for feature in features]
        if all(labels):
            batch["labels"] = pad_rows(labels, -100)
            if self.trees:
                batch["trees"] = TreeBatch(labels, self.processor.vocabulary.num_operators, self.pad_trees)
        return batch
