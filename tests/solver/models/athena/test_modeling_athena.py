"""The batched decoder against the naive one, limits of the search, and its configuration."""

from types import SimpleNamespace

import pytest
import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import BertConfig

from hf_mwp.runtime.expressions import Expression
from hf_mwp.solver.models.athena import AthenaCollator, AthenaConfig, AthenaModel, PlanBatch
from hf_mwp.solver.models.athena.gold_plan import PlanMaker
from hf_mwp.solver.models.athena.thought_search import ThoughtSearch
from tests.slow_parameters import slow_after
from tests.solver.models.athena.naive_athena import NaiveAthena, gold, naive_form, read
from tests.test_meta_device import META, OnMeta
from tests.tiny import tiny_processor


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


def random_states(count):
    return torch.randn(count, 9, 16, dtype=torch.double)


def encode(decoder, equation):
    return PlanMaker(decoder.config).vocabulary.encode(Expression.from_infix(equation))


def make_plans(decoder, equations, numbers=NUMBERS):
    maker = PlanMaker(decoder.config)
    plans = []
    for equation, row in zip(equations, numbers, strict=False):
        plans.append(maker.make(encode(decoder, equation), row.tolist(), range(len(row))))
    return PlanBatch(plans, numbers.shape[1])


def train(decoder, equations):
    """The output for the first equations."""
    count = len(equations)
    inputs = {"question_positions": QUESTIONS[:count], "plans": make_plans(decoder, equations, NUMBERS[:count])}
    return decoder(random_states(count), None, NUMBERS[:count], **inputs)


def run_search(decoder, states, numbers=NUMBERS[:2], num_beams=1, max_length=45, groups=None, questions=None):
    """The search, which has the state of each problem, and its result with an expression for each beam."""
    projected = decoder.input_projection(states)
    goals = decoder.goals(projected, None, questions)
    search = ThoughtSearch(decoder, projected, numbers, groups, goals, num_beams)
    return search, search.run(max_length, num_beams)


def naive_problem(decoder, state, numbers, questions):
    """The naive decoder of one problem, and its initial thoughts."""
    values = {literal: Expression(literal).evaluate() for literal in decoder.config.initial_constants}
    positions = numbers[numbers >= 0].tolist()
    initial = [("NUM", slot) for slot in range(len(positions))]
    initial += [("CON", value) for value in values.values()]
    return NaiveAthena(decoder, state, positions, questions[questions >= 0].tolist()), initial, values


def assert_close(actual, expected):
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("fields", slow_after(1, VARIANTS), ids=str)
def test_outputs_and_gradients_equal_those_of_the_naive_decoder(fields):
    decoder = new_decoder(**fields)
    states = random_states(len(EQUATIONS)).requires_grad_()
    plans = make_plans(decoder, EQUATIONS)
    output = decoder(states, torch.ones(states.shape[:2]), NUMBERS, question_positions=QUESTIONS, plans=plans)

    total = 0
    num_judged = 0
    for row, equation in enumerate(EQUATIONS):
        naive, initial, values = naive_problem(decoder, states[row], NUMBERS[row], QUESTIONS[row])
        node = read(Expression.from_infix(equation), values)
        pool, rounds = gold(initial, node, decoder.config.gold == "subsets")
        loss, count = naive.loss(rounds, pool.index(node.thought))
        total = total + loss
        num_judged += count
        # The candidates of the problem in the order of expansion.
        order = (plans.problems == row).nonzero().squeeze(1)
        order = order[plans.judged[order].argsort()]
        assert_close(output.logits[row, : len(order)], torch.cat(naive.logits))
        assert_close(output.answer_logits[row, : len(pool)], naive.answers())
        assert_close(output.embeddings[order], torch.cat(naive.embeddings))
        assert_close(output.contexts[order], torch.cat(naive.contexts))
        assert (output.logits[row, len(order) :] < -1e30).all()
    total = total / (num_judged if decoder.config.loss_normalization == "thoughts" else len(EQUATIONS))
    assert_close(output.loss, total)
    inputs = [states, *decoder.parameters()]
    options = {"allow_unused": True, "materialize_grads": True}
    assert_close(torch.autograd.grad(output.loss, inputs, **options), torch.autograd.grad(total, inputs, **options))


