"""The batched decoder against the naive one, and what each must keep to."""

from types import SimpleNamespace

import pytest
import torch
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoModel, BertConfig

from hf_mwp.runtime.expressions import Expression
from hf_mwp.solver.models.athena import AthenaCollator, AthenaConfig, AthenaModel, PlanBatch
from hf_mwp.solver.models.athena.gold_plan import PlanMaker
from hf_mwp.solver.models.athena.thought_search import ThoughtSearch
from tests.solver.models.athena.naive_athena import NaiveAthena, gold, infix, read
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
    output = decoder(states, mask, NUMBERS, question_positions=QUESTIONS, plans=plans)
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
        assert len(order) == len(naive.kept)
        for ours, theirs in [
            (output.logits[row, : len(order)], naive.logits),
            (output.answer_logits[row, : len(pool)], [naive.answers()]),
            (output.embeddings[order], naive.embeddings),
            (output.contexts[order], naive.contexts),
        ]:
            torch.testing.assert_close(ours, torch.cat(theirs), rtol=0, atol=1e-9)
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
        projected = decoder.input_projection(states)
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
        torch.testing.assert_close(answering, naive.answers(), rtol=0, atol=1e-9)
        best = thoughts[max(range(len(pool)), key=lambda place: (naive.answers()[place], -place))]
        assert search.maker.vocabulary.decode(found.sequences[row, 0].tolist()) == best
    assert found.finished.all() and not found.capped.any()


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
@pytest.mark.parametrize("equations", [["N0", "N1"], None])
def test_every_parameter_has_a_gradient_whatever_the_targets(fields, equations):
    decoder = new_decoder(**fields)
    plans = batch_of(decoder, equations, NUMBERS[:2]) if equations else PlanBatch([None, None], 3)
    states = torch.randn(2, 9, 16, dtype=torch.double)
    loss = decoder(states, None, NUMBERS[:2], question_positions=QUESTIONS[:2], plans=plans).loss
    loss.backward()
    assert all(parameter.grad is not None for parameter in decoder.parameters())
    assert (loss > 0) == bool(equations)


def test_the_query_of_a_single_goal_has_no_gradient():
    decoder = new_decoder()
    states = torch.randn(2, 9, 16, dtype=torch.double)
    plans = batch_of(decoder, EQUATIONS[:2], NUMBERS[:2])
    decoder(states, None, NUMBERS[:2], question_positions=QUESTIONS[:2], plans=plans).loss.backward()
    judge = decoder.answer
    for parameter in (*judge.query.parameters(), *judge.norm.parameters()):
        assert (parameter.grad == 0).all()
    key, value = judge.key_value.weight.grad.chunk(2)
    assert (key == 0).all() and (value != 0).any()


def test_a_problem_without_a_plan_changes_nothing_for_the_others():
    decoder = new_decoder(loss_normalization="thoughts")
    states = torch.randn(3, 9, 16, dtype=torch.double)
    maker = PlanMaker(decoder.config)
    plans = [maker.make(maker.vocabulary.encode(Expression.from_infix(each)), [1, 2, 3]) for each in EQUATIONS[:2]]
    both = decoder(states[:2], None, NUMBERS[:2], plans=PlanBatch(plans, 3))
    with_skipped = PlanBatch([plans[0], None, plans[1]], 3)
    output = decoder(states[[0, 2, 1]], None, NUMBERS[[0, 3, 1]], plans=with_skipped)
    torch.testing.assert_close(output.loss, both.loss)
    torch.testing.assert_close(output.logits[[0, 2]], both.logits)
    assert with_skipped.skipped == 1 and (output.answer_logits[1] < -1e30).all()


def test_problems_without_numbers():
    decoder = new_decoder().eval()
    none = torch.zeros(2, 0, dtype=torch.long)
    states = torch.randn(2, 9, 16, dtype=torch.double)
    output = decoder(states, None, none, plans=batch_of(decoder, ["3.14*2", "1+3.14"], none))
    assert output.loss.isfinite()
    assert decoder.generate(states, None, none).finished.all()
    empty = new_decoder(constants=[]).eval().generate(states)
    assert not empty.finished.any() and (empty.sequences == -100).all() and (empty.scores == -torch.inf).all()


