"""Corpus of a pretraining: options, reading and tagging."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..building.encoder import SAMPLE_SIZE
from ..building.model_sources import is_path
from ..building.pretraining import PretrainingArguments, PretrainingBuilder
from ..building.student_shape import settle_shape
from ..data.locating import locate_texts
from ..options import option
from ..options.checks import check_at_least_one
from ..usage_error import UsageError
from .reporter import SILENT, Reporter


if TYPE_CHECKING:
    from ..problems.tagging.pos_tagger import PosTagger
    from ..trainers import PreTrainingConfig, PreTrainingTrainer

NO_TAGGER = "none"


def locate_tagger(tagger: str, options: Mapping[str, Any]) -> Path | None:
    """Return the folder of a part-of-speech tagger, as [`~options.option`] takes it for `locate`."""
    from ..problems.tagging.pos_tagger import split_tagger

    folder = "" if tagger == NO_TAGGER else split_tagger(tagger)[1]
    if is_path(folder) and not Path(folder).exists():
        raise UsageError(f"There is no folder {folder}.")
    return Path(folder) if folder and Path(folder).exists() else None


@dataclass
class CorpusArguments:
    """Options of the texts and their tagger."""

    _argument_group_name = "corpus"

    corpus: list[str] = option(
        [],
        "Text files (.txt, .jsonl, also .gz) and names of data sets, whose training splits are read (must be given).",
        common=True,
        locate=locate_texts,
    )
    data_dir: str | None = option(None, "Folder of the data sets' files, if they are not where the loaders look.")
    exclude: list[str] | None = option(
        None,
        "Data sets or files whose texts must not occur, whatever their numbers: those of test sets.",
        common=True,
        locate=locate_texts,
    )
    tagger: str = option(
        "jieba",
        "jieba, ltp:FOLDER or ltp:HUB_ID, or none (which needs pos_loss_weight 0). With a tagger and pos_loss_weight "
        "0 the tags say which words are quantities, and nothing else.",
        common=True,
        locate=locate_tagger,
    )
    tag_cache: str | None = option(
        None, "Folder for the tags, to be shared by runs; in the output folder otherwise.", affects_result=False
    )
    max_texts: int | None = option(None, "Use only so many texts, for a quick try.")

    def __post_init__(self):
        if not self.corpus:
            raise ValueError("a `corpus` must be given: text files, or names of data sets.")
        check_at_least_one(self, "max_texts")


def make_pretraining_trainer(
    args: CorpusArguments,
    model_args: PretrainingArguments,
    config: PreTrainingConfig,
    folder: Path,
    reporter: Reporter = SILENT,
) -> tuple[PreTrainingTrainer, dict[str, Any]]:
    """
    Read and tag a corpus, and return the trainer of a student on it, and what was read for the run's `data.json`. Tags
    are kept in the run's `folder` if they have no other. `UsageError` if no text is left, or tags are learned without
    a tagger.
    """
    from transformers import set_seed

    from ..data.training_texts import short_name
    from ..problems.tagging.pos_tagger import load_tagger
    from ..trainers import PreTrainingTrainer

    learns_tags = bool(config.pos_loss_weight)
    if (args.tagger == NO_TAGGER and learns_tags) or (model_args.new_pos_head and not learns_tags):
        remedy = "take --tagger jieba, or pass --pos_loss_weight 0 without --new_pos_head"
        raise UsageError(f"pretrain: tagging needs a tagger and its loss: {remedy}.")
    tagger = None if args.tagger == NO_TAGGER else load_tagger(args.tagger)
    builder = PretrainingBuilder(model_args, tagger.name if learns_tags else None)
    settle_shape(model_args, builder.encoder, builder.processor, config, reporter.print)
    with config.main_process_first(local=False, desc="tagging"):
        texts, counts = read_corpus(args, model_args.language, tagger, folder, reporter)
    set_seed(config.seed)
    number = min(SAMPLE_SIZE, len(texts))
    spread = (texts[index * len(texts) // number] for index in range(number))
    sample = (entry if isinstance(entry, str) else entry[0] for entry in spread)
    with reporter.counter("encoding") as progress:
        trainer = PreTrainingTrainer(
            model=builder.build(texts.tags if learns_tags else None, sample),
            args=config,
            train_dataset=texts,
            processing_class=builder.processor,
            progress=progress,
        )
    trainer.text_sources = tuple(map(short_name, args.corpus))
    used, held_out = len(trainer.train_dataset), len(trainer.eval_dataset or ())
    reporter.print(f"{used} texts to learn from, {held_out} held out; {describe_counts(counts)}")
    record: dict[str, Any] = {"corpus": args.corpus, "exclude": args.exclude, "texts": dict(counts)}
    if tagger is not None:
        record |= {"tagger": tagger.name, "tagger_fingerprint": tagger.fingerprint}
    record |= {"used": used, "held_out": held_out}
    return trainer, record | ({"pos_labels": len(trainer.model.config.pos_labels)} if learns_tags else {})


def read_corpus(
    args: CorpusArguments, language: str, tagger: PosTagger | None, folder: Path, reporter: Reporter = SILENT
) -> tuple[Sequence[Any], Counter]:
    """Read the texts, in a [`~data.TaggedCorpus`] if there is a tagger, with the counts of [`~data.read_texts`]."""
    from ..data import read_texts, tag_corpus

    counts: Counter = Counter()
    texts = read_texts(args.corpus, args.exclude or (), language, args.data_dir, counts)
    first = next(texts, None)
    if first is None:
        raise UsageError(f"pretrain: the corpus is empty: {', '.join(args.corpus)}: {describe_counts(counts)}.")
    texts = islice(chain([first], texts), args.max_texts)
    if tagger is None:
        return list(texts), counts
    with reporter.counter(f"tagging with {tagger.name}") as progress:
        return tag_corpus(texts, tagger, args.tag_cache or folder / "tags", progress=progress), counts


def describe_counts(counts: Counter) -> str:
    """Return the counts of [`~data.read_texts`] in words."""
    read, double, excluded = (counts[name] for name in ("read", "duplicate", "excluded"))
    return f"read {read} texts, of which {double} doubles and {excluded} of excluded sets"
