"""Sequence-to-sequence tasks from their files: trained, distilled, pruned and measured through the command line."""

import json
from types import SimpleNamespace

import pytest
import sacrebleu
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    BartConfig,
    BartForConditionalGeneration,
    MBartConfig,
    MBartForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
)

from hf_mwp.commands.building.seq2seq import learn_tokenizer
from hf_mwp.commands.hub.card_figures import check_card
from hf_mwp.commands.main import main
from hf_mwp.commands.tasks.data_options import MeasuredTaskArguments, TaskArguments
from hf_mwp.commands.tasks.make_task import make_task
from hf_mwp.commands.tasks.seq2seq import read_equation, write_equation
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.trainers import Seq2SeqDistillationConfig, Seq2SeqFineTuningConfig
from hf_mwp.compress.trainers.generate_texts import GeneratedText
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.solver.training import MathSeq2SeqFineTuningConfig
from hf_mwp.utils.usage_error import UsageError
from tests.compress.trainers.processes import close, launch, run_command
from tests.tiny import tiny_rows


QUICK = ["--use_cpu", "--per_device_train_batch_size=8", "--logging_steps=1", "--max_decode_length=10"]
SIZES = {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 24, "decoder_ffn_dim": 24}
SIZES |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "d_model": 16, "max_position_embeddings": 48}
NOUNS = {"dog": "chien", "cat": "chat", "man": "homme", "horse": "cheval"}
VERBS = {"runs": "court", "sleeps": "dort", "eats": "mange"}


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """A folder of TSV files with a header."""
    folder = tmp_path_factory.mktemp("pairs")
    rows = [
        f"the {size} {noun} {verb} .\tle {taille} {NOUNS[noun]} {VERBS[verb]} ."
        for size, taille in (("small", "petit"), ("big", "grand"))
        for noun in NOUNS
        for verb in VERBS
    ]
    for name, part in (("train", rows[:18]), ("val", rows[18:21]), ("test_2016", rows[21:])):
        (folder / f"{name}.tsv").write_text("\n".join(["en\tfr", *part]) + "\n", encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def problems(tmp_path_factory):
    folder = tmp_path_factory.mktemp("problems")
    for name, rows in (("train", tiny_rows(18)), ("valid", tiny_rows(6, 1)), ("test", tiny_rows(6, 2))):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
    return folder


def run(command, folder, *options, data=None, task="seq2seq"):
    given = ["--task", task, "--dataset", str(data)]
    given += ["--source=en", "--target=fr"] if task == "seq2seq" else []
    return main([command, *given, "--output_dir", str(folder), *map(str, options)])


def train(folder, data, task="seq2seq", model_type="marian", *options):
    config = json.dumps(SIZES | {"model_type": model_type})
    rates = ["--learning_rate=1e-2", "--num_train_epochs=2", "--eval_strategy=epoch", "--save_strategy=epoch"]
    start = ["--encoder_config", config, "--tokenizer=learn:80", *QUICK, *rates, "--load_best_model_at_end"]
    assert run("train", folder, *start, *options, data=data, task=task) == 0
    return folder


@pytest.fixture(scope="module")
def translator(pairs, tmp_path_factory):
    return train(tmp_path_factory.mktemp("translator"), pairs)


def test_a_translator_from_random_weights(translator, pairs):
    metrics = json.loads((translator / "metrics.json").read_text())
    report = metrics["test"]["reports"]["all problems"]
    assert list(report) == ["bleu", "chrf", "nll", "num_examples"] and report["num_examples"] == 3
    assert metrics["best_model_checkpoint"]
    history = json.loads((translator / "trainer_state.json").read_text())["log_history"]
    evaluated = [entry for entry in history if "eval_bleu" in entry]
    assert len(evaluated) == 2 and {"eval_loss", "eval_chrf"} <= evaluated[0].keys()
    record = json.loads((translator / "data.json").read_text())
    assert record["used"] == {"train": 18, "validation": 3, "test": 3}
    model = AutoModelForSeq2SeqLM.from_pretrained(translator)
    tokenizer = AutoTokenizer.from_pretrained(translator)
    assert model.config.vocab_size == len(tokenizer) <= 80 and tokenizer.model_max_length == 48
    text = "the big horse runs ."
    assert tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True) == text


