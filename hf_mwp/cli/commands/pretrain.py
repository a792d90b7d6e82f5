"""`hf-mwp pretrain`: masked language modelling and tagging on texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from ...building.distilled_student import SAMPLE_SIZE
from ...building.pretraining_options import NO_TAGGER, CorpusArguments, StudentModelArguments
from ...building.pretraining_student import StudentBuilder
from ...runs.main_process import is_main_process
from ...runs.resuming import begin_record, begin_run
from ...runs.run_arguments import ResumeArguments
from ...runs.run_folder import RunFolder, describe_contents
from ...usage_error import UsageError
from ..options.parsing import parse
from ..options.training_options import PreTrainingOptions
from ..terminal.console import make_console, percent
from ..terminal.curve import draw_learning_curve
from .training import train_and_save, turn_off_evaluation


if TYPE_CHECKING:
    from ...trainers import PreTrainingConfig, PreTrainingTrainer

COMMON = {
    CorpusArguments: ("corpus", "exclude", "tagger"),
    StudentModelArguments: ("encoder", "encoder_layers", "encoder_config", "tokenizer", "language"),
    PreTrainingOptions: (
        "output_dir",
        "num_train_epochs",
        "per_device_train_batch_size",
        "learning_rate",
        "mlm_probability",
        "pos_loss_weight",
        "save_strategy",
        "seed",
    ),
    ResumeArguments: ("resume", "overwrite"),
}
PANELS = {"masked words, loss": "eval_mlm_loss", "tagging, F1": "eval_pos_f1"}


def argument_types() -> list[type]:
    """Dataclasses whose fields are the options."""
    from ...trainers import PreTrainingConfig

    return [CorpusArguments, StudentModelArguments, ResumeArguments, PreTrainingConfig]


def run(argv: list[str]) -> int:
    """Pretrains a student; see `hf-mwp pretrain --help`. Also runs under `torchrun` and `accelerate launch`."""
    (corpus_args, model_args, resume_args, config), values = parse(
        "pretrain",
        "Pretrain a student on texts of math word problems: masked words, of which those that carry the mathematics "
        "are masked more often, and parts of speech.",
        argument_types,
        argv,
        common=COMMON,
    )
    from transformers import set_seed

    from ...data.training_texts import short_name
    from ...problems.tagging.pos_tagger import load_tagger
    from ...trainers import PreTrainingTrainer
    from ..terminal.progress import counting_bar

    console = make_console()
    check_tagging(corpus_args, model_args, config)
    with RunFolder(config.output_dir, "pretrain", values, begin=False) as folder:
        checkpoint, changes = begin_run(folder, config, resume_args, console)
        set_seed(config.seed)
        tagger = None if corpus_args.tagger == NO_TAGGER else load_tagger(corpus_args.tagger)
        builder = StudentBuilder(model_args, tagger.name if config.pos_loss_weight else None)
        with config.main_process_first(local=False, desc="tagging"):
            counts: Counter = Counter()
            corpus = read_corpus(corpus_args, model_args.language, tagger, folder.path, console, counts)
        config.disable_tqdm = True
        if not config.validation_fraction:
            turn_off_evaluation(config, console, "No text is held out")
        set_seed(config.seed)
        with counting_bar(console, "encoding") as progress:
            trainer = PreTrainingTrainer(
                model=builder.build(corpus.tags if config.pos_loss_weight else None, sample_texts(corpus)),
                args=config,
                train_dataset=corpus,
                processing_class=builder.processor,
                progress=progress,
            )
        trainer.text_sources = tuple(map(short_name, corpus_args.corpus))
        record = data_record(corpus_args, trainer, tagger, counts)
        console.print(
            f"{record['used']} texts to learn from, {record['held_out']} held out; {describe_counts(counts)}"
        )
        begin_record(folder, checkpoint, changes)
        folder.write_json("data.json", record)
        folder.finish(pretrain(trainer, folder, checkpoint, console))
    console.print(describe_contents(folder.path, "model", "processor"))
    return 0


def check_tagging(args: CorpusArguments, model_args: StudentModelArguments, config: PreTrainingConfig) -> None:
    """Raises `UsageError` if tags are needed and there is no tagger, or a head for them and they are not learned."""
    if args.tagger == NO_TAGGER and config.pos_loss_weight:
        raise UsageError(
            "pretrain: tagging needs a tagger: take --tagger jieba, or leave tagging away with --pos_loss_weight 0."
        )
    if model_args.new_pos_head and not config.pos_loss_weight:
        raise UsageError("pretrain: --pos_loss_weight 0 leaves tagging away: leave --new_pos_head away too.")


def read_corpus(
    args: CorpusArguments, language: str, tagger: Any, folder: Path, console: Console, counts: Counter
) -> Any:
    """
    The texts, tagged if there is a tagger.

    Args:
        args ([`CorpusArguments`]): What to read.
        language (`str`): Language of the texts.
        tagger ([`~problems.PosTagger`], *optional*): Tags them.
        folder (`Path`): The run's folder, for the tags if they have no other.
        console (`rich.console.Console`): Where to show the progress.
        counts (`Counter`): Takes what [`read_texts`] counts.

    Raises:
        UsageError: no text is left.
    """
    from ...data.corpus.pretraining_texts import read_texts

    texts: Iterator[str] = read_texts(args.corpus, args.exclude or (), language, args.data_dir, counts)
    first = next(texts, None)
    if first is None:
        raise UsageError(f"pretrain: the corpus is empty: {', '.join(args.corpus)}: {describe_counts(counts)}.")
    texts = chain([first], texts)
    if args.max_texts is not None:
        texts = islice(texts, args.max_texts)
    if tagger is None:
        return list(texts)
    from ...data.corpus.tagged_corpus import tag_corpus
    from ..terminal.progress import counting_bar

    with counting_bar(console, f"tagging with {tagger.name}") as progress:
        return tag_corpus(texts, tagger, args.tag_cache or folder / "tags", progress=progress)


def describe_counts(counts: Mapping[str, int]) -> str:
    """What [`read_texts`] counted, in words."""
    read, double, excluded = (counts[name] for name in ("read", "duplicate", "excluded"))
    return f"read {read} texts, of which {double} doubles and {excluded} of excluded sets"


def sample_texts(corpus: Any, count: int = SAMPLE_SIZE) -> Iterator[str]:
    """So many texts of a corpus, tagged or not, evenly spread over it."""
    for number in range(min(count, len(corpus))):
        entry = corpus[number * len(corpus) // min(count, len(corpus))]
        yield entry if isinstance(entry, str) else entry[0]


def data_record(
    args: CorpusArguments, trainer: PreTrainingTrainer, tagger: Any, counts: Mapping[str, int]
) -> dict[str, Any]:
    """What the run learns from, for its record."""
    held_out = 0 if trainer.eval_dataset is None else len(trainer.eval_dataset)
    record: dict[str, Any] = {"corpus": args.corpus, "exclude": args.exclude, "texts": dict(counts)}
    record |= {"used": len(trainer.train_dataset), "held_out": held_out}
    if tagger is not None:
        record |= {"tagger": tagger.name, "tagger_fingerprint": tagger.fingerprint}
    if trainer.args.pos_loss_weight:
        record["pos_labels"] = len(trainer.model.config.pos_labels)
    return record


def pretrain(
    trainer: PreTrainingTrainer, folder: RunFolder, checkpoint: str | None, console: Console
) -> dict[str, Any]:
    """
    Trains, saves model and processor, evaluates, and writes figures and curve to the run's folder.

    Args:
        trainer ([`PreTrainingTrainer`]): Ready to train.
        folder ([`RunFolder`]): The run's record.
        checkpoint (`str`, *optional*): Checkpoint to go on from.
        console (`rich.console.Console`): Where to print.

    Returns:
        `dict`: what `metrics.json` holds.
    """
    metrics = train_and_save(trainer, checkpoint, console, "student")
    if trainer.eval_dataset is not None:
        found = trainer.evaluate(metric_key_prefix="validation")
        metrics["validation"] = {name.removeprefix("validation_"): value for name, value in found.items()}
        console.print(figures_table(metrics["validation"]))
    if is_main_process():
        curve = folder.path / "learning_curve.png"
        draw_learning_curve({"student": trainer.state.log_history}, curve, title="Pretraining", panels=PANELS)
    return metrics


def figures_table(figures: dict[str, float]) -> Table:
    """The figures of the held-out texts."""
    table = Table(title="held-out texts", title_justify="left")
    table.add_column("")
    table.add_column("", justify="right")
    for name, label in (
        ("mlm_loss", "masked words, loss"),
        ("mlm_loss_keywords", "... of keywords"),
        ("mlm_loss_numbers", "... of numbers and quantities"),
    ):
        if name in figures:
            table.add_row(label, f"{figures[name]:.3f}")
    for name, label in (
        ("mlm_accuracy", "masked words, right %"),
        ("pos_f1", "tagging, F1 %"),
        ("pos_precision", "tagging, precision %"),
        ("pos_recall", "tagging, recall %"),
    ):
        if name in figures:
            table.add_row(label, percent(figures[name]))
    return table
