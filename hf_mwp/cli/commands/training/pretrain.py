"""`hf-mwp pretrain`: masked language modelling and tagging on texts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.table import Table

from ....building.encoder import SAMPLE_SIZE
from ....building.pretraining import PretrainingArguments, PretrainingBuilder
from ....runs.run_arguments import ResumeArguments
from ....runs.stage_arguments import types_of
from ....tasks.pretraining_corpus import NO_TAGGER, CorpusArguments, read_corpus
from ....usage_error import UsageError
from ...options.parsing import parse
from ...options.training_options import PreTrainingOptions
from ...terminal.console import percent
from .training_run import TrainingRun


if TYPE_CHECKING:
    from ....trainers import PreTrainingConfig

COMMON = (CorpusArguments, PretrainingArguments, PreTrainingOptions, ResumeArguments)


argument_types = partial(types_of, "pretrain")


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
    check_tagging(corpus_args, model_args, config)
    options = {"values": values, "config": config, "args": resume_args}
    return Pretraining(corpus_args, model_args, command="pretrain", name="student", **options).run()


def check_tagging(args: CorpusArguments, model_args: PretrainingArguments, config: PreTrainingConfig) -> None:
    """Raises `UsageError` if tags are needed and there is no tagger, or a head for them and they are not learned."""
    if args.tagger == NO_TAGGER and config.pos_loss_weight:
        raise UsageError(
            "pretrain: tagging needs a tagger: take --tagger jieba, or leave tagging away with --pos_loss_weight 0."
        )
    if model_args.new_pos_head and not config.pos_loss_weight:
        raise UsageError("pretrain: --pos_loss_weight 0 leaves tagging away: leave --new_pos_head away too.")


class Pretraining(TrainingRun):
    """A run that pretrains a student on texts, and measures it on those that are held out."""

    panels = {"masked words, loss": "eval_mlm_loss", "tagging, F1": "eval_pos_f1"}

    def __init__(self, corpus_args: CorpusArguments, model_args: PretrainingArguments, **kwargs) -> None:
        super().__init__(**kwargs)
        self.corpus_args, self.model_args = corpus_args, model_args

    def make_trainer(self, folder):
        from transformers import set_seed

        from ....data.training_texts import short_name
        from ....problems.tagging.pos_tagger import load_tagger
        from ....trainers import PreTrainingTrainer
        from ...terminal.progress import counting_bar

        args, config = self.corpus_args, self.config
        tagger = None if args.tagger == NO_TAGGER else load_tagger(args.tagger)
        builder = PretrainingBuilder(self.model_args, tagger.name if config.pos_loss_weight else None)
        bar = partial(counting_bar, self.console)
        with config.main_process_first(local=False, desc="tagging"):
            self.corpus = read_corpus(args, self.model_args.language, tagger, folder.path, bar)
        if not config.validation_fraction:
            self.turn_off_evaluation("No text is held out")
        set_seed(config.seed)
        texts = self.corpus.texts
        with bar("encoding") as progress:
            trainer = PreTrainingTrainer(
                model=builder.build(texts.tags if config.pos_loss_weight else None, self.corpus.sample(SAMPLE_SIZE)),
                args=config,
                train_dataset=texts,
                processing_class=builder.processor,
                progress=progress,
            )
        trainer.text_sources = tuple(map(short_name, args.corpus))
        record = self.record(trainer)
        self.console.print(
            f"{record['used']} texts to learn from, {record['held_out']} held out; {self.corpus.description}"
        )
        return trainer

    def record(self, trainer):
        held_out = 0 if trainer.eval_dataset is None else len(trainer.eval_dataset)
        record = {"corpus": self.corpus_args.corpus, "exclude": self.corpus_args.exclude, **self.corpus.record()}
        record |= {"used": len(trainer.train_dataset), "held_out": held_out}
        if self.config.pos_loss_weight:
            record["pos_labels"] = len(trainer.model.config.pos_labels)
        return record

    def title(self):
        return "Pretraining"

    def measure(self, trainer):
        if trainer.eval_dataset is None:
            return {}
        found = trainer.evaluate(metric_key_prefix="validation")
        figures = {name.removeprefix("validation_"): value for name, value in found.items()}
        self.console.print(figures_table(figures))
        return {"validation": figures}


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
