"""Sequence-to-sequence tasks from their files: trained, distilled, pruned and measured through the command line."""

import json
import shutil
from types import SimpleNamespace

import pytest
import sacrebleu
import torch
from transformers import AutoModelForSeq2SeqLM, AutoTokenizer

from hf_mwp.commands.building.seq2seq import learn_tokenizer
from hf_mwp.commands.building.solver import SolverArguments
from hf_mwp.commands.hub.card_figures import check_card
from hf_mwp.commands.main import main
from hf_mwp.commands.tasks.data_options import MeasuredTaskArguments, TaskArguments
from hf_mwp.commands.tasks.make_task import make_task
from hf_mwp.commands.tasks.seq2seq import read_equation, write_equation
from hf_mwp.compress.trainers import Seq2SeqDistillationConfig
from hf_mwp.compress.trainers.generate_texts import GeneratedText
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.solver.training import MathSeq2SeqFineTuningConfig
from hf_mwp.utils.provenance import ancestry_of
from hf_mwp.utils.usage_error import UsageError
from tests.commands.folders import logged_names, read_json, read_rows, training_log, write_rows
from tests.compress.trainers.processes import close, launch, run_command
from tests.slow_parameters import slow_after
from tests.tiny import tiny_rows, tiny_tokenizer
from tests.tiny_seq2seq import tiny_seq2seq


QUICK = ["--use_cpu", "--per_device_train_batch_size=8", "--logging_steps=1", "--max_decode_length=10"]
SEQ2SEQ = ["--task=seq2seq", "--source=en", "--target=fr"]
SIZES = {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
SIZES |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "d_model": 16, "max_position_embeddings": 48}
NOUNS = {"dog": "chien", "cat": "chat", "man": "homme", "horse": "cheval"}
VERBS = {"runs": "court", "sleeps": "dort", "eats": "mange"}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """A folder of TSV files with a header."""
    folder = tmp_path_factory.mktemp("pairs")
    rows = []
    for size, size_in_french in (("small", "petit"), ("big", "grand")):
        for noun in NOUNS:
            for verb in VERBS:
                rows.append(f"the {size} {noun} {verb} .\tle {size_in_french} {NOUNS[noun]} {VERBS[verb]} .")
    splits = {"train": rows[:18], "val": rows[18:21], "test_2016": rows[21:]}
    for name, lines in splits.items():
        (folder / f"{name}.tsv").write_text("\n".join(["en\tfr", *lines]) + "\n", encoding="utf-8")
    return folder


def run(command, folder, *options):
    return main([command, "--output_dir", str(folder), *map(str, options)])


def train(folder, model_type, *options):
    config = json.dumps(SIZES | {"model_type": model_type})
    options = ["--encoder_config", config, "--learning_rate=1e-2", "--eval_strategy=epoch", *QUICK, *options]
    assert run("train", folder, "--tokenizer=learn:80", *options) == 0
    return folder


@pytest.fixture(scope="module")
def translator(pairs, tmp_path_factory):
    folder = tmp_path_factory.mktemp("translator")
    epochs = ["--num_train_epochs=2", "--save_strategy=epoch", "--load_best_model_at_end"]
    return train(folder, "marian", *SEQ2SEQ, "--dataset", pairs, *epochs)


@pytest.fixture(scope="module")
def equation_writer(problems, tmp_path_factory):
    folder = tmp_path_factory.mktemp("equation_writer")
    return train(folder, "bart", "--task=math_seq2seq", "--dataset", problems, "--num_train_epochs=1")