def test_plans_of_another_batch_are_refused():
    decoder = new_decoder()
    for plans in (None, batch_of(decoder, EQUATIONS[:1], NUMBERS[:1])):
        with pytest.raises(ValueError, match="make_collator"):
            decoder(torch.randn(2, 9, 16, dtype=torch.double), None, NUMBERS[:2], plans=plans)


def test_caps_end_the_expansion_of_untrained_weights_and_are_told():
    decoder = new_decoder(threshold=0.0, strength=1.0, max_thoughts=20, max_candidates=50).eval()
    numbers, states = NUMBERS[:2], torch.randn(2, 9, 16, dtype=torch.double)
    found = decoder.generate(states, None, numbers)
    assert found.capped.all() and found.finished.all()
    search = ThoughtSearch(decoder, states, numbers, None, decoder.goals(states, None, None), 1)
    search.run(45, 1)
    for state in search.problems:
        # In the round that filled the pool, the candidates with the largest probabilities joined.
        assert len(state.expansion.pool) == 20 == len(state.answering)
    decoder.config.max_thoughts, decoder.config.max_depth = 0, 2
    assert not decoder.generate(states, None, numbers).capped.any()


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_the_cap_of_thoughts_holds_for_the_initial_ones_too(threshold):
    decoder = new_decoder(threshold=threshold, strength=1.0, max_thoughts=2).eval()
    numbers, states = NUMBERS[:2], torch.randn(2, 9, 16, dtype=torch.double)
    search = ThoughtSearch(decoder, states, numbers, None, decoder.goals(states, None, None), 1)
    found = search.run(45, 1)
    assert found.capped.all() and found.finished.all()
    assert [len(state.expansion.pool) for state in search.problems] == [2, 2]


def test_beams_are_the_pool_by_path_score():
    decoder = new_decoder(max_depth=3, beam_threshold=0.45, strength=0.0).eval()
    numbers, states = NUMBERS[:2], torch.randn(2, 9, 16, dtype=torch.double)
    # With one beam the first round is strong enough already.
    assert decoder.generate(states, None, numbers).sequences.shape[-1] == 1
    search = ThoughtSearch(decoder, states, numbers, None, decoder.goals(states, None, None), 4)
    found = search.run(45, 4)
    again = decoder.generate(states, None, numbers, num_beams=4, num_return_sequences=4)
    assert torch.equal(found.sequences, again.sequences) and torch.equal(found.scores, again.scores)
    vocabulary = PlanMaker(decoder.config).vocabulary
    for row, state in enumerate(search.problems):
        pool = state.expansion.pool
        assert len(pool) > 6
        scores = [state.path_score(place) for place in range(len(pool))]
        for place in range(len(pool)):
            # The nodes of a thought are those of its operands and itself, each once.
            own = sum(state.reasoning[node] for node in state.nodes[place])
            answering = torch.tensor(state.answering[place], dtype=torch.double)
            assert scores[place] == pytest.approx(own + torch.nn.functional.logsigmoid(answering).item())
        shares = torch.tensor(scores).double().log_softmax(0)
        best = sorted(range(len(pool)), key=lambda place: -scores[place])[:4]
        torch.testing.assert_close(found.scores[row].double(), shares[best].double(), rtol=0, atol=1e-5)
        for place, ids in zip(best, found.sequences[row].tolist(), strict=True):
            assert [symbol for symbol in ids if symbol >= 0] == search.table.prefix(pool[place], vocabulary)
    decoder.config.ranking = "answer"
    ranked = ThoughtSearch(decoder, states, numbers, None, decoder.goals(states, None, None), 4)
    ranked.run(45, 1)
    for state, ids in zip(
        ranked.problems, decoder.generate(states, None, numbers, num_beams=4).sequences, strict=True
    ):
        best = max(range(len(state.answering)), key=state.answering.__getitem__)
        assert [symbol for symbol in ids[0].tolist() if symbol >= 0] == ranked.table.prefix(
            state.expansion.pool[best], vocabulary
        )


