"""Uses of the public names as a type checker sees them. mypy reads this file; it is never run."""

from fractions import Fraction
from typing import assert_type

import hf_mwp
from hf_mwp import losses, metrics, objectives, pruning
from hf_mwp.runtime import BatchSolver, RuntimeSolver, load_solver


solver = load_solver("folder")
assert_type(solver, RuntimeSolver)
batch: dict[str, list] = BatchSolver("folder")({"text": ["1 and 2"]})
tree = hf_mwp.Expression.from_infix("1+2")
assert_type(tree, hf_mwp.Expression)
config = hf_mwp.DistillationConfig("out", temperature=2.0, hidden_loss="cka")
objective: objectives.Objective = objectives.HiddenStates(losses.CKALoss(), weight=0.5)
callback = hf_mwp.HeadPruningCallback(max_ratio=0.3, importance=pruning.GateGradient())
right: bool = metrics.answers_match(Fraction(1), Fraction(2, 2))

hf_mwp.no_such_name  # type: ignore[attr-defined]
losses.NoSuchLoss  # type: ignore[attr-defined]
hf_mwp.MathWordProblem(3)  # type: ignore[arg-type]
