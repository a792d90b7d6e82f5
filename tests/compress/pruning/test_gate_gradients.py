import pytest
import torch
from torch.nn.functional import cross_entropy

from hf_mwp.compress.pruning import HeadGates, NeuronGates, measure_scores, prune
from hf_mwp.compress.pruning.gate_gradients import distillation_losses
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import (
    examples_of,
    labelled_batches,
    rows_of,
    score_tables,
    tiny_batch,
    tiny_encoder,
)
from tests.slow_parameters import slow_after
from tests.tiny import tiny_problems, tiny_processor, tiny_solver


STEP = 1e-5


def classifier(seed=0, head="ForSequenceClassification", **fields):
    """A double precision BERT, whose dropout is on unless it is evaluated."""
    model = tiny_encoder("bert", head, **fields).double()
    torch.manual_seed(seed)
    for parameter in model.parameters():
        parameter.data += 0.2 * torch.randn(parameter.shape, dtype=torch.float64)
    return model


def regression_batches(model):
    batches = labelled_batches(model)
    for batch in batches:
        batch["labels"] = batch["labels"].double() / 2
    return batches


def token_batches(model):
    """Labels of three classes at all tokens but the first; the last text of each batch has one label."""
    batches = [tiny_batch(model, rows=3), tiny_batch(model, rows=2, length=6)]
    for batch in batches:
        labels = batch["input_ids"] % 3
        labels = labels.masked_fill(batch["attention_mask"] == 0, -100)
        labels[:, 0] = -100
        labels[-1, 2:] = -100
        batch["labels"] = labels
    return batches


def answer_batches(model):
    """First and last tokens of answers in texts of different length."""
    batches = [tiny_batch(model, rows=3), tiny_batch(model, rows=2, length=6)]
    for batch in batches:
        starts = torch.arange(len(batch["input_ids"]))
        batch |= {"start_positions": starts, "end_positions": starts + 1}
    return batches


def choice_batches(model):
    """Three rows of two choices, and two of three."""
    batches = []
    for num_rows, num_choices in ((3, 2), (2, 3)):
        texts = tiny_batch(model, rows=6, length=12)
        batch = {name: values.view(num_rows, num_choices, -1) for name, values in texts.items()}
        batches.append(batch | {"labels": torch.arange(num_rows) % num_choices})
    return batches


def classification_losses(teacher, student, batch):
    outputs = teacher(**batch)
    teacher_probabilities = (outputs.logits / 2).softmax(-1)
    return torch.stack([outputs.loss, 4 * cross_entropy(student(**batch).logits / 2, teacher_probabilities) / 2])


def regression_losses(teacher, student, batch):
    outputs = teacher(**batch)
    return torch.stack([outputs.loss, (student(**batch).logits - outputs.logits).square().mean() / 2])


def token_losses(teacher, student, batch):
    """Means over rows of sums over labels."""
    has_label = batch["labels"] != -100
    logits = teacher(**batch).logits[has_label]
    student_logits = student(**batch).logits[has_label]
    loss = cross_entropy(logits, batch["labels"][has_label], reduction="sum")
    distillation_loss = 2 * cross_entropy(student_logits / 2, (logits / 2).softmax(-1), reduction="sum")
    return torch.stack([loss, distillation_loss]) / len(has_label)


def answer_losses(teacher, student, batch):
    """Means over both outputs; padding is no class."""
    outputs = teacher(**batch)
    student_outputs = student(**batch)
    distillation_losses = []
    for name in ("start_logits", "end_logits"):
        for row, mask in enumerate(batch["attention_mask"].bool()):
            probabilities = (outputs[name][row][mask] / 2).softmax(-1)
            distillation_losses.append(2 * cross_entropy(student_outputs[name][row][mask] / 2, probabilities))
    return torch.stack([outputs.loss, torch.stack(distillation_losses).mean()])


def slopes(teacher, gate_class, layer, index, losses):
    """Absolute slopes of `losses()` by one gate, from central differences."""
    with gate_class(teacher) as gates, torch.no_grad():
        gates.values = [values.double() for values in gates.values]
        gates.values[layer][index] = 1 - STEP
        lower = losses()
        gates.values[layer][index] = 1 + STEP
        upper = losses()
    return ((upper - lower) / (2 * STEP)).abs()


