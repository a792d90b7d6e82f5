import dataclasses
import json
import re

import pytest
from huggingface_hub import ModelCard

from hf_mwp.hub import ModelFigures, TrainingStage, build_model_card
from hf_mwp.hub.run_records import read_stage
from hf_mwp.losses import HiddenMSELoss
from hf_mwp.metrics import calibration_report
from hf_mwp.models import MwpStudentForSequenceClassification
from tests.tiny import tiny_processor, tiny_solver


@pytest.fixture(scope="module")
def solver():
    return tiny_solver(tiny_processor())


FIGURES = ModelFigures(
    "this model",
    "math23k",
    "test (public)",
    5,
    "annotated",
    {
        "all problems": {"answer_accuracy": 0.6125, "equation_accuracy": 0.5, "num_problems": 1000},
        "masked text not in train": {"answer_accuracy": 0.59, "num_problems": 932},
    },
)
TEACHER = ModelFigures("teacher", "math23k", "test (public)", 1, "annotated", {"all problems": {"num_problems": 5}})
STAGES = [
    TrainingStage(
        "teacher",
        "hf-mwp train",
        {"learning_rate": 0.0002, "encoder": "bert"},
        {
            "seed": 42,
            "wall_seconds": 1234.5,
            "machine": {"torch_threads": 1, "cores": 2, "accelerator": None},
            "libraries": {"torch": "2.13.0"},
        },
    ),
    TrainingStage("mix", "hf-mwp mix", {"pretrained_weight": 0.2}, {"libraries": {"torch": "2.14.0", "numpy": "2.4"}}),
]


def test_the_card_says_all_in_this_order(solver):
    card = build_model_card(
        solver, "model_cards/tiny", [FIGURES, TEACHER], STAGES, license="mit", summary="A student.", notes="## Limits"
    )
    expected = [
        "# tiny",
        "A student.",
        r"2 transformer layers.* 16.* \(GTS\).* 16.* [\d,]+ parameters",
        "## How to use",
        r'pipeline\("math-word-problem", model="model_cards/tiny"\)',
        "## Figures",
        r"math23k, test.*\| 1,000 \|.*5 \| 61\.3 \| 50\.0 \|",
        r"math23k, test.*\| 932 \|.*5 \| 59\.0 \| - \|",
        r"teacher.*math23k, test.*\| 5 \|.*\| - \| - \|",
        "## How it was made",
        r"\*\*teacher\*\*: `hf-mwp train`.*seed 42.*1,234 s.*1 CPU.*2 cores",
        re.escape("`learning_rate: 0.0002`, `encoder: bert`"),
        re.escape("**mix**: `hf-mwp mix`"),
        r"torch 2\.13\.0.*2\.14\.0.*numpy 2\.4",
        "## Limits",
        "## Citation",
        "ming2025compact",
    ]
    assert re.search(".*".join(expected), card.text, flags=re.DOTALL), card.text


def test_only_the_models_own_figures_are_in_the_metadata(solver, tmp_path):
    build_model_card(solver, "tiny", [FIGURES, TEACHER], license="mit").save(tmp_path / "README.md")
    data = ModelCard.load(tmp_path / "README.md").data
    assert (data.license, data.language, data.datasets) == ("mit", "zh", None)
    part = "test (public)"
    assert {(each.dataset_config, each.metric_type, each.metric_value) for each in data.eval_results} == {
        (f"{part}, all problems", "answer_accuracy, beam 5", 61.25),
        (f"{part}, all problems", "equation_accuracy, beam 5", 50.0),
        (f"{part}, masked text not in train", "answer_accuracy, beam 5", 59.0),
    }


def test_equations_and_what_is_left_out_have_their_own_counts(solver, tmp_path):
    report = {"answer_accuracy": 0.125, "equation_accuracy": 104 / 619, "num_problems": 1704, "num_equations": 619}
    reports = {"all problems": report | {"num_unjudged": 36}, "others": report | {"num_equations": 1704}}
    card = build_model_card(
        solver, "tiny", [ModelFigures("this model", "cm17k", "test", 1, "equation_value", reports)]
    )
    assert re.search(r"^\|.* cm17k, test.*\| 1,704.*36.*\| 12\.5 \| 16\.8.* 619 \|$", card.text, re.MULTILINE)
    assert re.search(r"^\|.* cm17k, test.*\| 1,704 \|.*\| 12\.5 \| 16\.8 \|$", card.text, re.MULTILINE)
    card.save(tmp_path / "README.md")
    results = ModelCard.load(tmp_path / "README.md").data.eval_results
    assert [each.metric_args for each in results] == [{"problems": each} for each in (1704, 619, 1704, 1704)]


def test_the_card_says_what_the_probabilities_are_worth(solver):
    assert "confidence_threshold" not in build_model_card(solver, "tiny", [FIGURES, TEACHER]).text
    report = calibration_report([0.9, 0.2, 0.6, 0.4, 0.9], [True, False, False, True, True], num_bins=2)
    measured = dataclasses.replace(FIGURES, calibration=report)
    text = build_model_card(solver, "tiny", [measured, TEACHER]).text
    assert re.search(r"^\| .*math23k, test.* 5 \| 0\.160 \| 0\.83 \| 66\.7.* 3 \|$", text, re.MULTILINE)
    assert re.search(r"expected calibration error.*\b2 bins", text) and "`confidence_threshold`" in text
    right = dataclasses.replace(TEACHER, calibration=calibration_report([0.5], [True]))
    text = build_model_card(solver, "tiny", [right]).text
    assert re.search(r"^\| teacher \| math23k, test.*\| 0\.500 \| - \| 100\.0.* 1 \|$", text, re.MULTILINE)


