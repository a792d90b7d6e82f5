"""`hf-mwp pseudo-label`: equations for problems that have none."""

from __future__ import annotations

from pathlib import Path

from ...building.solver import load_solver
from ...solving.search_options import find_device
from ...store.files import remove_folder, write_json_lines
from ...store.runs.main_process import check_one_process
from ...store.runs.run_folder import RunFolder
from ..options import parse_command
from ..terminal.console import make_console, make_table, solving_bar


def run(argv: list[str]) -> int:
    """Labels and writes; see `hf-mwp pseudo-label --help`."""
    (args,), values = parse_command(
        "pseudo-label",
        "Give equations to problems that have an answer and no equation (self-training): of the trees that a solver "
        "finds, the most probable one whose value is the answer. Of those without an answer the surest get the "
        "solver's own (--pseudo_label_fraction). labelled.jsonl is training data for --extra_train.",
        argv,
    )
    check_one_process("pseudo-label", launches=False)
    device = find_device(args.device)
    from ...data.datasets.sources import read_part
    from ...data.training_lineage import ancestry_of
    from ...solving.label_problems import FATES, label_problems

    console = make_console()
    with RunFolder(args.output_dir, "pseudo-label", values, begin=False) as folder:
        folder.check_record()
        unfinished, path = folder.path / "unfinished", folder.path / "labelled.jsonl"
        # Beside unfinished work, the file is the one that the same run had written when it was killed.
        folder.check_unused(args.overwrite or unfinished.exists(), (path.name,))
        model, processor = load_solver(args.model)
        reranker, num_beams = args.load_reranker(processor)
        sources = [read_part(source, args.data_dir, language=processor.language)[0] for source in args.problems]
        folder.begin()
        labelled = label_problems(
            model.to(device),
            processor,
            (row for rows in sources for row in rows),
            **{
                name: getattr(args, name)
                for name in ("min_probability", "pseudo_label_fraction", "data_dir", "batch_size")
            },
            num_beams=num_beams,
            reranker=reranker,
            exclude=args.exclude or (),
            unfinished=unfinished,
            progress=solving_bar(console),
            tell=console.print,
        )
        write_json_lines(path, labelled.rows)
        # What its labeller has seen goes to those that learn from the labels.
        ancestry_of(model).save(folder.path)
        remove_folder(unfinished)
        folder.finish({"problems": args.problems, "fates": labelled.fates})
    rows = ((f"{labelled.fates[fate]:,}", fate, meaning) for fate, meaning in FATES.items())
    title = ", ".join(Path(source).name for source in args.problems)
    console.print(make_table(title, ("problems", "", "meaning"), rows, right=["problems"]))
    console.print(f"Labelled problems: {path}")
    return 0
