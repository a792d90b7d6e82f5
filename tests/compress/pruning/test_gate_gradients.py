from functools import partial

import pytest
import torch
from torch.nn.functional import cross_entropy

from hf_mwp.compress.pruning import HeadGates, NeuronGates, measure_scores, prune_heads, prune_neurons
from hf_mwp.compress.pruning.gate_gradients import distillation_losses
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import tiny_batch, tiny_encoder
from tests.tiny import tiny_problems, tiny_processor, tiny_solver


STEP = 1e-5


def classifier(seed=0, **fields):
    """A double precision BERT, whose dropout is on unless it is evaluated."""
    model = tiny_encoder("bert", "ForSequenceClassification", **fields).double()
    torch.manual_seed(seed)
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape, dtype=torch.float64)
    return model


def batches(model, regression=False):
    found = [tiny_batch(model, rows=3), tiny_batch(model, rows=2, length=6)]
    for each in found:
        labels = torch.arange(len(each["input_ids"])) % 3
        each["labels"] = labels.double() / 2 if regression else labels
    return found


def slope(model, kind, layer, index, losses):
    """Of losses by one gate, absolute, by central differences."""
    with kind(model) as gates, torch.no_grad():
        gates.values = [None if each is None else each.double() for each in gates.values]
        found = []
        for factor in (1 - STEP, 1 + STEP):
            gates.values[layer][index] = factor
            found.append(torch.stack(losses()))
    return ((found[1] - found[0]) / (2 * STEP)).abs()


@pytest.mark.parametrize("regression", [False, True])
def test_scores_are_slopes_of_the_losses(regression):
    fields = {"num_labels": 1} if regression else {}
    teacher = classifier(**fields)
    student = classifier(seed=1, **fields)
    given = batches(teacher, regression)
    scores = measure_scores(teacher, given, student)

    def losses(batch):
        outputs = teacher(**batch)
        ours = student(**batch).logits
        if regression:
            return [outputs.loss, (ours - outputs.logits).square().mean() / 2]
        return [outputs.loss, 4 * cross_entropy(ours / 2, (outputs.logits / 2).softmax(-1)) / 2]

    for kind, units, places in (
        (HeadGates, "heads", [(layer, head) for layer in range(3) for head in range(4)]),
        (NeuronGates, "neurons", [(0, 0), (0, 19), (1, 7), (2, 12)]),
    ):
        for layer, index in places:
            # The absolute value is of a batch's mean.
            expected = sum(slope(teacher, kind, layer, index, partial(losses, batch)) for batch in given)
            both = [getattr(each, units)[layer, index] for each in (scores.expressiveness, scores.friendliness)]
            torch.testing.assert_close(torch.stack(both), expected, rtol=1e-5, atol=1e-9)
    assert scores.about["batches"] == 2 and scores.about["examples"] == 5


@pytest.mark.parametrize("regression", [False, True])
def test_scores_per_example_are_those_of_a_loop(regression):
    fields = {"num_labels": 1} if regression else {}
    teacher = classifier(**fields)
    student = classifier(seed=1, **fields)
    given = batches(teacher, regression)
    rows = [
        {name: each[row : row + 1] for name, each in batch.items()}
        for batch in given
        for row in range(len(batch["labels"]))
    ]
    fast = measure_scores(teacher, given, student, per_example=True)
    slow = measure_scores(teacher, rows, student)
    for name in ("expressiveness", "friendliness"):
        for units in ("heads", "neurons"):
            ours, truth = (getattr(getattr(each, name), units) for each in (fast, slow))
            torch.testing.assert_close(ours, truth, rtol=1e-10, atol=1e-12)
    # The mean of a batch hides what examples disagree on.
    assert not torch.allclose(fast.expressiveness.heads, measure_scores(teacher, given).expressiveness.heads)


def test_both_scores_are_those_measured_apart_and_nothing_is_changed():
    teacher = classifier().train()
    student = classifier(seed=1)
    teacher.bert.encoder.layer[1].eval()
    teacher.bert.embeddings.requires_grad_(False)
    teacher.classifier.weight.grad = torch.ones_like(teacher.classifier.weight)
    given = batches(teacher)
    before = [(each.training, len(each._forward_pre_hooks), len(each._buffers)) for each in teacher.modules()]
    wanted = [each.requires_grad for each in teacher.parameters()]
    weights = [each.clone() for each in teacher.parameters()]
    state = torch.random.get_rng_state()
    both = measure_scores(teacher, given, student)
    task = measure_scores(teacher, given)
    assert task.friendliness is None and both.about["examples"] == 5
    for units in ("heads", "neurons"):
        assert torch.equal(getattr(both.expressiveness, units), getattr(task.expressiveness, units))
    assert before == [(each.training, len(each._forward_pre_hooks), len(each._buffers)) for each in teacher.modules()]
    assert wanted == [each.requires_grad for each in teacher.parameters()] and not student.training
    assert all(torch.equal(a, b) for a, b in zip(weights, teacher.parameters(), strict=True))
    assert torch.equal(state, torch.random.get_rng_state())
    grads = [each.grad for each in teacher.parameters() if each.grad is not None]
    assert len(grads) == 1 and torch.equal(grads[0], torch.ones_like(grads[0]))
    assert all(each.grad is None and each.requires_grad for each in student.parameters())


