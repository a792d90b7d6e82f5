"""Publishing with the real client of the Hub, against a server on the loopback device."""

import dataclasses
import json
import shutil

import pytest
from huggingface_hub import constants
from safetensors import safe_open
from safetensors.torch import load_file

import hf_mwp
from hf_mwp.commands.hub import ModelFigures, build_model_card, model_record, write_model_folder
from hf_mwp.commands.hub.card_figures import check_card
from hf_mwp.commands.hub.push_solver import PUBLISHED
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityReranker
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.utils.usage_error import UsageError
from tests.damage import change_weights
from tests.tiny import tiny_processor, tiny_solver


NAME = "user/solver"
REPORT = {"answer_accuracy": 0.6125, "equation_accuracy": 0.5, "num_problems": 1000}
FIGURES = ModelFigures("this model", "math23k", "test (public)", 5, "annotated", {"all problems": REPORT})
CONTENT = {
    *("README.md", "config.json", "model.safetensors", "mwp_processor.json", "plausibility.json", "record.json"),
    *("tokenizer.json", "tokenizer_config.json", "training_texts.safetensors", "use_hf_mwp.py"),
}


@pytest.fixture(scope="module")
def written_folder(tmp_path_factory):
    """A solver's folder as `hf-mwp card` makes it, with files that a run leaves."""
    path = tmp_path_factory.mktemp("written") / "model"
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


@pytest.fixture
def folder(written_folder, tmp_path):
    return shutil.copytree(written_folder, tmp_path / "model")


@pytest.fixture
def check_refused(hub, folder):
    """Function that checks that the folder is refused before any request."""

    def check(message, **options):
        with pytest.raises(UsageError, match=message):
            hf_mwp.push_solver_to_hub(folder, NAME, **options)
        assert not hub.requests

    return check


def push(folder, **options):
    return hf_mwp.push_solver_to_hub(folder, NAME, **options)


def files_on(hub):
    files = hub.repositories[NAME].files()
    return {name: content for name, content in files.items() if name != ".gitattributes"}


def test_published_content_is_uploaded_and_nothing_else(hub, folder):
    publication = push(folder, commit_message="First")
    repository = hub.repositories[NAME]
    assert repository.private
    assert publication.private
    assert repository.messages[-1] == ("main", "First")
    files = files_on(hub)
    assert publication.files == {name: len(files[name]) for name in CONTENT}
    assert files.keys() == CONTENT
    assert files["model.safetensors"] == (folder / "model.safetensors").read_bytes()
    assert {"run.log", "training_args.bin", "checkpoint-2"} <= {*publication.left_out}
    assert f'pipeline("math-word-problem", model="{NAME}")' in files["README.md"].decode()
    # The token is for the Hub alone, not for the store of large files.
    assert hub.requested("PUT")
    assert not hub.unsafe


@pytest.mark.slow
def test_second_upload_sends_only_what_changed(hub, folder):
    first = push(folder)
    hub.requests.clear()
    assert push(folder).commit == first.commit
    assert not hub.requested("PUT")
    assert not hub.requested("POST", "/commit/")
    (folder / "plausibility.json").unlink()
    push(folder)
    assert files_on(hub).keys() == CONTENT - {"plausibility.json"}


@pytest.mark.slow
def test_interrupted_upload_resumes(hub, folder):
    hub.break_next("PUT", "/lfs/", 503)
    hub.break_next("POST", "/commit/", 0)
    with pytest.raises(UsageError, match="broke off.*Run it again"):
        push(folder)
    digests = hub.requested("PUT")
    assert len(digests) == 3, "a 503 is tried again"
    assert len({*digests}) == 2
    assert not files_on(hub), "never half a model"
    hub.requests.clear()
    push(folder)
    assert not hub.requested("PUT")
    assert files_on(hub).keys() == CONTENT
    hub.break_next("POST", "validate-yaml", 422)
    with pytest.raises(UsageError, match=f"{NAME} .*422.*broken on purpose"):
        push(folder)