def test_it_is_evaluated(translator, pairs, tmp_path, capsys):
    options = ["--model", translator, "--num_beams=2", "--max_decode_length=12", "--json"]
    assert run("evaluate", tmp_path / "run", *options, data=pairs) == 0
    report = json.loads(capsys.readouterr().out)["reports"]["all problems"]
    path = tmp_path / "run" / "predictions.jsonl"
    records = [json.loads(line) for line in path.open(encoding="utf-8")]
    texts = [record["prediction"] for record in records], [[record["target"] for record in records]]
    assert report["bleu"] == sacrebleu.corpus_bleu(*texts).score
    assert report["chrf"] == sacrebleu.corpus_chrf(*texts).score
    model = AutoModelForSeq2SeqLM.from_pretrained(translator)
    tokenizer = AutoTokenizer.from_pretrained(translator)
    losses = 0.0
    tokens = 0
    for record in records:
        inputs = tokenizer(record["text"], text_target=record["target"], return_tensors="pt")
        count = inputs["labels"].numel()
        with torch.no_grad():
            losses = losses + model.eval()(**inputs).loss.item() * count
            tokens = tokens + count
        beams = model.generate(inputs["input_ids"], num_beams=2, max_length=12, do_sample=False)
        assert record["prediction"] == tokenizer.decode(beams[0], skip_special_tokens=True).strip()
    assert report["nll"] == pytest.approx(losses / tokens, rel=1e-5)
    assert run("evaluate", tmp_path / "search", *options, "--rerank", data=pairs) == 1
    assert "`rerank` does not apply" in capsys.readouterr().err


def test_two_processes_evaluate_and_label_as_one(translator, pairs, tmp_path, capsys):
    model = ["--model", str(translator), "--num_beams=2", "--max_decode_length=8"]
    texts = ["--task=seq2seq", "--source=en", "--target=fr"]
    # One process has no row of the test split.
    evaluate = ["evaluate", *texts, "--dataset", str(pairs), "--max_eval_samples=1"]
    label = ["pseudo-label", *texts, "--problems", str(pairs)]
    runs = {
        folder: [[*argv, *model, "--output_dir", str(tmp_path / folder / argv[0])] for argv in (evaluate, label)]
        for folder in ("one", "two")
    }
    assert [main(argv) for argv in runs["one"]] == [0, 0]
    for argv in runs["two"]:
        ended = launch(run_command, [{"argv": argv, "output_dir": str(tmp_path / "x")}], 2)
        assert ended.returncode == 0, ended.stderr[-3000:]
    for name, count in (("evaluate/predictions", 1), ("pseudo-label/train", 18)):
        paths = [tmp_path / folder / f"{name}.jsonl" for folder in runs]
        one, two = ([json.loads(line) for line in path.read_text("utf-8").splitlines()] for path in paths)
        assert len(one) == count
        close(two, one)


@pytest.mark.parametrize(
    ("options", "sizes"),
    [(["--student_layers=1"], (1, 1, 16)), (["--student_init=project", "--student_hidden_size=8"], (2, 1, 8))],
)
def test_students(options, sizes, translator, pairs, tmp_path):
    layers = ["--student_layers", "2,1"] if sizes[0] == 2 else []
    loss = ["--hidden_loss=cka", "--layer_mapping=alternating", "--embedding_weight=0", "--num_train_epochs=1"]
    evaluations = ["--eval_strategy=epoch", "--cache_teacher_outputs"]
    given = ["--teacher", translator, *options, *layers, *loss, *evaluations, *QUICK]
    assert run("distill", tmp_path, *given, data=pairs) == 0
    config = AutoModelForSeq2SeqLM.from_pretrained(tmp_path).config
    assert (config.encoder_layers, config.decoder_layers, config.d_model) == sizes
    history = json.loads((tmp_path / "trainer_state.json").read_text())["log_history"]
    assert any("eval_bleu" in entry for entry in history)
    assert any({"loss_soft", "loss_hard"} < entry.keys() for entry in history)


def test_a_student_with_other_tokens_is_refused(translator, pairs, tmp_path, capsys):
    train(tmp_path / "other", pairs, "seq2seq", "bart", "--num_train_epochs=1", "--tokenizer=learn:60")
    capsys.readouterr()
    given = ["--teacher", translator, "--student", tmp_path / "other", *QUICK]
    assert run("distill", tmp_path / "student", *given, data=pairs) == 1
    assert "tokens that differ" in (error := capsys.readouterr().err) and "pseudo-label" in error


