"""`hf-mwp rerank`: weights of plausibility for a solver, from the beams of training problems."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from ...building.solver_loading import load_solver
from ...files import without_folder, write_json_lines
from ...option_checks import check_at_least_one
from ...runs.run_folder import RunFolder
from ...solving.set_solving import search
from ...tasks.data_options import DataArguments
from ...tasks.problem_data import load_problem_data
from ...usage_error import UsageError
from ..options.parsing import parse
from ..terminal.console import make_console, percent
from .evaluate import check_device, default_device
from .run import check_one_process


if TYPE_CHECKING:
    from ...data.batches.mwp_processor import MwpProcessor
    from ...models import MwpSolver
    from ...solving.plausibility import PlausibilityReranker

# Problems of an unfinished file: what a kill can lose.
AT_ONCE = 512


@dataclass
class RerankArguments:
    """Options of `hf-mwp rerank` beside those of the data; the fields' help says what each is."""

    model: str = field(default="hf_mwp_quickstart/student", metadata={"help": "Folder or Hub id of the solver."})
    output_dir: str | None = field(
        default=None, metadata={"help": "Folder for plausibility.json; the model's own folder if not given."}
    )
    split: str = field(
        default="train", metadata={"help": "Part of the data set to fit on.", "choices": ["train", "validation"]}
    )
    num_samples: int = field(
        default=4000, metadata={"help": "Problems to fit on, drawn at random; --max_train_samples may say it as well."}
    )
    num_beams: int = field(
        default=20, metadata={"help": "Beams of the search, the least that can be re-ranked later."}
    )
    regularization: float = field(
        default=1.0, metadata={"help": "How strongly weights are held to those of the solver's own probability."}
    )
    beams_dir: str | None = field(
        default=None,
        metadata={"help": "Folder where the beams are kept: what is there already is not searched for again."},
    )
    batch_size: int = field(default=64, metadata={"help": "Problems solved at once."})
    seed: int = field(default=0, metadata={"help": "Seed of the choice of problems."})
    device: str | None = field(default=None, metadata={"help": "Device, such as cpu or cuda:0; chosen if not given."})

    def __post_init__(self):
        check_at_least_one(self, "num_samples", "batch_size")
        if self.num_beams < 2:
            raise ValueError(
                f"`num_beams` must be at least 2, not {self.num_beams}: one beam leaves nothing to choose."
            )
        if self.regularization <= 0:
            raise ValueError(f"`regularization` must be more than 0, not {self.regularization}.")


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    return [RerankArguments, DataArguments]


def run(argv: list[str]) -> int:
    """Fits, measures on the validation part, saves; see `hf-mwp rerank --help`."""
    (args, data_args), values = parse(
        "rerank",
        "Fit a re-ranker of plausibility to a solver's beams on training problems, and save it beside the model: "
        "`hf-mwp solve --rerank`, `hf-mwp evaluate --rerank` and the pipeline (rerank=True) use it.",
        argument_types(),
        argv,
    )
    check_one_process("rerank", launches=False)
    check_device(args.device)
    console = make_console()
    if args.output_dir is None and not Path(args.model).is_dir():
        raise UsageError(f"{args.model} is no local folder: give --output_dir for the re-ranker.")
    folder = None if args.output_dir is None else RunFolder(args.output_dir, "rerank", values)
    try:
        rerank(args, data_args, folder, console)
    finally:
        if folder is not None:
            folder.close()
    return 0


def rerank(args: RerankArguments, data_args: DataArguments, folder: RunFolder | None, console: Console) -> None:
    """Fits a re-ranker, measures it where there are validation problems, and saves it."""
    from ...data import problem_from_row
    from ...solving.plausibility import PlausibilityReranker, fit_plausibility

    model, processor = load_solver(args.model)
    model.to(args.device or default_device())
    num_samples, data_args.max_train_samples = data_args.max_train_samples or args.num_samples, None
    data = load_problem_data(data_args)
    if data.language != processor.language:
        raise UsageError(
            f"{data.name} has problems in language {data.language!r}, the solver {args.model} solves those in "
            f"{processor.language!r}: name a --dataset of its language."
        )
    data.tell(console)
    rows = list(data.train if args.split == "train" else data.part("validation") or ())
    if not rows:
        raise UsageError(f"{data.name} has no {args.split} part to fit on.")
    random.Random(args.seed).shuffle(rows)
    rows = rows[:num_samples]
    beams = list(find_beams(model, processor, rows, args, console))
    problems = [problem_from_row(row, numerals=processor.numerals) for row in rows]
    reranker = fit_plausibility(
        problems,
        beams,
        args.num_beams,
        args.regularization,
        fitted_on={
            "model": without_folder(args.model),
            "dataset": data.name,
            "scheme": data.scheme,
            "part": args.split,
        },
    )
    measured = {args.split: _measure(reranker, processor, rows, beams)}
    if args.split == "train" and data.validation is not None:
        held_out = list(data.validation)
        beams = list(find_beams(model, processor, held_out, args, console))
        measured["validation"] = _measure(reranker, processor, held_out, beams)
    reranker = PlausibilityReranker(
        reranker.language, reranker.weights, reranker.num_beams, reranker.fitted_on, measured
    )
    place = args.model if folder is None else folder.path
    reranker.save_pretrained(place)
    if folder is not None:
        folder.write_json("data.json", data.record())
        folder.finish({"model": args.model, "dataset": data.name, "reranking": measured})
    _print(reranker, measured, console)
    console.print(f"Re-ranker: {Path(place) / reranker.file_name}")


