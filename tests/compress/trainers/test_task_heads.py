"""Distillation of models with heads other than classifiers of texts: questions, choices, tokens, pretraining."""

import copy

import pytest
import torch
from transformers import (
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForTokenClassification,
    Trainer,
    TrainingArguments,
)
from transformers.modeling_outputs import QuestionAnsweringModelOutput

from hf_mwp.compress.distillation import objectives
from hf_mwp.compress.distillation.ensemble_teacher import EnsembleTeacher
from hf_mwp.compress.pruning import HeadPruningCallback
from hf_mwp.compress.trainers import DistillationConfig, DistillationTrainer, StarkConfig, StarkTrainer
from tests.compress.trainers.distilling import (
    ONE_STEP,
    PLAIN_SGD,
    QUIET,
    first_losses,
    same_weights,
    training_logs,
    without_labels,
)
from tests.compress.trainers.task_heads import POSITIONS, TASKS, choice_rows, divergence, question_rows
from tests.slow_parameters import slow_after, slow_except


def trainer_of(task, folder, rows=None, teacher=None, student=None, collate=None, given=None, **fields):
    task = TASKS[task]
    return DistillationTrainer(
        task.make() if student is None else student,
        task.make(24, 4, 1) if teacher is None else teacher,
        DistillationConfig(str(folder), **(ONE_STEP | {"temperature": 1.0} | fields)),
        task.collate if collate is None else collate,
        task.rows(7) if rows is None else rows,
        **(given or {}),
    )


def outputs_of(task, rows, width=16, layers=2, seed=0):
    model = TASKS[task].make(width, layers, seed).eval()
    with torch.no_grad():
        return model(**TASKS[task].collate(rows))


def models_outputs(task, rows):
    return outputs_of(task, rows), outputs_of(task, rows, 24, 4, 1)


# The divergences of a row, by loops over its distributions. `tokens` are the positions of its tokens.


def of_answers(student, teacher, row, tokens, labels):
    return {
        "soft_start": [divergence(teacher.start_logits[row, tokens], student.start_logits[row, tokens])],
        "soft_end": [divergence(teacher.end_logits[row, tokens], student.end_logits[row, tokens])],
    }


def of_row(student, teacher, row, tokens, labels, output="logits"):
    return {"soft": [divergence(teacher[output][row], student[output][row])]}


def of_tokens(student, teacher, row, tokens, labels, output="logits"):
    divergences = []
    for position in tokens.tolist():
        if labels[row, position] != -100:
            divergences.append(divergence(teacher[output][row, position], student[output][row, position]))
    return {"soft": divergences}


def of_replaced(student, teacher, row, tokens, labels):
    divergences = []
    for position in tokens.tolist():
        scores = []
        for output in (teacher, student):
            scores.append(torch.stack([torch.zeros(()), output.logits[row, position]]))
        divergences.append(divergence(*scores))
    return {"soft": divergences}


def of_pairs(relation):
    def of(*arguments):
        return {
            "soft_prediction": of_tokens(*arguments, "prediction_logits")["soft"],
            f"soft_{relation.removesuffix('_logits')}": of_row(*arguments, relation)["soft"],
        }

    return of


REFERENCES = {
    "answers": of_answers,
    "answers, padded left": of_answers,
    "answers of a student": of_answers,
    "answers of DistilBERT": of_answers,
    "choices": of_row,
    "choices of a student": of_row,
    "tokens": of_tokens,
    "tokens of a student": of_tokens,
    "next sentence": of_row,
    "pretraining": of_pairs("seq_relationship_logits"),
    "pretraining of ALBERT": of_pairs("sop_logits"),
    "replaced tokens": of_replaced,
}


def reference(task, rows):
    """The soft parts of the loss: each a mean over all rows or positions."""
    outputs = models_outputs(task, rows)
    batch = TASKS[task].collate(rows)
    parts = {}
    for row, mask in enumerate(batch["attention_mask"]):
        tokens = mask.nonzero().flatten()
        for name, divergences in REFERENCES[task](*outputs, row, tokens, batch.get("labels")).items():
            parts.setdefault(name, []).extend(divergences)
    return {f"loss_{name}": torch.stack(divergences).mean().item() for name, divergences in parts.items()}