def test_answers_longer_than_asked_are_passed_over():
    decoder = new_decoder(max_depth=4, strength=1.0, threshold=0.4).eval()
    states = torch.randn(2, 9, 16, dtype=torch.double)
    for length in (1, 3):
        found = decoder.generate(states, None, NUMBERS[:2], num_beams=8, max_length=length, num_return_sequences=8)
        assert ((found.sequences >= 0).sum(-1) <= length).all()
    with pytest.raises(ValueError, match="num_return_sequences"):
        decoder.generate(states, num_return_sequences=2)


def test_equal_numbers_are_one_thought_of_the_search():
    decoder = new_decoder(max_depth=1).eval()
    states, numbers = torch.randn(1, 9, 16, dtype=torch.double), torch.tensor([[2, 4, 7, -1]])
    goals = decoder.goals(states, None, None)
    for fields, slots in [({}, [0, 1]), ({"merge_numbers": False}, [0, 1, 2])]:
        decoder.config.merge_numbers = fields.get("merge_numbers", True)
        search = ThoughtSearch(decoder, states, numbers, torch.tensor([[0, 1, 0, -1]]), goals, 1)
        assert search.problems[0].sources[: len(slots)] == slots
        assert len(search.problems[0].sources) == len(slots) + len(CONSTANTS)


def test_the_depth_limit_is_that_of_the_training_targets():
    decoder = new_decoder(strength=1.0, threshold=0.0, max_thoughts=200)
    states = torch.randn(2, 9, 16, dtype=torch.double)
    plans = batch_of(decoder, ["N0+N1", "N1"], NUMBERS[:2])
    decoder.eval()(states, None, NUMBERS[:2], plans=plans)
    assert decoder.deepest_target == 0
    decoder.train()(states, None, NUMBERS[:2], plans=plans)
    assert decoder.deepest_target == plans.rounds == 3
    search = ThoughtSearch(decoder.eval(), states, NUMBERS[:2], None, decoder.goals(states, None, None), 1)
    search.run(45, 1)
    assert [state.expansion.round for state in search.problems] == [3, 3]


def test_the_deepest_target_of_all_processes_counts(monkeypatch):
    decoder, states = new_decoder(), torch.randn(2, 9, 16, dtype=torch.double)
    plans = batch_of(decoder, ["N0+N1", "N1"], NUMBERS[:2])

    def of_another_process(value, operation):
        assert operation == torch.distributed.ReduceOp.MAX
        value.clamp_(min=5)

    monkeypatch.setattr(torch.distributed, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.distributed, "all_reduce", of_another_process)
    decoder.eval()(states, None, NUMBERS[:2], plans=plans)
    assert decoder.deepest_target == 0
    decoder.train()(states, None, NUMBERS[:2], plans=plans)
    assert decoder.deepest_target == 5


def test_saved_and_loaded_it_is_the_same(tmp_path):
    decoder = new_decoder().float().eval()
    decoder.deepest_target.fill_(3)
    decoder.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert type(loaded) is AthenaModel and loaded.config.initial_constants == CONSTANTS
    states = torch.randn(2, 9, 16)
    assert torch.equal(
        loaded.generate(states, None, NUMBERS[:2]).sequences, decoder.generate(states, None, NUMBERS[:2]).sequences
    )


