"""Options of the commands that search with a solver."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..building.model_sources import locate_solver
from ..data.locating import locate_source, locate_texts
from ..options import given_options, option
from ..options.checks import check_at_least_one, check_share
from ..usage_error import UsageError


if TYPE_CHECKING:
    from ..data.batches.mwp_processor import MwpProcessor
    from ..plausibility import PlausibilityReranker


@dataclass
class SearchOptions:
    """Options of the solver, its search, batches and device."""

    model: str | None = option(
        "hf_mwp_quickstart/student", "Folder or Hub id of the solver.", common=True, locate=locate_solver
    )
    num_beams: int | None = option(
        None,
        "Beams of the search; 1 is greedy, the papers report 5. If neither beams nor re-ranking are chosen, the model "
        "folder's generation_config.json says both.",
    )
    batch_size: int = option(64, "Problems solved at once.", affects_result=False)
    device: str | None = option(None, "Device, such as cpu or cuda:0; chosen if not given.", affects_result=False)

    def __post_init__(self):
        check_at_least_one(self, "num_beams", "batch_size")


@dataclass
class RankedSearchOptions(SearchOptions):
    """[`SearchOptions`] with those of the re-ranker."""

    rerank: bool | None = option(
        None,
        "Choose among the answers of the beams by how plausible they are, with the plausibility.json "
        "beside the model.",
    )
    reranker: str | None = option(
        None,
        "Folder or Hub id of a re-ranker to use in its place (`hf-mwp rerank` makes one), or the package's own, en or "
        "zh.",
    )

    def load_reranker(self, processor: MwpProcessor) -> tuple[PlausibilityReranker | None, int]:
        """
        Return the chosen re-ranker, if any, and the number of beams; without a choice those of the model folder's
        [`DefaultSearch`].

        Raises:
            UsageError: there is no such re-ranker, or it does not fit the solver of this processor or the beams.
        """
        from ..plausibility import PlausibilityError, PlausibilityReranker
        from ..runtime.default_search import DefaultSearch

        rerank, num_beams = self.rerank if self.reranker is None else self.reranker, self.num_beams
        if rerank is None and num_beams is None:
            search = DefaultSearch.from_pretrained(self.model)
            rerank, num_beams = search.rerank, search.num_beams
        if not rerank:
            return None, num_beams or 1
        try:
            found = PlausibilityReranker.from_pretrained(self.model if rerank is True else rerank)
            return found, found.check(processor.language, num_beams)
        except PlausibilityError as error:
            raise UsageError(f"--rerank: {error}.") from error


@dataclass
class LabelArguments(RankedSearchOptions):
    """Options of `hf-mwp pseudo-label`."""

    problems: list[str] = option(
        [],
        "Files, data sets, or sets and parts; with task one file, folder or data set (must be given).",
        common=True,
        locate=locate_source,
    )
    output_dir: str | None = option(None, "Folder for labelled.jsonl and the figures (must be given).")
    model: str = option(
        "hf_mwp_quickstart/teacher", "Folder or Hub id of the solver.", common=True, locate=locate_solver
    )
    data_dir: str | None = option(None, "Folder of the data sets.")
    exclude: list[str] | None = option(
        None, "Data sets or files whose texts must not occur, whatever their numbers.", locate=locate_texts
    )
    num_beams: int = option(5, "Trees tried for each problem.")
    min_probability: float = option(0.0, "Least probability of a tree.")
    pseudo_label_fraction: float = option(
        0.0,
        "Share of the problems without an answer that get the solver's own, those that it is the surest of; "
        "--rerank chooses it.",
    )
    task: str | None = option(
        None,
        "seq2seq or math_seq2seq: generate target texts, or equations of problems, with a sequence-to-sequence model, "
        "the data of a following training: train.jsonl in the folder, with the other splits beside it.",
        common=True,
        choices=("seq2seq", "math_seq2seq"),
    )
    source: str | None = option(None, "Of seq2seq: field or language of the source texts.")
    target: str | None = option(None, "Of seq2seq: the same of the target texts that are written.")
    num_return_sequences: int = option(1, "With task: texts generated from each source text, the best of the beams.")
    keep_fraction: float = option(
        1.0, "With task: share of the source texts that are kept, those whose best text is the likeliest by token."
    )
    max_decode_length: int | None = option(None, "With task: most tokens of a text; as the model has it if not given.")
    max_train_samples: int | None = option(None, "With task: label so many training texts only, for a quick try.")
    overwrite: bool = option(False, "Replace the labels that are in the folder.", affects_result=False)

    def __post_init__(self):
        if not self.problems or self.output_dir is None:
            raise ValueError("`problems` and `output_dir` must be given.")
        super().__post_init__()
        _check_task(self)
        check_share(self, "min_probability", "pseudo_label_fraction")
        if (self.rerank or self.reranker is not None) and not self.pseudo_label_fraction:
            raise ValueError("`rerank` is for problems without an answer: give `pseudo_label_fraction`, too.")


# Options of pseudo-labels by what gets labels.
OF_PROBLEMS = ("exclude", "data_dir", "min_probability", "pseudo_label_fraction", "rerank", "reranker")
OF_PAIRS = ("source", "target")
OF_SEQUENCES = (*OF_PAIRS, "num_return_sequences", "keep_fraction", "max_decode_length", "max_train_samples")


def _check_task(args: LabelArguments) -> None:
    others, kind = (OF_SEQUENCES, "texts") if args.task is None else (OF_PROBLEMS, "problems")
    if args.task == "math_seq2seq":
        others, kind = [*OF_PAIRS, *(name for name in OF_PROBLEMS if name != "data_dir")], "other tasks"
    unused = [name for name in given_options(args) if name in others]
    if unused:
        raise ValueError(f"`{unused[0]}` is for labels of {kind}: leave it out, or set `task` accordingly.")
    if args.task is None:
        return
    if len(args.problems) > 1 or (args.task == "seq2seq" and None in (args.source, args.target)):
        needed = "a `source`, a `target` and " if args.task == "seq2seq" else ""
        raise ValueError(f"the task {args.task} needs {needed}one source of `problems`.")
    check_at_least_one(args, "num_return_sequences", "max_decode_length", "max_train_samples")
    if args.num_return_sequences > args.num_beams:
        raise ValueError(f"`num_return_sequences` must be at most `num_beams`, {args.num_beams}.")
    if not 0 < args.keep_fraction <= 1:
        raise ValueError(f"`keep_fraction` must be above 0 and at most 1, not {args.keep_fraction}.")


@dataclass
class RerankArguments(SearchOptions):
    """Options of `hf-mwp rerank` beside those of the data."""

    output_dir: str | None = option(None, "Folder for plausibility.json; the model's own folder if not given.")
    split: str = option("train", "Part of the data set to fit on.", choices=["train", "validation"])
    num_samples: int = option(4000, "Problems to fit on, drawn at random; --max_train_samples may say it as well.")
    num_beams: int = option(20, "Beams of the search.")
    min_beams: int | None = option(None, "The least that can be ranked later, measured, too; num_beams if not given.")
    regularization: float = option(1.0, "How strongly weights are held to those of the solver's own probability.")
    mc_dropout_fraction: float = option(
        0.0,
        "Share of these problems solved with dropout in the encoder: a solver is too sure of what it learned from.",
    )
    beams_dir: str | None = option(None, "Folder where beams are cached for later runs.")
    seed: int = option(0, "Seed of the choice of problems.")
    overwrite: bool = option(False, "Replace the plausibility.json that is in the folder.", affects_result=False)

    def __post_init__(self):
        from ..plausibility.plausibility_reranker import check_fit

        check_at_least_one(self, "num_samples", "batch_size")
        check_share(self, "mc_dropout_fraction")
        check_fit(self.num_beams, self.min_beams, self.regularization)


@dataclass
class EvaluateArguments(RankedSearchOptions):
    """Options of `hf-mwp evaluate` beside those of the data."""

    model: str | None = option(
        None, "Folder or Hub id of the solver (must be given).", common=True, locate=locate_solver
    )
    split: str = option("test", "Part of the data set to solve.", choices=["test", "validation", "train"])
    max_decode_length: int | None = option(None, "Most symbols of an equation; the decoder's own limit if not given.")
    answer_match: str = option(
        "annotated",
        "Right answer: the annotated one (whole numbers equal, others up to a relative 1e-4), "
        "or the value of the target equation (absolute tolerance).",
        choices=["annotated", "equation_value"],
    )
    predictions: str | None = option(
        None,
        "JSONL file for the predictions; predictions_<dataset>_<split>.jsonl in output_dir if not given, "
        "or else runs/predictions_<model>_<dataset>[_fold<fold>]_<split>-<digest of their paths>.jsonl.",
        writes=True,
    )
    output_dir: str | None = option(
        None, "Folder for the predictions, the figures (metrics.json) and a picture (reliability.png)."
    )
    random_sparsity: float = option(
        0.0, "Share of the weights of the encoder's layers to set to 0 at random first (the pilot study of STARK)."
    )
    seed: int = option(0, "Seed of the choice of these weights.")
    half_precision: bool = option(False, "Round the weights first, as `hf-mwp card` does for the published folder.")
    json: bool = option(False, "Print the figures as one JSON object instead of tables.", affects_result=False)
    overwrite: bool = option(
        False, "Replace a file that holds something other than predictions.", affects_result=False
    )

    def __post_init__(self):
        check_at_least_one(self, "num_beams", "batch_size", "max_decode_length")
        check_share(self, "random_sparsity")
        if self.model is None:
            raise ValueError(
                "a `model` and a `dataset` must be given: what solves, and what it is measured on, for example "
                "--model hf_mwp_quickstart/student --dataset asdiv_a."
            )
        if self.predictions is not None and Path(self.predictions).is_dir():
            raise ValueError(f"`predictions` takes a file, and {self.predictions} is a folder: name a file in it.")


def find_device(name: str | None) -> str:
    """Return the named device or, without a name, the first GPU or else the CPU; `UsageError` if it does not exist."""
    import torch

    found = ["cpu"]
    if torch.accelerator.is_available():
        kind = torch.accelerator.current_accelerator().type
        found += [f"{kind}:{number}" for number in range(torch.accelerator.device_count())]
    kinds = {each.partition(":")[0] for each in found}
    # `cpu:0` is the CPU.
    if name and name not in found and name.removesuffix(":0") not in kinds:
        raise UsageError(f"--device: this machine has no {name!r}; it has {', '.join(found)}.")
    if name is None and len(found) > 1 and "LOCAL_RANK" in os.environ:
        # Each process of a machine has its own device.
        return found[1:][int(os.environ["LOCAL_RANK"]) % (len(found) - 1)]
    return name or ("cuda" if torch.cuda.is_available() else "cpu")
