"""Which rows of each split are kept."""

from collections.abc import Collection
from typing import Any

from ...problems import MathWordProblem
from ..corpus.pretraining_texts import loose_digest
from ..datasets.mwp_loader import Rows
from .load_report import SplitReport
from .schema import problem_from_row
from .usability import find_answer_fault, find_row_fault, uses_constants


def select_rows(
    splits: dict[str, Rows], numerals: bool | None = None, keep_unusable: bool = False, drop_overlap: str | None = None
) -> tuple[dict[str, Rows], dict[str, SplitReport]]:
    """
    Leaves out what cannot be trained or evaluated on, and counts it: rows to keep and counts, by split. Rows of
    `"train"` need an equation that gives their answer, all others one answer.

    `drop_overlap="test"` leaves out test problems with the masked text of a training problem, `"train"` training
    problems with that of a problem of another split, compared as [`loose_digest`] does; for the others see
    [`load_mwp_dataset`].
    """
    keys = {split: [loose_digest(row["text"]) for row in rows] for split, rows in splits.items()}
    trained = set(keys.get("train", ()))
    held_out = {key for split, part in keys.items() if split != "train" for key in part}
    kept: dict[str, Rows] = {split: [] for split in splits}
    reports = {split: SplitReport(read=len(rows)) for split, rows in splits.items()}
    for split, rows in splits.items():
        report = reports[split]
        if split != "train" and "train" in splits:
            report.overlap = sum(key in trained for key in keys[split])
        overlapping = (held_out if split == "train" else trained) if split == drop_overlap else ()
        for row, key in zip(rows, keys[split], strict=True):
            problem = problem_from_row(row, numerals)
            fault = find_row_fault(row, problem)
            reason = fault if split == "train" else fault and find_answer_fault(problem)
            if reason is not None and not keep_unusable:
                report.count(report.dropped, row, *reason)
            elif key in overlapping:
                report.count(report.dropped, row, "overlap")
            else:
                _keep(row, problem, fault, kept[split], report)
    return kept, reports


def select_extra_rows(
    sources: dict[str, Rows],
    splits: dict[str, Rows],
    numerals: bool | None = None,
    keep_unusable: bool = False,
    excluded: Collection[bytes] = (),
) -> tuple[Rows, dict[str, SplitReport]]:
    """
    Leaves out what cannot be trained on, is there already or must not be there: rows to add to a training split, and
    counts, by where they come from.

    A problem with the masked text of one of `splits`, the rows as they were read, or of one added before is there
    already; one with the [`loose_digest`] of a row that is not in `"train"`, or of `excluded`, must not be there.
    """
    seen = {problem_from_row(row, numerals).masked_key for rows in splits.values() for row in rows}
    held_out = {loose_digest(row["text"]) for split, rows in splits.items() if split != "train" for row in rows}
    excluded = held_out.union(excluded)
    added: Rows = []
    reports = {source: SplitReport(read=len(rows)) for source, rows in sources.items()}
    for source, rows in sources.items():
        report = reports[source]
        for row in rows:
            problem = problem_from_row(row, numerals)
            fault = find_row_fault(row, problem)
            if fault is not None and not keep_unusable:
                report.count(report.dropped, row, *fault)
            elif problem.masked_key in seen:
                report.count(report.dropped, row, "known")
            elif loose_digest(row["text"]) in excluded:
                report.count(report.dropped, row, "excluded")
            else:
                seen.add(problem.masked_key)
                _keep(row, problem, fault, added, report)
    return added, reports


def _keep(
    row: dict[str, Any], problem: MathWordProblem, fault: tuple[str, str] | None, kept: Rows, report: SplitReport
) -> None:
    if fault is not None:
        report.count(report.kept_with, row, *fault)
    report.with_constants += uses_constants(problem)
    report.kept += 1
    kept.append(row)
