"""Kind of models that find expressions."""

from dataclasses import dataclass
from typing import Any

from torch import nn

from hf_mwp.compress.models.model_kind import ModelKind, unwrapped
from hf_mwp.compress.models.prediction_kind import EXPRESSION_POSITIONS, PredictionKind


@dataclass(frozen=True)
class SolverKind(ModelKind):
    """Kind of a [`Solver`], whose expressions are scored by their answers."""

    name: str = "solver"
    is_solver: bool = True
    prediction: PredictionKind = EXPRESSION_POSITIONS
    reduction: str = "batchmean"  # a solver's own loss sums over the nodes of a tree and averages over problems

    def encoder(self, model: Any) -> nn.Module:
        return unwrapped(model).encoder

    def adapter_class(self) -> type:
        # Imported here, because trainers are slow to import.
        from hf_mwp.solver.training.solver_adapter import SolverAdapter

        return SolverAdapter


SOLVER = SolverKind()
