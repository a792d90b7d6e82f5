import json
import re
import shutil

import pytest
import torch
import yaml
from datasets import Dataset
from safetensors.torch import load_file
from transformers import AutoModel, AutoModelForPreTraining

from hf_mwp.commands.building import build_solver
from hf_mwp.commands.main import main
from hf_mwp.commands.options.parsing import parse
from hf_mwp.commands.options.stages import types_of
from hf_mwp.commands.pretrain import CorpusArguments, make_pretraining_trainer, read_corpus
from hf_mwp.compress.models import MwpStudentForMaskedLM
from hf_mwp.solver.batches import MwpProcessor
from hf_mwp.utils.option import option_values
from tests.commands.folders import read_json, write_rows
from tests.damage import change_fields
from tests.pretraining import tiny_texts
from tests.tiny import tiny_rows, tiny_tokenizer


SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
SMALL = ["--use_cpu", "--per_device_train_batch_size=8", "--learning_rate=1e-3", "--validation_fraction=0.2"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """A file of texts, of which some differ in their numbers alone."""
    path = tmp_path_factory.mktemp("corpus") / "texts.txt"
    path.write_text("\n".join([*tiny_texts(36), *tiny_texts(6, seed=9)]), encoding="utf-8")
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
    options |= {"max_length": 64, "num_train_epochs": 2, "eval_strategy": "epoch", "save_strategy": "epoch"}
    config = folder.parent / "pretrain.yaml"
    config.write_text(yaml.safe_dump(options))
    assert main(["pretrain", "--config", str(config), "--output_dir", str(folder), *SMALL]) == 0
    return folder


@pytest.fixture(scope="module")
def shared_tags(pretrained):
    """Option for the tags of the same corpus."""
    return ["--tag_cache", str(pretrained / "tags")]


def test_run_leaves_its_record(pretrained):
    names = {path.name for path in pretrained.iterdir()}
    files = "config.json model.safetensors mwp_processor.json tokenizer.json run_config.yaml run.json run.log"
    files += " metrics.json data.json learning_curve.png trainer_state.json pos_tags_validation.json tags encoded"
    assert names >= set(files.split())
    metrics = read_json(pretrained / "metrics.json")
    expected = {"mlm_loss", "mlm_loss_keywords", "mlm_loss_numbers", "mlm_accuracy", "pos_f1", "pos_precision"}
    assert metrics["validation"].keys() >= expected
    assert metrics["parameters"] > 1000
    data = read_json(pretrained / "data.json")
    assert data["texts"] == {"read": 42, "kept": 26, "duplicate": 16}
    assert data["used"] + data["held_out"] == 26
    assert data["tagger"] == "jieba"
    assert data["pos_labels"] % 2 == 0
    assert "validation: " in (pretrained / "run.log").read_text()
    assert (pretrained / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert {"n", "m", "v", "x"} <= read_json(pretrained / "pos_tags_validation.json")["tags"].keys()


def test_folder_loads_as_model_and_processor(pretrained):
    config = AutoModelForPreTraining.from_pretrained(pretrained).config
    assert config.pos_tagger == "jieba"
    assert config.pos_labels[0].startswith("B-")
    assert AutoModel.from_pretrained(pretrained).config.hidden_size == 16
    processor = MwpProcessor.from_pretrained(pretrained)
    assert processor.indexed_numbers
    assert processor.vocabulary.constants == ()
    assert processor.max_length == 64


def test_resolved_config_gives_the_same_options(pretrained):
    recorded = yaml.safe_load((pretrained / "run_config.yaml").read_text())
    argv = ["--config", str(pretrained / "run_config.yaml")]
    values = option_values(*parse("pretrain", "", types_of("pretrain"), argv))
    assert recorded
    assert recorded.items() <= values.items()


@pytest.mark.slow
def test_finished_run_resumes_for_more_epochs(pretrained, tmp_path, error_of):
    run = shutil.copytree(pretrained, tmp_path / "run")
    argv = ["pretrain", "--config", str(pretrained / "run_config.yaml"), "--output_dir", str(run)]
    assert "--resume" in error_of(*argv)
    assert main([*argv, "--resume", "--num_train_epochs=3"]) == 0
    assert read_json(run / "trainer_state.json")["epoch"] == 3.0


def test_solver_takes_over_the_encoder_and_its_tokens(pretrained):
    solver, processor = build_solver(tiny_rows(), encoder=str(pretrained))
    before = MwpProcessor.from_pretrained(pretrained)
    assert processor.indexed_numbers is True
    assert processor.tokenizer.get_vocab() == before.tokenizer.get_vocab()
    text = "小明有5个苹果，吃了3个"
    assert processor.encode([text])["input_ids"] == before.encode([text])["input_ids"]
    encoder = AutoModel.from_pretrained(pretrained)
    assert torch.equal(solver.get_input_embeddings().weight, encoder.get_input_embeddings().weight)


def make_trainer(corpus, folder, *options):
    """Return the trainer that the options of the command describe."""
    argv = ["--corpus", str(corpus), *SMALL, "--save_strategy=no", *options, "--output_dir", str(folder)]
    corpus_args, model_args, _, config = parse("pretrain", "", types_of("pretrain"), argv)
    return make_pretraining_trainer(corpus_args, model_args, config)[0]


@pytest.mark.slow
def test_first_layers_of_an_encoder_are_pretrained(corpus, encoder, shared_tags, tmp_path):
    options = ["--encoder", str(encoder), "--encoder_layers=1", "--dropout=0.2"]
    trainer = make_trainer(corpus, tmp_path, *options, *shared_tags)
    config = trainer.model.config
    assert config.num_hidden_layers == 1
    assert config.hidden_dropout_prob == 0.2
    assert config.vocab_size == len(trainer.processing_class.tokenizer)


@pytest.fixture
def continue_training(pretrained, corpus, tmp_path):
    """Function that makes a trainer which starts from the pretrained folder. It returns the trainer, the weights with
    which it starts, and those of the folder."""

    def make(*options):
        trainer = make_trainer(corpus, tmp_path, "--encoder", str(pretrained), *options)
        trainer.model.save_pretrained(tmp_path)
        return trainer, load_file(tmp_path / "model.safetensors"), load_file(pretrained / "model.safetensors")

    return make


def changed_names(weights, other_weights):
    return {name for name, value in weights.items() if not value.equal(other_weights[name])}


@pytest.mark.slow
def test_heads_keep_their_weights(continue_training, shared_tags):
    trainer, weights, pretrained_weights = continue_training(*shared_tags)
    assert not changed_names(pretrained_weights, weights)
    assert trainer.processing_class.indexed_numbers is True


@pytest.mark.slow
def test_new_tagging_head_replaces_no_other_weights(continue_training, shared_tags):
    _, weights, pretrained_weights = continue_training("--new_pos_head", *shared_tags)
    changed = changed_names(pretrained_weights, weights)
    assert changed == {"cls.pos_tagger.weight", "cls.pos_tagger.bias"}


def test_masked_language_modelling_alone_needs_no_tagger(continue_training, tmp_path):
    trainer, weights, pretrained_weights = continue_training("--tagger=none", "--pos_loss_weight=0")
    assert not any("pos_tagger" in name for name in weights)
    assert not changed_names(weights, pretrained_weights)
    assert isinstance(trainer.model, MwpStudentForMaskedLM)
    assert trainer.model.config.num_pos_tags == 0
    assert trainer.model.config.pos_labels is None
    assert "eval_pos_f1" not in trainer.evaluate()
    assert not (tmp_path / "tags").exists()


def encoded_training_texts(folder):
    """The larger of the two encoded datasets of a run: that of training."""
    datasets = [Dataset.from_file(str(path)) for path in folder.glob("encoded/encoded-*/*.arrow")]
    return max(datasets, key=len)


@pytest.mark.slow
def test_masks_do_not_depend_on_the_loss_of_tagging(pretrained, continue_training, tmp_path):
    trainer, weights, _ = continue_training("--pos_loss_weight=0", "--max_length=64")
    assert not any("pos_tagger" in name for name in weights)
    assert (tmp_path / "tags").exists()
    assert trainer.model.config.pos_labels is None
    without_tags = encoded_training_texts(tmp_path)
    with_tags = encoded_training_texts(pretrained)
    assert "pos_labels" not in without_tags.column_names
    for name in without_tags.column_names:
        assert without_tags[name][:] == with_tags[name][:], name


@pytest.mark.slow
def test_tagging_alone_with_nothing_held_out(pretrained, corpus, tmp_path, output_of):
    argv = ["pretrain", "--corpus", corpus, "--encoder", pretrained, *SMALL, "--max_steps=1", "--save_strategy=no"]
    argv += ["--mlm_loss_weight=0", "--validation_fraction=0", "--eval_strategy=epoch", "--max_texts=9"]
    assert "held out" in output_of(*argv, "--output_dir", tmp_path)
    assert "validation" not in read_json(tmp_path / "metrics.json")
    data = read_json(tmp_path / "data.json")
    assert data["used"] == 9
    assert data["tagger"] == "jieba"
    assert "pos_labels" in data


def test_excluded_texts_are_not_read(corpus, tmp_path):
    held_out = tmp_path / "test.txt"
    held_out.write_text("小明有7个苹果，吃了8个，还有几个？\n", encoding="utf-8")
    args = CorpusArguments(corpus=[str(corpus)], exclude=[str(held_out)])
    assert read_corpus(args, "zh", None, tmp_path)[1]["excluded"] == 2


def test_datasets_are_read_from_the_data_folder(tmp_path):
    rows = [{"id": name, "original_text": f"有4个{name}", "equation": "x=4", "ans": "4"} for name in "梨桃杏"]
    folder = tmp_path / "ape210k"
    folder.mkdir()
    for split, rows_of_split in {"train": rows, "valid": rows[:1], "test": rows[1:2]}.items():
        write_rows(folder / f"{split}.jsonl", rows_of_split)
    args = CorpusArguments(corpus=["ape210k"], exclude=["ape210k:test"], data_dir=str(tmp_path))
    assert read_corpus(args, "zh", None, tmp_path)[0] == ["有4个梨", "有4个杏"]


def test_labels_of_another_tagger_are_refused_before_the_run(pretrained, corpus, tmp_path, error_of):
    encoder = shutil.copytree(pretrained, tmp_path / "encoder")
    change_fields(encoder / "config.json", pos_tagger="ltp")
    argv = ["pretrain", "--corpus", corpus, "--encoder", encoder, *SMALL, "--output_dir", tmp_path / "out"]
    assert re.search("ltp.* jieba.*`new_pos_head`", error_of(*argv))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("num_added", "message"), [(1, "--tokenizer"), (100, "tokens")])
def test_another_tokenizer_is_refused(pretrained, corpus, tmp_path, error_of, num_added, message):
    tokenizer = tiny_tokenizer()
    tokenizer.add_tokens([chr(0x5000 + index) for index in range(num_added)])
    tokenizer.save_pretrained(tmp_path / "tokenizer")
    argv = ["pretrain", "--corpus", corpus, "--encoder", pretrained, "--tokenizer", tmp_path / "tokenizer", *SMALL]
    assert message in error_of(*argv, "--output_dir", tmp_path / "out")


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
        (["--encoder=a", "--max_length=2"], "`max_length`.* 3.* 2"),
        (["--encoder=a", "--project_to", '{"hidden": 8}'], "`project_to`.*'hidden'"),
    ],
)
def test_wrong_options_are_named(argv, message, corpus, tmp_path, error_of):
    assert re.search(message, error_of("pretrain", "--corpus", corpus, "--output_dir", tmp_path / "out", *argv))
    assert not (tmp_path / "out").exists()


