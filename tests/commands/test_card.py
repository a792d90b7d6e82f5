"""`hf-mwp card`: the folders of a solver and of its encoder."""

import json
import re
import shutil

import pytest
import torch
import yaml
from huggingface_hub import ModelCard, metadata_load
from safetensors.torch import load_file
from transformers import AutoModel, BertConfig, BertModel

import hf_mwp
from hf_mwp.commands.building.solver import SolverArguments, build_solver
from hf_mwp.commands.main import main
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.plausibility import PlausibilityReranker
from tests.fresh_python import run_fresh
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


@pytest.fixture(scope="module")
def solver(tmp_path_factory):
    """A folder with a solver that reads numbers as [NUM0], [NUM1], ..."""
    folder = tmp_path_factory.mktemp("indexed")
    processor = tiny_processor(max_length=64, indexed_numbers=True)
    tiny_solver(processor).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folders(solver, tmp_path_factory):
    """What the Hub gets, by part."""
    written = {}
    for part in ("solver", "encoder"):
        written[part] = tmp_path_factory.mktemp(part)
        assert main(["card", "--model", str(solver), "--part", part, "--output_dir", str(written[part])]) == 0
    return written


def snippets(folder):
    return re.findall(r"```python\n(.*?)```", ModelCard.load(folder / "README.md").text, re.DOTALL)


def test_a_solver_built_on_the_encoder_reads_numbers_as_it_does(folders):
    args = SolverArguments(encoder=str(folders["encoder"]))
    assert args.uses_indexed_numbers()
    processor = build_solver(tiny_rows(), args)[1]
    assert processor.indexed_numbers
    tokens = processor.tokenizer.convert_ids_to_tokens(processor("小明有4个苹果，吃了2个")["input_ids"][0])
    assert {"[NUM0]", "[NUM1]"} <= set(tokens)
    # Which constants there are is the solver's own: an encoder knows of none.
    assert hf_mwp.MwpProcessor.from_pretrained(folders["encoder"]).vocabulary.constants == ()
    assert hf_mwp.MwpProcessor.from_pretrained(folders["solver"]).vocabulary.constants == ("1",)


def test_a_card_made_again_keeps_the_metadata_given_by_hand(solver, tmp_path):
    first = tmp_path / "first"
    second = tmp_path / "second"
    given = {"base_model": "google-bert/bert-base-chinese", "license_name": "research-only"}
    metadata = ["--license", "other", "--metadata", json.dumps(given)]
    assert main(["card", "--model", str(solver), "--output_dir", str(first), *metadata]) == 0
    before = metadata_load(first / "README.md")
    assert given.items() <= before.items()
    assert main(["card", "--model", str(solver), "--output_dir", str(first), "--overwrite"]) == 0
    assert metadata_load(first / "README.md") == before
    licensed = ["--license", "mit", "--metadata", "{base_model_relation: finetune}"]
    assert main(["card", "--model", str(first), "--output_dir", str(second), *licensed]) == 0
    after = metadata_load(second / "README.md")
    assert (after["base_model"], after["base_model_relation"]) == (given["base_model"], "finetune")
    assert after["license"] == "mit" and "license_name" not in after


def test_a_card_does_not_inherit_metadata_of_another_model(solver, tmp_path, caplog):
    argv = ["card", "--output_dir", str(tmp_path / "card"), "--overwrite", "--model"]
    given = '{"base_model": "google-bert/bert-base-chinese", "tags": ["mine"]}'
    assert main([*argv, str(solver), "--license", "other", "--metadata", given]) == 0
    processor = tiny_processor(max_length=64, indexed_numbers=True)
    tiny_solver(processor, seed=7).save_pretrained(tmp_path / "other")
    processor.save_pretrained(tmp_path / "other")
    assert main([*argv, str(tmp_path / "other")]) == 0
    assert not {"base_model", "license"} & metadata_load(tmp_path / "card" / "README.md").keys()
    assert re.search("base_model, license.*--metadata", caplog.text)