def test_translator_is_trained_from_random_weights(translator):
    metrics = read_json(translator / "metrics.json")
    report = metrics["test"]["reports"]["all problems"]
    assert list(report) == ["bleu", "chrf", "nll", "num_examples"]
    assert report["num_examples"] == 3
    assert metrics["best_model_checkpoint"]
    evaluations = [entry for entry in training_log(translator) if "eval_bleu" in entry]
    assert len(evaluations) == 2
    assert {"eval_loss", "eval_chrf"} <= evaluations[0].keys()
    assert read_json(translator / "data.json")["used"] == {"train": 18, "validation": 3, "test": 3}
    model = AutoModelForSeq2SeqLM.from_pretrained(translator)
    tokenizer = AutoTokenizer.from_pretrained(translator)
    assert model.config.vocab_size == len(tokenizer) <= 80
    assert tokenizer.model_max_length == 48
    text = "the big horse runs ."
    assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True) == text


def test_evaluation_agrees_with_its_records_and_the_model(translator, pairs, tmp_path, capsys):
    options = ["--model", translator, *SEQ2SEQ, "--dataset", pairs, "--num_beams=2", "--max_decode_length=12"]
    assert run("evaluate", tmp_path, *options, "--json") == 0
    report = json.loads(capsys.readouterr().out)["reports"]["all problems"]
    records = read_rows(tmp_path / "predictions.jsonl")
    predictions = [record["prediction"] for record in records]
    references = [[record["target"] for record in records]]
    assert report["bleu"] == sacrebleu.corpus_bleu(predictions, references).score
    assert report["chrf"] == sacrebleu.corpus_chrf(predictions, references).score
    model = AutoModelForSeq2SeqLM.from_pretrained(translator).eval()
    tokenizer = AutoTokenizer.from_pretrained(translator)
    total_loss = 0.0
    total_tokens = 0
    for record in records:
        inputs = tokenizer(record["text"], text_target=record["target"], return_tensors="pt")
        num_tokens = inputs["labels"].numel()
        with torch.no_grad():
            total_loss += model(**inputs).loss.item() * num_tokens
        total_tokens += num_tokens
    assert report["nll"] == pytest.approx(total_loss / total_tokens, rel=1e-5)
    beams = model.generate(inputs["input_ids"], num_beams=2, max_length=12, do_sample=False)
    assert record["prediction"] == tokenizer.decode(beams[0], skip_special_tokens=True).strip()


@pytest.mark.slow
def test_two_processes_evaluate_as_one(translator, pairs, tmp_path):
    argv = ["evaluate", "--model", str(translator), *SEQ2SEQ, "--dataset", str(pairs), "--num_beams=2"]
    # One process has no row of the test split.
    argv += ["--max_decode_length=8", "--max_eval_samples=1", "--output_dir"]
    assert main([*argv, str(tmp_path / "one")]) == 0
    started = {"argv": [*argv, str(tmp_path / "two")], "output_dir": str(tmp_path / "x")}
    ended = launch(run_command, [started], 2)
    assert ended.returncode == 0, ended.stderr[-3000:]
    records = read_rows(tmp_path / "one" / "predictions.jsonl")
    assert len(records) == 1
    close(read_rows(tmp_path / "two" / "predictions.jsonl"), records)


@pytest.mark.slow
def test_student_with_its_own_sizes_is_distilled(translator, pairs, tmp_path):
    options = ["--student_init=project", "--student_hidden_size=8", "--student_layers=2,1", "--max_steps=2"]
    losses = ["--hidden_loss=cka", "--layer_mapping=alternating", "--embedding_weight=0"]
    evaluations = ["--eval_strategy=epoch", "--cache_teacher_outputs"]
    data = [*SEQ2SEQ, "--dataset", pairs]
    assert run("distill", tmp_path, "--teacher", translator, *data, *options, *losses, *evaluations, *QUICK) == 0
    config = AutoModelForSeq2SeqLM.from_pretrained(tmp_path).config
    assert (config.encoder_layers, config.decoder_layers, config.d_model) == (2, 1, 8)
    assert {"eval_bleu", "loss_soft", "loss_hard"} <= logged_names(tmp_path)


def test_student_with_other_tokens_is_refused(translator, pairs, tmp_path, error_of):
    tiny_seq2seq().save_pretrained(tmp_path / "student")
    tiny_tokenizer().save_pretrained(tmp_path / "student")
    argv = ["distill", "--teacher", translator, "--student", tmp_path / "student", *SEQ2SEQ, "--dataset", pairs]
    error = error_of(*argv, *QUICK, "--output_dir", tmp_path / "run")
    assert "tokens that differ" in error
    assert "pseudo-label" in error


