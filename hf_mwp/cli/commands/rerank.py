"""`hf-mwp rerank`: weights of plausibility for a solver, from the beams of training problems."""

from __future__ import annotations

import random
from pathlib import Path

from ...building.solver import load_solver
from ...solving.search_options import find_device
from ...store.files import without_folder
from ...store.runs.main_process import check_one_process
from ...store.runs.run_folder import RunFolder
from ...tasks.math_word_problems import MathWordProblems
from ...usage_error import UsageError
from ..options import parse_command
from ..terminal.console import make_console, make_table, percent, solving_bar


RERANKING = ("num_beams", "min_beams", "regularization", "mc_dropout_fraction", "beams_dir", "batch_size")


def run(argv: list[str]) -> int:
    """Fits, measures on the validation split, saves; see `hf-mwp rerank --help`."""
    (args, data_args), values = parse_command(
        "rerank",
        "Fit a re-ranker of plausibility to a solver's beams on training problems, and save it beside the model: "
        "`hf-mwp solve --rerank`, `hf-mwp evaluate --rerank` and the pipeline (rerank=True) use it.",
        argv,
    )
    check_one_process("rerank", launches=False)
    device = find_device(args.device)
    from ...solving.default_search import DefaultSearch
    from ...solving.fit_reranker import fit_reranker
    from ...solving.plausibility import FEATURES, PlausibilityReranker

    console = make_console()
    model_folder = Path(args.model)
    if args.output_dir is None and not model_folder.is_dir():
        raise UsageError(f"{args.model} is no local folder: give --output_dir for the re-ranker.")
    place = model_folder if args.output_dir is None else Path(args.output_dir)
    # The model's folder keeps the records of the run that made the model.
    beside = place.exists() and model_folder.exists() and place.samefile(model_folder)
    with RunFolder(place, "rerank", values, begin=False, for_model=beside) as folder:
        if not beside:
            folder.check_record()
        folder.check_unused(args.overwrite, (PlausibilityReranker.file_name,))
        model, processor = load_solver(args.model)
        num_samples, data_args.max_train_samples = data_args.max_train_samples or args.num_samples, None
        task = MathWordProblems(data_args)
        task.tell(console)
        task.check_split(args.split, processor, args.model)
        rows = list(task.split(args.split))
        random.Random(args.seed).shuffle(rows)
        splits = {args.split: rows[:num_samples]}
        if args.split == "train" and task.validation is not None:
            splits["validation"] = list(task.validation)
        if not beside:
            folder.begin()
        source = {"model": without_folder(args.model), "dataset": task.name, "scheme": task.scheme}
        reranker = fit_reranker(
            model.to(device),
            processor,
            splits,
            **{name: getattr(args, name) for name in RERANKING},
            fitted_on={**source, "split": args.split},
            progress=solving_bar(console),
        )
        reranker.save_pretrained(folder.path)
        if beside:
            # Solving re-ranks from now on if that has proved better.
            shares = reranker.measured.get("validation") or reranker.measured[args.split]
            better = shares["with"] > shares["without"]
            DefaultSearch(args.min_beams or reranker.num_beams if better else 1, better).save_pretrained(folder.path)
        if not beside:
            folder.write_json("data.json", task.record())
            folder.finish({"model": args.model, "dataset": task.name, "reranking": reranker.measured})
    headings = ("problems", "without", "with", "in the beam")
    rows = (
        (split, f"{each['num_problems']:,}", *(percent(each[name]) for name in ("without", "with", "in_beam")))
        for split, each in reranker.measured.items()
    )
    title = f"Re-ranking {reranker.num_beams} beams: answers that are right, in %"
    console.print(make_table(title, ("", *headings), rows, right=headings))
    heaviest = sorted(FEATURES, key=lambda feature: -abs(reranker.weights[feature.name]))[:12]
    rows = ((f"{reranker.weights[feature.name]:+.2f}", feature.name, feature.meaning) for feature in heaviest)
    console.print(make_table("Heaviest weights", ("weight", "feature", "meaning"), rows, right=["weight"]))
    console.print(f"Re-ranker: {folder.path / reranker.file_name}")
    return 0
