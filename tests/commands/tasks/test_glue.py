"""A task of GLUE from its folder to a card: trained, distilled, pruned and measured through the command line."""

import json
import re
from functools import partial

import numpy as np
import pytest
import torch
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertForSequenceClassification,
    EvalPrediction,
)

from hf_mwp.commands.building.classifier import build_classifier, load_classifier, make_student_classifier
from hf_mwp.commands.building.solver import SolverArguments
from hf_mwp.commands.building.student import StudentArguments
from hf_mwp.commands.main import main
from hf_mwp.commands.options.parsing import parse
from hf_mwp.commands.options.stages import types_of
from hf_mwp.commands.tasks.data_options import TaskArguments
from hf_mwp.commands.tasks.evaluation import evaluate_split
from hf_mwp.commands.tasks.glue import GluePrediction, GlueTask
from hf_mwp.commands.tasks.make_task import make_task
from hf_mwp.compress.models import MwpStudentForSequenceClassification
from hf_mwp.compress.trainers import DistillationConfig, Seq2SeqDistillationConfig
from hf_mwp.compress.trainers.base_config import BaseConfig
from hf_mwp.solver.metrics.accuracy import report_cells
from hf_mwp.solver.training import SolverTrainingConfig
from hf_mwp.utils.usage_error import UsageError
from tests.commands.folders import logged_names, read_json, read_rows
from tests.tiny import TEMPLATES, tiny_classifier, tiny_tokenizer


CLASSES = ("entailment", "not_entailment")
QUICK = ["--use_cpu", "--per_device_train_batch_size=8"]
RTE = ("index\tsentence1\tsentence2\tlabel", "{index}\t{text}\t几个\t{label}")
STSB = (
    "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore",
    "{index}\tg\tf\t2012\t1\tnone\tnone\t{text}\t几个\t{score}",
)


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    """A GLUE folder: whether a text asks for a total, and to what degree."""
    folder = tmp_path_factory.mktemp("glue")
    rows = []
    for index in range(60):
        number, template = divmod(index, len(TEMPLATES))
        text = TEMPLATES[template][0].format(a=number + 2, b=number + 3, c=number + 4)
        label = CLASSES["一共" not in text]
        score = 5.0 if "一共" in text else index % 3 / 2
        rows.append({"index": index, "text": text, "label": label, "score": score})
    for name, (header, line) in {"RTE": RTE, "STS-B": STSB}.items():
        (folder / name).mkdir()
        lines = [line.format(**row) for row in rows]
        for split, rows_of_split in (("train", lines[12:]), ("dev", lines[:12])):
            (folder / name / f"{split}.tsv").write_text("\n".join([header, *rows_of_split]) + "\n", encoding="utf-8")
    return folder


def run(command, glue, folder, *options, task="rte"):
    return main([command, "--task", task, "--data_dir", str(glue), "--output_dir", str(folder), *map(str, options)])


