"""Heads' scores, kept and drawn."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import torch
from torch import Tensor


def rows_of(scores: Tensor) -> list[list[float | None]]:
    """Scores `(layers, heads)` as JSON has them: a list for each layer, `None` where there is no head."""
    return [[score if math.isfinite(score) else None for score in row] for row in scores.tolist()]


def scores_of(rows: list[list[float | None]]) -> Tensor:
    """The reverse of [`rows_of`], also of the lists that [`HeadPruningCallback`]'s log has of an event."""
    array = torch.full((len(rows), max(map(len, rows), default=0)), torch.nan, dtype=torch.float64)
    for layer, row in enumerate(rows):
        for head, score in enumerate(row):
            if score is not None:
                array[layer, head] = score
    return array


def draw_importance(scores: Tensor, path: str | Path, title: str = "Importance of heads") -> Any:
    """
    Draws scores as a heat map, layer by layer and head by head, the score in each cell. Cells of heads that are pruned
    or closed are empty.

    Args:
        scores (`Tensor` of shape `(layers, heads)`): As [`HeadImportance.scores`] gives them, NaN where no head is.
        path (`str` or `Path`): The picture to write, PNG or what its name ends with.
        title (`str`, *optional*): Its title.

    Returns:
        The figure (`matplotlib.figure.Figure`).

    Raises:
        ValueError: scores that are no table, or none at all.
    """
    if scores.dim() != 2 or not scores.isfinite().any():
        raise ValueError(f"There are no scores to draw in an array of shape {tuple(scores.shape)}: layers x heads.")

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    layers, heads = scores.shape
    figure = Figure(figsize=(2.0 + 0.5 * heads, 1.4 + 0.34 * layers), layout="constrained")
    FigureCanvasAgg(figure)
    panel = figure.subplots()
    values = scores.double().cpu().numpy()
    picture = panel.imshow(values, cmap="viridis", aspect="auto")
    middle = scores[scores.isfinite()].aminmax()
    middle = (middle.min + middle.max) / 2
    for layer, head in scores.isfinite().nonzero().tolist():
        score = values[layer, head]
        colour = "black" if score > middle else "white"
        panel.text(head, layer, f"{score:.2g}", ha="center", va="center", fontsize="x-small", color=colour)
    # Counted from 0, as `prune_heads` counts them.
    panel.set(xlabel="head", ylabel="layer", xticks=range(heads), yticks=range(layers))
    panel.set_title(title, fontsize="medium")
    figure.colorbar(picture, ax=panel)
    # Without the version of the library in the file, the same scores give the same picture.
    figure.savefig(path, dpi=120, metadata={"Software": None} if Path(path).suffix == ".png" else None)
    return figure


__all__ = ["draw_importance", "rows_of", "scores_of"]
