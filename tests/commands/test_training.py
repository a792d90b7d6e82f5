"""The commands as functions, without a command line."""

import copy
import shutil

import pytest
import yaml

from hf_mwp.commands.building.solver import SolverArguments
from hf_mwp.commands.building.student import StudentArguments, TeacherArguments
from hf_mwp.commands.evaluate import EvaluateArguments, evaluate
from hf_mwp.commands.options.parsing import read_options
from hf_mwp.commands.options.run_options import RunArguments
from hf_mwp.commands.options.stages import types_of
from hf_mwp.commands.prune import PruneArguments, prune
from hf_mwp.commands.tasks.data_options import MeasuredTaskArguments, TaskArguments
from hf_mwp.commands.train import train
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.solver.training import (
    SolverDistillationConfig,
    SolverRecursiveDistillationConfig,
    SolverTrainingConfig,
)
from hf_mwp.utils.option import option_values, options_in
from hf_mwp.utils.run_folder import RunFolder, last_options, plain
from tests.commands.folders import read_rows


SMALL = {"use_cpu": True, "max_steps": 1, "per_device_train_batch_size": 8, "report_to": "none"}


@pytest.mark.slow
def test_solver_is_trained_and_evaluated_in_python(problems, encoder, tmp_path):
    folder = tmp_path / "run"
    config = SolverTrainingConfig(str(folder), **SMALL)
    options = (TaskArguments(str(problems)), SolverArguments(encoder=str(encoder)), RunArguments(), config)
    before = copy.deepcopy(option_values(*options))
    result = train(*options)
    # The options can be used for the next run.
    assert option_values(*options) == before
    assert (result.folder, result.task.name) == (folder, problems.name)
    assert list(result.evaluations) == ["validation", "test"]
    recorded = yaml.safe_load((folder / "run_config.yaml").read_text())
    assert (recorded["encoder"], recorded["dataset"], recorded["max_steps"]) == (str(encoder), str(problems), 1)

    args = EvaluateArguments(str(folder), device="cpu", output_dir=str(tmp_path / "evaluation"))
    evaluation, metrics, path = evaluate(args, MeasuredTaskArguments(str(problems)))
    assert metrics["reports"]["all problems"] == result.metrics["test"]["reports"]["all problems"]
    assert len(read_rows(path)) == len(evaluation.predictions) == 9


@pytest.mark.slow
def test_run_does_not_resume_with_other_data(problems, encoder, tmp_path):
    data = shutil.copytree(problems, tmp_path / "data")

    def train_for(steps, resume=False):
        fields = SMALL | {"save_strategy": "steps", "save_steps": 1, "max_steps": steps}
        config = SolverTrainingConfig(str(tmp_path / "run"), **fields)
        run_args = RunArguments(resume=resume, test=False)
        return train(TaskArguments(str(data)), SolverArguments(encoder=str(encoder)), run_args, config)

    train_for(1)
    content = (data / "train.jsonl").read_text("utf-8")
    lines = content.splitlines(keepends=True)
    (data / "train.jsonl").write_text("".join(lines[4:]), "utf-8")
    with pytest.raises(ValueError, match="checkpoint-1 was trained on other texts"):
        train_for(2, resume=True)
    (data / "train.jsonl").write_text(content, "utf-8")
    assert train_for(2, resume=True).metrics["train"]


@pytest.fixture
def labels(problems, tmp_path):
    """Options of pseudo-labels, whose labeller was trained on another text."""
    folder = tmp_path / "labels"
    folder.mkdir()
    shutil.copy(problems / "train.jsonl", folder / "labelled.jsonl")
    TrainingTexts.from_texts(["求面积"], ["labeller's"]).save(folder)
    return TaskArguments("labelled.jsonl", data_dir=str(folder))


@pytest.mark.slow
def test_solver_pruned_in_python_inherits_the_texts_of_the_labeller(labels, solver_folder, tmp_path):
    fields = SMALL | {"calibration_examples": 8, "num_pruning_steps": 1}
    config = SolverRecursiveDistillationConfig(str(tmp_path / "run"), ratios=[0.5], **fields)
    options = (labels, PruneArguments(model=str(solver_folder), test=False), config)
    before = copy.deepcopy(option_values(*options))
    assert prune(*options).metrics["models"][1]["ratio"] == 0.5
    assert option_values(*options) == before
    assert TrainingTexts.load(tmp_path / "run").seen("求面积")[0]


@pytest.mark.parametrize(
    ("command", "options", "config"),
    [
        ("train", (SolverArguments(solver="a"),), SolverTrainingConfig),
        ("distill", (TeacherArguments(["a"]), StudentArguments(student="b")), SolverDistillationConfig),
    ],
)
def test_command_reads_the_record_of_a_run_in_python(command, options, config, tmp_path):
    values = option_values(TaskArguments(), *options, RunArguments(), config(str(tmp_path / "run"), use_cpu=True))
    with RunFolder(tmp_path / "run", command, values) as folder:
        folder.begin()
    parsed = {}
    for arguments in read_options(command, types_of(command), last_options(tmp_path / "run")):
        parsed |= {name: getattr(arguments, name) for name in options_in(type(arguments))}
    assert plain(parsed).items() >= plain(values).items()
