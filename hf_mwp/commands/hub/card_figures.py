"""Check that the figures of a model card agree with its `record.json`."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml
from huggingface_hub import EvalResult, ModelCard

from hf_mwp.solver.metrics.accuracy import percent
from hf_mwp.utils.usage_error import UsageError

from .model_card import RECORD, ModelFigures


def check_card(card: Path, record: Path) -> int:
    """Compare the rows of a card's result tables and the results in its metadata with the figures of the record, and
    return their number. Raises `UsageError` if a file cannot be read, or a figure is missing in the record."""
    try:
        figures = [ModelFigures(**fields) for fields in json.loads(record.read_text("utf-8"))["figures"]]
        text = card.read_text("utf-8")
        results = ModelCard(text).data.eval_results or []
    except (OSError, ValueError, KeyError, TypeError, AttributeError, yaml.YAMLError) as error:
        raise UsageError(f"{record} or {card.name} cannot be read ({type(error).__name__}: {error}).") from error
    rows = list(_rows(text))
    for row in rows:
        if not any(_has_row(record_figures, row) for record_figures in figures):
            raise _unknown(card, " | ".join(row))
    for result in results:
        if not any(_has_result(record_figures, result) for record_figures in figures):
            described = f"{result.dataset_name}, {result.dataset_config}, {_search_of(result)}"
            raise _unknown(card, f"{described}: {result.metric_value}")
    return len(rows) + len(results)


def _has_row(figures: ModelFigures, row: Sequence[str]) -> bool:
    """Return whether a row of a table contains only the figures of the record."""
    model, data, search, *cells = row
    if (figures.model, f"{figures.dataset}, {figures.part}", figures.search) != (model, data, search):
        return False
    return set(cells) <= _cells(figures)


def _has_result(figures: ModelFigures, result: EvalResult) -> bool:
    """Return whether a result in the metadata is one of the figures of the record, as a share or in percent."""
    described = ("this model", result.dataset_name, result.dataset_config, _search_of(result))
    if (figures.model, figures.dataset, figures.part, figures.search) != described:
        return False
    for number in _numbers(figures):
        if result.metric_value in (round(100 * number, 2), round(number, 2)):
            return True
    return False


def _search_of(result: EvalResult) -> str | None:
    return (result.metric_args or {}).get("search")


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
        for value in report.values():
            if isinstance(value, int | float):
                yield value


def _cells(figures: ModelFigures) -> set[str]:
    """Return the figures as formatted in a table."""
    cells = {"-"}
    for report in figures.reports.values():
        for name, value in report.items():
            if name.startswith("num_"):
                cells.add(f"{int(value):,}")
    for number in _numbers(figures):
        cells.add(percent(number))
        cells.add(f"{number:.2f}")
    return cells
