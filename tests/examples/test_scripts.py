"""The scripts of `examples/scripts`, with tiny models and a few rows."""

import csv
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
import yaml
from safetensors.torch import load_file
from transformers import (
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForQuestionAnswering,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertForMaskedLM,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    ModernBertConfig,
    ModernBertForTokenClassification,
    TrainingArguments,
)

from hf_mwp import CausalLMDistillationConfig
from tests.examples.scripts import EXAMPLES, load_script, write_json_lines
from tests.slow_parameters import slow_after
from tests.tiny import tiny_bert_config, tiny_rows, tiny_tokenizer
from tests.tiny_causal import tiny_causal
from tests.tiny_seq2seq import tiny_seq2seq


FOLDER = EXAMPLES / "scripts"
STEPS = ["--use_cpu", "true", "--report_to", "none", "--max_steps", "2", "--per_device_train_batch_size", "4"]
STEPS += ["--learning_rate", "1e-3", "--warmup_steps", "0", "--lr_scheduler_type", "constant"]
# The loss of the labels only, in the order and with the clipping of `Trainer`.
ONLY_LABELS = ["--soft_label_weight", "0", "--hidden_loss", "none", "--embedding_weight", "0"]
ONLY_LABELS += ["--prediction_weight", "1"]
SAME_STEPS = ["--train_sampling_strategy", "random", "--max_grad_norm", "1", "--per_device_eval_batch_size", "8"]


def run_script(name, *arguments):
    """Runs a script in this process."""
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as cache:
        patch.syspath_prepend(FOLDER)
        patch.setattr("datasets.config.HF_DATASETS_CACHE", Path(cache))
        patch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")


def texts(count, seed=0):
    return [row["text"] for row in tiny_rows(count, seed)]


def classified_rows(count):
    return [{"sentence": text, "label": "few" if len(text) < 18 else "many"} for text in texts(count)]


def tagged_rows(count):
    rows = []
    for text in texts(count):
        tags = ["B-name" if word == "小" else "I-name" if word == "明" else "O" for word in text]
        rows.append({"tokens": list(text), "ner_tags": tags})
    return rows


def question_rows(count):
    rows = []
    for index, text in enumerate(texts(count)):
        answers = {"text": [text[2:4]], "answer_start": [2]}
        rows.append({"id": str(index), "question": text[-5:], "context": text, "answers": answers})
    return rows


def text_rows(count):
    return [{"text": text} for text in texts(count)]


def translated_rows(count):
    return [{"translation": {"zh": text, "en": text[-7:]}} for text in texts(count)]


def bert(model_class, layers, **fields):
    torch.manual_seed(layers)
    return model_class(tiny_bert_config(vocab_size=len(tiny_tokenizer()), num_hidden_layers=layers, **fields))


def classifier(layers):
    return bert(BertForSequenceClassification, layers)