def own_loss(task, rows):
    return outputs_of(task, rows).loss.item()


@pytest.mark.parametrize("task", slow_except(TASKS, "answers", "choices", "tokens", "pretraining", "replaced tokens"))
def test_losses_equal_a_loop_over_rows(task, tmp_path):
    rows = TASKS[task].rows(7)
    expected = reference(task, rows)
    losses = first_losses(trainer_of(task, tmp_path, rows))
    soft = {name: value for name, value in losses.items() if "soft" in name}
    assert soft == pytest.approx(expected, rel=1e-4)
    assert losses["loss_hard"] == pytest.approx(own_loss(task, rows), rel=1e-4)
    assert losses.keys() >= {"loss_hidden_1", "loss_hidden_2", "loss_embedding"}
    is_span = TASKS[task].labels == POSITIONS
    weight = 0.25 if is_span else 0.5
    prediction = weight * sum(soft.values()) + 0.5 * losses["loss_hard"]
    layers = sum(losses[f"loss_{name}"] for name in ("hidden_1", "hidden_2", "embedding"))
    assert losses["loss"] == pytest.approx(prediction + layers, rel=1e-4)


@pytest.mark.parametrize("task", slow_except(TASKS, "answers of a student"))
def test_a_step_is_the_same_at_once_in_batches_and_with_a_cache(task, tmp_path):
    at_once = first_losses(trainer_of(task, tmp_path))
    fields = {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}
    in_batches = first_losses(trainer_of(task, tmp_path, **fields))
    if len(TASKS[task].labels) > 1:
        # As with `Trainer`, the loss on answers depends on the padding of a batch, and accumulated batches have the
        # same weight in a loss that is the sum of two means.
        for name in ("loss", "loss_hard"):
            del in_batches[name], at_once[name]
    assert in_batches == pytest.approx(at_once, rel=1e-4, abs=1e-6)
    trainer = trainer_of(task, tmp_path, cache_teacher_outputs=True, **fields)
    cached = first_losses(trainer)
    for name, value in at_once.items():
        assert cached[name] == pytest.approx(value, rel=1e-2, abs=1e-3), name


@pytest.mark.parametrize("task", slow_except(TASKS, "answers, padded left"))
def test_only_labels_equal_trainer(task, tmp_path):
    fields = PLAIN_SGD | {"num_train_epochs": 2, "per_device_train_batch_size": 4}
    fields |= {"train_sampling_strategy": "random", "lr_scheduler_type": "constant"}
    only_labels = {"soft_label_weight": 0.0, "hidden_loss": None, "embedding_weight": 0.0}
    student = TASKS[task].make()
    expected = copy.deepcopy(student)
    rows = TASKS[task].rows(8)
    trainer = DistillationTrainer(
        student,
        TASKS[task].make(24, 4, 1),
        DistillationConfig(str(tmp_path), **fields, **only_labels),
        TASKS[task].collate,
        rows,
        rows,
    )
    trainer.train()
    plain = Trainer(expected, TrainingArguments(str(tmp_path), **fields), TASKS[task].collate, rows, rows)
    plain.train()
    for parameter, value in zip(student.parameters(), expected.parameters(), strict=True):
        assert torch.equal(parameter, value)
    assert trainer.evaluate()["eval_loss"] == pytest.approx(plain.evaluate()["eval_loss"], rel=1e-5)
    predictions = trainer.predict(rows).predictions
    expected_predictions = plain.predict(rows).predictions
    assert type(predictions) is type(expected_predictions)
    torch.testing.assert_close(predictions, expected_predictions, rtol=0, atol=1e-5)


@pytest.mark.parametrize("task", slow_except(TASKS, "pretraining"))
def test_rows_without_labels(task, tmp_path):
    rows = without_labels(TASKS[task].rows(7))
    trainer = trainer_of(task, tmp_path, rows, soft_label_weight=1.0)
    losses = first_losses(trainer)
    assert "loss_hard" not in losses and losses["loss"] > 0
    assert trainer.evaluate(rows)["eval_loss"] > 0
    names = "` and `".join(TASKS[task].labels)
    with pytest.raises(ValueError, match=f"no labels .`{names}`.*`soft_label_weight=1`"):
        trainer_of(task, tmp_path, rows)


