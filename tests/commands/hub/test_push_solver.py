"""Publishing with the real client of the Hub, against a server on the loopback device."""

import dataclasses
import json

import pytest
from huggingface_hub import ModelCard, constants
from safetensors import safe_open
from safetensors.torch import load_file

import hf_mwp
from hf_mwp.commands.hub import ModelFigures, build_model_card, model_record, write_model_folder
from hf_mwp.commands.main import main
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityReranker
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.utils.usage_error import UsageError
from tests.tiny import tiny_processor, tiny_solver


NAME = "user/solver"
REPORT = {"answer_accuracy": 0.6125, "equation_accuracy": 0.5, "num_problems": 1000}
FIGURES = ModelFigures("this model", "math23k", "test (public)", 5, "annotated", {"all problems": REPORT})
CONTENT = {
    *("README.md", "config.json", "model.safetensors", "mwp_processor.json", "plausibility.json", "record.json"),
    *("tokenizer.json", "tokenizer_config.json", "training_texts.safetensors", "use_hf_mwp.py"),
}


@pytest.fixture
def folder(tmp_path):
    """A solver's folder as `hf-mwp card` makes it, and beside it what a run leaves."""
    path = tmp_path / "model"
    processor = tiny_processor(max_length=64)
    solver = tiny_solver(processor)
    solver.training_texts = TrainingTexts.from_texts(["有1个"])
    write_model_folder(solver, path, build_model_card(solver, "runs/student", [FIGURES]), processor)
    (path / "record.json").write_text(json.dumps(model_record([FIGURES])))
    PlausibilityReranker("zh", {feature.name: 0.0 for feature in FEATURES}, num_beams=4).save_pretrained(path)
    for name in ("run.json", "run.lock", "run.lock.holder", "run.log", "training_args.bin", "optimizer.pt"):
        (path / name).write_text("of a run")
    (path / "checkpoint-2").mkdir()
    return path


def test_the_published_folders_content_goes_up_and_nothing_else(hub, folder):
    done = hf_mwp.push_solver_to_hub(folder, NAME, commit_message="First")
    repository = hub.repositories[NAME]
    assert repository.private and done.private and repository.messages[-1] == ("main", "First")
    files = repository.files()
    assert files.keys() - {".gitattributes"} == CONTENT == done.files.keys()
    assert done.files == {name: len(files[name]) for name in CONTENT}
    assert files["model.safetensors"] == (folder / "model.safetensors").read_bytes()
    assert {"run.log", "training_args.bin", "checkpoint-2"} <= {*done.left_out}
    assert f'pipeline("math-word-problem", model="{NAME}")' in files["README.md"].decode()
    # The token is for the Hub alone, not for the store of large files.
    assert hub.requested("PUT") and not hub.unsafe


def test_a_second_upload_sends_nothing_that_is_there(hub, folder):
    first = hf_mwp.push_solver_to_hub(folder, NAME)
    hub.requests.clear()
    assert hf_mwp.push_solver_to_hub(folder, NAME).commit == first.commit
    assert not hub.requested("PUT") and not hub.requested("POST", "/commit/")


def test_files_of_an_earlier_version_go(hub, folder):
    hf_mwp.push_solver_to_hub(folder, NAME)
    (folder / "plausibility.json").unlink()
    hf_mwp.push_solver_to_hub(folder, NAME)
    assert hub.repositories[NAME].files().keys() - {".gitattributes"} == CONTENT - {"plausibility.json"}


def test_an_upload_that_broke_off_resumes(hub, folder):
    hub.break_next("PUT", "/lfs/", 503)
    hub.break_next("POST", "/commit/", 0)
    with pytest.raises(UsageError, match="broke off.*Run it again"):
        hf_mwp.push_solver_to_hub(folder, NAME)
    digests = hub.requested("PUT")
    assert len(digests) == 3 and len({*digests}) == 2, "a 503 is tried again"
    assert hub.repositories[NAME].files().keys() == {".gitattributes"}, "never half a model"
    hub.requests.clear()
    hf_mwp.push_solver_to_hub(folder, NAME)
    assert not hub.requested("PUT") and CONTENT <= hub.repositories[NAME].files().keys()
    hub.break_next("POST", "validate-yaml", 422)
    with pytest.raises(UsageError, match=f"{NAME} .*422.*broken on purpose"):
        hf_mwp.push_solver_to_hub(folder, NAME)


