"""Fit a plausibility re-ranker to a solver's beams on training problems, and save it in the model folder. If it
improves the accuracy on validation problems, the solver re-ranks by default."""

from __future__ import annotations

import copy
import random
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.plausibility import FEATURES, PlausibilityReranker
from hf_mwp.solver.data.sources import read_part
from hf_mwp.solver.metrics.accuracy import percent
from hf_mwp.utils.checks import check_at_least_one
from hf_mwp.utils.files import shorten_paths
from hf_mwp.utils.main_process import check_one_process
from hf_mwp.utils.option import option, option_values
from hf_mwp.utils.run_folder import RunFolder
from hf_mwp.utils.usage_error import UsageError

from .options.locating import locate_source
from .options.search_options import SearchOptions, find_device
from .tasks.data_options import DataArguments
from .tasks.reporter import SILENT, Reporter
from .terminal.console import CommandConsole, make_table


if TYPE_CHECKING:
    from .tasks.math_word_problems import MathWordProblems


NUM_LISTED_FEATURES = 12
MAX_CONFIDENCE_PROBLEMS = 1500  # of each source, drawn at random


@dataclass
class RerankArguments(SearchOptions):
    """Options of `hf-mwp rerank`, except the data options."""

    output_dir: str | None = option(None, "Folder for plausibility.json. Defaults to the model folder.")
    split: str = option("train", "Dataset split for fitting.", choices=["train", "validation"])
    num_samples: int = option(4000, "Number of random problems for fitting; --max_train_samples sets it as well.")
    num_beams: int = option(20, "Number of beams.")
    min_beams: int | None = option(None, "Minimum beams for re-ranking later, also measured. Defaults to num_beams.")
    regularization: float = option(1.0, "Weight of the squared distance from the ranking by probability.")
    mc_dropout_fraction: float = option(
        0.0, "Share of the problems to solve with dropout, because a solver is overconfident on its training problems."
    )
    confidence_data: list[str] | None = option(
        None,
        "Problems of other sources, which are new to the solver: files, datasets, or datasets with a split "
        "(ape210k:validation), at most 1,500 each. The plausibility of answers is fitted on them and the validation "
        "problems.",
        locate=locate_source,
    )
    seed: int = option(0, "Seed for the choice of problems.")
    overwrite: bool = option(False, "Replace an existing plausibility.json.", affects_result=False)

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, "num_samples")


OPTIONS = (RerankArguments, DataArguments)
EXAMPLES = ("hf-mwp rerank --model runs/student --dataset asdiv_a --fold 0 --output_dir runs/reranked",)


def run(console: CommandConsole, *options) -> None:
    path, reranker = rerank(*options, reporter=console)
    headings = ("problems", "without", "with", "in the beam")
    rows = []
    for split, report in reranker.measured.items():
        shares = [percent(report[name]) for name in ("without", "with", "in_beam")]
        rows.append((split, f"{report['num_problems']:,}", *shares))
    title = f"Re-ranking {reranker.num_beams} beams: answers that are right, in %"
    console.print(make_table(title, ("", *headings), rows, right=headings))
    heaviest = sorted(FEATURES, key=lambda feature: -abs(reranker.weights[feature.name]))
    rows = []
    for feature in heaviest[:NUM_LISTED_FEATURES]:
        rows.append((f"{reranker.weights[feature.name]:+.2f}", feature.name, feature.meaning))
    console.print(make_table("Heaviest weights", ("weight", "feature", "meaning"), rows, right=["weight"]))
    console.print(f"Re-ranker: {path}")