RESUMED = ("answers of a student", "choices of a student", "tokens of a student", "pretraining")


@pytest.mark.parametrize("cached", slow_after(1, [False, True]))
@pytest.mark.parametrize("task", slow_except(RESUMED, "choices of a student"))
def test_resumed_training_is_bitwise_the_same(task, cached, tmp_path):
    fields = QUIET | {"max_steps": 4, "save_steps": 2, "per_device_train_batch_size": 4, "save_strategy": "steps"}
    fields |= {"cache_teacher_outputs": cached}
    whole = trainer_of(task, tmp_path / "whole", **fields)
    whole.train()
    resumed = trainer_of(task, tmp_path / "resumed", **fields)
    resumed.train(resume_from_checkpoint=str(tmp_path / "whole" / "checkpoint-2"))
    assert same_weights(resumed.model, whole.model)
    whole.save_model()
    loaded = type(whole.model).from_pretrained(tmp_path / "whole")
    assert same_weights(loaded, whole.model)


def test_padding_does_not_change_the_loss_on_answers(tmp_path):
    rows = question_rows(7)

    def pad_more(batch_rows):
        batch = TASKS["answers"].collate(batch_rows)
        for name in ("input_ids", "attention_mask"):
            batch[name] = torch.nn.functional.pad(batch[name], (0, 5))
        return batch

    losses = first_losses(trainer_of("answers", tmp_path, rows, collate=pad_more))
    expected = reference("answers", rows)
    assert {name: losses[name] for name in expected} == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("direction", slow_after(1, ["reverse", "jsd", "skew"]))
def test_other_divergences_of_answers_are_finite_and_zero_for_equal_models(direction, tmp_path):
    make = TASKS["answers"].make
    losses = first_losses(trainer_of("answers", tmp_path, teacher=make(seed=1), kl_direction=direction))
    assert losses["loss_soft_start"] > 0 and losses["loss_soft_end"] > 0
    equal = trainer_of("answers", tmp_path, teacher=make(seed=1), student=make(seed=1), kl_direction=direction)
    assert first_losses(equal)["loss_soft_start"] == pytest.approx(0.0, abs=1e-6)


def test_truncated_answers_have_no_hard_label(tmp_path):
    rows = question_rows(8)
    for row in rows[:3]:
        row["start_positions"] = row["end_positions"] = 99
    expected = sum(own_loss("answers", [row]) for row in rows[3:]) / 5
    fields = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 8}
    losses = first_losses(trainer_of("answers", tmp_path, rows, **fields))
    assert losses["loss_hard"] == pytest.approx(expected, rel=1e-4)
    assert losses["loss_soft_start"] == pytest.approx(reference("answers", rows)["loss_soft_start"], rel=1e-4)


@pytest.mark.parametrize("task", slow_after(1, ["answers", "pretraining", "choices", "replaced tokens"]))
def test_predictions_of_several_teachers_are_averaged(task, tmp_path):
    rows = TASKS[task].rows(6)
    teachers = [TASKS[task].make(24, 2, seed).eval() for seed in (1, 2)]
    batch = TASKS[task].collate(rows)
    with torch.no_grad():
        mean = EnsembleTeacher(teachers)(**batch)
        outputs = [teacher(**batch) for teacher in teachers]
    if isinstance(mean, QuestionAnsweringModelOutput):
        for row, mask in enumerate(batch["attention_mask"].bool()):
            probabilities = [output.end_logits[row][mask].softmax(-1) for output in outputs]
            torch.testing.assert_close(mean.end_logits[row][mask].softmax(-1), sum(probabilities) / 2)
    if task == "replaced tokens":
        probabilities = [output.logits.sigmoid() for output in outputs]
        torch.testing.assert_close(mean.logits.sigmoid(), sum(probabilities) / 2)
    live = first_losses(trainer_of(task, tmp_path, rows, teachers))
    cached = first_losses(trainer_of(task, tmp_path, rows, teachers, cache_teacher_outputs=True))
    assert cached == pytest.approx(live, rel=1e-2, abs=1e-3)


