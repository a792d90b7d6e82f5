import ast
import copy
import pickle
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hf_mwp.runtime.expressions
from hf_mwp.runtime.expressions import Expression, ExpressionError


def parse(text):
    return Expression.from_infix(text)


def chain(length):
    tree = Expression("1")
    for _ in range(length):
        tree = Expression("+", tree, Expression("1"))
    return tree


def test_leaf():
    leaf = Expression("N12")
    assert (leaf.is_leaf, leaf.is_slot, leaf.slot_index, leaf.depth, len(leaf)) == (True, True, 12, 0, 1)
    assert (leaf.num_operators, leaf.left, leaf.right) == (0, None, None)
    literal = Expression("１,２３４")
    assert (literal.token, literal.is_leaf, literal.is_slot, literal.slot_index) == ("1234", True, False, None)


def test_inner_node():
    tree = parse("(N0+N1)/(4-1)")
    assert (tree.token, tree.is_leaf, tree.is_slot, tree.depth, tree.num_operators, len(tree)) == (
        "/",
        False,
        False,
        2,
        3,
        7,
    )
    assert [leaf.token for leaf in tree.leaves()] == ["N0", "N1", "4", "1"]
    assert tree.to_prefix() == ["/", "+", "N0", "N1", "-", "4", "1"]
    assert tree.to_postfix() == ["N0", "N1", "+", "4", "1", "-", "/"]
    assert tree.left.to_infix() == "N0+N1"


@pytest.mark.parametrize(
    "text",
    [
        "1+2*3",
        "(1+2)*3",
        "1-2-3",
        "1-(2-3)",
        "1+(2+3)",
        "1/2/3",
        "1/(2/3)",
        "1/(2*3)",
        "1*2/3",
        "2^3^4",
        "(2^3)^4",
        "2^(3*4)",
    ]
    + ["(0-1)^2", "N0*(N1-N2)", "20%*5", "1(3/4)/2"],
)
def test_minimal_brackets(text):
    assert str(parse(text)) == parse(text).to_infix() == text


@pytest.mark.parametrize("text, short", [("((1)+((2*3)))", "1+2*3"), ("(1-2)-3", "1-2-3"), ("2^(3^4)", "2^3^4")])
def test_needless_brackets_go(text, short):
    assert str(parse(text)) == short


def test_negative_literal_and_fraction_in_infix():
    tree = Expression("*", Expression("2"), Expression("-5"))
    assert str(tree) == "2*(-5)"
    assert Expression.from_infix("2*(-5)", ["-5"]) == tree
    assert str(Expression("-5")) == "-5"
    # The literal (3/8) and the quotient of 3 and 8 in one tree.
    tree = Expression.from_prefix(["*", "(3/8)", "/", "2", "/", "3", "8"])
    assert str(tree) == "(3/8)*(2/((3)/8))"
    assert Expression.from_infix(str(tree), ["(3/8)"]) == tree


def test_equality_and_hash():
    assert parse("1+2") == parse(" 1 + (2) ") and hash(parse("1+2")) == hash(parse("1+2"))
    assert parse("1+2") != parse("2+1") and parse("1+2") != "1+2" and parse("2") != parse("2.0")
    assert len({parse("1+2"), parse("1 + 2"), parse("2+1")}) == 2


