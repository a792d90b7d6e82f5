"""Functions that convert scores of heads and neurons to JSON and draw them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_installed


if TYPE_CHECKING:
    from .score_density import ScoreDensity


@checked
def rows_of(scores: Tensor) -> list[list[float | None]]:
    """Convert scores `(layers, heads)` for JSON: a list for each layer, with `None` for NaN."""
    rows = scores.tolist()
    for row in rows:
        for head, score in enumerate(row):
            if not math.isfinite(score):
                row[head] = None
    return rows


@checked
def scores_of(rows: list[list[float | None]]) -> Tensor:
    """Convert lists of [`rows_of`], or of events in the log of a [`HeadPruningCallback`], to a tensor. Raises
    `ValueError` if there are no rows."""
    if not rows:
        raise ValueError("`rows` is empty. Pass the scores of at least one layer.")
    tensors = []
    for row in rows:
        scores = [math.nan if score is None else score for score in row]
        tensors.append(torch.tensor(scores).double())
    return pad_sequence(tensors, batch_first=True, padding_value=math.nan)


@checked
def draw_importance(scores: Tensor, path: str | Path, title: str = "Importance of heads") -> Any:
    """Draw scores `(layers, heads)`, NaN left empty; the suffix of `path` decides the format. Return the figure."""
    layers, heads = scores.shape
    figure, panel = _figure(2.0 + 0.5 * heads, 1.4 + 0.34 * layers, title)
    values = scores.double().cpu().numpy()
    picture = panel.imshow(values, cmap="viridis", aspect="auto")
    middle = sum(scores[scores.isfinite()].aminmax()) / 2
    for layer, head in scores.isfinite().nonzero().tolist():
        colour = "black" if values[layer, head] > middle else "white"
        text = f"{values[layer, head]:.2g}"
        panel.text(head, layer, text, ha="center", va="center", fontsize="x-small", color=colour)
    # Count from 0, like `prune_heads`.
    panel.set(xlabel="head", ylabel="layer", xticks=range(heads), yticks=range(layers))
    figure.colorbar(picture, ax=panel)
    return _saved(figure, path)


@checked
def draw_densities(densities: Mapping[str, ScoreDensity], path: str | Path, title: str = "Density of scores") -> Any:
    """Draw named densities, the cumulative densities (dashed) and the sparsities at the first peaks, like figures 4 to
    8 of Yang et al. (see [`KnowledgeableScores`]). For `path` and the result, see [`draw_importance`]."""
    figure, panel = _figure(5.6, 3.6, title)
    shares = panel.twinx()
    for number, (name, density) in enumerate(densities.items()):
        color = f"C{number}"
        points = density.points.numpy()
        panel.plot(points, density.density.numpy(), color=color, label=name)
        panel.fill_between(points, density.density.numpy(), color=color, alpha=0.15)
        shares.plot(points, density.cumulative.numpy(), color=color, linestyle="--")
        peak = points[density.peak]
        shares.axvline(peak, color=color, linewidth=0.8, linestyle=":")
        shares.annotate(f"{density.sparsity:.0%}", (peak, density.sparsity), (4, -10), textcoords="offset points")
    panel.set(xlabel="score", ylabel="density")
    panel.set_ylim(bottom=0)
    shares.set(ylabel="cumulative density (dashed)", ylim=(0, 1.02))
    panel.legend(fontsize="small")
    return _saved(figure, path)


def _figure(width: float, height: float, title: str) -> tuple[Any, Any]:
    check_installed("matplotlib", "Drawing scores")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    panel = figure.subplots()
    panel.set_title(title, fontsize="medium")
    return figure, panel


def _saved(figure: Any, path: str | Path) -> Any:
    # Leave the library version out of the file, so that equal scores result in equal files.
    metadata = {"Software": None} if Path(path).suffix == ".png" else None
    figure.savefig(path, dpi=120, metadata=metadata)
    return figure
