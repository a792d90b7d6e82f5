"""
Measures solvers of a family side by side in the NumPy runtime: parameters, megabytes on disk, milliseconds and correct
answers. Writes a record, a table and a Pareto plot (accuracy against milliseconds and megabytes, with the papers'
figures for the same dataset).

    python examples/results/family.py small=runs/small/export-1 base=runs/base/export-2 --output_dir runs/family
    python examples/results/family.py --from_results runs/family/family.json --output_dir runs/family

Folders are those of `hf-mwp export`, or of any solver whose encoder is a student. All solve the same problems, one at
a time and in turns, so that the load of the machine affects all alike; times are CPU time, the median over problems.
"""

import argparse
import json
import math
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Any

import yaml
from safetensors import safe_open

from hf_mwp import load_mwp_dataset
from hf_mwp.runtime import load_solver
from hf_mwp.runtime.weights import SCALE
from hf_mwp.solver.metrics.matching import answers_match
from hf_mwp.utils.run_folder import describe_environment


PAPER = Path(__file__).parents[1] / "reproduce" / "compact_table7.yaml"
# Table 2 of Yu et al., Efficient Mathematical Reasoning Models via Dynamic Pruning and Knowledge Distillation:
# millions of parameters and accuracy of ATHENA, and the same with 25 % of its heads pruned.
ATHENA = {
    "math23k": {
        "ATHENA-base": [(125, 84.4), (125 * (1 - 0.158), 84.0)],
        "ATHENA-large": [(355, 86.5), (355 * (1 - 0.174), 86.0)],
    },
    "asdiv_a": {
        "ATHENA-base": [(125, 86.4), (125 * (1 - 0.162), 85.9)],
        "ATHENA-large": [(355, 91.0), (355 * (1 - 0.181), 90.4)],
    },
}
# Files that a solver can run without.
ASIDE = {"README.md", "record.json", "training_texts.safetensors", "tokenizer_config.json"}


def measure(folders: Mapping[str, str], rows: Sequence[Mapping[str, Any]], num_beams: int | None) -> list[dict]:
    """Solve the problems with each solver in turn; `num_beams=None` is the default search of each folder."""
    solvers = {name: load_solver(folder) for name, folder in folders.items()}
    seconds: dict[str, list[float]] = {name: [] for name in solvers}
    correct = dict.fromkeys(solvers, 0)
    for solver in solvers.values():
        solver(rows[0]["text"], num_beams=num_beams)
    for row in rows:
        for name, solver in solvers.items():
            start = time.process_time()
            (solution,) = solver(row["text"], num_beams=num_beams)
            seconds[name].append(time.process_time() - start)
            correct[name] += answers_match(solution["answer"], row["answer"])
    models = []
    for name, folder in folders.items():
        files = [path for path in Path(folder).iterdir() if is_needed(path)]
        num_bytes = sum(path.stat().st_size for path in files)
        models.append(
            {
                "name": name,
                "parameters": count_parameters(folder),
                "megabytes": num_bytes / 1e6,
                "milliseconds": 1e3 * statistics.median(seconds[name]),
                "right": correct[name],
                "problems": len(rows),
            }
        )
    return models


def is_needed(path: Path) -> bool:
    """Return whether a file is needed to solve problems."""
    return path.is_file() and path.name not in ASIDE and not path.name.startswith("stage.")


def count_parameters(folder: str) -> int:
    """Number of weights in a folder, without the scales of int8 matrices."""
    num_weights = 0
    for path in Path(folder).glob("model*.safetensors"):
        with safe_open(path, "np") as file:
            for name in file.keys():
                if not name.endswith(SCALE):
                    num_weights += math.prod(file.get_slice(name).get_shape())
    return num_weights


def accuracy(model: Mapping[str, Any]) -> tuple[float, float]:
    """Accuracy of a model and its standard error, in percent."""
    share = model["right"] / model["problems"]
    return 100 * share, 100 * math.sqrt(share * (1 - share) / model["problems"])


def is_dominated(model: Mapping[str, Any], models: Sequence[Mapping[str, Any]], cost: str) -> bool:
    """Return whether another model costs no more and has no fewer correct answers, and is better in one of them."""
    for rival in models:
        is_no_worse = rival[cost] <= model[cost] and rival["right"] >= model["right"]
        if is_no_worse and (rival[cost] < model[cost] or rival["right"] > model["right"]):
            return True
    return False


def table(result: Mapping[str, Any]) -> str:
    """Markdown table of a record."""
    lines = [
        "| model | parameters, M | on disk, MB | ms a problem | correct answers, % |\n"
        "| --- | ---: | ---: | ---: | ---: |"
    ]
    for model in result["models"]:
        parameters = model["parameters"] / 1e6
        share, error = accuracy(model)
        lines.append(
            f"| {model['name']} | {parameters:.1f} | {model['megabytes']:.1f} | {model['milliseconds']:.1f} "
            f"| {share:.1f} ± {error:.1f} |"
        )
    search = "the default search of each folder"
    if result["num_beams"] is not None:
        search = f"{result['num_beams']} beam(s)"
    problems = result["models"][0]["problems"]
    caption = f"{problems:,} test problems of {result['dataset']}, {search}, NumPy runtime, CPU time on one machine; ±"
    return "\n".join(lines) + f"\n\n{caption} is the standard error.\n"


def paper_figures(dataset: str) -> list[tuple[str, float, float]]:
    """Title, millions of parameters and accuracy of the models in the first paper's table of compact models."""
    arms = yaml.safe_load(PAPER.read_text("utf-8"))["arms"].values()
    figures = []
    for arm in arms:
        if dataset in arm["paper"]:
            figures.append((arm["title"], arm["paper"]["parameters"], arm["paper"][dataset]))
    return figures