def test_its_card(translator, pairs, tmp_path):
    evaluation = tmp_path / "evaluation"
    folder = tmp_path / "published"
    given = ["--model", str(translator), "--output_dir"]
    assert run("evaluate", evaluation, "--model", translator, "--max_decode_length=10", data=pairs) == 0
    runs = ["--stages", str(translator), "--evaluations", str(evaluation)]
    assert main(["card", *given, str(folder), *runs, "--model_id=me/translator"]) == 0
    report = json.loads((evaluation / "metrics.json").read_text())["test"]["reports"]["all problems"]
    card = (folder / "README.md").read_text()
    assert "| search | examples | bleu | chrf | nll |" in card
    assert f"| greedy | 3 | {report['bleu']:.2f} | {report['chrf']:.2f} | {report['nll']:.2f} |" in card
    assert "2 encoder and 2 decoder layers of width 16, feed-forward 24" in card
    assert 'AutoModelForSeq2SeqLM.from_pretrained("me/translator")' in card and "the big horse" in card
    assert check_card(folder / "README.md", folder / "record.json") == 2
    # Without the training run, the evaluation tells the task.
    again = tmp_path / "again"
    assert main(["card", *given, str(again), *runs[2:]]) == 0
    assert (again / "README.md").read_text().partition("## Results")[2] == card.partition("## Results")[2]
    model, whole = (AutoModelForSeq2SeqLM.from_pretrained(path) for path in (folder, translator))
    inputs = AutoTokenizer.from_pretrained(folder)("the big horse runs .", return_tensors="pt")
    labels = torch.tensor([[5, 6, 2]])
    with torch.no_grad():
        losses = [each.eval()(**inputs, labels=labels).loss for each in (model, whole)]
    torch.testing.assert_close(*losses, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize(
    ("names", "tag", "language"),
    [(("en", "fr"), "translation", "fr"), (("text", "summary"), "text2text-generation", None)],
)
def test_only_translations_have_a_language(names, tag, language, tmp_path):
    (tmp_path / "test.jsonl").write_text(json.dumps(dict.fromkeys(names, "a dog")) + "\n")
    data = {"dataset": str(tmp_path), "source": names[0], "target": names[1]}
    card = make_task(TaskArguments(task="seq2seq", **data)).card()
    assert (card["pipeline_tag"], card["language"]) == (tag, language)
    assert card["datasets"] == [tmp_path.name]


def test_heads_are_pruned(translator, pairs, tmp_path):
    options = ["--model", translator, "--ratios", 0.25, "--num_pruning_steps=2", "--num_train_epochs=1"]
    assert run("prune", tmp_path, *options, *QUICK, data=pairs) == 0
    model = AutoModelForSeq2SeqLM.from_pretrained(tmp_path)
    assert sum(each.num_heads for each in layer_parts(model)) == 9
    models = json.loads((tmp_path / "metrics.json").read_text())["models"]
    assert [sum(each["heads"]) for each in models] == [12, 9] and models[1]["saved"]["parameters"] > 0


def test_the_sparse_teacher_of_a_student(translator, pairs, tmp_path):
    options = ["--teacher", translator, "--student_layers=1", "--sparsities", 0.5, "--num_train_epochs=1"]
    assert run("stark", tmp_path, *options, *QUICK, data=pairs) == 0
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert metrics["chosen_by"] == "eval_loss" and [each["sparsity"] for each in metrics["models"]] == [0, 0.5]
    # Two layers of the encoder, self-attention and cross-attention of two layers of the decoder.
    whole, sparse = (each["heads"] for each in metrics["models"])
    assert whole == [2] * 6 and len(sparse) == 6 and sum(sparse) == 6
    assert (
        sum(metrics["models"][1]["neurons"]) == 48
        and metrics["chosen"]["test"]["reports"]["all problems"]["bleu"] >= 0
    )
    assert AutoModelForSeq2SeqLM.from_pretrained(tmp_path).config.encoder_layers == 1


def test_heads_of_t5_are_no_units_of_a_sparse_teacher(pairs, tmp_path, capsys):
    tokenizer = learn_tokenizer(["the big horse runs ."], 40)
    sizes = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 2, "decoder_start_token_id": 1}
    config = T5Config(vocab_size=len(tokenizer), pad_token_id=1, eos_token_id=2, **sizes)
    T5ForConditionalGeneration(config).save_pretrained(tmp_path / "t5")
    tokenizer.save_pretrained(tmp_path / "t5")
    options = ["--teacher", tmp_path / "t5", "--student_layers=1", "--sparsities", 0.5]
    assert run("stark", tmp_path / "run", *options, *QUICK, data=pairs) == 1
    assert "share one bias over relative positions" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "run" / "stages").exists()


