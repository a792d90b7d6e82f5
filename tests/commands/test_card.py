"""`hf-mwp card`: the folders of a solver and of its encoder."""

import json
import re
import shutil

import pytest
import torch
import yaml
from huggingface_hub import ModelCard, metadata_load
from safetensors.torch import load_file
from transformers import AutoModel, BertModel

import hf_mwp
from hf_mwp.commands.building.solver import SolverArguments, build_solver
from hf_mwp.commands.main import main
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.plausibility import PlausibilityReranker
from tests.commands.folders import contents, read_json, save_solver
from tests.damage import change_weights
from tests.fresh_python import run_fresh
from tests.slow_parameters import slow_after
from tests.tiny import tiny_bert_config, tiny_processor, tiny_rows


INDEXED = {"max_length": 64, "indexed_numbers": True}


@pytest.fixture(scope="module")
def solver(tmp_path_factory):
    """A folder with a solver that reads numbers as [NUM0], [NUM1], ..."""
    return save_solver(tmp_path_factory.mktemp("indexed"), tiny_processor(**INDEXED))


def make_card(model, folder, *options):
    argv = ["card", "--model", str(model), "--output_dir", str(folder), *map(str, options)]
    assert main(argv) == 0
    return folder


@pytest.fixture(scope="module")
def published_solver(solver, tmp_path_factory):
    return make_card(solver, tmp_path_factory.mktemp("solver"))


@pytest.fixture(scope="module")
def published_encoder(solver, tmp_path_factory):
    return make_card(solver, tmp_path_factory.mktemp("encoder"), "--part", "encoder")


def card_text(folder):
    return ModelCard.load(folder / "README.md").text


def examples(folder):
    return re.findall(r"```python\n(.*?)```", card_text(folder), re.DOTALL)


def run_example(example):
    """Run the code of an example, and return its variables."""
    variables: dict = {}
    exec(example, variables)
    return variables


@pytest.mark.slow
def test_solver_built_on_the_encoder_reads_numbers_as_it_does(published_encoder, published_solver):
    args = SolverArguments(encoder=str(published_encoder))
    assert args.uses_indexed_numbers()
    processor = build_solver(tiny_rows(), args)[1]
    assert processor.indexed_numbers
    tokens = processor.tokenizer.convert_ids_to_tokens(processor("小明有4个苹果，吃了2个")["input_ids"][0])
    assert {"[NUM0]", "[NUM1]"} <= set(tokens)
    # The constants belong to the solver.
    assert hf_mwp.MwpProcessor.from_pretrained(published_encoder).vocabulary.constants == ()
    assert hf_mwp.MwpProcessor.from_pretrained(published_solver).vocabulary.constants == ("1",)


@pytest.mark.slow
def test_new_card_keeps_metadata_of_the_old_card(solver, tmp_path):
    metadata = {"base_model": "google-bert/bert-base-chinese", "license_name": "research-only"}
    first = make_card(solver, tmp_path / "first", "--license=other", "--metadata", json.dumps(metadata))
    before = metadata_load(first / "README.md")
    assert metadata.items() <= before.items()
    make_card(solver, first, "--overwrite")
    assert metadata_load(first / "README.md") == before
    second = make_card(first, tmp_path / "second", "--license=mit", "--metadata", "{base_model_relation: finetune}")
    after = metadata_load(second / "README.md")
    assert (after["base_model"], after["base_model_relation"]) == (metadata["base_model"], "finetune")
    assert after["license"] == "mit"
    assert "license_name" not in after


@pytest.mark.slow
def test_card_does_not_inherit_metadata_of_another_model(solver, tmp_path, caplog):
    metadata = '{"base_model": "google-bert/bert-base-chinese", "tags": ["mine"]}'
    card = make_card(solver, tmp_path / "card", "--license=other", "--metadata", metadata)
    other_model = save_solver(tmp_path / "other", tiny_processor(**INDEXED), seed=7)
    make_card(other_model, card, "--overwrite")
    assert not {"base_model", "license"} & metadata_load(card / "README.md").keys()
    assert re.search("base_model, license.*--metadata", caplog.text)


