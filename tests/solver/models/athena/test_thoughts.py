"""Thoughts, targets and plans: forms by hand, the naive twin, and the equations of the data sets."""

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
from tests.solver.models.athena.naive_athena import expand, gold, read


def new_maker(constants=("1", "2", "3", "3.14", "0.5"), **fields):
    return PlanMaker(AthenaConfig(constants=list(constants), **fields))


def shown(table, thought, constants):
    """A thought as text, children of sums and products in the order of their texts."""
    kind, children = table.kinds[thought], table.children[thought]
    if kind == "NUM":
        return f"N{children[0]}"
    if kind == "CON":
        return constants[children[0]]
    return f"{kind}({', '.join(sorted(shown(table, child, constants) for child in children))})"


def form(equation, values=None, groups=None, **fields):
    maker, table = new_maker(**fields), ThoughtTable()
    target = maker.read_target(table, Expression.from_infix(equation), groups, values)
    return shown(table, target.thought, maker.config.constants)


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


def test_constants_that_are_no_initial_thoughts_occur_in_rules_alone():
    spare = {"initial_constants": ["3.14"]}
    for equation, expected in [
        ("N0*0.5", "HALF(N0)"),
        ("N0^0.5", "ROOT(N0)"),
        ("N0/1", "N0"),
        ("0-N0+N1", "ADD(N1, NEG(N0))"),
        ("2*N0", "ADD(N0, N0)"),
    ]:
        assert form(equation, **spare) == expected
    with pytest.raises(ExpressionError, match="constant 1 is not an initial thought"):
        form("N0+1", **spare)
    assert form("0-N0", constants=["0", "1"]) == "ADD(0, NEG(N0))"
    assert form("N0*0.5", reciprocal_constants=False) == "MUL(0.5, N0)"
    table, negative = ThoughtTable(), new_maker(["-1", "-2"])
    for token, expected in [("-1", "NEG(N0)"), ("-2", "NEG(ADD(N0, N0))")]:
        target = negative.read_target(table, Expression.from_prefix(["*", "N0", token]))
        assert shown(table, target.thought, negative.config.constants) == expected


def test_exponents():
    values = [Fraction(7), Fraction(2), Fraction(1)]
    assert form("N0^N1", values) == "MUL(N0, N0)"
    for equation, told in [("N0^N0", "N0 = 7"), ("N0^N2", "N2 = 1"), ("N0^3.14", "3.14"), ("N0^(N1+1)", "expression")]:
        with pytest.raises(ExpressionError, match=told):
            form(equation, values)
    with pytest.raises(ExpressionError, match="N1"):
        form("N0^N1", values, strict_exponents=True)
    with pytest.raises(ExpressionError, match="transform ROOT"):
        form("N0^0.5", transforms=["NEG", "INV"], reciprocal_constants=False)


def test_equal_numbers_are_one_thought():
    maker = new_maker()
    labels = maker.vocabulary.encode(Expression.from_infix("N0+N2"))
    plan = maker.make(labels, [1, 2, 3], [0, 1, 1])
    assert plan.initial.tolist() == [0, 1, -1, -2, -3, -4]
    assert (plan.kept >= 0).sum() == 3
    by_index = new_maker(merge_numbers=False).make(labels, [1, 2, 3], [0, 1, 1])
    assert by_index.initial.tolist() == [0, 1, 2, -1, -2, -3, -4]
    assert sorted(by_index.candidates[by_index.kept >= 0][:2, 2].tolist()) == [0, 2]
    with pytest.raises(ExpressionError, match="number N2"):
        new_maker(merge_numbers=False).make(labels, [1, 2, -1], [0, 1, 1])


def test_a_left_chained_sum_takes_two_rounds_per_term():
    maker = new_maker(constants=[])
    for terms in range(2, 6):
        labels = maker.vocabulary.encode(Expression.from_infix("+".join(f"N{slot}" for slot in range(terms))))
        assert maker.make(labels, range(terms)).rounds == 2 * (terms - 1) + 1
    # a + c is no node of (a + b) + c, but one of its subsets; with these, three rounds are enough.
    labels = maker.vocabulary.encode(Expression.from_infix("N0+N1+N2"))
    assert (maker.make(labels, range(3)).kept >= 0).sum() == 5
    subsets = new_maker(constants=[], gold="subsets")
    assert (subsets.make(labels, range(3)).kept >= 0).sum() == 7
    wide = maker.vocabulary.encode(Expression.from_infix("+".join(f"N{slot}" for slot in range(9))))
    assert (subsets.make(wide, range(9)).kept >= 0).sum() == 9 + 8


leaves = st.sampled_from(["N0", "N1", "N2", "1", "2", "3.14", "3", "0.5"]).map(Expression)


def operations(children):
    free = st.tuples(st.sampled_from("+-*/"), children, children).map(lambda parts: Expression(*parts))
    return free | st.tuples(st.just("^"), children, st.sampled_from("123").map(Expression)).map(
        lambda parts: Expression(*parts)
    )


expressions = st.recursive(leaves, operations, max_leaves=8)


def value_of(expression, numbers):
    try:
        return expression.evaluate(numbers)
    except ExpressionError:
        return None