def test_errors_of_the_clients_own_store_of_large_files_are_named(hub, folder, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("CAS service error")

    monkeypatch.setattr("huggingface_hub._commit_api.lfs_upload", fail)
    with pytest.raises(UsageError, match="broke off .CAS service error.*Run it again"):
        hf_mwp.push_solver_to_hub(folder, NAME)


def test_only_what_had_not_arrived_is_sent_again(hub, folder):
    hub.break_next("PUT", "/lfs/", 403)
    with pytest.raises(UsageError):
        hf_mwp.push_solver_to_hub(folder, NAME)
    arrived = len(hub.objects)
    hub.requests.clear()
    hf_mwp.push_solver_to_hub(folder, NAME)
    assert len(hub.requested("PUT")) == 2 - arrived


def test_a_revision_is_a_branch_of_its_own(hub, folder):
    hf_mwp.push_solver_to_hub(folder, NAME, private=False, revision="v2")
    repository = hub.repositories[NAME]
    assert not repository.private
    assert CONTENT <= repository.files("v2").keys() and repository.files("main").keys() == {".gitattributes"}


def test_shards_and_single_precision_become_one_file_in_half_precision(hub, folder):
    whole = load_file(folder / "model.safetensors")
    solver = hf_mwp.MwpSolver.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    solver.save_pretrained(folder, max_shard_size="20KB")
    assert len([*folder.glob("model-*.safetensors")]) > 1
    done = hf_mwp.push_solver_to_hub(folder, NAME)
    assert done.files.keys() == CONTENT and not any("model-" in name for name in done.left_out)
    path = folder.parent / "pushed.safetensors"
    path.write_bytes(hub.repositories[NAME].files()["model.safetensors"])
    with safe_open(path, "pt") as file:
        assert file.metadata() == {"format": "pt"}
    pushed = load_file(path)
    assert pushed.keys() == whole.keys() and all(pushed[name].equal(whole[name]) for name in whole)


def test_weights_of_an_export_go_up_as_they_are(hub, folder):
    hf_mwp.MwpSolver.from_pretrained(folder).save_pretrained(folder)
    (folder / "export.json").write_text('{"version": 1}')
    hf_mwp.push_solver_to_hub(folder, NAME)
    files = hub.repositories[NAME].files()
    assert files["model.safetensors"] == (folder / "model.safetensors").read_bytes() and "export.json" in files


def test_an_incomplete_export_is_refused(hub, folder):
    (folder / "export.json").write_text('{"version": 1, "format": "onnx"}')
    with pytest.raises(UsageError, match="encoder.onnx"):
        hf_mwp.push_solver_to_hub(folder, NAME)


def test_an_encoder_gets_its_code(hub, folder):
    hf_mwp.MwpSolver.from_pretrained(folder).encoder.save_pretrained(folder)
    hf_mwp.push_solver_to_hub(folder, NAME)
    files = hub.repositories[NAME].files()
    assert "modeling_mwp_student.py" in files and "auto_map" in json.loads(files["config.json"])


def test_both_vocabularies_of_a_tokenizer_go_up(hub, folder):
    (folder / "target_vocab.json").write_text("{}", "utf-8")  # as Marian's tokenizers write it
    hf_mwp.push_solver_to_hub(folder, NAME)
    assert "target_vocab.json" in hub.repositories[NAME].files()


def test_only_named_files_are_published(folder):
    others = ("NOTICE.token", "NOTICE_x", "LICENSE.bak~", "my_vocab.json", "secret.spm", ".env")
    for name in (*others, "LICENSE", "NOTICE.md"):
        (folder / name).write_text("{}")
    (folder / "merges.txt").mkdir()
    done = hf_mwp.push_solver_to_hub(folder, NAME, dry_run=True)
    assert done.files.keys() == CONTENT | {"LICENSE", "NOTICE.md"}
    assert {*others, "merges.txt"} <= {*done.left_out}


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE", "config.json", "tokenizer.json", "model.safetensors"])
def test_a_link_to_another_folder_is_not_published(hub, folder, name):
    target = folder.parent / "elsewhere"
    if (folder / name).exists():
        (folder / name).rename(target)
    else:
        target.write_text("a secret")
    (folder / name).symlink_to(target)
    with pytest.raises(UsageError, match=f"{name} is a link to {target}, outside of its folder"):
        hf_mwp.push_solver_to_hub(folder, NAME)
    assert not hub.requests


def test_links_in_the_folder_and_in_the_hubs_cache_are_published(folder):
    (folder / "terms").write_text("terms")
    (folder / "LICENSE").symlink_to("terms")
    assert "LICENSE" in hf_mwp.push_solver_to_hub(folder, NAME, dry_run=True).files
    snapshot = folder.parent / "models--user--solver" / "snapshots" / "abc"
    blobs = folder.parent / "models--user--solver" / "blobs"
    for path in (snapshot, blobs):
        path.mkdir(parents=True)
    for path in folder.iterdir():
        if path.is_file() and not path.is_symlink():
            path.rename(blobs / path.name)
            (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert hf_mwp.push_solver_to_hub(snapshot, NAME, dry_run=True).files.keys() == CONTENT


@pytest.mark.parametrize("weight_map", ['{"a": "../other.safetensors"}', '{"a": 1}', "[]"])
def test_an_index_names_only_files_of_its_folder(hub, folder, weight_map):
    (folder / "model.safetensors").rename(folder.parent / "other.safetensors")
    (folder / "model.safetensors.index.json").write_text(f'{{"weight_map": {weight_map}}}')
    with pytest.raises(UsageError, match="model.safetensors.index.json is damaged"):
        hf_mwp.push_solver_to_hub(folder, NAME)
    assert not hub.requests


@pytest.mark.parametrize("is_export", [False, True])
@pytest.mark.parametrize(
    ("value", "fault"), [(float("nan"), "infinity or NaN"), (1e5, "too large for half precision")]
)
def test_weights_that_are_not_finite_are_refused(hub, folder, is_export, value, fault):
    solver = hf_mwp.MwpSolver.from_pretrained(folder)
    solver.encoder.embeddings.word_embeddings.weight.data[3, 2] = value
    solver.save_pretrained(folder)
    if is_export:
        (folder / "export.json").write_text('{"version": 1}')
    if is_export and value == 1e5:
        # Weights of an export are published unchanged.
        assert "export.json" in hf_mwp.push_solver_to_hub(folder, NAME, dry_run=True).files
        return
    with pytest.raises(UsageError, match=f"the weights encoder.*word_embeddings.* {fault}"):
        hf_mwp.push_solver_to_hub(folder, NAME)
    assert not hub.requests


def test_a_dry_run_lists_the_files_and_asks_for_nothing(hub, folder, capsys):
    assert main(["publish", str(folder), "--repo_id", NAME, "--dry_run"]) == 0
    printed = capsys.readouterr().out
    size = (folder / "model.safetensors").stat().st_size
    assert f"{size:,}  model.safetensors" in printed and "run.log" in printed and "dry run" in printed
    assert not hub.requests


def test_the_command_publishes(hub, folder, capsys):
    assert main(["publish", str(folder), "--repo_id", NAME, "--private", "false", "--token", "hf_user"]) == 0
    assert f"{hub.url}/{NAME}/commit/" in capsys.readouterr().out
    assert main(["publish", "--repo_id", NAME]) == 1 and "required: folder" in capsys.readouterr().err
    assert main(["publish", str(folder), "more", "--repo_id", NAME]) == 1 and "'more'" in capsys.readouterr().err
    assert main(["publish", str(folder)]) == 1 and "repo_id" in capsys.readouterr().err


def edit(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("README.md", "| 61.3 |", "| 91.3 |"),
        ("README.md", "value: 61.25", "value: 91.25"),
        ("README.md", "| 1,000 |", "| 1,001 |"),
        ("README.md", "| beam 5 |", "| beam 8 |"),
        ("record.json", '"answer_accuracy": 0.6125', '"answer_accuracy": 0.6'),
        ("record.json", '"dataset": "math23k"', '"dataset": "svamp"'),
    ],
)
def test_figures_that_no_record_has_are_refused(hub, folder, file, old, new):
    edit(folder / file, old, new)
    with pytest.raises(UsageError, match="record.json.*hf-mwp evaluate"):
        hf_mwp.push_solver_to_hub(folder, NAME)
    assert not hub.requests


def test_a_card_without_figures_is_published_and_told(hub, folder, capsys):
    solver = hf_mwp.MwpSolver.from_pretrained(folder)
    build_model_card(solver, "x").save(folder / "README.md")
    (folder / "record.json").write_text(json.dumps(model_record()))
    assert main(["publish", str(folder), "--repo_id", NAME]) == 0
    assert "no results" in capsys.readouterr().out and NAME in hub.repositories


@pytest.mark.parametrize("missing", ["README.md", "record.json", "config.json", "model.safetensors"])
def test_what_is_no_whole_folder_is_refused(hub, folder, missing):
    (folder / missing).unlink()
    with pytest.raises(UsageError, match=f"{missing}.*"):
        hf_mwp.push_solver_to_hub(folder, NAME)
    assert not hub.requests


def test_an_export_gets_its_card_from_its_solver(hub, folder):
    (folder / "export.json").write_text('{"version": 1, "format": "numpy"}')
    (folder / "README.md").unlink()
    with pytest.raises(UsageError, match="has no README.md. Run `hf-mwp card` on the solver"):
        hf_mwp.push_solver_to_hub(folder, NAME)


def test_damaged_files_are_named(hub, folder):
    for name, content in (
        *(("record.json", "{"), ("model.safetensors", "no weights")),
        *(("tokenizer.json", ""), ("mwp_processor.json", '{"language":')),
    ):
        kept = (folder / name).read_bytes()
        (folder / name).write_text(content)
        with pytest.raises(UsageError, match=name):
            hf_mwp.push_solver_to_hub(folder, NAME)
        (folder / name).write_bytes(kept)
    with pytest.raises(UsageError, match="no folder"):
        hf_mwp.push_solver_to_hub(folder / "none", NAME)
    with pytest.raises(UsageError, match="`repo_id`.*'solver'"):
        hf_mwp.push_solver_to_hub(folder, "solver")
    with pytest.raises(ValueError, match="'me/my solver'"):
        hf_mwp.push_solver_to_hub(folder, "me/my solver", dry_run=True)


def test_without_a_token(hub, folder, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UsageError, match="needs a token.*hf auth login"):
        hf_mwp.push_solver_to_hub(folder, NAME)
    assert not hub.requests
    for token in ("hf_nobody", "hf_other"):
        with pytest.raises(UsageError, match=f"{NAME}.*write access to user"):
            hf_mwp.push_solver_to_hub(folder, NAME, token=token)


def test_without_a_network(hub, folder, monkeypatch):
    hub.break_next("POST", "repos/create", *[0] * 20)
    with pytest.raises(UsageError, match=f"{hub.url} broke off.*Run it again"):
        hf_mwp.push_solver_to_hub(folder, NAME)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UsageError, match="http://127.0.0.1:9 broke off"):
        hf_mwp.push_solver_to_hub(folder, NAME)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError, match="HF_HUB_OFFLINE"):
        hf_mwp.push_solver_to_hub(folder, NAME)