def find_beams(
    model: MwpSolver, processor: MwpProcessor, rows: Sequence[dict[str, Any]], args: RerankArguments, console: Console
) -> Iterator[list]:
    """
    For each row the trees that the solver finds and their log probabilities; with `beams_dir` they are kept there, a
    file for 512 problems, and found again.
    """
    from ...distillation.cache_fingerprint import fingerprint, hash_model, hash_processing
    from ...solving import read_beam

    solver = {"model": hash_model(model), "processor": hash_processing(processor), "num_beams": args.num_beams}
    for start in range(0, len(rows), AT_ONCE):
        tried = list(rows[start : start + AT_ONCE])
        path = None
        if args.beams_dir is not None:
            digest = fingerprint({**solver, "texts": [row["text"] for row in tried]})
            path = Path(args.beams_dir) / f"beams-{digest[:16]}.jsonl"
        if path is not None and path.is_file():
            with path.open(encoding="utf-8") as lines:
                found = [json.loads(line) for line in lines]
        else:
            beams = args.num_beams
            found = [
                [
                    (ids[: ids.index(-100)] if -100 in ids else ids, score)
                    for ids, score in trees
                    if math.isfinite(score)
                ]
                for trees in search(model, processor, tried, args.batch_size, beams, None, beams, console=console)
            ]
            if path is not None:
                write_json_lines(path, found)
        for trees in found:
            yield read_beam(trees, processor)


def _measure(
    reranker: PlausibilityReranker, processor: MwpProcessor, rows: Sequence[dict[str, Any]], beams: Sequence[list]
) -> dict[str, float]:
    """Shares of right answers: of the most probable tree, of the most plausible answer, and of the best of a beam."""
    from ...data import problem_from_row
    from ...metrics import answers_match
    from ...solving.plausibility.fitting import right_answer

    counts = {"without": 0, "with": 0, "in_beam": 0}
    for row, beam in zip(rows, beams, strict=True):
        problem = problem_from_row(row, numerals=processor.numerals)
        target = right_answer(problem)
        if target is None:
            continue
        ranked = reranker.rerank(problem, beam)
        right = [answers_match(answer.value, target) for answer in ranked]
        counts["without"] += any(ok and answer.rank == 0 for ok, answer in zip(right, ranked, strict=True))
        counts["with"] += any(right[:1])
        counts["in_beam"] += any(right)
    return {"num_problems": len(rows)} | {name: round(count / len(rows), 4) for name, count in counts.items()}


def _print(reranker: PlausibilityReranker, measured: dict[str, dict[str, float]], console: Console) -> None:
    from ...solving.plausibility import FEATURES

    table = Table(title=f"Re-ranking {reranker.num_beams} beams: answers that are right, in %", title_justify="left")
    table.add_column("")
    for heading in ("problems", "without", "with", "in the beam"):
        table.add_column(heading, justify="right")
    for part, figures in measured.items():
        shares = (percent(figures[name]) for name in ("without", "with", "in_beam"))
        table.add_row(part, f"{figures['num_problems']:,}", *shares)
    console.print(table)
    weights = Table(title="Heaviest weights", title_justify="left")
    for heading, justify in (("weight", "right"), ("feature", "left"), ("meaning", "left")):
        weights.add_column(heading, justify=justify)
    for feature in sorted(FEATURES, key=lambda feature: -abs(reranker.weights[feature.name]))[:12]:
        weights.add_row(f"{reranker.weights[feature.name]:+.2f}", feature.name, feature.meaning)
    console.print(weights)
