"""The batched decoder against the naive one, and what each must keep to."""

import pytest
import torch

from hf_mwp.expressions import Expression
from hf_mwp.models.athena import AthenaConfig, AthenaModel, PlanBatch
from hf_mwp.models.athena.gold_plan import PlanMaker
from hf_mwp.models.athena.thought_search import ThoughtSearch
from tests.models.athena.naive_athena import NaiveAthena, gold, read


CONSTANTS = ["3.14", "1", "2"]
EQUATIONS = ["N0+N1-N2", "N1", "N0/(N1*N1)", "3.14*N0*N0-2*N1/N2", "1/N0", "(N0+N1)/2", "N0^2", "3.14"]
VARIANTS = [
    {},
    {"norm": "post"},
    {"chain": "replace"},
    {"chain": "none"},
    {"goal": "all"},
    {"gold": "subsets", "loss_normalization": "thoughts"},
    {"hidden_size": 12, "norm": "post", "goal": "all", "chain": "replace"},
]
NUMBERS = torch.tensor([[2, 4, 7], [3, 6, -1], [1, 2, 5], [5, 6, 8], [1, -1, -1], [3, 4, -1], [2, -1, -1], [-1] * 3])
QUESTIONS = torch.tensor([[5, 6], [8, -1], [7, 8], [2, 3], [6, -1], [4, 5], [0, 1], [3, 4]])


def new_decoder(seed=0, **fields):
    torch.manual_seed(seed)
    defaults = {"hidden_size": 16, "encoder_hidden_size": 16, "num_attention_heads": 4, "dropout": 0.0}
    config = AthenaConfig(**defaults | {"constants": CONSTANTS, "intermediate_size": 20} | fields)
    decoder = AthenaModel(config).double()
    for module in decoder.modules():
        if isinstance(module, torch.nn.LayerNorm):
            # Norms that do nothing would hide a norm in the wrong place.
            torch.nn.init.normal_(module.weight, 1.0, 0.3)
            torch.nn.init.normal_(module.bias, 0.0, 0.3)
    return decoder


def batch_of(decoder, equations, numbers=NUMBERS):
    maker = PlanMaker(decoder.config)
    ids = [maker.vocabulary.encode(Expression.from_infix(equation)) for equation in equations]
    plans = [maker.make(each, row.tolist(), range(len(row))) for each, row in zip(ids, numbers, strict=False)]
    return PlanBatch(plans, numbers.shape[1])


