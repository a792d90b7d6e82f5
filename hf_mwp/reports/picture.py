"""Results as a picture."""

from __future__ import annotations

import textwrap
from pathlib import Path

from .table_result import TableResult


def draw_table(result: TableResult, path: str | Path) -> bool:
    """
    Draws a panel for each column that has figures in percent: a bar for each arm, with the standard deviation of its
    seeds, and a mark for the paper's figure.

    Args:
        result ([`TableResult`]): The results.
        path (`str` or `Path`): The PNG file to write.

    Returns:
        `bool`: whether there was anything to draw.
    """
    columns = [
        column
        for column in result.shown_columns
        if column.unit == "%" and any(arm.values(column.name) or column.name in arm.paper for arm in result.arms)
    ]
    if not columns:
        return False

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    places = range(len(result.arms))
    figure = Figure(figsize=(2.6 + 2.8 * len(columns), 1.4 + 0.32 * len(result.arms)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for panel, column in zip(panels, columns, strict=True):
        measured = [(place, arm) for place, arm in enumerate(result.arms) if arm.values(column.name)]
        bars = panel.barh(
            [place for place, _ in measured],
            [arm.mean(column.name) for _, arm in measured],
            xerr=[arm.deviation(column.name) or 0.0 for _, arm in measured] if len(result.seeds) > 1 else None,
            height=0.6,
            color="#4c78a8",
            label="measured",
        )
        panel.bar_label(bars, fmt="%.1f", padding=2, fontsize="small")
        known = [(arm.paper[column.name], place) for place, arm in enumerate(result.arms) if column.name in arm.paper]
        if known:
            panel.plot(*zip(*known, strict=True), "D", color="#e45756", markersize=5, label="paper")
        panel.set(title=textwrap.fill(f"{column.title}, %", 26), xlim=(0, 100))
        panel.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(places, [arm.title for arm in result.arms])
    panels[0].invert_yaxis()
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower right", ncols=2, fontsize="small")
    quick = " (quick: only to see it run)" if result.budget == "quick" else ""
    figure.suptitle(f"{result.title}, budget {result.budget}{quick}", fontsize="medium")
    # Without the version of the library in the file, the same results give the same picture.
    figure.savefig(path, dpi=120, metadata={"Software": None})
    return True