def test_heads_are_scored(translator, pairs, tmp_path):
    options = ["--model", translator, "--importance=gradient", "--num_batches=2", "--batch_size=4"]
    assert run("heads", tmp_path, *options, data=pairs) == 0
    scores = json.loads((tmp_path / "heads.json").read_text())["scores"]
    # Two layers of the encoder, self-attention and cross-attention of two layers of the decoder.
    assert [len(row) for row in scores] == [2] * 6 and all(score > 0 for row in scores for score in row)


def test_a_pretrained_model_with_a_prefix(translator, pairs, tmp_path):
    options = ["--encoder", translator, "--source_prefix=translate: ", "--max_steps=1", "--warmup_steps=0", *QUICK]
    assert run("train", tmp_path, *options, data=pairs) == 0
    ours, theirs = (AutoModelForSeq2SeqLM.from_pretrained(path) for path in (tmp_path, translator))
    assert ours.config.vocab_size == theirs.config.vocab_size
    assert not torch.equal(ours.model.shared.weight, theirs.model.shared.weight)


def test_math_word_problems_as_sequences(problems, tmp_path, capsys):
    folder = train(tmp_path / "math", problems, "math_seq2seq", "bart")
    metrics = json.loads((folder / "metrics.json").read_text())
    assert {"answer_accuracy", "num_problems"} <= metrics["test"]["reports"]["all problems"].keys()
    history = json.loads((folder / "trainer_state.json").read_text())["log_history"]
    assert any("eval_answer_accuracy" in entry for entry in history)
    options = ["--model", folder, "--json", "--max_decode_length=10"]
    capsys.readouterr()
    assert run("evaluate", tmp_path / "run", *options, data=problems, task="math_seq2seq") == 0
    assert json.loads(capsys.readouterr().out)["reports"]["all problems"]["num_problems"] == 6
    given = ["--evaluations", str(tmp_path / "run"), "--stages", str(folder), "--output_dir", str(tmp_path / "card")]
    assert main(["card", "--model", str(folder), *given]) == 0
    card = (tmp_path / "card" / "README.md").read_text()
    assert "| answers % |" in card and "[NUM0]" in card and "text2text-generation" in card


@pytest.mark.parametrize(("match", "right"), [("annotated", 0.0), ("equation_value", 1.0)])
def test_metrics_during_training_compare_with_the_chosen_target(match, right, problems, tmp_path, monkeypatch):
    for name in ("train", "valid"):
        rows = [json.loads(line) | {"answer": "9999"} for line in (problems / f"{name}.jsonl").open(encoding="utf-8")]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    task = make_task(TaskArguments(task="math_seq2seq", dataset=str(tmp_path)))
    config = MathSeq2SeqFineTuningConfig(str(tmp_path), use_cpu=True, answer_match=match)
    generated = [task.pair(row)[1] for row in task.rows("validation")]
    monkeypatch.setattr("hf_mwp.commands.tasks.seq2seq.decode_texts", lambda processor, ids: generated)
    measure = task.metric_arguments(None, config)["compute_metrics"]
    assert measure(SimpleNamespace(predictions=None))["answer_accuracy"] == right