def tagger(layers):
    # Pruned, it is a class that exists for this head.
    tokens = dict.fromkeys(("pad_token_id", "bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 0)
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 24, "num_hidden_layers": layers}
    torch.manual_seed(layers)
    config = ModernBertConfig(vocab_size=len(tiny_tokenizer()), num_labels=3, **tokens, **sizes)
    return ModernBertForTokenClassification(config)


def reader(layers):
    return bert(BertForQuestionAnswering, layers)


def masked_model(layers):
    return bert(BertForMaskedLM, layers)


def causal_model(layers):
    return tiny_causal(seed=layers, num_hidden_layers=layers)


def translator(layers):
    return tiny_seq2seq(encoder_layers=layers, decoder_layers=layers, seed=layers)


TASKS = {
    "glue": (classifier, classified_rows, AutoModelForSequenceClassification, ["--max_seq_length", "32"]),
    "ner": (tagger, tagged_rows, AutoModelForTokenClassification, ["--max_seq_length", "32"]),
    "qa": (reader, question_rows, AutoModelForQuestionAnswering, ["--max_seq_length", "24", "--doc_stride", "4"]),
    "mlm": (masked_model, text_rows, AutoModelForMaskedLM, ["--max_seq_length", "16"]),
    "clm": (causal_model, text_rows, AutoModelForCausalLM, ["--block_size", "32"]),
    "translation": (
        translator,
        translated_rows,
        AutoModelForSeq2SeqLM,
        ["--source_lang", "zh", "--target_lang", "en", "--predict_with_generate", "true"],
    ),
}
METRICS = {
    "glue": {"eval_accuracy"},
    "ner": {"eval_precision", "eval_recall", "eval_f1", "eval_accuracy"},
    "qa": {"eval_exact_match", "eval_f1"},
    "mlm": {"eval_perplexity", "eval_accuracy"},
    "clm": {"eval_perplexity"},
    "translation": {"eval_bleu", "eval_chrf"},
}


def prepare(name, folder):
    """Save the student, the teacher and the rows of a task, and return the arguments of its script."""
    make_model, make_rows, _, arguments = TASKS[name]
    for model_name, layers in (("student", 1), ("teacher", 2)):
        make_model(layers).save_pretrained(folder / model_name)
        tiny_tokenizer().save_pretrained(folder / model_name)
    rows = make_rows(14)
    files = ["--train_file", write_json_lines(folder / "train.jsonl", rows[:10])]
    for split in ("validation", "test"):
        files += [f"--{split}_file", write_json_lines(folder / f"{split}.jsonl", rows[10:])]
    return ["--model_name_or_path", folder / "student", *files, *arguments, *STEPS]


def read_json(path):
    return json.loads(path.read_text("utf-8"))


def losses_of(folder):
    """The logged losses of a training."""
    return [entry for entry in read_json(folder / "trainer_state.json")["log_history"] if "loss" in entry]


def weights_of(folder):
    return load_file(folder / "model.safetensors")


class Run:
    """A training of a task with `Trainer`."""

    def __init__(self, name, folder):
        self.name = name
        self.folder = folder
        self.arguments = prepare(name, folder)
        self.output = folder / "plain"
        run_script(name, *self.arguments, *SAME_STEPS, "--output_dir", self.output, "--do_train", "--do_eval")

    def with_teacher(self, output, *flags):
        """Run the script with a teacher, and return the output folder."""
        teacher = ["--teacher_model", self.folder / "teacher", "--logging_steps", "1"]
        run_script(self.name, *self.arguments, *teacher, *flags, "--output_dir", output, "--do_train")
        return output


@pytest.fixture(scope="module", params=slow_after(1, TASKS))
def plain_run(request, tmp_path_factory):
    return Run(request.param, tmp_path_factory.mktemp(request.param))


def test_script_trains_and_evaluates(plain_run):
    metrics = read_json(plain_run.output / "all_results.json")
    assert metrics.keys() > METRICS[plain_run.name] | {"eval_loss", "train_loss"}
    assert (plain_run.output / "README.md").is_file()
    TASKS[plain_run.name][2].from_pretrained(plain_run.output)
    before = weights_of(plain_run.folder / "student")
    unchanged = {name for name, value in weights_of(plain_run.output).items() if torch.equal(value, before[name])}
    # BART's bias of logits is a buffer.
    assert unchanged <= {"final_logits_bias"}


def test_teacher_and_ratio_distil_and_prune(plain_run, tmp_path):
    flags = ["--max_ratio", "0.5", "--do_eval", "--do_predict"]
    output = plain_run.with_teacher(tmp_path, *flags)
    assert any(name.startswith("loss_soft") for name in losses_of(output)[0])
    assert read_json(output / "eval_results.json").keys() > METRICS[plain_run.name]
    model_class = TASKS[plain_run.name][2]
    pruned = model_class.from_pretrained(output)
    assert pruned.num_parameters() < model_class.from_pretrained(plain_run.output).num_parameters()
    if plain_run.name not in ("mlm", "clm"):
        assert len((output / "predictions.txt").read_text("utf-8").splitlines()) == 4


@pytest.mark.slow
def test_distillation_by_labels_only_equals_trainer(plain_run, tmp_path):
    weights = weights_of(plain_run.with_teacher(tmp_path, *ONLY_LABELS, *SAME_STEPS))
    for name, expected in weights_of(plain_run.output).items():
        torch.testing.assert_close(weights[name], expected, rtol=0, atol=1e-7)


@pytest.fixture
def glue(tmp_path):
    return [*prepare("glue", tmp_path), "--output_dir", tmp_path / "out"]


@pytest.mark.slow
def test_trainer_prunes_heads(glue, tmp_path):
    run_script("glue", *glue, "--max_ratio", "0.5", "--do_train")
    model = AutoModelForSequenceClassification.from_pretrained(tmp_path / "out")
    assert model.config.num_attention_heads == 1 or model.config.encoder_heads


@pytest.mark.slow
def test_training_resumes_from_the_last_checkpoint(glue, tmp_path):
    every_step = ["--do_train", "--save_strategy", "steps", "--save_steps", "1", "--logging_steps", "1"]
    run_script("glue", *glue, *every_step)
    first_losses = losses_of(tmp_path / "out")
    run_script("glue", *glue, *every_step, "--max_steps", "3", "--learning_rate", "1e-4", "--seed", "1")
    losses = losses_of(tmp_path / "out")
    assert losses[:2] == first_losses
    assert [entry["step"] for entry in losses] == [1, 2, 3]


@pytest.mark.slow
def test_regression_on_pairs_of_texts_in_csv_files(glue, tmp_path):
    bert(BertForSequenceClassification, 1, num_labels=1).save_pretrained(tmp_path / "student")
    path = tmp_path / "rows.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, ["first", "second", "label"])
        writer.writeheader()
        for index, text in enumerate(texts(6)):
            writer.writerow({"first": text[:5], "second": text[5:], "label": index / 2})
    files = ["--train_file", path, "--validation_file", path, "--test_file", path]
    run_script("glue", *glue, *files, "--do_train", "--do_eval", "--do_predict", "--max_eval_samples", "4")
    assert -1 <= read_json(tmp_path / "out" / "eval_results.json")["eval_spearman"] <= 1
    lines = (tmp_path / "out" / "predictions.txt").read_text("utf-8").splitlines()
    assert len([float(line) for line in lines]) == 4


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--do_eval"], "`validation`.*--validation_file"),
        (["--do_predict"], "`test`.*--test_file"),
    ],
)
def test_missing_splits_are_named(flags, message, glue, tmp_path):
    first, last = glue.index("--validation_file"), glue.index("--max_seq_length")
    with pytest.raises(ValueError, match=message):
        run_script("glue", *glue[:first], *glue[last:], *flags)


