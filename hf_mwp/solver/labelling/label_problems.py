"""Pseudo-labelling: a solver or a language model adds equations to problems with or without an answer."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hf_mwp.runtime.plausibility import PlausibilityReranker
from hf_mwp.runtime.problems import MathWordProblem, refusal
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.corpus.pretraining_texts import held_out_texts, loose_digest, masked_digest
from hf_mwp.solver.data.file_format import FileFormat
from hf_mwp.solver.data.usability import find_answer_fault
from hf_mwp.solver.metrics import score_prediction
from hf_mwp.solver.models import Solver
from hf_mwp.solver.solving.kept_records import ProgressBar
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.usage_error import UsageError

from .labeller import Labeller, Proposal
from .solver_labeller import SolverLabeller


FATES = {
    "labelled": "an equation evaluates to the answer",
    "not found": "no equation evaluates to the answer",
    "excluded": "an excluded dataset contains the masked text",
    "duplicate": "an earlier problem has the same masked text",
    "no answer": "the answer is missing, ambiguous or cannot be parsed, or the text has no number",
    "surest": "labelled without an answer: the prediction is among the most confident",
    "unsure": "not labelled: without an answer, and the prediction is not among the most confident",
}


@dataclass(frozen=True)
class LabelledProblems:
    """Result of [`label_problems`]."""

    # id, text, equation, answer, language, fields of the labeller (log_probability of the tree, or number of samples),
    # 0-based rank of the equation among the candidates; without an answer, confidence
    rows: list[dict[str, Any]]
    fates: dict[str, int]  # number of problems by outcome, a key of `FATES` or of the labeller's `faults`
    usage: dict[str, int] = field(default_factory=dict)  # cost of a language model, see [`LanguageModelLabeller`]


@checked
def label_problems(
    model: Solver | Labeller,
    processor: MwpProcessor | None = None,
    problems: Iterable[MathWordProblem | Mapping[str, Any]] = (),
    *,
    num_beams: int = 5,
    pseudo_label_fraction: float = 0.0,
    reranker: PlausibilityReranker | None = None,
    exclude: Iterable[str | Path] = (),
    data_dir: str | Path | None = None,
    file_format: FileFormat | None = None,
    batch_size: int = 32,
    unfinished: str | Path | None = None,
    progress: ProgressBar = None,
) -> LabelledProblems:
    """
    Label problems with equations for self-training. A problem with an answer is labelled with the most probable tree
    that evaluates to the answer. Of the problems without an answer, those with the most confident predictions are
    labelled with the predicted tree. Among problems that differ only in their numbers, only the first is labelled.

    Args:
        model ([`Solver`] or [`Labeller`]): The solver, on its device, or another labeller such as a
            [`LanguageModelLabeller`].
        processor ([`MwpProcessor`], *optional*): Processor of the solver. Not used with another labeller.
        problems (`Iterable`): Problems or rows from [`load_mwp_dataset`]. Equations are ignored.
        num_beams (`int`, *optional*, defaults to 5): Number of beams of the solver, and of trees to try for each
            problem.
        pseudo_label_fraction (`float`, *optional*, defaults to 0.0): Share of the problems without an answer that a
            solver labels.
        reranker ([`PlausibilityReranker`], *optional*): Re-ranker that selects the solver's predictions for problems
            without an answer and computes their confidence.
        exclude (`Iterable[str]`, *optional*), data_dir (`str`, *optional*): Datasets or files whose texts must not be
            labelled, even with different numbers, and folder of the datasets.
        file_format ([`FileFormat`], *optional*): Names of the fields, encoding and separator of files.
        batch_size (`int`, *optional*, defaults to 32): Passed to [`solve_problems`].
        unfinished (`str`, *optional*), progress (`Callable`, *optional*): See [`solve_problems`].

    Raises:
        UsageError: If the labeller does not support the language of a problem, or there is no problem to label.
        TypeError: If a single problem is passed instead of several.
        ValueError: If a number is below 1, a share is not in [0, 1), or an option of solvers is passed with another
            labeller.

    Example:

    ```python
    >>> teacher, processor = hf_mwp.load_solver("teacher")
    >>> labelled = hf_mwp.label_problems(teacher, processor, rows, num_beams=5, exclude=["math23k"])
    >>> labelled.fates["labelled"], labelled.rows[0]["equation"]
    >>> language_model = hf_mwp.LanguageModelLabeller("http://127.0.0.1:8080/v1", "qwen2.5-coder")
    >>> hf_mwp.label_problems(language_model, problems=rows).usage
    ```
    """
    if not isinstance(model, Labeller):
        options = {"num_beams": num_beams, "batch_size": batch_size, "reranker": reranker}
        labeller = SolverLabeller(model, processor, pseudo_label_fraction=pseudo_label_fraction, **options)
    elif processor is not None or reranker is not None or pseudo_label_fraction:
        raise ValueError("`processor`, `reranker` and `pseudo_label_fraction` are for a solver. Remove them.")
    else:
        labeller = model
    fates = Counter(dict.fromkeys((*FATES, *labeller.faults), 0))
    excluded = held_out_texts(exclude, data_dir, file_format)
    to_label = _problems_to_label(problems, labeller, excluded, fates)
    proposals = labeller.propose(to_label, unfinished, progress)
    rows = _label(labeller, to_label, proposals, fates)
    return LabelledProblems(rows, dict(fates), dict(labeller.usage))


def _problems_to_label(
    problems: Iterable[MathWordProblem | Mapping[str, Any]],
    labeller: Labeller,
    excluded: Iterable[str],
    fates: Counter[str],
) -> list[MathWordProblem]:
    """Return the problems to label, without equations. Count the skipped problems in `fates`."""
    excluded_digests = set(map(loose_digest, excluded))
    seen: set[bytes] = set()
    to_label = []
    sources = list(problems)
    for source, problem in zip(sources, labeller.read(sources), strict=True):
        problem = replace(problem, equation=None)
        if problem.language not in labeller.languages:
            location = ""
            if isinstance(source, Mapping) and "file" in source:
                location = f"{source['file']}, line {source['line']}, field language: "
            supported = ", ".join(labeller.languages)
            raise UsageError(f"{location}the language {problem.language!r} is not one that is labelled: {supported}.")
        if problem.answer is None:
            no_answer = not labeller.labels_unanswered
        else:
            no_answer = find_answer_fault(problem) is not None
        if no_answer or refusal(problem) is not None:
            fates["no answer"] += 1
            continue
        if loose_digest(problem.text) in excluded_digests:
            fates["excluded"] += 1
            continue
        digest = masked_digest(problem.text, problem.language)
        if digest in seen:
            fates["duplicate"] += 1
            continue
        seen.add(digest)
        to_label.append(problem)
    if not to_label:
        skipped = ", ".join(f"{number} {fate}" for fate, number in fates.items() if number)
        reasons = f": {skipped}" if skipped else ""
        raise UsageError(f"There is no problem to label{reasons}.")
    return to_label


def _label(
    labeller: Labeller, problems: Sequence[MathWordProblem], proposals: Sequence[Proposal], fates: Counter[str]
) -> list[dict[str, Any]]:
    """Return the rows of the labelled problems, in the order of the problems. Count all problems in `fates`."""
    unanswered = [index for index, problem in enumerate(problems) if problem.answer is None]
    surest = labeller.surest([proposals[index].confidence for index in unanswered])
    surest_problems = {unanswered[index] for index in surest}
    rows = []
    for index, (problem, proposal) in enumerate(zip(problems, proposals, strict=True)):
        has_answer = problem.answer is not None
        if has_answer:
            rank = _first_right(problem, proposal)
            fate = "not found" if rank is None else "labelled"
        else:
            rank = proposal.best if index in surest_problems else None
            fate = "unsure" if rank is None else "surest"
        if rank is None:
            fates[proposal.fault or fate] += 1
            continue
        fates[fate] += 1
        candidate = proposal.candidates[rank]
        equation = candidate.expression.bind(problem.numbers).to_infix()
        row = {"id": problem.id, "text": problem.text, "answer": problem.answer, "language": problem.language}
        row |= {"equation": equation, **candidate.fields, "rank": rank}
        if not has_answer:
            row["confidence"] = proposal.confidence
        rows.append(row)
    return rows


def _first_right(problem: MathWordProblem, proposal: Proposal) -> int | None:
    """Return the index of the first candidate that evaluates to the answer of the problem."""
    for rank, candidate in enumerate(proposal.candidates):
        if score_prediction(problem, candidate.expression).answer_correct:
            return rank
    return None
