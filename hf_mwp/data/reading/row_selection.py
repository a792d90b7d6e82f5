"""Which rows of each split are kept."""

from collections.abc import Collection

from ..corpus.pretraining_texts import loose_digest
from ..datasets.mwp_loader import Rows
from .load_report import SplitReport
from .schema import problem_from_row
from .usability import find_answer_fault, find_fault, uses_constants


def select_rows(
    splits: dict[str, Rows], numerals: bool | None = None, keep_unusable: bool = False, drop_overlap: str | None = None
) -> tuple[dict[str, Rows], dict[str, SplitReport]]:
    """
    Leaves out what cannot be trained or evaluated on, and counts it.

    Args:
        splits (`dict[str, list[dict]]`): Rows of the schema by split. Those of `"train"` need an equation that gives
            their answer, all others one answer.
        numerals (`bool`, *optional*): Whether numerals in words are numbers; by default in English, not in Chinese.
        keep_unusable (`bool`, *optional*, defaults to `False`): Count only.
        drop_overlap (`str`, *optional*): `"test"` leaves out test problems with the masked text of a training problem,
            `"train"` training problems with the masked text of a problem of another split, compared as
            [`loose_digest`] does.

    Returns:
        `tuple[dict[str, list[dict]], dict[str, SplitReport]]`: kept rows and counts, by split.
    """
    problems = {split: [problem_from_row(row, numerals) for row in rows] for split, rows in splits.items()}
    keys = {split: [loose_digest(row["text"]) for row in rows] for split, rows in splits.items()}
    trained = set(keys.get("train", ()))
    held_out = {key for split, part in keys.items() if split != "train" for key in part}
    kept: dict[str, Rows] = {}
    reports: dict[str, SplitReport] = {}
    for split, rows in splits.items():
        kept[split], report = [], SplitReport(read=len(rows))
        if split != "train" and "train" in splits:
            report.overlap = sum(key in trained for key in keys[split])
        overlapping = (held_out if split == "train" else trained) if split == drop_overlap else ()
        for row, problem, key in zip(rows, problems[split], keys[split], strict=True):
            place = f"{row['file']}, line {row['line']}, id {row['id']}"
            fault = find_fault(problem)
            reason = fault if split == "train" else fault and find_answer_fault(problem)
            if reason is not None and not keep_unusable:
                report.count(report.dropped, reason[0], f"{place}: {reason[1]}")
            elif key in overlapping:
                report.count(report.dropped, "overlap", place)
            else:
                if fault is not None:
                    report.count(report.kept_with, fault[0], f"{place}: {fault[1]}")
                report.with_constants += uses_constants(problem)
                kept[split].append(row)
        report.kept = len(kept[split])
        reports[split] = report
    return kept, reports


def select_extra_rows(
    sources: dict[str, Rows],
    splits: dict[str, Rows],
    numerals: bool | None = None,
    keep_unusable: bool = False,
    excluded: Collection[bytes] = (),
) -> tuple[Rows, dict[str, SplitReport]]:
    """
    Leaves out what cannot be trained on, is there already or must not be there, and counts it.

    Args:
        sources (`dict[str, list[dict]]`): Rows to add to a training split, by where they come from.
        splits (`dict[str, list[dict]]`): Rows of all splits as they were read: a problem with the masked text of one
            of them, or of one added before, is left out, and so is one with the [`loose_digest`] of one that is not in
            `"train"`.
        numerals (`bool`, *optional*), keep_unusable (`bool`, *optional*, defaults to `False`): As in [`select_rows`].
        excluded (`Collection[bytes]`, *optional*): [`loose_digest`] of texts that are not to be added.

    Returns:
        `tuple[list[dict], dict[str, SplitReport]]`: rows to add, and counts by source.
    """
    seen = {problem_from_row(row, numerals).masked_key for rows in splits.values() for row in rows}
    held_out = {loose_digest(row["text"]) for split, rows in splits.items() if split != "train" for row in rows}
    excluded = held_out.union(excluded)
    added: Rows = []
    reports: dict[str, SplitReport] = {}
    for source, rows in sources.items():
        report = reports[source] = SplitReport(read=len(rows))
        for row in rows:
            problem = problem_from_row(row, numerals)
            place = f"{row['file']}, line {row['line']}, id {row['id']}"
            fault = find_fault(problem)
            if fault is not None and not keep_unusable:
                report.count(report.dropped, fault[0], f"{place}: {fault[1]}")
            elif problem.masked_key in seen:
                report.count(report.dropped, "known", place)
            elif loose_digest(row["text"]) in excluded:
                report.count(report.dropped, "excluded", place)
            else:
                if fault is not None:
                    report.count(report.kept_with, fault[0], f"{place}: {fault[1]}")
                seen.add(problem.masked_key)
                report.with_constants += uses_constants(problem)
                report.kept += 1
                added.append(row)
    return added, reports
