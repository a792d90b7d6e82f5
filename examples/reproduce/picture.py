"""Plots of results."""

import textwrap
from pathlib import Path

from matplotlib.figure import Figure

from .paired_interval import Comparison, compare_arms
from .table import Column
from .table_result import TableResult


MEASURED, PAPER = "#4c78a8", "#e45756"


def draw_table(result: TableResult, path: str | Path) -> bool:
    """
    Draw the columns in percent and, except for a sweep, the compared columns without a unit to a PNG file, with the
    standard deviation of the seeds and the paper's figures: a line per column for a sweep, otherwise a panel per
    column with a bar per arm. Where the paper has no figures, and all arms are compared with the same one in all
    columns, the panels show the differences from it and their 95 % intervals. Returns `False` if there is nothing to
    draw.
    """
    columns = [
        column
        for column in result.shown_columns
        if column.unit == "%" or not (column.unit or column.optional or result.x)
        if any(arm.values(column.name) or column.name in arm.paper for arm in result.arms)
    ]
    if not columns:
        return False

    size = (6.4, 4.2) if result.x else (2.6 + 2.8 * len(columns), 1.4 + 0.32 * len(result.arms))
    figure = Figure(figsize=size, layout="constrained")
    if result.x:
        _draw_lines(figure, result, columns)
    elif comparisons := _with_one_baseline(result, columns):
        _draw_differences(figure, comparisons, columns)
    else:
        _draw_bars(figure, result, columns)
    quick = " (quick: only to see it run)" if result.budget == "quick" else ""
    figure.suptitle(f"{result.title}, budget {result.budget}{quick}", fontsize="medium")
    # Leave out the library version, so that the same results give the same file.
    figure.savefig(path, dpi=120, metadata={"Software": None})
    return True


def _with_one_baseline(result: TableResult, columns: list[Column]) -> list[Comparison]:
    """Return the comparisons if all are with the same arm, in all columns, and the paper has no figures; else none."""
    if any(column.name in arm.paper for column in columns for arm in result.arms):
        return []
    comparisons = compare_arms(result)
    is_complete = all(column.name in each.intervals for column in columns for each in comparisons)
    return comparisons if is_complete and len({each.other.name for each in comparisons}) == 1 else []


def _draw_bars(figure: Figure, result: TableResult, columns: list[Column]) -> None:
    places = range(len(result.arms))
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for panel, column in zip(panels, columns, strict=True):
        measured = [(place, arm) for place, arm in enumerate(result.arms) if arm.values(column.name)]
        known = [(arm.paper[column.name], place) for place, arm in enumerate(result.arms) if column.name in arm.paper]
        largest = max([arm.mean(column.name) for _, arm in measured] + [value for value, _ in known])
        scale = 100 if column.unit == "%" else largest
        panel.barh(
            [place for place, _ in measured],
            [arm.mean(column.name) for _, arm in measured],
            xerr=[arm.deviation(column.name) or 0.0 for _, arm in measured] if len(result.seeds) > 1 else None,
            height=0.6,
            color=MEASURED,
            label="measured",
        )
        # At the edge of the panel: beside the bars, numbers would cover the paper's marks.
        for place, arm in measured:
            number = f"{arm.mean(column.name):.{1 if scale >= 10 else 2}f}"
            panel.text(1.22 * scale, place, number, fontsize="small", ha="right", va="center")
        if known:
            panel.plot(*zip(*known, strict=True), "D", color=PAPER, markersize=5, label="paper")
        unit = ", %" if column.unit == "%" else ""
        panel.set(title=textwrap.fill(f"{column.title}{unit}", 26), xlim=(0, 1.24 * scale))
        if column.unit == "%":
            panel.set_xticks(range(0, 101, 20))
        panel.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(places, [arm.title for arm in result.arms])
    panels[0].invert_yaxis()
    shown = {
        label: handle for panel in panels for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)
    }
    figure.legend(shown.values(), shown, loc="outside lower right", ncols=2, fontsize="small")


def _draw_differences(figure: Figure, comparisons: list[Comparison], columns: list[Column]) -> None:
    baseline = comparisons[0].other
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for panel, column in zip(panels, columns, strict=True):
        for place, each in enumerate(comparisons):
            interval = each.intervals[column.name]
            ends = [[interval.mean - interval.low], [interval.high - interval.mean]]
            style = {"color": PAPER if interval.excludes_zero else MEASURED, "capsize": 3}
            panel.errorbar([interval.mean], [place], xerr=ends, fmt="o", **style)
        panel.axvline(0, color="gray", lw=0.8)
        known = f"{column.show(baseline.mean(column.name))} {column.unit}".rstrip()
        panel.set(title=f"{column.title}\n{baseline.title}: {known}", xlabel="points" if column.unit == "%" else "")
        panel.grid(axis="x", alpha=0.3)
    panels[0].set_yticks(range(len(comparisons)), [each.arm.title for each in comparisons])
    panels[0].set_ylim(len(comparisons) - 0.5, -0.5)
    told = f"difference from '{baseline.title}', 95 % interval; red: does not contain 0"
    figure.supxlabel(told, fontsize="small")


def _draw_lines(figure: Figure, result: TableResult, columns: list[Column]) -> None:
    panel = figure.subplots()
    arms = sorted((arm for arm in result.arms if arm.x is not None), key=lambda arm: arm.x)
    for number, column in enumerate(columns):
        measured, color = [arm for arm in arms if arm.values(column.name)], f"C{number}"
        panel.errorbar(
            [arm.x for arm in measured],
            [arm.mean(column.name) for arm in measured],
            yerr=[arm.deviation(column.name) or 0.0 for arm in measured] if len(result.seeds) > 1 else None,
            fmt="o-",
            color=color,
            capsize=3,
            label=column.title,
        )
        known = [(arm.x, arm.paper[column.name]) for arm in arms if column.name in arm.paper]
        if known:
            panel.plot(*zip(*known, strict=True), "D--", color=color, alpha=0.5, label=f"{column.title}, paper")
    panel.set(xlabel=result.x, ylabel="%")
    panel.grid(alpha=0.3)
    panel.legend(fontsize="small")