@pytest.mark.parametrize("seed", slow_after(1, [1, 2]))
@pytest.mark.parametrize("fields", [fields for fields in VARIANTS if "gold" not in fields], ids=str)
@torch.no_grad()
def test_search_equals_that_of_the_naive_decoder(fields, seed):
    limits = {"threshold": 0.55, "strength": 0.7, "max_depth": 4, "max_thoughts": 0, "max_candidates": 0}
    decoder = new_decoder(seed, **limits | {"constants": ["3.14"]} | fields).eval()
    # Keeps pools small enough for the naive decoder: 1 to 70 thoughts after 1 to 4 rounds.
    torch.nn.init.constant_(decoder.reason.score.bias, -0.2)
    numbers = torch.tensor([[3], [1]])
    states = random_states(2)
    search, result = run_search(decoder, states, numbers, max_length=1000, questions=QUESTIONS[:2])
    for row, state in enumerate(search.problems):
        naive, initial, values = naive_problem(decoder, states[row], numbers[row], QUESTIONS[row])
        expected, rounds = naive.search(initial, 4, 0.55, 0.7)
        pool = state.expansion.pool
        assert [naive_form(search.table, thought, [*values.values()]) for thought in pool] == expected
        assert state.expansion.round == len(rounds)
        answers = naive.answers()
        assert_close(torch.tensor(state.answering, dtype=torch.double), answers)
        best = search.table.prefix(pool[answers.argmax()], search.maker.vocabulary)
        assert symbols_of(result.sequences[row, 0]) == best
    assert result.finished.all()
    assert not result.capped.any()


@pytest.mark.parametrize("fields", slow_after(3, VARIANTS), ids=str)
@pytest.mark.parametrize("has_targets", [True, False])
def test_all_parameters_get_a_gradient_whatever_the_targets(fields, has_targets):
    decoder = new_decoder(**fields)
    plans = make_plans(decoder, ["N0", "N1"], NUMBERS[:2]) if has_targets else PlanBatch([None, None], 3)
    loss = decoder(random_states(2), None, NUMBERS[:2], question_positions=QUESTIONS[:2], plans=plans).loss
    loss.backward()
    assert all(parameter.grad is not None for parameter in decoder.parameters())
    assert (loss > 0) == has_targets


def test_problem_without_a_plan_changes_nothing_for_the_others():
    decoder = new_decoder(loss_normalization="thoughts")
    states = random_states(3)
    maker = PlanMaker(decoder.config)
    first = maker.make(encode(decoder, EQUATIONS[0]), [1, 2, 3])
    second = maker.make(encode(decoder, EQUATIONS[1]), [1, 2, 3])
    expected = decoder(states[:2], None, NUMBERS[:2], plans=PlanBatch([first, second], 3))
    plans = PlanBatch([first, None, second], 3)
    output = decoder(states[[0, 2, 1]], None, NUMBERS[[0, 3, 1]], plans=plans)
    torch.testing.assert_close(output.loss, expected.loss)
    torch.testing.assert_close(output.logits[[0, 2]], expected.logits)
    assert plans.skipped == 1
    assert (output.answer_logits[1] < -1e30).all()


def test_problems_may_have_no_numbers():
    decoder = new_decoder().eval()
    numbers = torch.zeros(2, 0, dtype=torch.long)
    states = random_states(2)
    plans = make_plans(decoder, ["3.14*2", "1+3.14"], numbers)
    assert decoder(states, None, numbers, plans=plans).loss.isfinite()
    assert decoder.generate(states, None, numbers).finished.all()
    result = new_decoder(constants=[]).eval().generate(states)
    assert not result.finished.any()
    assert (result.sequences == -100).all()
    assert (result.scores == -torch.inf).all()


def test_plans_of_another_batch_are_refused():
    decoder = new_decoder()
    for plans in (None, make_plans(decoder, EQUATIONS[:1], NUMBERS[:1])):
        with pytest.raises(ValueError, match="make_collator"):
            decoder(random_states(2), None, NUMBERS[:2], plans=plans)


def test_limits_end_the_expansion_and_are_reported():
    decoder = new_decoder(threshold=0.0, strength=1.0, max_thoughts=20, max_candidates=50).eval()
    states = random_states(2)
    search, result = run_search(decoder, states)
    assert result.capped.all()
    assert result.finished.all()
    for state in search.problems:
        # The most probable candidates joined in the round that filled the pool.
        assert len(state.expansion.pool) == len(state.answering) == 20
    decoder.config.max_thoughts = 0
    decoder.config.max_depth = 2
    assert not decoder.generate(states, None, NUMBERS[:2]).capped.any()


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_limit_of_thoughts_holds_for_initial_thoughts(threshold):
    decoder = new_decoder(threshold=threshold, strength=1.0, max_thoughts=2).eval()
    search, result = run_search(decoder, random_states(2))
    assert result.capped.all()
    assert result.finished.all()
    assert [len(state.expansion.pool) for state in search.problems] == [2, 2]


