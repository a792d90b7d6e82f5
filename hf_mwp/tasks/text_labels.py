"""Sequence-level distillation: the texts that a teacher generates as the targets of a student."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..building.seq2seq import load_seq2seq_model
from ..options import option_values
from ..solving.search_options import LabelArguments, find_device
from ..store.files import write_json_lines
from ..store.runs.run_folder import RunFolder
from .reporter import SILENT, Reporter


TEXT_FATES = {
    "labelled": "the generated text is kept",
    "unsure": "its best text is not among the likeliest (keep_fraction)",
    "empty": "nothing was generated",
}


def label_texts(
    args: LabelArguments, values: Mapping[str, Any] | None = None, reporter: Reporter = SILENT
) -> tuple[Path, Mapping[str, int]]:
    """
    Generate targets for the training texts of a data set ([`load_seq2seq`]), and write `train.jsonl`, with the other
    splits as they are beside it: a data set for students of any tokenizer.

    Args:
        args ([`LabelArguments`]): Options of `hf-mwp pseudo-label`, with `task`.
        values (`Mapping[str, Any]`, *optional*), reporter ([`Reporter`], *optional*): See [`~tasks.training.train`].

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

    with RunFolder(args.output_dir, "pseudo-label", values or option_values(args), begin=False) as folder:
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
