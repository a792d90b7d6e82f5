"""`hf-mwp card`: a model's folder as the Hub gets it, with a card made of the records of its runs."""

from __future__ import annotations

import importlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from ...building.solver_loading import load_solver
from ...files import without_folder
from ...runs.recipes import RecipeError
from ...runs.recipes.recipe_file import read_yaml
from ...runs.recipes.stage_fingerprint import PLACES
from ...runs.run_folder import RunFolder, check_output_folder
from ...tasks.data_options import DataArguments
from ...usage_error import UsageError
from ..options.parsing import build_parser, parse
from ..terminal.console import make_console
from .run import STAGE_COMMANDS


if TYPE_CHECKING:
    from ...hub import ModelFigures, TrainingStage

# What says where files lie or how a run was started, and not how the model was made, and what is secret.
NOT_SHOWN = (*PLACES, "output_dir", "data_dir", "resume", "overwrite", "resume_from_checkpoint", "hub_token")


@dataclass
class CardArguments:
    """
    Options of `hf-mwp card`.

    Args:
        model (`str`):
            Folder or Hub id of a trained solver.
        output_dir (`str`):
            Folder for weights (half precision), processor and card.
        part (`str`, *optional*, defaults to `"solver"`):
            What to write: the `"solver"`, or its `"encoder"` alone, a student, with its code, a pooling layer
            ([`~hub.with_pooling_layer`]) and a processor that masks numbers as it learned them.
        model_id (`str`, *optional*):
            Name by which the card loads the model; the output folder by default.
        stages (`list[str]`, *optional*):
            Folders of the runs that made the model, in their order.
        evaluations (`list[str]`, *optional*):
            Folders of `hf-mwp evaluate` for this model, or for the solver that was built on this encoder.
        teacher_evaluations (`list[str]`, *optional*):
            The same for its teacher.
        reranker (`str`, *optional*):
            Folder or Hub id of the re-ranker to write beside the solver; the one beside the model by default.
        summary, notes (`str`, *optional*):
            Text for the card: its first paragraph; its last section, or a Markdown file that holds it.
        license (`str`, *optional*):
            Licence identifier of the weights.
        overwrite (`bool`, *optional*, defaults to `False`):
            Replace the model that is in the folder.
    """

    model: str | None = field(default=None, metadata={"help": "Folder or Hub id of a solver (must be given)."})
    output_dir: str | None = field(default=None, metadata={"help": "Folder to write (must be given)."})
    part: str = field(
        default="solver", metadata={"help": "The solver or its encoder alone.", "choices": ["solver", "encoder"]}
    )
    model_id: str | None = field(
        default=None, metadata={"help": "Name by which the card loads the model; the output folder if not given."}
    )
    stages: list[str] | None = field(default=None, metadata={"help": "Folders of the runs that made the model."})
    evaluations: list[str] | None = field(default=None, metadata={"help": "Folders of evaluations of the model."})
    teacher_evaluations: list[str] | None = field(
        default=None, metadata={"help": "Folders of evaluations of its teacher."}
    )
    reranker: str | None = field(
        default=None, metadata={"help": "Re-ranker to write beside the solver; the model's own if not given."}
    )
    summary: str = field(default="", metadata={"help": "First paragraph of the card."})
    notes: str = field(default="", metadata={"help": "Last section of the card, or a Markdown file that holds it."})
    license: str | None = field(default=None, metadata={"help": "Licence identifier of the weights."})
    overwrite: bool = field(default=False, metadata={"help": "Replace the model that is in the folder."})

    def __post_init__(self):
        for name in ("model", "output_dir"):
            if getattr(self, name) is None:
                raise ValueError(f"`{name}` must be given.")
        for name in ("summary", "notes"):
            value = getattr(self, name)
            if not isinstance(value, str):
                raise ValueError(f"`{name}` needs a text, not {value!r}: put it in quotes.")


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    return [CardArguments]


def run(argv: list[str]) -> int:
    """Writes the folder; see `hf-mwp card --help`."""
    (args,), _ = parse(
        "card",
        "Write the folder that the Hub gets: weights in half precision, configuration, processor, and a card made of "
        "the records of the runs.",
        argument_types(),
        argv,
    )
    check_output_folder(args.output_dir)
    from ...data import OutputVocabulary
    from ...data.training_lineage import training_texts_of
    from ...hub import build_model_card, with_pooling_layer, write_model_folder
    from ...models.mwp_student import save_student_code
    from ...solving.plausibility import PlausibilityReranker

    notes = read_notes(args.notes)
    model, processor = load_solver(args.model)
    texts = training_texts_of(model)
    evaluated = "this model"
    if args.part == "encoder":
        kind = model.encoder.config.model_type
        if kind != "mwp_student":
            raise UsageError(f"--part encoder writes students, but the encoder of {args.model} is of type {kind!r}.")
        if model.config.bottleneck_layers:
            raise UsageError(f"The encoder of {args.model} needs its bottleneck networks: write the solver instead.")
        model, evaluated = with_pooling_layer(model.encoder), "solver built on it"
        # As `hf-mwp pretrain` leaves it: constants are collected by the solver that is built on the encoder.
        processor.vocabulary = OutputVocabulary()
    if texts is not None:
        # Also of an encoder taken out of its solver.
        model.training_texts = texts
    card = build_model_card(
        model,
        model_id=args.model_id or args.output_dir,
        figures=[
            *(read_figures(folder, evaluated) for folder in args.evaluations or ()),
            *(read_figures(folder, "teacher") for folder in args.teacher_evaluations or ()),
        ],
        stages=[read_stage(folder) for folder in args.stages or ()],
        language=processor.language,
        indexed_numbers=processor.indexed_numbers,
        license=args.license,
        summary=args.summary,
        notes=notes,
        training_texts=texts,
    )
    with RunFolder(args.output_dir) as folder:
        folder.check_unused(args.overwrite)
        write_model_folder(model, args.output_dir, card, processor)
        if args.part == "solver" and (args.reranker or (Path(args.model) / PlausibilityReranker.file_name).is_file()):
            PlausibilityReranker.from_pretrained(args.reranker or args.model).save_pretrained(args.output_dir)
        if args.part == "encoder":
            save_student_code(args.output_dir)
    make_console().print(f"{args.output_dir} has weights, configuration, processor and README.md.")
    return 0