def test_further_constants_are_initial_thoughts():
    decoder = new_decoder()
    known = list(decoder.config.constants)
    assert known == [*CONSTANTS, "0", "0.5"]
    old = decoder.constants.weight.detach().clone()
    decoder.set_constants([*known, "7"])
    assert decoder.config.initial_constants == [*CONSTANTS, "7"]
    assert torch.equal(decoder.constants.weight[:3], old) and len(decoder.constants.weight) == 4
    states = torch.randn(1, 9, 16, dtype=torch.double)
    assert decoder(states, None, NUMBERS[:1], plans=batch_of(decoder, ["N0+7"], NUMBERS[:1])).loss.isfinite()
    with pytest.raises(ValueError, match="begin with"):
        decoder.set_constants(["7"])
    # 0 becomes an initial thought too, 0.5 stays a constant that is only written.
    decoder.set_constants([*known, "7", "8"], used=["0", "1"])
    assert decoder.config.initial_constants == [*CONSTANTS, "7", "0", "8"] and len(decoder.constants.weight) == 6
    assert decoder(states, None, NUMBERS[:1], plans=batch_of(decoder, ["N0+0"], NUMBERS[:1])).loss.isfinite()


@pytest.mark.parametrize(
    ("fields", "told"),
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
def test_configurations_that_cannot_be(fields, told):
    with pytest.raises(StrictDataclassError, match=told):
        new_decoder(**fields)


def test_sizes_are_those_of_the_encoder():
    sizes = AthenaModel.sizes_for(BertConfig(hidden_size=48, num_attention_heads=6, intermediate_size=100))
    assert sizes == {
        "hidden_size": 48, "encoder_hidden_size": 48, "num_attention_heads": 6, "intermediate_size": 100
    }  # fmt: skip
    pruned = SimpleNamespace(hidden_size=20, num_attention_heads=[3, 2], intermediate_size=[8, 9])
    assert AthenaModel.sizes_for(pruned)["num_attention_heads"] == 10


def test_targets_that_are_no_thoughts_are_named_and_counted():
    decoder = new_decoder()
    vocabulary = PlanMaker(decoder.config).vocabulary
    row = {"number_positions": [1, 2], "number_groups": [0, 1], "number_values": ["5/2", "7"]}
    row["labels"] = vocabulary.encode(Expression.from_infix("N0^N1"))
    assert "N1 = 7" in decoder.target_error(row)
    assert decoder.target_error(row | {"number_values": ["5/2", "3"]}) is None
    processor = tiny_processor()
    processor.vocabulary = vocabulary
    collator = AthenaCollator(processor, decoder.config)
    assert collator.plan(row) is None and collator.plan(row) is None
    assert [("N1 = 7" in reason, count) for reason, count in collator.skipped.items()] == [(True, 1)]


@pytest.mark.parametrize("fields", VARIANTS, ids=str)
def test_a_training_step_waits_for_no_device(fields):
    decoder = new_decoder(**fields | {"dropout": 0.1})
    plans = batch_of(decoder, EQUATIONS).to(META)
    decoder = decoder.to(META).train()
    states, mask, numbers, questions = (
        each.to(META) for each in (torch.randn(len(EQUATIONS), 9, 16).double(), torch.ones(8, 9), NUMBERS, QUESTIONS)
    )
    optimizer = torch.optim.AdamW(decoder.parameters())
    with OnMeta():
        loss = decoder(states, mask, numbers, question_positions=questions, plans=plans).loss
        assert loss.shape == () and loss.device == META
        loss.backward()
        optimizer.step()


def test_mixed_precision_is_close_to_full_precision():
    decoder = new_decoder().float()
    states, plans = torch.randn(len(EQUATIONS), 9, 16), batch_of(decoder, EQUATIONS)
    inputs = {"number_positions": NUMBERS, "question_positions": QUESTIONS}
    full = decoder(states, plans=plans, **inputs).loss
    with torch.autocast("cpu", torch.bfloat16):
        mixed = decoder(states, plans=plans, **inputs)
        found = decoder.eval().generate(states, **inputs)
    mixed.loss.backward()
    assert mixed.loss.dtype == torch.float32 and mixed.loss.item() == pytest.approx(full.item(), rel=0.02)
    assert found.finished.all() and found.scores.dtype == torch.float32
