import pytest
from hypothesis import given
from hypothesis import strategies as st

from hf_mwp.runtime.expressions import OPERATORS, Expression
from hf_mwp.solver.metrics import FAILURE_REASONS, failure_reason


@pytest.mark.parametrize(
    ("prediction", "target", "reason"),
    [
        ("N0+N1", "N0+N1", "label_conflict"),
        ("N0+N2", "N0+N1", "wrong_number"),
        ("N0+1", "N0+N1", "wrong_constant"),
        ("N0*2", "N0*3.14", "wrong_constant"),
        ("N0*N1", "N0+N1", "wrong_operator"),
        ("N1-N0", "N0-N1", "swapped_operands"),
        ("N0/(N2-N1)", "(N1-N2)/N0", "swapped_operands"),
        ("N0", "N0+N1", "missing_step"),
        ("N0+N1+N2", "N0+N1", "extra_step"),
        ("N0*N2", "N0+N1", "other_equation"),
        ("N0*(N1+N2)", "N0*N1+N2", "other_equation"),
        ("N1", "N0", "wrong_number"),
        # In canonical form N0+N1-N3 and N0+N1-N2.
        ("N0-N3+N1", "N0+(N1-N2)", "wrong_number"),
        ("N2*(N0+N1)", "(N0-N1)*N2", "wrong_operator"),
    ],
)
def test_reasons(prediction, target, reason):
    assert failure_reason(Expression.from_infix(prediction), Expression.from_infix(target)) == reason


leaves = st.sampled_from(["N0", "N1", "N2", "1", "3.14"]).map(Expression)
trees = st.recursive(
    leaves, lambda trees: st.builds(Expression, st.sampled_from(OPERATORS), trees, trees), max_leaves=12
)


@given(trees, trees)
def test_every_pair_has_a_documented_reason(prediction, target):
    reason = failure_reason(prediction, target)
    assert reason in FAILURE_REASONS
    assert (reason == "label_conflict") == (prediction == target)