def test_solvers_are_scored_by_the_nodes_of_their_trees():
    processor = tiny_processor()
    teacher = tiny_solver(processor)
    student = tiny_solver(processor, layers=1, seed=1)
    columns = processor.encode(tiny_problems(6), with_labels=True)
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    collate = teacher.make_collator(processor)
    batch = collate(rows)
    scores = measure_scores(teacher, [batch], student)
    assert scores.expressiveness.heads.shape == (2, 2) and scores.friendliness.neurons.shape == (2, 24)
    # Trees have different numbers of nodes, each with the probabilities of all symbols: a mean over problems.
    nodes = batch["labels"] != -100
    assert len({*nodes.sum(1).tolist()}) > 1
    with HeadGates(teacher) as gates:
        gates.values = [each.requires_grad_() for each in gates.values]
        outputs = teacher(**batch)
        ours = student(**batch).logits.detach()
        soft = 2 * cross_entropy(ours[nodes] / 2, (outputs.logits[nodes] / 2).softmax(-1), reduction="sum") / 6
        for loss, found in ((outputs.loss, scores.expressiveness), (soft, scores.friendliness)):
            expected = torch.stack(torch.autograd.grad(loss, gates.values, retain_graph=True)).abs()
            torch.testing.assert_close(found.heads.float(), expected, rtol=1e-4, atol=1e-6)
    fast = measure_scores(teacher, [batch], student, per_example=True)
    slow = measure_scores(teacher, [collate([row]) for row in rows], student)
    torch.testing.assert_close(fast.friendliness.neurons, slow.friendliness.neurons, rtol=1e-3, atol=1e-6)
    torch.testing.assert_close(fast.expressiveness.heads, slow.expressiveness.heads, rtol=1e-3, atol=1e-6)


def test_labels_that_can_be_correct_at_once_have_no_softmax():
    both = torch.tensor([[1.0, 2.0]]), torch.tensor([[4.0, 0.0]])
    torch.testing.assert_close(distillation_losses(*both, exclusive=False), torch.tensor([6.5]))
    fields = {"problem_type": "multi_label_classification"}
    teacher = classifier(**fields)
    student = classifier(1, **fields)
    batch = tiny_batch(teacher, rows=3)
    batch["labels"] = torch.ones(3, teacher.config.num_labels, dtype=torch.float64)
    scores = [measure_scores(teacher, [batch], student).friendliness.heads]
    # The same shift of all logits, which a softmax ignores.
    student.classifier.bias.data += 5
    scores.append(measure_scores(teacher, [batch], student).friendliness.heads)
    assert (scores[0] - scores[1]).abs().max() > 0.1 * scores[0].max()


def test_losses_by_hand():
    teacher = torch.tensor([[0.0, 0.0], [0.0, 2 * 3**0.5]])
    student = torch.tensor([[0.0, 0.0], [5.0, 5.0]])
    # τ² · log 2 / 2 for an even student, whatever the teacher says.
    torch.testing.assert_close(distillation_losses(student, teacher), torch.full((2,), 2 * 0.6931472))
    torch.testing.assert_close(distillation_losses(torch.tensor([[1.0]]), torch.tensor([[4.0]])), torch.tensor([4.5]))
    # Only the first position counts, and what both forbid adds nothing, to the gradient neither.
    low = torch.finfo(torch.float32).min
    for forbidden in (low, -torch.inf):
        theirs = torch.tensor([[[0.0, 0.0, forbidden], [1.0, 2.0, 3.0]]], requires_grad=True)
        losses = distillation_losses(theirs.detach().clone(), theirs, torch.tensor([[True, False]]))
        torch.testing.assert_close(losses, torch.tensor([2 * 0.6931472]))
        losses.sum().backward()
        assert (
            torch.equal(theirs.grad.isfinite(), torch.ones(1, 2, 3, dtype=torch.bool)) and not theirs.grad[0, 1].any()
        )


def test_an_uneven_teacher_has_scores_where_it_has_units():
    teacher = classifier().train()
    cut = prune_neurons(prune_heads(teacher, {0: [1], 2: [0, 1, 2, 3]}), {1: range(20)})
    scores = measure_scores(cut, batches(teacher), per_example=True).expressiveness
    assert scores.heads.isfinite().sum(1).tolist() == [3, 4, 0]
    assert scores.neurons.isfinite().sum(1).tolist() == [20, 0, 20]
    scores.check_fits(cut)
    with pytest.raises(UsageError, match=r"\[3, 4, 0\] heads.*\[4, 4, 4\]"):
        scores.check_fits(teacher)


def test_what_cannot_be_scored():
    teacher = classifier()
    given = batches(teacher)
    unlabelled = [{name: each for name, each in given[0].items() if name != "labels"}]
    for arguments, message in (
        (([],), "split"),
        ((unlabelled,), "labels"),
        ((given[1:], classifier(num_labels=2)), r"logits.*\(2, 2\).*\(2, 3\)"),
    ):
        with pytest.raises(UsageError, match=message):
            measure_scores(teacher, *arguments)
    with HeadGates(teacher), pytest.raises(ValueError, match=r"head_gate.*`gates.remove\(\)`"):
        measure_scores(teacher, given)
    lm = tiny_encoder("bert", "ForMaskedLM")
    batch = tiny_batch(lm)
    with pytest.raises(UsageError, match=r"\(3, 9, 40\)"):
        measure_scores(lm, [batch | {"labels": batch["input_ids"]}], lm)
    teacher.classifier.weight.data.fill_(torch.nan)
    with pytest.raises(UsageError, match="finite.*heads of layer 0"):
        measure_scores(teacher, given)
    assert not any(hasattr(each, "head_gate") for each in teacher.modules())