@pytest.mark.parametrize("distilled", [False, True])
@pytest.mark.parametrize(
    ("config_class", "model_class"),
    [(BartConfig, BartForConditionalGeneration), (MBartConfig, MBartForConditionalGeneration)],
)
def test_problems_without_an_equation_do_not_count_in_the_loss(
    config_class, model_class, distilled, problems, tmp_path
):
    rows = [json.loads(line) for line in (problems / "valid.jsonl").open(encoding="utf-8")]
    extra = [{"text": row["text"], "answer": row["answer"], "id": f"no-{row['id']}"} for row in rows[:3]]
    mixed = tmp_path / "mixed"
    mixed.mkdir()
    (mixed / "train.jsonl").write_text((problems / "train.jsonl").read_text("utf-8"), "utf-8")
    (mixed / "valid.jsonl").write_text("\n".join(map(json.dumps, [*extra, *rows])), "utf-8")
    losses = []
    for data, count in ((problems, 6), (mixed, 9)):
        task = make_task(TaskArguments(task="math_seq2seq", dataset=str(data)))
        torch.manual_seed(0)
        config = config_class(**SIZES, vocab_size=80, pad_token_id=1, decoder_start_token_id=2)
        texts = [text for row in task.rows("train") for text in task.pair(row)]
        tokenizer = learn_tokenizer(texts, 80, task.placeholders)
        fields = {"use_cpu": True, "report_to": "none", "per_device_eval_batch_size": 1, "max_decode_length": 10}
        args = MathSeq2SeqFineTuningConfig(str(tmp_path), **fields)
        arguments = task.trainer_arguments(model_class(config), tokenizer, args)
        assert len(arguments["train_dataset"]) == 18 and len(arguments["eval_dataset"]) == count
        fields = {"use_cpu": True, "report_to": "none", "per_device_eval_batch_size": 1, "max_decode_length": 10}
        if distilled:
            teacher = model_class(config)
            args = Seq2SeqDistillationConfig(str(tmp_path), soft_label_weight=0.5, **fields)
            metrics = task.distillation_class(args=args, teacher_model=teacher, **arguments).evaluate()
        else:
            metrics = task.trainer_class(args=Seq2SeqFineTuningConfig(str(tmp_path), **fields), **arguments).evaluate()
        assert metrics["eval_num_problems"] == count
        losses.append(metrics["eval_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-6)
    assert len(task.learnable(task.rows("validation"))) == 6
    with pytest.raises(UsageError, match="None of the 3 problems"):
        task.learnable(task.rows("validation").select(range(3)))


def test_equations_as_texts():
    problem = MathWordProblem("小明有4个苹果，又买了2盒，每盒3.5个", "x=4+2*3.5/100")
    text = write_equation(problem)
    assert text == "+ [NUM0] * [NUM1] / [NUM2] 100" or text == "+ [NUM0] / * [NUM1] [NUM2] 100"
    tokenizer = learn_tokenizer([problem.masked.text(indexed=True), text], 40, ["[NUM0]", "[NUM1]", "[NUM2]"])
    again = tokenizer.decode(tokenizer(text)["input_ids"], skip_special_tokens=True)
    for written in (text, again, text.replace(" ", "", 3)):
        assert read_equation(written, 3) == problem.expression
    # Tokenizers of BERT separate punctuation, and may write in lower case.
    spaced = "+ [ num0 ] * [ num1 ] / [ num2 ] 3 . 14"
    assert read_equation(spaced, 3).to_prefix() == ["+", "N0", "*", "N1", "/", "N2", "3.14"]
    for wrong in ("", "+", "+ [NUM0]", "+ [NUM0] [NUM3]", "你好 [NUM0]"):
        assert read_equation(wrong, 3) is None
    assert write_equation(MathWordProblem("小明有4个苹果")) is None


def test_the_tokenizer_is_the_same_for_the_same_texts():
    texts = [f"小明有[NUM0]个{fruit}, a {fruit}" for fruit in ("苹果", "梨", "桃子")]
    first, second = (learn_tokenizer(texts, 30, ["[NUM0]"]) for _ in range(2))
    assert first.get_vocab() == second.get_vocab() and len(first) <= 30
    assert "[NUM0]" in first.tokenize(texts[0])


def test_metrics_that_choose_checkpoints(pairs, tmp_path):
    given = {"task": "seq2seq", "dataset": str(pairs), "source": "en", "target": "fr"}
    task = make_task(TaskArguments(**given, text_metrics=["rouge", "bleu"]))
    assert task.metric == "rougeL" and task.metrics == ["rouge1", "rouge2", "rougeL", "bleu"]
    expected = {"train": "rougeL", "distill": "rougeL", "prune": "loss", "stark": "loss"}
    for command, metric in expected.items():
        config = task.complete(task.configs[command](str(tmp_path)), command)
        assert config.metric_for_best_model == metric
    with pytest.raises(UsageError, match="`metric_for_best_model`: .* 'blue'.* loss, rouge1"):
        task.complete(Seq2SeqDistillationConfig(str(tmp_path), metric_for_best_model="blue"), "distill")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"task": "seq2seq", "dataset": "a.tsv"}, "`dataset`.*`source`.*`target`"),
        ({"source": "en"}, "`source`"),
        ({"task": "rte", "target": "fr"}, "`target`"),
        ({"task": "seq2seq", "dataset": "a.tsv", "source": "en", "target": "fr", "fold": 1}, "`fold`"),
        ({"task": "seq2seq", "select_on_dev": True}, "`select_on_dev`.*GLUE"),
    ],
)
def test_options_that_do_not_fit(given, message):
    with pytest.raises(ValueError, match=message):
        TaskArguments(**given)
    with pytest.raises(ValueError, match="`dataset`"):
        MeasuredTaskArguments(task="math_seq2seq")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--encoder_config", '{"model_type": "bert"}', "--tokenizer=learn:80"], "'bert'"),
        (["--encoder_config", '{"layers": 3}', "--tokenizer=learn:80"], "'layers'"),
        (["--encoder_config", "{}", "--tokenizer=learn:x"], "such as learn:4000, not 'x'"),
        (["--encoder", "{model}", "--tokenizer={model}/more"], "has 90 tokens, but the model has only"),
        (["--encoder_config", "{}", "--tokenizer=learn:4"], "at least 5, such as learn:4000, not '4'"),
        (["--encoder_config", "{}", "--tokenizer=learn:80", "--constants", "1"], "`constants`"),
    ],
)
def test_models_that_cannot_be_made(options, message, translator, pairs, tmp_path, capsys):
    learn_tokenizer([chr(place) for place in range(50, 200)], 90).save_pretrained(translator / "more")
    options = [option.replace("{model}", str(translator)) for option in options]
    assert run("train", tmp_path / "run", *options, *QUICK, data=pairs) == 1
    assert message in " ".join(capsys.readouterr().err.split())


