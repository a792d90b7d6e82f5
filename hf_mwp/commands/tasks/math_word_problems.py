"""Task of solving math word problems."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any

from hf_mwp.commands.building.solver import build_solver, load_solver
from hf_mwp.commands.building.student import make_student_and_processor
from hf_mwp.solver.data import LoadReport
from hf_mwp.solver.data.loading import load_mwp_dataset
from hf_mwp.solver.metrics.accuracy import accuracy_report, context_report
from hf_mwp.solver.solving.solve_problems import solve_problems
from hf_mwp.solver.solving.solver_prediction import SolverPrediction, measure_calibration
from hf_mwp.solver.training import (
    SolverDistillationConfig,
    SolverRecursiveDistillationConfig,
    SolverStarkConfig,
    SolverTrainer,
    SolverTrainingConfig,
)
from hf_mwp.solver.training.solver_dataset import prepare_training_rows

from .data_options import DataArguments
from .loaded_data import once
from .task import Task, limit_rows


class MathWordProblems(Task):
    """Task of solving math word problems with a solver, which predicts equations."""

    kind = "solver"
    metric = "answer_accuracy"
    recorded = ("num_beams", "answer_match")
    solves = True
    trainer_class = SolverTrainer
    configs = {
        "train": SolverTrainingConfig,
        "distill": SolverDistillationConfig,
        "prune": SolverRecursiveDistillationConfig,
        "stark": SolverStarkConfig,
    }

    def __init__(self, options: DataArguments) -> None:
        self.options = options
        self.source = Path(options.data_dir or "", options.dataset)

    @cached_property
    def _loaded(self) -> tuple[Mapping[str, Any], LoadReport]:
        options = {field.name: getattr(self.options, field.name) for field in fields(DataArguments)}
        name = options.pop("dataset")
        del options["max_train_samples"]
        del options["max_eval_samples"]
        options["extra_train"] = tuple(options["extra_train"] or ())
        options["extra_exclude"] = tuple(options["extra_exclude"] or ())
        key = (name, str(options))
        splits, report = once(key, lambda: load_mwp_dataset(name, return_report=True, **options))
        # Added problems come last. The rows are shuffled so that `max_train_samples` draws from all problems.
        adds_problems = bool(options["extra_train"])
        for option, value in options.items():
            if option.startswith("augment_") and value:
                adds_problems = True
        if adds_problems and self.options.max_train_samples is not None:
            splits = {**splits, "train": splits["train"].shuffle(seed=0)}
        limited = {split: limit_rows(rows, split, self.options) for split, rows in splits.items()}
        return limited, report

    @cached_property
    def splits(self):
        return self._loaded[0]

    @property
    def load_report(self) -> LoadReport:
        return self._loaded[1]

    name = property(attrgetter("load_report.dataset"))
    scheme = property(attrgetter("load_report.scheme"))

    def build_model(self, options):
        return build_solver(self.rows("train"), options, self.options.parse_number_words)

    def load_model(self, name, split="train"):
        solver, processor = load_solver(name)
        processor.check_language(self.rows(split)["language"], name, self.options.dataset)
        return solver, processor

    def make_student(self, teacher, processor, options):
        return make_student_and_processor(teacher, processor, self.rows("train"), options)

    def collator(self, model, processor):
        return model.make_collator(processor)

    def encode(self, rows, processor):
        return prepare_training_rows(rows, processor)

    def details(self, predictions: Sequence[SolverPrediction]) -> dict[str, Any]:
        return {"calibration": measure_calibration(predictions)}

    def predict(self, model, processor, rows, **options) -> list[SolverPrediction]:
        return solve_problems(model, processor, rows, **options)

    def report(self, predictions: Sequence[SolverPrediction]) -> dict[str, float]:
        scores = [prediction.score for prediction in predictions]
        contexts = [prediction.problem.context for prediction in predictions]
        return accuracy_report(scores) | context_report(contexts, scores)

    def card(self) -> dict[str, Any]:
        language = "zh"
        for rows in self.splits.values():
            if len(rows):
                language = rows[0]["language"]
                break
        tags = ["hf_mwp", "math-word-problems"]
        return {"pipeline_tag": None, "datasets": [self.name], "language": language, "tags": tags}