def test_wrong_corpora_are_named(tokenizer, tmp_path, error_of):
    config = json.dumps(SIZES)
    argv = ["pretrain", "--encoder_config", config, "--tokenizer", tokenizer, "--output_dir", tmp_path / "out"]
    assert "`corpus`" in error_of(*argv)
    empty = tmp_path / "empty.txt"
    empty.write_text("\n\n")
    for tagging in ([], ["--tagger=none", "--pos_loss_weight=0"]):
        assert re.search(f"{empty}: .*\\b0 texts", error_of(*argv, "--corpus", empty, *tagging))
    texts = tmp_path / "texts.txt"
    texts.write_text("小明有7个苹果\n小明有8个苹果\n", encoding="utf-8")
    error = error_of(*argv, "--corpus", empty, texts, "--exclude", texts)
    assert re.search(f"{empty}, {texts}: .*\\b2 texts.* 0 .* 2 .*excluded", error)
    assert "no_such_set" in error_of(*argv, "--corpus", "no_such_set")


@pytest.mark.slow
def test_student_may_start_as_a_projection(pretrained, corpus, shared_tags, tmp_path):
    sizes = json.dumps({"hidden_size": 8, "intermediate_size": 12, "num_attention_heads": 2})
    options = ["--encoder", str(pretrained), "--max_length=64", "--project_to", sizes, "--encoder_layers=1"]
    student = make_trainer(corpus, tmp_path, *options, *shared_tags).model
    config = student.config
    assert (config.hidden_size, config.intermediate_size, config.num_hidden_layers) == (8, 12, 1)
    # A linear map explains the student's embeddings by the encoder's, and not random ones.
    wide = AutoModel.from_pretrained(pretrained).get_input_embeddings().weight.detach()
    narrow = student.get_input_embeddings().weight.detach()

    def unexplained(embeddings):
        linear_map = torch.linalg.lstsq(wide, embeddings).solution
        return (wide @ linear_map - embeddings).norm() / embeddings.norm()

    random_embeddings = torch.randn(narrow.shape, generator=torch.manual_seed(0))
    assert unexplained(narrow) < 0.5 * unexplained(random_embeddings)
