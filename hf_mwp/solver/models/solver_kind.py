"""Kind of models that find expressions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import Tensor, nn

from hf_mwp.compress.models.batch_inputs import num_rows
from hf_mwp.compress.models.model_kind import (
    ModelKind,
    check_embeddings,
    check_equal,
    kind_of,
    unwrapped,
)
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

    def training_rules_class(self) -> type:
        # Imported here, because trainers are slow to import.
        from hf_mwp.solver.training.solver_training_rules import SolverTrainingRules

        return SolverTrainingRules

    def check_teacher(
        self, student: nn.Module, teacher: nn.Module, processing: Any = None, reads_own_tokens: bool = False
    ) -> None:
        """Raise `ValueError` unless two solvers have the same symbols, the same kind of decoder and fitting tokens."""
        if not kind_of(teacher).is_solver:
            raise ValueError(f"The student is a solver, but the teacher, a `{type(teacher).__name__}`, is not.")
        student = unwrapped(student)
        teacher = unwrapped(teacher)
        remedy = "Probabilities are compared symbol by symbol: create the student with the teacher's processor."
        for name in ("operators", "constants"):
            student_symbols = list(getattr(student.vocabulary, name))
            teacher_symbols = list(getattr(teacher.vocabulary, name))
            check_equal(name, student_symbols, teacher_symbols, remedy)
        remedy = "Decoders of different kinds cannot be compared: train a teacher with the student's (`--decoder`)."
        check_equal("predictions", student.prediction.name, teacher.prediction.name, remedy)
        remedy = "They score different candidates: create the student from the teacher or with its `decoder_config`."
        for name, rule in student.prediction_rules.items():
            check_equal(name, rule, teacher.prediction_rules.get(name), remedy)
        if reads_own_tokens:
            processing.check_model(teacher)
        else:
            check_embeddings(student, teacher)

    def positions(self, inputs: Mapping[str, Any], needs_labels: bool = False) -> Tensor | None:
        labels = inputs.get("labels")
        return None if labels is None else labels != -100

    def num_items(self, inputs: Mapping[str, Any], needs_labels: bool = False) -> int:
        return num_rows(inputs)


SOLVER = SolverKind()
