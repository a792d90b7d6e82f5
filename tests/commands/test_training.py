"""The commands as functions, without a command line."""

import copy
import json
import shutil

import pytest
import yaml

from hf_mwp.commands.building.solver import SolverArguments
from hf_mwp.commands.building.student import StudentArguments, TeacherArguments
from hf_mwp.commands.evaluation import evaluate
from hf_mwp.commands.options.parsing import read_options
from hf_mwp.commands.options.search_options import EvaluateArguments
from hf_mwp.commands.options.stages import types_of
from hf_mwp.commands.pruning import prune
from hf_mwp.commands.run_options import PruneArguments, RunArguments
from hf_mwp.commands.tasks.data_options import MeasuredTaskArguments, TaskArguments
from hf_mwp.commands.tasks.make_task import make_task
from hf_mwp.commands.training import make_trainer, train
from hf_mwp.compress.trainers import DistillationConfig, RecursiveDistillationConfig
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.solver.training import SolverTrainingConfig
from hf_mwp.utils.option import option_values, options_in
from hf_mwp.utils.provenance import ancestry_of
from hf_mwp.utils.run_folder import RunFolder, last_options, plain


def test_a_solver_is_trained_and_evaluated_in_python(problems, encoder, tmp_path):
    folder = tmp_path / "run"
    small = {"use_cpu": True, "max_steps": 2, "per_device_train_batch_size": 8, "report_to": "none"}
    config = SolverTrainingConfig(str(folder), **small)
    options = (TaskArguments(str(problems)), SolverArguments(encoder=str(encoder)), RunArguments(), config)
    before = copy.deepcopy(option_values(*options))
    result = train(*options)
    # The same options can be used for the next run.
    assert option_values(*options) == before
    assert (result.folder, result.task.name, list(result.evaluations)) == (
        folder,
        problems.name,
        ["validation", "test"],
    )
    assert json.loads((folder / "metrics.json").read_text())["test"] == json.loads(json.dumps(result.metrics["test"]))
    options = yaml.safe_load((folder / "run_config.yaml").read_text())
    assert (options["encoder"], options["dataset"], options["max_steps"]) == (str(encoder), str(problems), 2)

    data = MeasuredTaskArguments(str(problems))
    args = EvaluateArguments(str(folder), device="cpu", output_dir=str(tmp_path / "evaluation"))
    evaluation, figures, path = evaluate(args, data)
    assert figures["reports"]["all problems"] == result.metrics["test"]["reports"]["all problems"]
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(evaluation.predictions) == 9
    assert option_values(data) == option_values(MeasuredTaskArguments(str(problems)))


def test_a_run_does_not_resume_with_other_data(problems, encoder, tmp_path):
    data = shutil.copytree(problems, tmp_path / "data")
    small = {"use_cpu": True, "save_strategy": "steps", "save_steps": 1, "report_to": "none"}

    def train_for(steps, resume=False):
        config = SolverTrainingConfig(str(tmp_path / "run"), max_steps=steps, **small)
        options = (TaskArguments(str(data)), SolverArguments(encoder=str(encoder)), RunArguments(resume=resume))
        return train(*options, config)

    train_for(1)
    lines = (data / "train.jsonl").read_text("utf-8").splitlines(keepends=True)
    (data / "train.jsonl").write_text("".join(lines[4:]), "utf-8")
    with pytest.raises(ValueError, match="checkpoint-1 was trained on other texts"):
        train_for(2, resume=True)
    (data / "train.jsonl").write_text("".join(lines), "utf-8")
    assert train_for(2, resume=True).metrics["train"]


@pytest.fixture
def labels(problems, tmp_path):
    """Options of pseudo-labels, whose labeller was trained on another text."""
    folder = tmp_path / "labels"
    folder.mkdir()
    shutil.copy(problems / "train.jsonl", folder / "labelled.jsonl")
    TrainingTexts.from_texts(["求面积"], ["labeller's"]).save(folder)
    return TaskArguments("labelled.jsonl", data_dir=str(folder))


def test_a_solver_trained_on_pseudo_labels_inherits_the_texts_of_the_labeller(labels, encoder, tmp_path):
    task = make_task(labels)
    config = SolverTrainingConfig(str(tmp_path / "run"), use_cpu=True, report_to="none")
    trainer = make_trainer(task, config, *task.build_model(SolverArguments(encoder=str(encoder))))
    assert ancestry_of(trainer.model).seen("求面积")[0]


PRUNING = {"use_cpu": True, "max_steps": 1, "calibration_examples": 8, "num_pruning_steps": 1, "report_to": "none"}


def test_a_solver_pruned_on_pseudo_labels_inherits_the_texts_of_the_labeller(labels, solver_folder, tmp_path):
    config = RecursiveDistillationConfig(str(tmp_path / "run"), ratios=[0.5], **PRUNING)
    prune(labels, PruneArguments(model=str(solver_folder), test=False), config)
    assert TrainingTexts.load(tmp_path / "run").seen("求面积")[0]


def test_a_solver_is_pruned_in_python(problems, solver_folder, tmp_path):
    config = RecursiveDistillationConfig(str(tmp_path), ratios=[0.5], **PRUNING)
    options = (TaskArguments(str(problems)), PruneArguments(model=str(solver_folder), test=False), config)
    before = copy.deepcopy(option_values(*options))
    assert prune(*options).metrics["models"][1]["ratio"] == 0.5
    assert option_values(*options) == before


@pytest.mark.parametrize(
    ("command", "options", "config"),
    [
        ("train", (SolverArguments(encoder="a"),), SolverTrainingConfig),
        ("train", (SolverArguments(solver="a"),), SolverTrainingConfig),
        ("distill", (TeacherArguments(["a"]), StudentArguments()), DistillationConfig),
        ("distill", (TeacherArguments(["a"]), StudentArguments(student="b")), DistillationConfig),
    ],
)
def test_the_command_reads_the_record_of_a_run_in_python(command, options, config, tmp_path):
    values = option_values(TaskArguments(), *options, RunArguments(), config(str(tmp_path / "run"), use_cpu=True))
    with RunFolder(tmp_path / "run", command, values) as folder:
        folder.begin()
    again = read_options(command, types_of(command), last_options(tmp_path / "run"))
    parsed = {name: getattr(each, name) for each in again for name in options_in(type(each))}
    assert plain(parsed).items() >= plain(values).items()
