"""`hf-mwp label`: equations for problems that have an answer and no equation."""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from ...building.solver_loading import load_solver
from ...files import write_json_lines
from ...option_checks import check_at_least_one
from ...runs.run_folder import RunFolder
from ...solving.set_solving import search
from ...usage_error import UsageError
from ..options.parsing import parse
from ..terminal.console import make_console
from .evaluate import check_device, default_device
from .run import check_one_process


if TYPE_CHECKING:
    from ...data.batches.mwp_processor import MwpProcessor
    from ...models import MwpSolver

# Problems of an unfinished file: what a kill can lose.
AT_ONCE = 1024

FATES = {
    "labelled": "a tree has the answer as its value",
    "not found": "no tree has it",
    "excluded": "the masked text stands in an excluded set",
    "duplicate": "the masked text was there before",
    "no answer": "there is not one answer that can be read, or no number in the text",
}


@dataclass
class LabelArguments:
    """
    Options of `hf-mwp label`.

    Args:
        problems (`list[str]`):
            Files, data sets (their training part) or data sets and parts (`cm17k:all`) with answers.
        output_dir (`str`):
            Folder for `labelled.jsonl`, which `extra_train` takes, the figures and the run's record.
        model (`str`):
            Folder or Hub id of the solver that labels.
        data_dir (`str`, *optional*):
            Folder of the data sets, if they are not where the loaders look.
        exclude (`list[str]`, *optional*):
            Data sets or files whose texts must not occur, whatever their numbers: validation and test sets.
        num_beams (`int`, *optional*, defaults to 5):
            Trees that are tried for each problem.
        min_probability (`float`, *optional*, defaults to 0.0):
            Least probability of a tree: a right value of an unlikely tree may be chance.
        batch_size (`int`, *optional*, defaults to 64):
            Problems solved at once.
        device (`str`, *optional*):
            Device; chosen if not given.
        overwrite (`bool`, *optional*, defaults to `False`):
            Replace the `labelled.jsonl` that is in the folder.
    """

    problems: list[str] = field(
        default_factory=list, metadata={"help": "Files, data sets, or sets and parts (must be given)."}
    )
    output_dir: str | None = field(
        default=None, metadata={"help": "Folder for labelled.jsonl and the figures (must be given)."}
    )
    model: str = field(default="hf_mwp_quickstart/teacher", metadata={"help": "Folder or Hub id of the solver."})
    data_dir: str | None = field(default=None, metadata={"help": "Folder of the data sets."})
    exclude: list[str] | None = field(
        default=None, metadata={"help": "Data sets or files whose texts must not occur, whatever their numbers."}
    )
    num_beams: int = field(default=5, metadata={"help": "Trees tried for each problem."})
    min_probability: float = field(default=0.0, metadata={"help": "Least probability of a tree."})
    batch_size: int = field(default=64, metadata={"help": "Problems solved at once."})
    device: str | None = field(default=None, metadata={"help": "Device, such as cpu or cuda:0; chosen if not given."})
    overwrite: bool = field(default=False, metadata={"help": "Replace the labelled.jsonl that is in the folder."})

    def __post_init__(self):
        if not self.problems or self.output_dir is None:
            raise ValueError("`problems` and `output_dir` must be given.")
        check_at_least_one(self, "num_beams", "batch_size")
        if not 0 <= self.min_probability < 1:
            raise ValueError(f"`min_probability` must be at least 0 and below 1, not {self.min_probability}.")


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    return [LabelArguments]


def run(argv: list[str]) -> int:
    """Labels and writes; see `hf-mwp label --help`."""
    (args,), values = parse(
        "label",
        "Give equations to problems that have an answer and no equation (self-training): of the trees that a solver "
        "finds, the most probable one whose value is the answer. labelled.jsonl is training data for --extra_train.",
        argument_types(),
        argv,
    )
    check_one_process("label", launches=False)
    check_device(args.device)
    from ...data.training_lineage import ancestry_of

    console = make_console()
    with RunFolder(args.output_dir, "label", values, begin=False) as folder:
        folder.check_record()
        unfinished, path = folder.path / "unfinished", folder.path / "labelled.jsonl"
        # Beside unfinished work, the file is the one that the same run had written when it was killed.
        folder.check_unused(args.overwrite or unfinished.exists(), (path.name,))
        model, processor = load_solver(args.model)
        model.to(args.device or default_device())
        counts: Counter[str] = Counter()
        rows = read_rows(args, processor, counts)
        if not rows:
            fates = ", ".join(f"{count} {fate}" for fate, count in counts.items())
            raise UsageError(f"There is no problem to label{f': {fates}' if fates else ''}.")
        folder.begin()
        write_json_lines(path, label_rows(model, processor, rows, args, counts, unfinished, console))
        # What its labeller has seen goes to those that learn from the labels.
        ancestry_of(model).save(folder.path)
        shutil.rmtree(unfinished)
        folder.finish({"problems": args.problems, "fates": {fate: counts[fate] for fate in FATES}})
    table = Table(title=", ".join(Path(source).name for source in args.problems), title_justify="left")
    for column, justify in (("problems", "right"), ("", "left"), ("meaning", "left")):
        table.add_column(column, justify=justify)
    for fate, meaning in FATES.items():
        table.add_row(f"{counts[fate]:,}", fate, meaning)
    console.print(table)
    console.print(f"Labelled problems: {path}")
    return 0


