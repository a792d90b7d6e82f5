"""Check that the figures of a model card agree with its `record.json`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from huggingface_hub import ModelCard

from hf_mwp.hub.model_card import ModelFigures
from hf_mwp.metrics.accuracy import percent


def check_card(card: Path, record: Path) -> int:
    """Compare the rows of a card's tables and the results in its metadata with the record; return their number."""
    figures = [ModelFigures(**each) for each in json.loads(record.read_text("utf-8"))["figures"]]
    text = card.read_text("utf-8")
    rows, results = list(table_rows(text)), ModelCard(text).data.eval_results or []
    for model, data, search, *cells in rows:
        known = [each for each in figures if (each.model, f"{each.dataset}, {each.part}") == (model, data)]
        assert any(each.search == search and {*cells} <= shown(each) for each in known), (model, data, search, cells)
    for each in results:
        place = ("this model", each.dataset_name, each.dataset_config, each.metric_args["search"])
        known = [figure for figure in figures if (figure.model, figure.dataset, figure.part, figure.search) == place]
        values = [number for figure in known for number in numbers(figure)]
        assert any(each.metric_value in (round(100 * value, 2), round(value, 2)) for value in values), place
    return len(rows) + len(results)


def table_rows(text: str) -> Iterator[list[str]]:
    """Yield the rows of the result tables."""
    is_inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        is_inside = line.lstrip().startswith("|") and (is_inside or cells[:3] == ["model", "data", "search"])
        if is_inside and cells[0] != "model" and not cells[0].startswith("--"):
            yield cells


def numbers(figures: ModelFigures) -> Iterator[float]:
    for report in figures.reports.values():
        yield from (value for value in report.values() if isinstance(value, int | float))


def shown(figures: ModelFigures) -> set[str]:
    """The figures as a table writes them."""
    reports = figures.reports.values()
    counts = {f"{int(value):,}" for report in reports for name, value in report.items() if name.startswith("num_")}
    return {"-", *counts, *map(percent, numbers(figures)), *map("{:.2f}".format, numbers(figures))}
