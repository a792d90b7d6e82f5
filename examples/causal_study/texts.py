"""Problems and equations as texts of a causal language model, and their tokenizer."""

import random
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from hf_mwp.runtime.expressions import ExpressionError
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.runtime.problems.math_word_problem import ProblemError
from hf_mwp.solver.data import load_mwp_dataset, problem_from_row
from hf_mwp.solver.data.file_contents import read_records


MAX_NUMBERS = 20  # problems with more numbers are left out
TRANSLATED = "math23k_en"
TRANSLATED_FILE = "math23k_en_train.jsonl.gz"
TRANSLATED_TEST = 1_000  # held-out problems of the file, which has no splits
BEFORE_PROBLEM = "Question: "
BEFORE_EQUATION = " Equation:"
END = "<end>"
PADDING = "<pad>"

_PLACEHOLDER = re.compile(r"\[NUM(\d+)\]")


def text_row(problem: MathWordProblem, dataset: str) -> dict[str, Any] | None:
    """
    Return the texts of a problem, or `None` if it has no number, more than `MAX_NUMBERS`, or no valid equation.

    `prompt` has the problem with N0, N1, ... in place of its numbers, `completion` the equation with the same names.
    `numbers`, `answer` and `key` (the masked text) are for scoring and for the comparison of texts.
    """
    if not 0 < len(problem.numbers) <= MAX_NUMBERS:
        return None
    try:
        equation = problem.expression.to_infix()
    except (ExpressionError, ProblemError):
        return None
    text = _PLACEHOLDER.sub(r"N\1", problem.masked.text(indexed=True))
    return {
        "dataset": dataset,
        "prompt": f"{BEFORE_PROBLEM}{' '.join(text.split())}{BEFORE_EQUATION}",
        "completion": f" {equation}",
        "numbers": list(problem.numbers),
        "answer": problem.answer,
        "key": problem.masked_key,
    }


def translated_problems(file: Path) -> Iterator[MathWordProblem]:
    """Yield the problems of Math23k in English."""
    for record in read_records(file):
        row = record.fields
        yield MathWordProblem(row["original_text"], row["equation"], row["ans"], id=row["id"], language="en")


def read_rows(
    datasets: Iterable[str], data_dir: str | None, new_data: str | None, max_rows: int | None = None
) -> dict[str, list[dict[str, Any]]]:
    """
    Return the rows of [`text_row`] of the splits `"train"` and `"test"`. Training texts are unique and differ from all
    test texts in more than their numbers.

    Args:
        datasets (`Iterable[str]`): Names for [`load_mwp_dataset`], which have a test split.
        data_dir (`str`, *optional*): Their folder.
        new_data (`str`, *optional*): Folder of `TRANSLATED_FILE`, of which some problems are held out.
        max_rows (`int`, *optional*): Number of rows to read of each split.
    """
    rows: dict[str, list[dict[str, Any]]] = {"train": [], "test": []}
    for name in datasets:
        splits = load_mwp_dataset(name, data_dir)
        for split, split_rows in rows.items():
            problems = map(problem_from_row, splits[split].to_list()[:max_rows])
            split_rows += _text_rows(problems, name)
    if new_data is not None:
        translated = _text_rows(translated_problems(Path(new_data) / TRANSLATED_FILE), TRANSLATED)
        random.Random(0).shuffle(translated)
        rows["test"] += translated[:TRANSLATED_TEST]
        rows["train"] += translated[TRANSLATED_TEST:]
    test_keys = {row["key"] for row in rows["test"]}
    rows["train"] = _new_rows(rows["train"], test_keys)
    return rows


def _text_rows(problems: Iterable[MathWordProblem], dataset: str) -> list[dict[str, Any]]:
    rows = []
    for problem in problems:
        row = text_row(problem, dataset)
        if row is not None:
            rows.append(row)
    return rows


def _new_rows(rows: Iterable[dict[str, Any]], keys: Iterable[str]) -> list[dict[str, Any]]:
    """Return the rows whose masked texts are neither among `keys` nor in an earlier row."""
    seen = set(keys)
    selected = []
    for row in rows:
        if row["key"] not in seen:
            seen.add(row["key"])
            selected.append(row)
    return selected


def full_text(row: Mapping[str, Any]) -> str:
    """Return the problem and its equation."""
    return row["prompt"] + row["completion"]


def train_tokenizer(texts: Iterable[str], vocab_size: int) -> PreTrainedTokenizerFast:
    """Learn a byte-level BPE in which each digit and each of N0, N1, ... is one token. The end of a text and padding
    are its special tokens."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    # The names of the numbers absorb the space before them.
    names = [AddedToken(f"N{index}", lstrip=True, normalized=False) for index in range(MAX_NUMBERS)]
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size - len(names),
        special_tokens=[PADDING, END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts_without_names = (re.sub(r"\s?\bN\d+\b", " ", text) for text in texts)
    tokenizer.train_from_iterator(texts_without_names, trainer)
    tokenizer.add_tokens(names)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=PADDING, eos_token=END, clean_up_tokenization_spaces=False
    )
