"""Task that fits a re-ranker to a solver."""

import copy
import random
from pathlib import Path

from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.plausibility import PlausibilityReranker
from hf_mwp.solver.solving.fit_reranker import fit_reranker
from hf_mwp.utils.files import shorten_paths
from hf_mwp.utils.main_process import check_one_process
from hf_mwp.utils.option import option_values
from hf_mwp.utils.run_folder import RunFolder
from hf_mwp.utils.usage_error import UsageError

from .options.search_options import RerankArguments, find_device
from .tasks.data_options import DataArguments
from .tasks.make_task import print_data_report
from .tasks.math_word_problems import MathWordProblems
from .tasks.reporter import SILENT, Reporter


FIT_OPTIONS = ("num_beams", "min_beams", "regularization", "mc_dropout_fraction", "batch_size")


def rerank(
    args: RerankArguments, data_args: DataArguments, reporter: Reporter = SILENT
) -> tuple[Path, PlausibilityReranker]:
    """Fit a re-ranker to a solver's beams ([`fit_reranker`]), evaluate it on the validation split, and save it:
    `hf-mwp rerank`. If it is saved in the model's folder and improves the accuracy, the model uses it by default;
    otherwise the model's default search does not change, unless it used a former re-ranker of the folder.
    Returns the file of the re-ranker, and the re-ranker with its accuracies."""
    check_one_process("rerank", launches=False)
    device = find_device(args.device)
    model_folder = Path(args.model)
    if args.output_dir is None and not model_folder.is_dir():
        raise UsageError(f"{args.model} is not a local folder. Pass --output_dir for the re-ranker.")
    place = model_folder if args.output_dir is None else Path(args.output_dir)
    # The model's folder keeps the records of the model's own run.
    beside = place.exists() and model_folder.exists() and place.samefile(model_folder)
    values = option_values(args, data_args)
    with RunFolder(place, "rerank", values, for_model=beside) as folder:
        if not beside:
            folder.check_record()
        folder.check_unused(args.overwrite, (PlausibilityReranker.file_name,))
        num_samples, data_args = data_args.max_train_samples or args.num_samples, copy.copy(data_args)
        data_args.max_train_samples = None
        task = MathWordProblems(data_args)
        print_data_report(task, reporter)
        model, processor = task.load_model(args.model, args.split)
        rows = list(task.rows(args.split))
        random.Random(args.seed).shuffle(rows)
        splits = {args.split: rows[:num_samples]}
        if args.split == "train" and (held_out := task.rows("validation", needed=False)) is not None:
            splits["validation"] = list(held_out)
        if not beside:
            folder.begin()
        source = {"model": shorten_paths(args.model), "dataset": task.name, "scheme": task.scheme}
        reranker = fit_reranker(
            model.to(device),
            processor,
            splits,
            **{name: getattr(args, name) for name in FIT_OPTIONS},
            fitted_on={**source, "split": args.split},
            progress=reporter.progress(),
        )
        reranker.save_pretrained(folder.path)
        measured, chosen = reranker.measured, f"validation, {args.min_beams} beams"  # the beams of the default search
        shares = measured.get(chosen) or measured.get("validation") or measured[args.split]
        default = DefaultSearch.from_pretrained(args.model)
        if shares["with"] > shares["without"]:
            default = DefaultSearch(args.min_beams or reranker.num_beams, True)
        elif default.rerank is True:  # with a re-ranker that this one replaces
            default = DefaultSearch()
        default.save_pretrained(folder.path)
        if not beside:
            folder.write_json("data.json", task.data_record())
            folder.finish({"model": args.model, "dataset": task.name, "reranking": reranker.measured})
    return folder.path / reranker.file_name, reranker