def test_existing_card_is_replaced_only_on_demand(solver, tmp_path, error_of):
    card = tmp_path / "README.md"
    card.write_text("---\nlicense: mit\n---\nMine.\n")
    before = contents(tmp_path)
    assert "README.md" in error_of("card", "--output_dir", tmp_path, "--model", solver)
    assert contents(tmp_path) == before
    make_card(solver, tmp_path, "--overwrite")
    assert metadata_load(card)["license"] == "mit"
    card.write_text("---\nbase_model: [\n---\n")
    assert str(card) in error_of("card", "--output_dir", tmp_path, "--model", solver)


def test_examples_of_the_cards_run(published_solver, published_encoder):
    (example,) = examples(published_solver)
    assert run_example(example)["solver"]("小明有4个苹果，吃了2个")[0]["numbers"] == ["4", "2"]
    example = examples(published_encoder)[0]
    assert "import hf_mwp" in example
    variables = run_example(example)
    tokens = variables["processor"].tokenizer.convert_ids_to_tokens(variables["batch"]["input_ids"][0])
    assert {"[NUM0]", "[NUM1]"} <= set(tokens)
    assert variables["states"].shape == (1, len(tokens), 16)


@pytest.mark.slow
def test_second_example_of_the_encoder_runs_without_the_package(published_encoder, tmp_path):
    with_package, without_package = examples(published_encoder)
    code = f"import sys\nsys.modules['hf_mwp'] = None\n{without_package}\nprint(states.flatten().tolist())"
    (((states,), _),) = run_fresh(tmp_path, (code,))
    # Numbers masked by hand are read as those that the processor masks.
    expected = run_example(with_package)["states"].flatten()
    torch.testing.assert_close(torch.tensor(json.loads(states)), expected)


def test_encoder_loads_completely(published_encoder, published_solver):
    encoder, info = AutoModel.from_pretrained(published_encoder, output_loading_info=True)
    for name in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not info[name]
    ids = torch.arange(3, 11).unsqueeze(0)
    output = encoder.eval()(ids)
    torch.testing.assert_close(output.pooler_output, output.last_hidden_state[:, 0].tanh())
    text = card_text(published_encoder)
    assert "pooling" in text
    weights = load_file(published_encoder / "model.safetensors")
    num_parameters = sum(value.numel() for value in weights.values())
    assert f"{num_parameters:,} parameters" in text
    assert "AutoModel" in read_json(published_encoder / "config.json")["auto_map"]
    assert "pooling" not in card_text(published_solver)


@pytest.mark.parametrize(
    ("part", "models", "num_results"),
    [("solver", ["this model", "teacher"], 1), ("encoder", ["solver built on it", "teacher"], 0)],
)
def test_figures_of_the_solver_are_not_the_encoders(solver, tmp_path, part, models, num_results):
    reports = {"all problems": {"answer_accuracy": 0.5, "num_problems": 9}}
    section = {"scheme": "public", "num_beams": 1, "answer_match": "annotated", "reports": reports}
    (tmp_path / "metrics.json").write_text(json.dumps({"dataset": "svamp", "test": section}))
    options = ["--part", part, "--evaluations", tmp_path, "--teacher_evaluations", tmp_path]
    card = ModelCard.load(make_card(solver, tmp_path / "card", *options) / "README.md")
    # Evaluation data are no training data.
    assert card.data.datasets is None
    assert len(card.data.eval_results or ()) == num_results
    assert re.findall(r"^\| ([^|]+) \| svamp", card.text, re.MULTILINE) == models


@pytest.mark.parametrize(
    ("encoder_type", "message"), slow_after(1, [("bert", "'bert'"), ("bottlenecks", "bottleneck networks")])
)
def test_encoder_that_is_no_student_has_no_card(encoder_type, message, tmp_path, error_of):
    processor = tiny_processor(max_length=32)
    source = tmp_path / "solver"
    save_solver(source, processor, bottleneck_layers=[1], bottleneck_size=5)
    if encoder_type == "bert":
        bert = BertModel(tiny_bert_config(vocab_size=len(processor.tokenizer)))
        hf_mwp.MwpSolver.from_encoder_decoder_pretrained(bert, processor).save_pretrained(source)
    argv = ["card", "--model", source, "--output_dir", tmp_path / "card"]
    assert message in error_of(*argv, "--part", "encoder")
    make_card(source, tmp_path / "card")