def test_missing_data_are_named(tmp_path):
    with pytest.raises(ValueError, match="--dataset_name"):
        run_script("glue", "--model_name_or_path", tmp_path, "--output_dir", tmp_path, "--use_cpu", "true")


def test_help_lists_the_options_of_trainers(capsys):
    with pytest.raises(SystemExit):
        run_script("glue", "--teacher_model", "teacher", "--help")
    output = capsys.readouterr().out
    for option in ("--max_ratio", "--model_name_or_path", "--temperature", "--report_to"):
        assert option in output


def test_options_of_a_file_are_read_and_replaced(monkeypatch):
    path = EXAMPLES / "compress_llm.yaml"
    changes = ["--use_cpu", "true", "--max_steps", "3", "--warmup_steps", "0.1"]
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr(sys, "argv", ["clm.py", str(path), *changes])
    script = script_module("clm")
    options, args = script.parse_arguments(script.CausalArguments, TrainingArguments, CausalLMDistillationConfig)
    assert isinstance(args, CausalLMDistillationConfig)
    assert (args.max_steps, args.warmup_steps, args.use_cpu) == (3, 0.1, True)
    expected = yaml.safe_load(path.read_text(encoding="utf-8")) | {"max_steps": 3, "warmup_steps": 0.1}
    # "none" means no tracker.
    expected["report_to"] = []
    assert expected.items() <= (vars(options) | vars(args)).items()
    monkeypatch.setattr(sys, "argv", ["clm.py", str(path), *changes, "--unknown", "1"])
    with pytest.raises(ValueError, match="--unknown"):
        script.parse_arguments(script.CausalArguments, TrainingArguments, CausalLMDistillationConfig)