def test_a_name_that_exists(hub, folder):
    hf_mwp.push_solver_to_hub(folder, NAME, private=False)
    with pytest.raises(UsageError, match=f"{NAME} exists and is public"):
        hf_mwp.push_solver_to_hub(folder, NAME, private=True)
    assert hf_mwp.push_solver_to_hub(folder, NAME).private is False
    hub.repositories[NAME].commit("main", {"pytorch_model.bin": b"else"}, "other")
    with pytest.raises(UsageError, match=f"{NAME} exists .*pytorch_model.bin.*overwrite"):
        hf_mwp.push_solver_to_hub(folder, NAME)
    hf_mwp.push_solver_to_hub(folder, NAME, overwrite=True)
    assert hub.repositories[NAME].files().keys() == CONTENT


def test_the_cards_of_the_repository_agree_with_their_records(repository):
    for folder in sorted((repository / "model_cards").iterdir()):
        done = hf_mwp.push_solver_to_hub(folder, NAME, dry_run=True)
        assert done.figures >= 4 and not done.left_out, folder.name
        assert {"model.safetensors", "README.md", "record.json"} <= done.files.keys()


def test_figures_of_every_kind_agree_with_the_record(folder):
    from hf_mwp.commands.hub.card_figures import check_card

    other = dataclasses.replace(FIGURES, model="teacher", num_beams=None, reports={"all": {"num_problems": 7}})
    new = dataclasses.replace(FIGURES, reports=FIGURES.reports | {"masked text not in train": REPORT}, num_beams=1)
    solver = hf_mwp.MwpSolver.from_pretrained(folder)
    card: ModelCard = build_model_card(solver, "x", [FIGURES, other, new])
    card.save(folder / "README.md")
    (folder / "record.json").write_text(json.dumps(model_record([FIGURES, other, new])))
    # Three rows, and two results of the model itself.
    assert check_card(folder / "README.md", folder / "record.json") == 5
