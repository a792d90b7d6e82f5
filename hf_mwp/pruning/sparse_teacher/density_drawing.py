"""Densities of scores, drawn."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...usage_error import UsageError
from .score_density import ScoreDensity


def draw_densities(
    densities: Mapping[str, ScoreDensity],
    path: str | Path,
    cumulative: bool = False,
    title: str = "Density of scores",
) -> Any:
    """
    Draws densities of scores over each other, as Yang et al., figures 4 and 6, and with `cumulative` the cumulative
    density and the first peak besides, as figures 5, 7 and 8.

    Args:
        densities (`Mapping[str, ScoreDensity]`): By what they are called in the legend.
        path (`str` or `Path`): The picture to write, PNG or what its name ends with.
        cumulative (`bool`, *optional*, defaults to `False`): Draw what goes at the first peak, too.
        title (`str`, *optional*): Its title.

    Returns:
        The figure (`matplotlib.figure.Figure`).

    Raises:
        UsageError: there is nothing to draw.
    """
    if not densities:
        raise UsageError("There are no densities to draw.")

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.6, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    panel = figure.subplots()
    shares = panel.twinx() if cumulative else None
    for number, (name, each) in enumerate(densities.items()):
        points = each.points.numpy()
        panel.plot(points, each.density.numpy(), color=f"C{number}", label=name)
        panel.fill_between(points, each.density.numpy(), color=f"C{number}", alpha=0.15)
        if shares is not None:
            shares.plot(points, each.cumulative.numpy(), color=f"C{number}", linestyle="--")
            shares.axvline(points[each.peak], color=f"C{number}", linewidth=0.8, linestyle=":")
            shares.annotate(
                f"{each.sparsity:.0%}", (points[each.peak], each.sparsity), (4, -10), textcoords="offset points"
            )
    panel.set(xlabel="score", ylabel="density")
    panel.set_ylim(bottom=0)
    if shares is not None:
        shares.set(ylabel="cumulative density (dashed)", ylim=(0, 1.02))
    panel.set_title(title, fontsize="medium")
    panel.legend(fontsize="small")
    # Without the version of the library in the file, the same scores give the same picture.
    figure.savefig(path, dpi=120, metadata={"Software": None} if Path(path).suffix == ".png" else None)
    return figure


__all__ = ["draw_densities"]
