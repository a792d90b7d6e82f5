"""
Generates two files from the records in this folder: `ACCURACY.md`, with every evaluation of the Math23k models, and
`accuracy.png`, which plots their accuracy against their parameters, together with the figures in the first paper.

    python examples/results/make_page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml


RESULTS = Path(__file__).parent
PAPER = RESULTS.parent / "reproduce" / "compact_table7.yaml"

# Title: folder of the training run, whose record has the number of parameters, and prefix of the evaluation files.
EARLIER = {
    "`reversed_learned`, initial weights of the published student without Gemma, 3 x 312": (
        "reversed_learned",
        "reversed_learned",
    ),
    "`born_again`, from which it was trained": ("born_again", "born_again"),
    "`gemma_seed_46`, `_48`, averaged: initial weights of the published student from Gemma": (
        "gemma_seed_46",
        "gemma_seeds",
    ),
    "`gemma_reversed`, from which these two were trained": ("gemma_reversed", "gemma_reversed"),
    "average of four students `gemma_distilled`, from which it was trained": ("gemma_distilled", "gemma"),
    "`gemma_born_again`, with this average as teacher and initial weights": ("gemma_born_again", "gemma_born_again"),
    "`gemma_teacher`, the best teacher from Gemma, 12 x 640": ("gemma_teacher", "gemma_teacher"),
    "`continued`, teacher and initial weights of `born_again`": ("continued", "averaged"),
    "`self_training_finetuned`, from which it was trained": ("self_training_finetuned", "self_training-again"),
    "`self_training_finetuned`, an earlier evaluation": ("self_training_finetuned", "self_training"),
    "`retrained_teacher`, teacher of that student, 6 x 384": ("retrained_teacher", "retrained_teacher"),
    "`masked_words_finetuned`, pretrained without tags": ("masked_words_finetuned", "masked_words"),
    "`complete_finetuned`, the complete recipe without added problems": ("complete_finetuned", "complete"),
    "`student`, projected and distilled only": ("student", "student"),
    "`teacher`, trained without added problems, 6 x 384": ("teacher", "teacher"),
}
MODELS = {
    "published student from Gemma, 3 x 312": ("people_gemma/seed_72", "people_gemma/evaluations/published"),
    "published student without Gemma, 3 x 312": ("stories_math23k/seed_114", "stories_math23k/evaluations/published"),
    "published large student, 6 x 312": ("large_math23k/student_2", "large_math23k/evaluations/published"),
    "published small student, 3 x 192": ("small_math23k/student", "small_math23k/evaluations/published"),
    "`stage_3`, one of three trainings that the published student from Gemma averages": (
        "question_reading/stage_3",
        "question_reading/evaluations_stage_3/stage_3",
    ),
    "`question_reading`, from which the published student from Gemma was trained": (
        "question_reading/seed_67",
        "question_reading/evaluations/published",
    ),
    "`people_mit`, from which the published student without Gemma was trained": (
        "people_mit/seed_72",
        "people_mit/evaluations/published",
    ),
    "`question_reading_mit`, from which that student was trained": (
        "question_reading_mit/stage_1",
        "question_reading_mit/evaluations/published",
    ),
} | {
    title: (f"compact_math23k/{run}", f"compact_math23k/evaluations/{evaluations}")
    for title, (run, evaluations) in EARLIER.items()
}
DATA_SETS = {
    "Math23k, test": "",
    "Math23k, test, reversed": "reversed",
    "Ape-clean, test": "ape_clean",
    "Ape-clean, listed": "ape_clean_listed",
    "UnbiasedMWP, test": "unbiased",
    "CMATH, with distractors": "cmath",
}
SEARCHES = {"greedy": "greedy", "beam 5": "beam5", "beam 20, re-ranked": "reranked"}
HEADING = (
    f"| correct answers, % | problems | count | {' | '.join(SEARCHES)} |\n| --- | --- | ---: | ---: | ---: | ---: |"
)


def reports(evaluations: str, dataset: str, search: str) -> dict[str, dict[str, Any]]:
    """Return the reports of one evaluation by group of problems. Without a record the dictionary is empty."""
    # Evaluations on Ape-clean used five beams if the file name has no search.
    name = "-".join(filter(None, [evaluations, dataset, search]))
    path = RESULTS / f"{name}.json"
    if not path.exists() and dataset and search == "beam5":
        path = RESULTS / f"{evaluations}-{dataset}.json"
    if not path.exists():
        return {}
    return json.loads(path.read_text("utf-8"))["test"]["reports"]


def percent(report: dict[str, Any]) -> str:
    """Return the accuracy in %, computed from the whole number of correct problems."""
    num_problems = report["num_problems"]
    num_correct = round(report["answer_accuracy"] * num_problems)
    return f"{100 * num_correct / num_problems:.1f}"


def rows(evaluations: str) -> list[str]:
    """Return the rows of a model's table, one per dataset and group of problems, with a column per search."""
    lines = []
    for title, dataset in DATA_SETS.items():
        by_search = [reports(evaluations, dataset, search) for search in SEARCHES.values()]
        sizes: dict[str, set[int]] = {}
        for groups_of_search in by_search:
            for group, report in groups_of_search.items():
                if report["num_problems"]:
                    sizes.setdefault(group, set())
        for group in sizes:
            cells = []
            for groups_of_search in by_search:
                if group in groups_of_search:
                    sizes[group].add(groups_of_search[group]["num_problems"])
                    cells.append(percent(groups_of_search[group]))
                else:
                    cells.append("-")
            size = "".join(f"{num_problems:,}" for num_problems in sizes[group])
            lines.append(f"| {title} | {group.removesuffix(' problems')} | {size} | {' | '.join(cells)} |")
    return lines


