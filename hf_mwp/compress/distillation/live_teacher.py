"""Teacher that runs on every batch."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import torch
from torch import nn

from hf_mwp.compress.models.model_kind import input_names, kind_of
from hf_mwp.utils.usage_error import UsageError

from .compatibility import check_frozen_teacher, count_shared_tokens, needs_own_inputs
from .ensemble_teacher import TEACHER_INPUTS, EnsembleTeacher, members_of
from .features import Features, read_features
from .objectives.objective import TeacherRequest


COLUMNS = ("input_ids", "number_positions", "question_positions")


class LiveTeacher:
    """Frozen teacher that runs on every batch, with `teacher_model`, `processing_class` and `teacher_processing_class`
    of [`DistillationTrainer`]. Every teacher source has `model` (possibly wrapped), `prepare` and `outputs`."""

    def __init__(self, teachers: Any, processing: Any, teacher_processing: Any = None) -> None:
        teachers = list(teachers) if isinstance(teachers, list | tuple) else [teachers]
        wrong_types = [type(teacher).__name__ for teacher in teachers if not isinstance(teacher, nn.Module)]
        if wrong_types or not teachers:
            raise TypeError(
                f"`teacher_model` must be a model or a list of models, got `{', '.join(wrong_types) or '[]'}`. Load "
                "the teacher first, and pass it as `teacher_model=...`."
            )
        members = list(chain.from_iterable(map(members_of, teachers)))
        if isinstance(teacher_processing, list | tuple):
            self.processors = list(teacher_processing)
        else:
            self.processors = [teacher_processing] * len(members)
        if len(self.processors) != len(members):
            raise UsageError(
                f"`teacher_processing_class` has {len(self.processors)} processors for {len(members)} teachers. Pass "
                "one for all teachers, or one for each."
            )
        self.own_processors: dict[int, Any] = {}  # of members with different tokens, by number
        for number, processor in enumerate(self.processors):
            if processor is not None and needs_own_inputs(processing, processor):
                self.own_processors[number] = processor
        is_plain = len(members) == 1 and not self.own_processors
        self.model = teachers[0] if is_plain else EnsembleTeacher(members)
        self.request = TeacherRequest(())
        # Number of first tokens that the tokenizers of student and teachers share, or `None` if it is not known.
        self.num_shared_tokens: int | None = None
        for processor in self.processors:
            if processor is not None and not self.own_processors:
                num_shared = count_shared_tokens(processing, processor)
                self.num_shared_tokens = min(num_shared, self.num_shared_tokens or num_shared)

    def check_student(self, student: nn.Module) -> None:
        """Raise `ValueError` if student and teacher share weights, or differ in symbols or tokens."""
        members = members_of(self.model)
        student_kind = kind_of(student)
        for number, (teacher, processor) in enumerate(zip(members, self.processors, strict=True)):
            try:
                check_frozen_teacher(student, teacher)
                student_kind.check_teacher(student, teacher, processor, number in self.own_processors)
            except ValueError as error:
                if len(members) == 1:
                    raise
                raise UsageError(f"Teacher {number + 1} of {len(members)}: {error}") from error

    @property
    def input_names(self) -> set[str]:
        """Names of the arguments that the teacher, or a member of an ensemble, reads."""
        return set().union(*map(input_names, members_of(self.model)))

    def add_columns(self, dataset: Any) -> tuple[Any, list[str]]:
        """Return the dataset with the inputs of members with different tokens, and the names of the added columns."""
        if not self.own_processors:
            return dataset, []
        return add_teacher_inputs(dataset, self.own_processors), [TEACHER_INPUTS]

    def prepare(self, dataset: Any, collator: Callable[[list], Mapping[str, Any]]) -> Callable:
        """Return a collator of batches for [`~LiveTeacher.outputs`] that wraps the given collator."""
        if self.own_processors:
            return TeacherInputsCollator(collator, self.own_processors)
        return collator

    @torch.no_grad()
    def outputs(self, inputs: dict[str, Any]) -> Features:
        """Return the requested outputs of the teacher for a batch, and remove its own inputs from the batch."""
        all_inputs = dict(inputs)
        inputs.pop(TEACHER_INPUTS, None)
        if not self.request.features:
            return Features({})
        teacher = members_of(self.model)[0]
        all_inputs = kind_of(teacher).teacher_inputs(teacher, all_inputs)
        return read_features(self.model.eval(), all_inputs, self.request.options, self.request.features)


def add_teacher_inputs(dataset: Any, processors: Mapping[int, Any]) -> Any:
    """Add a column with the problems as each teacher's processor encodes them. Raises `UsageError` without texts."""
    if "text" not in dataset.column_names:
        raise UsageError("A teacher with another tokenizer needs `text`. Keep the columns of `load_mwp_dataset`.")

    def add(columns: Mapping[str, list]) -> dict[str, list]:
        rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        encoded = [{} for _ in rows]
        for number, processor in processors.items():
            processed = processor.encode(rows)
            names = [name for name in COLUMNS if name in processed]
            for index, row in enumerate(encoded):
                row[str(number)] = {name: processed[name][index] for name in names}
        return {TEACHER_INPUTS: encoded}

    return dataset.map(add, batched=True, desc="Encoding problems for teachers", load_from_cache_file=False)


class TeacherInputsCollator:
    """Collator that adds the inputs of teachers with different tokenizers to the batches of a given collator."""

    def __init__(self, collator: Callable[[list], Mapping[str, Any]], processors: Mapping[int, Any]) -> None:
        self.collator = collator
        self.processors = dict(processors)

    def __call__(self, features: list[dict[str, Any]]) -> dict[str, Any]:
        rows = [dict(row) for row in features]
        teacher_rows = [row.pop(TEACHER_INPUTS, None) for row in rows]
        batch = dict(self.collator(rows))
        if None not in teacher_rows:
            batch[TEACHER_INPUTS] = {}
            for number, processor in self.processors.items():
                columns = defaultdict(list)
                for row, teacher_row in zip(rows, teacher_rows, strict=True):
                    for name, value in teacher_row[str(number)].items():
                        if name == "number_positions":
                            # A teacher that truncates elsewhere reads more or fewer numbers. It scores the student's.
                            value = _with_length(value, len(row["number_positions"]))
                        columns[name].append(value)
                    columns["number_groups"].append(row["number_groups"])
                batch[TEACHER_INPUTS][str(number)] = dict(processor.pad(columns))
        return batch


def _with_length(positions: Sequence[int], num_numbers: int) -> list[int]:
    """Return the positions of the first numbers, -1 for those that are missing."""
    return [*positions[:num_numbers], *[-1] * (num_numbers - len(positions))]
