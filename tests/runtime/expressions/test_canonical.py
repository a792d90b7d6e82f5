import math

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from hf_mwp.runtime.expressions import Expression, ExpressionError


def canonical(text):
    return Expression.from_infix(text).canonical()


@pytest.mark.parametrize(
    "first, second",
    [
        ("N0+N1", "N1+N0"),
        ("(N0+N1)+N2", "N2+(N1+N0)"),
        ("N0*N1*N2", "N2*(N0*N1)"),
        ("N0-N1-N2", "N0-(N1+N2)"),
        ("N0-N1-N2", "N0-N2-N1"),
        ("N0-(N1-N2)", "N2+N0-N1"),
        ("N0-N1+N2", "N0+N2-N1"),
        ("N0/N1/N2", "N0/(N2*N1)"),
        ("N0/(N1/N2)", "N2*N0/N1"),
        ("N0*N1/N2", "N1/N2*N0"),
        ("(N0+N1)*(N2-N3)", "(N2-N3)*(N1+N0)"),
        ("(N0+N1)^2", "(N1+N0)^2"),
        ("10.0*N0", "N0*10"),
        ("0.50+N0", "N0+.5"),
        ("N10+N2", "N2+N10"),
    ],
)
def test_equal(first, second):
    assert canonical(first) == canonical(second)


@pytest.mark.parametrize(
    "first, second",
    [
        ("N0-N1", "N1-N0"),
        ("N0/N1", "N1/N0"),
        ("N0^N1", "N1^N0"),
        ("N0*(N1+N2)", "N0*N1+N0*N2"),
        ("N0+N0", "2*N0"),
        ("N0", "N1"),
        ("50%", "0.5"),
        ("(N0^N1)^N2", "N0^(N1^N2)"),
    ],
)
def test_different(first, second):
    assert canonical(first) != canonical(second)


@pytest.mark.parametrize(
    "text, form",
    [
        ("N1+N0", "N0+N1"),
        ("2-(N1-N0*3)", "2+N0*3-N1"),
        ("3/(N1/2)*N0", "N0*2*3/N1"),
        ("(5+4)*N0", "N0*(4+5)"),
        ("007+1.50", "1.5+7"),
    ],
)
def test_form(text, form):
    assert str(canonical(text)) == form


def shuffled(node, draw):
    """The same expression written otherwise: operands swapped, groups moved, at random places."""
    if node.is_leaf:
        return node
    left, right = shuffled(node.left, draw), shuffled(node.right, draw)
    if node.token in "+*":
        if draw(st.booleans()):
            left, right = right, left
        if right.token == node.token and draw(st.booleans()):
            return Expression(node.token, Expression(node.token, left, right.left), right.right)
        return Expression(node.token, left, right)
    plus = {"-": "+", "/": "*"}.get(node.token)
    if plus and right.token == plus and draw(st.booleans()):
        return Expression(node.token, Expression(node.token, left, right.left), right.right)
    if plus and right.token == node.token and draw(st.booleans()):
        return Expression(node.token, Expression(plus, left, right.right), right.left)
    return Expression(node.token, left, right)


@given(st.data())
def test_rewritten_trees_are_equal(trees, data):
    tree = data.draw(trees)
    assert shuffled(tree, data.draw).canonical() == tree.canonical()


@given(st.data())
def test_idempotent(trees, data):
    form = data.draw(trees).canonical()
    assert form.canonical() == form


@given(st.data())
def test_keeps_the_value(closed_trees, data):
    tree = data.draw(closed_trees)
    assume("^" not in tree.to_prefix())
    try:
        expected = tree.evaluate()
    except ExpressionError:
        return
    assert tree.canonical().evaluate() == expected


@given(st.data())
def test_keeps_the_value_of_powers(closed_trees, data):
    tree = data.draw(closed_trees)
    try:
        expected, result = tree.evaluate(), tree.canonical().evaluate()
    except ExpressionError:
        return
    scale = max(abs(float(expected)), 1.0)
    if isinstance(expected, float) and scale > 1e6:
        return  # differences of large floats keep few digits
    assert math.isclose(result, expected, rel_tol=1e-6, abs_tol=1e-6 * scale)
