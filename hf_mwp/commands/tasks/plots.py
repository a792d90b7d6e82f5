"""Plots of a run's metrics, in PNG files."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hf_mwp.solver.metrics.accuracy import is_share, metric_cell
from hf_mwp.utils.checks import check_installed
from hf_mwp.utils.usage_error import UsageError

from .reporter import Reporter


PANELS = {"training loss": "loss", "answer accuracy": "eval_answer_accuracy"}


def can_draw(reporter: Reporter) -> bool:
    """Return whether Matplotlib is installed. If it is not, show that no plots are drawn, and how to install it."""
    try:
        check_installed("matplotlib", "Drawing")
    except UsageError as error:
        reporter.print(f"No plots are drawn. {error}")
        return False
    return True


def draw_learning_curve(
    histories: Mapping[str, Sequence[Mapping]], path: str | Path, title: str = "", panels: Mapping[str, str] = PANELS
) -> bool:
    """Draw logged metrics over epochs to a PNG file, or return `False` if there are none. `histories` maps the names
    of models to their `trainer.state.log_history`, `panels` maps the labels of panels to keys of the log. A panel
    without a logged metric is left out."""
    curves = {}
    for label, key in panels.items():
        curves_of_panel = _curves(histories, key)
        if curves_of_panel:
            curves[label] = curves_of_panel
    if not curves:
        return False
    from matplotlib.figure import Figure

    figure = Figure(figsize=(4.5 * len(curves), 3.6), layout="constrained")
    axes = figure.subplots(1, len(curves), squeeze=False)[0]
    for panel, label in zip(axes, curves, strict=True):
        for name, points in curves[label].items():
            epochs, values = zip(*points, strict=True)
            panel.plot(epochs, values, marker="o", markersize=3, linewidth=1.2, label=name)
        panel.set(xlabel="epoch", ylabel=label)
        panel.grid(alpha=0.3)
        if len(histories) > 1:
            panel.legend()
        if panels[label].endswith(("accuracy", "f1")):
            panel.set_ylim(0, 1)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    return True


def _curves(histories: Mapping[str, Sequence[Mapping]], key: str) -> dict[str, list[tuple[float, float]]]:
    """Return the points (epoch, metric) of each model that has logged a metric."""
    curves = {}
    for name, history in histories.items():
        points = [(entry["epoch"], entry[key]) for entry in history if key in entry and "epoch" in entry]
        if points:
            curves[name] = points
    return curves


def draw_models(
    models: Sequence[Mapping[str, Any]],
    places: Sequence[float],
    metric: str,
    path: str | Path,
    title: str,
    xlabel: str,
    labels: Sequence[str] = (),
    chosen: float | None = None,
) -> None:
    """Draw a metric of the models in a `metrics.json` on both evaluation splits to a PNG file, at the horizontal
    `places` and with `labels`. A `chosen` place is marked, and a line shows the metric of the first model."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    panel = figure.subplots()
    scale = 100 if is_share(metric) else 1
    splits = [split for split in ("validation", "test") if split in models[0]]
    for number, split in enumerate(splits):
        values = [scale * metric_of(model, split, metric) for model in models]
        panel.plot(places, values, "o-", color=f"C{number}", label=split)
        if labels:
            for label, x, y in zip(labels, places, values, strict=True):
                panel.annotate(label, (x, y), textcoords="offset points", xytext=(5, 5), fontsize="small")
        if chosen is not None:
            panel.axhline(values[0], color=f"C{number}", linewidth=0.8, linestyle="--")
    if chosen is not None:
        panel.axvline(chosen, color="grey", linewidth=0.8, linestyle=":", label="chosen")
    panel.set(xlabel=xlabel, ylabel=metric_cell(metric, None)[0], title=title)
    panel.grid(alpha=0.3)
    if panel.get_legend_handles_labels()[0]:
        panel.legend()
    figure.savefig(path, dpi=120, metadata={"Software": None})


def metric_of(model: Mapping[str, Any], split: str, metric: str) -> float:
    """Return a metric of a model in `metrics.json` on all rows of a split, or NaN if it is missing."""
    return model[split]["reports"]["all problems"].get(metric, float("nan"))