@pytest.mark.parametrize("task", slow_after(1, ["answers", "pretraining", "replaced tokens"]))
def test_losses_that_need_other_predictions_are_refused(task, tmp_path):
    with pytest.raises(ValueError, match='one correct class.*`SoftLabels`.*`prediction_loss="kd"`'):
        trainer_of(task, tmp_path, prediction_loss="dkd")
    with pytest.raises(ValueError, match='no values to compare.*`prediction_loss="kd"`'):
        trainer_of(task, tmp_path, prediction_loss="mse")


@pytest.mark.parametrize("prediction_loss", slow_after(1, ["dkd", "mse"]))
@pytest.mark.parametrize("task", slow_after(1, ["choices", "tokens"]))
def test_other_prediction_losses(task, prediction_loss, tmp_path):
    live = first_losses(trainer_of(task, tmp_path, prediction_loss=prediction_loss))
    cached = first_losses(trainer_of(task, tmp_path, prediction_loss=prediction_loss, cache_teacher_outputs=True))
    assert cached == pytest.approx(live, rel=1e-2, abs=1e-3)


def test_another_head_as_teacher_is_refused(tmp_path):
    with pytest.raises(ValueError, match=r"start_logits have the shape \(2, 9\), the teacher's None"):
        trainer_of("answers", tmp_path, teacher=TASKS["tokens"].make())


@pytest.mark.parametrize("hidden_loss", slow_after(1, ["cka", "minilm", "pkd", "ckd", "attention", "fsp"]))
def test_layers_of_choices_are_those_of_texts(hidden_loss, tmp_path):
    models = []
    for width, layers, seed in ((16, 2, 0), (24, 4, 1)):
        model = TASKS["choices"].make(width, layers, seed)
        model.set_attn_implementation("eager")
        models.append(model)
    rows = choice_rows(6)
    trainer = trainer_of("choices", tmp_path, rows, models[1], models[0], hidden_loss=hidden_loss)
    losses = first_losses(trainer)
    # The same texts, each as a row of the encoders.
    texts = []
    for row in rows:
        for input_ids in row["input_ids"]:
            texts.append({"input_ids": input_ids, "attention_mask": [1] * len(input_ids)})
    student = TASKS["choices"].make().bert
    teacher = TASKS["choices"].make(24, 4, 1).bert
    for model in (student, teacher):
        model.set_attn_implementation("eager")
    fields = {"hidden_loss": hidden_loss, "prediction_weight": 0.0, "per_device_train_batch_size": 18}
    expected = first_losses(trainer_of("tokens", tmp_path, texts, teacher, student, **fields))
    assert expected.keys() > {"loss_embedding"}
    del expected["loss"]
    assert {name: losses[name] for name in expected} == pytest.approx(expected, rel=1e-3)


def test_choices_are_grouped_by_their_longest_text(tmp_path):
    rows = choice_rows(16)
    fields = {"train_sampling_strategy": "group_by_length", "per_device_train_batch_size": 4}
    trainer = trainer_of("choices", tmp_path, rows, **fields)
    lengths = [max(map(len, row["input_ids"])) for row in rows]
    assert trainer._lengths(rows) == lengths
    batches = [batch["input_ids"].shape[-1] for batch in trainer.get_train_dataloader()]
    assert batches[0] == max(lengths) and len(batches) == 4


def test_default_collator_of_choices(tmp_path):
    given = {"processing_class": TASKS["choices"].collate.tokenizer}
    task = TASKS["choices"]
    args = DistillationConfig(str(tmp_path), **ONE_STEP)
    rows = {"train_dataset": choice_rows(4), "eval_dataset": choice_rows(4)}
    trainer = DistillationTrainer(task.make(), task.make(24, 4, 1), args, **rows, **given)
    trainer.train()
    assert trainer.predict(rows["eval_dataset"]).predictions.shape == (4, 3)


def test_rows_with_different_numbers_of_choices_are_refused(tmp_path):
    rows = choice_rows(4)
    for name in ("input_ids", "attention_mask"):
        rows[1][name] = rows[1][name][:2]
    with pytest.raises(ValueError, match="2, 3 choices"):
        trainer_of("choices", tmp_path, rows)


