"""Random trees for the property tests."""

import pytest
from hypothesis import strategies as st

from hf_mwp.runtime.expressions import OPERATORS, Expression


LITERALS = ["0", "1", "2", "3", "8", "100", "3.14", "0.5", "20%", "(3/8)", "(1/2)", "1(3/4)", "-5", "-2.5"]
SLOTS = ["N0", "N1", "N2", "N10"]


def _trees(leaves: list[str], max_leaves: int = 12) -> st.SearchStrategy:
    return st.recursive(
        st.sampled_from(leaves).map(Expression),
        lambda inner: st.builds(Expression, st.sampled_from(OPERATORS), inner, inner),
        max_leaves=max_leaves,
    )


@pytest.fixture(scope="session")
def trees() -> st.SearchStrategy:
    """Trees with slots and literals of every form."""
    return _trees(LITERALS + SLOTS)


@pytest.fixture(scope="session")
def closed_trees() -> st.SearchStrategy:
    """Trees without slots."""
    return _trees(LITERALS)
