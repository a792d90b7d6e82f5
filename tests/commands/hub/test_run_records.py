"""What a card is told by the folders of runs."""

import json

import pytest
import yaml

from hf_mwp.commands.hub.run_records import read_figures, read_stage
from hf_mwp.commands.options.parsing import parse
from hf_mwp.commands.options.stages import types_of
from hf_mwp.utils.files import shorten_paths
from hf_mwp.utils.option import option_values
from hf_mwp.utils.run_folder import RunFolder
from hf_mwp.utils.usage_error import UsageError
from tests.slow_parameters import slow_after


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("hfl/chinese-roberta-wwm-ext", "hfl/chinese-roberta-wwm-ext"),
        ("ape210k:validation", "ape210k:validation"),
        ("1:4,2:8,3:12", "1:4,2:8,3:12"),
        (["/no/such/place/more.jsonl", "runs/recipe/label-1234/labelled.jsonl"], ["more.jsonl", "labelled.jsonl"]),
        ("./teacher", "teacher"),
        ("ltp:/models/ltp", "ltp:ltp"),
        ("ltp:LTP/small", "ltp:LTP/small"),
        ({"num_hidden_layers": 6}, {"num_hidden_layers": 6}),
        (0.5, 0.5),
    ],
)
def test_paths_are_shown_without_their_place(value, expected):
    assert shorten_paths(value) == expected


def test_default_dataset_of_a_stage_is_named(tmp_path):
    for command, dataset in (("train", "math23k"), ("distill", "math23k"), ("mix", None)):
        (tmp_path / "stage.yaml").write_text("seed: 1\n")
        (tmp_path / "stage.json").write_text(json.dumps({"command": f"hf-mwp {command}"}))
        assert read_stage(tmp_path).options.get("dataset") == dataset
    (tmp_path / "stage.yaml").write_text("dataset: svamp\n")
    assert read_stage(tmp_path).options == {"dataset": "svamp"}


@pytest.mark.parametrize(
    ("command", "options", "defaults"),
    slow_after(
        2,
        [
            ("train", {"encoder": "someone/bert", "learning_rate": 3e-4, "test": False}, {"dataset": "math23k"}),
            (
                "train",
                {"encoder": "someone/bert", "dataset": "svamp", "max_length": 128, "eval_strategy": "epoch"},
                {},
            ),
            ("distill", {"teacher": ["me/teacher"], "hidden_weights": [1.0, 2.0, 1.0], "dataset": "svamp"}, {}),
            ("pretrain", {"encoder": "someone/bert", "corpus": ["math23k"], "project_to": {}, "max_steps": 7}, {}),
            ("pseudo-label", {"problems": ["cm17k:all"], "model": "me/solver", "num_beams": 8}, {}),
        ],
    ),
)
def test_options_that_were_set_are_shown(tmp_path, command, options, defaults):
    (tmp_path / "options.yaml").write_text(yaml.safe_dump(options | {"output_dir": str(tmp_path)}))
    values = option_values(*parse(command, "", types_of(command), ["--config", str(tmp_path / "options.yaml")]))
    folder = RunFolder(tmp_path, command, values)
    folder.begin()
    folder.finish({})
    assert read_stage(tmp_path).options == options | defaults


def test_time_of_a_stage_includes_all_starts(tmp_path):
    (tmp_path / "stage.yaml").write_text("seed: 1")
    (tmp_path / "run.json").write_text(json.dumps({"command": "hf-mwp train", "wall_seconds": 7.0}))
    assert read_stage(tmp_path).record["wall_seconds"] == 7.0
    (tmp_path / "stage.json").write_text(json.dumps({"stage": "teacher", "seconds": 61.5}))
    assert read_stage(tmp_path).record["wall_seconds"] == 61.5


def test_options_of_resuming_are_not_shown(tmp_path):
    (tmp_path / "run_config.yaml").write_text("{resume: true, overwrite: true, seed: 42, of_before: 3}")
    assert read_stage(tmp_path).options == {"seed": 42, "of_before": 3}
    (tmp_path / "run.json").write_text(json.dumps({"command": "hf-mwp pretrain"}))
    assert read_stage(tmp_path).options == {"of_before": 3}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("run_config.yaml", "a: [", "run_config.yaml.*YAML"),
        ("stage.yaml", "- a", r"stage.yaml.*\['a'\]"),
        ("stage.yaml", "", "stage.yaml.*None"),
        ("run.json", "{", "run.json.*JSON"),
        ("stage.json", "[1]", r"stage.json.*\[1\]"),
    ],
)
def test_damaged_record_is_named(tmp_path, name, content, message):
    if name != "run_config.yaml":
        (tmp_path / "stage.yaml").write_text("seed: 1")
    (tmp_path / name).write_text(content)
    with pytest.raises(UsageError, match=message):
        read_stage(tmp_path)


@pytest.mark.parametrize("section", ["null", "{}", "5"])
def test_folder_without_reports_has_no_evaluation(section, tmp_path):
    (tmp_path / "metrics.json").write_text(f'{{"dataset": "math23k", "test": {section}}}')
    with pytest.raises(UsageError, match="contains no evaluation"):
        read_figures(tmp_path, "this model")


def test_secrets_of_an_unknown_command_are_hidden(tmp_path):
    (tmp_path / "run_config.yaml").write_text(
        "{hub_token: secret, teacher_cache_dir: somewhere, pretrained_weight: 0.2}"
    )
    assert read_stage(tmp_path).options == {"pretrained_weight": 0.2}


def test_folder_without_a_record_is_named(tmp_path):
    with pytest.raises(UsageError, match=f"{tmp_path}.*run"):
        read_stage(tmp_path)
