import json
import re

import pytest
import torch
import yaml
from datasets import Dataset
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForPreTraining

from hf_mwp.commands.main import main
from hf_mwp.commands.options.parsing import parse
from hf_mwp.commands.options.stages import types_of
from hf_mwp.commands.pretrain import CorpusArguments, make_pretraining_trainer, read_corpus
from hf_mwp.compress.models import MwpStudentForMaskedLM
from hf_mwp.solver.batches import MwpProcessor
from hf_mwp.solver.models import MwpSolver
from hf_mwp.utils.option import option_values
from tests.pretraining import tiny_texts
from tests.tiny import tiny_tokenizer


SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
SMALL = ["--use_cpu", "--per_device_train_batch_size=8", "--learning_rate=1e-3", "--validation_fraction=0.2"]
SMALL += ["--save_strategy=no"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A file of texts, of which some differ in their numbers alone."""
    path = tmp_path_factory.mktemp("corpus") / "texts.txt"
    path.write_text("".join(f"{text}\n" for text in [*tiny_texts(60), *tiny_texts(6, seed=9)]), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    """A folder with a tokenizer alone."""
    folder = tmp_path_factory.mktemp("tokenizer")
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def pretrained(corpus, tokenizer, tmp_path_factory):
    """A run folder of `hf-mwp pretrain` from random weights, with a checkpoint of each epoch."""
    folder = tmp_path_factory.mktemp("pretrain") / "run"
    options = {"corpus": [str(corpus)], "tokenizer": str(tokenizer), "encoder_config": SIZES, "indexed_numbers": True}
    options |= {"max_length": 64, "num_train_epochs": 2, "eval_strategy": "epoch", "logging_steps": 1}
    config = folder.parent / "pretrain.yaml"
    config.write_text(yaml.safe_dump(options))
    argv = ["pretrain", "--config", str(config), "--output_dir", str(folder), *SMALL[:-1], "--save_strategy=epoch"]
    assert main(argv) == 0
    return folder


def test_a_run_leaves_its_record(pretrained):
    names = {path.name for path in pretrained.iterdir()}
    files = "config.json model.safetensors mwp_processor.json tokenizer.json run_config.yaml run.json run.log"
    files += " metrics.json data.json learning_curve.png trainer_state.json pos_tags_validation.json tags encoded"
    assert names >= set(files.split())
    metrics = json.loads((pretrained / "metrics.json").read_text())
    shown = {"mlm_loss", "mlm_loss_keywords", "mlm_loss_numbers", "mlm_accuracy", "pos_f1", "pos_precision"}
    assert metrics["validation"].keys() >= shown and metrics["parameters"] > 1000
    data = json.loads((pretrained / "data.json").read_text())
    assert data["texts"] == {"read": 66, "kept": 42, "duplicate": 24} and data["used"] + data["held_out"] == 42
    assert data["tagger"] == "jieba" and data["pos_labels"] % 2 == 0
    assert "validation: " in (pretrained / "run.log").read_text()
    assert (pretrained / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    tags = json.loads((pretrained / "pos_tags_validation.json").read_text())["tags"]
    assert {"n", "m", "v", "x"} <= tags.keys()


def test_the_folder_loads(pretrained):
    model = AutoModelForPreTraining.from_pretrained(pretrained)
    assert model.config.pos_tagger == "jieba" and model.config.pos_labels[:1] == [
        "B-" + model.config.pos_labels[0][2:]
    ]
    assert AutoModel.from_pretrained(pretrained).config.hidden_size == 16
    processor = MwpProcessor.from_pretrained(pretrained)
    assert processor.indexed_numbers and processor.vocabulary.constants == () and processor.max_length == 64


def test_the_resolved_config_gives_the_same_options(pretrained):
    kept = yaml.safe_load((pretrained / "run_config.yaml").read_text())
    values = option_values(
        *parse("pretrain", "", types_of("pretrain"), ["--config", str(pretrained / "run_config.yaml")])
    )
    assert kept and kept.items() <= values.items()


def test_resuming_goes_on(pretrained, tmp_path, capsys):
    argv = ["pretrain", "--config", str(pretrained / "run_config.yaml")]
    assert main(argv) == 1
    assert "--resume" in capsys.readouterr().err
    assert main([*argv, "--resume", "--num_train_epochs=3"]) == 0
    state = json.loads((pretrained / "trainer_state.json").read_text())
    assert state["epoch"] == 3.0


def test_solvers_take_over_the_encoder_and_its_tokens(pretrained, problems, tmp_path):
    argv = ["train", "--encoder", str(pretrained), "--dataset", str(problems), "--use_cpu", "--max_steps=2"]
    argv += ["--decoder_config", '{"operator_embedding_size": 8}', "--no_test", "--output_dir", str(tmp_path / "t")]
    assert main([*argv, "--learning_rate=0", "--decoder_learning_rate=1e-3"]) == 0
    processor = MwpProcessor.from_pretrained(tmp_path / "t")
    before = MwpProcessor.from_pretrained(pretrained)
    assert processor.indexed_numbers is True
    assert processor.tokenizer.get_vocab() == before.tokenizer.get_vocab()
    text = "小明有5个苹果，吃了3个"
    assert processor.encode([text])["input_ids"] == before.encode([text])["input_ids"]
    solver = MwpSolver.from_pretrained(tmp_path / "t")
    encoder = AutoModel.from_pretrained(pretrained)
    ours, theirs = (model.get_input_embeddings().weight for model in (solver.encoder, encoder))
    assert torch.equal(ours, theirs)
    student = ["distill", "--teacher", str(tmp_path / "t"), "--dataset", str(problems), "--use_cpu", "--max_steps=1"]
    assert main([*student, "--student_layers=1", "--no_test", "--output_dir", str(tmp_path / "d")]) == 0


def make_trainer(corpus, folder, *options):
    """The trainer, and its corpus, that the options of the command ask for."""
    argv = ["--corpus", str(corpus), *SMALL, *options, "--output_dir", str(folder)]
    corpus_args, model_args, _, config = parse("pretrain", "", types_of("pretrain"), argv)
    return make_pretraining_trainer(corpus_args, model_args, config)


def test_an_encoders_first_layers(corpus, encoder, pretrained, tmp_path):
    options = ["--encoder", str(encoder), "--encoder_layers=1", "--dropout=0.2", *shared_tags(pretrained)]
    trainer, _ = make_trainer(corpus, tmp_path, *options)
    config = trainer.model.config
    assert config.num_hidden_layers == 1 and config.hidden_dropout_prob == 0.2
    assert config.vocab_size == len(trainer.processing_class.tokenizer)


def shared_tags(pretrained):
    """The tags of the same corpus."""
    return ["--tag_cache", str(pretrained / "tags")]


@pytest.fixture
def onwards(pretrained, corpus, tmp_path):
    """The trainer that goes on from the pretrained folder, the weights with which it begins, and the folder's."""

    def onwards(*options):
        trainer, _ = make_trainer(corpus, tmp_path, "--encoder", str(pretrained), *options)
        trainer.model.save_pretrained(tmp_path)
        return trainer, load_file(tmp_path / "model.safetensors"), load_file(pretrained / "model.safetensors")

    return onwards


def test_heads_go_on_learning(onwards, pretrained):
    trainer, ours, theirs = onwards(*shared_tags(pretrained))
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert trainer.processing_class.indexed_numbers is True


def test_a_new_tagging_head(onwards, pretrained):
    _, ours, theirs = onwards("--new_pos_head", *shared_tags(pretrained))
    changed = {name for name in theirs if not torch.equal(ours[name], theirs[name])}
    assert changed == {"cls.pos_tagger.weight", "cls.pos_tagger.bias"}


def test_masked_words_alone_need_no_tagger(onwards, tmp_path):
    trainer, ours, theirs = onwards("--tagger=none", "--pos_loss_weight=0")
    assert not any("pos_tagger" in name for name in ours) and all(torch.equal(ours[k], theirs[k]) for k in ours)
    assert isinstance(trainer.model, MwpStudentForMaskedLM)
    assert trainer.model.config.num_pos_tags == 0 and trainer.model.config.pos_labels is None
    assert "eval_pos_f1" not in trainer.evaluate()
    assert not (tmp_path / "tags").exists()


def test_masks_are_the_same_without_the_loss_of_tagging(pretrained, onwards, tmp_path):
    trainer, ours, _ = onwards("--pos_loss_weight=0", "--max_length=64")
    assert not any("pos_tagger" in name for name in ours) and (tmp_path / "tags").exists()
    assert trainer.model.config.pos_labels is None and "eval_pos_f1" not in trainer.evaluate()
    without, with_tags = (
        # That of training has more rows than that of evaluation.
        max((Dataset.from_file(str(path)) for path in (folder / "encoded").glob("encoded-*/*.arrow")), key=len)
        for folder in (tmp_path, pretrained)
    )
    assert "pos_labels" not in without.column_names
    for name in without.column_names:
        assert without[name][:] == with_tags[name][:], name


def test_tagging_alone_and_nothing_held_out(pretrained, corpus, tmp_path, capsys):
    argv = ["pretrain", "--corpus", str(corpus), "--encoder", str(pretrained), *SMALL, "--max_steps=1"]
    argv += ["--mlm_loss_weight=0", "--validation_fraction=0", "--eval_strategy=epoch", "--max_texts=9"]
    assert main([*argv, "--output_dir", str(tmp_path)]) == 0
    assert "held out" in capsys.readouterr().out
    assert "validation" not in json.loads((tmp_path / "metrics.json").read_text())
    data = json.loads((tmp_path / "data.json").read_text())
    assert data["used"] == 9 and data["tagger"] == "jieba" and "pos_labels" in data


def test_excluded_texts(corpus, tmp_path):
    held_out = tmp_path / "test.txt"
    held_out.write_text("小明有7个苹果，吃了8个，还有几个？\n", encoding="utf-8")
    argv = ["--corpus", str(corpus), "--exclude", str(held_out), "--encoder=a", "--output_dir", str(tmp_path)]
    corpus_args, *_ = parse("pretrain", "", types_of("pretrain"), argv)
    assert read_corpus(corpus_args, "zh", None, tmp_path)[1]["excluded"] == 2


def test_data_sets_lie_where_one_says(tmp_path):
    rows = [{"id": name, "original_text": f"有4个{name}", "equation": "x=4", "ans": "4"} for name in "梨桃杏"]
    (tmp_path / "ape210k").mkdir()
    for part, of_part in {"train": rows, "valid": rows[:1], "test": rows[1:2]}.items():
        lines = (json.dumps(row) + "\n" for row in of_part)
        (tmp_path / "ape210k" / f"{part}.jsonl").write_text("".join(lines))
    args = CorpusArguments(corpus=["ape210k"], exclude=["ape210k:test"], data_dir=str(tmp_path))
    assert read_corpus(args, "zh", None, tmp_path)[0] == ["有4个梨", "有4个杏"]


def test_labels_of_another_tagger_are_refused_before_the_work(pretrained, corpus, tmp_path, capsys):
    other = tmp_path / "other"
    other.mkdir()
    for path in pretrained.iterdir():
        if path.is_file():
            (other / path.name).write_bytes(path.read_bytes())
    config = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps(config | {"pos_tagger": "ltp"}))
    argv = [
        "pretrain",
        "--corpus",
        str(corpus),
        "--encoder",
        str(other),
        *SMALL,
        "--output_dir",
        str(tmp_path / "out"),
    ]
    assert main(argv) == 1
    error = capsys.readouterr().err
    assert re.search("ltp.* jieba.*`new_pos_head`", error)
    assert not (tmp_path / "out").exists()


