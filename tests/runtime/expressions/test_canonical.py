import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mwp.runtime.expressions import Expression, ExpressionError


def canonical(text):
    return Expression.from_infix(text).canonical()


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("N0+N1", "N1+N0"),
        ("N0-(N1-N2)", "N2+N0-N1"),
        ("N0/(N1/N2)", "N2*N0/N1"),
        ("(N0+N1)*(N2-N3)", "(N2-N3)*(N1+N0)"),
        ("10.0*N0", "N0*10"),
        ("0.50+N0", "N0+.5"),
        ("N10+N2", "N2+N10"),
    ],
)
def test_equivalent_trees_are_equal(first, second):
    assert canonical(first) == canonical(second)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("N0-N1", "N1-N0"),
        ("N0/N1", "N1/N0"),
        ("N0*(N1+N2)", "N0*N1+N0*N2"),
        ("N0+N0", "2*N0"),
        ("50%", "0.5"),
        ("(N0^N1)^N2", "N0^(N1^N2)"),
    ],
)
def test_other_trees_differ(first, second):
    assert canonical(first) != canonical(second)


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("N1+N0", "N0+N1"),
        ("2-(N1-N0*3)", "2+N0*3-N1"),
        ("3/(N1/2)*N0", "N0*2*3/N1"),
        ("(5+4)*N0", "N0*(4+5)"),
        ("007+1.50", "1.5+7"),
    ],
)
def test_canonical_form(text, form):
    assert str(canonical(text)) == form


def shuffled(node, draw):
    """The same expression with operands swapped and groups moved at random places."""
    if node.is_leaf:
        return node
    left = shuffled(node.left, draw)
    right = shuffled(node.right, draw)
    if node.token in "+*" and draw(st.booleans()):
        return Expression(node.token, right, left)
    inverse = {"-": "+", "/": "*"}.get(node.token)
    if draw(st.booleans()):
        if node.token in "+*" and right.token == node.token or inverse and right.token == inverse:
            return Expression(node.token, Expression(node.token, left, right.left), right.right)
        if inverse and right.token == node.token:
            return Expression(node.token, Expression(inverse, left, right.right), right.left)
    return Expression(node.token, left, right)


@settings(max_examples=50)
@given(st.data())
def test_rewritten_trees_are_equal(trees, data):
    tree = data.draw(trees)
    assert shuffled(tree, data.draw).canonical() == tree.canonical()


@settings(max_examples=50)
@given(st.data())
def test_canonical_form_is_its_own(trees, data):
    form = data.draw(trees).canonical()
    assert form.canonical() == form


@settings(max_examples=50)
@given(st.data())
def test_canonical_tree_has_the_same_value(closed_trees, data):
    tree = data.draw(closed_trees)
    has_power = "^" in tree.to_prefix()
    try:
        expected = tree.evaluate()
    except ExpressionError:
        return
    try:
        result = tree.canonical().evaluate()
    except ExpressionError:
        assert has_power
        return
    if not has_power:
        assert result == expected
        return
    scale = max(abs(float(expected)), 1.0)
    # Differences of large floats keep few digits.
    if not isinstance(expected, float) or scale <= 1e6:
        assert math.isclose(result, expected, rel_tol=1e-6, abs_tol=1e-6 * scale)