def symbols_of(ids):
    return ids[ids >= 0].tolist()


def test_beams_are_the_thoughts_with_the_best_path_scores():
    decoder = new_decoder(max_depth=3, beam_threshold=0.45, strength=0.0).eval()
    states = random_states(2)
    # With one beam the first round is strong enough already.
    assert decoder.generate(states, None, NUMBERS[:2]).sequences.shape[-1] == 1
    search, result = run_search(decoder, states, num_beams=4)
    generated = decoder.generate(states, None, NUMBERS[:2], num_beams=4, num_return_sequences=4)
    assert torch.equal(result.sequences, generated.sequences)
    assert torch.equal(result.scores, generated.scores)
    vocabulary = search.maker.vocabulary
    for row, state in enumerate(search.problems):
        pool = state.expansion.pool
        assert len(pool) > 6
        # The nodes of a thought are those of its operands and itself, each once.
        scores = torch.tensor(state.answering, dtype=torch.double).sigmoid().log()
        scores += torch.tensor([sum(state.reasoning[node] for node in nodes) for nodes in state.nodes])
        best = scores.log_softmax(0).topk(4)
        torch.testing.assert_close(result.scores[row].double(), best.values, rtol=0, atol=1e-5)
        for place, ids in zip(best.indices, result.sequences[row], strict=True):
            assert symbols_of(ids) == search.table.prefix(pool[place], vocabulary)
    decoder.config.ranking = "answer"
    result = decoder.generate(states, None, NUMBERS[:2], num_beams=4)
    for state, ids in zip(search.problems, result.sequences[:, 0], strict=True):
        best = state.expansion.pool[state.answering.index(max(state.answering))]
        assert symbols_of(ids) == search.table.prefix(best, vocabulary)


@pytest.mark.parametrize("max_length", [1, 3])
def test_longer_answers_are_left_out(max_length):
    decoder = new_decoder(max_depth=4, strength=1.0, threshold=0.4).eval()
    _, result = run_search(decoder, random_states(2), num_beams=8, max_length=max_length)
    assert ((result.sequences >= 0).sum(-1) <= max_length).all()


def test_more_sequences_than_beams_are_refused():
    with pytest.raises(ValueError, match="num_return_sequences"):
        new_decoder().eval().generate(random_states(2), num_return_sequences=2)


@pytest.mark.parametrize(("merge_numbers", "slots"), [(True, [0, 1]), (False, [0, 1, 2])])
def test_equal_numbers_are_one_thought_if_they_are_merged(merge_numbers, slots):
    decoder = new_decoder(max_depth=1, merge_numbers=merge_numbers).eval()
    groups = torch.tensor([[0, 1, 0, -1]])
    search, _ = run_search(decoder, random_states(1), torch.tensor([[2, 4, 7, -1]]), groups=groups)
    assert search.problems[0].sources[: len(slots)] == slots
    assert len(search.problems[0].sources) == len(slots) + len(CONSTANTS)


def test_search_is_as_deep_as_the_deepest_training_target():
    decoder = new_decoder(strength=1.0, threshold=0.0, max_thoughts=200).eval()
    train(decoder, ["N0+N1", "N1"])
    assert decoder.deepest_target == 0
    train(decoder.train(), ["N0+N1", "N1"])
    assert decoder.deepest_target == 3
    search, _ = run_search(decoder.eval(), random_states(2))
    assert [state.expansion.round for state in search.problems] == [3, 3]


def test_deepest_target_of_all_processes_counts(monkeypatch):
    def all_reduce(value, operation):
        assert operation == torch.distributed.ReduceOp.MAX
        value.clamp_(min=5)

    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "all_reduce", all_reduce)
    decoder = new_decoder().eval()
    train(decoder, ["N0+N1", "N1"])
    assert decoder.deepest_target == 0
    train(decoder.train(), ["N0+N1", "N1"])
    assert decoder.deepest_target == 5


