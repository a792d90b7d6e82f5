"""Trainers of tiny models."""

import pytest

from hf_mwp.compress.trainers import DistillationConfig, DistillationTrainer
from hf_mwp.solver.training import SolverDistillationConfig, SolverTrainer, SolverTrainingConfig
from tests.compress.trainers.distilling import QUIET, pad
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_dataset, tiny_processor, tiny_solver


DEFAULTS = {
    "save_strategy": "no",
    "per_device_train_batch_size": 8,
    "num_train_epochs": 1,
    "logging_steps": 1,
}


@pytest.fixture(scope="session")
def processor():
    return tiny_processor()


@pytest.fixture(scope="session")
def solver_rows(processor):
    """Encoded training and evaluation rows of solvers."""
    return {
        "train_dataset": processor.prepare_dataset(tiny_dataset()),
        "eval_dataset": processor.prepare_dataset(tiny_dataset(12, seed=1)),
    }


@pytest.fixture
def distillation_config(tmp_path):
    def make(**fields):
        config_class = SolverDistillationConfig if "decoder_learning_rate" in fields else DistillationConfig
        return config_class(output_dir=str(tmp_path), **(QUIET | DEFAULTS | fields))

    return make


@pytest.fixture
def solver_trainer(processor, solver_rows, distillation_config):
    """Makes a trainer of a narrow student with a teacher twice as deep."""

    def make(student=None, teacher=None, keywords=None, **fields):
        keywords = {"processing_class": processor, **solver_rows} | (keywords or {})
        if student is None:
            student = tiny_solver(processor)
        if teacher is None:
            teacher = tiny_solver(processor, layers=4, hidden_size=24, seed=1)
        return DistillationTrainer(
            student,
            teacher,
            distillation_config(**fields),
            **keywords,
        )

    return make


@pytest.fixture
def model_trainer(distillation_config):
    """Makes a trainer of models that are no solvers, by default classifiers of two widths."""

    def make(student=None, teacher=None, rows=None, eval_rows=None, keywords=None, **fields):
        if student is None:
            student = tiny_classifier()
        if teacher is None:
            teacher = tiny_classifier(seed=1, hidden_size=24, num_hidden_layers=4)
        return DistillationTrainer(
            student,
            teacher,
            distillation_config(**fields),
            pad,
            train_dataset=tiny_classifier_rows() if rows is None else rows,
            eval_dataset=tiny_classifier_rows(6, seed=1) if eval_rows is None else eval_rows,
            **(keywords or {}),
        )

    return make


@pytest.fixture
def fine_tuning_trainer(processor, solver_rows, tmp_path):
    """Makes a trainer of a solver without a teacher."""

    def make(model=None, rows=None, eval_rows=None, folder="run", **fields):
        return SolverTrainer(
            tiny_solver(processor) if model is None else model,
            SolverTrainingConfig(str(tmp_path / folder), **(QUIET | DEFAULTS | fields)),
            train_dataset=solver_rows["train_dataset"] if rows is None else rows,
            eval_dataset=solver_rows["eval_dataset"] if eval_rows is None else eval_rows,
            processing_class=processor,
        )

    return make
