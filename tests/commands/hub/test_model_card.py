import dataclasses
import json
import re

import pytest
from huggingface_hub import ModelCard

from hf_mwp import MwpSolver
from hf_mwp.commands.hub import ModelFigures, TrainingStage, build_model_card, model_record
from hf_mwp.commands.hub.run_records import read_stage
from hf_mwp.compress.models import MwpStudentForSequenceClassification
from hf_mwp.compress.pruning import prune
from hf_mwp.solver.data.training_texts import TrainingTexts
from hf_mwp.solver.metrics import calibration_report
from tests.compress.pruning.encoders import tiny_encoder
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


def test_sections_of_the_card_are_in_order(solver):
    card = build_model_card(
        solver,
        "model_cards/tiny",
        [FIGURES, TEACHER],
        STAGES,
        license="mit",
        summary="A student.",
        notes="## Limits",
        output="[{'answer': 6.0}]",
    )
    expected = [
        "# tiny",
        "A student.",
        r"2 transformer layers.* 16.* \(GTS\).* 16.* [\d,]+ parameters",
        "## How to use",
        r"`pip install hf-mwp`",
        r'pipeline\("math-word-problem", model="model_cards/tiny"\)',
        re.escape("```text\n[{'answer': 6.0}]\n```"),
        "## Results",
        r"\| this model \| math23k, test.*5 \| 1,000 \| 61\.3 \| 932 \| 59\.0 \|",
        r"\| teacher \| math23k, test.*\| greedy \| 5 \| - \| - \| - \|",
        "## Limits",
        r"record\.json",
        "## Citation",
        "ming2025compact",
    ]
    assert re.search(".*".join(expected), card.text, flags=re.DOTALL), card.text


def test_record_has_figures_stages_and_training_texts():
    record = json.loads(json.dumps(model_record([FIGURES, TEACHER], STAGES, TrainingTexts.from_texts(["a", "b"]))))
    assert [figures["model"] for figures in record["figures"]] == ["this model", "teacher"]
    assert record["figures"][0]["reports"]["masked text not in train"]["num_problems"] == 932
    assert record["stages"][0]["options"] == {"learning_rate": 0.0002, "encoder": "bert"}
    assert record["stages"][0]["machine"]["cores"] == 2
    assert record["training_texts"]["texts"] == 2
    assert model_record()["training_texts"] is None
    # Only ancestors are known, whose texts are not.
    unknown = TrainingTexts(unknown=("bert",))
    assert model_record(texts=unknown)["training_texts"] == {"texts": 0, "sources": [], "unknown": ["bert"]}


def test_table_of_many_figures_has_the_widest_search_of_each_split(solver):
    figures = []
    for name in ("math23k", "cm17k", "hmwp"):
        for ranking, beams in (("", 1), ("", 5), (", re-ranked", 8)):
            split = f"test (public{ranking})"
            figures.append(dataclasses.replace(FIGURES, dataset=name, part=split, num_beams=beams))
    card = build_model_card(solver, "tiny", figures)
    rows = re.findall(r"^\| this model \| (\w+), test \(public(, re-ranked)?\) \| beam (\d+)", card.text, re.MULTILINE)
    assert rows == [(name, ", re-ranked", "8") for name in ("math23k", "cm17k", "hmwp")]
    assert len(card.data.eval_results) == 3


def test_metadata_have_the_figures_of_the_model_alone(solver, tmp_path):
    build_model_card(solver, "tiny", [FIGURES, TEACHER], license="mit").save(tmp_path / "README.md")
    data = ModelCard.load(tmp_path / "README.md").data
    assert (data.license, data.language, data.datasets) == ("mit", "zh", None)
    (result,) = data.eval_results
    assert (result.dataset_config, result.metric_type, result.metric_value) == ("test (public)", "accuracy", 61.25)
    assert result.metric_args == {"search": "beam 5", "problems": 1000}


def test_card_has_the_calibration(solver):
    assert "confidence_threshold" not in build_model_card(solver, "tiny", [FIGURES, TEACHER]).text
    report = calibration_report([0.9, 0.2, 0.6, 0.4, 0.9], [True, False, False, True, True], num_bins=2)
    text = build_model_card(solver, "tiny", [dataclasses.replace(FIGURES, calibration=report), TEACHER]).text
    assert re.search(r"calibration error 0\.160.* 66\.7 %.*`confidence_threshold`", text)


def test_card_of_an_encoder_has_an_example_and_no_results(solver):
    card = build_model_card(solver.encoder, "me/tiny-encoder", language="en")
    assert 'AutoModel.from_pretrained("me/tiny-encoder", trust_remote_code=True)' in card.text
    assert "## Results" not in card.text
    assert card.data.pipeline_tag == "feature-extraction"
    # Figures of a solver are no results of its encoder.
    card = build_model_card(solver.encoder, "me/tiny-encoder", [FIGURES, TEACHER])
    assert "model-index" not in card.content
    assert "| 61.3 |" in card.text