def test_errors_of_the_store_of_large_files_are_named(hub, folder, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError("CAS service error")

    monkeypatch.setattr("huggingface_hub._commit_api.lfs_upload", fail)
    with pytest.raises(UsageError, match="broke off .CAS service error.*Run it again"):
        push(folder)


@pytest.mark.slow
def test_shards_in_single_precision_become_one_file_in_half_precision(hub, folder):
    weights = load_file(folder / "model.safetensors")
    solver = hf_mwp.MwpSolver.from_pretrained(folder)
    (folder / "model.safetensors").unlink()
    solver.save_pretrained(folder, max_shard_size="20KB")
    assert len([*folder.glob("model-*.safetensors")]) > 1
    publication = push(folder)
    assert publication.files.keys() == CONTENT
    assert not any("model-" in name for name in publication.left_out)
    path = folder.parent / "pushed.safetensors"
    path.write_bytes(files_on(hub)["model.safetensors"])
    with safe_open(path, "pt") as file:
        assert file.metadata() == {"format": "pt"}
    pushed = load_file(path)
    assert pushed.keys() == weights.keys()
    assert all(pushed[name].equal(weights[name]) for name in weights)


@pytest.mark.slow
def test_weights_of_an_export_are_uploaded_unchanged(hub, folder):
    hf_mwp.MwpSolver.from_pretrained(folder).save_pretrained(folder)
    (folder / "export.json").write_text('{"version": 1}')
    push(folder)
    files = files_on(hub)
    assert files["model.safetensors"] == (folder / "model.safetensors").read_bytes()
    assert "export.json" in files


def test_only_named_files_are_published(folder):
    left_out = {"NOTICE.token", "NOTICE_x", "LICENSE.bak~", "my_vocab.json", "secret.spm", ".env"}
    published = {"LICENSE", "NOTICE.md", "target_vocab.json"}
    for name in left_out | published:
        (folder / name).write_text("{}")
    (folder / "merges.txt").mkdir()
    publication = push(folder, dry_run=True)
    assert publication.files.keys() == CONTENT | published
    assert left_out | {"merges.txt"} <= {*publication.left_out}


@pytest.mark.parametrize("name", ["LICENSE", "config.json", "model.safetensors"])
def test_link_to_another_folder_is_not_published(folder, check_refused, name):
    target = folder.parent / "elsewhere"
    if (folder / name).exists():
        (folder / name).rename(target)
    else:
        target.write_text("a secret")
    (folder / name).symlink_to(target)
    check_refused(f"{name} is a link to {target}, outside of its folder")


def test_links_in_the_folder_and_in_the_cache_of_the_hub_are_published(folder):
    (folder / "terms").write_text("terms")
    (folder / "LICENSE").symlink_to("terms")
    assert "LICENSE" in push(folder, dry_run=True).files
    model = folder.parent / "models--user--solver"
    snapshot = model / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (model / "blobs").mkdir()
    for path in folder.iterdir():
        if path.is_file() and not path.is_symlink():
            path.rename(model / "blobs" / path.name)
            (snapshot / path.name).symlink_to(f"../../blobs/{path.name}")
    assert push(snapshot, dry_run=True).files.keys() == CONTENT


@pytest.mark.parametrize("weight_map", ['{"a": "../other.safetensors"}', '{"a": 1}', "[]"])
def test_index_names_only_files_of_its_folder(folder, check_refused, weight_map):
    (folder / "model.safetensors").rename(folder.parent / "other.safetensors")
    (folder / "model.safetensors.index.json").write_text(f'{{"weight_map": {weight_map}}}')
    check_refused("model.safetensors.index.json is damaged")


def set_weight(folder, value):
    hf_mwp.MwpSolver.from_pretrained(folder).save_pretrained(folder)

    def change(weights):
        weights["encoder.embeddings.word_embeddings.weight"][3, 2] = value

    change_weights(folder, change)


@pytest.mark.parametrize("is_export", [False, True])
def test_weights_that_are_not_finite_are_refused(folder, check_refused, is_export):
    set_weight(folder, float("nan"))
    if is_export:
        (folder / "export.json").write_text('{"version": 1}')
    check_refused("the weights encoder.*word_embeddings.* infinity or NaN")


def test_weights_that_are_too_large_for_half_precision_are_refused_except_of_an_export(folder, check_refused):
    set_weight(folder, 1e5)
    check_refused("the weights encoder.*word_embeddings.* too large for half precision")
    (folder / "export.json").write_text('{"version": 1}')
    assert "export.json" in push(folder, dry_run=True).files


def test_dry_run_lists_the_files_without_requests(hub, folder, output_of):
    output = output_of("publish", folder, "--repo_id", NAME, "--dry_run")
    size = (folder / "model.safetensors").stat().st_size
    assert f"{size:,} model.safetensors" in output
    assert "run.log" in output
    assert "dry run" in output
    assert not hub.requests


def test_command_publishes(hub, folder, output_of):
    output = output_of("publish", folder, "--repo_id", NAME, "--private", "false", "--token", "hf_user")
    assert f"{hub.url}/{NAME}/commit/" in output
    assert not hub.repositories[NAME].private


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--repo_id", NAME], "required: folder"),
        (["a", "more", "--repo_id", NAME], "'more'"),
        (["a"], "repo_id"),
    ],
)
def test_wrong_arguments_of_the_command_are_named(argv, message, error_of):
    assert message in error_of("publish", *argv)


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
def test_figures_that_differ_from_the_record_are_refused(folder, check_refused, file, old, new):
    text = (folder / file).read_text("utf-8")
    assert old in text
    (folder / file).write_text(text.replace(old, new), "utf-8")
    check_refused("record.json.*hf-mwp evaluate")


