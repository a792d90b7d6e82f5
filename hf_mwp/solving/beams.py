"""Beam search for many problems: encoding, padding and batched solving."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..models.fingerprints import hash_model, hash_processing
from ..problems import MathWordProblem, refusal
from ..runtime.answer import Beam, read_trees
from ..runtime.text_reader import share_of_unknown
from .kept_records import kept_records


if TYPE_CHECKING:
    from torch import Tensor

    from ..data.batches.mwp_processor import MwpProcessor
    from ..models import MwpSolver, SolveOutput

INPUTS = ("input_ids", "attention_mask", "number_positions")


def find_beams(
    model: MwpSolver,
    processor: MwpProcessor,
    problems: Sequence[MathWordProblem],
    num_beams: int = 1,
    top_k: int = 1,
    max_decode_length: int | None = None,
    batch_size: int | None = None,
    progress: Callable[[Sequence], Iterable] | None = None,
) -> list[Beam]:
    """
    Search for the `top_k` best trees of each problem. A beam has no tree if the problem is refused
    ([`~problems.refusal`]) or all its numbers are truncated. With `batch_size`, problems of similar length are solved
    together; otherwise, all problems are a single batch. The arguments are those of [`solve_problems`].
    """
    if model.training:
        model.eval()
    found = [Beam()] * len(problems)
    asked = [index for index, problem in enumerate(problems) if refusal(problem) is None]
    if not asked:
        return found
    columns = processor.encode([problems[index] for index in asked])
    unknown = unknown_shares(processor, columns["input_ids"])
    order = []
    for place, positions in enumerate(columns["number_positions"]):
        num_cut = sum(position < 0 for position in positions)
        found[asked[place]] = Beam((), unknown[place], num_cut, processor.max_length)
        if num_cut < len(positions):
            order.append(place)
    if batch_size is not None:
        order.sort(key=columns["length"].__getitem__, reverse=True)
    size = batch_size or max(len(order), 1)
    batches: Iterable[list[int]] = [order[start : start + size] for start in range(0, len(order), size)]
    for batch in batches if progress is None else progress(batches):
        inputs = processor.pad({name: [values[place] for place in batch] for name, values in columns.items()})
        if len({columns["length"][place] for place in batch}) == 1:
            # Without padding, no mask is needed, and creating one takes 4 % of a greedy search.
            inputs.pop("attention_mask")
        solved = solve_batch(model, inputs, num_beams, top_k, max_decode_length)
        capped = [False] * len(batch) if solved.capped is None else solved.capped.tolist()
        outputs = [each.tolist() for each in (solved.sequences, solved.scores, solved.finished)]
        for place, is_capped, *columns_of_row in zip(batch, capped, *outputs, strict=True):
            complete = [(ids, score) for ids, score, finished in zip(*columns_of_row, strict=True) if finished]
            trees = read_trees(complete, processor.decode)
            found[asked[place]] = replace(found[asked[place]], trees=trees, capped=is_capped)
    return found


def find_kept_beams(
    folder: str | Path,
    model: MwpSolver,
    processor: MwpProcessor,
    problems: Sequence[MathWordProblem],
    num_beams: int,
    top_k: int,
    max_decode_length: int | None,
    *options: Any,
) -> list[Beam]:
    """
    Search for beams as in [`find_beams`] and cache them in a folder. An interrupted search resumes, and processes
    under `accelerate launch` share the work.
    """
    facts = {"model": hash_model(model), "processor": hash_processing(processor), "dtype": str(model.dtype)}
    facts |= {"num_beams": num_beams, "top_k": top_k, "max_decode_length": max_decode_length}

    def search(tried: Sequence[MathWordProblem]) -> Iterator[dict[str, Any]]:
        for beam in find_beams(model, processor, tried, num_beams, top_k, max_decode_length, *options):
            trees = [(processor.vocabulary.encode(tree), score) for tree, score in beam.trees]
            yield vars(beam) | {"trees": trees}

    records = kept_records(folder, facts, problems, search)
    return [replace(Beam(**record), trees=read_trees(record["trees"], processor.decode)) for record in records]


def solve_batch(
    model: MwpSolver,
    inputs: Mapping[str, Tensor],
    num_beams: int = 1,
    top_k: int = 1,
    max_decode_length: int | None = None,
) -> SolveOutput:
    """Solve a padded batch from a processor or collator on the device of the model."""
    names = (*INPUTS, *model.extra_inputs)
    kept = {name: inputs[name].to(model.device) for name in names if name in inputs}
    return model.solve(**kept, num_beams=num_beams, max_length=max_decode_length, num_return_sequences=top_k)


def unknown_shares(processor: MwpProcessor, rows: Sequence[Sequence[int]]) -> list[float]:
    """
    Return the share of unknown tokens (`[UNK]`) in each row of token ids. Number placeholders and special tokens are
    not counted. A byte-level vocabulary has no unknown tokens.
    """
    tokenizer = processor.tokenizer
    unknown = tokenizer.unk_token_id
    aside = {*tokenizer.all_special_ids, *tokenizer.convert_tokens_to_ids(processor.number_tokens)} - {unknown}
    return [share_of_unknown(row, unknown, aside) for row in rows]