@pytest.fixture(scope="module")
def classifier(glue, encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("classifier")
    epochs = ["--learning_rate=1e-2", "--num_train_epochs=2", "--eval_strategy=epoch", "--save_strategy=epoch"]
    assert run("train", glue, folder, "--encoder", encoder, *QUICK, *epochs, "--load_best_model_at_end") == 0
    return folder


@pytest.fixture(scope="module")
def student(glue, classifier, tmp_path_factory):
    folder = tmp_path_factory.mktemp("student")
    options = ["--teacher", classifier, "--student_layers=1", "--num_train_epochs=1", "--logging_steps=1"]
    assert run("distill", glue, folder, *options, *QUICK, "--cache_teacher_outputs") == 0
    return folder


def test_classifier_is_trained(classifier):
    metrics = read_json(classifier / "metrics.json")
    test = metrics["test"]
    assert [*test["reports"]["all problems"]] == ["accuracy", "num_examples"]
    # Each row is recorded, so that models can be compared row by row.
    predictions, labels = (text.split() for text in test["examples"].values())
    is_right = [prediction == label for prediction, label in zip(predictions, labels, strict=True)]
    assert test["outcomes"] == "".join(str(int(right)) for right in is_right)
    assert test["scheme"].startswith("10%")
    assert "num_beams" not in test
    assert metrics["best_model_checkpoint"]
    assert read_json(classifier / "data.json")["used"] == {"train": 44, "validation": 4, "test": 12}
    model = BertForSequenceClassification.from_pretrained(classifier)
    assert model.config.id2label == dict(enumerate(CLASSES))
    assert AutoTokenizer.from_pretrained(classifier).model_max_length == 64
    texts = test["training_texts"]
    assert texts["known"]
    assert texts["sources"] == ["nyu-mll/glue, rte"]
    assert "eval_accuracy" in logged_names(classifier)


@pytest.mark.slow
def test_student_with_one_layer_is_distilled(student):
    model = MwpStudentForSequenceClassification.from_pretrained(student)
    assert model.config.num_hidden_layers == 1
    assert model.config.id2label == dict(enumerate(CLASSES))
    assert {"loss_soft", "loss_hard", "loss_hidden_1", "loss_embedding"} <= logged_names(student)


@pytest.mark.slow
def test_classifier_is_evaluated_and_published(student, glue, tmp_path, capsys, error_of):
    assert run("evaluate", glue, tmp_path / "run", "--model", student, "--json") == 0
    result = json.loads(capsys.readouterr().out)
    records = read_rows(tmp_path / "run" / "predictions.jsonl")
    accuracy = sum(record["prediction"] == record["label"] for record in records) / 12
    assert result["reports"]["all problems"] == {"accuracy": accuracy, "num_examples": 12}
    assert records[0]["id"] == "dev-2"
    assert 0.5 <= records[0]["score"] <= 1
    assert 0 < result["confidence"] < 0.25
    assert run("evaluate", glue, tmp_path / "sparse", "--model", student, "--random_sparsity=0.9", "--json") == 0
    assert json.loads(capsys.readouterr().out)["confidence"] != result["confidence"]
    published = tmp_path / "published"
    card = ["card", "--model", student, "--output_dir", published, "--model_id", "me/rte"]
    assert "classifier" in error_of(*card, "--reranker", "zh")
    assert main([str(word) for word in [*card, "--stages", student, "--evaluations", tmp_path / "run"]]) == 0
    text = (published / "README.md").read_text(encoding="utf-8")
    for line in (
        "pipeline_tag: text-classification",
        "- nyu-mll/glue",
        "language: en",
        'pipeline("text-classification", model="me/rte")',
        '"text_pair": ',
        "| accuracy % |",
        f"| - | 12 | {100 * accuracy:.1f} |",
    ):
        assert line in text, text
    assert "math23k" not in text
    inputs = AutoTokenizer.from_pretrained(published)("一共", "几个", return_tensors="pt")
    logits = load_classifier(str(published), CLASSES)[0](**inputs).logits
    expected = MwpStudentForSequenceClassification.from_pretrained(student).eval()(**inputs).logits
    torch.testing.assert_close(logits, expected, atol=2e-3, rtol=0)


@pytest.mark.parametrize("option", ["--rerank", "--num_beams=5", "--answer_match=equation_value"])
def test_options_of_a_search_do_not_apply_to_classifiers(option, glue, tmp_path, error_of):
    argv = ["evaluate", "--task=rte", "--data_dir", glue, "--model=none", "--output_dir", tmp_path / "run"]
    name = option[2:].partition("=")[0]
    assert re.search(f"`{name}`.*`task`", error_of(*argv, option))


@pytest.mark.slow
def test_sparse_teacher_is_chosen_by_knowledgeable_scores(glue, classifier, tmp_path, capsys):
    options = ["--teacher", classifier, "--student_init=prune", "--max_steps=2", "--sparsities=0.5"]
    assert run("stark", glue, tmp_path, *options, *QUICK) == 0
    assert "student, chosen" in capsys.readouterr().out
    metrics = read_json(tmp_path / "metrics.json")
    trial, sparse = metrics["models"]
    assert (metrics["trial"], metrics["chosen"]) == (trial, sparse)
    assert metrics["chosen_sparsity"] == 0.5
    assert trial["heads"] == [2, 2]
    assert sum(sparse["heads"]) == 2
    assert trial["teacher_parameters"] > sparse["teacher_parameters"]
    accuracy = sparse["test"]["reports"]["all problems"]["accuracy"]
    trial_accuracy = trial["test"]["reports"]["all problems"]["accuracy"]
    assert metrics["gain_over_trial"]["test"] == accuracy - trial_accuracy
    assert metrics["test"] == sparse["test"]
    # The student has three tenths of four heads and 48 neurons.
    student = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert sum(student.config.heads_per_layer) == 1
    assert student.config.id2label == dict(enumerate(CLASSES))
    for picture in ("sparsities.png", "densities.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    assert run("evaluate", glue, tmp_path / "run", "--model", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["reports"]["all problems"]["accuracy"] == accuracy


def test_development_split_is_validation_and_test_on_demand(glue):
    task = task_of(glue, select_on_dev=True)
    sizes = {split: len(rows) for split, rows in task.splits.items()}
    assert sizes == {"train": 48, "validation": 12, "test": 12}
    assert re.fullmatch(".*development.*validation.*test", task.scheme)
    with pytest.raises(ValueError, match="`validation_fraction`.*`select_on_dev`"):
        TaskArguments(task="rte", select_on_dev=True, validation_fraction=0.2)
    with pytest.raises(ValueError, match="`select_on_dev`.*`task`"):
        TaskArguments(select_on_dev=True)


def task_of(glue, name="rte", **fields):
    return GlueTask(TaskArguments(task=name, data_dir=str(glue), **fields))


@pytest.mark.slow
def test_regression_is_trained_and_predicts_values(glue, encoder, tmp_path):
    options = ["--encoder", encoder, *QUICK, "--max_steps=1", "--max_train_samples=16"]
    options += ["--eval_strategy=steps", "--eval_steps=1", "--lora_rank=2", "--lora_targets", "query"]
    assert run("train", glue, tmp_path, *options, task="stsb") == 0
    assert "eval_spearman" in logged_names(tmp_path)
    report = read_json(tmp_path / "metrics.json")["test"]["reports"]["all problems"]
    assert [*report] == ["spearman", "num_examples"]
    task = task_of(glue, "stsb", max_eval_samples=3)
    model, tokenizer = task.load_model(str(tmp_path))
    rows = list(task.rows("test"))
    for row, prediction in zip(rows, task.predict(model, tokenizer, rows), strict=True):
        with torch.no_grad():
            logits = model(**tokenizer(row["sentence1"], row["sentence2"], return_tensors="pt")).logits
        assert prediction.value == pytest.approx(logits.item(), abs=1e-5)
        assert prediction.is_right is None
    with pytest.raises(UsageError, match=r"\b1 .*\b2 .*entailment, not_entailment"):
        task_of(glue).load_model(str(tmp_path))


def test_predictions_do_not_depend_on_batches(glue):
    task = task_of(glue, max_eval_samples=7)
    model = tiny_classifier(num_labels=2, vocab_size=60, max_position_embeddings=64)
    tokenizer = tiny_tokenizer()
    values = []
    for batch_size in (1, 5):
        evaluation = evaluate_split(task, model, tokenizer, "test", batch_size=batch_size)
        values.append([prediction.value for prediction in evaluation.predictions])
    assert values[0] == values[1]
    rows = [dict(row) for row in task.rows("test")]
    assert [dict(prediction.row) for prediction in evaluation.predictions] == rows
    inputs = tokenizer(rows[3]["sentence1"], rows[3]["sentence2"], return_tensors="pt")
    with torch.no_grad():
        logits = model.eval()(**inputs).logits[0]
    assert evaluation.predictions[3].value == logits.argmax()
    assert evaluation.predictions[3].probability == pytest.approx(logits.softmax(-1).max().item(), abs=1e-6)
    assert evaluation.record["outcomes"].count("0") == sum(evaluation.failures.values())
    assert task.report([]) == {"num_examples": 0}


@pytest.mark.parametrize(
    ("name", "metrics"), [("cola", ["matthews", "accuracy"]), ("mrpc", ["f1", "accuracy"]), ("stsb", ["spearman"])]
)
def test_metrics_of_a_task(glue, name, metrics):
    task = task_of(glue, name)
    report = task._compute_metrics([1, 0], [1, 0])
    assert [*task.card()["metrics"]] == [*report] == metrics
    assert [*report_cells(report | {"num_examples": 2})] == ["examples", *(f"{metric} %" for metric in metrics)]


def test_metrics_of_models_with_further_outputs(glue):
    logits = np.array([[0.0, 1.0], [1.0, 0.0]])
    # Encoder-decoder models also return the states of their encoder.
    output = EvalPrediction((logits, np.zeros((2, 3, 4))), np.array([1, 1]))
    compute_metrics = task_of(glue).trainer_arguments(tiny_classifier(), tiny_tokenizer())["compute_metrics"]
    assert compute_metrics(output) == {"accuracy": 0.5}


def test_matched_and_mismatched_rows_are_also_reported_separately(glue):
    predictions = []
    for split, value in (("matched", 1), ("mismatched", 0), ("mismatched", 1), ("mismatched", 2)):
        predictions.append(GluePrediction({"id": f"dev_{split}-2", "label": 1}, value))
    accuracies = {"accuracy": 0.5, "accuracy_matched": 1.0, "accuracy_mismatched": pytest.approx(1 / 3)}
    assert task_of(glue, "mnli").report(predictions) == {**accuracies, "num_examples": 4}
    validation = [GluePrediction({"id": "train-2", "label": 1}, 1)]
    for name in ("mnli", "rte"):
        assert task_of(glue, name).report(validation) == {"accuracy": 1.0, "num_examples": 1}


def test_task_fills_options_that_are_not_set(glue, tmp_path):
    assert task_of(glue).complete(BaseConfig(str(tmp_path)), "train").metric_for_best_model == "accuracy"
    config = DistillationConfig(str(tmp_path), metric_for_best_model="loss")
    complete = task_of(glue, "stsb").complete(config, "distill")
    assert (complete.metric_for_best_model, complete.prediction_loss) == ("loss", "mse")
    assert config.prediction_loss is None
    # An explicit option is kept, also if it equals a default.
    config = DistillationConfig(str(tmp_path), prediction_loss="kd")
    assert task_of(glue, "stsb").complete(config, "distill").prediction_loss == "kd"


def test_config_of_another_task_is_refused(glue, tmp_path):
    config = SolverTrainingConfig(str(tmp_path), metric_for_best_model="answer_accuracy")
    with pytest.raises(UsageError, match="unknown metric 'answer_accuracy'.*loss, accuracy"):
        task_of(glue).complete(config, "train")
    with pytest.raises(TypeError, match="must be a `SolverDistillationConfig`.*got `DistillationConfig`"):
        make_task(TaskArguments(dataset="a.jsonl")).complete(DistillationConfig(str(tmp_path)), "distill")


def test_command_line_reads_the_config_of_the_task(tmp_path):
    read = partial(parse, "distill", "", partial(types_of, "distill"))
    flags = ["--teacher=a", "--output_dir", str(tmp_path), "--use_cpu"]
    *_, config = read(["--task=stsb", *flags])
    assert type(config) is DistillationConfig
    with pytest.raises(UsageError, match="--num_beams"):
        read(["--task=stsb", *flags, "--num_beams=2"])
    (tmp_path / "options.yaml").write_text("task: seq2seq\nnum_beams: 3\ndataset: a.tsv\nsource: en\ntarget: fr\n")
    *_, config = read(["--config", str(tmp_path / "options.yaml"), *flags])
    assert type(config) is Seq2SeqDistillationConfig
    assert config.num_beams == config.generation_num_beams == 3
    assert (config.temperature, config.hidden_loss, config.layer_mapping) == (1.0, "cka", "alternating")


def test_cut_student_has_the_teachers_pooler_and_classifier():
    teacher = tiny_classifier(num_labels=2, vocab_size=60).eval()
    tokenizer = tiny_tokenizer()
    student = make_student_classifier(teacher, tokenizer, list, StudentArguments(student_layers="2")).eval()
    batch = tokenizer(["小明有4个苹果", "一共有几个"], padding=True, return_tensors="pt")
    torch.testing.assert_close(student(**batch).logits, teacher(**batch).logits)


def test_classifier_with_random_weights(tmp_path):
    tiny_tokenizer().save_pretrained(tmp_path)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 12}
    options = SolverArguments(encoder_config=sizes, tokenizer=str(tmp_path), max_length=9)
    model, tokenizer = build_classifier((), options)
    assert (model.num_labels, model.config.problem_type, tokenizer.model_max_length) == (1, "regression", 9)


def test_other_classes_are_refused_unless_the_head_is_new(tmp_path):
    tiny_tokenizer().save_pretrained(tmp_path)
    tiny_classifier(num_labels=3, vocab_size=60).save_pretrained(tmp_path)
    with pytest.raises(UsageError, match=r"\b3 outputs.*regression"):
        load_classifier(str(tmp_path), ())
    model, _ = build_classifier(CLASSES, SolverArguments(encoder=str(tmp_path)))
    assert model.classifier.out_features == 2
    reversed_names = dict(enumerate(CLASSES[::-1]))
    tiny_classifier(num_labels=2, vocab_size=60, id2label=reversed_names).save_pretrained(tmp_path)
    with pytest.raises(UsageError, match=r"\(not_entailment, entailment\).*\(entailment, not_entailment\)"):
        load_classifier(str(tmp_path), CLASSES)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["train", "--task=rtf", "--encoder=."], "--task.*'rtf'"),
        (["train", "--task=rte", "--encoder=.", "--dataset=svamp"], "`dataset`.*`task`"),
        (["evaluate", "--task=rte", "--model=none", "--fold=1"], "`fold`.*`task`"),
        (["train", "--task=rte", "--encoder={encoder}", "--constants", "1"], "`constants`.*classifier"),
        (["distill", "--task=rte", "--teacher={encoder}"], "BertModel.*classifier"),
        (["evaluate", "--task=rte", "--model={encoder}"], "BertModel.*classifier"),
        (["train", "--task=rte", "--encoder={encoder}", "--metric_for_best_model=f1"], "'f1'.*loss, accuracy"),
        (["train", "--task=wnli", "--encoder={encoder}"], "WNLI/train.tsv"),
    ],
)
def test_bad_input_is_named(argv, message, glue, encoder, tmp_path, error_of):
    words = [word.format(encoder=encoder) for word in argv]
    assert re.search(message, error_of(*words, "--data_dir", glue, "--output_dir", tmp_path / "run"))
    assert not (tmp_path / "run" / "config.json").exists()