def test_card_has_results_example_and_sizes(translator, pairs, tmp_path):
    evaluation = tmp_path / "evaluation"
    data = [*SEQ2SEQ, "--dataset", pairs, "--max_decode_length=10"]
    assert run("evaluate", evaluation, "--model", translator, *data) == 0
    options = ["--model", translator, "--evaluations", evaluation]
    folder = tmp_path / "published"
    assert run("card", folder, *options, "--stages", translator, "--model_id=me/translator") == 0
    report = read_json(evaluation / "metrics.json")["test"]["reports"]["all problems"]
    card = (folder / "README.md").read_text()
    assert "| search | examples | bleu | chrf | nll |" in card
    assert f"| greedy | 3 | {report['bleu']:.2f} | {report['chrf']:.2f} | {report['nll']:.2f} |" in card
    assert "2 encoder and 2 decoder layers of width 16, feed-forward 24" in card
    assert 'AutoModelForSeq2SeqLM.from_pretrained("me/translator")' in card
    assert "the big horse" in card
    assert check_card(folder / "README.md", folder / "record.json") == 2
    # Without the training run, the task comes from the evaluation.
    without_stages = tmp_path / "without_stages"
    assert run("card", without_stages, *options) == 0
    results = card.partition("## Results")[2]
    assert (without_stages / "README.md").read_text().partition("## Results")[2] == results


@pytest.mark.parametrize(
    ("names", "tag", "language"),
    [(("en", "fr"), "translation", "fr"), (("text", "summary"), "text2text-generation", None)],
)
def test_only_translations_have_a_language(names, tag, language, tmp_path):
    write_rows(tmp_path / "test.jsonl", [dict.fromkeys(names, "a dog")])
    source, target = names
    task = make_task(TaskArguments(task="seq2seq", dataset=str(tmp_path), source=source, target=target))
    card = task.card()
    assert (card["pipeline_tag"], card["language"]) == (tag, language)
    assert card["datasets"] == [tmp_path.name]


def test_pretrained_model_is_trained_on_sources_with_a_prefix(translator, pairs):
    fields = {"dataset": str(pairs), "source": "en", "target": "fr", "source_prefix": "translate: "}
    task = make_task(TaskArguments(task="seq2seq", **fields))
    model, tokenizer = task.build_model(SolverArguments(encoder=str(translator)))
    weights = AutoModelForSeq2SeqLM.from_pretrained(translator).state_dict()
    assert all(value.equal(weights[name]) for name, value in model.state_dict().items())
    encoded = task.trainer_arguments(model, tokenizer)["train_dataset"][0]["input_ids"]
    assert encoded == tokenizer("translate: the small dog runs .")["input_ids"]


@pytest.mark.slow
def test_math_word_problems_are_written_as_equations(equation_writer, problems, tmp_path, capsys):
    report = read_json(equation_writer / "metrics.json")["test"]["reports"]["all problems"]
    assert {"answer_accuracy", "num_problems"} <= report.keys()
    assert "eval_answer_accuracy" in logged_names(equation_writer)
    capsys.readouterr()
    options = ["--model", equation_writer, "--task=math_seq2seq", "--dataset", problems, "--max_decode_length=10"]
    assert run("evaluate", tmp_path / "run", *options, "--json") == 0
    assert json.loads(capsys.readouterr().out)["reports"]["all problems"]["num_problems"] == 9
    card = make_task(TaskArguments(task="math_seq2seq", dataset=str(problems))).card()
    assert card["pipeline_tag"] == "text2text-generation"
    assert "[NUM0]" in card["example"]