def test_no_local_path_is_in_a_card(solver, tmp_path):
    run = tmp_path / "runs" / "distill-1234"
    run.mkdir(parents=True)
    options = {
        "output_dir": str(run),
        "data_dir": "/home/me/data",
        "tag_cache": "my-tags",
        "teacher_cache_dir": "my-cache",
        "resume_from_checkpoint": "my-checkpoint",
        "teacher": str(tmp_path / "runs" / "teacher-5678"),
        "tagger": f"ltp:{tmp_path}",
        "temperature": 2.0,
        "hub_token": "secret",
    }
    (run / "stage.yaml").write_text(yaml.safe_dump(options))
    (run / "stage.json").write_text(json.dumps({"stage": "distill", "command": "hf-mwp distill"}))
    card = make_card(solver, tmp_path / "card", "--model_id", "me/tiny", "--stages", run)
    record = (card / "record.json").read_text(encoding="utf-8")
    expected = {"dataset": "math23k", "tagger": "ltp:" + tmp_path.name, "teacher": "teacher-5678", "temperature": 2.0}
    assert json.loads(record)["stages"][0]["options"] == expected
    for hidden in (str(tmp_path), "/home/me", "my-", "output_dir", "secret"):
        assert hidden not in record + card_text(card), hidden


@pytest.mark.slow
def test_folder_has_the_search_of_its_solver_alone(solver, tmp_path):
    source = shutil.copytree(solver, tmp_path / "solver")
    DefaultSearch(8, "zh").save_pretrained(source)
    card = make_card(source, tmp_path / "card")
    assert DefaultSearch.from_pretrained(card) == DefaultSearch(8, "zh")
    assert "'plausibility': " in card_text(card)
    for name in ("export.json", "training_texts.safetensors"):
        (card / name).touch()
    # A re-ranker that the default search does not use is not shown.
    DefaultSearch(3, False).save_pretrained(source)
    PlausibilityReranker.from_pretrained("zh").save_pretrained(source)
    make_card(source, card, "--overwrite")
    assert "'plausibility'" not in card_text(card)
    make_card(solver, card, "--overwrite")
    old_files = {"plausibility.json", "generation_config.json", "export.json", "training_texts.safetensors"}
    assert not old_files & contents(card).keys()


def test_notices_of_a_model_are_copied(solver, tmp_path):
    source = shutil.copytree(solver, tmp_path / "solver")
    (source / "NOTICE").write_text("Terms of the teacher\n")
    card = make_card(source, tmp_path / "card")
    assert (card / "NOTICE").read_text() == "Terms of the teacher\n"
    assert not (card / "LICENSE").exists()


@pytest.mark.slow
def test_notes_are_a_text_or_a_file(solver, tmp_path, error_of):
    card = tmp_path / "card"
    argv = ["card", "--model", solver, "--output_dir", card, "--notes"]
    assert str(tmp_path / "missing.md") in error_of(*argv, tmp_path / "missing.md")
    assert not card.exists()
    (tmp_path / "notes.md").write_text("## Limits\n\nMany.", encoding="utf-8")
    make_card(solver, card, "--notes", tmp_path / "notes.md")
    assert "## Limits\n\nMany." in card_text(card)
    make_card(solver, card, "--overwrite", "--notes", "See notes.md")
    assert "\nSee notes.md\n" in card_text(card)
    assert re.search(r"config\.json.*--overwrite", error_of(*argv, "Other notes"))
    assert "See notes.md" in card_text(card)
    # YAML reads these notes as a mapping.
    (tmp_path / "card.yaml").write_text(f"{{model: '{solver}', output_dir: card, notes: {{Limits: none}}}}")
    error = error_of("card", "--config", tmp_path / "card.yaml")
    assert re.search("'notes'.*{'Limits': 'none'}.*quotes", error)


def test_weights_that_are_not_finite_have_no_card(solver, tmp_path, error_of):
    source = shutil.copytree(solver, tmp_path / "source")

    def set_nan(weights):
        weights["encoder.embeddings.word_embeddings.weight"][3, 2] = float("nan")

    change_weights(source, set_nan)
    error = error_of("card", "--model", source, "--output_dir", tmp_path / "out")
    assert re.search("the weights .*word_embeddings.*NaN", error)
    assert not (tmp_path / "out").exists()
