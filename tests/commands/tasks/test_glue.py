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
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.solver.metrics.accuracy import report_cells
from hf_mwp.solver.training import SolverTrainingConfig
from hf_mwp.utils.usage_error import UsageError
from tests.compress.trainers.processes import close, launch, run_command
from tests.tiny import TEMPLATES, tiny_classifier, tiny_tokenizer


CLASSES = ("entailment", "not_entailment")
QUICK = ["--use_cpu", "--per_device_train_batch_size=8", "--logging_steps=1"]


@pytest.fixture(scope="module")
def glue(tmp_path_factory):
    """A GLUE folder: whether a text asks for a total, and to what degree."""
    folder = tmp_path_factory.mktemp("glue")
    texts = [text.format(a=index + 2, b=index + 3, c=index + 4) for index in range(10) for text, _ in TEMPLATES]
    scores = [5.0 if "一共" in text else index % 3 / 2 for index, text in enumerate(texts)]
    header = "index\tgenre\tfilename\tyear\told_index\tsource1\tsource2\tsentence1\tsentence2\tscore"
    files = {
        "RTE": ("index\tsentence1\tsentence2\tlabel", "{0}\t{1}\t几个\t{2}"),
        "STS-B": (header, "{0}\tg\tf\t2012\t1\tnone\tnone\t{1}\t几个\t{3}"),
    }
    for name, (first, line) in files.items():
        (folder / name).mkdir()
        lines = [
            line.format(index, text, CLASSES["一共" not in text], score)
            for index, (text, score) in enumerate(zip(texts, scores, strict=True))
        ]
        for part, rows in (("train", lines[12:]), ("dev", lines[:12])):
            (folder / name / f"{part}.tsv").write_text("\n".join([first, *rows]) + "\n", encoding="utf-8")
    return folder


def run(command, glue, folder, *options, task="rte"):
    return main([command, "--task", task, "--data_dir", str(glue), "--output_dir", str(folder), *map(str, options)])


