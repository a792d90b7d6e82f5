import copy
import pickle
import sys
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mwp.runtime.expressions import Expression, ExpressionError, draw


def parse(text):
    return Expression.from_infix(text)


def literals(tree):
    return [leaf.token for leaf in tree.leaves()]


def chain(length):
    tree = Expression("1")
    for _ in range(length):
        tree = Expression("+", tree, Expression("1"))
    return tree


def test_leaf():
    slot = Expression("N12")
    assert slot.is_leaf and slot.is_slot
    assert (slot.slot_index, slot.depth, len(slot), slot.num_operators) == (12, 0, 1, 0)
    assert slot.left is None and slot.right is None
    literal = Expression("１,２３４")
    assert literal.token == "1234"
    assert literal.is_leaf and not literal.is_slot
    assert literal.slot_index is None


def test_inner_node():
    tree = parse("(N0+N1)/(4-1)")
    assert tree.token == "/"
    assert not tree.is_leaf and not tree.is_slot
    assert (tree.depth, tree.num_operators, len(tree)) == (2, 3, 7)
    assert literals(tree) == ["N0", "N1", "4", "1"]
    assert tree.to_prefix() == "/ + N0 N1 - 4 1".split()
    assert tree.to_postfix() == "N0 N1 + 4 1 - /".split()
    assert tree.left.to_infix() == "N0+N1"


@pytest.mark.parametrize(
    ("text", "infix"),
    [
        ("((1)+((2*3)))", "1+2*3"),
        ("(1-2)-3", "1-2-3"),
        ("1-(2-3)", "1-(2-3)"),
        ("1+(2+3)", "1+(2+3)"),
        ("1/(2*3)", "1/(2*3)"),
        ("2^(3^4)", "2^3^4"),
        ("(2^3)^4", "(2^3)^4"),
        ("(0-1)^2", "(0-1)^2"),
        ("1(3/4)/2", "1(3/4)/2"),
    ],
)
def test_infix_has_no_needless_brackets(text, infix):
    assert str(parse(text)) == parse(text).to_infix() == infix


def test_negative_literals_are_in_brackets_after_an_operator():
    tree = Expression("*", Expression("2"), Expression("-5"))
    assert str(tree) == "2*(-5)"
    assert Expression.from_infix("2*(-5)", ["-5"]) == tree
    assert str(Expression("-5")) == "-5"


def test_fraction_literal_differs_from_a_quotient():
    tree = Expression.from_prefix("* (3/8) / 2 / 3 8".split())
    assert str(tree) == "(3/8)*(2/((3)/8))"
    assert Expression.from_infix(str(tree), ["(3/8)"]) == tree


def test_equal_trees_have_equal_hashes():
    assert parse("1+2") == parse(" 1 + (2) ")
    assert parse("1+2") != "1+2"
    assert parse("2") != parse("2.0")
    assert len({parse("1+2"), parse("1 + 2"), parse("2+1")}) == 2


def test_trees_cannot_be_changed():
    tree = parse("1+2")
    for name in ("token", "depth", "anything"):
        with pytest.raises(AttributeError, match="immutable"):
            setattr(tree, name, None)
    with pytest.raises(AttributeError, match="immutable"):
        del tree.token


def test_copies_are_equal():
    tree = parse("(1+N0)*1(3/4)")
    assert copy.deepcopy(tree) == copy.copy(tree) == tree
    assert pickle.loads(pickle.dumps(tree)) == tree  # noqa: S301
    deep = chain(4000)
    assert copy.deepcopy(deep) == deep
    assert repr(parse("N0+2")) == "Expression.from_prefix(['+', 'N0', '2'])"


@pytest.mark.parametrize(
    ("tokens", "position", "token"),
    [
        (["+", "1"], 0, "+"),
        (["+", "1", "2", "3"], 3, "3"),
        (["1", "2"], 1, "2"),
        (["+", "1", "UNK"], 2, "UNK"),
        (["%", "1", "2"], 0, "%"),
        (["+", "1", 2], 2, "2"),
        ([], None, None),
    ],
)
def test_prefix_error_names_position_and_token(tokens, position, token):
    with pytest.raises(ExpressionError) as error:
        Expression.from_prefix(tokens)
    assert (error.value.position, error.value.token) == (position, token)


@pytest.mark.parametrize(
    ("tokens", "position", "token"), [("1 +", 1, "+"), ("1 2 + 3", 3, "3"), ("1 N0 ?", 2, "?"), ("", None, None)]
)
def test_postfix_error_names_position_and_token(tokens, position, token):
    with pytest.raises(ExpressionError) as error:
        Expression.from_postfix(tokens.split())
    assert (error.value.position, error.value.token) == (position, token)


ONE = Expression("1")


