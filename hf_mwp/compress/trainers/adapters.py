"""Adapters of trainers by kind of model."""

from typing import Any

from hf_mwp.compress.models.model_kind import SEQ2SEQ, SOLVER, kind_of
from hf_mwp.solver.training.solver_adapter import SolverAdapter

from .model_adapter import ModelAdapter
from .seq2seq_adapter import Seq2SeqAdapter


ADAPTERS = {SOLVER.name: SolverAdapter, SEQ2SEQ.name: Seq2SeqAdapter}


def adapter_of(model: Any) -> type[ModelAdapter]:
    """Return the class of the adapter for a model."""
    return ADAPTERS.get(kind_of(model).name, ModelAdapter)
