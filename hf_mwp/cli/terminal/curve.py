"""The learning curve of a run as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


PANELS = {"training loss": "loss", "answer accuracy": "eval_answer_accuracy"}


def draw_learning_curve(
    histories: Mapping[str, Sequence[Mapping]],
    path: str | Path,
    title: str = "",
    panels: Mapping[str, str] = PANELS,
) -> bool:
    """
    Draws figures of the log over epochs.

    Args:
        histories (`Mapping[str, Sequence[Mapping]]`):
            `trainer.state.log_history` by the name of the model.
        path (`str` or `Path`):
            The PNG file to write.
        title (`str`, *optional*):
            Heading.
        panels (`Mapping[str, str]`, *optional*):
            Names of the figures by the label of their panel; training loss and answer accuracy by default.

    Returns:
        `bool`: whether there was anything to draw.
    """
    drawn = {
        label: {name: _series(history, figure) for name, history in histories.items()}
        for label, figure in panels.items()
    }
    if not any(points for series in drawn.values() for points in series.values()):
        return False

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    for panel, (label, series) in zip(figure.subplots(1, len(drawn)), drawn.items(), strict=True):
        for name, points in series.items():
            if points:
                panel.plot(*zip(*points, strict=True), marker="o", markersize=3, linewidth=1.2, label=name)
        panel.set(xlabel="epoch", ylabel=label)
        panel.grid(alpha=0.3)
        if panel.lines and len(histories) > 1:
            panel.legend()
        if panels[label].endswith(("accuracy", "f1")):
            panel.set_ylim(0, 1)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    return True


def _series(history: Sequence[Mapping], name: str) -> list[tuple[float, float]]:
    return [(entry["epoch"], entry[name]) for entry in history if name in entry and "epoch" in entry]
