"""Search for the trees of problems: encode, pad, solve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..problems import MathWordProblem, refusal
from ..runtime.answer import Beam, read_trees
from ..runtime.text_reader import share_of_unknown


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
    Return the trees that a solver finds for each problem, in order; arguments as in [`solve_problems`].

    `top_k` trees of each problem are kept, at most `num_beams`; where all numbers were cut off there are none. With a
    `batch_size` problems of like length are solved together, without one all as they come.
    """
    model.eval()
    found = [Beam()] * len(problems)
    asked = [index for index, problem in enumerate(problems) if refusal(problem) is None]
    if not asked:
        return found
    columns = processor.encode([problems[index] for index in asked])
    unknown = unknown_shares(processor, columns["input_ids"])
    cut = [sum(position < 0 for position in positions) for positions in columns["number_positions"]]
    for place, index in enumerate(asked):
        found[index] = Beam((), unknown[place], cut[place], processor.max_length)
    order = [place for place, positions in enumerate(columns["number_positions"]) if cut[place] < len(positions)]
    if batch_size is not None:
        order.sort(key=columns["length"].__getitem__, reverse=True)
    size = batch_size or max(len(order), 1)
    batches: Iterable[list[int]] = [order[start : start + size] for start in range(0, len(order), size)]
    for batch in batches if progress is None else progress(batches):
        inputs = processor.pad({name: [values[place] for place in batch] for name, values in columns.items()})
        solved = solve_batch(model, inputs, num_beams, top_k, max_decode_length)
        for place, *tree_columns in zip(
            batch, solved.sequences.tolist(), solved.scores.tolist(), solved.finished.tolist(), strict=True
        ):
            trees = [(ids, score) for ids, score, finished in zip(*tree_columns, strict=True) if finished]
            found[asked[place]] = replace(found[asked[place]], trees=read_trees(trees, processor.decode))
    return found


def solve_batch(
    model: MwpSolver,
    inputs: Mapping[str, Tensor],
    num_beams: int = 1,
    top_k: int = 1,
    max_decode_length: int | None = None,
) -> SolveOutput:
    """Solve a padded batch of a processor or collator on the device of the model."""
    names = (*INPUTS, *model.extra_inputs)
    kept = {name: inputs[name].to(model.device) for name in names if name in inputs}
    return model.solve(**kept, num_beams=num_beams, max_length=max_decode_length, num_return_sequences=top_k)


def unknown_shares(processor: MwpProcessor, rows: Sequence[Sequence[int]]) -> list[float]:
    """
    Return for each row of token ids the share that the vocabulary lacks (`[UNK]`), placeholders of numbers and special
    tokens aside. A vocabulary of bytes knows every token: there the share says nothing of the language.
    """
    tokenizer = processor.tokenizer
    unknown = tokenizer.unk_token_id
    aside = {*tokenizer.all_special_ids, *tokenizer.convert_tokens_to_ids(processor.number_tokens)} - {unknown}
    return [share_of_unknown(row, unknown, aside) for row in rows]