def read_notes(notes: str) -> str:
    """The text, or that of the file which it names; `UsageError` if it can only be a file and there is none."""
    if not notes.endswith(".md"):
        return notes
    if os.path.isfile(notes):
        return Path(notes).read_text(encoding="utf-8")
    if len(notes.split()) == 1:
        raise UsageError(f"--notes: there is no file {notes}.")
    return notes


def read_figures(folder: str, model: str) -> ModelFigures:
    """Figures of a folder of `hf-mwp evaluate`; `UsageError` if it is none."""
    from ...hub import ModelFigures

    metrics = read_record(Path(folder) / "metrics.json")
    part = next((name for name in ("test", "validation", "train") if name in metrics), None)
    if part is None or "dataset" not in metrics:
        raise UsageError(f"{folder} is no evaluation: give the output folder of `hf-mwp evaluate`.")
    section = metrics[part]
    return ModelFigures(
        model,
        metrics["dataset"],
        f"{part} ({section['scheme']}{', re-ranked' if section.get('reranked') else ''})",
        section["num_beams"],
        section["rule"],
        section["reports"],
        section.get("training_texts", {}).get("remark", ""),
        section.get("calibration"),
    )


def read_stage(folder: str) -> TrainingStage:
    """What a run's folder tells about it; `UsageError` if it is none."""
    from ...hub import TrainingStage

    path = Path(folder)
    stage = read_record(path / "stage.json", missing={})
    record = read_record(path / "run.json", missing={})
    options_file = path / ("stage.yaml" if (path / "stage.yaml").is_file() else "run_config.yaml")
    if not options_file.is_file():
        raise UsageError(f"{folder} is no run: it has neither stage.yaml nor run_config.yaml.")
    command = stage.get("command") or record.get("command") or "hf-mwp"
    options = read_options(options_file, command)
    shown = {key: without_place(value) for key, value in options.items() if key not in NOT_SHOWN}
    if command in ("hf-mwp train", "hf-mwp distill"):
        shown.setdefault("dataset", DataArguments.dataset)
    if "seconds" in stage:
        # The run's own record has those of its last start alone.
        record = {**record, "wall_seconds": stage["seconds"]}
    return TrainingStage(stage.get("stage") or path.name, command, shown, record)


def read_options(path: Path, command: str) -> dict[str, Any]:
    """
    The options that were set: all of those in a file, but for the defaults of the command, which a run's own record
    holds as well.

    Args:
        path (`Path`): `stage.yaml` or `run_config.yaml`.
        command (`str`): What was run, such as `"hf-mwp train"`.

    Raises:
        UsageError: the file is no YAML mapping.
    """
    try:
        options = read_yaml(path)
    except RecipeError as error:
        raise UsageError(str(error)) from error
    if not isinstance(options, Mapping):
        raise UsageError(f"{path} must hold a mapping of options, not {options!r}.")
    name = command.removeprefix("hf-mwp ")
    if path.name != "run_config.yaml" or name not in STAGE_COMMANDS:
        return dict(options)
    types = importlib.import_module(f".{name}", __package__).argument_types()
    defaults = vars(build_parser(name, "", types).parse_args([]))
    return {key: value for key, value in options.items() if key not in defaults or value != defaults[key]}


def without_place(value: Any) -> Any:
    """As [`without_folder`] has it, also for paths that are not there any more: a Hub id has one slash at most."""
    if isinstance(value, list):
        return [without_place(item) for item in value]
    if not isinstance(value, str):
        return without_folder(value)
    tagger = "ltp:" if value.startswith("ltp:") else ""
    place = value.removeprefix(tagger)
    is_path = place.startswith(("/", "~", "./", "../")) or place.count("/") > 1
    return tagger + (PurePath(place).name if is_path else without_folder(place))


def read_record(path: Path, missing: Any = None) -> Mapping[str, Any]:
    """A JSON file; `missing` if it is not there, `UsageError` if that is `None` or it is no JSON mapping."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if missing is None:
            raise UsageError(f"There is no {path}.") from None
        return missing
    except ValueError as error:
        raise UsageError(f"{path} is no JSON: {error}") from error
    if not isinstance(record, Mapping):
        raise UsageError(f"{path} must hold a mapping, not {record!r}.")
    return record
