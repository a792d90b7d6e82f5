"""The commands that can be stages of recipes, and the options of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ..building.model_sources import find_encoder
from ..building.pretraining import PretrainingArguments
from ..building.solver import SolverArguments
from ..building.student import StudentArguments, TeacherArguments
from ..option_checks import check_at_least_one, check_given, check_share
from ..option_roles import CommandOption, Role, option, options_in
from ..solving.search_options import RankedSearchOptions, SearchOptions
from ..tasks.data_options import DataArguments, MeasuredTaskArguments, TaskArguments
from ..tasks.pretraining_corpus import CorpusArguments
from .run_arguments import ResumeArguments, RunArguments


@dataclass
class MixArguments:
    """Options of `hf-mwp mix`."""

    pretrained: str | None = option(
        None, "Folder or Hub id of the pretrained encoder, to be mixed with `distilled`.", Role.ENCODER
    )
    distilled: str | None = option(None, "Folder or Hub id of the solver distilled from it.", Role.SOLVER | Role.START)
    solvers: list[str] | None = option(
        None,
        "Folders or Hub ids of solvers, in place of both: trained from the same start with other seeds or options, "
        "and averaged whole.",
        Role.SOLVER | Role.START,
    )
    theta: float = option(0.2, "Share of the pretrained weights; the paper's is 0.2.")
    output_dir: str | None = option(None, "Folder for the mixed solver and its processor (must be given).", Role.PLACE)
    overwrite: bool = option(False, "Replace the model that is in the folder.", Role.LAUNCH)

    def __post_init__(self):
        if self.solvers is None:
            check_given(self, "pretrained", "distilled")
        elif (self.pretrained, self.distilled) != (None, None) or len(self.solvers) < 2:
            raise ValueError("`solvers` takes two or more solvers to average, without `pretrained` and `distilled`.")
        elif self.theta != type(self).theta:
            raise ValueError("`theta` does nothing with `solvers`, which count alike: leave it out.")
        check_given(self, "output_dir")
        if not 0 <= self.theta <= 1:
            raise ValueError(f"`theta` must be from 0 to 1, not {self.theta}.")
        self.pretrained = find_encoder(self.pretrained)


# What ranks attention heads; the command line makes classes of them.
IMPORTANCES = ("combined", "norm", "entropy", "peak", "gradient", "random")
IMPORTANCE_HELP = (
    "What ranks heads: combined (norm and entropy, by alpha), norm of their weights, entropy or peak of their "
    "attention, gradient of the loss by their gate, or random."
)


@dataclass
class PruneArguments:
    """What is pruned, and where it goes."""

    _argument_group_name = "pruning"

    model: str | None = option(
        None,
        "Folder or Hub id of a trained solver (must be given).",
        Role.SOLVER | Role.START | Role.TEACHER | Role.COMMON,
    )
    importance: str = option("combined", IMPORTANCE_HELP, Role.COMMON, IMPORTANCES)
    generations_dir: str | None = option(
        None, "Folder of the generations, which runs may share; generations in output_dir if not given.", Role.CACHE
    )
    test: bool = option(True, "Solve the test part with each generation.", Role.SAVED)
    test_num_beams: int | None = option(None, "Beams for the test part; num_beams if not given.", Role.SAVED)
    overwrite: bool = option(
        False, "Replace the model in the folder; generations that are there are gone on from.", Role.LAUNCH
    )

    def __post_init__(self):
        check_at_least_one(self, "test_num_beams")
        if self.model is None:
            raise ValueError("a `model` must be given: the folder or Hub id of a trained solver.")


# What ranks the units of a teacher; the command line makes objects of them.
SCORES = ("knowledgeable", "random")


@dataclass
class StarkArguments:
    """Whom students learn from, how its heads and neurons are ranked, and what is measured."""

    _argument_group_name = "sparse teachers"

    teacher: str | None = option(
        None,
        "Folder or Hub id of a trained solver, or with task a classifier (must be given).",
        Role.SOLVER | Role.TEACHER | Role.COMMON,
    )
    scores: str = option(
        "knowledgeable",
        "What ranks the teacher's heads and neurons: knowledgeable (gradients, weighed by tradeoff), or random "
        "(STARK-RAND, by seed).",
        Role.COMMON,
        SCORES,
    )
    score_part: str = option(
        "validation", "Part that heads and neurons are scored on.", choices=("validation", "test", "train")
    )
    test: bool = option(True, "Measure teacher and students on the test part at the end.", Role.SAVED)
    test_num_beams: int | None = option(None, "Beams for the test part; num_beams if not given.", Role.SAVED)
    overwrite: bool = option(
        False, "Replace the model in the folder; stages that are there are gone on from.", Role.LAUNCH
    )

    def __post_init__(self):
        check_at_least_one(self, "test_num_beams")
        if self.teacher is None:
            raise ValueError("a `teacher` must be given: the folder or Hub id of a trained solver or classifier.")


@dataclass
class LabelArguments(RankedSearchOptions):
    """Options of `hf-mwp label`."""

    problems: list[str] = option(
        [], "Files, data sets, or sets and parts (must be given).", Role.SOURCES | Role.COMMON
    )
    output_dir: str | None = option(None, "Folder for labelled.jsonl and the figures (must be given).")
    model: str = option("hf_mwp_quickstart/teacher", "Folder or Hub id of the solver.", Role.SOLVER | Role.COMMON)
    data_dir: str | None = option(None, "Folder of the data sets.", Role.PLACE | Role.NEAR)
    exclude: list[str] | None = option(
        None, "Data sets or files whose texts must not occur, whatever their numbers.", Role.SOURCES | Role.TEXTS
    )
    num_beams: int = option(5, "Trees tried for each problem.")
    min_probability: float = option(0.0, "Least probability of a tree.")
    surest_share: float = option(
        0.0,
        "Share of the problems without an answer that get the solver's own, those that it is the surest of; "
        "--rerank chooses it.",
    )
    overwrite: bool = option(False, "Replace the labelled.jsonl that is in the folder.", Role.LAUNCH)

    def __post_init__(self):
        if not self.problems or self.output_dir is None:
            raise ValueError("`problems` and `output_dir` must be given.")
        super().__post_init__()
        check_share(self, "min_probability", "surest_share")
        if (self.rerank or self.reranker is not None) and not self.surest_share:
            raise ValueError("`rerank` is for problems without an answer: give `surest_share`, too.")


@dataclass
class RerankArguments(SearchOptions):
    """Options of `hf-mwp rerank` beside those of the data."""

    output_dir: str | None = option(None, "Folder for plausibility.json; the model's own folder if not given.")
    split: str = option("train", "Part of the data set to fit on.", choices=["train", "validation"])
    num_samples: int = option(4000, "Problems to fit on, drawn at random; --max_train_samples may say it as well.")
    num_beams: int = option(20, "Beams of the search.")
    min_beams: int | None = option(None, "The least that can be ranked later, measured, too; num_beams if not given.")
    regularization: float = option(1.0, "How strongly weights are held to those of the solver's own probability.")
    unsure_share: float = option(
        0.0,
        "Share of these problems solved with dropout in the encoder: a solver is too sure of what it learned from.",
    )
    beams_dir: str | None = option(
        None, "Folder where the beams are kept: what is there already is not searched for again."
    )
    seed: int = option(0, "Seed of the choice of problems.")
    overwrite: bool = option(False, "Replace the plausibility.json that is in the folder.", Role.LAUNCH)

    def __post_init__(self):
        from ..solving.plausibility.plausibility_reranker import check_fit

        check_at_least_one(self, "num_samples", "batch_size")
        check_share(self, "unsure_share")
        check_fit(self.num_beams, self.regularization, self.min_beams)


@dataclass
class EvaluateArguments(RankedSearchOptions):
    """Options of `hf-mwp evaluate` beside those of the data."""

    model: str | None = option(None, "Folder or Hub id of the solver (must be given).", Role.SOLVER | Role.COMMON)
    split: str = option("test", "Part of the data set to solve.", choices=["test", "validation", "train"])
    max_decode_length: int | None = option(None, "Most symbols of an equation; the decoder's own limit if not given.")
    rule: str = option(
        "annotated",
        "What a right answer is: the annotated one (whole numbers equal, others up to a relative 1e-4), "
        "or, as the peers have it, the value of the target equation (absolute tolerance).",
        choices=["annotated", "peers"],
    )
    predictions: str | None = option(
        None,
        "JSONL file for the predictions; predictions_<dataset>_<split>.jsonl in output_dir if not given, "
        "or else runs/predictions_<model>_<dataset>[_fold<fold>]_<split>-<digest of their paths>.jsonl.",
        Role.PLACE | Role.WRITTEN,
    )
    output_dir: str | None = option(
        None, "Folder for the predictions, the figures (metrics.json) and a picture (reliability.png)."
    )
    random_sparsity: float = option(
        0.0, "Share of the weights of the encoder's layers to set to 0 at random first (the pilot study of STARK)."
    )
    seed: int = option(0, "Seed of the choice of these weights.")
    half_precision: bool = option(False, "Round the weights first, as `hf-mwp card` does for the published folder.")
    json: bool = option(False, "Print the figures as one JSON object instead of tables.", Role.TOLD)
    overwrite: bool = option(False, "Replace a file that holds something other than predictions.", Role.LAUNCH)

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


@dataclass
class CardArguments:
    """Options of `hf-mwp card`."""

    model: str | None = option(None, "Folder or Hub id of a solver or classifier (must be given).", Role.SOLVER)
    output_dir: str | None = option(
        None, "Folder for weights (half precision), processor and card (must be given).", Role.PLACE
    )
    part: str = option(
        "solver",
        "What to write: the solver, or its encoder alone, a student, with its code and a processor.",
        choices=("solver", "encoder"),
    )
    model_id: str | None = option(None, "Name by which the card loads the model; the output folder if not given.")
    stages: list[str] | None = option(None, "Folders of the runs that made the model, in their order.")
    evaluations: list[str] | None = option(
        None, "Folders of `hf-mwp evaluate` for this model, or for the solver that was built on this encoder."
    )
    teacher_evaluations: list[str] | None = option(None, "The same for its teacher.")
    reranker: str | None = option(
        None, "Folder or Hub id of the re-ranker to write beside the solver; the one beside it if not given."
    )
    summary: str = option("", "First paragraph of the card.")
    notes: str = option("", "Last section of the card, or a Markdown file that holds it.")
    license: str | None = option(None, "Licence identifier of the weights.")
    overwrite: bool = option(False, "Replace the model that is in the folder.", Role.LAUNCH)

    def __post_init__(self):
        check_given(self, "model", "output_dir")
        for name in ("summary", "notes"):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise ValueError(f"`{name}` needs a text, not {value!r}: put it in quotes.")


# The names are those of trainers' configurations, whose import takes seconds.
STAGES: dict[str, tuple[type | str, ...]] = {
    "pretrain": (CorpusArguments, PretrainingArguments, ResumeArguments, "PreTrainingConfig"),
    "train": (TaskArguments, SolverArguments, RunArguments, "SolverConfig"),
    "distill": (TaskArguments, TeacherArguments, StudentArguments, RunArguments, "DistillationConfig"),
    "prune": (TaskArguments, PruneArguments, "RecursiveDistillationConfig"),
    "stark": (TaskArguments, StarkArguments, StudentArguments, "StarkConfig"),
    "mix": (MixArguments,),
    "label": (LabelArguments,),
    "rerank": (RerankArguments, DataArguments),
    "evaluate": (EvaluateArguments, MeasuredTaskArguments),
    "card": (CardArguments,),
}


def types_of(command: str) -> list[type]:
    """The dataclasses whose fields are the options of a command; none of one that is no stage."""
    return [
        getattr(import_module("..trainers", __package__), each) if isinstance(each, str) else each
        for each in STAGES.get(command, ())
    ]


@cache
def options_of(command: str) -> dict[str, CommandOption]:
    """The options of a command, by their names; none of one that is no stage."""
    return options_in(*types_of(command))


def options_with(command: str, role: Role) -> list[str]:
    """The options of a command that have one of some roles joined by `|`, as they are declared."""
    return [name for name, each in options_of(command).items() if each.role & role]


def names_task(command: str, options: Mapping[str, Any]) -> bool:
    """Whether options of a command name what is learned in place of math word problems."""
    return any(options.get(name) for name in options_with(command, Role.TASK))


def trains(command: str) -> bool:
    """Whether a command trains, and may be started in several processes."""
    return bool(options_with(command, Role.LENGTH))
