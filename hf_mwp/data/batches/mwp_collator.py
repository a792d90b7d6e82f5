"""Batches of encoded problems."""

from typing import Any

from .mwp_processor import MwpProcessor, pad_rows
from .tree_batch import TreeBatch


class MwpCollator:
    """Pads encoded problems to the longest of the batch and lays out their target trees.

    Args:
        processor ([`MwpProcessor`]): Its padding token and its symbols.
        trees (`bool`, *optional*, defaults to `True`): Whether the decoder reads target trees.

    Attributes:
        columns (`tuple[str, ...]`): Columns that are padded; a derived class may have `"question_positions"` too.
    """

    columns: tuple[str, ...] = ("input_ids", "number_positions", "number_groups")

    def __init__(self, processor: MwpProcessor, trees: bool = True) -> None:
        self.processor, self.trees = processor, trees

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        """
        Return `input_ids`, `attention_mask`, `number_positions`, `number_groups` and, if all problems have them,
        `labels` (B, T; -100 where padded) and `trees` ([`TreeBatch`]).
        """
        batch = dict(self.processor.pad({name: [feature[name] for feature in features] for name in self.columns}))
        labels = [feature.get("labels") for feature in features]
        if all(labels):
            batch["labels"] = pad_rows(labels, -100)
            if self.trees:
                batch["trees"] = TreeBatch(labels, self.processor.vocabulary.num_operators)
        return batch
