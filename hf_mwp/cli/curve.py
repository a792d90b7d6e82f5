"""The learning curve of a run as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path


def draw_learning_curve(histories: Mapping[str, Sequence[Mapping]], path: str | Path, title: str = "") -> bool:
    """
    Draws training loss and answer accuracy over epochs.

    Args:
        histories (`Mapping[str, Sequence[Mapping]]`):
            `trainer.state.log_history` by the name of the model.
        path (`str` or `Path`):
            The PNG file to write.
        title (`str`, *optional*):
            Heading.

    Returns:
        `bool`: whether there was anything to draw.
    """
    loss = {name: _series(history, "loss") for name, history in histories.items()}
    accuracy = {name: _series(history, "eval_answer_accuracy") for name, history in histories.items()}
    if not any(loss.values()) and not any(accuracy.values()):
        return False

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, 2)
    for panel, series, label in zip(panels, (loss, accuracy), ("training loss", "answer accuracy"), strict=True):
        for name, points in series.items():
            if points:
                panel.plot(*zip(*points, strict=True), marker="o", markersize=3, linewidth=1.2, label=name)
        panel.set(xlabel="epoch", ylabel=label)
        panel.grid(alpha=0.3)
        if panel.lines and len(histories) > 1:
            panel.legend()
    panels[1].set_ylim(0, 1)
    figure.suptitle(title)
    figure.savefig(path, dpi=120)
    return True


def _series(history: Sequence[Mapping], name: str) -> list[tuple[float, float]]:
    return [(entry["epoch"], entry[name]) for entry in history if name in entry and "epoch" in entry]
