"""Functions that pretrain an encoder on a corpus, which is read and tagged first."""

import copy
from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from transformers import set_seed

from hf_mwp.runtime.tagging import PosTagger, load_tagger
from hf_mwp.solver.corpus import tag_corpus
from hf_mwp.solver.corpus.pretraining_texts import read_texts
from hf_mwp.solver.data.training_texts import short_name
from hf_mwp.solver.training import PreTrainingConfig, PreTrainingTrainer
from hf_mwp.utils.usage_error import UsageError

from .building.encoder import SAMPLE_SIZE
from .building.pretraining import PretrainingArguments, PretrainingBuilder
from .building.student_shape import apply_size_targets
from .run_options import NO_TAGGER, CorpusArguments, ResumeArguments
from .tasks.reporter import SILENT, Reporter
from .training import RunResult, train_on_task


def pretrain(
    corpus_args: CorpusArguments,
    model_args: PretrainingArguments,
    resume_args: ResumeArguments,
    config: PreTrainingConfig,
    reporter: Reporter = SILENT,
) -> RunResult:
    """Pretrain an encoder on a corpus, and evaluate it on held-out texts: `hf-mwp pretrain`. See [`train`]."""
    model_args, config = copy.copy(model_args), copy.copy(config)
    options = (corpus_args, model_args, resume_args, config)
    make = partial(make_pretraining_trainer, corpus_args, model_args, config, reporter)
    return train_on_task(None, make, "pretrain", "student", options, reporter)


def make_pretraining_trainer(
    args: CorpusArguments, model_args: PretrainingArguments, config: PreTrainingConfig, reporter: Reporter = SILENT
) -> tuple[PreTrainingTrainer, dict[str, Any]]:
    """Read and tag a corpus, and return the trainer of a student and the content of the run's `data.json`. Raises
    `UsageError` if no text remains, or tagging is to be learned without a tagger."""
    learns_tags = bool(config.pos_loss_weight)
    if (args.tagger == NO_TAGGER and learns_tags) or (model_args.new_pos_head and not learns_tags):
        remedy = "Pass --tagger jieba, or --pos_loss_weight 0 without --new_pos_head"
        raise UsageError(f"pretrain: tagging needs a tagger and a positive loss weight. {remedy}.")
    tagger = None if args.tagger == NO_TAGGER else load_tagger(args.tagger)
    builder = PretrainingBuilder(model_args, tagger.name if learns_tags else None)
    apply_size_targets(model_args, builder.encoder, builder.processor, config, reporter.print)
    with config.main_process_first(local=False, desc="tagging"):
        texts, counts = read_corpus(args, model_args.language, tagger, Path(config.output_dir), reporter)
    set_seed(config.seed)
    number = min(SAMPLE_SIZE, len(texts))
    spread = (texts[index * len(texts) // number] for index in range(number))
    sample = (entry if isinstance(entry, str) else entry[0] for entry in spread)
    with reporter.counter("encoding") as progress:
        model = builder.build(texts.tags if learns_tags else None, sample)
        data = {"train_dataset": texts, "processing_class": builder.processor}
        trainer = PreTrainingTrainer(model, config, **data, progress=progress)
    trainer.text_sources = tuple(map(short_name, args.corpus))
    used, held_out = len(trainer.train_dataset), len(trainer.eval_dataset or ())
    reporter.print(f"{used} training texts, {held_out} held out; {describe_counts(counts)}")
    record = {
        "corpus": args.corpus,
        "exclude": args.exclude,
        "texts": dict(counts),
        "used": used,
        "held_out": held_out,
    }
    if tagger is not None:
        record |= {"tagger": tagger.name, "tagger_fingerprint": tagger.fingerprint}
    if learns_tags:
        record["pos_labels"] = len(trainer.model.config.pos_labels)
    return trainer, record


def read_corpus(
    args: CorpusArguments, language: str, tagger: PosTagger | None, folder: Path, reporter: Reporter = SILENT
) -> tuple[Sequence[Any], Counter]:
    """Return the texts (with a tagger, a [`~data.TaggedCorpus`]) and the counts of [`~data.read_texts`]."""
    counts: Counter = Counter()
    texts = read_texts(args.corpus, args.exclude or (), language, args.data_dir, counts, args.file_format)
    first = next(texts, None)
    if first is None:
        corpus = ", ".join(args.corpus)
        raise UsageError(f"pretrain: no text remains in the corpus {corpus}: {describe_counts(counts)}.")
    texts = islice(chain([first], texts), args.max_texts)
    if tagger is None:
        return list(texts), counts
    with reporter.counter(f"tagging with {tagger.name}") as progress:
        return tag_corpus(texts, tagger, args.tag_cache or folder / "tags", progress=progress), counts


def describe_counts(counts: Counter) -> str:
    """Return a description of the counts of [`~data.read_texts`]."""
    read, double, excluded = (counts[name] for name in ("read", "duplicate", "excluded"))
    return f"{read} texts read, {double} duplicates and {excluded} excluded texts left out"