def test_an_encoders_card(solver):
    card = build_model_card(solver.encoder, "me/tiny-encoder", language="en")
    assert 'AutoModel.from_pretrained("me/tiny-encoder", trust_remote_code=True)' in card.text
    assert "## Figures" not in card.text and "## How it was made" not in card.text
    assert card.data.pipeline_tag == "feature-extraction"


def test_a_classifiers_card_is_what_its_task_says(solver, tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "run_config.yaml").write_text("seed: 1")
    task = {"pipeline_tag": "text-classification", "datasets": ["nyu-mll/glue"], "language": "en", "tags": ["hf_mwp"]}
    task["metrics"] = {"accuracy": ["accuracy", "num_pairs"]}
    (folder / "data.json").write_text(json.dumps({"dataset": "rte", "card": task}))
    report = {"accuracy": 0.66, "num_problems": 277, "num_pairs": 277}
    figures = ModelFigures("this model", "rte", "validation", 1, "", {"all": report})
    model = MwpStudentForSequenceClassification(solver.encoder.config)
    card = build_model_card(model, "me/rte", [figures], [read_stage(folder, {})], license="mit")
    assert "| accuracy % |\n" in card.text
    assert re.search(r"^\| .*rte, validation.*\| 277 \|.*\| 66\.0 \|$", card.text, re.MULTILINE)
    assert "answer_match" not in card.text
    assert 'pipeline("text-classification", model="me/rte")' in card.text
    card.save(tmp_path / "README.md")
    data = ModelCard.load(tmp_path / "README.md").data
    assert (data.pipeline_tag, data.datasets, data.language) == ("text-classification", ["nyu-mll/glue"], "en")
    assert data.tags == ["hf_mwp", "knowledge-distillation", "mwp_student"]
    (result,) = data.eval_results
    assert (result.task_type, result.metric_type, result.metric_value) == (data.pipeline_tag, "accuracy, greedy", 66.0)
    assert result.metric_args == {"problems": 277}


def test_figures_of_a_solver_are_no_results_of_its_encoder(solver):
    card = build_model_card(solver.encoder, "me/tiny-encoder", [FIGURES, TEACHER])
    assert "model-index" not in card.content and "| 61.3 | 50.0 |" in card.text


@pytest.mark.parametrize(
    ("language", "indexed", "masked"),
    [("zh", True, "小明有[NUM0]个苹果和[NUM1]个梨"), ("en", False, "Tom has [NUM] apples and [NUM] pears")],
)
def test_an_encoders_card_masks_numbers_as_the_encoder_reads_them(solver, language, indexed, masked):
    card = build_model_card(solver.encoder, "me/tiny-encoder", language=language, indexed_numbers=indexed)
    assert masked in card.text


def test_data_sets_are_those_that_stages_name(solver):
    stages = [
        TrainingStage("pretrain", "hf-mwp pretrain", {"corpus": ["texts.txt.gz", "hmwp"], "exclude": ["asdiv_a"]}),
        TrainingStage("label", "hf-mwp pseudo-label", {"problems": ["mawps:all", "answers.jsonl"]}),
        TrainingStage("teacher", "hf-mwp train", {"dataset": "math23k", "extra_train": None}),
        TrainingStage(
            "distill",
            "hf-mwp distill",
            {"dataset": "my.jsonl", "extra_train": ["ape210k:validation", "more.csv"], "extra_exclude": "svamp"},
        ),
        TrainingStage("finetune", "hf-mwp train", {"dataset": "math23k", "extra_train": "cm17k"}),
    ]
    card = build_model_card(solver, "tiny", [FIGURES], stages)
    assert card.data.datasets == ["ape210k", "cm17k", "hmwp", "math23k", "mawps"]
    assert build_model_card(solver, "tiny", [FIGURES], STAGES).data.datasets is None


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (
            {},
            r"hidden \(mse\) 1\.0, 0\.9, 1\.0 .*\b3\b.* 1\.0.*; embedding 1\.0; prediction 1\.0, .* 0\.5; .* 4\.0, .*"
            r"(?<!not )multiplied by T²",
        ),
        (
            {"hidden_loss": "fsp", "hidden_weights": [0.5, 2], "embedding_weight": 0.0, "scale_by_square": False},
            r"hidden \(fsp\) 0\.5, 2; embedding 0\.0; prediction 1\.0, .* 0\.5; .* 4\.0, .*not multiplied by T²",
        ),
        (
            {"hidden_loss": "none", "hidden_weights": None, "prediction_weight": 3.0, "soft_label_weight": 0.25},
            r"hidden none; embedding 1\.0; prediction 3\.0, .* 0\.25; .* 4\.0, .*(?<!not )multiplied by T²",
        ),
        (
            {"hidden_loss": None, "temperature": 2.0},
            r"hidden none; embedding 1\.0; prediction 1\.0, .* 0\.5; .* 2\.0, .*(?<!not )multiplied by T²",
        ),
    ],
)
def test_the_loss_of_a_distillation_is_said_whole(solver, options, expected):
    card = build_model_card(solver, "tiny", stages=[TrainingStage("distill", "hf-mwp distill", options)])
    assert re.search(rf"^Loss: {expected}", card.text, re.MULTILINE)
    assert "Loss:" not in build_model_card(solver, "tiny", stages=STAGES).text


def test_the_papers_entry_stands_once_in_the_package(solver, repository):
    files = [path for path in (repository / "hf_mwp").rglob("*.py") if "{ming2025compact" in path.read_text("utf-8")]
    assert [path.name for path in files] == ["hidden_mse_loss.py"]
    assert HiddenMSELoss().citation in build_model_card(solver, "tiny").text