def test_another_tokenizer_is_refused(pretrained, corpus, tmp_path, capsys):
    other = tiny_tokenizer()
    other.add_tokens(["甲"])
    other.save_pretrained(tmp_path / "other")
    argv = ["pretrain", "--corpus", str(corpus), "--encoder", str(pretrained), "--tokenizer", str(tmp_path / "other")]
    assert main([*argv, *SMALL, "--output_dir", str(tmp_path / "out")]) == 1
    assert "--tokenizer" in capsys.readouterr().err
    many = tiny_tokenizer()
    many.add_tokens([chr(0x5000 + index) for index in range(100)])
    many.save_pretrained(tmp_path / "many")
    assert main([*argv[:-1], str(tmp_path / "many"), *SMALL, "--output_dir", str(tmp_path / "out")]) == 1
    assert "tokens" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--encoder_config={}"], "`tokenizer`"),
        ([], "`encoder`.*`encoder_config`"),
        (["--encoder=a", "--encoder_config={}", "--tokenizer=b"], "encoder and encoder_config"),
        (["--encoder_config={}", "--tokenizer=b", "--encoder_layers=3"], "`encoder_layers`.*`encoder`"),
        (["--encoder=a", "--tagger=none"], "--tagger jieba"),
        (["--encoder=a", "--pos_loss_weight=0", "--new_pos_head"], "--new_pos_head"),
        (["--encoder=a", "--tagger=stanford"], "'stanford'.*'jieba'"),
        (["--encoder=a", "--dropout=1"], "`dropout`.* 1"),
        (["--encoder=a", "--max_texts=0"], "`max_texts`.* 0"),
        (["--encoder=a", "--max_length=2"], "`max_length`.* 3.* 2"),
        (["--encoder=a", "--num_beams=5"], "'--num_beams'"),
        (["--encoder=/no/such/folder"], "/no/such/folder"),
        (["--encoder=a", "--key_word_weight=2"], "'--key_word_weight'.*'--keyword_weight'"),
    ],
)
def test_wrong_options_are_named(argv, message, corpus, tmp_path, capsys):
    assert main(["pretrain", "--corpus", str(corpus), "--output_dir", str(tmp_path / "out"), *argv]) == 1
    assert re.search(message, capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_wrong_corpora_are_named(tokenizer, tmp_path, capsys):
    argv = [
        "--encoder_config",
        json.dumps(SIZES),
        "--tokenizer",
        str(tokenizer),
        "--output_dir",
        str(tmp_path / "out"),
    ]
    assert main(["pretrain", *argv]) == 1
    assert "`corpus`" in capsys.readouterr().err
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n")
    for tagging in ([], ["--tagger=none", "--pos_loss_weight=0"]):
        assert main(["pretrain", "--corpus", str(empty), *argv, *tagging]) == 1
        error = capsys.readouterr().err
        assert re.search(f"{empty}: .*\\b0 texts", error)
    texts = tmp_path / "texts.txt"
    texts.write_text("小明有7个苹果\n小明有8个苹果\n", encoding="utf-8")
    assert main(["pretrain", "--corpus", str(empty), str(texts), "--exclude", str(texts), *argv]) == 1
    error = capsys.readouterr().err
    assert re.search(f"{empty}, {texts}: .*\\b2 texts.* 0 .* 2 .*excluded", error)
    assert main(["pretrain", "--corpus", "no_such_set", *argv]) == 1
    assert "no_such_set" in capsys.readouterr().err


def test_a_student_may_start_as_a_projection(pretrained, corpus, tmp_path, capsys):
    sizes = {"hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 2}
    argv = ["pretrain", "--corpus", str(corpus), "--encoder", str(pretrained), "--indexed_numbers", *SMALL]
    argv += ["--max_length=64", "--max_steps=1", "--learning_rate=0", "--output_dir", str(tmp_path / "run")]
    assert main([*argv, "--project_to", json.dumps(sizes), "--encoder_layers=1"]) == 0
    student = AutoModel.from_pretrained(tmp_path / "run")
    assert (student.config.hidden_size, student.config.intermediate_size) == (8, 12)
    assert student.config.num_hidden_layers == 1

    # A linear map tells the embeddings from the encoder's; random ones it does not.
    wide = AutoModel.from_pretrained(pretrained).embeddings.word_embeddings.weight.detach()
    narrow = student.embeddings.word_embeddings.weight.detach()

    def unexplained(table):
        return (torch.linalg.lstsq(wide, table).solution.T @ wide.T - table.T).norm() / table.norm()

    assert unexplained(narrow) < 0.5 * unexplained(torch.randn(narrow.shape, generator=torch.manual_seed(0)))

    capsys.readouterr()
    assert main([*argv, "--project_to", '{"hidden": 8}']) == 1
    assert re.search("`project_to`.*'hidden'", capsys.readouterr().err)
