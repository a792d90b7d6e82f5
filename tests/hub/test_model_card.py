import re

import pytest
from huggingface_hub import ModelCard

from hf_mwp.hub import ModelFigures, TrainingStage, build_model_card
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
    TrainingStage("mix", "hf-mwp mix", {"theta": 0.2}),
]


def test_the_card_says_all_in_this_order(solver):
    card = build_model_card(
        solver, "model_cards/tiny", [FIGURES, TEACHER], STAGES, license="mit", summary="A student.", notes="## Limits"
    )
    expected = [
        "# tiny",
        "A student.",
        r"2 transformer layers of width 16, .* tree decoder \(GTS\) of width 16; [\d,]+ parameters\. Method: A ",
        "## How to use",
        r'pipeline\("math-word-problem", model="model_cards/tiny"\)',
        "## Figures",
        re.escape("| this model | math23k, test (public): all problems | 1,000 | beam 5 | 61.3 | 50.0 |"),
        re.escape("| this model | math23k, test (public): masked text not in train | 932 | beam 5 | 59.0 | - |"),
        re.escape("| teacher | math23k, test (public): all problems | 5 | greedy | - | - |"),
        "## How it was made",
        re.escape("**teacher**: `hf-mwp train` (seed 42, 1,234 s, 1 CPU thread(s) of 2 cores)"),
        re.escape("`learning_rate: 0.0002`, `encoder: bert`"),
        re.escape("**mix**: `hf-mwp mix`"),
        re.escape("Versions: torch 2.13.0."),
        "## Limits",
        "## Citation",
        "ming2025compact",
    ]
    assert re.search(".*".join(expected), card.text, flags=re.DOTALL), card.text


def test_only_the_models_own_figures_are_in_the_metadata(solver, tmp_path):
    build_model_card(solver, "tiny", [FIGURES, TEACHER], license="mit").save(tmp_path / "README.md")
    data = ModelCard.load(tmp_path / "README.md").data
    assert (data.license, data.language, data.datasets) == ("mit", "zh", ["math23k"])
    part = "test (public)"
    assert {(each.dataset_config, each.metric_type, each.metric_value) for each in data.eval_results} == {
        (f"{part}, all problems", "answer_accuracy, beam 5", 61.25),
        (f"{part}, all problems", "equation_accuracy, beam 5", 50.0),
        (f"{part}, masked text not in train", "answer_accuracy, beam 5", 59.0),
    }


def test_an_encoders_card(solver):
    card = build_model_card(solver.encoder, "me/tiny-encoder", language="en")
    assert 'AutoModel.from_pretrained("me/tiny-encoder", trust_remote_code=True)' in card.text
    assert "## Figures" not in card.text and "## How it was made" not in card.text
    assert card.data.pipeline_tag == "feature-extraction"