def draw(result: Mapping[str, Any], path: Path) -> None:
    """Accuracy against milliseconds and megabytes; a line joins the models that no other one dominates."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4.2), layout="constrained")
    panels = figure.subplots(1, 2, sharey=True)
    models = result["models"]
    for panel, cost, label in zip(
        panels, ("milliseconds", "megabytes"), ("CPU ms a problem", "MB on disk"), strict=True
    ):
        for number, model in enumerate(models):
            share, error = accuracy(model)
            style = {"fmt": "o", "color": f"C{number}", "capsize": 3, "label": model["name"]}
            panel.errorbar(model[cost], share, yerr=error, **style)
        front = [model for model in models if not is_dominated(model, models, cost)]
        front.sort(key=itemgetter(cost))
        costs = [model[cost] for model in front]
        shares = [accuracy(model)[0] for model in front]
        panel.plot(costs, shares, "--", color="gray", zorder=0)
        panel.set(xlabel=label)
        panel.grid(alpha=0.3)
    # The papers have no times or bytes: a dotted line marks an accuracy, and a parameter counts as 4 bytes.
    yu = ATHENA.get(result["dataset"], {})
    for title, figures in yu.items():
        draw_paper(panels, title, figures, color="#7a4fa3", ha="right", x=0.99, offset=(2, 5))
    ming = paper_figures(result["dataset"])
    for title, size, share in ming:
        draw_paper(panels, title, [(size, share)], color="#e45756", ha="left", x=0.01, offset=(6, -8))
    slowest = max(model["milliseconds"] for model in models)
    panels[0].set(ylabel="correct answers, %", xlim=(0, 1.8 * slowest))
    panels[1].set_xscale("log")
    panels[1].set_xticks([5, 10, 20, 50, 100, 200, 500, 1000], ["5", "10", "20", "50", "100", "200", "500", "1000"])
    # The models in the papers are larger by more than ten times.
    largest = 4000 if ming or yu else 100
    panels[1].set_xlim(left=2, right=largest)
    panels[1].minorticks_off()
    title = f"{result['dataset']}, {models[0]['problems']:,} problems"
    if ming:
        title += "; red: Ming et al."
    if yu:
        title += "; violet: Yu et al., dense and without 25 % of the heads"
    figure.suptitle(title, fontsize="medium")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize="small")
    figure.savefig(path, dpi=120, metadata={"Software": None})


def draw_paper(
    panels: Sequence[Any],
    title: str,
    figures: Sequence[tuple[float, float]],
    color: str,
    ha: str,
    x: float,
    offset: tuple[int, int],
) -> None:
    """
    Draw a model of a paper and its pruned versions, from millions of parameters and accuracy: a line in the panel of
    the times, points in that of the sizes. `ha` is the horizontal alignment of the title, `x` its position in the
    first panel, and `offset` that in the second.
    """
    megabytes = [4 * size for size, _ in figures]
    shares = [share for _, share in figures]
    text = {"ha": ha, "fontsize": "x-small"}
    panels[0].axhline(shares[0], color=color, lw=0.8, ls=":")
    panels[0].annotate(title, (x, shares[0]), xycoords=("axes fraction", "data"), **text)
    panels[1].plot(megabytes, shares, "D-", color=color, markersize=4)
    panels[1].annotate(title, (megabytes[0], shares[0]), offset, textcoords="offset points", **text)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Parameters, size, time and accuracy of solvers, and their picture.")
    parser.add_argument("folders", nargs="*", metavar="NAME=FOLDER", help="solvers to measure, in this order")
    parser.add_argument("--dataset", default="math23k", help="data set whose test problems are solved")
    parser.add_argument("--data_dir", help="folder of the data sets")
    parser.add_argument("--fold", type=int, help="fold that is held out, of a data set with folds (asdiv_a)")
    parser.add_argument("--problems", type=int, help="the most problems; all if not given")
    parser.add_argument("--num_beams", type=int, help="beams; the default search of each folder if not given")
    parser.add_argument("--from_results", type=Path, help="a record to make table and picture of, in place of folders")
    parser.add_argument("--output_dir", type=Path, required=True, help="folder for family.json, family.md, family.png")
    args = parser.parse_args(arguments)
    has_folders = bool(args.folders)
    has_results = args.from_results is not None
    if has_folders == has_results or not all("=" in folder for folder in args.folders):
        parser.error("give NAME=FOLDER for each solver, or --from_results")
    args.output_dir.mkdir(parents=True, exist_ok=True)
    if args.from_results is not None:
        result = json.loads(args.from_results.read_text("utf-8"))
    else:
        rows = load_mwp_dataset(args.dataset, args.data_dir, fold=args.fold)["test"]
        if args.problems is not None:
            num_problems = min(args.problems, len(rows))
            rows = rows.select(range(num_problems))
        folders = dict(folder.split("=", 1) for folder in args.folders)
        models = measure(folders, list(rows), args.num_beams)
        result = {"dataset": args.dataset, "num_beams": args.num_beams, "models": models}
        result["environment"] = describe_environment()
        text = json.dumps(result, indent=1, ensure_ascii=False, default=str)
        (args.output_dir / "family.json").write_text(text + "\n", "utf-8")
    (args.output_dir / "family.md").write_text(table(result), "utf-8")
    draw(result, args.output_dir / "family.png")
    print(table(result))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:
        sys.exit(f"family.py: {error}")
