"""Plots of results."""

import textwrap
from pathlib import Path

from matplotlib.figure import Figure

from .paired_interval import Comparison, compare_arms
from .table import Column
from .table_result import TableResult


MEASURED = "#4c78a8"
PAPER = "#e45756"


def draw_table(result: TableResult, path: str | Path) -> bool:
    """
    Draw the columns in percent and, except for a sweep, the compared columns without a unit to a PNG file, with the
    standard deviation of the seeds and the paper's figures: a line per column for a sweep, otherwise a panel per
    column with a bar per arm. Where the paper has no figures, and all arms are compared with the same one in all
    columns, the panels show the differences from it and their 95 % intervals. Returns `False` if there is nothing to
    draw.
    """
    columns = [column for column in result.shown_columns if _is_drawn(column, result)]
    if not columns:
        return False

    size = (2.6 + 2.8 * len(columns), 1.4 + 0.32 * len(result.arms))
    if result.x:
        size = (6.4, 4.2)
    figure = Figure(figsize=size, layout="constrained")
    if result.x:
        _draw_lines(figure, result, columns)
    elif comparisons := _with_one_baseline(result, columns):
        _draw_differences(figure, comparisons, columns)
    else:
        _draw_bars(figure, result, columns)
    title = f"{result.title}, budget {result.budget}"
    if result.budget == "quick":
        title += " (quick: only to see it run)"
    figure.suptitle(title, fontsize="medium")
    # Leave out the library version, so that the same results give the same file.
    figure.savefig(path, dpi=120, metadata={"Software": None})
    return True


def _is_drawn(column: Column, result: TableResult) -> bool:
    """Return whether a column has figures, and is in percent or compared without a unit."""
    if column.unit != "%" and (column.unit or column.optional or result.x):
        return False
    for arm in result.arms:
        if arm.values(column.name) or column.name in arm.paper:
            return True
    return False


def _with_one_baseline(result: TableResult, columns: list[Column]) -> list[Comparison]:
    """Return the comparisons if all are with the same arm, in all columns, and the paper has no figures; else none."""
    for arm in result.arms:
        if any(column.name in arm.paper for column in columns):
            return []
    comparisons = compare_arms(result)
    baselines = {comparison.other.name for comparison in comparisons}
    if len(baselines) != 1:
        return []
    for comparison in comparisons:
        if any(column.name not in comparison.intervals for column in columns):
            return []
    return comparisons


def _draw_bars(figure: Figure, result: TableResult, columns: list[Column]) -> None:
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for panel, column in zip(panels, columns, strict=True):
        is_percent = column.unit == "%"
        positions = []
        means = []
        deviations = []
        paper_positions = []
        paper_values = []
        for position, arm in enumerate(result.arms):
            mean = arm.mean(column.name)
            if mean is not None:
                positions.append(position)
                means.append(mean)
                deviations.append(arm.deviation(column.name) or 0.0)
            if column.name in arm.paper:
                paper_positions.append(position)
                paper_values.append(arm.paper[column.name])

        scale = 100 if is_percent else max(means + paper_values)
        errors = deviations if len(result.seeds) > 1 else None
        panel.barh(positions, means, xerr=errors, height=0.6, color=MEASURED, label="measured")
        # At the edge of the panel: beside the bars, numbers would cover the paper's marks.
        decimals = 1 if scale >= 10 else 2
        for position, mean in zip(positions, means, strict=True):
            panel.text(1.22 * scale, position, f"{mean:.{decimals}f}", fontsize="small", ha="right", va="center")
        if paper_values:
            panel.plot(paper_values, paper_positions, "D", color=PAPER, markersize=5, label="paper")
        title = f"{column.title}, %" if is_percent else column.title
        panel.set(title=textwrap.fill(title, 26), xlim=(0, 1.24 * scale))
        if is_percent:
            panel.set_xticks(range(0, 101, 20))
        panel.grid(axis="x", alpha=0.3)
    arm_titles = [arm.title for arm in result.arms]
    panels[0].set_yticks(range(len(arm_titles)), arm_titles)
    panels[0].invert_yaxis()

    # Each label once, although every panel has it.
    legend = {}
    for panel in panels:
        handles, labels = panel.get_legend_handles_labels()
        legend.update(zip(labels, handles, strict=True))
    figure.legend(legend.values(), legend, loc="outside lower right", ncols=2, fontsize="small")


def _draw_differences(figure: Figure, comparisons: list[Comparison], columns: list[Column]) -> None:
    baseline = comparisons[0].other
    panels = figure.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for panel, column in zip(panels, columns, strict=True):
        for position, comparison in enumerate(comparisons):
            interval = comparison.intervals[column.name]
            errors = [[interval.mean - interval.low], [interval.high - interval.mean]]
            color = MEASURED
            if interval.excludes_zero:
                color = PAPER
            panel.errorbar([interval.mean], [position], xerr=errors, fmt="o", color=color, capsize=3)
        panel.axvline(0, color="gray", lw=0.8)
        baseline_figure = f"{column.show(baseline.mean(column.name))} {column.unit}".rstrip()
        unit = "points" if column.unit == "%" else ""
        panel.set(title=f"{column.title}\n{baseline.title}: {baseline_figure}", xlabel=unit)
        panel.grid(axis="x", alpha=0.3)
    arm_titles = [comparison.arm.title for comparison in comparisons]
    panels[0].set_yticks(range(len(arm_titles)), arm_titles)
    panels[0].set_ylim(len(comparisons) - 0.5, -0.5)
    label = f"difference from '{baseline.title}', 95 % interval; red: does not contain 0"
    figure.supxlabel(label, fontsize="small")


def _draw_lines(figure: Figure, result: TableResult, columns: list[Column]) -> None:
    panel = figure.subplots()
    arms = [arm for arm in result.arms if arm.x is not None]
    arms.sort(key=lambda arm: arm.x)
    for number, column in enumerate(columns):
        x = []
        means = []
        deviations = []
        paper_x = []
        paper_values = []
        for arm in arms:
            mean = arm.mean(column.name)
            if mean is not None:
                x.append(arm.x)
                means.append(mean)
                deviations.append(arm.deviation(column.name) or 0.0)
            if column.name in arm.paper:
                paper_x.append(arm.x)
                paper_values.append(arm.paper[column.name])

        color = f"C{number}"
        errors = deviations if len(result.seeds) > 1 else None
        panel.errorbar(x, means, yerr=errors, fmt="o-", color=color, capsize=3, label=column.title)
        if paper_values:
            panel.plot(paper_x, paper_values, "D--", color=color, alpha=0.5, label=f"{column.title}, paper")
    panel.set(xlabel=result.x, ylabel="%")
    panel.grid(alpha=0.3)
    panel.legend(fontsize="small")
