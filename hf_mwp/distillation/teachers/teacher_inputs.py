"""Inputs of teachers whose tokenizers differ from the student's."""

from collections.abc import Callable, Mapping
from typing import Any

from ...data.batches.mwp_processor import MwpProcessor
from ...usage_error import UsageError
from .ensemble_teacher import TEACHER_INPUTS


COLUMNS = ("input_ids", "number_positions")


def add_teacher_inputs(dataset: Any, processors: Mapping[int, MwpProcessor]) -> Any:
    """
    Add a column of teacher inputs to encoded rows (a `datasets.Dataset`). For the number of each teacher in
    `processors`, it contains the same problem encoded by the teacher's processor. Raises `UsageError` if the rows have
    no texts.
    """
    if "text" not in dataset.column_names:
        raise UsageError(
            "A teacher with a different tokenizer needs the texts of the training rows, but they have no column "
            "`text`. Keep the columns of `load_mwp_dataset`."
        )

    def add(columns: Mapping[str, list]) -> dict[str, list]:
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        encoded: list[dict[str, dict[str, list]]] = [{} for _ in rows]
        for number, processor in processors.items():
            read = processor.encode(rows)
            for row, values in zip(encoded, zip(*map(read.get, COLUMNS), strict=True), strict=True):
                row[str(number)] = dict(zip(COLUMNS, values, strict=True))
        return {TEACHER_INPUTS: encoded}

    return dataset.map(add, batched=True, desc="Encoding problems for teachers", load_from_cache_file=False)


class TeacherInputsCollator:
    """
    Collator for rows of [`add_teacher_inputs`]. It wraps a collator, and adds the inputs of teachers with different
    tokenizers to its batches.
    """

    def __init__(self, collator: Callable[[list], Mapping[str, Any]], processors: Mapping[int, MwpProcessor]) -> None:
        self.collator, self.processors = collator, dict(processors)

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        rows = [{name: value for name, value in row.items() if name != TEACHER_INPUTS} for row in features]
        batch = dict(self.collator(rows))
        if all(TEACHER_INPUTS in row for row in features):
            batch[TEACHER_INPUTS] = {}
            for number, processor in self.processors.items():
                own = [row[TEACHER_INPUTS][str(number)] for row in features]
                columns = {name: [row[name] for row in own] for name in COLUMNS}
                columns["number_groups"] = [row["number_groups"] for row in rows]
                batch[TEACHER_INPUTS][str(number)] = dict(processor.pad(columns))
        return batch
