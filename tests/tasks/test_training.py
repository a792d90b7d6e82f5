"""The commands as functions, without a command line."""

import json

import yaml

from hf_mwp.building.solver import SolverArguments
from hf_mwp.solving.search_options import EvaluateArguments
from hf_mwp.tasks import evaluate, train
from hf_mwp.tasks.data_options import MeasuredTaskArguments, TaskArguments
from hf_mwp.tasks.run_arguments import RunArguments
from hf_mwp.trainers import SolverTrainingConfig


def test_a_solver_is_trained_and_evaluated_in_python(problems, encoder, tmp_path):
    folder = tmp_path / "run"
    small = {"use_cpu": True, "max_steps": 2, "per_device_train_batch_size": 8, "report_to": "none"}
    config = SolverTrainingConfig(str(folder), **small)
    result = train(TaskArguments(str(problems)), SolverArguments(encoder=str(encoder)), RunArguments(), config)
    assert (result.folder, result.task.name, list(result.evaluations)) == (
        folder,
        problems.name,
        ["validation", "test"],
    )
    assert json.loads((folder / "metrics.json").read_text())["test"] == json.loads(json.dumps(result.metrics["test"]))
    options = yaml.safe_load((folder / "run_config.yaml").read_text())
    assert (options["encoder"], options["dataset"], options["max_steps"]) == (str(encoder), str(problems), 2)

    data = MeasuredTaskArguments(str(problems))
    args = EvaluateArguments(str(folder), device="cpu", predictions=str(tmp_path / "predictions.jsonl"))
    evaluation, figures, path = evaluate(args, data)
    assert figures["reports"]["all problems"] == result.metrics["test"]["reports"]["all problems"]
    assert len(path.read_text(encoding="utf-8").splitlines()) == len(evaluation.predictions) == 9