def rerank(
    args: RerankArguments, data_args: DataArguments, reporter: Reporter = SILENT
) -> tuple[Path, PlausibilityReranker]:
    """Fit a re-ranker to a solver's beams ([`fit_reranker`]), evaluate it on the validation split, and save it:
    `hf-mwp rerank`. If it is saved in the model's folder and improves the accuracy, the model uses it by default;
    otherwise the model's default search does not change, unless it used a former re-ranker of the folder.
    Returns the file of the re-ranker, and the re-ranker with its accuracies."""
    from hf_mwp.solver.solving.fit_reranker import fit_reranker

    from .tasks.loaded_data import print_data_report
    from .tasks.math_word_problems import MathWordProblems

    check_one_process("rerank", launches=False)
    device = find_device(args.device)
    model_folder = Path(args.model)
    output_folder = model_folder
    if args.output_dir is not None:
        output_folder = Path(args.output_dir)
    elif not model_folder.is_dir():
        raise UsageError(f"{args.model} is not a local folder. Pass --output_dir for the re-ranker.")
    # The model's folder keeps the records of the model's own run.
    is_model_folder = output_folder.exists() and model_folder.exists() and output_folder.samefile(model_folder)
    values = option_values(args, data_args)
    with RunFolder(output_folder, "rerank", values, for_model=is_model_folder) as folder:
        if not is_model_folder:
            folder.check_record()
        folder.check_unused(args.overwrite, (PlausibilityReranker.file_name,))
        num_samples = data_args.max_train_samples or args.num_samples
        data_args = copy.copy(data_args)
        data_args.max_train_samples = None
        task = MathWordProblems(data_args)
        print_data_report(task, reporter)
        model, processor = task.load_model(args.model, args.split)
        splits = _splits(args, task, num_samples)
        other_problems = _other_problems(args, data_args, task, processor.language)
        if not is_model_folder:
            folder.begin()
        reranker = fit_reranker(
            model.to(device),
            processor,
            splits,
            num_beams=args.num_beams,
            min_beams=args.min_beams,
            score_margin=args.score_margin,
            regularization=args.regularization,
            mc_dropout_fraction=args.mc_dropout_fraction,
            other_problems=other_problems,
            batch_size=args.batch_size,
            fitted_on={
                "model": shorten_paths(args.model),
                "dataset": task.name,
                "scheme": task.scheme,
                "split": args.split,
            },
            progress=reporter.progress(),
        )
        reranker.save_pretrained(folder.path)
        _default_search(args, reranker).save_pretrained(folder.path)
        if not is_model_folder:
            folder.write_json("data.json", task.data_record())
            folder.finish({"model": args.model, "dataset": task.name, "reranking": reranker.measured})
    return folder.path / reranker.file_name, reranker


def _splits(args: RerankArguments, task: MathWordProblems, num_samples: int) -> dict[str, list[dict[str, Any]]]:
    """Return a sample of the split to fit and, for the training split, the validation problems."""
    rows = list(task.rows(args.split))
    random.Random(args.seed).shuffle(rows)
    splits = {args.split: rows[:num_samples]}
    if args.split == "train":
        validation_rows = task.rows("validation", needed=False)
        if validation_rows is not None:
            splits["validation"] = list(validation_rows)
    return splits


def _other_problems(
    args: RerankArguments, data_args: DataArguments, task: MathWordProblems, language: str
) -> dict[str, list[dict[str, Any]]]:
    """Return a sample of each source of `--confidence_data`."""
    folder = data_args.data_dir or task.source
    samples = {}
    for source in args.confidence_data or ():
        rows, _ = read_part(source, folder, data_args.on_error, language, file_format=data_args.file_format)
        random.Random(args.seed).shuffle(rows)
        samples[source] = rows[:MAX_CONFIDENCE_PROBLEMS]
    return samples


def _default_search(args: RerankArguments, reranker: PlausibilityReranker) -> DefaultSearch:
    """Return the default search of the model: with the re-ranker if it improves the accuracy."""
    # The validation problems with the beams of the default search, or else the problems that were measured.
    names = (f"validation, {args.min_beams} beams", "validation", args.split)
    report = next(reranker.measured[name] for name in names if reranker.measured.get(name))
    search = DefaultSearch.from_pretrained(args.model)
    if report["with"] > report["without"]:
        return DefaultSearch(args.min_beams or reranker.num_beams, True, args.score_margin)
    if search.rerank is True:
        # With a re-ranker that this one replaces.
        return DefaultSearch()
    return search
