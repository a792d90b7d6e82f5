"""Careless values of each parameter of the public names end in an error that a user can read, or in no error."""

import importlib
import inspect
import math
from dataclasses import fields
from typing import Any, get_type_hints

import pytest
import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import PreTrainedConfig, TrainingArguments

from hf_mwp.commands.building.student import StudentArguments
from hf_mwp.commands.evaluate import EvaluateArguments
from hf_mwp.commands.tasks.data_options import TaskArguments
from hf_mwp.compress.models import MwpStudentConfig
from hf_mwp.compress.pruning import RemovedUnits, UnitScores
from hf_mwp.compress.trainers import (
    DistillationConfig,
    RecursiveDistillationConfig,
    Seq2SeqDistillationConfig,
    StarkConfig,
)
from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.problems import JiebaTagger
from hf_mwp.solver.metrics import score_prediction
from hf_mwp.solver.training import PreTrainingConfig, SolverTrainingConfig
from hf_mwp.utils import checked_types
from tests.tiny import (
    tiny_classifier,
    tiny_dataset,
    tiny_problems,
    tiny_processor,
    tiny_rows,
    tiny_solver,
    tiny_tokenizer,
)


PACKAGES = [
    "hf_mwp",
    "hf_mwp.compress.distillation",
    "hf_mwp.compress.distillation.objectives",
    "hf_mwp.compress.losses",
    "hf_mwp.compress.pruning",
    "hf_mwp.runtime",
    "hf_mwp.runtime.problems",
    "hf_mwp.solver.batches",
    "hf_mwp.solver.corpus",
    "hf_mwp.solver.data",
    "hf_mwp.solver.metrics",
]
CARELESS = [None, "", "x", b"x", -1, 0, 1.5, math.nan, True, [], ["x"], (), {}, {"x": 1}, object()]
READABLE = (TypeError, ValueError, OSError, ImportError, NotImplementedError, StrictDataclassError)


def public_callables() -> dict:
    """Functions and classes of the package by name, except errors, configs (see below) and metrics of `evaluate`."""
    found = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            is_class = inspect.isclass(value)
            if not (is_class or inspect.isfunction(value)) or not value.__module__.startswith("hf_mwp"):
                continue
            is_other = is_class and issubclass(value, Exception | PreTrainedConfig | TrainingArguments)
            if not is_other and not value.__module__.endswith("evaluate_metrics"):
                found[f"{value.__module__.removeprefix('hf_mwp.')}.{name}"] = value
    return found


CALLABLES = public_callables()


@pytest.fixture(scope="module")
def usual_values() -> dict:
    """Values of parameters without a default, by their names."""
    processor = tiny_processor()
    solver = tiny_solver(processor)
    problem = tiny_problems(1)[0]
    tree = Expression.from_infix("1+2")
    one_step = {"batch_size": 1, "repeats": 1}
    of_training = {"train_dataset": tiny_dataset(2), "teacher_model": solver, "args": None, "config": solver.config}
    of_sizes = {
        "layers": 1,
        "encoder_layers": 1,
        "decoder_layers": 1,
        "num_student_layers": 2,
        "num_teacher_layers": 4,
    }
    of_pruning = {
        "heads": {0: [0]},
        "neurons": {0: [0]},
        "scores": UnitScores.random(solver),
        "sparsity": 0.3,
        "ratio": 0.3,
        "removed": RemovedUnits.lowest(UnitScores.random(solver), 0.3),
        "batches": [],
    }
    of_metrics = {
        "prediction": tree,
        "target": tree,
        "predictions": [1, 0],
        "labels": [1, 0],
        "references": ["a"],
        "probabilities": [0.5],
        "correct": [True],
        "contexts": ["a"],
        "metrics": ["bleu"],
        "predicted": [["n"]],
        "gold": [["n"]],
        "function": lambda: 1,
        "functions": {"name": lambda: 1},
    }
    of_data = {
        "rows": tiny_rows(2),
        "row": tiny_rows(1)[0],
        "task": "sst2",
        "tags": ["n"],
        "tagger": JiebaTagger(),
        "sequences": [[0, 1]],
        "num_operators": 5,
        "paths_or_names": ["asdiv_a"],
    }
    usual = {
        **{
            "model": solver,
            "student": solver,
            "teacher": solver,
            "encoder": solver.encoder,
            "models": [solver, solver],
        },
        **{"members": [solver, solver], "pretrained": solver.encoder, "distilled": solver, "processor": processor},
        **{"tokenizer": tiny_tokenizer(), "problem": problem, "problems": tiny_problems(2), "text": "1 and 2"},
        **{"texts": ["1 and 2"], "answer": "3", "worked": "2+3=<<2+3=5>>5", "name": "hard", "language": "zh"},
        **{"loss": torch.nn.MSELoss(), "mapping": "uniform", "rank": 2, "num_beams": 2, "repo_id": "user/name"},
        **{"beams": [[(tree, 0.0)]] * 2, "parts": {"train": tiny_problems(2)}, "folder": "nowhere", "sample": []},
        **{"features": {"name": ("linear", 2, 2)}, "dataset": tiny_dataset(2), "token": "1", "message": "fault"},
    }
    return usual | one_step | of_training | of_sizes | of_pruning | of_metrics | of_data


