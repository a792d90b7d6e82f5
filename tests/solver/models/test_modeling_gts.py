import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hf_mwp.solver.batches.tree_batch import TreeBatch
from hf_mwp.solver.models.gts import GTSConfig, GTSDecoder
from tests.solver.models.naive_gts import NaiveGTS


OPERATORS = ("+", "-", "*", "/", "^")


def random_tree(generator, leaves, operators, depth=0):
    """A random prefix sequence over operators `0..operators-1` and the given leaf ids."""
    if depth > 4 or torch.rand((), generator=generator) < 0.25 + 0.15 * depth:
        return [leaves[int(torch.randint(len(leaves), (), generator=generator))]]
    operator = int(torch.randint(operators, (), generator=generator))
    left = random_tree(generator, leaves, operators, depth + 1)
    return [operator, *left, *random_tree(generator, leaves, operators, depth + 1)]


def make_case(seed, batch=4, width=12, encoder_width=12, constants=2, root_goal="cls", **config):
    """A random decoder in evaluation mode, its padded inputs, and a random tree for each problem."""
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    config = GTSConfig(
        hidden_size=width,
        encoder_hidden_size=encoder_width,
        operator_embedding_size=5,
        constants=[str(index + 1) for index in range(constants)],
        root_goal=root_goal,
        **config,
    )
    decoder = GTSDecoder(config).eval()
    for parameter in decoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    lengths = torch.randint(3, 9, (batch,), generator=generator)
    numbers = torch.randint(0 if constants else 1, 4, (batch,), generator=generator)
    states = torch.randn(batch, int(lengths.max()), encoder_width, generator=generator)
    mask = (torch.arange(states.shape[1]) < lengths.unsqueeze(1)).long()
    positions = torch.full((batch, max(1, int(numbers.max()))), -1)
    trees = []
    for row in range(batch):
        count = int(numbers[row])
        positions[row, :count] = torch.randperm(int(lengths[row]), generator=generator)[:count]
        leaves = list(range(len(OPERATORS), len(OPERATORS) + constants + count))
        trees.append(random_tree(generator, leaves, len(OPERATORS)))
    return decoder, states, mask, positions, trees


def naive(decoder, states, mask, positions, row):
    valid = int(mask[row].sum())
    return NaiveGTS(decoder, states[row, :valid], [int(p) for p in positions[row] if p >= 0])


def labels_of(trees):
    labels = torch.full((len(trees), max(map(len, trees))), -100)
    for row, ids in enumerate(trees):
        labels[row, : len(ids)] = torch.tensor(ids)
    return labels


CASES = [
    {"seed": 0},
    {"seed": 1, "batch": 1},
    {"seed": 2, "batch": 9, "root_goal": "mean"},
    {"seed": 3, "encoder_width": 7},
    {"seed": 4, "constants": 0, "batch": 6},
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_logits_loss_and_gradients_equal_the_naive_decoder(case):
    decoder, states, mask, positions, trees = make_case(**case)
    states.requires_grad_()
    output = decoder(states, mask, positions, labels=labels_of(trees))
    output.loss.backward()
    fast = [states.grad.clone(), *(parameter.grad for parameter in decoder.parameters())]
    fast = [None if gradient is None else gradient.clone() for gradient in fast]
    states.grad = None
    decoder.zero_grad()

    loss = 0
    for row, ids in enumerate(trees):
        scores = naive(decoder, states, mask, positions, row).score_tree(ids)
        torch.testing.assert_close(output.logits[row, : len(ids), : scores.shape[1]], scores, rtol=1e-4, atol=1e-5)
        assert (output.logits[row, : len(ids), scores.shape[1] :] == torch.finfo(torch.float32).min).all()
        loss = loss + torch.nn.functional.cross_entropy(scores, torch.tensor(ids), reduction="sum") / len(trees)
    torch.testing.assert_close(output.loss, loss, rtol=1e-5, atol=1e-5)
    loss.backward()
    slow = [states.grad, *(parameter.grad for parameter in decoder.parameters())]
    for one, other in zip(fast, slow, strict=True):
        if other is None or not other.any():
            assert one is None or not one.any()
        else:
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("beams", [1, 2, 5])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_beams_equal_the_naive_search(case, beams):
    decoder, states, mask, positions, _ = make_case(**case)
    with torch.no_grad():
        output = decoder.generate(states, mask, positions, num_beams=beams, max_length=9, num_return_sequences=beams)
        best = decoder.generate(states, mask, positions, num_beams=beams, max_length=9)
        for row in range(len(states)):
            expected = naive(decoder, states, mask, positions, row).search(beams, 9)
            found = [
                (float(score), [int(symbol) for symbol in ids if symbol >= 0])
                for score, ids, finished in zip(
                    output.scores[row], output.sequences[row], output.finished[row], strict=True
                )
                if finished
            ]
            assert [ids for _, ids in found] == [ids for _, ids in expected]
            assert [score for score, _ in found] == pytest.approx([score for score, _ in expected], abs=1e-4)
            if expected:
                assert [int(symbol) for symbol in best.sequences[row, 0] if symbol >= 0] == expected[0][1]


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000), beams=st.integers(1, 4), max_length=st.integers(1, 12))
def test_every_decoded_row_is_a_tree_within_the_length(seed, beams, max_length):
    decoder, states, mask, positions, _ = make_case(seed, batch=3)
    output = decoder.generate(states, mask, positions, beams, max_length, num_return_sequences=beams)
    assert output.finished[:, 0].all()
    for ids, finished in zip(output.sequences.flatten(0, 1), output.finished.flatten(), strict=True):
        symbols = [int(symbol) for symbol in ids if symbol >= 0]
        if finished:
            assert len(symbols) <= max_length
            TreeBatch([symbols], len(OPERATORS))
        else:
            assert not symbols


