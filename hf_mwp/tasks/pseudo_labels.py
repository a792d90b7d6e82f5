"""Pseudo-labels: equations for problems that have none, and target texts that a teacher generates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..building.seq2seq import load_seq2seq_model
from ..building.solver import load_solver
from ..options import option_values
from ..solving.search_options import LabelArguments, find_device
from ..store.files import remove_folder, write_json_lines
from ..store.runs.main_process import check_one_process, is_main_process, wait_for_all
from ..store.runs.run_folder import RunFolder
from .reporter import SILENT, Reporter


TEXT_FATES = {
    "labelled": "the generated text is kept",
    "unsure": "its best text is not among the likeliest (keep_fraction)",
    "empty": "nothing was generated",
}
LABEL_OPTIONS = ("min_probability", "pseudo_label_fraction", "data_dir", "batch_size")


def pseudo_label(args: LabelArguments, reporter: Reporter = SILENT) -> tuple[Path, Mapping[str, int]]:
    """
    Label the problems of files and data sets ([`label_problems`]), and write `labelled.jsonl`: `hf-mwp pseudo-label`.
    An interrupted run resumes, and processes under `accelerate launch` share it. With `args.task` see [`label_texts`].

    Returns:
        `tuple[Path, Mapping]`: the file, and the number of problems by their fate ([`~solving.label_problems.FATES`]).

    Raises:
        UsageError: the folder has labels already, or solver and problems do not suit each other.
    """
    if args.task is not None:
        check_one_process("pseudo-label", launches=False)
        return label_texts(args, reporter)
    device = find_device(args.device)
    from ..data.datasets.sources import read_part
    from ..data.training_lineage import ancestry_of
    from ..solving.label_problems import label_problems

    with RunFolder(args.output_dir, "pseudo-label", option_values(args), begin=False) as folder:
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


def label_texts(args: LabelArguments, reporter: Reporter = SILENT) -> tuple[Path, Mapping[str, int]]:
    """
    Generate targets for the training texts of a data set ([`load_seq2seq`]), and write `train.jsonl`, with the other
    splits as they are beside it: a data set for students of any tokenizer. Arguments: see [`pseudo_label`].

    Returns:
        `tuple[Path, Mapping]`: the file, and the number of source texts by their fate (`TEXT_FATES`). Records have the
        two texts under the names `args.source` and `args.target`, and `score`, the mean log probability of a token,
        and `rank` among the beams.

    Raises:
        UsageError: the folder has labels already, or the model generates no texts.

    References:
        Kim and Rush, "Sequence-Level Knowledge Distillation" (EMNLP 2016).
    """
    device = find_device(args.device)
    from ..data.seq2seq.load_seq2seq import load_seq2seq
    from ..data.training_lineage import ancestry_of
    from ..solving.generate_texts import generate_texts

    with RunFolder(args.output_dir, "pseudo-label", option_values(args), begin=False) as folder:
        folder.check_record()
        path = folder.path / "train.jsonl"
        folder.check_unused(args.overwrite, (path.name,))
        model, tokenizer = load_seq2seq_model(args.model)
        splits = load_seq2seq(args.problems[0], args.source, None, validation_fraction=0)
        rows = splits.pop("train", None) or splits.pop(next(iter(splits)))
        folder.begin()
        found = generate_texts(
            model.to(device),
            tokenizer,
            rows["text"],
            num_beams=args.num_beams,
            num_return_sequences=args.num_return_sequences,
            max_length=args.max_decode_length,
            batch_size=args.batch_size,
            progress=reporter.progress(),
        )
        scores = {
            index: texts[0].log_probability / max(texts[0].num_tokens, 1)
            for index, texts in enumerate(found)
            if texts[0].text
        }
        likeliest = sorted(scores, key=scores.get, reverse=True)[: round(args.keep_fraction * len(scores))]
        records = [
            {
                "id": rows[index]["id"],
                args.source: rows[index]["text"],
                args.target: each.text,
                "score": each.log_probability / max(each.num_tokens, 1),
                "rank": rank,
            }
            for index in sorted(likeliest)
            for rank, each in enumerate(found[index])
            if each.text
        ]
        write_json_lines(path, records)
        if splits:
            for split, others in load_seq2seq(args.problems[0], args.source, args.target, 0).items():
                if split in splits:
                    pairs = ({args.source: row["text"], args.target: row["target"]} for row in others)
                    write_json_lines(folder.path / f"{split}.jsonl", pairs)
        # Models that learn from the labels have seen what their teacher has seen.
        ancestry_of(model).save(folder.path)
        fates = {"labelled": len(likeliest), "unsure": len(scores) - len(likeliest), "empty": len(found) - len(scores)}
        folder.finish({"problems": args.problems, "fates": fates})
    return path, fates