def test_added_constants_are_initial_thoughts():
    decoder = new_decoder()
    constants = [*CONSTANTS, "0", "0.5"]
    assert decoder.config.constants == constants
    before = decoder.constants.weight.detach().clone()
    decoder.set_constants([*constants, "7"])
    assert decoder.config.initial_constants == [*CONSTANTS, "7"]
    assert torch.equal(decoder.constants.weight[:3], before)
    assert len(decoder.constants.weight) == 4
    assert train(decoder, ["N0+7"]).loss.isfinite()
    with pytest.raises(ValueError, match="begin with"):
        decoder.set_constants(["7"])
    # 0 becomes an initial thought too, 0.5 stays a constant that is only written.
    decoder.set_constants([*constants, "7", "8"], used=["0", "1"])
    assert decoder.config.initial_constants == [*CONSTANTS, "7", "0", "8"]
    assert len(decoder.constants.weight) == 6
    assert train(decoder, ["N0+0"]).loss.isfinite()


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"norm": "both"}, "'norm'"),
        ({"num_attention_heads": 5}, "multiple"),
        ({"transforms": ["NEG", "NEG"]}, "`transforms`"),
        ({"operators": ["+", "*"]}, "`operators`"),
        ({"initial_constants": ["9"]}, "not among"),
        ({"max_thoughts": -1}, "`max_thoughts`"),
        ({"strength": 95}, "`strength`.* 95"),
        ({"beam_threshold": -0.1}, "`beam_threshold`"),
    ],
)
def test_impossible_configurations_are_refused(fields, message):
    with pytest.raises(StrictDataclassError, match=message):
        new_decoder(**fields)


def test_sizes_are_those_of_the_encoder():
    sizes = AthenaModel.sizes_for(BertConfig(hidden_size=48, num_attention_heads=6, intermediate_size=100))
    expected = {"hidden_size": 48, "encoder_hidden_size": 48, "num_attention_heads": 6, "intermediate_size": 100}
    assert sizes == expected
    pruned = SimpleNamespace(hidden_size=20, num_attention_heads=[3, 2], intermediate_size=[8, 9])
    assert AthenaModel.sizes_for(pruned)["num_attention_heads"] == 10


def test_targets_that_are_not_thoughts_are_named_and_counted():
    decoder = new_decoder()
    row = {"number_positions": [1, 2], "number_groups": [0, 1], "number_values": ["5/2", "7"]}
    row["labels"] = encode(decoder, "N0^N1")
    assert "N1 = 7" in decoder.target_error(row)
    assert decoder.target_error(row | {"number_values": ["5/2", "3"]}) is None
    processor = tiny_processor()
    processor.vocabulary = decoder.vocabulary
    collator = AthenaCollator(processor, decoder.config)
    assert collator.plan(row) is None
    assert collator.plan(row) is None
    ((reason, count),) = collator.skipped.items()
    assert "N1 = 7" in reason
    assert count == 1  # as the row is the same


@pytest.mark.parametrize("fields", slow_after(1, [VARIANTS[0], VARIANTS[-1]]), ids=str)
def test_training_step_waits_for_no_device(fields):
    decoder = new_decoder(**fields | {"dropout": 0.1})
    inputs = {"question_positions": QUESTIONS.to(META), "plans": make_plans(decoder, EQUATIONS).to(META)}
    decoder = decoder.to(META).train()
    optimizer = torch.optim.AdamW(decoder.parameters())
    states = random_states(len(EQUATIONS)).to(META)
    mask = torch.ones(len(EQUATIONS), 9).to(META)
    numbers = NUMBERS.to(META)
    with OnMeta():
        loss = decoder(states, mask, numbers, **inputs).loss
        assert loss.shape == ()
        assert loss.device == META
        loss.backward()
        optimizer.step()


@pytest.mark.slow
def test_mixed_precision_is_close_to_full_precision():
    decoder = new_decoder().float()
    inputs = {
        "encoder_hidden_states": random_states(len(EQUATIONS)).float(),
        "number_positions": NUMBERS,
        "question_positions": QUESTIONS,
    }
    plans = make_plans(decoder, EQUATIONS)
    loss = decoder(plans=plans, **inputs).loss
    with torch.autocast("cpu", torch.bfloat16):
        mixed_loss = decoder(plans=plans, **inputs).loss
        result = decoder.eval().generate(**inputs)
    mixed_loss.backward()
    assert mixed_loss.dtype == torch.float32
    assert mixed_loss.item() == pytest.approx(loss.item(), rel=0.02)
    assert result.finished.all()
    assert result.scores.dtype == torch.float32