def test_scores_fall_from_beam_to_beam():
    decoder, states, mask, positions, _ = make_case(7, batch=5)
    scores = decoder.generate(states, mask, positions, 5, 11, num_return_sequences=5).scores
    assert (scores[:, :-1] >= scores[:, 1:]).all()


def test_a_problem_decodes_alone_as_in_a_batch():
    decoder, states, mask, positions, _ = make_case(8, batch=6)
    together = decoder.generate(states, mask, positions, 3, 9)
    for row in range(6):
        alone = decoder.generate(states[row : row + 1], mask[row : row + 1], positions[row : row + 1], 3, 9)
        symbols = [s for s in together.sequences[row, 0].tolist() if s >= 0]
        assert [s for s in alone.sequences[0, 0].tolist() if s >= 0] == symbols


def test_without_numbers_and_constants_there_is_no_expression():
    decoder, states, mask, positions, _ = make_case(4, constants=0, batch=2)
    positions[1] = -1
    output = decoder.generate(states, mask, positions, num_beams=2)
    assert output.finished[:, 0].tolist() == [True, False]
    assert output.scores[1, 0] == -torch.inf
    assert (output.sequences[1] == -100).all()


def test_equal_numbers_count_as_one_symbol():
    decoder, states, mask, _, _ = make_case(0, batch=1, constants=0)
    positions, labels = torch.tensor([[1, 2, 0]]), torch.tensor([[6]])
    probabilities = decoder(states, mask, positions, labels=labels).logits[0, 0].softmax(-1)
    apart = decoder(states, mask, positions, torch.tensor([[0, 1, 2]]), labels)
    together = decoder(states, mask, positions, torch.tensor([[0, 1, 0]]), torch.tensor([[5]]))
    same = decoder(states, mask, positions, torch.tensor([[0, 1, 0]]), torch.tensor([[7]]))
    assert apart.loss.item() == pytest.approx(-probabilities[6].log().item(), abs=1e-6)
    assert together.loss.item() == pytest.approx(-(probabilities[5] + probabilities[7]).log().item(), abs=1e-6)
    assert same.loss.item() == together.loss.item()


def test_labels_and_trees_give_the_same_and_padding_does_not_matter():
    decoder, states, mask, positions, trees = make_case(5)
    labels = labels_of(trees)
    padded = torch.nn.functional.pad(labels, (0, 3), value=-100)
    from_labels = decoder(states, mask, positions, labels=labels)
    from_trees = decoder(states, mask, positions, trees=TreeBatch(trees, 5))
    from_padded = decoder(states, mask, positions, labels=padded)
    assert torch.equal(from_labels.logits, from_trees.logits)
    assert torch.equal(from_labels.logits, from_padded.logits[:, :-3])
    wide = torch.nn.functional.pad(states, (0, 0, 0, 4), value=3.0)
    from_wide = decoder(wide, torch.nn.functional.pad(mask, (0, 4)), positions, labels=labels)
    torch.testing.assert_close(from_wide.logits, from_labels.logits)