def test_generated_texts_are_the_data_of_a_student_with_other_tokens(translator, pairs, tmp_path, capsys):
    options = ["--model", str(translator), "--task=seq2seq", "--source=en", "--target=fr", "--num_beams=3"]
    options += ["--num_return_sequences=2", "--keep_fraction=0.5", "--max_decode_length=10", "--batch_size=5"]
    given = ["pseudo-label", "--problems", str(pairs), "--output_dir", str(tmp_path / "labels"), *options]
    assert main(given) == 0
    path = tmp_path / "labels" / "train.jsonl"
    records = [json.loads(line) for line in path.open(encoding="utf-8")]
    metrics = json.loads((tmp_path / "labels" / "metrics.json").read_text())
    assert metrics["fates"] == {"labelled": 9, "unsure": 9, "empty": 0}
    best = [record for record in records if record["rank"] == 0]
    assert len(best) == 9 and {record["rank"] for record in records} == {0, 1}
    model = AutoModelForSeq2SeqLM.from_pretrained(translator)
    tokenizer = AutoTokenizer.from_pretrained(translator)
    inputs = tokenizer(best[0]["en"], return_tensors="pt")
    beams = model.eval().generate(**inputs, num_beams=3, max_length=10)
    assert tokenizer.decode(beams[0], skip_special_tokens=True).strip() == best[0]["fr"]
    with torch.no_grad():
        loss = model(**inputs, labels=beams[:, 1:]).loss.item()
    assert best[0]["score"] == pytest.approx(-loss, rel=1e-4)
    assert main(given) == 1 and "--overwrite" in capsys.readouterr().err
    # At least one text is kept, also of few texts.
    few = ["--max_train_samples=3", "--keep_fraction=0.1", "--output_dir", str(tmp_path / "few")]
    assert main([*given, *few]) == 0
    assert json.loads((tmp_path / "few" / "metrics.json").read_text())["fates"]["labelled"] == 1
    # The other splits are there as they were.
    data = make_task(TaskArguments(task="seq2seq", dataset=str(path.parent), source="en", target="fr"))
    assert {split: len(rows) for split, rows in data.splits.items()} == {
        "train": len(records),
        "validation": 3,
        "test": 3,
    }
    student = train(
        tmp_path / "student", path.parent, "seq2seq", "bart", "--num_train_epochs=1", "--tokenizer=learn:60"
    )
    assert json.loads((student / "metrics.json").read_text())["test"]["reports"]["all problems"]["num_examples"] == 3
    # The texts that the labeller was trained on count, too.
    sources = (*TrainingTexts.load(translator).sources, path.parent.name)
    assert TrainingTexts.load(student).sources == sources and len(sources) == 2
    # No split of the earlier labels stays.
    given[2] = str(pairs / "train.tsv")
    path.unlink()
    (path.parent / "mine.jsonl").touch()
    assert main(given) == 1 and "validation.jsonl" in capsys.readouterr().err
    assert main([*given, "--overwrite"]) == 0
    assert {file.name for file in path.parent.glob("*.jsonl")} == {"train.jsonl", "mine.jsonl"}


