from dataclasses import dataclass

import pytest
import torch
from torch.nn.functional import cross_entropy, pad

from hf_mwp.solver.batches.tree_batch import TreeBatch
from hf_mwp.solver.models.gts import GTSConfig, GTSDecoder
from tests.slow_parameters import slow_after
from tests.solver.models.naive_gts import NaiveGTS


NUM_OPERATORS = 5


@dataclass
class Case:
    """A decoder with its padded inputs, and a tree for each problem."""

    decoder: GTSDecoder
    states: torch.Tensor
    mask: torch.Tensor
    positions: torch.Tensor
    trees: list

    @property
    def labels(self):
        labels = torch.full((len(self.trees), max(map(len, self.trees))), -100)
        for row, ids in enumerate(self.trees):
            labels[row, : len(ids)] = torch.tensor(ids)
        return labels

    def score(self, **inputs):
        return self.decoder(self.states, self.mask, self.positions, **inputs)

    def search(self, num_beams=1, max_length=9, **options):
        return self.decoder.generate(self.states, self.mask, self.positions, num_beams, max_length, **options)

    def naive(self, row):
        positions = self.positions[row]
        return NaiveGTS(self.decoder, self.states[row, self.mask[row] > 0], positions[positions >= 0])


def random_tree(generator, leaves, depth=0):
    """A random prefix sequence with operators `0` to `4` and the given leaf ids."""
    if depth > 4 or torch.rand((), generator=generator) < 0.25 + 0.15 * depth:
        return [leaves[int(torch.randint(len(leaves), (), generator=generator))]]
    operator = int(torch.randint(NUM_OPERATORS, (), generator=generator))
    left = random_tree(generator, leaves, depth + 1)
    right = random_tree(generator, leaves, depth + 1)
    return [operator, *left, *right]