PRUNED = {
    "answers": AutoModelForQuestionAnswering,
    "choices": AutoModelForMultipleChoice,
    "tokens": AutoModelForTokenClassification,
    "answers of DistilBERT": AutoModelForQuestionAnswering,
    "choices of a student": AutoModelForMultipleChoice,
}


@pytest.mark.parametrize("task", slow_except(PRUNED, "choices of a student"))
def test_heads_are_pruned_while_the_student_learns(task, tmp_path):
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2)
    fields = {"max_steps": 4, "cache_teacher_outputs": True}
    given = {"callbacks": [callback]}
    student = TASKS[task].make(16, 3)
    trainer = trainer_of(task, tmp_path / "run", TASKS[task].rows(8), student=student, given=given, **fields)
    trainer.train()
    trainer.save_model(tmp_path / "pruned")
    pruned = PRUNED[task].from_pretrained(tmp_path / "pruned")
    assert sum(pruned.config.heads_per_layer) == 3
    batch = TASKS[task].collate(TASKS[task].rows(8))
    with torch.no_grad():
        expected = trainer.model.eval()(**batch).loss
        torch.testing.assert_close(pruned(**batch).loss, expected, rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["answers", "choices", "tokens"])
def test_sparse_teachers_of_other_heads(task, tmp_path):
    fields = QUIET | {"max_steps": 2, "per_device_train_batch_size": 4, "sparsities": [0.0, 0.3]}
    trainer = StarkTrainer(
        model=TASKS[task].make(),
        teacher_model=TASKS[task].make(24, 2, 1),
        args=StarkConfig(str(tmp_path), **fields),
        data_collator=TASKS[task].collate,
        train_dataset=TASKS[task].rows(8),
        eval_dataset=TASKS[task].rows(4),
    )
    trainer.train()
    assert trainer.evaluate()["eval_loss"] > 0


def token_accuracy(prediction):
    is_label = prediction.label_ids != -100
    is_right = prediction.predictions.argmax(-1) == prediction.label_ids
    return {"accuracy": float(is_right[is_label].mean())}


def test_token_classification_is_evaluated_with_metrics(tmp_path):
    task = TASKS["tokens of a student"]
    rows = task.rows(16)
    given = {"eval_dataset": task.rows(6), "compute_metrics": token_accuracy}
    fields = {"eval_strategy": "steps", "eval_steps": 1, "per_device_eval_batch_size": 2}
    trainer = trainer_of("tokens of a student", tmp_path, rows, given=given, **fields)
    trainer.train()
    metrics = trainer.evaluate()
    batch = task.collate(given["eval_dataset"])
    with torch.no_grad():
        output = trainer.model.eval()(**batch)
    # The loss is the mean over all labels, not over batches.
    assert metrics["eval_loss"] == pytest.approx(output.loss.item(), rel=1e-5)
    is_label = batch["labels"] != -100
    expected = (output.logits.argmax(-1) == batch["labels"])[is_label].double().mean().item()
    assert metrics["eval_accuracy"] == pytest.approx(expected)
    assert len(training_logs(trainer)) == 1


@pytest.mark.slow
def test_rows_of_tokens_without_any_label(tmp_path):
    rows = TASKS["tokens"].rows(8)
    for row in rows[:3]:
        row["labels"] = [-100] * len(row["labels"])
    expected = own_loss("tokens", rows)
    fields = {"per_device_train_batch_size": 1, "gradient_accumulation_steps": 8}
    losses = first_losses(trainer_of("tokens", tmp_path, rows, **fields))
    assert losses["loss_hard"] == pytest.approx(expected, rel=1e-4)
    cached = first_losses(trainer_of("tokens", tmp_path, rows, cache_teacher_outputs=True, **fields))
    assert cached == pytest.approx(losses, rel=1e-2, abs=1e-3)


def test_objectives_name_what_a_cache_stores(tmp_path):
    trainer = trainer_of("pretraining", tmp_path, cache_teacher_outputs=True)
    trainer.get_train_dataloader()
    layout = trainer.teacher_source.cache.layout
    assert layout.storage == {"prediction_logits": "label", "seq_relationship_logits": "row"}
    assert layout.logits is None and set(layout.states) == {"hidden_0", "hidden_2", "hidden_4"}
    assert isinstance(trainer.objectives[0], objectives.SoftLabels)
