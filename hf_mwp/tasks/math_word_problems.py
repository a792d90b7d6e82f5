"""Math word problems."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ..building.solver import SolverArguments, build_solver, load_solver
from ..building.student import StudentArguments, make_student_and_processor
from .accuracy_cells import accuracy_cells
from .data_options import DataArguments
from .task import Task


if TYPE_CHECKING:
    from datasets import Dataset
    from rich.console import Console

    from ..data import LoadReport, MwpProcessor
    from ..models import MwpSolver
    from ..solving.solver_prediction import SolverPrediction
    from ..trainers.base_config import BaseConfig


class MathWordProblems(Task):
    """
    Problems with answers and equations, for a solver.

    Args:
        options ([`DataArguments`]): Which problems are read, and how they are split.

    Raises:
        DataError: on first use of the data, see [`load_mwp_dataset`].
    """

    kind, metric = "solver", "answer_accuracy"
    recorded = ("num_beams", "answer_match")

    def __init__(self, options: DataArguments) -> None:
        self.options, self.parse_number_words = options, options.parse_number_words

    @cached_property
    def _loaded(self) -> tuple[Mapping[str, Dataset], LoadReport]:
        """The parts, and what was read, skipped and noticed."""
        from ..data import load_mwp_dataset

        options = {each.name: getattr(self.options, each.name) for each in fields(DataArguments)}
        limits = {"train": options.pop("max_train_samples")}
        limits["validation"] = limits["test"] = options.pop("max_eval_samples")
        name = options.pop("dataset")
        for kind in ("extra_train", "extra_exclude"):
            options[kind] = tuple(options[kind] or ())

        def choose() -> tuple[Mapping[str, Dataset], LoadReport]:
            splits, report = _once(
                (name, *options.items()), lambda: load_mwp_dataset(name, return_report=True, **options)
            )
            chosen = {}
            for split, rows in splits.items():
                limit = limits.get(split)
                if limit is not None:
                    # Added problems stand at the end; a few problems are to be some of all.
                    added = any(options[each] for each in ("extra_train", "augment_reverse", "augment_distractors"))
                    rows = rows.shuffle(seed=0) if split == "train" and added else rows
                    rows = rows.select(range(min(limit, len(rows))))
                chosen[split] = rows
            return chosen, report

        return _once((name, *options.items(), *limits.items()), choose)

    def read_splits(self) -> Mapping[str, Dataset]:
        return self._loaded[0]

    @property
    def load_report(self) -> LoadReport:
        """What was read, skipped and noticed."""
        return self._loaded[1]

    @property
    def name(self) -> str:
        return self.load_report.dataset

    @property
    def scheme(self) -> str:
        return self.load_report.scheme

    @property
    def language(self) -> str:
        """Language of the problems."""
        return next((rows[0]["language"] for rows in self.splits.values() if len(rows)), "zh")

    def check_split(self, split, processor: MwpProcessor, model) -> None:
        """Raises `UsageError` if a part has no problems, or none in the language of a solver."""
        processor.check_language(self.split_to_read(split)["language"], model, self.options.dataset)

    def check_training(self, processor: MwpProcessor, model) -> None:
        """Raises `UsageError` if the training split has no problems, or none in the language of a solver."""
        processor.check_language(self.train["language"], model, self.options.dataset)

    def build_model(self, options: SolverArguments) -> tuple[MwpSolver, MwpProcessor]:
        return build_solver(self.train, options, self.parse_number_words)

    def load_model(self, name: str) -> tuple[MwpSolver, MwpProcessor]:
        return load_solver(name)

    def make_student(
        self, teacher: MwpSolver, processor: MwpProcessor, options: StudentArguments
    ) -> tuple[MwpSolver, MwpProcessor]:
        return make_student_and_processor(teacher, processor, self.train, options)

    def make_trainer(self, config, model, processor):
        from ..trainers import SolverTrainer

        return SolverTrainer(args=config, **self.trainer_arguments(model, processor))

    def collator(self, model: MwpSolver, processor: MwpProcessor) -> Callable[[list], dict[str, Any]]:
        return model.make_collator(processor)

    def options_of(self, config: BaseConfig, num_beams: int | None = None) -> dict[str, Any]:
        return {
            "num_beams": num_beams or config.num_beams,
            "max_decode_length": config.max_decode_length,
            "answer_match": config.answer_match,
        }

    def search_options(self, args, processor: MwpProcessor) -> dict[str, Any]:
        options = {name: getattr(args, name) for name in ("max_decode_length", "answer_match")}
        options["reranker"], options["num_beams"] = args.load_reranker(processor)
        return super().search_options(args, processor) | options

    def calibration(self, predictions: Sequence[SolverPrediction]) -> dict[str, Any] | None:
        from ..solving.solver_prediction import measure_calibration

        return measure_calibration(predictions)

    def predict(self, model, processor, rows, **options) -> list[SolverPrediction]:
        """As [`solve_problems`]."""
        from ..solving.solve_problems import solve_problems

        return solve_problems(model, processor, rows, **options)

    def report(self, predictions: Sequence[SolverPrediction]) -> dict[str, float]:
        from ..metrics import accuracy_report, context_report

        scores = [prediction.score for prediction in predictions]
        return accuracy_report(scores) | context_report([each.problem.context for each in predictions], scores)

    def kinds(self, predictions: Sequence[SolverPrediction]) -> dict[str, list[int]]:
        kinds: dict[str, list[int]] = {}
        for row, prediction in enumerate(predictions):
            if prediction.problem.kind:
                kinds.setdefault(prediction.problem.kind, []).append(row)
        return dict(sorted(kinds.items()))

    def describe(self, options: Mapping[str, Any]) -> str:
        num_beams = options["num_beams"]
        return f"{'greedy' if num_beams == 1 else f'{num_beams} beams'}, rule {options['answer_match']!r}"

    def cells(self, report: Mapping[str, float]) -> dict[str, str]:
        return accuracy_cells(report)

    def failures(self, predictions: Sequence[SolverPrediction]) -> dict[str, tuple[int, str]]:
        from ..metrics import FAILURE_REASONS, reason_counts

        counts = reason_counts([prediction.score for prediction in predictions])
        return {reason: (count, FAILURE_REASONS[reason]) for reason, count in counts.items()}

    def is_right(self, prediction: SolverPrediction) -> bool:
        return prediction.score.answer_correct

    def to_dict(self, prediction: SolverPrediction, known: Mapping[str, Any]) -> dict[str, Any]:
        return super().to_dict(prediction, known) | prediction.ranking_to_dict()

    def card(self) -> dict[str, Any]:
        tags = ["hf_mwp", "math-word-problems"]
        return {"pipeline_tag": None, "datasets": [self.name], "language": self.language, "tags": tags}

    def tell(self, console: Console) -> None:
        """Prints what was read, skipped and noticed; within [`keep_loaded`] the same one only once."""
        with console.status("Reading the data"):
            said = str(self.load_report)
        _once(("told", said), lambda: console.print(said, markup=False))

    def record(self) -> dict[str, Any]:
        return super().record() | {"report": self.load_report.to_dict()}


_kept: dict[tuple, Any] | None = None


@contextlib.contextmanager
def keep_loaded() -> Iterator[None]:
    """
    Within it, commands that read the same data read its files once, and tell of them once: stages of a recipe run in
    one process, and reading and checking a data set takes as long as training a little on it.
    """
    global _kept
    before, _kept = _kept, {} if _kept is None else _kept
    try:
        yield
    finally:
        _kept = before


def _once(key: tuple, make: Callable[[], Any]) -> Any:
    if _kept is None:
        return make()
    if key not in _kept:
        _kept[key] = make()
    return _kept[key]
