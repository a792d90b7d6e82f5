"""Packing of several rows into one."""

from bisect import bisect_left, insort
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


# Label of tokens that are not learnt.
IGNORED = -100


def positions_of(lengths: Sequence[int]) -> list[int]:
    """Return the positions of tokens in documents of these lengths: 0, 1, 2, 0, 1 for lengths of 3 and 2."""
    positions: list[int] = []
    for length in lengths:
        positions += range(length)
    return positions


@dataclass(frozen=True)
class RowPacker:
    """Packer of rows into rows of at most `max_length` tokens, by best fit decreasing."""

    max_length: int

    def pack(self, batch: Mapping[str, list[list[int]]]) -> dict[str, list[list[int]]]:
        """Return columns of packed rows. Each row consists of complete rows of the batch."""
        lengths = [len(input_ids) for input_ids in batch["input_ids"]]
        packed: dict[str, list[list[int]]] = {"input_ids": [], "labels": [], "position_ids": []}
        for indices in best_fit_decreasing(lengths, self.max_length):
            input_ids: list[int] = []
            labels: list[int] = []
            for index in indices:
                input_ids += batch["input_ids"][index]
                # The first token of a document is not predicted from the document before it.
                labels += [IGNORED, *batch["labels"][index][1:]]
            packed["input_ids"].append(input_ids)
            packed["labels"].append(labels)
            packed["position_ids"].append(positions_of([lengths[index] for index in indices]))
        return packed


def best_fit_decreasing(lengths: Sequence[int], capacity: int) -> list[list[int]]:
    """Return groups of indices whose lengths add up to at most `capacity`: the longest item first, each into the group
    with the least space that it fits in. No length may exceed `capacity`."""
    groups: list[list[int]] = []
    # Pairs of the space in a group and the group's index, in increasing order.
    spaces: list[tuple[int, int]] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        length = lengths[index]
        space_index = bisect_left(spaces, (length, -1))
        if space_index < len(spaces):
            space, group = spaces.pop(space_index)
        else:
            space = capacity
            group = len(groups)
            groups.append([])
        groups[group].append(index)
        insort(spaces, (space - length, group))
    return groups
