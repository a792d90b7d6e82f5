"""Which rows of each split are kept."""

from bisect import bisect_left
from collections.abc import Collection, Iterable
from os.path import commonprefix
from typing import Any

from ...problems import MathWordProblem
from ...problems.clauses import split_clauses
from ...problems.text_keys import TextKeys
from ..corpus.pretraining_texts import loose_digest
from ..datasets.mwp_loader import Rows
from .load_report import SplitReport
from .schema import problem_from_row
from .usability import find_answer_fault, find_row_fault, uses_constants


def select_rows(
    splits: dict[str, Rows],
    parse_number_words: bool | None = None,
    keep_unusable: bool = False,
    drop_overlap: str | None = None,
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
            problem = problem_from_row(row, parse_number_words)
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
    parse_number_words: bool | None = None,
    keep_unusable: bool = False,
    excluded: Collection[str] = (),
) -> tuple[Rows, dict[str, SplitReport]]:
    """
    Leaves out what cannot be trained on, is there already or must not be there: rows to add to a training split, and
    counts, by where they come from.

    A problem with the masked text of one of `splits`, the rows as they were read, or of one added before is there
    already; one with the [`loose_digest`] of a row that is not in `"train"`, or of an `excluded` text, must not be
    there, nor one whose context begins such a text.
    """
    seen = {problem_from_row(row, parse_number_words).masked_key for rows in splits.values() for row in rows}
    held_out = [row["text"] for split, rows in splits.items() if split != "train" for row in rows]
    held_out += excluded
    digests = set(map(loose_digest, held_out))
    added: Rows = []
    reports = {source: SplitReport(read=len(rows)) for source, rows in sources.items()}
    for source, rows in sources.items():
        report = reports[source]
        contexts = _held_out_contexts(rows, held_out)
        for row in rows:
            problem = problem_from_row(row, parse_number_words)
            fault = find_row_fault(row, problem)
            if fault is not None and not keep_unusable:
                report.count(report.dropped, row, *fault)
            elif problem.masked_key in seen:
                report.count(report.dropped, row, "known")
            elif loose_digest(row["text"]) in digests:
                report.count(report.dropped, row, "excluded")
            elif row["context"] in contexts:
                report.count(report.dropped, row, "held_out_context")
            else:
                seen.add(problem.masked_key)
                _keep(row, problem, fault, added, report)
    return added, reports


def _held_out_contexts(rows: Rows, held_out: Iterable[str]) -> set[str]:
    """Names of the contexts of rows that one of the held-out texts begins with, whatever its numbers."""
    texts: dict[str, list[str]] = {}
    for row in rows:
        if row["context"]:
            texts.setdefault(row["context"], []).append(row["text"])
    if not texts:
        return set()
    keys = sorted(TextKeys.of(text).masked for text in held_out)
    found = set()
    for name, questions in texts.items():
        # The clauses that all questions begin with; of a single one all but its last.
        shared = commonprefix(questions)
        begin = max((start for start, _ in split_clauses(questions[0]) if start <= len(shared)), default=0)
        context = TextKeys.of(questions[0][:begin]).masked
        place = bisect_left(keys, context)
        if "#" in context and place < len(keys) and keys[place].startswith(context):
            found.add(name)
    return found


def _keep(
    row: dict[str, Any], problem: MathWordProblem, fault: tuple[str, str] | None, kept: Rows, report: SplitReport
) -> None:
    if fault is not None:
        report.count(report.kept_with, row, *fault)
    report.with_constants += uses_constants(problem)
    report.kept += 1
    kept.append(row)