@given(expressions)
@settings(deadline=None, max_examples=150)
def test_any_equation_keeps_its_value_and_is_reached(expression):
    maker, table = new_maker(), ThoughtTable()
    target = maker.read_target(table, expression)
    ids = table.prefix(target.thought, maker.vocabulary)
    assert len(ids) == table.prefix_lengths[target.thought]
    written = maker.vocabulary.decode(ids)
    numbers = [Fraction(7, 3), Fraction(5), Fraction(11)]
    assert value_of(written, numbers) == value_of(expression, numbers)
    # What is written is read back as a thought of the same value, if not always of the same form.
    again = maker.read_target(table, written)
    assert value_of(maker.vocabulary.decode(table.prefix(again.thought, maker.vocabulary)), numbers) == value_of(
        expression, numbers
    )


@given(expressions, st.booleans())
@settings(deadline=None, max_examples=60)
def test_plans_are_those_of_the_naive_twin(expression, subsets):
    maker = new_maker(gold="subsets" if subsets else "nodes")
    plan = maker.make(maker.vocabulary.encode(expression), range(3))
    values = {"1": 1, "2": 2, "3": 3, "3.14": Fraction("3.14")}
    constants = {literal: Fraction(value) for literal, value in values.items()} | {"0.5": ("INV", Fraction(2))}
    initial = [*(("NUM", slot) for slot in range(3)), *(("CON", Fraction(value)) for value in values.values())]
    node = read(expression, constants)
    pool, rounds = gold(initial, node, subsets)
    if subsets and max(len(kept) for _, kept in rounds[:-1] or [((), ())]) > 30:
        pool, rounds = gold(initial, node)
    expected = [
        (turn, OPERATIONS.index(kind) if kind else -1, *operands, *[-1] * (2 - len(operands)))
        for turn, (candidates, _) in enumerate(rounds)
        for kind, operands, _ in candidates
    ]
    assert [tuple(row) for row in plan.candidates.tolist()] == expected
    kept = [place in chosen for candidates, chosen in rounds for place in range(len(candidates))]
    assert (plan.kept >= 0).tolist() == kept and plan.rounds == len(rounds)
    assert plan.kept[plan.kept >= 0].tolist() == list(range(len(pool))) and plan.target == pool.index(node.thought)


@given(st.randoms(use_true_random=False), st.integers(1, 3))
@settings(deadline=None, max_examples=25)
def test_expansions_are_those_of_the_naive_twin(chooser, count):
    table = ThoughtTable()
    ours = Expansion(table, [table.add("NUM", slot) for slot in range(count)], max_rounds=6)

    def judge(turn, candidates, pool):
        own = ours.next_round()
        kinds = [OPERATIONS[each.operation] if each.operation >= 0 else None for each in own]
        assert [
            (kind, (each.left,) if each.right < 0 else (each.left, each.right))
            for kind, each in zip(kinds, own, strict=True)
        ] == [(kind, operands) for kind, operands, _ in candidates]
        kept = sorted(chooser.sample(range(len(candidates)), min(len(candidates), 3)))
        ours.keep(own[place] for place in kept)
        return kept

    expand([("NUM", slot) for slot in range(count)], judge, max_rounds=6)
    assert ours.next_round() is None


def test_candidates_are_capped_for_each_operation():
    table = ThoughtTable()
    expansion = Expansion(table, [table.add("NUM", slot) for slot in range(10)], max_candidates=8)
    expansion.keep(expansion.next_round())
    assert not expansion.was_cut
    for names in (OPERATIONS[:4], OPERATIONS[4:]):
        found = expansion.next_round()
        assert {OPERATIONS[each.operation] for each in found} == {*names} and len(found) == 8
        assert expansion.was_cut


def test_sums_that_double_come_to_an_end():
    table = ThoughtTable()
    expansion = Expansion(table, [table.add("NUM", 0)])
    while candidates := expansion.next_round():
        expansion.keep([max(candidates, key=lambda each: table.prefix_lengths[each.thought])])
        assert expansion.round < 50
    assert max(table.prefix_lengths[each] for each in expansion.pool) <= 10_000


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("asdiv_a", 1.0),
        ("mawps", 1.0),
        pytest.param("math23k", 0.99, marks=pytest.mark.slow),
    ],
)
def test_equations_of_data_sets_keep_their_values(name, share):
    data = load_mwp_dataset(name)
    problems = [problem_from_row(row) for split in data.values() for row in split]
    vocabulary = OutputVocabulary.from_problems(problems, min_constant_count=1)
    maker = new_maker(vocabulary.constants, reciprocal_constants=False)
    same = count = 0
    for problem in problems:
        try:
            expression = problem.expression
        except (ExpressionError, ProblemError):
            continue
        table = ThoughtTable()
        target = maker.read_target(table, expression, problem.number_groups, problem.values)
        written = maker.vocabulary.decode(table.prefix(target.thought, maker.vocabulary))
        value, expected = value_of(written, problem.values), value_of(expression, problem.values)
        assert value == expected or abs(value - expected) <= 1e-12 * abs(expected)
        same += written.canonical() == expression.canonical()
        count += 1
    assert count > 1000 and same / count >= share
