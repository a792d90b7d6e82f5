"""Thoughts, targets and plans: forms by hand, the naive decoder, and the equations of the datasets."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.runtime.problems import ProblemError
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row
from hf_mwp.solver.models.athena import AthenaConfig
from hf_mwp.solver.models.athena.gold_plan import PlanMaker
from hf_mwp.solver.models.athena.thoughts import OPERATIONS, Expansion, ThoughtTable
from tests.solver.models.athena.naive_athena import gold, read


def new_maker(constants=("1", "2", "3", "3.14", "0.5"), **fields):
    return PlanMaker(AthenaConfig(constants=list(constants), **fields))


def make_plan(maker, equation, count=3, groups=None):
    """The plan of an equation of a problem with `count` numbers."""
    labels = maker.vocabulary.encode(Expression.from_infix(equation))
    return maker.make(labels, range(count), groups)


def written(table, thought, constants):
    """A thought as text, children of sums and products in the order of their texts."""
    operation = table.kinds[thought]
    children = table.children[thought]
    if operation == "NUM":
        return f"N{children[0]}"
    if operation == "CON":
        return constants[children[0]]
    texts = sorted(written(table, child, constants) for child in children)
    return f"{operation}({', '.join(texts)})"


def form(equation, values=None, **fields):
    """The thought of an equation, in infix or as a list in prefix order, as text."""
    maker = new_maker(**fields)
    table = ThoughtTable()
    parse = Expression.from_infix if isinstance(equation, str) else Expression.from_prefix
    target = maker.read_target(table, parse(equation), None, values)
    return written(table, target.thought, maker.config.constants)


@pytest.mark.parametrize(
    ("equation", "expected"),
    [
        ("N0-N1", "ADD(N0, NEG(N1))"),
        ("N0-(N1+N2)", "ADD(N0, NEG(ADD(N1, N2)))"),
        ("N0+N1+N0", "ADD(N0, N0, N1)"),
        ("1*N0", "N0"),
        ("N0*1", "N0"),
        ("2*N0*N1", "MUL(ADD(N0, N0), N1)"),
        ("N0*N1*2", "ADD(MUL(N0, N1), MUL(N0, N1))"),
        ("2*2", "ADD(2, 2)"),
        ("2*1", "ADD(1, 1)"),
        ("N0/2", "HALF(N0)"),
        ("1/N0", "INV(N0)"),
        ("2/N0", "ADD(INV(N0), INV(N0))"),
        ("N0/1", "MUL(INV(1), N0)"),
        ("1/2", "HALF(1)"),
        ("N0/(N1/N2)", "MUL(INV(MUL(INV(N2), N1)), N0)"),
        ("N0^1", "N0"),
        ("N0^2", "MUL(N0, N0)"),
        ("(N0+N1)^3", "MUL(ADD(N0, N1), ADD(N0, N1), ADD(N0, N1))"),
        ("2^2", "ADD(2, 2)"),
        ("0-N0", "NEG(N0)"),
        ("N0+3.14", "ADD(3.14, N0)"),
        # 0.5 is the reciprocal of another constant.
        ("N0*0.5", "MUL(INV(2), N0)"),
        ("N0/0.5", "MUL(INV(INV(2)), N0)"),
    ],
)
def test_forms_of_equations(equation, expected):
    assert form(equation) == expected


SPARE = {"initial_constants": ["3.14"]}


@pytest.mark.parametrize(
    ("equation", "fields", "expected"),
    [
        # Constants that are not initial thoughts occur in rules only.
        ("N0*0.5", SPARE, "HALF(N0)"),
        ("N0^0.5", SPARE, "ROOT(N0)"),
        ("N0/1", SPARE, "N0"),
        ("0-N0+N1", SPARE, "ADD(N1, NEG(N0))"),
        ("2*N0", SPARE, "ADD(N0, N0)"),
        ("0-N0", {"constants": ["0", "1"]}, "ADD(0, NEG(N0))"),
        ("N0*0.5", {"reciprocal_constants": False}, "MUL(0.5, N0)"),
        (["*", "N0", "-1"], {"constants": ["-1", "-2"]}, "NEG(N0)"),
        (["*", "N0", "-2"], {"constants": ["-1", "-2"]}, "NEG(ADD(N0, N0))"),
        ("N0^N1", {"values": [Fraction(7), Fraction(2)]}, "MUL(N0, N0)"),
    ],
)
def test_forms_depend_on_constants_and_values(equation, fields, expected):
    assert form(equation, **fields) == expected


@pytest.mark.parametrize(
    ("equation", "fields", "message"),
    [
        ("N0+1", SPARE, "constant 1 is not an initial thought"),
        ("N0^N0", {}, "N0 = 7"),
        ("N0^N2", {}, "N2 = 1"),
        ("N0^3.14", {}, "3.14"),
        ("N0^(N1+1)", {}, "expression"),
        ("N0^N1", {"strict_exponents": True}, "N1"),
        ("N0^0.5", {"transforms": ["NEG", "INV"], "reciprocal_constants": False}, "transform ROOT"),
    ],
)
def test_equations_that_are_not_thoughts_are_named(equation, fields, message):
    with pytest.raises(ExpressionError, match=message):
        form(equation, [Fraction(7), Fraction(2), Fraction(1)], **fields)


def test_equal_numbers_are_one_thought_if_they_are_merged():
    plan = make_plan(new_maker(), "N0+N2", groups=[0, 1, 1])
    assert plan.initial.tolist() == [0, 1, -1, -2, -3, -4]
    assert (plan.kept >= 0).sum() == 3
    unmerged = new_maker(merge_numbers=False)
    plan = make_plan(unmerged, "N0+N2", groups=[0, 1, 1])
    assert plan.initial.tolist() == [0, 1, 2, -1, -2, -3, -4]
    assert sorted(plan.candidates[plan.kept >= 0][:2, 2].tolist()) == [0, 2]
    labels = unmerged.vocabulary.encode(Expression.from_infix("N0+N2"))
    with pytest.raises(ExpressionError, match="number N2"):
        unmerged.make(labels, [1, 2, -1], [0, 1, 1])


@pytest.mark.parametrize("num_terms", [2, 3, 5])
def test_left_chained_sum_takes_two_rounds_per_term(num_terms):
    equation = "+".join(f"N{slot}" for slot in range(num_terms))
    assert make_plan(new_maker(constants=[]), equation, num_terms).rounds == 2 * (num_terms - 1) + 1


# a + c is not a node of (a + b) + c, but one of its subsets. Sums of many terms have too many subsets.
@pytest.mark.parametrize(
    ("method", "num_terms", "num_accepted"), [("nodes", 3, 5), ("subsets", 3, 7), ("subsets", 9, 9 + 8)]
)
def test_subsets_of_sums_may_be_targets(method, num_terms, num_accepted):
    equation = "+".join(f"N{slot}" for slot in range(num_terms))
    plan = make_plan(new_maker(constants=[], gold=method), equation, num_terms)
    assert (plan.kept >= 0).sum() == num_accepted


leaves = st.sampled_from(["N0", "N1", "N2", "1", "2", "3.14", "3", "0.5"]).map(Expression)


def operations(children):
    powers = st.builds(Expression, st.just("^"), children, st.sampled_from("123").map(Expression))
    return st.builds(Expression, st.sampled_from("+-*/"), children, children) | powers


expressions = st.recursive(leaves, operations, max_leaves=8)


def value_of(expression, numbers):
    try:
        return expression.evaluate(numbers)
    except ExpressionError:
        return None


@given(expressions)
@settings(deadline=None, max_examples=60)
def test_thoughts_of_any_equation_have_its_value(expression):
    maker = new_maker()
    table = ThoughtTable()
    expected = value_of(expression, [Fraction(7, 3), Fraction(5), Fraction(11)])
    # The expression of a thought is read again, as a thought of the same value, if not always of the same form.
    for _ in range(2):
        thought = maker.read_target(table, expression).thought
        ids = table.prefix(thought, maker.vocabulary)
        assert len(ids) == table.prefix_lengths[thought]
        expression = maker.vocabulary.decode(ids)
        assert value_of(expression, [Fraction(7, 3), Fraction(5), Fraction(11)]) == expected


@given(expressions, st.booleans())
@settings(deadline=None, max_examples=40)
def test_plans_equal_those_of_the_naive_decoder(expression, subsets):
    maker = new_maker(gold="subsets" if subsets else "nodes")
    plan = maker.make(maker.vocabulary.encode(expression), range(3))
    constants = {literal: Fraction(literal) for literal in ("1", "2", "3", "3.14")}
    initial = [("NUM", slot) for slot in range(3)]
    initial += [("CON", value) for value in constants.values()]
    node = read(expression, constants | {"0.5": ("INV", Fraction(2))})
    pool, rounds = gold(initial, node, subsets)
    if subsets and any(len(accepted) > 30 for _, accepted in rounds[:-1]):
        pool, rounds = gold(initial, node)
    rows = []
    is_accepted = []
    for turn, (candidates, accepted) in enumerate(rounds):
        for index, (operation, operands, _) in enumerate(candidates):
            number = OPERATIONS.index(operation) if operation else -1
            rows.append([turn, number, *operands, -1][:4])
            is_accepted.append(index in accepted)
    assert plan.candidates.tolist() == rows
    assert (plan.kept >= 0).tolist() == is_accepted
    assert plan.rounds == len(rounds)
    assert plan.kept[plan.kept >= 0].tolist() == list(range(len(pool)))
    assert plan.target == pool.index(node.thought)


def number_thoughts(table, count):
    return [table.add("NUM", slot) for slot in range(count)]


def test_candidates_are_limited_for_each_operation():
    table = ThoughtTable()
    expansion = Expansion(table, number_thoughts(table, 10), max_candidates=8)
    expansion.keep(expansion.next_round())
    assert not expansion.was_cut
    for names in (OPERATIONS[:4], OPERATIONS[4:]):
        candidates = expansion.next_round()
        assert {OPERATIONS[candidate.operation] for candidate in candidates} == {*names}
        assert len(candidates) == 8
        assert expansion.was_cut


def test_doubling_sums_come_to_an_end():
    table = ThoughtTable()
    expansion = Expansion(table, number_thoughts(table, 1))
    while candidates := expansion.next_round():
        expansion.keep([max(candidates, key=lambda candidate: table.prefix_lengths[candidate.thought])])
        assert expansion.round < 50
    assert max(table.prefix_lengths[thought] for thought in expansion.pool) <= 10_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("asdiv_a", 1.0),
        ("mawps", 1.0),
        ("math23k", 0.99),
    ],
)
def test_equations_of_datasets_keep_their_values(name, share):
    problems = []
    for rows in load_mwp_dataset(name).values():
        problems += map(problem_from_row, rows)
    vocabulary = OutputVocabulary.from_problems(problems, min_constant_count=1)
    maker = new_maker(vocabulary.constants, reciprocal_constants=False)
    has_same_form = []
    for problem in problems:
        try:
            expression = problem.expression
        except (ExpressionError, ProblemError):
            continue
        table = ThoughtTable()
        target = maker.read_target(table, expression, problem.number_groups, problem.values)
        decoded = maker.vocabulary.decode(table.prefix(target.thought, maker.vocabulary))
        value = value_of(decoded, problem.values)
        expected = value_of(expression, problem.values)
        assert value == expected or abs(value - expected) <= 1e-12 * abs(expected)
        has_same_form.append(decoded.canonical() == expression.canonical())
    assert len(has_same_form) > 1000
    assert sum(has_same_form) >= share * len(has_same_form)