def make_case(seed, batch=4, encoder_width=12, constants=2, root_goal="cls"):
    """A random decoder in evaluation mode with random inputs."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    config = GTSConfig(
        hidden_size=12,
        encoder_hidden_size=encoder_width,
        operator_embedding_size=5,
        constants=["1", "2"][:constants],
        root_goal=root_goal,
    )
    decoder = GTSDecoder(config).eval()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    lengths = torch.randint(3, 9, (batch,), generator=generator)
    num_numbers = torch.randint(0 if constants else 1, 4, (batch,), generator=generator).tolist()
    states = torch.randn(batch, int(lengths.max()), encoder_width, generator=generator)
    mask = (torch.arange(states.shape[1]) < lengths.unsqueeze(1)).long()
    positions = torch.full((batch, max(1, *num_numbers)), -1)
    trees = []
    for row, count in enumerate(num_numbers):
        positions[row, :count] = torch.randperm(int(lengths[row]), generator=generator)[:count]
        leaves = range(NUM_OPERATORS, NUM_OPERATORS + constants + count)
        trees.append(random_tree(generator, leaves))
    return Case(decoder, states, mask, positions, trees)


CASES = [
    {"seed": 0},
    {"seed": 1, "batch": 1},
    {"seed": 2, "batch": 9, "root_goal": "mean"},
    {"seed": 3, "encoder_width": 7},
    {"seed": 4, "constants": 0, "batch": 6},
]


def gradients_of(loss, case):
    """The gradients of the states and of all parameters."""
    inputs = [case.states, *case.decoder.parameters()]
    return torch.autograd.grad(loss, inputs, allow_unused=True, materialize_grads=True)


@pytest.mark.parametrize("fields", slow_after(3, CASES), ids=str)
def test_logits_loss_and_gradients_equal_those_of_the_naive_decoder(fields):
    case = make_case(**fields)
    case.states.requires_grad_()
    output = case.score(labels=case.labels)
    loss = 0
    for row, ids in enumerate(case.trees):
        scores = case.naive(row).score_tree(ids)
        num_symbols = scores.shape[1]
        torch.testing.assert_close(output.logits[row, : len(ids), :num_symbols], scores, rtol=1e-4, atol=1e-5)
        assert (output.logits[row, : len(ids), num_symbols:] == torch.finfo(torch.float32).min).all()
        loss = loss + cross_entropy(scores, torch.tensor(ids), reduction="sum") / len(case.trees)
    torch.testing.assert_close(output.loss, loss, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(gradients_of(output.loss, case), gradients_of(loss, case), rtol=1e-3, atol=1e-5)


def symbols_of(ids):
    return ids[ids >= 0].tolist()


@pytest.mark.parametrize(("num_beams", "max_length"), [(1, 9), (2, 9), (5, 9), (3, 1), (3, 4)])
@pytest.mark.parametrize("fields", slow_after(2, CASES), ids=str)
def test_beams_equal_those_of_the_naive_search(fields, num_beams, max_length):
    case = make_case(**fields)
    with torch.no_grad():
        output = case.search(num_beams, max_length, num_return_sequences=num_beams)
        best = case.search(num_beams, max_length)
        for row in range(len(case.states)):
            expected = case.naive(row).search(num_beams, max_length)
            finished = output.finished[row]
            assert [symbols_of(ids) for ids in output.sequences[row, finished]] == [ids for _, ids in expected]
            expected_scores = [score for score, _ in expected]
            assert output.scores[row, finished].tolist() == pytest.approx(expected_scores, abs=1e-4)
            assert symbols_of(best.sequences[row, 0]) == symbols_of(output.sequences[row, 0])


@pytest.mark.parametrize("score_margin", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("fields", slow_after(2, CASES), ids=str)
def test_beams_within_a_margin_equal_those_of_the_naive_search(fields, score_margin):
    case = make_case(**fields)
    with torch.no_grad():
        output = case.search(8, 9, num_return_sequences=8, score_margin=score_margin)
        for row in range(len(case.states)):
            expected = case.naive(row).search(8, 9, score_margin)
            finished = output.finished[row]
            assert [symbols_of(ids) for ids in output.sequences[row, finished]] == [ids for _, ids in expected]


def test_without_numbers_and_constants_there_is_no_expression():
    case = make_case(4, constants=0, batch=2)
    case.positions[1] = -1
    output = case.search(num_beams=2)
    assert output.finished[:, 0].tolist() == [True, False]
    assert output.scores[1, 0] == -torch.inf
    assert (output.sequences[1] == -100).all()


def test_equal_numbers_count_as_one_symbol():
    case = make_case(0, batch=1, constants=0)
    case.positions = torch.tensor([[1, 2, 0]])

    def loss(groups, label):
        return case.score(number_groups=torch.tensor([groups]), labels=torch.tensor([[label]])).loss.item()

    log_probs = case.score(labels=torch.tensor([[6]])).logits[0, 0].log_softmax(-1)
    assert loss([0, 1, 2], 6) == pytest.approx(-log_probs[6].item(), abs=1e-6)
    assert loss([0, 1, 0], 5) == pytest.approx(-log_probs[[5, 7]].logsumexp(0).item(), abs=1e-6)
    assert loss([0, 1, 0], 7) == loss([0, 1, 0], 5)


def test_labels_equal_trees_and_padding_changes_nothing():
    case = make_case(5)
    logits = case.score(labels=case.labels).logits
    assert torch.equal(case.score(trees=TreeBatch(case.trees, NUM_OPERATORS)).logits, logits)
    padded_labels = pad(case.labels, (0, 3), value=-100)
    assert torch.equal(case.score(labels=padded_labels).logits[:, :-3], logits)
    case.states = pad(case.states, (0, 0, 0, 4), value=3.0)
    case.mask = pad(case.mask, (0, 4))
    torch.testing.assert_close(case.score(labels=case.labels).logits, logits)


@pytest.mark.parametrize("trees", [None, [[5], [5]], [[0, 5, 5], [5]]], ids=["random", "leaves", "one operator"])
def test_padded_levels_change_neither_outputs_nor_gradients(trees):
    case = make_case(2, batch=9 if trees is None else 2)
    case.trees = trees or case.trees
    case.states.requires_grad_()
    groups = torch.arange(case.positions.shape[1]).expand_as(case.positions)
    output = case.score(trees=TreeBatch(case.trees, NUM_OPERATORS), number_groups=groups)
    padded = case.score(trees=TreeBatch(case.trees, NUM_OPERATORS, pad=True), number_groups=groups)
    torch.testing.assert_close(padded.logits, output.logits)
    torch.testing.assert_close(padded.loss, output.loss)
    gradients = gradients_of(output.loss + output.logits.clamp(-9, 9).sum(), case)
    padded_gradients = gradients_of(padded.loss + padded.logits.clamp(-9, 9).sum(), case)
    torch.testing.assert_close(padded_gradients, gradients, rtol=1e-3, atol=1e-4)


@pytest.mark.slow
def test_four_batches_with_padded_levels_share_a_graph():
    graphs = []

    def count_graphs(graph, example_inputs):
        graphs.append(graph)
        return graph.forward

    decoder = make_case(0).decoder
    compiled = torch.compile(decoder, backend=count_graphs, dynamic=True)
    sizes = set()
    for seed in (1, 4, 5, 7):
        case = make_case(seed)
        case.decoder = decoder
        generator = torch.Generator().manual_seed(seed)
        # At most four levels below the roots.
        case.trees = [random_tree(generator, [5, 6], depth=1) for _ in range(4)]
        trees = TreeBatch(case.trees, NUM_OPERATORS)
        sizes.add((trees.shape, trees.down_sizes, trees.up_sizes))
        padded = TreeBatch(case.trees, NUM_OPERATORS, pad=True)
        loss = compiled(case.states, case.mask, case.positions, trees=padded).loss
        torch.testing.assert_close(loss, case.score(trees=trees).loss)
    assert len(sizes) == 4
    assert len(graphs) == 1


def test_bfloat16_stays_close():
    case = make_case(6)
    loss = case.score(labels=case.labels).loss
    case.decoder.bfloat16()
    case.states = case.states.bfloat16()
    assert case.score(labels=case.labels).loss.item() == pytest.approx(loss.item(), rel=0.1)


@pytest.mark.parametrize("trees", [[[5], [5]], [[0, 5, 5], [5]]], ids=["leaves", "no operator on the left"])
def test_all_layers_get_a_gradient_whatever_the_trees(trees):
    # Distributed training with gradient checkpointing waits for all of them.
    case = make_case(seed=0, batch=2)
    case.trees = trees
    case.score(labels=case.labels).loss.backward()
    assert [name for name, parameter in case.decoder.named_parameters() if parameter.grad is None] == []


def test_mixed_precision_decodes_where_copies_are_not_promoted(monkeypatch):
    # As with CUDA, whose autocast has no rule for it.
    monkeypatch.setattr(torch.Tensor, "index_copy", torch.autocast("cpu", enabled=False)(torch.Tensor.index_copy))
    case = make_case(seed=3, batch=16)
    exact = case.search(num_beams=3)
    with torch.autocast("cpu", torch.bfloat16):
        mixed = case.search(num_beams=3)
    assert exact.finished.any()
    assert torch.equal(mixed.finished, exact.finished)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({}, "`labels`.*`trees`"),
        ({"labels": torch.tensor([[0, 5]])}, r"\[0, 5\].*operand"),
        ({"labels": torch.tensor([[5, 5]])}, r"\[5, 5\].*complete"),
    ],
)
def test_target_must_be_a_tree(inputs, message):
    with pytest.raises(ValueError, match=message):
        make_case(0, batch=1).score(**inputs)


@pytest.mark.parametrize(
    ("num_beams", "max_length", "num_return_sequences"), [(0, 5, 1), (1, 0, 1), (1, 5, 0), (2, 5, 3)]
)
def test_impossible_searches_are_refused(num_beams, max_length, num_return_sequences):
    with pytest.raises(ValueError, match=r"`num_beams`|\b3 sequences.*\b2 beams"):
        make_case(0, batch=1).search(num_beams, max_length, num_return_sequences=num_return_sequences)


def test_added_constants_leave_the_others_as_they_were():
    decoder = make_case(3).decoder
    before = decoder.constant_embedding.detach().clone()
    constants = ["1", "2", "60", "0.5"]
    decoder.set_constants(constants)
    assert decoder.config.constants == constants
    assert decoder.num_symbols == NUM_OPERATORS + 4
    assert torch.equal(decoder.constant_embedding[:2], before)
    assert decoder.constant_embedding.requires_grad
    assert not torch.equal(decoder.constant_embedding[-1], decoder.constant_embedding[-2])
    with pytest.raises(ValueError, match=r"constants \['60'\].*\['1', '2', '60', '0\.5'\]"):
        decoder.set_constants(["60"])


def test_constants_are_added_to_a_decoder_without_any():
    decoder = make_case(3, constants=0).decoder
    decoder.set_constants(["1", "2"])
    assert decoder.constant_embedding.shape == (2, 12)
    assert decoder.constant_embedding.isfinite().all()