def special_values(name: str) -> dict:
    """Values of parameters whose names mean something else in this function."""
    problem = tiny_problems(1)[0]
    score = score_prediction(problem, problem.expression)
    scored = dict.fromkeys(("accuracy_report", "context_report", "reason_counts"), {"scores": [score]})
    matrix = torch.rand(2, 2)
    special = scored | dict.fromkeys(("choose_heads", "rows_of", "draw_importance"), {"scores": matrix})
    special |= {"scores_of": {"rows": [[1.0, None]]}, "answers_match": {"prediction": 3}}
    special |= {"text_report": {"predictions": ["a"]}, "export_dense": {"model": tiny_classifier()}}
    special |= {"MwpStudentModel": {"config": MwpStudentConfig()}}
    special |= {"compare_costs": {"models": {"name": tiny_classifier()}, "tokens": 2}}
    return special.get(name.rpartition(".")[2], {})


def parameters_of(function) -> list[inspect.Parameter]:
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each for each in inspect.signature(function).parameters.values() if each.kind not in variable]


@pytest.mark.parametrize("name", CALLABLES)
def test_careless_calls_end_in_readable_errors(name, usual_values, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function = CALLABLES[name]
    parameters = parameters_of(function)
    usual = {each.name: usual_values.get(each.name) for each in parameters if each.default is each.empty}
    # Some calls change a model.
    if "model" in usual and name.endswith("lora"):
        usual["model"] = tiny_classifier()
    usual |= special_values(name)
    raw = []
    for parameter in parameters:
        for value in CARELESS:
            try:
                result = function(**{**usual, parameter.name: value})
                if hasattr(result, "__next__"):
                    next(result, None)
            except READABLE:
                pass
            except Exception as error:
                raw.append(f"{parameter.name}={value!r}: {type(error).__name__}: {error}")
    assert not raw, "\n".join(raw)


def _file_of(function) -> str | None:
    return function.__code__.co_filename if hasattr(function, "__code__") else None


def checked_callables() -> dict:
    """Functions and constructors that check the types of their arguments, by name."""
    functions = {name: value.__init__ if inspect.isclass(value) else value for name, value in CALLABLES.items()}
    mechanism = checked_types.__file__
    return {name: function for name, function in functions.items() if _file_of(function) == mechanism}


CHECKED = checked_callables()


@pytest.mark.parametrize("name", CHECKED)
def test_a_value_of_the_wrong_type_is_named(name):
    hints = checked_types._hints_of(CHECKED[name].__wrapped__)
    for parameter in parameters_of(CHECKED[name]):
        hint = hints.get(parameter.name, Any)
        if hint is not Any:
            with pytest.raises(TypeError, match=rf"`{parameter.name}` must be .*, got object"):
                checked_types.check_type(parameter.name, object(), hint)


CONFIGS = [
    DistillationConfig,
    PreTrainingConfig,
    RecursiveDistillationConfig,
    Seq2SeqDistillationConfig,
    SolverTrainingConfig,
    StarkConfig,
]
OPTIONS = [EvaluateArguments, TaskArguments, StudentArguments]


@pytest.mark.parametrize("kind", [*CONFIGS, *OPTIONS])
def test_options_have_the_annotated_types(kind):
    hints = get_type_hints(kind)
    start = {"output_dir": "out", "report_to": "none", "use_cpu": True} if kind in CONFIGS else {}
    for field in fields(kind):
        hint = hints[field.name]
        kinds = checked_types._alternatives(hint)
        wrong = [object()] if kinds <= {bool, int, float, str, type(None)} else []
        if bool in kinds and str not in kinds:
            wrong += ["false", 1]
        if type(None) not in kinds and kinds <= {bool, int, float}:
            wrong.append(None)
        # `None` is the default of some fields of `TrainingArguments` that are annotated without it.
        for value in wrong if field.init else ():
            if value is field.default:
                continue
            with pytest.raises(TypeError, match=f"`{field.name}` must be .*, got"):
                kind(**(start | {field.name: value}))


def test_probability_of_masking_is_a_number():
    with pytest.raises(TypeError, match="`mlm_probability` must be a number, got None"):
        PreTrainingConfig("out", mlm_probability=None)
