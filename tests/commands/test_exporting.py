import json
import shutil
import sys

import pytest
from safetensors import SafetensorError
from transformers import BertModel

from hf_mwp.commands.building.solver import load_solver as load_in_torch
from hf_mwp.commands.export import ExportArguments, export_solver
from hf_mwp.commands.hub.push_solver import name_in_card
from hf_mwp.commands.hub.usage import EXAMPLES
from hf_mwp.runtime import load_solver, weights
from hf_mwp.solver.models import MwpSolver
from hf_mwp.utils.usage_error import UsageError
from tests.tiny import tiny_bert_config, tiny_processor


TEXT = "小明有4个苹果，又买了2个，一共有几个？"


@pytest.fixture(scope="module")
def bert_solver(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bert_solver")
    processor = tiny_processor(max_length=32)
    bert = BertModel(tiny_bert_config(vocab_size=len(processor.tokenizer)))
    MwpSolver.from_encoder_decoder_pretrained(bert, processor).save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("quantize", [None, "int8"])
def test_the_folder_solves_as_before(solver_folder, problems, tmp_path, quantize):
    out = tmp_path / "out"
    report = export_solver(
        ExportArguments(str(solver_folder), str(out), quantize=quantize, dataset=str(problems), max_samples=6)
    )
    assert report.problems == 6 and report.equal >= 4 and report.megabytes > 0 and report.milliseconds > 0
    record = json.loads((out / "export.json").read_text())
    assert (record["quantize"], record["equal"]) == (quantize, report.equal)
    assert f"{report.equal} have the answer" in (out / "README.md").read_text()
    assert load_solver(out)(TEXT)[0]["numbers"] == ["4", "2"]
    assert not (out / "training_texts.safetensors").exists()


@pytest.mark.parametrize("fields", [{"max_samples": 6}, {"data_dir": "problems"}])
def test_options_of_the_comparison_need_a_dataset(fields):
    with pytest.raises(ValueError, match="`max_samples` and `data_dir`.*`dataset`"):
        ExportArguments("solver", "out", **fields)


def test_the_card_of_an_exported_solver_has_one_section_on_it(solver_folder, problems, tmp_path):
    first = tmp_path / "first"
    second = tmp_path / "second"
    for source, out in ((solver_folder, first), (first, second)):
        export_solver(ExportArguments(str(source), str(out), dataset=str(problems), max_samples=3))
    assert (second / "README.md").read_text("utf-8").count("## Exported for the runtime") == 1


def test_the_card_of_weights_that_pytorch_cannot_load_shows_the_runtime(solver_folder, tmp_path, monkeypatch):
    monkeypatch.setattr(weights, "MIN_SIZE", 1)
    source = tmp_path / "source"
    out = tmp_path / "out"
    shutil.copytree(solver_folder, source)
    (source / "README.md").write_text("# A solver\n\n## How to use\n\npipeline\n\n## Results\n\nGood.\n")
    export_solver(ExportArguments(str(source), str(out), quantize="int8"))
    card = name_in_card((out / "README.md").read_text("utf-8"), "me/solver")
    assert "pipeline" not in card and "hf download me/solver --local-dir solver\n" in card
    assert card.startswith("# A solver\n\n## How to use\n") and card.endswith("\n\n## Results\n\nGood.\n")
    assert str(load_solver(out)(EXAMPLES["zh"])) in card
    with pytest.raises(UsageError, match=r"out was exported.*load_solver"):
        load_in_torch(str(out))


def test_other_encoders_need_a_graph(bert_solver, tmp_path):
    with pytest.raises(UsageError, match="onnx"):
        export_solver(ExportArguments(str(bert_solver), str(tmp_path / "out")))


def test_a_missing_package_is_told_before_a_model_is_overwritten(solver_folder, tmp_path, monkeypatch):
    out = shutil.copytree(solver_folder, tmp_path / "out")
    before = sorted(path.name for path in out.iterdir())
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UsageError, match="onnxruntime.*pip install 'hf-mwp\\[onnx\\]'"):
        export_solver(ExportArguments(str(out), str(out), format="onnx", overwrite=True))
    assert sorted(path.name for path in out.iterdir()) == before


def test_a_folder_with_a_model_is_not_overwritten(solver_folder, tmp_path):
    out = tmp_path / "out"
    export_solver(ExportArguments(str(solver_folder), str(out)))
    with pytest.raises(UsageError, match="overwrite"):
        export_solver(ExportArguments(str(solver_folder), str(out)))
    export_solver(ExportArguments(str(solver_folder), str(out), overwrite=True))