@pytest.mark.parametrize(("match", "accuracy"), [("annotated", 0.0), ("equation_value", 1.0)])
def test_metrics_during_training_compare_with_the_chosen_target(match, accuracy, problems, tmp_path, monkeypatch):
    for name in ("train", "valid"):
        rows = [row | {"answer": "9999"} for row in read_rows(problems / f"{name}.jsonl")]
        write_rows(tmp_path / f"{name}.jsonl", rows)
    task = make_task(TaskArguments(task="math_seq2seq", dataset=str(tmp_path)))
    config = MathSeq2SeqFineTuningConfig(str(tmp_path), use_cpu=True, answer_match=match)
    equations = [task.pair(row)[1] for row in task.rows("validation")]
    monkeypatch.setattr("hf_mwp.commands.tasks.seq2seq.decode_texts", lambda processor, ids: equations)
    measure = task.metric_arguments(None, config)["compute_metrics"]
    assert measure(SimpleNamespace(predictions=None))["answer_accuracy"] == accuracy


def test_problems_without_an_equation_have_no_label(problems, tmp_path):
    rows = read_rows(problems / "valid.jsonl")
    unlabelled = [{"text": row["text"], "answer": row["answer"], "id": f"no-{row['id']}"} for row in rows[:3]]
    shutil.copy(problems / "train.jsonl", tmp_path)
    write_rows(tmp_path / "valid.jsonl", [*unlabelled, *rows])
    task = make_task(TaskArguments(task="math_seq2seq", dataset=str(tmp_path)))
    arguments = task.trainer_arguments(tiny_seq2seq(), tiny_tokenizer())
    assert len(arguments["train_dataset"]) == 36
    labels = arguments["eval_dataset"]["labels"]
    assert labels[:3] == [[-100]] * 3
    assert all(-100 not in row_labels for row_labels in labels[3:])
    assert len(task.learnable(task.rows("validation"))) == 8
    with pytest.raises(UsageError, match="None of the 3 problems"):
        task.learnable(task.rows("validation").select(range(3)))


def test_equations_are_written_and_read_as_texts():
    problem = MathWordProblem("小明有4个苹果，又买了2盒，每盒3.5个", "x=4+2*3.5/100")
    text = write_equation(problem)
    assert text in ("+ [NUM0] * [NUM1] / [NUM2] 100", "+ [NUM0] / * [NUM1] [NUM2] 100")
    tokenizer = learn_tokenizer([problem.masked.text(indexed=True), text], 40, ["[NUM0]", "[NUM1]", "[NUM2]"])
    decoded = tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True)
    for written in (text, decoded, text.replace(" ", "", 3)):
        assert read_equation(written, 3) == problem.expression
    # Tokenizers of BERT separate punctuation, and may write in lower case.
    spaced = "+ [ num0 ] * [ num1 ] / [ num2 ] 3 . 14"
    assert read_equation(spaced, 3).to_prefix() == ["+", "N0", "*", "N1", "/", "N2", "3.14"]
    for invalid in ("", "+", "+ [NUM0]", "+ [NUM0] [NUM3]", "你好 [NUM0]"):
        assert read_equation(invalid, 3) is None
    assert write_equation(MathWordProblem("小明有4个苹果")) is None


def test_same_texts_give_the_same_tokenizer():
    texts = [f"小明有[NUM0]个{fruit}, a {fruit}" for fruit in ("苹果", "梨", "桃子")]
    first = learn_tokenizer(texts, 30, ["[NUM0]"])
    second = learn_tokenizer(texts, 30, ["[NUM0]"])
    assert first.get_vocab() == second.get_vocab()
    assert len(first) <= 30
    assert "[NUM0]" in first.tokenize(texts[0])