def read_rows(args: LabelArguments, processor: MwpProcessor, counts: Counter[str]) -> list[dict[str, Any]]:
    """The problems to label, each masked text once; `counts` takes what became of the others."""
    from ...data import problem_from_row
    from ...data.corpus.pretraining_texts import held_out_digests, loose_digest, masked_digest
    from ...data.datasets.sources import read_part
    from ...data.reading.usability import find_answer_fault
    from ...problems import refusal

    language = processor.language
    excluded = held_out_digests(args.exclude or (), args.data_dir)
    seen: set[bytes] = set()
    rows = []
    for row in (row for source in args.problems for row in read_part(source, args.data_dir, language=language)[0]):
        if row["language"] != language:
            raise UsageError(
                f"{row['file']}, line {row['line']}, field language: the text is not in the language of the solver "
                f"({language})."
            )
        problem = problem_from_row({**row, "equation": None}, processor.numerals)
        key = masked_digest(row["text"], language)
        if find_answer_fault(problem) is not None or refusal(problem) is not None:
            counts["no answer"] += 1
        elif loose_digest(row["text"]) in excluded:
            counts["excluded"] += 1
        elif key in seen:
            counts["duplicate"] += 1
        else:
            seen.add(key)
            rows.append({**row, "equation": None})
    return rows


def label_rows(
    model: MwpSolver,
    processor: MwpProcessor,
    rows: Sequence[dict[str, Any]],
    args: LabelArguments,
    counts: Counter[str],
    unfinished: Path,
    console: Console,
) -> list[dict[str, Any]]:
    """
    Solves problems and keeps those of which a tree has the answer as its value.

    Args:
        model ([`MwpSolver`]), processor ([`MwpProcessor`]): The solver.
        rows (`Sequence[dict]`): Rows of the schema, without equations.
        args ([`LabelArguments`]): Beams and batch size.
        counts (`Counter`): Takes how many were labelled.
        unfinished (`Path`): Folder for what is done, 1,024 problems a file: the same call goes on where a killed one
            stopped.
        console (`rich.console.Console`): Shows a progress bar.

    Returns:
        `list[dict]`: `id`, `text`, `equation`, `answer`, `language`, and of the tree `log_probability` and `rank`, its
        place among those found, from 0.
    """
    from ...distillation.cache_fingerprint import fingerprint, hash_model, hash_processing

    solver = {"model": hash_model(model), "processor": hash_processing(processor), "num_beams": args.num_beams}
    records: list[dict[str, Any]] = []
    for start in range(0, len(rows), AT_ONCE):
        tried = rows[start : start + AT_ONCE]
        digest = fingerprint({**solver, "min_probability": args.min_probability, "rows": tried})
        path = unfinished / f"{start:09d}-{digest[:16]}.jsonl"
        if not path.exists():
            write_json_lines(path, _label(model, processor, tried, args, console))
        with path.open(encoding="utf-8") as lines:
            records += map(json.loads, lines)
        if len(rows) > AT_ONCE:
            console.print(f"{start + len(tried):,} of {len(rows):,} problems tried, {len(records):,} labelled")
    counts["labelled"] = len(records)
    counts["not found"] = len(rows) - len(records)
    return records


def _label(
    model: MwpSolver, processor: MwpProcessor, rows: Sequence[dict[str, Any]], args: LabelArguments, console: Console
) -> list[dict[str, Any]]:
    from ...solving.solver_prediction import read_predictions

    beams = args.num_beams
    found = search(model, processor, rows, args.batch_size, beams, None, num_return_sequences=beams, console=console)
    records = []
    for row, trees in zip(rows, found, strict=True):
        sequences, scores = zip(*trees, strict=True)
        for rank, each in enumerate(read_predictions([row] * len(trees), sequences, scores, processor)):
            if each.score.answer_correct and math.exp(each.log_probability) >= args.min_probability:
                record = {name: row[name] for name in ("id", "text", "answer", "language")}
                record |= {"equation": each.to_dict()["prediction"], "log_probability": each.log_probability}
                records.append(record | {"rank": rank})
                break
    return records