@pytest.mark.parametrize("name", ["README.md", "NOTICE", "LICENSE"])
def test_files_of_the_user_are_kept(solver_folder, tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match=name):
        export_solver(ExportArguments(str(solver_folder), str(tmp_path)))
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_nothing_of_an_overwritten_model_stays(solver_folder, tmp_path):
    out = tmp_path / "out"
    other = tmp_path / "其他 solver"
    shutil.copytree(solver_folder, other)
    files = ("README.md", "record.json", "plausibility.json", "generation_config.json", "NOTICE")
    for name in files:
        (other / name).write_text("{}")
    export_solver(ExportArguments(str(other), str(out)))
    assert all((out / name).is_file() for name in files)
    for name in ("encoder.onnx", "training_texts.safetensors"):
        (out / name).touch()
    export_solver(ExportArguments(str(solver_folder), str(out), overwrite=True))
    assert not any((out / name).exists() for name in (*files, "encoder.onnx", "training_texts.safetensors"))
    export_solver(ExportArguments(str(other), str(other), overwrite=True))
    assert all((other / name).is_file() for name in files)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt),
        (SafetensorError("I/O error: No space left on device (os error 28)"), UsageError),
        (MemoryError(), UsageError),
    ],
)
def test_an_export_into_its_own_folder_that_fails_changes_nothing(solver_folder, tmp_path, monkeypatch, error, raised):
    folder = shutil.copytree(solver_folder, tmp_path / "solver")
    for name in ("README.md", "plausibility.json", "training_texts.safetensors"):
        (folder / name).write_text("{}")
    before = contents(folder)

    def fail(tensors, path):
        path.write_bytes(b"incomplete")
        raise error

    monkeypatch.setattr("safetensors.numpy.save_file", fail)
    with pytest.raises(
        raised, match="cannot be written to .*(Free disk space|free memory)" if raised is UsageError else None
    ):
        export_solver(ExportArguments(str(folder), str(folder), quantize="int8", overwrite=True))
    assert contents(folder) == before


def test_a_killed_export_into_its_own_folder_is_completed_by_the_next_command(solver_folder, tmp_path, monkeypatch):
    folder = shutil.copytree(solver_folder, tmp_path / "solver")
    with monkeypatch.context() as patch:
        patch.setattr("hf_mwp.utils.replacement.finish_replacement", lambda folder: None)
        export_solver(ExportArguments(str(folder), str(folder), overwrite=True))
    (folder / "config.json").unlink()
    assert not (folder / "export.json").exists()
    export_solver(ExportArguments(str(folder), str(folder), overwrite=True))
    assert load_solver(folder)(TEXT)[0]["numbers"] == ["4", "2"]
    assert not [path.name for path in folder.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("quantize", [None, "int8"])
@pytest.mark.parametrize(
    ("value", "fault"), [(float("inf"), "infinity or NaN"), (float("nan"), "infinity or NaN"), (1e7, "too large")]
)
def test_weights_that_are_not_finite_are_refused(solver_folder, tmp_path, monkeypatch, quantize, value, fault):
    monkeypatch.setattr(weights, "MIN_SIZE", 1)
    source = shutil.copytree(solver_folder, tmp_path / "source")
    solver = MwpSolver.from_pretrained(source)
    solver.encoder.embeddings.word_embeddings.weight.data[3, 2] = value
    solver.save_pretrained(source)
    with pytest.raises(UsageError, match=f"source: the weights encoder.*word_embeddings.* {fault}"):
        export_solver(ExportArguments(str(source), str(tmp_path / "out"), quantize=quantize))
    assert not (tmp_path / "out").exists()


def test_a_link_to_another_folder_is_not_read(solver_folder, tmp_path):
    source = shutil.copytree(solver_folder, tmp_path / "source")
    (tmp_path / "secret").write_text("a secret")
    (source / "LICENSE").symlink_to(tmp_path / "secret")
    with pytest.raises(UsageError, match="LICENSE is a link to .*secret, outside of its folder"):
        export_solver(ExportArguments(str(source), str(tmp_path / "out")))
    (source / "LICENSE").unlink()
    (source / "terms").write_text("terms")
    (source / "LICENSE").symlink_to("terms")
    export_solver(ExportArguments(str(source), str(tmp_path / "out")))
    assert (tmp_path / "out" / "LICENSE").read_text() == "terms" and not (tmp_path / "out" / "LICENSE").is_symlink()
    modes = {(tmp_path / "out" / name).stat().st_mode for name in ("config.json", "model.safetensors")}
    assert len(modes) == 1


def test_problems_to_compare_are_checked_first(solver_folder, problems, tmp_path):
    def args(folder, **options):
        return ExportArguments(str(solver_folder), str(folder), dataset=str(problems), **options)

    assert export_solver(args(tmp_path / "all", max_samples=50)).problems == 9
    asdiv = ExportArguments(str(solver_folder), str(tmp_path / "out"), dataset="asdiv_a")
    with pytest.raises(UsageError, match="Chinese.*asdiv_a.*English"):
        export_solver(asdiv)
    with pytest.raises(UsageError, match="train.jsonl has no test problems"):
        asdiv.dataset = str(problems / "train.jsonl")
        export_solver(asdiv)
    assert not (tmp_path / "out").exists()


def test_what_is_half_written_or_cut_short_is_refused(solver_folder, tmp_path):
    out = tmp_path / "out"
    export_solver(ExportArguments(str(solver_folder), str(out), quantize="int8"))
    whole = (out / "model.safetensors").read_bytes()
    (out / "model.safetensors").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(UsageError, match="cut short"):
        load_solver(out)
    # The configuration is written last.
    (out / "config.json").unlink()
    with pytest.raises(UsageError, match=r"config\.json"):
        load_solver(out)
    shutil.rmtree(out)


@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "int8"])
def test_an_encoder_of_any_kind_as_a_graph(bert_solver, problems, tmp_path, quantize):
    pytest.importorskip("onnxscript")
    out = tmp_path / "out"
    args = ExportArguments(str(bert_solver), str(out), format="onnx", quantize=quantize, dataset=str(problems))
    report = export_solver(args)
    assert report.problems == 9 and report.equal >= 7
    if quantize is None:
        assert report.equal == 9
    assert load_solver(out)(TEXT)[0]["numbers"] == ["4", "2"]
