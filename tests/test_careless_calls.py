"""Careless values of each parameter of the public names end in an error that a user can read, or in no error."""

import importlib
import inspect
import math
from dataclasses import fields
from typing import get_type_hints

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
    CausalLMDistillationConfig,
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
from tests.slow_parameters import slow_except
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
# A call takes seconds, because it measures students of many sizes.
MEASURING = {"choose_student_shape"}
READABLE = (TypeError, ValueError, OSError, ImportError, NotImplementedError, StrictDataclassError)


def public_callables() -> dict:
    """Functions and classes of the package by name, except errors, configs (see below) and metrics of `evaluate`."""
    callables = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            value = getattr(module, name)
            is_class = inspect.isclass(value)
            if name in MEASURING or not (is_class or inspect.isfunction(value)):
                continue
            if not value.__module__.startswith("hf_mwp"):
                continue
            is_other = is_class and issubclass(value, Exception | PreTrainedConfig | TrainingArguments)
            if not is_other and not value.__module__.endswith("evaluate_metrics"):
                callables[f"{value.__module__.removeprefix('hf_mwp.')}.{name}"] = value
    return callables


CALLABLES = public_callables()
SLOW_CALLABLES = {
    "compress.pruning.score_drawing.draw_importance",
    "solver.corpus.tagged_corpus.tag_corpus",
    "solver.solving.fit_reranker.fit_reranker",
}


@pytest.fixture(scope="module")
def usual_values() -> dict:
    """Values of parameters without a default, by their names."""
    processor = tiny_processor()
    solver = tiny_solver(processor)
    problem = tiny_problems(1)[0]
    tree = Expression.from_infix("1+2")
    training = {"train_dataset": tiny_dataset(2), "teacher_model": solver, "args": None, "config": solver.config}
    sizes = {"layers": 1, "encoder_layers": 1, "decoder_layers": 1, "num_student_layers": 2, "num_teacher_layers": 4}
    unit_scores = UnitScores.random(solver)
    pruning = {
        "heads": {0: [0]},
        "neurons": {0: [0]},
        "scores": unit_scores,
        "sparsity": 0.3,
        "ratio": 0.3,
        "removed": RemovedUnits.lowest(unit_scores, 0.3),
        "batches": [],
    }
    metrics = {
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
    data = {
        "rows": tiny_rows(2),
        "row": tiny_rows(1)[0],
        "task": "sst2",
        "tags": ["n"],
        "tagger": JiebaTagger(),
        "sequences": [[0, 1]],
        "num_operators": 5,
        "paths_or_names": ["asdiv_a"],
        "dataset": tiny_dataset(2),
        "folder": "nowhere",
        "problem": problem,
        "problems": tiny_problems(2),
        "text": "1 and 2",
        "texts": ["1 and 2"],
        "answer": "3",
        "worked": "2+3=<<2+3=5>>5",
        "language": "zh",
        "sample": [],
        "parts": {"train": tiny_problems(2)},
    }
    models = {
        **dict.fromkeys(("model", "student", "teacher", "distilled"), solver),
        **dict.fromkeys(("models", "members"), [solver, solver]),
        **dict.fromkeys(("encoder", "pretrained"), solver.encoder),
        "processor": processor,
        "tokenizer": tiny_tokenizer(),
        "loss": torch.nn.MSELoss(),
        "mapping": "uniform",
        "rank": 2,
        "features": {"name": ("linear", 2, 2)},
        "beams": [[(tree, 0.0)]] * 2,
        "num_beams": 2,
    }
    texts = {"batch_size": 1, "repeats": 1, "name": "hard", "repo_id": "user/name", "token": "1"}
    texts["message"] = "fault"
    return training | sizes | pruning | metrics | data | models | texts


def special_values(name: str) -> dict:
    """Values of parameters whose names mean something else in this function."""
    problem = tiny_problems(1)[0]
    score = score_prediction(problem, problem.expression)
    scored = dict.fromkeys(("accuracy_report", "context_report", "reason_counts"), {"scores": [score]})
    matrix = torch.rand(2, 2)
    special = scored | dict.fromkeys(("choose_heads", "rows_of", "draw_importance"), {"scores": matrix})
    special |= {"scores_of": {"rows": [[1.0, None]]}, "answers_match": {"prediction": 3}}
    special |= {"text_report": {"predictions": ["a"]}}
    special |= {"MwpStudentModel": {"config": MwpStudentConfig(vocab_size=9, hidden_size=12)}}
    function = name.rpartition(".")[2]
    if function == "export_dense":
        return {"model": tiny_classifier()}
    if function == "compare_costs":
        return {"models": {"name": tiny_classifier()}, "tokens": 2}
    return special.get(function, {})


def parameters_of(function) -> list[inspect.Parameter]:
    variable = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return [parameter for parameter in parameters if parameter.kind not in variable]


def raw_error(function, arguments) -> str | None:
    """The error of a call that no user can read."""
    try:
        result = function(**arguments)
        if hasattr(result, "__next__"):
            next(result, None)
    except READABLE:
        pass
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize("name", slow_except(CALLABLES, *CALLABLES.keys() - SLOW_CALLABLES))
def test_careless_calls_end_in_readable_errors(name, usual_values, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function = CALLABLES[name]
    parameters = parameters_of(function)
    arguments = {}
    for parameter in parameters:
        if parameter.default is parameter.empty:
            arguments[parameter.name] = usual_values.get(parameter.name)
    # Some calls change a model.
    if "model" in arguments and name.endswith("lora"):
        arguments["model"] = tiny_classifier()
    arguments |= special_values(name)
    errors = {}
    for parameter in parameters:
        for value in CARELESS:
            error = raw_error(function, arguments | {parameter.name: value})
            if error:
                errors[f"{parameter.name}={value!r}"] = error
    assert not errors


CONFIGS = [
    CausalLMDistillationConfig,
    DistillationConfig,
    PreTrainingConfig,
    RecursiveDistillationConfig,
    Seq2SeqDistillationConfig,
    SolverTrainingConfig,
    StarkConfig,
]
OPTIONS = [EvaluateArguments, TaskArguments, StudentArguments]
NUMBERS = {bool, int, float}


def wrong_values(types):
    """Values that a field of these types must refuse."""
    values = []
    if types <= NUMBERS | {str, type(None)}:
        values.append(object())
    if bool in types and str not in types:
        values += ["false", 1]
    if types <= NUMBERS:
        values.append(None)
    return values


@pytest.mark.parametrize("options_class", [*CONFIGS, *OPTIONS])
def test_options_have_the_annotated_types(options_class):
    hints = get_type_hints(options_class)
    start = {"output_dir": "out", "report_to": "none", "use_cpu": True} if options_class in CONFIGS else {}
    for field in fields(options_class):
        for value in wrong_values(checked_types._alternatives(hints[field.name])):
            # `None` is the default of some fields of `TrainingArguments` that are annotated without it.
            if field.init and value is not field.default:
                with pytest.raises(TypeError, match=f"`{field.name}` must be .*, got"):
                    options_class(**start | {field.name: value})