@pytest.fixture(scope="module")
def trained(glue, encoder, tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    rates = ["--learning_rate=1e-2", "--num_train_epochs=2", "--eval_strategy=epoch", "--save_strategy=epoch"]
    assert run("train", glue, folder, "--encoder", encoder, *QUICK, *rates, "--load_best_model_at_end") == 0
    return folder


@pytest.fixture(scope="module")
def student(glue, trained, tmp_path_factory):
    folder = tmp_path_factory.mktemp("student")
    options = ["--teacher", trained, "--student_layers=1", "--num_train_epochs=1", "--learning_rate=1e-3"]
    assert run("distill", glue, folder, *options, *QUICK, "--cache_teacher_outputs") == 0
    return folder


def test_a_classifier_is_trained(trained):
    metrics = json.loads((trained / "metrics.json").read_text())
    assert [*metrics["test"]["reports"]["all problems"]] == ["accuracy", "num_examples"]
    # Each row is kept, so that models can be compared row by row.
    kept = [text.split() for text in metrics["test"]["examples"].values()]
    assert metrics["test"]["outcomes"] == "".join(str(int(ours == label)) for ours, label in zip(*kept, strict=True))
    assert metrics["test"]["scheme"].startswith("10%")
    assert metrics["best_model_checkpoint"] and "num_beams" not in metrics["test"]
    record = json.loads((trained / "data.json").read_text())
    assert record["used"] == {"train": 44, "validation": 4, "test": 12}
    model = BertForSequenceClassification.from_pretrained(trained)
    assert model.config.id2label == dict(enumerate(CLASSES))
    assert AutoTokenizer.from_pretrained(trained).model_max_length == 64
    # Its folder tells what it was trained on.
    texts = metrics["test"]["training_texts"]
    assert texts["known"] and texts["sources"] == ["nyu-mll/glue, rte"] and "unknown" in texts["remark"]
    history = json.loads((trained / "trainer_state.json").read_text())["log_history"]
    assert any("eval_accuracy" in entry for entry in history)


def test_a_student_of_its_first_layers(student, trained):
    model = MwpStudentForSequenceClassification.from_pretrained(student)
    assert model.config.num_hidden_layers == 1 and model.config.id2label == dict(enumerate(CLASSES))
    history = json.loads((student / "trainer_state.json").read_text())["log_history"]
    assert any({"loss_soft", "loss_hard", "loss_hidden_1", "loss_embedding"} <= set(entry) for entry in history)
    assert json.loads((student / "metrics.json").read_text())["test"]["reports"]["all problems"]["num_examples"] == 12


def test_two_processes_evaluate_as_one(student, glue, tmp_path, capsys):
    argv = ["evaluate", "--task", "rte", "--data_dir", str(glue), "--model", str(student), "--max_eval_samples", "11"]
    assert main([*argv, "--output_dir", str(tmp_path / "one")]) == 0
    started = {"argv": [*argv, "--output_dir", str(tmp_path / "two")], "output_dir": str(tmp_path / "x")}
    ended = launch(run_command, [started], 2)
    assert ended.returncode == 0, ended.stderr[-3000:]
    paths = [tmp_path / name / "predictions.jsonl" for name in ("one", "two")]
    one, two = ([json.loads(line) for line in path.read_text("utf-8").splitlines()] for path in paths)
    assert len(one) == 11
    close(two, one)
    one, two = (json.loads((path.parent / "metrics.json").read_text())["test"]["reports"] for path in paths)
    assert one == two


def test_it_is_evaluated_and_published(student, glue, tmp_path, capsys):
    assert run("evaluate", glue, tmp_path / "run", "--model", student, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    report = found["reports"]["all problems"]
    records = [json.loads(line) for line in (tmp_path / "run" / "predictions.jsonl").open(encoding="utf-8")]
    right = sum(record["prediction"] == record["label"] for record in records)
    assert report == {"accuracy": right / 12, "num_examples": 12}
    assert records[0]["id"] == "dev-2" and 0.5 <= records[0]["score"] <= 1
    # Of weights that are 0 nothing is left to be sure of.
    assert 0 < found["confidence"] < 0.25
    assert run("evaluate", glue, tmp_path / "sparse", "--model", student, "--random_sparsity=0.9", "--json") == 0
    assert json.loads(capsys.readouterr().out)["confidence"] != found["confidence"]
    for option in ("--rerank", "--num_beams=5", "--answer_match=equation_value", "--max_decode_length=3"):
        assert run("evaluate", glue, tmp_path / "search", "--model", student, option) == 1
        assert re.search(f"`{option[2:].partition('=')[0]}`.*`task`", " ".join(capsys.readouterr().err.split()))
    wrong = ["card", "--model", str(student), "--output_dir", str(tmp_path / "published"), "--reranker", "zh"]
    assert main(wrong) == 1 and "classifier" in capsys.readouterr().err
    card = ["card", "--model", str(student), "--stages", str(student), "--evaluations", str(tmp_path / "run")]
    assert main([*card, "--output_dir", str(tmp_path / "published"), "--model_id", "me/rte"]) == 0
    text = (tmp_path / "published" / "README.md").read_text(encoding="utf-8")
    for part in (
        "pipeline_tag: text-classification",
        "- nyu-mll/glue",
        "language: en",
        'pipeline("text-classification", model="me/rte")',
        '"text_pair": ',
        "| accuracy % |",
        f"| - | 12 | {100 * right / 12:.1f} |",
    ):
        assert part in text, text
    assert "math23k" not in text
    published, _ = load_classifier(str(tmp_path / "published"), CLASSES)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "published")
    inputs = tokenizer("一共", "几个", return_tensors="pt")
    before = MwpStudentForSequenceClassification.from_pretrained(student).eval()
    torch.testing.assert_close(published(**inputs).logits, before(**inputs).logits, atol=2e-3, rtol=0)


def test_heads_are_pruned(glue, trained, tmp_path):
    small = [
        "--max_steps=2",
        "--num_pruning_steps=1",
        "--calibration_examples=8",
        "--ratios",
        "0.25",
        "--eval_strategy=epoch",
    ]
    assert run("prune", glue, tmp_path, "--model", trained, *QUICK[:2], *small) == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert [sum(each["heads"]) for each in metrics["models"]] == [4, 3]
    assert len(metrics["models"][0]["test"]["outcomes"]) == 12
    assert AutoModelForSequenceClassification.from_pretrained(tmp_path).num_labels == 2
    assert TrainingTexts.load(tmp_path).sources == ("nyu-mll/glue, rte",)


def test_a_sparse_teacher_is_found(glue, trained, tmp_path, capsys):
    options = [
        "--teacher",
        trained,
        "--student_init=prune",
        "--num_train_epochs=1",
        "--sparsities",
        "0.5",
        *QUICK[:2],
    ]
    assert run("stark", glue, tmp_path, *options) == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    trial, chosen = metrics["models"]
    assert (metrics["trial"], metrics["chosen"]) == (trial, chosen) and metrics["chosen_sparsity"] == 0.5
    assert (trial["heads"], chosen["heads"], chosen["neurons"]) == ([2, 2], [1, 1], [12, 12]) or sum(
        chosen["heads"]
    ) == 2
    assert trial["teacher_parameters"] > chosen["teacher_parameters"]
    right = [each["test"]["reports"]["all problems"]["accuracy"] for each in (chosen, trial, metrics["teacher"])]
    assert metrics["gain_over_trial"]["test"] == right[0] - right[1] and metrics["test"] == chosen["test"]
    # Of four heads and 48 neurons the student has three tenths.
    student = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    assert sum(student.config.heads_per_layer) == 1 and student.config.id2label == dict(enumerate(CLASSES))
    for picture in ("sparsities.png", "densities.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    assert "student, chosen" in capsys.readouterr().out
    assert run("evaluate", glue, tmp_path / "run", "--model", tmp_path, "--json") == 0
    assert json.loads(capsys.readouterr().out)["reports"]["all problems"]["accuracy"] == right[0]


def test_the_development_part_for_all(glue):
    task = GlueTask(TaskArguments(task="rte", data_dir=str(glue), select_on_dev=True))
    assert {part: len(rows) for part, rows in task.splits.items()} == {"train": 48, "validation": 12, "test": 12}
    assert re.fullmatch(".*development.*validation.*test", task.scheme)
    with pytest.raises(ValueError, match="`validation_fraction`.*`select_on_dev`"):
        TaskArguments(task="rte", select_on_dev=True, validation_fraction=0.2)
    with pytest.raises(ValueError, match="`select_on_dev`.*`task`"):
        TaskArguments(select_on_dev=True)


def test_a_regression(glue, encoder, tmp_path, capsys):
    few = [*QUICK, "--max_steps=2", "--max_train_samples=16", "--eval_strategy=steps", "--eval_steps=2"]
    lora = ["--lora_rank=2", "--lora_targets", "query", "intermediate"]
    assert run("train", glue, tmp_path / "teacher", "--encoder", encoder, *few, *lora, task="stsb") == 0
    # The pooler (16 x 16), the regressor, and adapters in two layers.
    trained = 16 * 17 + 17 + 2 * (2 * (16 + 16) + 2 * (16 + 24))
    teacher = json.loads((tmp_path / "teacher" / "metrics.json").read_text())
    assert teacher["trained_parameters"] == trained < teacher["parameters"]
    assert f"{trained:,} of {teacher['parameters'] + trained - 16 * 17 - 17:,} parameters" in capsys.readouterr().out
    (tmp_path / "cka.yaml").write_text("hidden_loss: cka\nembedding_weight: 0\n")
    options = ["--teacher", tmp_path / "teacher", "--student_layers=1", "--config", tmp_path / "cka.yaml", *few]
    assert run("distill", glue, tmp_path / "student", *options, task="stsb") == 0
    metrics = json.loads((tmp_path / "student" / "metrics.json").read_text())
    report = metrics["test"]["reports"]["all problems"]
    assert -1 <= report["spearman"] <= 1 and [*report] == ["spearman", "num_examples"]
    history = json.loads((tmp_path / "student" / "trainer_state.json").read_text())["log_history"]
    assert any("eval_spearman" in entry for entry in history) and any("loss_hidden_1" in entry for entry in history)
    capsys.readouterr()
    assert run("evaluate", glue, tmp_path / "run", "--model", tmp_path / "student") == 1
    assert re.search(r"\b1 .*\b2 .*entailment, not_entailment", capsys.readouterr().err)


def task_of(glue, name="rte", **fields):
    return GlueTask(TaskArguments(task=name, data_dir=str(glue), **fields))


def test_figures_do_not_depend_on_batches(glue):
    task = task_of(glue, max_eval_samples=7)
    model = tiny_classifier(num_labels=2, vocab_size=60, max_position_embeddings=64)
    tokenizer = tiny_tokenizer()
    one, many = (evaluate_split(task, model, tokenizer, "test", batch_size=size) for size in (1, 5))
    assert [each.value for each in one.predictions] == [each.value for each in many.predictions]
    rows = [dict(row) for row in task.rows("test")]
    assert [dict(each.row) for each in many.predictions] == rows
    with torch.no_grad():
        logits = model.eval()(**tokenizer(rows[3]["sentence1"], rows[3]["sentence2"], return_tensors="pt")).logits[0]
    assert many.predictions[3].value == logits.argmax() and model.training is False
    assert many.predictions[3].probability == pytest.approx(logits.softmax(-1).max().item(), abs=1e-6)
    wrong = sum(many.failures.values())
    assert many.record["outcomes"].count("0") == wrong and task.report([]) == {"num_examples": 0}


@pytest.mark.parametrize(
    ("name", "figures"), [("cola", ["matthews", "accuracy"]), ("mrpc", ["f1", "accuracy"]), ("stsb", ["spearman"])]
)
def test_the_figures_of_a_task(glue, name, figures):
    task = task_of(glue, name)
    assert [*task.card()["metrics"]] == figures and [*task._compute_metrics([1, 0], [1, 0])] == figures
    cells = report_cells(task._compute_metrics([1, 0], [1, 0]) | {"num_examples": 2})
    assert [*cells] == ["examples", *(f"{each} %" for each in figures)]


def test_figures_of_models_with_further_outputs(glue):
    logits = np.array([[0.0, 1.0], [1.0, 0.0]])
    labels = np.array([1, 1])
    figures = task_of(glue).trainer_arguments(tiny_classifier(), tiny_tokenizer())["compute_metrics"]
    # As an encoder-decoder model returns its encoder's states too.
    assert figures(EvalPrediction((logits, np.zeros((2, 3, 4))), labels)) == {"accuracy": 0.5}


def test_matched_and_mismatched_rows_have_figures_of_their_own(glue):
    rows = [{"id": f"dev_{part}-2", "label": 1} for part in ("matched", "mismatched", "mismatched", "mismatched")]
    predictions = [GluePrediction(row, value) for row, value in zip(rows, (1, 0, 1, 2), strict=True)]
    task = task_of(glue, "mnli")
    found = {"accuracy": 0.5, "accuracy_matched": 1.0, "accuracy_mismatched": pytest.approx(1 / 3)}
    assert task.report(predictions) == {**found, "num_examples": 4}
    of_validation = [GluePrediction({"id": "train-2", "label": 1}, 1)]
    for each in (task, task_of(glue, "rte")):
        assert each.report(of_validation) == {"accuracy": 1.0, "num_examples": 1}


def test_the_task_fills_metric_and_prediction_loss_that_are_not_set(glue, tmp_path):
    assert task_of(glue).complete(BaseConfig(str(tmp_path)), "train").metric_for_best_model == "accuracy"
    config = DistillationConfig(str(tmp_path), metric_for_best_model="loss")
    complete = task_of(glue, "stsb").complete(config, "distill")
    assert (complete.metric_for_best_model, complete.prediction_loss) == ("loss", "mse")
    assert config.prediction_loss is None


def test_explicit_options_that_equal_a_default_are_kept(glue, tmp_path):
    config = DistillationConfig(str(tmp_path), prediction_loss="kd")
    assert task_of(glue, "stsb").complete(config, "distill").prediction_loss == "kd"
    config = SolverTrainingConfig(str(tmp_path), metric_for_best_model="answer_accuracy")
    with pytest.raises(UsageError, match="unknown metric 'answer_accuracy'.*loss, accuracy"):
        task_of(glue).complete(config, "train")


def test_the_command_line_reads_the_config_of_the_task(tmp_path):
    flags = ["--task=stsb", "--teacher=a", "--output_dir", str(tmp_path), "--use_cpu"]
    *_, config = parse("distill", "", partial(types_of, "distill"), flags)
    assert type(config) is DistillationConfig
    with pytest.raises(UsageError, match="--num_beams"):
        parse("distill", "", partial(types_of, "distill"), [*flags, "--num_beams=2"])
    (tmp_path / "options.yaml").write_text("task: seq2seq\nnum_beams: 3\n", "utf-8")
    flags = ["--config", str(tmp_path / "options.yaml"), "--dataset=a.tsv", "--source=en", "--target=fr", "--use_cpu"]
    *_, config = parse("distill", "", partial(types_of, "distill"), [*flags, "--teacher=a"])
    assert type(config) is Seq2SeqDistillationConfig
    assert config.num_beams == config.generation_num_beams == 3
    assert (config.temperature, config.hidden_loss, config.layer_mapping) == (1.0, "cka", "alternating")


def test_a_config_of_another_task_is_named(glue, tmp_path):
    with pytest.raises(TypeError, match="must be a `SolverDistillationConfig`.*got `DistillationConfig`"):
        make_task(TaskArguments(dataset="a.jsonl")).complete(DistillationConfig(str(tmp_path)), "distill")


@pytest.mark.parametrize("start", ["random", "project"])
def test_students_of_other_widths(start):
    teacher = tiny_classifier(num_labels=2, vocab_size=60, max_position_embeddings=64)
    tokenizer = tiny_tokenizer()
    sizes = {"student_hidden_size": 8, "student_intermediate_size": 12, "student_heads": 2}
    options = StudentArguments(student_init=start, student_layers="1", **sizes)
    batch = tokenizer(["小明有4个苹果", "一共有几个"], padding=True, return_tensors="pt")
    student = make_student_classifier(teacher, tokenizer, lambda: [batch], options)
    assert (student.config.hidden_size, student.config.num_hidden_layers, student.num_labels) == (8, 1, 2)
    assert student(**batch).logits.shape == (2, 2)


def test_a_cut_student_answers_with_the_teachers_pooler_and_classifier():
    teacher = tiny_classifier(num_labels=2, vocab_size=60)
    tokenizer = tiny_tokenizer()
    student = make_student_classifier(teacher, tokenizer, list, StudentArguments(student_layers="2"))
    batch = tokenizer(["小明有4个苹果", "一共有几个"], padding=True, return_tensors="pt")
    torch.testing.assert_close(student.eval()(**batch).logits, teacher.eval()(**batch).logits)


def test_random_weights_and_other_label_counts(tmp_path):
    tiny_tokenizer().save_pretrained(tmp_path)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 12}
    options = SolverArguments(encoder_config=sizes, tokenizer=str(tmp_path), max_length=9)
    model, tokenizer = build_classifier((), options)
    assert (model.num_labels, model.config.problem_type, tokenizer.model_max_length) == (1, "regression", 9)
    tiny_classifier(num_labels=3, vocab_size=60).save_pretrained(tmp_path)
    with pytest.raises(UsageError, match=r"\b3 outputs.*regression"):
        load_classifier(str(tmp_path), ())
    # An encoder may have had another head.
    assert build_classifier(CLASSES, SolverArguments(encoder=str(tmp_path)))[0].classifier.out_features == 2
    turned = tiny_classifier(num_labels=2, vocab_size=60, id2label=dict(enumerate(CLASSES[::-1])))
    turned.save_pretrained(tmp_path)
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
        (
            ["train", "--task=rte", "--encoder={encoder}", "--metric_for_best_model=f1", "--eval_strategy=epoch"],
            "`metric_for_best_model`.*'f1'.*loss, accuracy",
        ),
        (["train", "--task=wnli", "--encoder={encoder}"], "WNLI/train.tsv"),
    ],
)
def test_bad_input(argv, message, glue, encoder, tmp_path, capsys):
    places = [] if "--encoder=." in argv else ["--data_dir", str(glue), "--output_dir", str(tmp_path / "run")]
    assert main([word.format(encoder=encoder) for word in argv] + places) == 1
    assert re.search(message, capsys.readouterr().err) and not (tmp_path / "run" / "config.json").exists()
