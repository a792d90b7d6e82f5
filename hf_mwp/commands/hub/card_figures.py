"""Check that the figures of a model card agree with its `record.json`."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from huggingface_hub import ModelCard

from hf_mwp.solver.metrics.accuracy import percent
from hf_mwp.utils.usage_error import UsageError

from .model_card import RECORD, ModelFigures


def check_card(card: Path, record: Path) -> int:
    """Compare the rows of a card's result tables and the results in its metadata with the figures of the record, and
    return their number. Raises `UsageError` if a file cannot be read, or a figure is missing in the record."""
    try:
        figures = [ModelFigures(**each) for each in json.loads(record.read_text("utf-8"))["figures"]]
        text = card.read_text("utf-8")
        results = ModelCard(text).data.eval_results or []
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise UsageError(f"{record} or {card.name} cannot be read ({type(error).__name__}: {error}).") from error
    rows = list(_rows(text))
    for model, data, search, *cells in rows:
        known = [each for each in figures if (each.model, f"{each.dataset}, {each.part}") == (model, data)]
        if not any(each.search == search and {*cells} <= _cells(each) for each in known):
            raise _unknown(card, f"{model} | {data} | {search} | {' | '.join(cells)}")
    for each in results:
        search, value = (each.metric_args or {}).get("search"), each.metric_value
        place = ("this model", each.dataset_name, each.dataset_config, search)
        known = [found for found in figures if (found.model, found.dataset, found.part, found.search) == place]
        if not any(value in (round(100 * n, 2), round(n, 2)) for found in known for n in _numbers(found)):
            raise _unknown(card, f"{each.dataset_name}, {each.dataset_config}, {search}: {value}")
    return len(rows) + len(results)


def _unknown(card: Path, figure: str) -> UsageError:
    return UsageError(
        f"{card.name} contains a figure that is missing in {RECORD} ({figure}). Measure the model with `hf-mwp "
        "evaluate`, then create its folder again with `hf-mwp card --evaluations`."
    )


def _rows(text: str) -> Iterator[list[str]]:
    is_inside = False
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        is_inside = line.lstrip().startswith("|") and (is_inside or cells[:3] == ["model", "data", "search"])
        if is_inside and cells[0] != "model" and not cells[0].startswith("--"):
            yield cells


def _numbers(figures: ModelFigures) -> Iterator[float]:
    for report in figures.reports.values():
        yield from (value for value in report.values() if isinstance(value, int | float))


def _cells(figures: ModelFigures) -> set[str]:
    """Return the figures as formatted in a table."""
    reports: list[Mapping[str, Any]] = list(figures.reports.values())
    counts = {f"{int(value):,}" for report in reports for name, value in report.items() if name.startswith("num_")}
    return {"-", *counts, *map(percent, _numbers(figures)), *map("{:.2f}".format, _numbers(figures))}
