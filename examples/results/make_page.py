"""
Writes what is made of the records in this folder: `ACCURACY.md`, every evaluation of the models for Math23k, and
`accuracy.png`, their accuracy against their parameters, beside the figures that the first paper gives.

    python examples/results/make_page.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml


RESULTS = Path(__file__).parent
RECORDS = RESULTS / "compact_math23k"
PAPER = RESULTS.parent / "reproduce" / "compact_table7.yaml"

# Where the records of a model's run lie, which has its parameters, and what its evaluations begin with.
MODELS = {
    "published student, 3 x 312": ("reversed_learned", "published"),
    "the one that it goes on from": ("born_again", "born_again"),
    "student from Gemma before it was taught to read the question, 3 x 312": ("gemma_seed_46", "gemma_seeds"),
    "the one that this goes on from": ("gemma_reversed", "gemma_reversed"),
    "what that one went on from, the mean of four": ("gemma_distilled", "gemma"),
    "not published: taught by that mean, which it also began as": ("gemma_born_again", "gemma_born_again"),
    "the best of its teachers, Gemma, 12 x 640": ("gemma_teacher", "gemma_teacher"),
    "what the first one went on from began as, its teacher": ("continued", "averaged"),
    "the student that this one goes on from": ("self_training_finetuned", "self_training-again"),
    "the same, as measured then": ("self_training_finetuned", "self_training"),
    "the teacher of that one, 6 x 384": ("retrained_teacher", "retrained_teacher"),
    "pretrained on masked words alone": ("masked_words_finetuned", "masked_words"),
    "complete recipe, no added problems": ("complete_finetuned", "complete"),
    "projected and distilled only": ("student", "student"),
    "its teacher before it labelled, 6 x 384": ("teacher", "teacher"),
}
DATA_SETS = {
    "Math23k, test": "",
    "Math23k, test, turned around": "reversed",
    "Ape-clean, test": "ape_clean",
    "Ape-clean, listed": "ape_clean_listed",
}
SEARCHES = {"greedy": "greedy", "beam 5": "beam5", "beam 20, re-ranked": "reranked"}
HEADING = (
    f"| answers right, % | problems | count | {' | '.join(SEARCHES)} |\n| --- | --- | ---: | ---: | ---: | ---: |"
)


def reports(evaluations: str, part: str, search: str) -> dict[str, dict[str, Any]]:
    """The reports of one evaluation by the group of problems; empty if there is no record of it."""
    # Evaluations of Ape-clean that say nothing of the search were made with five beams.
    words = [evaluations, part, search]
    names = ["-".join(word for word in words if word)]
    if part and search == "beam5":
        names.append(f"{evaluations}-{part}")
    paths = [RECORDS / "evaluations" / f"{name}.json" for name in names]
    path = next((path for path in paths if path.exists()), None)
    return {} if path is None else json.loads(path.read_text("utf-8"))["test"]["reports"]


def percent(report: dict[str, Any]) -> str:
    """Its accuracy as the share of a whole number of problems."""
    count = report["num_problems"]
    return f"{100 * round(report['answer_accuracy'] * count) / count:.1f}"


def rows(evaluations: str) -> list[str]:
    """The lines of a model's table: data sets and groups of problems down, searches across."""
    lines = []
    for title, part in DATA_SETS.items():
        found = {column: reports(evaluations, part, search) for column, search in SEARCHES.items()}
        groups = dict.fromkeys(group for each in found.values() for group in each if each[group]["num_problems"])
        for group in groups:
            counts = {each[group]["num_problems"] for each in found.values() if group in each}
            cells = [percent(each[group]) if group in each else "-" for each in found.values()]
            count = "".join(f"{count:,}" for count in counts)
            lines.append(f"| {title} | {group.removesuffix(' problems')} | {count} | {' | '.join(cells)} |")
    return lines


def parameters(run: str) -> int:
    """Parameters of encoder and decoder of a run's model."""
    return json.loads((RECORDS / run / "metrics.json").read_text("utf-8"))["parameters"]


def page() -> str:
    """The text of `ACCURACY.md`."""
    parts = [
        "# Accuracies on Chinese problems\n\nMade by `python examples/results/make_page.py` from the records in "
        "[`compact_math23k`](compact_math23k/evaluations); [the page of results](README.md) says how each model came "
        "about. Parameters are those of encoder and decoder. Groups are by what a model, its teachers and what "
        "labelled its problems were trained on (`masked`: the same but for numbers), or, in older records, by the "
        "training split alone.\n\n![accuracy against parameters](accuracy.png)"
    ]
    for title, (run, evaluations) in MODELS.items():
        table = "\n".join([HEADING, *rows(evaluations)])
        parts.append(f"## {title[0].upper()}{title[1:]}\n\n{parameters(run) / 1e6:.1f} M parameters.\n\n{table}")
    return "\n\n".join(parts) + "\n"


def draw(path: Path) -> None:
    """Accuracy on Math23k's public test problems against the parameters of the encoder."""
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
    student = RECORDS / "evaluations"
    encoder = size["ours"]
    for model, title, marker in (
        (student / "published-", "hf_mwp", "o"),
        (RESULTS / "question_reading" / "evaluations" / "math23k_", "from Gemma", "D"),
    ):
        for label, search, colour in (("greedy", "greedy", "tab:blue"), ("beam 20, re-ranked", "reranked", "tab:red")):
            report = json.loads(Path(f"{model}{search}.json").read_text("utf-8"))["test"]["reports"]
            accuracy = 100 * report["all problems"]["answer_accuracy"]
            label = f"{title}, {label}: {accuracy:.1f} %"
            axes.scatter(encoder, accuracy, s=60, marker=marker, color=colour, zorder=3, label=label)
    axes.scatter([], [], s=60, facecolors="none", edgecolors="tab:gray", label="as the paper gives them")
    axes.set(
        xscale="log",
        xlabel="parameters of the encoder, millions",
        ylabel="answers right, %",
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