@pytest.mark.parametrize(
    "arguments",
    [("+",), ("x",), ("",), ("1", "2"), (1,), ("+", ONE), ("+", None, ONE), ("1", ONE, ONE), ("%", ONE, ONE)]
    + [("+", ONE, "1")],
)
def test_invalid_node_is_refused(arguments):
    with pytest.raises(ExpressionError):
        Expression(*arguments)


def test_number_of_nodes_is_limited():
    assert Expression.from_infix("1" + "+1" * 500).depth == 500
    shared = Expression("2")
    with pytest.raises(ExpressionError, match="10000 nodes"):
        for _ in range(64):
            shared = Expression("*", shared, shared)


def test_deep_trees_need_no_recursion():
    length = sys.getrecursionlimit() * 2
    tree = chain(length)
    assert tree.depth == length
    assert tree == chain(length) and hash(tree) == hash(chain(length))
    assert tree.evaluate() == length + 1
    assert Expression.from_infix(str(tree)) == tree
    assert tree.canonical() == tree
    assert tree.complexity() == "high"
    right = Expression.from_prefix(["-", "1"] * length + ["1"])
    assert Expression.from_infix(str(right)) == right
    assert right.canonical().evaluate() == right.evaluate()


def test_slots_are_bound_to_numbers():
    tree = parse("N0*(N1-N0)+2")
    bound = tree.bind(["(3/8)", "20%"])
    assert bound.to_prefix() == "+ * (3/8) - 20% (3/8) 2".split()
    assert bound.evaluate() == tree.evaluate(["(3/8)", "20%"]) == Fraction(619, 320)
    with pytest.raises(ExpressionError, match="'N1'"):
        tree.bind(["1"])
    for invalid in ("apples", "+"):
        with pytest.raises(ExpressionError):
            tree.bind(["1", invalid])


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("5", "low"),
        ("36/6+3", "low"),
        ("4+(5+2)", "low"),
        ("4*(6/2)", "low"),
        ("2^3^2", "low"),
        ("1+2*3-4", "medium"),
        ("1+2+3+4+5", "medium"),
        ("(1+2)*3", "medium"),
        ("1-(2+3)", "medium"),
        ("8/(2*2)", "medium"),
        ("2^(1+1)", "medium"),
        ("(2^3)^2", "medium"),
        ("16*(1-(3/8))", "medium"),
        ("16*2^(3/8)", "medium"),
        ("1+2+3+4+5+6", "high"),
        ("9-(8-(7-6))", "high"),
    ],
)
def test_complexity(text, level):
    assert parse(text).complexity() == level


def test_complexity_counts_a_fraction_literal_as_a_number():
    assert Expression.from_infix("16*2^(3/8)", ["(3/8)"]).complexity() == "low"


@settings(max_examples=50)
@given(st.data())
def test_trees_are_read_back_from_each_notation(trees, data):
    tree = data.draw(trees)
    assert Expression.from_prefix(tree.to_prefix()) == tree
    assert Expression.from_postfix(tree.to_postfix()) == tree
    assert Expression.from_infix(str(tree), literals(tree)) == tree


@settings(max_examples=50)
@given(st.data())
def test_brackets_are_minimal(trees, data):
    """Removing any pair of brackets around an operation changes the tree."""
    tree = data.draw(trees)
    text = str(tree)
    numbers = literals(tree)
    open_brackets = []
    for index, symbol in enumerate(text):
        if symbol == "(":
            open_brackets.append(index)
        elif symbol == ")":
            start = open_brackets.pop()
            inside = text[start + 1 : index]
            is_mixed_number = text[:start][-1:].isdigit()
            is_literal = text[start : index + 1] in numbers or inside in numbers
            # ((3)/8) beside the literal (3/8)
            if is_mixed_number or is_literal or inside.isdigit():
                continue
            without = text[:start] + inside + text[index + 1 :]
            assert Expression.from_infix(without, numbers) != tree


@settings(max_examples=50)
@given(st.data())
def test_depth_and_length_equal_the_recursive_ones(trees, data):
    tree = data.draw(trees)

    def depth(node):
        return 0 if node.is_leaf else 1 + max(depth(node.left), depth(node.right))

    assert tree.depth == depth(tree)
    assert len(tree) == len(tree.to_prefix()) == 2 * tree.num_operators + 1
    assert len(literals(tree)) == tree.num_operators + 1


def test_drawing():
    assert draw(parse("(70+6)/(N0-1)*2")) == (
        "*\n├── /\n│   ├── +\n│   │   ├── 70\n│   │   └── 6\n│   └── -\n│       ├── N0\n│       └── 1\n└── 2"
    )
    assert draw(Expression("1(3/4)")) == "1(3/4)"


def test_drawing_of_a_deep_tree_has_a_line_for_each_node():
    assert len(draw(parse("1" + "-(1" * 90 + ")" * 90)).splitlines()) == 181
