"""Adapters of trainers by kind of model."""

from typing import Any

from ..models.model_kind import SOLVER, kind_of
from .model_adapter import ModelAdapter
from .solver.solver_adapter import SolverAdapter


ADAPTERS = {SOLVER.name: SolverAdapter}


def adapter_of(model: Any) -> type[ModelAdapter]:
    """Return the class of the adapter for a model."""
    return ADAPTERS.get(kind_of(model).name, ModelAdapter)