def test_first_metric_of_texts_chooses_checkpoints(pairs, tmp_path):
    fields = {"dataset": str(pairs), "source": "en", "target": "fr", "text_metrics": ["rouge", "bleu"]}
    task = make_task(TaskArguments(task="seq2seq", **fields))
    assert task.metrics == ["rouge1", "rouge2", "rougeL", "bleu"]
    expected = {"train": "rougeL", "distill": "rougeL", "prune": "loss", "stark": "loss"}
    for command, metric in expected.items():
        config = task.complete(task.configs[command](str(tmp_path)), command)
        assert config.metric_for_best_model == metric
    with pytest.raises(UsageError, match="`metric_for_best_model`: .* 'blue'.* loss, rouge1"):
        task.complete(Seq2SeqDistillationConfig(str(tmp_path), metric_for_best_model="blue"), "distill")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"task": "seq2seq", "dataset": "a.tsv"}, "`dataset`.*`source`.*`target`"),
        ({"source": "en"}, "`source`"),
        ({"task": "rte", "target": "fr"}, "`target`"),
        ({"task": "seq2seq", "dataset": "a.tsv", "source": "en", "target": "fr", "fold": 1}, "`fold`"),
        ({"task": "seq2seq", "select_on_dev": True}, "`select_on_dev`.*GLUE"),
        ({"task": "math_seq2seq"}, "`dataset`"),
    ],
)
def test_options_that_do_not_fit_the_task_are_named(options, message):
    with pytest.raises(ValueError, match=message):
        MeasuredTaskArguments(**options)


@pytest.mark.parametrize(
    ("options", "message"),
    slow_after(
        2,
        [
            (["--encoder_config", '{"model_type": "bert"}', "--tokenizer=learn:80"], "'bert'"),
            (["--encoder_config", '{"layers": 3}', "--tokenizer=learn:80"], "'layers'"),
            (["--encoder_config", "{}", "--tokenizer=learn:x"], "such as learn:4000, not 'x'"),
            (["--encoder", "{model}", "--tokenizer={model}/more"], "has 90 tokens, but the model has only"),
            (["--encoder_config", "{}", "--tokenizer=learn:4"], "at least 5, such as learn:4000, not '4'"),
            (["--encoder_config", "{}", "--tokenizer=learn:80", "--constants", "1"], "`constants`"),
        ],
    ),
)
def test_models_that_cannot_be_made_are_named(options, message, translator, pairs, tmp_path, error_of):
    characters = [chr(code) for code in range(50, 200)]
    learn_tokenizer(characters, 90).save_pretrained(translator / "more")
    options = [option.replace("{model}", str(translator)) for option in options]
    argv = ["train", *SEQ2SEQ, "--dataset", pairs, "--output_dir", tmp_path / "run", *QUICK]
    assert message in error_of(*argv, *options)


@pytest.mark.slow
def test_generated_texts_become_training_data(translator, pairs, tmp_path, error_of):
    labels = tmp_path / "labels"
    options = ["--model", translator, *SEQ2SEQ, "--num_beams=3", "--num_return_sequences=2", "--keep_fraction=0.5"]
    options += ["--max_decode_length=10", "--batch_size=5"]
    assert run("pseudo-label", labels, "--problems", pairs, *options) == 0
    records = read_rows(labels / "train.jsonl")
    assert read_json(labels / "metrics.json")["fates"] == {"labelled": 9, "unsure": 9, "empty": 0}
    best = [record for record in records if record["rank"] == 0]
    assert len(best) == 9
    assert {record["rank"] for record in records} == {0, 1}
    assert all(record["score"] < 0 for record in best)
    # The other splits are copied, and the student inherits the texts that the labeller was trained on.
    task = make_task(TaskArguments(task="seq2seq", dataset=str(labels), source="en", target="fr"))
    sizes = {split: len(rows) for split, rows in task.splits.items()}
    assert sizes == {"train": len(records), "validation": 3, "test": 3}
    student = tiny_seq2seq()
    task.trainer_arguments(student, tiny_tokenizer())
    assert ancestry_of(student).sources == TrainingTexts.load(translator).sources
    # A run on other data removes the splits of the earlier labels, and no other files.
    (labels / "train.jsonl").unlink()
    (labels / "mine.jsonl").touch()
    again = ["pseudo-label", "--problems", pairs / "train.tsv", "--output_dir", labels, *options]
    again += ["--max_train_samples=3", "--keep_fraction=0.1"]
    assert "validation.jsonl" in error_of(*again)
    assert main([str(word) for word in [*again, "--overwrite"]]) == 0
    assert {file.name for file in labels.glob("*.jsonl")} == {"train.jsonl", "mine.jsonl"}
    # At least one text is labelled, also of few texts.
    assert read_json(labels / "metrics.json")["fates"]["labelled"] == 1


