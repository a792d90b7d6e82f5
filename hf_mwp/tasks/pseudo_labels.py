"""Pseudo-labels: equations for problems that have none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..building.solver import load_solver
from ..options import option_values
from ..solving.search_options import LabelArguments, find_device
from ..store.files import remove_folder, write_json_lines
from ..store.runs.main_process import check_one_process, is_main_process, wait_for_all
from ..store.runs.run_folder import RunFolder
from .reporter import SILENT, Reporter
from .text_labels import label_texts


LABEL_OPTIONS = ("min_probability", "pseudo_label_fraction", "data_dir", "batch_size")


def pseudo_label(
    args: LabelArguments, values: Mapping[str, Any] | None = None, reporter: Reporter = SILENT
) -> tuple[Path, Mapping[str, int]]:
    """
    Label the problems of files and data sets ([`label_problems`]), and write `labelled.jsonl`: `hf-mwp pseudo-label`.
    An interrupted run resumes, and processes under `accelerate launch` share it. With `args.task` see [`label_texts`].

    Args:
        args ([`LabelArguments`]): Options of the command.
        values (`Mapping[str, Any]`, *optional*), reporter ([`Reporter`], *optional*): See [`~tasks.training.train`].

    Returns:
        `tuple[Path, Mapping]`: the file, and the number of problems by their fate ([`~solving.label_problems.FATES`]).

    Raises:
        UsageError: the folder has labels already, or solver and problems do not suit each other.
    """
    if args.task is not None:
        check_one_process("pseudo-label", launches=False)
        return label_texts(args, values, reporter)
    device = find_device(args.device)
    from ..data.datasets.sources import read_part
    from ..data.training_lineage import ancestry_of
    from ..solving.label_problems import label_problems

    with RunFolder(args.output_dir, "pseudo-label", values or option_values(args), begin=False) as folder:
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
            **{name: getattr(args, name) for name in LABEL_OPTIONS},
            num_beams=num_beams,
            reranker=reranker,
            exclude=args.exclude or (),
            unfinished=unfinished,
            progress=reporter.progress(),
            tell=reporter.print,
        )
        # All processes have read the labels of the others.
        wait_for_all()
        if is_main_process():
            write_json_lines(path, labelled.rows)
            # Models that learn from the labels have seen what their labeller has seen.
            ancestry_of(model).save(folder.path)
            remove_folder(unfinished)
        folder.finish({"problems": args.problems, "fates": labelled.fates})
    return path, labelled.fates
