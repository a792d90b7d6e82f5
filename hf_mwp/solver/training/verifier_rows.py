"""Training rows of an answer verifier: problems with the answers of their beams, and a collator."""

import random
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from hf_mwp.runtime.answer import Trees
from hf_mwp.runtime.plausibility.answer_verifier import FEATURE_INDICES
from hf_mwp.runtime.plausibility.equation_nodes import VALUE_SIZE, read_equation
from hf_mwp.runtime.plausibility.features import describe_answers
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.metrics import answers_match
from hf_mwp.solver.models.answer_verifier.modeling_answer_verifier import PADDING
from hf_mwp.solver.solving.reranker_beams import right_answer


NUM_TOP = 4
"""Number of the most probable wrong answers in a training row."""

NUM_OTHERS = 2
"""Number of other wrong answers in a training row, drawn at random each time."""


def verifier_rows(
    processor: MwpProcessor, problems: Sequence[MathWordProblem], beams: Sequence[Trees]
) -> list[dict[str, Any]]:
    """
    Return a row for each problem whose beam has a right and a wrong answer.

    A row has `input_ids` and `number_positions` of the text and, for each answer, most probable first, the `symbols`,
    `depths` and `values` of its most probable tree ([`EquationNodes`]), the `features` of the re-ranker, and in
    `labels` whether it is right.
    """
    symbols = [*processor.vocabulary.operators, *processor.vocabulary.constants]
    symbol_ids = {symbol: index for index, symbol in enumerate(symbols)}
    encoded = processor.encode(problems)
    rows = []
    for index, (problem, beam) in enumerate(zip(problems, beams, strict=True)):
        row = {name: [] for name in ("symbols", "depths", "values", "features", "labels")}
        target = right_answer(problem)
        numbers = [float(value) for value in problem.values]
        for answer, features in describe_answers(problem, beam):
            nodes = read_equation(answer.best.expression, numbers, symbol_ids)
            if nodes is None:
                continue
            row["symbols"].append(nodes.symbols)
            row["depths"].append(nodes.depths)
            row["values"].append(nodes.values)
            row["features"].append([features[place] for place in FEATURE_INDICES])
            row["labels"].append(answers_match(answer.value, target))
        if any(row["labels"]) and not all(row["labels"]):
            row["input_ids"] = encoded["input_ids"][index]
            row["number_positions"] = encoded["number_positions"][index]
            rows.append(row)
    return rows


class VerifierCollator:
    """Collator of rows of [`verifier_rows`]. A training batch has a right answer of each problem, the most probable
    wrong ones, and some of the others, which depend only on the seed, the attribute `epoch` and the row."""

    def __init__(self, processor: MwpProcessor, seed: int = 0, all_answers: bool = False) -> None:
        self.processor = processor
        self.seed = seed
        self.all_answers = all_answers
        self.epoch = 0

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        columns = {}
        for name in ("input_ids", "number_positions"):
            columns[name] = [row[name] for row in rows]
        batch = dict(self.processor.pad(columns))
        choices = [self._choose(row) for row in rows]
        num_answers = max(map(len, choices))
        longest = 0
        for row in rows:
            longest = max(longest, *map(len, row["symbols"]))
        shape = (len(rows), num_answers)
        batch["symbols"] = torch.full((*shape, longest), PADDING)
        batch["depths"] = torch.zeros((*shape, longest), dtype=torch.long)
        batch["values"] = torch.zeros(*shape, longest, VALUE_SIZE)
        batch["features"] = torch.zeros(*shape, len(FEATURE_INDICES))
        batch["labels"] = torch.zeros(shape, dtype=torch.bool)
        for row_index, (row, chosen) in enumerate(zip(rows, choices, strict=True)):
            for place, answer in enumerate(chosen):
                length = len(row["symbols"][answer])
                batch["symbols"][row_index, place, :length] = torch.tensor(row["symbols"][answer])
                batch["depths"][row_index, place, :length] = torch.tensor(row["depths"][answer])
                batch["values"][row_index, place, :length] = torch.tensor(row["values"][answer])
                batch["features"][row_index, place] = torch.tensor(row["features"][answer])
                batch["labels"][row_index, place] = row["labels"][answer]
        return batch

    def _choose(self, row: dict[str, Any]) -> list[int]:
        """Return the indices of the answers to read."""
        labels = row["labels"]
        if self.all_answers:
            return list(range(len(labels)))
        right = [index for index, is_right in enumerate(labels) if is_right]
        wrong = [index for index, is_right in enumerate(labels) if not is_right]
        others = wrong[NUM_TOP:]
        rng = random.Random(f"{self.seed} {self.epoch} {row['input_ids']}")
        drawn = rng.sample(others, min(NUM_OTHERS, len(others)))
        return right[:1] + wrong[:NUM_TOP] + drawn