def test_generated_equations_are_the_data_of_a_student_with_other_tokens(problems, tmp_path, monkeypatch, capsys):
    texts = {"+": "+ [NUM0] [NUM1]", "/": "/ [NUM0] - [NUM1] [NUM1]", "no": "+ [NUM0]"}
    kinds = list(texts)
    model = train(tmp_path / "math", problems, "math_seq2seq", "bart", "--num_train_epochs=1")

    def generate(model, tokenizer, sources, **options):
        return [[GeneratedText(texts[kinds[place % 3]], -1.0 - place, 2)] for place, _ in enumerate(sources)]

    monkeypatch.setattr("hf_mwp.compress.trainers.generate_texts.generate_texts", generate)
    given = ["pseudo-label", "--problems", str(problems), "--task=math_seq2seq", "--model", str(model)]
    labels = tmp_path / "labels"
    assert main([*given, "--max_train_samples=12", "--output_dir", str(labels)]) == 0
    # Divisions by zero and texts that are no equations are left out.
    assert json.loads((labels / "metrics.json").read_text())["fates"] == {"labelled": 4, "unsure": 0, "empty": 8}
    rows = tiny_rows(18)
    written = [json.loads(line) for line in (labels / "train.jsonl").open(encoding="utf-8")]
    for row, record in zip(rows[0:12:3], written, strict=True):
        problem = MathWordProblem(row["text"], record["equation"])
        assert record["text"] == row["text"] and problem.expression.to_prefix() == ["+", "N0", "N1"]
        assert record["answer"] in (None, row["answer"])
    data = make_task(TaskArguments(task="math_seq2seq", dataset=str(labels)))
    assert {split: len(rows) for split, rows in data.splits.items()} == {"train": 4, "validation": 6, "test": 6}
    assert data.pair(data.splits["train"][0])[1] == texts["+"]
    kinds[:] = ["no"] * 3
    assert main([*given, "--output_dir", str(tmp_path / "none")]) == 1
    # A training split without usable problems is not replaced by the validation split.
    row = json.dumps({"text": "no numbers", "equation": "x=1"})
    (labels / "train.jsonl").write_text(row + "\n")
    given[2] = str(labels)
    assert main([*given, "--output_dir", str(tmp_path / "empty")]) == 1
    assert "any of 0 texts" in " ".join(capsys.readouterr().err.split())


def test_labels_of_texts_with_a_prefix(translator, pairs, tmp_path, monkeypatch):
    seen = []

    def generate(model, tokenizer, sources, **options):
        seen.extend(sources)
        return [[GeneratedText("un chien", -1.0, 2)] for _ in sources]

    monkeypatch.setattr("hf_mwp.compress.trainers.generate_texts.generate_texts", generate)
    given = ["pseudo-label", "--problems", str(pairs), "--task=seq2seq", "--source=en", "--target=fr"]
    given += ["--model", str(translator), "--source_prefix=translate: ", "--output_dir", str(tmp_path)]
    assert main(given) == 0
    records = [json.loads(line) for line in (tmp_path / "train.jsonl").open(encoding="utf-8")]
    # Training adds the prefix again.
    assert seen == [f"translate: {record['en']}" for record in records] and len(seen) == 18


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--task=seq2seq"], "needs a `source`, a `target`"),
        (["--source=en"], "`source`"),
        (["--task=math_seq2seq", "--source=en"], "`source`"),
        (["--task=seq2seq", "--source=en", "--target=fr", "--rerank"], "`rerank`"),
        (["--task=seq2seq", "--source=en", "--target=fr", "--keep_fraction=0"], "`keep_fraction` must be above 0"),
        (["--task=seq2seq", "--source=en", "--target=fr", "--num_return_sequences=9"], "`num_beams` (5)"),
    ],
)
def test_options_of_labels_that_do_not_fit(options, message, pairs, tmp_path, capsys):
    argv = ["pseudo-label", "--model=a", "--problems", str(pairs), "--output_dir", str(tmp_path / "run")]
    assert main([*argv, *options]) == 1
    assert message in " ".join(capsys.readouterr().err.split())