@pytest.fixture
def generated(monkeypatch):
    """Texts to generate instead of those of a model, in turn; and the sources of these texts."""
    generated = SimpleNamespace(texts=[], sources=[])

    def generate_texts(model, tokenizer, sources, **options):
        candidates = []
        for index, source in enumerate(sources):
            text = generated.texts[index % len(generated.texts)]
            generated.sources.append(source)
            candidates.append([GeneratedText(text, -1.0 - index, 2)])
        return candidates

    monkeypatch.setattr("hf_mwp.compress.trainers.generate_texts.generate_texts", generate_texts)
    return generated


@pytest.mark.slow
def test_only_valid_generated_equations_become_training_data(equation_writer, problems, generated, tmp_path, error_of):
    # The second divides by zero, the third is incomplete.
    generated.texts = ["+ [NUM0] [NUM1]", "/ [NUM0] - [NUM1] [NUM1]", "+ [NUM0]"]
    labels = tmp_path / "labels"
    options = ["--model", equation_writer, "--task=math_seq2seq"]
    assert run("pseudo-label", labels, *options, "--problems", problems, "--max_train_samples=12") == 0
    assert read_json(labels / "metrics.json")["fates"] == {"labelled": 4, "unsure": 0, "empty": 8}
    rows = tiny_rows(36, 1)[:12:3]
    for row, record in zip(rows, read_rows(labels / "train.jsonl"), strict=True):
        problem = MathWordProblem(row["text"], record["equation"])
        assert record["text"] == row["text"]
        assert problem.expression.to_prefix() == ["+", "N0", "N1"]
        assert record["answer"] in (None, row["answer"])
    task = make_task(TaskArguments(task="math_seq2seq", dataset=str(labels)))
    sizes = {split: len(rows) for split, rows in task.splits.items()}
    assert sizes == {"train": 4, "validation": 8, "test": 9}
    assert task.pair(task.splits["train"][0])[1] == generated.texts[0]
    generated.texts = ["+ [NUM0]"]
    argv = ["pseudo-label", *options, "--output_dir", tmp_path / "empty", "--problems"]
    assert "any of 36 texts" in error_of(*argv, problems)
    # A training split without usable problems is not replaced by the validation split.
    write_rows(labels / "train.jsonl", [{"text": "no numbers", "equation": "x=1"}])
    assert "any of 0 texts" in error_of(*argv, labels)


def test_labels_have_sources_without_the_prefix(translator, pairs, generated, tmp_path):
    generated.texts = ["un chien"]
    options = ["--model", translator, *SEQ2SEQ, "--source_prefix=translate: "]
    assert run("pseudo-label", tmp_path, "--problems", pairs, *options) == 0
    # Training adds the prefix.
    sources = [f"translate: {record['en']}" for record in read_rows(tmp_path / "train.jsonl")]
    assert generated.sources == sources
    assert len(sources) == 18


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--task=seq2seq"], "needs a `source`, a `target`"),
        (["--source=en"], "`source`"),
        (["--task=math_seq2seq", "--source=en"], "`source`"),
        ([*SEQ2SEQ, "--rerank"], "`rerank`"),
        ([*SEQ2SEQ, "--keep_fraction=0"], "`keep_fraction` must be above 0"),
        ([*SEQ2SEQ, "--num_return_sequences=9"], "`num_beams` (5)"),
    ],
)
def test_options_that_do_not_fit_generated_labels_are_named(options, message, pairs, tmp_path, error_of):
    argv = ["pseudo-label", "--model=a", "--problems", pairs, "--output_dir", tmp_path / "run"]
    assert message in error_of(*argv, *options)