def test_immutable():
    tree = parse("1+2")
    for name in ("token", "left", "right", "depth", "anything"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(tree, name, None)
    with pytest.raises(AttributeError, match="immutable"):
        del tree.token


def test_copies():
    tree = parse("(1+N0)*1(3/4)")
    assert copy.deepcopy(tree) == copy.copy(tree) == tree == pickle.loads(pickle.dumps(tree))  # noqa: S301
    deep = chain(4000)
    assert copy.deepcopy(deep) == deep
    assert repr(parse("N0+2")) == "Expression.from_prefix(['+', 'N0', '2'])"


@pytest.mark.parametrize(
    "tokens, position, token",
    [
        (["+", "1"], 0, "+"),
        (["+"], 0, "+"),
        (["+", "1", "2", "3"], 3, "3"),
        (["1", "2"], 1, "2"),
        (["+", "1", "UNK"], 2, "UNK"),
        (["+", "1", "x"], 2, "x"),
        (["%", "1", "2"], 0, "%"),
        (["+", "1", 2], 2, "2"),
        ([], None, None),
    ],
)
def test_prefix_errors(tokens, position, token):
    with pytest.raises(ExpressionError) as info:
        Expression.from_prefix(tokens)
    assert (info.value.position, info.value.token) == (position, token)


@pytest.mark.parametrize(
    "tokens, position, token",
    [(["1", "+"], 1, "+"), (["1", "2", "+", "3"], 3, "3"), (["1", "N0", "?"], 2, "?"), ([], None, None)],
)
def test_postfix_errors(tokens, position, token):
    with pytest.raises(ExpressionError) as info:
        Expression.from_postfix(tokens)
    assert (info.value.position, info.value.token) == (position, token)


@pytest.mark.parametrize("arguments", [("+",), ("x",), ("",), ("1", "2"), (1,), ("-",)])
def test_bad_nodes(arguments):
    with pytest.raises(ExpressionError):
        Expression(*arguments)


def test_bad_inner_nodes():
    one = Expression("1")
    for arguments in [("+", one), ("+", None, one), ("1", one, one), ("%", one, one), ("+", one, "1")]:
        with pytest.raises(ExpressionError):
            Expression(*arguments)


def test_the_limit_is_named():
    assert Expression.from_infix("1" + "+1" * 500).depth == 500
    shared = Expression("2")
    with pytest.raises(ExpressionError, match="10000 nodes"):
        for _ in range(64):
            shared = Expression("*", shared, shared)


def test_deep_trees_need_no_recursion():
    length = sys.getrecursionlimit() * 4
    tree = chain(length)
    assert tree.depth == length
    assert tree == chain(length) and hash(tree) == hash(chain(length))
    assert tree.evaluate() == length + 1
    assert Expression.from_infix(str(tree)) == tree
    assert tree.canonical() == tree
    assert tree.complexity() == "high"
    assert len(list(tree.leaves())) == length + 1
    right = Expression.from_prefix(["-", "1"] * length + ["1"])
    assert Expression.from_infix(str(right)) == right
    assert right.canonical().evaluate() == right.evaluate()


def test_bind():
    tree = parse("N0*(N1-N0)+2")
    bound = tree.bind(["(3/8)", "20%"])
    assert bound.to_prefix() == ["+", "*", "(3/8)", "-", "20%", "(3/8)", "2"]
    assert (
        bound.evaluate() == tree.evaluate(["(3/8)", "20%"]) == Fraction(3, 8) * (Fraction(1, 5) - Fraction(3, 8)) + 2
    )
    with pytest.raises(ExpressionError, match="'N1'"):
        tree.bind(["1"])
    for bad in ("apples", "+"):
        with pytest.raises(ExpressionError):
            tree.bind(["1", bad])


@pytest.mark.parametrize(
    "text, level",
    [
        ("5", "low"),
        ("36/6+3", "low"),
        ("4*5+2", "low"),
        ("4+(5+2)", "low"),
        ("4*(6/2)", "low"),
        ("1+2*3-4", "medium"),
        ("1+2+3+4+5", "medium"),
        ("(1+2)*3", "medium"),
        ("1-(2+3)", "medium"),
        ("8/(2*2)", "medium"),
        ("(70+6)/(3+1)", "medium"),
        ("1+2+3+4+5+6", "high"),
        ("9-(8-(7-6))", "high"),
        ("(2+(3-1)*2)*4", "high"),
        ("2^(1+1)", "medium"),
        ("(2^3)^2", "medium"),
        ("2^3^2", "low"),
    ],
)
def test_complexity(text, level):
    assert parse(text).complexity() == level


def test_complexity_counts_a_fraction_literal_as_a_number():
    assert Expression.from_infix("16*(1-(3/8))").complexity() == "medium"
    assert Expression.from_infix("16*2^(3/8)").complexity() == "medium"
    assert Expression.from_infix("16*2^(3/8)", ["(3/8)"]).complexity() == "low"


@given(st.data())
def test_round_trips(trees, data):
    tree = data.draw(trees)
    assert Expression.from_prefix(tree.to_prefix()) == tree
    assert Expression.from_postfix(tree.to_postfix()) == tree
    text = str(tree)
    assert Expression.from_infix(text, [leaf.token for leaf in tree.leaves()]) == tree
    assert str(Expression.from_infix(text, [leaf.token for leaf in tree.leaves()])) == text


@given(st.data())
def test_brackets_are_minimal(trees, data):
    """Taking out any one pair of brackets around an operation changes the tree."""
    tree = data.draw(trees)
    text, numbers = str(tree), [leaf.token for leaf in tree.leaves()]
    opened = []
    for index, symbol in enumerate(text):
        if symbol == "(":
            opened.append(index)
        elif symbol == ")":
            start = opened.pop()
            inside = text[start + 1 : index]
            if text[:start][-1:].isdigit() or text[start : index + 1] in numbers or inside in numbers:
                continue
            if inside.isdigit():
                continue  # ((3)/8) beside the literal (3/8)
            without = text[:start] + inside + text[index + 1 :]
            assert Expression.from_infix(without, numbers) != tree


@given(st.data())
def test_counts(trees, data):
    tree = data.draw(trees)

    def depth(node):
        return 0 if node.is_leaf else 1 + max(depth(node.left), depth(node.right))

    assert tree.depth == depth(tree)
    assert len(tree) == len(tree.to_prefix()) == 2 * tree.num_operators + 1
    assert len(list(tree.leaves())) == tree.num_operators + 1


def test_needs_the_standard_library_only():
    for path in Path(hf_mwp.runtime.expressions.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                assert node.level <= 1
                names = [] if node.level else [node.module]
            assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names, path.name
