"""Options of the commands that train models or score heads, except those of [`~tasks.data_options`] and models."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_mwp.runtime.tagging import split_tagger
from hf_mwp.solver.data.file_format import FileArguments
from hf_mwp.utils.checks import check_at_least_one, check_options
from hf_mwp.utils.downloads import missing_folder
from hf_mwp.utils.option import option
from hf_mwp.utils.usage_error import UsageError

from .building.model_sources import locate_solver
from .options.locating import locate_texts


NO_TAGGER = "none"
# Classes of [`pruning`] that score attention heads, by their names on the command line.
IMPORTANCES = {
    "combined": "CombinedImportance",
    "norm": "WeightNorm",
    "entropy": "AttentionEntropy",
    "peak": "AttentionPeak",
    "gradient": "GateGradient",
    "random": "RandomImportance",
}
IMPORTANCE_HELP = (
    "Score of heads: combined (norm and entropy, weighted by alpha), norm of their weights, entropy or peak of their "
    "attention weights, gradient of the loss with respect to a multiplier of their output, or random."
)


@dataclass
class FinalArguments:
    """Options of the evaluation at the end of a run, and of its output folder."""

    test: bool = option(True, "Evaluate on the test split at the end.")
    test_num_beams: int | None = option(None, "Number of beams for the test split; num_beams if not given.")
    overwrite: bool = option(False, "Replace checkpoints or the model of an earlier run.", affects_result=False)

    def __post_init__(self):
        check_options(self)
        check_at_least_one(self, "test_num_beams")


@dataclass
class ResumeArguments:
    """Options of a run's output folder."""

    _argument_group_name = "run"

    resume: bool = option(
        False, "Resume from the last checkpoint, made with the same options or a shorter length.", affects_result=False
    )
    overwrite: bool = option(False, "Replace checkpoints or the model of an earlier run.", affects_result=False)


@dataclass
class RunArguments(FinalArguments, ResumeArguments):
    """Options of a run's output folder and of its final evaluation."""


@dataclass
class DistillRunArguments(RunArguments):
    """[`RunArguments`] with an option to estimate the costs of a distillation."""

    estimate: bool = option(False, "Run 20 steps and estimate hours, memory and cache size.")


def locate_tagger(tagger: str, options: Mapping[str, Any]) -> Path | None:
    """Return the folder of a part-of-speech tagger; the `locate` function of its [`~options.option`]."""
    folder = "" if tagger == NO_TAGGER else split_tagger(tagger)[1]
    if fault := missing_folder(folder):
        raise UsageError(f"{fault} Check the tagger.")
    return Path(folder) if folder and Path(folder).exists() else None


@dataclass
class CorpusArguments(FileArguments):
    """Options of a pretraining corpus and its tagger."""

    _argument_group_name = "corpus"

    corpus: list[str] = option(
        [],
        "Text files (.txt, .jsonl, also .gz) and names of datasets, whose training splits are read.",
        required=True,
        common=True,
        locate=locate_texts,
    )
    data_dir: str | None = option(None, "Folder of the datasets' files; the loaders' default folders if not given.")
    exclude: list[str] | None = option(
        None, "Datasets or files whose texts are left out, whatever their numbers.", common=True, locate=locate_texts
    )
    tagger: str = option(
        "jieba",
        "Part-of-speech tagger: jieba, ltp:FOLDER or ltp:HUB_ID, or none, which needs pos_loss_weight 0. With "
        "pos_loss_weight 0, the tags are used only to find quantities.",
        common=True,
        locate=locate_tagger,
    )
    tag_cache: str | None = option(None, "Folder of the tags, which runs can share.", affects_result=False)
    max_texts: int | None = option(None, "Maximum number of texts, for a quick test.")

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, "max_texts")


@dataclass
class PruneArguments(FinalArguments):
    """Options that select the model and the score of heads. `overwrite` reuses completed generations."""

    _argument_group_name = "pruning"

    model: str | None = option(None, "Model: folder or Hub id.", required=True, common=True, locate=locate_solver)
    importance: str = option("combined", IMPORTANCE_HELP, common=True, choices=tuple(IMPORTANCES))


@dataclass
class HeadsArguments:
    """Options of `hf-mwp heads`, besides the data options."""

    model: str | None = option(None, "Model: folder or Hub id.", required=True, common=True)
    importance: str = option("combined", IMPORTANCE_HELP, common=True, choices=tuple(IMPORTANCES))
    alpha: float = option(0.5, "Weight of the norm in importance combined; the entropy has weight 1 - alpha.")
    split: str = option("train", "Dataset split on whose texts heads are scored.")
    num_batches: int = option(8, "Number of batches.")
    batch_size: int = option(32, "Number of texts in a batch.")
    output_dir: str | None = option(None, "Folder of heads.json and heads.png; runs/heads_MODEL if not given.")
    seed: int = option(0, "Seed of importance random.")

    def __post_init__(self):
        check_options(self)
        check_at_least_one(self, "num_batches", "batch_size")


@dataclass
class StarkArguments(FinalArguments):
    """Options of the teacher and the scores of its heads and neurons. `overwrite` reuses completed stages."""

    _argument_group_name = "sparse teachers"

    teacher: str | None = option(None, "Model: folder or Hub id.", required=True, common=True, locate=locate_solver)
    scores: str = option(
        "knowledgeable",
        "Score of heads and neurons: knowledgeable (gradients, see expressiveness_weight) or random (STARK-RAND).",
        common=True,
        choices=("knowledgeable", "random"),
    )