def test_a_card_of_a_new_repository_is_replaced_only_on_demand(solver, tmp_path, capsys):
    card = tmp_path / "README.md"
    card.write_text("---\nlicense: mit\n---\nMine.\n")
    argv = ["card", "--output_dir", str(tmp_path), "--model", str(solver)]
    assert main(argv) == 1 and "README.md" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"] and "Mine." in card.read_text()
    assert main([*argv, "--overwrite"]) == 0
    # Its metadata are kept.
    assert metadata_load(card)["license"] == "mit"


def test_a_card_that_cannot_be_read_is_named(solver, tmp_path, capsys):
    (tmp_path / "README.md").write_text("---\nbase_model: [\n---\n")
    assert main(["card", "--model", str(solver), "--output_dir", str(tmp_path)]) == 1
    assert str(tmp_path / "README.md") in capsys.readouterr().err


def test_the_examples_of_the_cards_run(folders):
    (example,) = snippets(folders["solver"])
    names: dict = {}
    exec(example, names)
    assert names["solver"]("小明有4个苹果，吃了2个")[0]["numbers"] == ["4", "2"]

    example = snippets(folders["encoder"])[0]
    assert "import hf_mwp" in example
    names = {}
    exec(example, names)
    tokens = names["processor"].tokenizer.convert_ids_to_tokens(names["batch"]["input_ids"][0])
    assert {"[NUM0]", "[NUM1]"} <= set(tokens) and names["states"].shape == (1, len(tokens), 16)


def test_the_encoders_second_example_runs_without_the_package(folders, tmp_path):
    with_package, without = snippets(folders["encoder"])
    assert "hf_mwp" not in without.replace(str(folders["encoder"]), "")
    code = f"import sys\nsys.modules['hf_mwp'] = None\n{without}\nprint(states.flatten().tolist())"
    (((states,), _),) = run_fresh(tmp_path, (code,))
    # It asks nothing, and numbers masked by hand are read as those that the processor masks.
    names: dict = {}
    exec(with_package, names)
    torch.testing.assert_close(torch.tensor(json.loads(states)), names["states"].flatten())


def test_the_encoder_loads_whole_and_the_same_each_time(folders, solver):
    encoders = []
    for _ in range(2):
        encoder, info = AutoModel.from_pretrained(folders["encoder"], output_loading_info=True)
        assert not any(info[name] for name in ("missing_keys", "unexpected_keys", "mismatched_keys"))
        encoders.append(encoder.eval())
    ids = torch.arange(3, 11).unsqueeze(0)
    one, other = (encoder(ids) for encoder in encoders)
    assert torch.equal(one.pooler_output, other.pooler_output)
    torch.testing.assert_close(one.pooler_output, one.last_hidden_state[:, 0].tanh())
    own = AutoModel.from_pretrained(solver).encoder.half().float().eval()
    torch.testing.assert_close(one.last_hidden_state, own(ids).last_hidden_state)

    text = ModelCard.load(folders["encoder"] / "README.md").text
    assert "pooling" in text
    count = sum(value.numel() for value in load_file(folders["encoder"] / "model.safetensors").values())
    assert f"{count:,} parameters" in text
    assert "AutoModel" in json.loads((folders["encoder"] / "config.json").read_text())["auto_map"]
    assert "pooling" not in ModelCard.load(folders["solver"] / "README.md").text


def test_figures_of_the_solver_are_not_said_to_be_the_encoders(solver, tmp_path):
    reports = {"all problems": {"answer_accuracy": 0.5, "num_problems": 9}}
    section = {"scheme": "public", "num_beams": 1, "answer_match": "annotated", "reports": reports}
    (tmp_path / "metrics.json").write_text(json.dumps({"dataset": "svamp", "test": section}))
    shown = {}
    for part in ("solver", "encoder"):
        argv = ["card", "--model", str(solver), "--part", part, "--output_dir", str(tmp_path / part)]
        assert main([*argv, "--evaluations", str(tmp_path), "--teacher_evaluations", str(tmp_path)]) == 0
        card = ModelCard.load(tmp_path / part / "README.md")
        # Nothing was trained on what was only evaluated on.
        assert card.data.datasets is None
        shown[part] = card.data.eval_results, re.findall(r"^\| ([^|]+) \| svamp", card.text, re.MULTILINE)
    assert len(shown["solver"][0]) == 1 and shown["solver"][1] == ["this model", "teacher"]
    assert shown["encoder"] == (None, ["solver built on it", "teacher"])


