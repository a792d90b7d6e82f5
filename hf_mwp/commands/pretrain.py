"""Pretrain a student on texts of math word problems with masked language modelling, which masks mathematical words
more often, and with part-of-speech tagging."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_mwp.runtime.tagging import PosTagger, load_tagger, split_tagger
from hf_mwp.solver.data.file_format import FileArguments
from hf_mwp.solver.metrics.accuracy import percent
from hf_mwp.utils.checks import check_at_least_one
from hf_mwp.utils.downloads import missing_folder
from hf_mwp.utils.option import option
from hf_mwp.utils.usage_error import UsageError

from .building.pretraining import PretrainingArguments, PretrainingBuilder
from .building.student_shape import apply_size_targets
from .options.locating import locate_texts
from .options.run_options import ResumeArguments
from .tasks.reporter import SILENT, Reporter
from .terminal.console import CommandConsole, make_table, print_result


if TYPE_CHECKING:
    from hf_mwp.solver.training import PreTrainingConfig, PreTrainingTrainer

    from .training import RunResult


NO_TAGGER = "none"
LABELS = {
    "mlm_loss": "masked words, loss",
    "mlm_loss_keywords": "... of keywords",
    "mlm_loss_numbers": "... of numbers and quantities",
    "mlm_accuracy": "masked words, right %",
    "pos_f1": "tagging, F1 %",
    "pos_precision": "tagging, precision %",
    "pos_recall": "tagging, recall %",
}


def locate_tagger(tagger: str, options: Mapping[str, Any]) -> Path | None:
    """Return the folder of a part-of-speech tagger; the `locate` function of its [`~options.option`]."""
    folder = ""
    if tagger != NO_TAGGER:
        _, folder = split_tagger(tagger)
    fault = missing_folder(folder)
    if fault:
        raise UsageError(f"{fault} Check the tagger.")
    if folder and Path(folder).exists():
        return Path(folder)
    return None


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


OPTIONS = (CorpusArguments, PretrainingArguments, ResumeArguments)
EXAMPLES = (
    "hf-mwp pretrain --corpus math23k:train --encoder google-bert/bert-base-chinese --output_dir runs/pretrained",
)


def run(console: CommandConsole, *options) -> None:
    result = pretrain(*options, reporter=console)
    metrics = result.metrics.get("validation", {})
    rows = []
    for name, label in LABELS.items():
        if name not in metrics:
            continue
        cell = f"{metrics[name]:.3f}"
        if label.endswith("%"):
            cell = percent(metrics[name])
        rows.append((label, cell))
    if rows:
        console.print(make_table("held-out texts", ("", "metric"), rows, right=["metric"]))
    print_result(console, result, "student")


def pretrain(
    corpus_args: CorpusArguments,
    model_args: PretrainingArguments,
    resume_args: ResumeArguments,
    config: PreTrainingConfig,
    reporter: Reporter = SILENT,
) -> RunResult:
    """Pretrain an encoder on a corpus, and evaluate it on held-out texts: `hf-mwp pretrain`. See [`train`]."""
    from .training import train_on_task

    model_args = copy.copy(model_args)
    config = copy.copy(config)
    options = (corpus_args, model_args, resume_args, config)
    make = partial(make_pretraining_trainer, corpus_args, model_args, config, reporter)
    return train_on_task(None, make, "pretrain", "student", options, reporter)


def make_pretraining_trainer(
    args: CorpusArguments, model_args: PretrainingArguments, config: PreTrainingConfig, reporter: Reporter = SILENT
) -> tuple[PreTrainingTrainer, dict[str, Any]]:
    """Read and tag a corpus, and return the trainer of a student and the content of the run's `data.json`. Raises
    `UsageError` if no text remains, or tagging is to be learned without a tagger."""
    from transformers import set_seed

    from hf_mwp.solver.data.training_texts import short_name
    from hf_mwp.solver.training import PreTrainingTrainer

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
    tags = texts.tags if learns_tags else None
    with reporter.counter("encoding") as progress:
        model = builder.build(tags, _sample_texts(texts))
        trainer = PreTrainingTrainer(
            model, config, train_dataset=texts, processing_class=builder.processor, progress=progress
        )
    trainer.text_sources = tuple(map(short_name, args.corpus))
    num_used = len(trainer.train_dataset)
    num_held_out = len(trainer.eval_dataset or ())
    reporter.print(f"{num_used} training texts, {num_held_out} held out; {describe_counts(counts)}")
    record = {
        "corpus": args.corpus,
        "exclude": args.exclude,
        "texts": dict(counts),
        "used": num_used,
        "held_out": num_held_out,
    }
    if tagger is not None:
        record["tagger"] = tagger.name
        record["tagger_fingerprint"] = tagger.fingerprint
    if learns_tags:
        record["pos_labels"] = len(trainer.model.config.pos_labels)
    return trainer, record


def _sample_texts(texts: Sequence[Any]) -> Iterator[str]:
    """Yield texts at equal distances in the corpus."""
    from .building.encoder import SAMPLE_SIZE

    num_samples = min(SAMPLE_SIZE, len(texts))
    for index in range(num_samples):
        entry = texts[index * len(texts) // num_samples]
        # An entry of a tagged corpus is a text and its tags.
        yield entry if isinstance(entry, str) else entry[0]


def read_corpus(
    args: CorpusArguments, language: str, tagger: PosTagger | None, folder: Path, reporter: Reporter = SILENT
) -> tuple[Sequence[Any], Counter]:
    """Return the texts (with a tagger, a [`~data.TaggedCorpus`]) and the counts of [`~data.read_texts`]."""
    from hf_mwp.solver.corpus import tag_corpus
    from hf_mwp.solver.corpus.pretraining_texts import read_texts

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
    left_out = f"{counts['duplicate']} duplicates and {counts['excluded']} excluded texts left out"
    return f"{counts['read']} texts read, {left_out}"