def test_bfloat16_stays_close():
    decoder, states, mask, positions, trees = make_case(6)
    full = decoder(states, mask, positions, labels=labels_of(trees)).loss
    half = decoder.bfloat16()(states.bfloat16(), mask, positions, labels=labels_of(trees)).loss
    assert half.item() == pytest.approx(full.item(), rel=0.1)


@pytest.mark.parametrize("trees", [[[5], [5]], [[0, 5, 5], [5]]], ids=["leaves", "no operator on the left"])
def test_all_layers_get_a_gradient_whatever_the_trees(trees):
    # Distributed training with gradient checkpointing waits for all of them.
    decoder, states, mask, positions, _ = make_case(seed=0, batch=2)
    decoder(states, mask, positions, labels=labels_of(trees)).loss.backward()
    assert [name for name, parameter in decoder.named_parameters() if parameter.grad is None] == []


def test_mixed_precision_decodes_where_copies_are_not_promoted(monkeypatch):
    # As with CUDA, whose autocast has no rule for it.
    monkeypatch.setattr(torch.Tensor, "index_copy", torch.autocast("cpu", enabled=False)(torch.Tensor.index_copy))
    decoder, states, mask, positions, _ = make_case(seed=3, batch=16)
    exact = decoder.generate(states, mask, positions, num_beams=3)
    with torch.autocast("cpu", torch.bfloat16):
        found = decoder.generate(states, mask, positions, num_beams=3)
    assert exact.finished.any() and torch.equal(found.finished, exact.finished)


def test_a_target_is_needed_and_must_be_a_tree():
    decoder, states, mask, positions, _ = make_case(0, batch=1)
    with pytest.raises(ValueError, match="`labels`.*`trees`"):
        decoder(states, mask, positions)
    with pytest.raises(ValueError, match=r"\[0, 5\].*operand"):
        decoder(states, mask, positions, labels=torch.tensor([[0, 5]]))
    with pytest.raises(ValueError, match=r"\[5, 5\].*complete"):
        decoder(states, mask, positions, labels=torch.tensor([[5, 5]]))


@pytest.mark.parametrize("counts", [(0, 5, 1), (1, 0, 1), (1, 5, 0), (2, 5, 3)])
def test_impossible_searches_are_refused(counts):
    decoder, states, mask, positions, _ = make_case(0, batch=1)
    beams, length, returned = counts
    with pytest.raises(ValueError, match=r"`num_beams`|\b3 sequences.*\b2 beams"):
        decoder.generate(states, mask, positions, beams, length, returned)


def test_save_and_load(tmp_path):
    decoder, states, mask, positions, trees = make_case(3, encoder_width=7)
    decoder.save_pretrained(tmp_path)
    loaded = GTSDecoder.from_pretrained(tmp_path).eval()
    labels = labels_of(trees)
    expected = decoder(states, mask, positions, labels=labels).logits
    for name, parameter in decoder.named_parameters():
        assert torch.equal(parameter, loaded.get_parameter(name))
    torch.testing.assert_close(loaded(states, mask, positions, labels=labels).logits, expected)


def test_further_constants_leave_the_known_ones_as_they_were():
    decoder, *_ = make_case(3)
    known = decoder.constant_embedding.detach().clone()
    constants = [*decoder.config.constants, "60", "0.5"]
    decoder.set_constants(constants)
    assert decoder.config.constants == constants
    assert decoder.num_symbols == len(decoder.config.operators) + len(constants)
    assert torch.equal(decoder.constant_embedding[: len(known)], known)
    assert decoder.constant_embedding.requires_grad
    assert not torch.equal(decoder.constant_embedding[-1], decoder.constant_embedding[-2])
    with pytest.raises(ValueError, match=r"constants \['60'\].*\['1', '2', '60', '0\.5'\]"):
        decoder.set_constants(["60"])


def test_a_decoder_without_constants_gets_some():
    decoder, *_ = make_case(3, constants=0)
    decoder.set_constants(["1", "2"])
    assert decoder.constant_embedding.shape == (2, 12)
    assert decoder.constant_embedding.isfinite().all()