def naive_initial(decoder, numbers):
    values = {literal: Expression(literal).evaluate() for literal in decoder.config.initial_constants}
    slots = [slot for slot, position in enumerate(numbers) if position >= 0]
    return values, [*(("NUM", slot) for slot in slots), *(("CON", value) for value in values.values())]


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
def test_training_is_that_of_the_naive_twin(fields):
    decoder = new_decoder(**fields)
    states = torch.randn(len(EQUATIONS), 9, 16, dtype=torch.double, requires_grad=True)
    mask = torch.ones(states.shape[:2])
    plans = batch_of(decoder, EQUATIONS)
    output = decoder(states, mask, NUMBERS, QUESTIONS, plans)
    parameters = dict(decoder.named_parameters())
    gradients = torch.autograd.grad(output.loss, [states, *parameters.values()], allow_unused=True)

    total, judged = 0, 0
    for row, equation in enumerate(EQUATIONS):
        values, initial = naive_initial(decoder, NUMBERS[row].tolist())
        node = read(Expression.from_infix(equation), values)
        pool, rounds = gold(initial, node, decoder.config.gold == "subsets")
        valid = [[position for position in each[row].tolist() if position >= 0] for each in (NUMBERS, QUESTIONS)]
        naive = NaiveAthena(decoder, states[row], *valid)
        loss, count = naive.loss(rounds, pool.index(node.thought))
        total, judged = total + loss, judged + count
        order = (plans.problems == row).nonzero().squeeze(1)
        order = order[plans.judged[order].argsort()]
        assert len(order) == len(naive.logits)
        for ours, theirs in [
            (output.logits[row, : len(order)], naive.logits),
            (output.answer_logits[row, : len(pool)], naive.answers),
            (output.embeddings[order], naive.embeddings),
            (output.contexts[order], naive.contexts),
        ]:
            torch.testing.assert_close(ours, torch.stack(theirs), rtol=0, atol=1e-9)
        assert (output.logits[row, len(order) :] < -1e30).all()
    total = total / (judged if decoder.config.loss_normalization == "thoughts" else len(EQUATIONS))
    torch.testing.assert_close(output.loss, total, rtol=0, atol=1e-9)
    expected = torch.autograd.grad(total, [states, *parameters.values()], allow_unused=True)
    for name, ours, theirs in zip(["states", *parameters], gradients, expected, strict=True):
        theirs = torch.zeros_like(ours) if theirs is None else theirs
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9, msg=name)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("fields", [fields for fields in VARIANTS if "gold" not in fields], ids=str)
def test_search_is_that_of_the_naive_twin(fields, seed):
    limits = {"threshold": 0.55, "strength": 0.7, "max_depth": 4, "max_thoughts": 0, "max_candidates": 0}
    decoder = new_decoder(seed, **limits | {"constants": ["3.14"]} | fields).eval()
    # Keeps pools small enough for the twin: 1 to 70 thoughts after 1 to 4 rounds.
    torch.nn.init.constant_(decoder.reason.score.bias, -0.2)
    numbers, questions = torch.tensor([[3], [1]]), QUESTIONS[:2]
    states = torch.randn(2, 9, 16, dtype=torch.double)
    with torch.no_grad():
        projected = decoder.project(states)
        search = ThoughtSearch(decoder, projected, numbers, None, decoder.goals(projected, None, questions), 1)
        found = search.run(max_length=1000, num_return_sequences=1)
    for row, state in enumerate(search.problems):
        _, initial = naive_initial(decoder, numbers[row].tolist())
        valid = [[position for position in each[row].tolist() if position >= 0] for each in (numbers, questions)]
        naive = NaiveAthena(decoder, states[row], *valid)
        with torch.no_grad():
            pool, rounds = naive.search(initial, 4, 0.55, 0.7)
        thoughts = [
            search.maker.vocabulary.decode(search.table.prefix(each, search.maker.vocabulary))
            for each in state.expansion.pool
        ]
        assert [each.canonical() for each in thoughts] == [infix(each).canonical() for each in pool]
        assert state.expansion.round == len(rounds)
        answering = torch.tensor(state.answering, dtype=torch.double)
        torch.testing.assert_close(answering, torch.stack(naive.answers), rtol=0, atol=1e-9)
        best = thoughts[max(range(len(pool)), key=lambda place: (naive.answers[place], -place))]
        assert search.maker.vocabulary.decode(found.sequences[row, 0].tolist()) == best
    assert found.finished.all() and not found.capped.any()


def infix(thought):
    """A thought of the twin as an expression, by its definition."""
    kind, *children = thought
    if kind == "NUM":
        return Expression(f"N{children[0]}")
    if kind == "CON":
        return Expression(str(float(children[0])) if children[0].denominator > 1 else str(children[0]))
    if kind in ("ADD", "MUL"):
        sign, inverse, undo = ("+", "NEG", "-") if kind == "ADD" else ("*", "INV", "/")
        tree = None
        for child in sorted(children, key=lambda each: each[0] == inverse):
            taken = child[0] == inverse
            term = infix(child[1]) if taken else infix(child)
            if tree is None:
                tree = (
                    Expression("-" if kind == "ADD" else "/", Expression("01"[kind == "MUL"]), term) if taken else term
                )
            else:
                tree = Expression(undo if taken else sign, tree, term)
        return tree
    left, sign, right = {
        "NEG": ("0", "-", None), "INV": ("1", "/", None), "HALF": (None, "/", "2"), "ROOT": (None, "^", "0.5")
    }[kind]  # fmt: skip
    inner = infix(children[0])
    return Expression(sign, Expression(left) if left else inner, Expression(right) if right else inner)
