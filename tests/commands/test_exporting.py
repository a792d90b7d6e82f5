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
from tests.commands.folders import contents, read_json, write_rows
from tests.damage import change_weights
from tests.slow_parameters import slow_after
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


@pytest.fixture
def source(solver_folder, tmp_path):
    """A copy of the solver's folder."""
    return shutil.copytree(solver_folder, tmp_path / "source")


def export(model, output_dir, **fields):
    return export_solver(ExportArguments(str(model), str(output_dir), **fields))


@pytest.mark.parametrize("quantize", [None, "int8"])
def test_exported_solver_has_the_same_answers(solver_folder, problems, tmp_path, quantize):
    report = export(solver_folder, tmp_path, quantize=quantize, dataset=str(problems), max_samples=6)
    assert report.problems == 6
    assert report.equal >= 4
    assert report.megabytes > 0
    assert report.milliseconds > 0
    record = read_json(tmp_path / "export.json")
    assert (record["quantize"], record["equal"]) == (quantize, report.equal)
    assert f"{report.equal} have the answer" in (tmp_path / "README.md").read_text()
    assert load_solver(tmp_path)(TEXT)[0]["numbers"] == ["4", "2"]
    assert not (tmp_path / "training_texts.safetensors").exists()


@pytest.mark.parametrize("fields", [{"max_samples": 6}, {"data_dir": "problems"}])
def test_options_of_the_comparison_need_a_dataset(fields):
    with pytest.raises(ValueError, match="`max_samples` and `data_dir`.*`dataset`"):
        ExportArguments("solver", "out", **fields)


@pytest.mark.slow
def test_card_of_a_repeated_export_has_one_section_on_it(solver_folder, problems, tmp_path):
    first = tmp_path / "first"
    second = tmp_path / "second"
    export(solver_folder, first, dataset=str(problems), max_samples=1)
    export(first, second, dataset=str(problems), max_samples=1)
    assert (second / "README.md").read_text("utf-8").count("## Exported for the runtime") == 1


def test_card_of_int8_weights_shows_the_runtime(source, tmp_path, monkeypatch):
    monkeypatch.setattr(weights, "MIN_SIZE", 1)
    out = tmp_path / "out"
    (source / "README.md").write_text("# A solver\n\n## How to use\n\npipeline\n\n## Results\n\nGood.\n")
    export(source, out, quantize="int8")
    card = name_in_card((out / "README.md").read_text("utf-8"), "me/solver")
    assert "pipeline" not in card
    assert "hf download me/solver --local-dir solver\n" in card
    assert card.startswith("# A solver\n\n## How to use\n")
    assert card.endswith("\n\n## Results\n\nGood.\n")
    assert str(load_solver(out)(EXAMPLES["zh"])) in card
    with pytest.raises(UsageError, match=r"out was exported.*load_solver"):
        load_in_torch(str(out))


def test_other_encoders_need_a_graph(bert_solver, tmp_path):
    with pytest.raises(UsageError, match="onnx"):
        export(bert_solver, tmp_path / "out")


def test_missing_package_is_named_before_a_model_is_overwritten(source, monkeypatch):
    before = contents(source)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(UsageError, match="onnxruntime.*pip install 'hf-mwp\\[onnx\\]'"):
        export(source, source, format="onnx", overwrite=True)
    assert contents(source) == before