def test_an_encoder_of_another_type_is_refused(tmp_path, capsys):
    processor = tiny_processor(max_length=32)
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24}
    encoder = BertModel(BertConfig(vocab_size=len(processor.tokenizer), max_position_embeddings=64, **sizes))
    hf_mwp.MwpSolver.from_encoder_decoder_pretrained(encoder, processor).save_pretrained(tmp_path / "bert")
    processor.save_pretrained(tmp_path / "bert")
    argv = ["card", "--model", str(tmp_path / "bert"), "--output_dir", str(tmp_path / "card")]
    assert main([*argv, "--part", "encoder"]) == 1
    assert "'bert'" in capsys.readouterr().err
    assert main(argv) == 0


def test_an_encoder_with_bottlenecks_is_not_written_without_them(tmp_path, capsys):
    processor = tiny_processor(max_length=64)
    tiny_solver(processor, bottleneck_layers=[1], bottleneck_size=5).save_pretrained(tmp_path / "solver")
    processor.save_pretrained(tmp_path / "solver")
    argv = ["card", "--model", str(tmp_path / "solver"), "--output_dir", str(tmp_path / "card")]
    assert main([*argv, "--part", "encoder"]) == 1
    assert "bottleneck networks" in capsys.readouterr().err
    assert main(argv) == 0


def test_no_local_path_goes_into_a_card(solver, tmp_path):
    run = tmp_path / "runs" / "distill-1234"
    run.mkdir(parents=True)
    places = {
        "output_dir": run,
        "data_dir": "/home/me/data",
        "tag_cache": "my-tags",
        "teacher_cache_dir": "my-cache",
        "resume_from_checkpoint": "my-checkpoint",
        "teacher": tmp_path / "runs" / "teacher-5678",
        "tagger": f"ltp:{tmp_path}",
    }
    options = {name: str(value) for name, value in places.items()} | {"temperature": 2.0, "hub_token": "secret"}
    (run / "stage.yaml").write_text(yaml.safe_dump(options))
    (run / "stage.json").write_text(json.dumps({"stage": "distill", "command": "hf-mwp distill"}))
    argv = ["card", "--model", str(solver), "--output_dir", str(tmp_path / "card"), "--model_id", "me/tiny"]
    assert main([*argv, "--stages", str(run)]) == 0
    record = (tmp_path / "card" / "record.json").read_text(encoding="utf-8")
    options = {"dataset": "math23k", "tagger": "ltp:" + tmp_path.name, "teacher": "teacher-5678", "temperature": 2.0}
    assert json.loads(record)["stages"][0]["options"] == options
    text = record + ModelCard.load(tmp_path / "card" / "README.md").text
    for hidden in (str(tmp_path), "/home/me", "my-", "output_dir", "secret"):
        assert hidden not in text, hidden


def test_the_folder_has_the_search_of_the_solver_and_nothing_of_an_overwritten_model(solver, tmp_path):
    shutil.copytree(solver, tmp_path / "searching")
    DefaultSearch(8, "zh").save_pretrained(tmp_path / "searching")
    argv = ["card", "--output_dir", str(tmp_path / "card"), "--model"]
    assert main([*argv, str(tmp_path / "searching")]) == 0
    assert DefaultSearch.from_pretrained(tmp_path / "card") == DefaultSearch(8, "zh")
    assert "'plausibility': " in (tmp_path / "card" / "README.md").read_text("utf-8")
    old = ("plausibility.json", "generation_config.json", "export.json", "training_texts.safetensors")
    for name in old:
        (tmp_path / "card" / name).touch()
    assert main([*argv, str(solver), "--overwrite"]) == 0
    assert not any((tmp_path / "card" / name).exists() for name in old)