@pytest.mark.slow
def test_two_processes_end_with_the_weights_of_one(glue, tmp_path):
    arguments = [*glue, "--teacher_model", tmp_path / "teacher", "--do_train", "--do_eval"]
    run_script("glue", *arguments)
    start = [sys.executable, "-m", "accelerate.commands.accelerate_cli", "launch", "--mixed_precision", "no"]
    start += ["--config_file", EXAMPLES / "accelerate" / "ddp.yaml", "--main_process_port", "0", FOLDER / "glue.py"]
    in_two = ["--ddp_backend", "gloo", "--per_device_train_batch_size", "2", "--output_dir", tmp_path / "two"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(EXAMPLES.parent)}
    environment["HF_DATASETS_CACHE"] = str(tmp_path / "cache")
    command = [*map(str, [*start, *arguments, *in_two])]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr[-3000:]
    assert read_json(tmp_path / "two" / "all_results.json").keys() > METRICS["glue"]
    weights = weights_of(tmp_path / "two")
    for name, expected in weights_of(tmp_path / "out").items():
        torch.testing.assert_close(weights[name], expected, rtol=1e-4, atol=1e-5)


def script_module(name):
    return load_script(f"scripts/{name}.py")


def test_answers_by_hand():
    answers = script_module("question_answers")
    # Two tokens of a question, then "ab", "cd", "ef".
    offsets = [(-1, -1), (-1, -1), (0, 2), (2, 4), (4, 6)]
    assert answers.answer_tokens(offsets, {"text": ["cdef"], "answer_start": [2]}) == (3, 4)
    assert answers.answer_tokens(offsets, {"text": ["efg"], "answer_start": [4]}) == (0, 0)
    assert answers.answer_tokens(offsets, {"text": [], "answer_start": []}) == (0, 0)
    rows = {"id": ["q"], "context": ["abcdef"]}
    features = [{"example_id": "q", "offset_mapping": offsets}]
    # The best pair of all, tokens 1 to 4, begins in the question; 4 to 3 is no text; 2 to 4 has three tokens.
    starts = np.array([[2.5, 9.0, 3.0, 1.0, 4.0, -100.0]])
    ends = np.array([[4.5, 0.0, 0.0, 3.5, 1.5, -100.0]])
    assert answers.find_answers((starts, ends), features, rows, 3) == {"q": "abcd"}
    assert answers.find_answers((starts, ends), features, rows, 1) == {"q": "ef"}
    assert answers.find_answers((starts, ends), features, rows, 3, may_be_empty=True) == {"q": ""}
    assert answers.answer_scores("The cat!", ["cat"]) == (1.0, 1.0)
    assert answers.answer_scores("black cat", ["a dog", "the cat"]) == (0.0, pytest.approx(2 / 3))
    assert answers.answer_scores("", []) == (1.0, 1.0)
    assert answers.answer_scores("cat", []) == (0.0, 0.0)


def test_entities_by_hand():
    tagging = script_module("tagging_metrics")
    tags = ["B-PER", "I-PER", "O", "I-LOC", "B-LOC", "I-ORG"]
    assert tagging.entities(tags) == {("PER", 0, 2), ("LOC", 3, 4), ("LOC", 4, 5), ("ORG", 5, 6)}
    assert tagging.entities([]) == set()
    labelled = [["B-PER", "I-PER", "O"], ["B-LOC", "O"]]
    predicted = [["B-PER", "O", "O"], ["B-LOC", "B-PER"]]
    # Of three predicted entities and two labelled ones, one is right, and so are three of five tags.
    expected = {"precision": 1 / 3, "recall": 1 / 2, "f1": 2 / 5, "accuracy": 3 / 5}
    assert tagging.tagging_metrics(predicted, labelled) == pytest.approx(expected)


def test_scripts_are_short():
    for path in FOLDER.glob("*.py"):
        is_shared = path.name == "training_script.py"
        assert len(path.read_text("utf-8").splitlines()) <= (200 if is_shared else 120), path.name