@pytest.mark.parametrize("name", slow_after(1, ["README.md", "NOTICE", "config.json"]))
def test_existing_files_are_replaced_only_on_demand(solver_folder, tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(UsageError, match=f"{name}.*overwrite"):
        export(solver_folder, tmp_path)
    assert contents(tmp_path) == {name: b"mine"}


@pytest.mark.slow
def test_no_file_of_an_overwritten_model_remains(solver_folder, tmp_path):
    out = tmp_path / "out"
    other = shutil.copytree(solver_folder, tmp_path / "其他 solver")
    copied = {"README.md", "record.json", "plausibility.json", "generation_config.json", "NOTICE"}
    for name in copied:
        (other / name).write_text("{}")
    export(other, out)
    assert copied <= contents(out).keys()
    outdated = copied | {"encoder.onnx", "training_texts.safetensors"}
    for name in outdated:
        (out / name).touch()
    export(solver_folder, out, overwrite=True)
    assert not outdated & contents(out).keys()
    export(other, other, overwrite=True)
    assert copied <= contents(other).keys()


@pytest.mark.parametrize(
    ("error", "raised", "message"),
    slow_after(
        1,
        [
            (SafetensorError("I/O error: No space left on device (os error 28)"), UsageError, "Free disk space"),
            (KeyboardInterrupt(), KeyboardInterrupt, None),
            (MemoryError(), UsageError, "free memory"),
        ],
    ),
)
def test_failed_export_into_its_own_folder_changes_nothing(source, monkeypatch, error, raised, message):
    for name in ("README.md", "plausibility.json", "training_texts.safetensors"):
        (source / name).write_text("{}")
    before = contents(source)

    def fail(tensors, path):
        path.write_bytes(b"incomplete")
        raise error

    monkeypatch.setattr("safetensors.numpy.save_file", fail)
    with pytest.raises(raised, match=message):
        export(source, source, quantize="int8", overwrite=True)
    assert contents(source) == before


@pytest.mark.parametrize(
    ("value", "quantize", "fault"),
    slow_after(
        2,
        [
            (float("nan"), "int8", "infinity or NaN"),
            (1e7, None, "too large"),
            (float("inf"), None, "infinity or NaN"),
            (1e7, "int8", "too large"),
        ],
    ),
)
def test_weights_that_are_not_finite_are_refused(source, tmp_path, monkeypatch, value, quantize, fault):
    monkeypatch.setattr(weights, "MIN_SIZE", 1)

    def change(tensors):
        tensors["encoder.embeddings.word_embeddings.weight"][3, 2] = value

    change_weights(source, change)
    with pytest.raises(UsageError, match=f"source: the weights encoder.*word_embeddings.* {fault}"):
        export(source, tmp_path / "out", quantize=quantize)
    assert not (tmp_path / "out").exists()


def test_link_to_another_folder_is_not_read(source, tmp_path):
    (tmp_path / "secret").write_text("a secret")
    (source / "LICENSE").symlink_to(tmp_path / "secret")
    with pytest.raises(UsageError, match="LICENSE is a link to .*secret, outside of its folder"):
        export(source, tmp_path / "out")


@pytest.mark.slow
def test_problems_to_compare_are_checked_first(solver_folder, problems, tmp_path):
    row = {"text": "2 and 3?", "equation": "2+3", "answer": "5", "language": "en"}
    english = write_rows(tmp_path / "test.jsonl", [row])
    with pytest.raises(UsageError, match="Chinese.*test.jsonl.*English"):
        export(solver_folder, tmp_path / "out", dataset=str(english))
    with pytest.raises(UsageError, match="train.jsonl has no test problems"):
        export(solver_folder, tmp_path / "out", dataset=str(problems / "train.jsonl"))
    assert not (tmp_path / "out").exists()


def test_incomplete_export_is_refused(solver_folder, tmp_path):
    export(solver_folder, tmp_path, quantize="int8")
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(UsageError, match="cut short"):
        load_solver(tmp_path)
    # The configuration is written last.
    (tmp_path / "config.json").unlink()
    with pytest.raises(UsageError, match=r"config\.json"):
        load_solver(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("quantize", [None, "int8"])
def test_encoder_of_any_kind_is_exported_as_a_graph(bert_solver, problems, tmp_path, quantize):
    pytest.importorskip("onnxscript")
    report = export(bert_solver, tmp_path, format="onnx", quantize=quantize, dataset=str(problems))
    assert report.problems == 9
    assert report.equal >= (9 if quantize is None else 7)
    assert load_solver(tmp_path)(TEXT)[0]["numbers"] == ["4", "2"]