def test_the_card_shows_the_search_of_the_solver(solver, tmp_path):
    shutil.copytree(solver, tmp_path / "solver")
    DefaultSearch(3, False).save_pretrained(tmp_path / "solver")
    PlausibilityReranker.from_pretrained("zh").save_pretrained(tmp_path / "solver")
    assert main(["card", "--model", str(tmp_path / "solver"), "--output_dir", str(tmp_path / "card")]) == 0
    assert "'plausibility'" not in (tmp_path / "card" / "README.md").read_text("utf-8")


def test_the_notices_of_a_model_go_with_it(solver, tmp_path):
    shutil.copytree(solver, tmp_path / "solver")
    (tmp_path / "solver" / "NOTICE").write_text("Terms of the teacher\n")
    assert main(["card", "--model", str(tmp_path / "solver"), "--output_dir", str(tmp_path / "card")]) == 0
    assert (tmp_path / "card" / "NOTICE").read_text() == "Terms of the teacher\n"
    assert not (tmp_path / "card" / "LICENSE").exists()


def test_notes_are_a_text_or_a_file_that_is_there(solver, tmp_path, capsys):
    argv = ["card", "--model", str(solver), "--output_dir", str(tmp_path / "card"), "--notes"]
    assert main([*argv, str(tmp_path / "missing.md")]) == 1
    assert str(tmp_path / "missing.md") in capsys.readouterr().err
    assert not (tmp_path / "card").exists()
    (tmp_path / "notes.md").write_text("## Limits\n\nMany.", encoding="utf-8")
    for notes, shown in ((str(tmp_path / "notes.md"), "## Limits\n\nMany."), ("See notes.md", "\nSee notes.md\n")):
        assert main([*argv, notes, "--overwrite"]) == 0
        assert shown in ModelCard.load(tmp_path / "card" / "README.md").text
    assert main([*argv, "Other notes"]) == 1
    assert re.search(r"config\.json.*--overwrite", capsys.readouterr().err)
    assert "See notes.md" in ModelCard.load(tmp_path / "card" / "README.md").text
    # What YAML takes for a mapping.
    (tmp_path / "card.yaml").write_text(f"{{model: '{solver}', output_dir: card, notes: {{Limits: none}}}}")
    assert main(["card", "--config", str(tmp_path / "card.yaml")]) == 1
    assert re.search("'notes'.*{'Limits': 'none'}.*quotes", capsys.readouterr().err)


@pytest.mark.parametrize("value", [float("nan"), float("-inf"), 1e5])
def test_a_card_is_not_made_for_weights_that_are_not_finite(solver, tmp_path, capsys, value):
    source = shutil.copytree(solver, tmp_path / "source")
    model = hf_mwp.MwpSolver.from_pretrained(source)
    model.encoder.embeddings.word_embeddings.weight.data[3, 2] = value
    model.save_pretrained(source)
    assert main(["card", "--model", str(source), "--output_dir", str(tmp_path / "out")]) == 1
    assert re.search("the weights .*word_embeddings.*(NaN|too large)", capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_a_card_into_its_own_folder_that_fails_changes_nothing(solver, tmp_path, monkeypatch, capsys):
    folder = shutil.copytree(solver, tmp_path / "solver")
    before = {path.name: path.read_bytes() for path in folder.iterdir()}

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    argv = ["card", "--model", str(folder), "--output_dir", str(folder), "--overwrite"]
    with monkeypatch.context() as patch:
        patch.setattr("hf_mwp.solver.models.MwpSolver.save_pretrained", fail)
        assert main(argv) == 1
    assert "cannot be written" in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert main(argv) == 0
    modes = {(folder / name).stat().st_mode for name in ("config.json", "model.safetensors", "README.md")}
    assert (folder / "README.md").is_file() and len(modes) == 1