def test_card_without_figures_is_published_with_a_note(hub, folder, output_of):
    solver = hf_mwp.MwpSolver.from_pretrained(folder)
    build_model_card(solver, "x").save(folder / "README.md")
    (folder / "record.json").write_text(json.dumps(model_record()))
    assert "no results" in output_of("publish", folder, "--repo_id", NAME)
    assert NAME in hub.repositories


@pytest.mark.parametrize("name", ["README.md", "record.json", "config.json", "model.safetensors"])
def test_missing_file_is_named(folder, check_refused, name):
    (folder / name).unlink()
    check_refused(name)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("record.json", "{"),
        ("model.safetensors", "no weights"),
        ("tokenizer.json", ""),
        ("mwp_processor.json", '{"language":'),
    ],
)
def test_damaged_file_is_named(folder, check_refused, name, content):
    (folder / name).write_text(content)
    check_refused(name)


@pytest.mark.parametrize(
    ("file_format", "missing", "message"),
    [
        ("onnx", "plausibility.json", "encoder.onnx"),
        ("numpy", "README.md", "has no README.md. Run `hf-mwp card` on the solver"),
    ],
)
def test_incomplete_export_is_refused(folder, check_refused, file_format, missing, message):
    (folder / "export.json").write_text(json.dumps({"version": 1, "format": file_format}))
    (folder / missing).unlink()
    check_refused(message)


def test_wrong_folder_and_names_are_refused(folder):
    with pytest.raises(UsageError, match="no folder"):
        push(folder / "none")
    with pytest.raises(UsageError, match="`repo_id`.*'solver'"):
        hf_mwp.push_solver_to_hub(folder, "solver")
    with pytest.raises(ValueError, match="'me/my solver'"):
        hf_mwp.push_solver_to_hub(folder, "me/my solver", dry_run=True)


def test_token_with_write_access_is_needed(folder, check_refused, monkeypatch):
    monkeypatch.delenv("HF_TOKEN")
    check_refused("needs a token.*hf auth login")
    for token in ("hf_nobody", "hf_other"):
        with pytest.raises(UsageError, match=f"{NAME}.*write access to user"):
            push(folder, token=token)


def test_missing_network_is_named(hub, folder, monkeypatch):
    hub.break_next("POST", "repos/create", *[0] * 20)
    with pytest.raises(UsageError, match=f"{hub.url} broke off.*Run it again"):
        push(folder)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(UsageError, match="http://127.0.0.1:9 broke off"):
        push(folder)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError, match="HF_HUB_OFFLINE"):
        push(folder)


@pytest.mark.slow
def test_existing_repository_is_replaced_only_on_demand(hub, folder):
    push(folder, private=False)
    with pytest.raises(UsageError, match=f"{NAME} exists and is public"):
        push(folder, private=True)
    assert push(folder).private is False
    hub.repositories[NAME].commit("main", {"pytorch_model.bin": b"else"}, "other")
    with pytest.raises(UsageError, match=f"{NAME} exists .*pytorch_model.bin.*overwrite"):
        push(folder)
    push(folder, overwrite=True)
    assert files_on(hub).keys() == CONTENT


def test_figures_of_every_kind_agree_with_the_record(folder):
    teacher = dataclasses.replace(FIGURES, model="teacher", num_beams=None, reports={"all": {"num_problems": 7}})
    reports = FIGURES.reports | {"masked text not in train": REPORT}
    greedy = dataclasses.replace(FIGURES, reports=reports, num_beams=1)
    figures = [FIGURES, teacher, greedy]
    solver = hf_mwp.MwpSolver.from_pretrained(folder)
    build_model_card(solver, "x", figures).save(folder / "README.md")
    (folder / "record.json").write_text(json.dumps(model_record(figures)))
    # Three rows, and two results of the model itself.
    assert check_card(folder / "README.md", folder / "record.json") == 5


def test_cards_of_the_repository_agree_with_their_records(repository):
    for folder in sorted((repository / "model_cards").iterdir()):
        assert check_card(folder / "README.md", folder / "record.json") >= 4, folder.name
        assert {path.name for path in folder.iterdir()} <= {*PUBLISHED, "model.safetensors"}, folder.name
