"""Functions that select the usable rows of each split, and count the others by reason."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from os.path import commonprefix
from typing import Any

from hf_mwp.runtime.expressions import ExpressionError
from hf_mwp.runtime.problems import MathWordProblem, ProblemError
from hf_mwp.runtime.problems.clauses import split_clauses
from hf_mwp.runtime.problems.text_keys import TextKeys
from hf_mwp.solver.corpus.pretraining_texts import loose_digest

from .load_report import SplitReport
from .schema import problem_from_row
from .usability import find_answer_fault, find_fault


@dataclass(frozen=True)
class Example:
    """Row of the schema together with its problem."""

    row: Mapping[str, Any]
    parse_number_words: bool | None = None

    @cached_property
    def problem(self) -> MathWordProblem:
        """Problem of the row. It is created at the first access."""
        return problem_from_row(self.row, self.parse_number_words)

    @cached_property
    def key(self) -> bytes:
        """[`loose_digest`] of the text."""
        return loose_digest(self.row["text"])

    def find_fault(self) -> tuple[str, str] | None:
        """Return the fault that the loader found in the source, or else the fault of the problem."""
        return self.row.get("fault") or find_fault(self.problem)


def select_rows(
    splits: Mapping[str, list[Example]], keep_unusable: bool, drop_overlap: str | None, keep_problems: bool
) -> tuple[dict[str, list[Example]], dict[str, SplitReport]]:
    """Leave out unusable rows, and return the kept examples and the report of each split. A training example needs an
    equation whose value is the answer (if it has an answer), a held-out example exactly one answer. With
    `drop_overlap="test"`, test problems with the [`loose_digest`] of a training problem are left out; with `"train"`,
    training problems with the digest of a held-out problem. `keep_problems=False` frees the problems of the examples.
    See [`load_mwp_dataset`] for `keep_unusable`."""
    trained = {each.key for each in splits.get("train", ())}
    held_out = {each.key for split, part in splits.items() if split != "train" for each in part}
    kept: dict[str, list[Example]] = {split: [] for split in splits}
    reports = {split: SplitReport(read=len(part)) for split, part in splits.items()}
    for split, part in splits.items():
        report = reports[split]
        if split != "train" and "train" in splits:
            report.overlap = sum(each.key in trained for each in part)
        overlapping = (held_out if split == "train" else trained) if split == drop_overlap else ()
        for each in part:
            fault = each.find_fault()
            reason = fault if split == "train" else fault and find_answer_fault(each.problem)
            if reason is not None and not keep_unusable:
                report.count(report.dropped, each.row, *reason)
            elif each.key in overlapping:
                report.count(report.dropped, each.row, "overlap")
            else:
                _keep(each, fault, kept[split], report)
            if not keep_problems:
                # Free the problem, because many problems in memory slow down Python's garbage collection.
                vars(each).pop("problem", None)
    return kept, reports


def select_extra_rows(
    sources: Mapping[str, list[Example]],
    splits: Mapping[str, list[Example]],
    keep_unusable: bool = False,
    excluded: Collection[str] = (),
) -> tuple[list[Example], dict[str, SplitReport]]:
    """Leave out duplicates, excluded rows and unusable rows, and return the examples to add to a training split and
    the report of each source. A duplicate has the same masked text as a problem in `splits` or as an example added
    before. A row is excluded if its [`loose_digest`] is the digest of a held-out row or of a text in `excluded`, or if
    such a text begins with the context of the row."""
    seen = {each.problem.masked_key for part in splits.values() for each in part}
    held_out = [each.row["text"] for split, part in splits.items() if split != "train" for each in part]
    held_out += excluded
    digests = set(map(loose_digest, held_out))
    added: list[Example] = []
    reports = {source: SplitReport(read=len(part)) for source, part in sources.items()}
    for source, part in sources.items():
        report = reports[source]
        contexts = _held_out_contexts(part, held_out)
        for each in part:
            fault = each.find_fault()
            if fault is not None and not keep_unusable:
                report.count(report.dropped, each.row, *fault)
            elif each.problem.masked_key in seen:
                report.count(report.dropped, each.row, "known")
            elif each.key in digests:
                report.count(report.dropped, each.row, "excluded")
            elif each.row["context"] in contexts:
                report.count(report.dropped, each.row, "held_out_context")
            else:
                seen.add(each.problem.masked_key)
                _keep(each, fault, added, report)
    return added, reports


def _held_out_contexts(part: Iterable[Example], held_out: Iterable[str]) -> set[str]:
    """Return the names of the contexts with which a held-out text begins. Numbers are ignored."""
    texts: dict[str, list[str]] = defaultdict(list)
    for each in part:
        if each.row["context"]:
            texts[each.row["context"]].append(each.row["text"])
    keys = sorted(TextKeys.of(text).masked for text in held_out) if texts else []
    found = set()
    for name, questions in texts.items():
        # The context is the common first clauses of all questions; of a single question, all clauses but the last.
        shared = commonprefix(questions)
        begin = max((start for start, _ in split_clauses(questions[0]) if start <= len(shared)), default=0)
        context = TextKeys.of(questions[0][:begin]).masked
        place = bisect_left(keys, context)
        if "#" in context and place < len(keys) and keys[place].startswith(context):
            found.add(name)
    return found


def _keep(example: Example, fault: tuple[str, str] | None, kept: list[Example], report: SplitReport) -> None:
    if fault is not None:
        report.count(report.kept_with, example.row, *fault)
    with suppress(ExpressionError, ProblemError):
        report.with_constants += bool(example.problem.constants)
    report.kept += 1
    kept.append(example)