TASKS = [
    pytest.param({}, labelled_batches, classification_losses, id="classification"),
    pytest.param({"num_labels": 1}, regression_batches, regression_losses, id="regression"),
    pytest.param({"head": "ForTokenClassification"}, token_batches, token_losses, id="tokens"),
    pytest.param({"head": "ForQuestionAnswering"}, answer_batches, answer_losses, id="answers"),
    pytest.param({"head": "ForMultipleChoice"}, choice_batches, classification_losses, id="choices"),
]


@pytest.mark.parametrize(("fields", "make_batches", "losses"), slow_after(1, TASKS))
def test_scores_are_slopes_of_the_losses(fields, make_batches, losses):
    teacher = classifier(**fields)
    student = classifier(seed=1, **fields)
    batches = make_batches(teacher)
    scores = measure_scores(teacher, batches, student)
    assert scores.about["batches"] == 2 and scores.about["examples"] == 5
    for gate_class, units, layer, index in (
        (HeadGates, "heads", 0, 1),
        (HeadGates, "heads", 1, 3),
        (HeadGates, "heads", 2, 0),
        (NeuronGates, "neurons", 0, 19),
        (NeuronGates, "neurons", 2, 12),
    ):
        expected = torch.zeros(2, dtype=torch.float64)
        for batch in batches:
            # The absolute value is that of a batch's mean.
            expected += slopes(teacher, gate_class, layer, index, lambda batch=batch: losses(teacher, student, batch))
        expressiveness = getattr(scores.expressiveness, units)[layer, index]
        friendliness = getattr(scores.friendliness, units)[layer, index]
        torch.testing.assert_close(torch.stack([expressiveness, friendliness]), expected, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize(("fields", "make_batches", "losses"), slow_after(1, TASKS))
def test_scores_per_example_equal_a_loop(fields, make_batches, losses):
    teacher = classifier(**fields)
    student = classifier(seed=1, **fields)
    batches = make_batches(teacher)
    per_example = measure_scores(teacher, batches, student, per_example=True)
    loop = measure_scores(teacher, rows_of(batches), student)
    torch.testing.assert_close(score_tables(per_example), score_tables(loop), rtol=1e-10, atol=1e-12)
    # The mean of a batch hides what examples disagree on.
    means = measure_scores(teacher, batches).expressiveness.heads
    assert not torch.allclose(per_example.expressiveness.heads, means)


def test_measuring_changes_neither_models_nor_random_numbers():
    teacher = classifier().train()
    student = classifier(seed=1)
    teacher.bert.encoder.layer[1].eval()
    teacher.bert.embeddings.requires_grad_(False)
    teacher.classifier.weight.grad = torch.ones_like(teacher.classifier.weight)
    weights = {name: weight.clone() for name, weight in teacher.state_dict().items()}

    def state():
        modules = []
        for module in teacher.modules():
            modules.append((module.training, len(module._forward_pre_hooks), len(module._buffers)))
        parameters = []
        for parameter in [*teacher.parameters(), *student.parameters()]:
            parameters.append((parameter.requires_grad, parameter.grad is None))
        return modules, parameters, student.training, torch.random.get_rng_state().tolist()

    before = state()
    batches = labelled_batches(teacher)
    scores = measure_scores(teacher, batches, student)
    without_student = measure_scores(teacher, batches)
    assert without_student.friendliness is None
    assert torch.equal(scores.expressiveness.heads, without_student.expressiveness.heads)
    assert torch.equal(scores.expressiveness.neurons, without_student.expressiveness.neurons)
    assert state() == before
    torch.testing.assert_close(teacher.state_dict(), weights, rtol=0, atol=0)
    assert teacher.classifier.weight.grad.eq(1).all()


def test_solvers_are_scored_by_the_nodes_of_their_trees():
    processor = tiny_processor()
    teacher = tiny_solver(processor)
    student = tiny_solver(processor, layers=1, seed=1)
    examples = examples_of(processor.encode(tiny_problems(6), with_labels=True))
    batch = teacher.make_collator(processor)(examples)
    scores = measure_scores(teacher, [batch], student)
    assert scores.friendliness.neurons.shape == (2, 24)
    # Trees have different numbers of nodes, each with the probabilities of all symbols: a mean over problems.
    nodes = batch["labels"] != -100
    assert len(set(nodes.sum(1).tolist())) > 1
    with HeadGates(teacher) as gates:
        gates.values = [values.requires_grad_() for values in gates.values]
        outputs = teacher(**batch)
        student_logits = student(**batch).logits.detach()[nodes] / 2
        teacher_probabilities = (outputs.logits[nodes] / 2).softmax(-1)
        distillation_loss = 2 * cross_entropy(student_logits, teacher_probabilities, reduction="sum") / 6
        expressiveness = torch.autograd.grad(outputs.loss, gates.values, retain_graph=True)
        friendliness = torch.autograd.grad(distillation_loss, gates.values)
    for table, gradients in (
        (scores.expressiveness.heads, expressiveness),
        (scores.friendliness.heads, friendliness),
    ):
        torch.testing.assert_close(table.float(), torch.stack(gradients).abs(), rtol=1e-4, atol=1e-6)


def test_labels_that_can_be_correct_at_once_have_no_softmax():
    fields = {"problem_type": "multi_label_classification"}
    teacher = classifier(**fields)
    student = classifier(1, **fields)
    batch = tiny_batch(teacher, rows=3)
    batch["labels"] = torch.ones(3, 3, dtype=torch.float64)
    before = measure_scores(teacher, [batch], student).friendliness.heads
    # The same shift of all logits, which a softmax ignores.
    student.classifier.bias.data += 5
    after = measure_scores(teacher, [batch], student).friendliness.heads
    assert (before - after).abs().max() > 0.1 * before.max()


@pytest.mark.parametrize(
    ("student", "teacher", "options", "expected"),
    [
        # τ² · log 2 / 2 for an even student, whatever the teacher says.
        ([0.0, 0.0], [0.0, 0.0], {}, 2 * 0.6931472),
        ([5.0, 5.0], [0.0, 2 * 3**0.5], {}, 2 * 0.6931472),
        ([1.0], [4.0], {}, 4.5),
        ([1.0, 2.0], [4.0, 0.0], {"exclusive": False}, 6.5),
    ],
)
def test_distillation_loss_by_hand(student, teacher, options, expected):
    losses = distillation_losses(torch.tensor([student]), torch.tensor([teacher]), **options)
    torch.testing.assert_close(losses, torch.tensor([expected]))


@pytest.mark.parametrize("forbidden", [torch.finfo(torch.float32).min, -torch.inf])
def test_masked_positions_and_forbidden_classes_add_nothing(forbidden):
    teacher = torch.tensor([[[0.0, 0.0, forbidden], [1.0, 2.0, 3.0]]], requires_grad=True)
    losses = distillation_losses(teacher.detach().clone(), teacher, torch.tensor([[True, False]]))
    torch.testing.assert_close(losses, torch.tensor([2 * 0.6931472]))
    losses.sum().backward()
    assert teacher.grad.isfinite().all() and not teacher.grad[0, 1].any()


def test_uneven_teacher_has_scores_where_it_has_units():
    teacher = classifier().train()
    cut = prune(teacher, {0: [1], 2: [0, 1, 2, 3]}, {1: range(20)})
    scores = measure_scores(cut, labelled_batches(teacher), per_example=True).expressiveness
    assert scores.heads.isfinite().sum(1).tolist() == [3, 4, 0]
    assert scores.neurons.isfinite().sum(1).tolist() == [20, 0, 20]
    scores.check_fits(cut)
    with pytest.raises(UsageError, match=r"\[3, 4, 0\] heads.*\[4, 4, 4\]"):
        scores.check_fits(teacher)


def test_unscorable_models_and_batches_raise():
    teacher = classifier()
    batches = labelled_batches(teacher)
    with pytest.raises(UsageError, match="split"):
        measure_scores(teacher, [])
    with pytest.raises(UsageError, match="labels"):
        measure_scores(teacher, [tiny_batch(teacher)])
    with pytest.raises(UsageError, match=r"logits.*\(2, 2\).*\(2, 3\)"):
        measure_scores(teacher, batches[1:], classifier(num_labels=2))
    with HeadGates(teacher), pytest.raises(ValueError, match=r"head_gate.*`gates.remove\(\)`"):
        measure_scores(teacher, batches)
    teacher.classifier.weight.data.fill_(torch.nan)
    with pytest.raises(UsageError, match="finite.*heads of layer 0"):
        measure_scores(teacher, batches)
    assert HeadGates.found_on(teacher) is None