def parameters(run: str) -> int:
    """Return the number of parameters in the encoder and decoder of a run's model."""
    return json.loads((RESULTS / run / "metrics.json").read_text("utf-8"))["parameters"]


def page() -> str:
    """Return the text of `ACCURACY.md`."""
    sections = [
        "# Accuracies on Chinese problems\n\nGenerated by `python examples/results/make_page.py` from the records in "
        "`compact_math23k`, `question_reading`, `question_reading_mit`, `people_mit`, `people_gemma` and "
        "`stories_math23k`. "
        "[EXPERIMENTS.md](EXPERIMENTS.md) explains the models; a name such as `born_again` is the folder of the "
        "training run. Parameters include encoder and decoder.\n\n"
        "Each table splits the test problems by the overlap with the training data of the model, its teachers and "
        "the models that labelled its problems (in older records: with the training split only): `exact text` "
        "compares whole texts, `masked text` ignores the numbers. *Reversed* problems give the answer and ask for one "
        "of the numbers. *Ape-clean, listed* has the problems in `ape_kg_test_id.txt`. The "
        "texts of CMATH, without answers, are in the pretraining corpus."
        "\n\n![accuracy against parameters](accuracy.png)"
    ]
    for title, (run, evaluations) in MODELS.items():
        table = "\n".join([HEADING, *rows(evaluations)])
        sections.append(f"## {title[0].upper()}{title[1:]}\n\n{parameters(run) / 1e6:.1f} M parameters.\n\n{table}")
    return "\n\n".join(sections) + "\n"


def draw(path: Path) -> None:
    """Plot the accuracy on Math23k's public test problems against the parameters of the encoder."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    paper = yaml.safe_load(PAPER.read_text("utf-8"))["arms"]
    measured = json.loads((RESULTS / "tables" / "compact-table7-cpu.json").read_text("utf-8"))["arms"]
    size = {arm["name"]: arm["runs"][0]["figures"]["parameters"] for arm in measured}
    figure, axes = pyplot.subplots(figsize=(7.2, 3.6), layout="constrained")
    for name, arm in paper.items():
        axes.scatter(size[name], arm["paper"]["math23k"], s=60, facecolors="none", edgecolors="tab:gray", zorder=2)
        title = arm["title"].partition(",")[0].replace(" (teacher)", "-base")
        axes.annotate(title, (size[name], arm["paper"]["math23k"]), (7, -3), textcoords="offset points", color="gray")
    encoder = size["ours"]
    for model, title, marker in (
        (RESULTS / "stories_math23k" / "evaluations" / "published-", "hf_mwp", "o"),
        (RESULTS / "people_gemma" / "evaluations" / "published-", "from Gemma", "D"),
    ):
        for label, search, colour in (("greedy", "greedy", "tab:blue"), ("beam 20, re-ranked", "reranked", "tab:red")):
            report = json.loads(Path(f"{model}{search}.json").read_text("utf-8"))["test"]["reports"]
            accuracy = 100 * report["all problems"]["answer_accuracy"]
            label = f"{title}, {label}: {accuracy:.1f} %"
            axes.scatter(encoder, accuracy, s=60, marker=marker, color=colour, zorder=3, label=label)
    axes.scatter([], [], s=60, facecolors="none", edgecolors="tab:gray", label="as in the paper")
    axes.set(
        xscale="log",
        xlabel="parameters of the encoder, millions",
        ylabel="correct answers, %",
        title="Math23k, public test",
    )
    axes.set_xticks([10, 20, 50, 100], ["10", "20", "50", "100"])
    axes.set_xlim(9, 160)
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.legend(loc="center right", frameon=False)
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    (RESULTS / "ACCURACY.md").write_text(page(), encoding="utf-8")
    draw(RESULTS / "accuracy.png")
