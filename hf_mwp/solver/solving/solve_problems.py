"""Functions that solve many problems in batches: encoding, padding, beam search and re-ranking."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import Tensor

from hf_mwp.compress.models.fingerprints import hash_model, hash_processing
from hf_mwp.compress.trainers.unknown_tokens import special_ids
from hf_mwp.runtime.answer import Beam, check_search, not_finite, read_trees
from hf_mwp.runtime.default_search import count_beams
from hf_mwp.runtime.plausibility import PlausibilityReranker
from hf_mwp.runtime.problems import MathWordProblem, refusal
from hf_mwp.runtime.text_reader import count_cut
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.metrics.matching import ANSWER_MATCHES
from hf_mwp.solver.models import SolveOutput, Solver
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_at_least_one
from hf_mwp.utils.length_batches import batches_by_length
from hf_mwp.utils.unknown_tokens import share_of_unknown

from .kept_records import ProgressBar, kept_records
from .solver_prediction import SolverPrediction


INPUTS = ("input_ids", "attention_mask", "number_positions")


@checked
def solve_problems(
    model: Solver,
    processor: MwpProcessor,
    problems: Iterable[str | MathWordProblem | Mapping[str, Any]],
    *,
    num_beams: int | None = None,
    top_k: int | None = 1,
    max_decode_length: int | None = None,
    reranker: PlausibilityReranker | None = None,
    answer_match: str = "annotated",
    batch_size: int | None = 32,
    progress: ProgressBar = None,
    unfinished: str | Path | None = None,
    score_margin: float | None = None,
) -> list[SolverPrediction]:
    """
    Solve problems, and score the predictions for problems with an answer or an equation.

    Args:
        model ([`Solver`]), processor ([`MwpProcessor`]): The solver, on its device.
        problems (`Iterable`): Plain texts, problems, or rows from [`load_mwp_dataset`].
        num_beams (`int`, *optional*): Number of beams, raised to `top_k` if it is smaller. Defaults to the number of
            beams of the re-ranker or, without a re-ranker, to 1.
        top_k (`int`, *optional*, defaults to 1): Number of trees to keep for each problem. All trees are kept if it is
            `None` or if there is a re-ranker.
        max_decode_length (`int`, *optional*): Maximum number of symbols of a tree; by default the decoder's limit.
        reranker ([`PlausibilityReranker`], *optional*): Re-ranker that selects the most plausible answer in the beam.
        answer_match (`str`, *optional*, defaults to `"annotated"`): Target value, see [`metrics.answers_match`].
        batch_size (`int`, *optional*, defaults to 32): Number of problems per batch; all problems if `None`.
        progress (`Callable`, *optional*): Wraps the list of batches as `tqdm.tqdm` does; with `unfinished`, of chunks.
        unfinished (`str`, *optional*): Folder for intermediate results, with which an interrupted call resumes and
            processes under `accelerate launch` share the work. The caller must delete it.
        score_margin (`float`, *optional*): Margin of the search, see [`MathWordProblemPipeline`].

    Returns:
        `list[SolverPrediction]`: A prediction for each problem. `score.reason` is `"correct"` or a key of
        [`metrics.FAILURE_REASONS`]. If there is no answer, `error` contains the reason.

    Raises:
        PlausibilityError: If the re-ranker does not support the language or the number of beams.
        TypeError: If a single problem is passed instead of several, or a problem has no text.
        ValueError: If a number is below 1, or `answer_match` is unknown.

    Example:

    ```python
    >>> model, processor = hf_mwp.load_solver("model_cards/mwp-student-3L-gts-math23k")
    >>> rows = hf_mwp.load_mwp_dataset("math23k")["test"]
    >>> predictions = hf_mwp.solve_problems(model, processor, rows, num_beams=5)
    >>> predictions[0].to_dict()["prediction"], predictions[0].score.reason
    >>> hf_mwp.metrics.accuracy_report([each.score for each in predictions])["answer_accuracy"]
    ```
    """
    counts = {"num_beams": num_beams, "top_k": top_k, "max_decode_length": max_decode_length, "batch_size": batch_size}
    check_at_least_one(counts, *counts)
    if answer_match not in ANSWER_MATCHES:
        raise ValueError(f"`answer_match` must be one of {', '.join(ANSWER_MATCHES)}, not {answer_match!r}.")
    num_beams = count_beams(num_beams, top_k, reranker, processor.language)
    if top_k is None or reranker is not None:
        top_k = num_beams
    problems = processor.problems(problems)
    if reranker is not None:
        for language in {problem.language for problem in problems}:
            reranker.check(language)
    check_search(score_margin=score_margin)
    settings = {"num_beams": num_beams, "top_k": top_k, "max_decode_length": max_decode_length}
    if score_margin is not None:
        settings["score_margin"] = score_margin
    if unfinished is None:
        beams = find_beams(model, processor, problems, batch_size, progress, **settings)
    else:
        beams = find_kept_beams(unfinished, model, processor, problems, batch_size, progress, **settings)
    predictions = []
    for problem, beam in zip(problems, beams, strict=True):
        ranked = None
        if reranker is not None:
            ranked = tuple(reranker.rerank(problem, beam.trees))
        predictions.append(SolverPrediction(problem, beam, ranked, answer_match))
    return predictions


def find_beams(
    model: Solver,
    processor: MwpProcessor,
    problems: Sequence[MathWordProblem],
    batch_size: int | None,
    progress: ProgressBar,
    **settings: float | None,
) -> list[Beam]:
    """Search for the best trees of each problem with the `settings` of [`solve_batch`]. A beam has no tree if the
    problem is refused ([`~problems.refusal`]) or all its numbers are cut off."""
    beams = [Beam()] * len(problems)
    # Encode the problems that are not refused.
    indices = [index for index, problem in enumerate(problems) if refusal(problem) is None]
    if not indices:
        return beams
    columns = processor.encode([problems[index] for index in indices])
    unknown = unknown_shares(processor, columns["input_ids"])
    rows = []
    for row, (index, positions) in enumerate(zip(indices, columns["number_positions"], strict=True)):
        num_cut = count_cut(problems[index], positions)
        beams[index] = Beam((), unknown[row], num_cut, processor.max_length)
        if positions:
            rows.append(row)
    lengths = [columns["length"][row] for row in rows]
    batches = []
    for batch in batches_by_length(lengths, batch_size):
        batches.append([rows[place] for place in batch])
    if progress is not None:
        batches = progress(batches)
    fault = None
    was_training = model.training
    if was_training:
        model.eval()
    for batch in batches:
        solved = solve_batch(model, _padded_rows(processor, columns, batch), **settings)
        capped = _flags(solved.capped, len(batch), default=False)
        finite = _flags(solved.finite, len(batch), default=True)
        if fault is None and not all(finite):
            fault = not_finite(model.name_or_path, _not_finite_weights(model))
        finished_sequences = _finished_sequences(solved)
        for place, row in enumerate(batch):
            index = indices[row]
            trees = read_trees(finished_sequences[place], processor.decode)
            beams[index] = replace(beams[index], trees=trees, capped=capped[place])
            if not finite[place]:
                beams[index] = replace(beams[index], fault=fault)
    if was_training:
        model.train()
    return beams


def _padded_rows(
    processor: MwpProcessor, columns: Mapping[str, Sequence[Any]], rows: Sequence[int]
) -> dict[str, Tensor]:
    """Return the padded inputs of the encoded problems with these row numbers."""
    batch_columns = {}
    for name, values in columns.items():
        batch_columns[name] = [values[row] for row in rows]
    inputs = processor.pad(batch_columns)
    if len(set(batch_columns["length"])) == 1:
        # Without padding, no mask is needed, and creating one takes 4 % of a greedy search.
        inputs.pop("attention_mask")
    return inputs


def _flags(flags: Tensor | None, num_problems: int, default: bool) -> list[bool]:
    """Return a flag of each problem, the default if the search has not set any."""
    if flags is None:
        return [default] * num_problems
    return flags.tolist()


def _finished_sequences(solved: SolveOutput) -> list[list[tuple[list[int], float]]]:
    """Return the symbol ids and the score of each complete tree, for each problem."""
    sequences = solved.sequences.tolist()
    scores = solved.scores.tolist()
    finished = solved.finished.tolist()
    results = []
    for problem in range(len(sequences)):
        complete = []
        for ids, score, is_finished in zip(sequences[problem], scores[problem], finished[problem], strict=True):
            if is_finished:
                complete.append((ids, score))
        results.append(complete)
    return results


def _not_finite_weights(model: Solver) -> list[str]:
    return [name for name, tensor in model.state_dict().items() if not tensor.isfinite().all()]


def find_kept_beams(
    folder: str | Path,
    model: Solver,
    processor: MwpProcessor,
    problems: Sequence[MathWordProblem],
    batch_size: int | None,
    progress: ProgressBar,
    **settings: float | None,
) -> list[Beam]:
    """Search for beams as [`find_beams`] does, cached in a folder by [`kept_records`]."""
    facts = {"model": hash_model(model), "processor": hash_processing(processor), "dtype": str(model.dtype)} | settings

    def search(chunk: Sequence[MathWordProblem]) -> Iterator[dict[str, Any]]:
        for beam in find_beams(model, processor, chunk, batch_size, None, **settings):
            trees = [(processor.vocabulary.encode(tree), score) for tree, score in beam.trees]
            yield vars(beam) | {"trees": trees}

    records = kept_records(folder, facts, problems, search, progress)
    beams = []
    for record in records:
        trees = read_trees(record["trees"], processor.decode)
        beams.append(replace(Beam(**record), trees=trees))
    return beams


def solve_batch(
    model: Solver,
    inputs: Mapping[str, Tensor],
    num_beams: int = 1,
    top_k: int = 1,
    max_decode_length: int | None = None,
    **settings: float,
) -> SolveOutput:
    """Solve a padded batch from a processor or collator on the device of the model, with further `settings` of
    [`Solver.solve`]."""
    names = (*INPUTS, *model.extra_inputs)
    tensors = {name: inputs[name].to(model.device) for name in names if name in inputs}
    counts = {"num_beams": num_beams, "max_length": max_decode_length, "num_return_sequences": top_k}
    return model.solve(**tensors, **counts, **settings)


def unknown_shares(processor: MwpProcessor, rows: Sequence[Sequence[int]]) -> list[float]:
    """Return the share of unknown tokens in each row of ids (0 at byte level), see `TextReader.unknown_share`."""
    unknown, aside = special_ids(processor)
    return [share_of_unknown(row, unknown, aside) for row in rows]