def test_card_of_a_classifier_has_the_metrics_of_its_task(solver, tmp_path):
    task = {"pipeline_tag": "text-classification", "datasets": ["nyu-mll/glue"], "language": "en", "tags": ["hf_mwp"]}
    task["metrics"] = {"accuracy": ["accuracy", "num_pairs"]}
    (tmp_path / "run_config.yaml").write_text("seed: 1")
    (tmp_path / "data.json").write_text(json.dumps({"dataset": "rte", "card": task}))
    report = {"accuracy": 0.66, "num_problems": 277, "num_pairs": 277}
    figures = ModelFigures("this model", "rte", "validation", 1, "", {"all": report})
    model = MwpStudentForSequenceClassification(solver.encoder.config)
    card = build_model_card(model, "me/rte", [figures], [read_stage(tmp_path)], license="mit")
    assert "| accuracy % |\n" in card.text
    assert re.search(r"^\| .*rte, validation.*\| 277 \| 66\.0 \|$", card.text, re.MULTILINE)
    assert "answer_match" not in card.text
    assert 'pipeline("text-classification", model="me/rte")' in card.text
    card.save(tmp_path / "README.md")
    data = ModelCard.load(tmp_path / "README.md").data
    assert (data.pipeline_tag, data.datasets, data.language) == ("text-classification", ["nyu-mll/glue"], "en")
    assert data.tags == ["hf_mwp", "mwp_student"]
    (result,) = data.eval_results
    assert (result.task_type, result.metric_type, result.metric_value) == (data.pipeline_tag, "accuracy", 66.0)
    assert result.metric_args == {"search": "greedy", "problems": 277}


@pytest.mark.parametrize(
    ("language", "indexed", "masked"),
    [("zh", True, "小明有[NUM0]个苹果和[NUM1]个梨"), ("en", False, "Tom has [NUM] apples and [NUM] pears")],
)
def test_card_of_an_encoder_masks_numbers_as_the_encoder_reads_them(solver, language, indexed, masked):
    card = build_model_card(solver.encoder, "me/tiny-encoder", language=language, indexed_numbers=indexed)
    assert masked in card.text


def test_datasets_are_those_that_stages_name(solver):
    stages = [
        TrainingStage("pretrain", "hf-mwp pretrain", {"corpus": ["texts.txt.gz", "hmwp"], "exclude": ["asdiv_a"]}),
        TrainingStage("label", "hf-mwp pseudo-label", {"problems": ["mawps:all", "answers.jsonl"]}),
        TrainingStage("teacher", "hf-mwp train", {"dataset": "math23k", "extra_train": None}),
        TrainingStage("distill", "hf-mwp distill", {"dataset": "my.jsonl", "extra_train": ["ape210k:validation"]}),
        TrainingStage("finetune", "hf-mwp train", {"extra_train": "cm17k", "extra_exclude": "svamp"}),
    ]
    card = build_model_card(solver, "tiny", [FIGURES], stages)
    assert card.data.datasets == ["ape210k", "cm17k", "hmwp", "math23k", "mawps"]
    assert build_model_card(solver, "tiny", [FIGURES], STAGES).data.datasets is None


def test_datasets_of_ancestors_are_those_of_the_training_texts():
    solver = tiny_solver(tiny_processor())
    sources = ["math23k (public), train", "ape210k:validation", "my_problems (files), train", "reversed"]
    solver.training_texts = TrainingTexts.from_texts(["1 apple"], sources)
    stage = TrainingStage("distill", "hf-mwp distill", {"dataset": "my_problems", "teacher": "old"})
    assert build_model_card(solver, "tiny", stages=[stage]).data.datasets == ["ape210k", "math23k"]


@pytest.mark.parametrize(
    ("command", "options", "is_distilled"),
    [
        ("hf-mwp distill", {}, True),
        ("hf-mwp prune", {}, True),
        ("hf-mwp stark", {}, True),
        ("DistillationTrainer", {}, True),
        ("hf-mwp mix", {"distilled": "student"}, True),
        ("hf-mwp mix", {"solvers": ["a", "b"]}, False),
        ("hf-mwp pretrain", {}, False),
        ("hf-mwp rerank", {}, False),
    ],
)
def test_only_a_distilled_model_claims_distillation(solver, command, options, is_distilled):
    stages = [TrainingStage("first", command, options), TrainingStage("student", "hf-mwp train", {})]
    for model in (solver, solver.encoder, MwpStudentForSequenceClassification(solver.encoder.config)):
        card = build_model_card(model, "tiny", stages=stages)
        assert ("knowledge-distillation" in card.data.tags) == is_distilled
        assert ("distil" in card.content.lower()) == is_distilled


def test_model_of_unknown_origin_does_not_claim_distillation(solver):
    assert "distil" not in build_model_card(solver, "tiny").content.lower()


def test_card_of_a_pruned_model_has_its_heads_and_neurons():
    solver = MwpSolver.from_encoder_decoder_pretrained(tiny_encoder("modernbert"), tiny_processor())
    assert ", feed-forward 20, 4 heads," in build_model_card(solver, "a").text
    pruned = prune(solver, {0: [0, 1], 1: [3]}, {0: range(6)})
    assert ", feed-forward [14, 20, 20], [2, 3, 4] heads," in build_model_card(pruned, "a").text
