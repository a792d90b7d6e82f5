"""The scripts of `examples/scripts`, with tiny models and a few rows."""

import csv
import json
import runpy
import sys

import pytest
import torch
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
    BertForTokenClassification,
    ModernBertConfig,
    ModernBertForTokenClassification,
)

from tests.examples.scripts import EXAMPLES, write_json_lines
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


@pytest.fixture
def run_script(monkeypatch, tmp_path):
    """Runs a script in this process."""
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")

    def run(name, *arguments):
        monkeypatch.setattr(sys, "argv", [f"{name}.py", *map(str, arguments)])
        runpy.run_path(str(FOLDER / f"{name}.py"), run_name="__main__")

    return run


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


@pytest.fixture
def task(tmp_path):
    """Saves the student, the teacher and the rows of a task, and returns the arguments of its script."""

    def make(name):
        make_model, make_rows, _, arguments = TASKS[name]
        for folder, layers in (("student", 1), ("teacher", 2)):
            model = make_model(layers)
            model.save_pretrained(tmp_path / folder)
            tiny_tokenizer().save_pretrained(tmp_path / folder)
        rows = make_rows(14)
        files = ["--train_file", write_json_lines(tmp_path / "train.jsonl", rows[:10])]
        for split in ("validation", "test"):
            files += [f"--{split}_file", write_json_lines(tmp_path / f"{split}.jsonl", rows[10:])]
        return ["--model_name_or_path", tmp_path / "student", *files, *arguments, *STEPS]

    return make


def read_json(path):
    return json.loads(path.read_text("utf-8"))


def weights_of(folder):
    return load_file(folder / "model.safetensors")


@pytest.mark.parametrize("name", TASKS)
def test_script_trains_and_evaluates(name, run_script, task, tmp_path):
    output = tmp_path / "out"
    run_script(name, *task(name), "--output_dir", output, "--do_train", "--do_eval")
    metrics = read_json(output / "all_results.json")
    assert metrics.keys() > METRICS[name] | {"eval_loss", "train_loss"}
    model = TASKS[name][2].from_pretrained(output)
    assert (output / "README.md").is_file()
    # Every weight has been trained.
    before = weights_of(tmp_path / "student")
    for parameter, value in weights_of(output).items():
        assert name == "mlm" or not torch.equal(value, before[parameter]), parameter
    assert model.num_parameters() == TASKS[name][0](1).num_parameters()


@pytest.mark.parametrize("name", TASKS)
def test_teacher_makes_it_a_distillation(name, run_script, task, tmp_path):
    output = tmp_path / "out"
    flags = ["--teacher_model", tmp_path / "teacher", "--logging_steps", "1"]
    run_script(name, *task(name), *flags, "--output_dir", output, "--do_train", "--do_eval")
    history = read_json(output / "trainer_state.json")["log_history"]
    assert "loss_soft" in history[0]
    assert read_json(output / "eval_results.json").keys() > METRICS[name]


@pytest.mark.parametrize("name", TASKS)
def test_only_learning_labels_equals_trainer(name, run_script, task, tmp_path):
    arguments = [*task(name), *SAME_STEPS, "--do_train"]
    run_script(name, *arguments, "--output_dir", tmp_path / "plain")
    flags = [*ONLY_LABELS, "--teacher_model", tmp_path / "teacher"]
    run_script(name, *arguments, *flags, "--output_dir", tmp_path / "distilled")
    weights = weights_of(tmp_path / "distilled")
    for parameter, expected in weights_of(tmp_path / "plain").items():
        torch.testing.assert_close(weights[parameter], expected, rtol=0, atol=1e-7)


@pytest.mark.parametrize("has_teacher", [False, True])
@pytest.mark.parametrize("name", TASKS)
def test_heads_are_removed(name, has_teacher, run_script, task, tmp_path):
    output = tmp_path / "out"
    flags = ["--max_ratio", "0.5", *(["--teacher_model", tmp_path / "teacher"] if has_teacher else [])]
    run_script(name, *task(name), *flags, "--output_dir", output, "--do_train")
    assert TASKS[name][2].from_pretrained(output).num_parameters() < TASKS[name][0](1).num_parameters()
