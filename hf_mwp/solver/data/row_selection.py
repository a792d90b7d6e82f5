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
    training_keys = set()
    held_out_keys = set()
    for split, examples in splits.items():
        keys = training_keys if split == "train" else held_out_keys
        keys.update(example.key for example in examples)
    usable: dict[str, list[Example]] = {}
    reports = {}
    for split, examples in splits.items():
        report = SplitReport(read=len(examples))
        reports[split] = report
        usable[split] = []
        keys = held_out_keys if split == "train" else training_keys
        if split != "train" and "train" in splits:
            report.overlap = sum(example.key in keys for example in examples)
        for example in examples:
            fault = example.find_fault()
            reason = fault
            if fault is not None and split != "train":
                reason = find_answer_fault(example.problem)
            if reason is not None and not keep_unusable:
                report.count(report.dropped, example.row, *reason)
            elif split == drop_overlap and example.key in keys:
                report.count(report.dropped, example.row, "overlap")
            else:
                _keep(example, fault, usable[split], report)
            if not keep_problems:
                # Free the problem, because many problems in memory slow down Python's garbage collection.
                vars(example).pop("problem", None)
    return usable, reports


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
    seen = set()
    held_out = list(excluded)
    for split, examples in splits.items():
        seen.update(example.problem.masked_key for example in examples)
        if split != "train":
            held_out += [example.row["text"] for example in examples]
    digests = set(map(loose_digest, held_out))
    added: list[Example] = []
    reports = {}
    for source, examples in sources.items():
        report = SplitReport(read=len(examples))
        reports[source] = report
        contexts = _held_out_contexts(examples, held_out)
        for example in examples:
            fault = example.find_fault()
            if fault is not None and not keep_unusable:
                report.count(report.dropped, example.row, *fault)
            elif example.problem.masked_key in seen:
                report.count(report.dropped, example.row, "known")
            elif example.key in digests:
                report.count(report.dropped, example.row, "excluded")
            elif example.row["context"] in contexts:
                report.count(report.dropped, example.row, "held_out_context")
            else:
                seen.add(example.problem.masked_key)
                _keep(example, fault, added, report)
    return added, reports


def _held_out_contexts(examples: Iterable[Example], held_out: Iterable[str]) -> set[str]:
    """Return the names of the contexts with which a held-out text begins. Numbers are ignored."""
    texts: dict[str, list[str]] = defaultdict(list)
    for example in examples:
        if example.row["context"]:
            texts[example.row["context"]].append(example.row["text"])
    if not texts:
        return set()
    keys = sorted(TextKeys.of(text).masked for text in held_out)
    contexts = set()
    for name, questions in texts.items():
        # The context is the common first clauses of all questions; of a single question, all clauses but the last.
        prefix = commonprefix(questions)
        starts = [start for start, _ in split_clauses(questions[0]) if start <= len(prefix)]
        context = TextKeys.of(questions[0][: max(starts, default=0)]).masked
        # The first key that may begin with the context.
        index = bisect_left(keys, context)
        if "#" in context and index < len(keys) and keys[index].startswith(context):
            contexts.add(name)
    return contexts


def _keep(example: Example, fault: tuple[str, str] | None, usable: list[Example], report: SplitReport) -> None:
    if fault is not None:
        report.count(report.kept_with, example.row, *fault)
    with suppress(ExpressionError, ProblemError):
        report.with_constants += bool(example.problem.constants)
    report.kept += 1
    usable.append(example)
