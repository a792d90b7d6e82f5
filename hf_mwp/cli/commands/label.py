"""`hf-mwp label`: equations for problems that have an answer and no equation."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from ...building.solver import load_solver
from ...option_roles import Role, option
from ...runs.run_folder import RunFolder
from ...store.files import write_json_lines
from ..options.parsing import parse
from ..options.search_options import SearchOptions, find_device
from ..terminal.console import make_console, make_table, solving_bar
from .run import check_one_process


@dataclass
class LabelArguments(SearchOptions):
    """Options of `hf-mwp label`."""

    problems: list[str] = option(
        [], "Files, data sets, or sets and parts (must be given).", Role.SOURCES | Role.COMMON
    )
    output_dir: str | None = option(None, "Folder for labelled.jsonl and the figures (must be given).")
    model: str = option("hf_mwp_quickstart/teacher", "Folder or Hub id of the solver.", Role.SOLVER | Role.COMMON)
    data_dir: str | None = option(None, "Folder of the data sets.", Role.PLACE)
    exclude: list[str] | None = option(
        None, "Data sets or files whose texts must not occur, whatever their numbers.", Role.SOURCES | Role.TEXTS
    )
    num_beams: int = option(5, "Trees tried for each problem.")
    min_probability: float = option(0.0, "Least probability of a tree.")
    overwrite: bool = option(False, "Replace the labelled.jsonl that is in the folder.", Role.LAUNCH)

    def __post_init__(self):
        if not self.problems or self.output_dir is None:
            raise ValueError("`problems` and `output_dir` must be given.")
        super().__post_init__()
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
    device = find_device(args.device)
    from ...data.datasets.sources import read_part
    from ...data.training_lineage import ancestry_of
    from ...solving.label_problems import FATES, label_problems

    console = make_console()
    with RunFolder(args.output_dir, "label", values, begin=False) as folder:
        folder.check_record()
        unfinished, path = folder.path / "unfinished", folder.path / "labelled.jsonl"
        # Beside unfinished work, the file is the one that the same run had written when it was killed.
        folder.check_unused(args.overwrite or unfinished.exists(), (path.name,))
        model, processor = load_solver(args.model)
        sources = [read_part(source, args.data_dir, language=processor.language)[0] for source in args.problems]
        folder.begin()
        labelled = label_problems(
            model.to(device),
            processor,
            (row for rows in sources for row in rows),
            **{name: getattr(args, name) for name in ("num_beams", "min_probability", "data_dir", "batch_size")},
            exclude=args.exclude or (),
            unfinished=unfinished,
            progress=solving_bar(console),
            tell=console.print,
        )
        write_json_lines(path, labelled.rows)
        # What its labeller has seen goes to those that learn from the labels.
        ancestry_of(model).save(folder.path)
        shutil.rmtree(unfinished)
        folder.finish({"problems": args.problems, "fates": labelled.fates})
    rows = ((f"{labelled.fates[fate]:,}", fate, meaning) for fate, meaning in FATES.items())
    title = ", ".join(Path(source).name for source in args.problems)
    console.print(make_table(title, ("problems", "", "meaning"), rows, right=["problems"]))
    console.print(f"Labelled problems: {path}")
    return 0
