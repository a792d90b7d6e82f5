"""`hf-mwp pretrain`: masked language modelling and tagging on texts."""

from __future__ import annotations

from functools import partial

from rich.table import Table

from ....building.pretraining import PretrainingArguments
from ....tasks.pretraining_corpus import CorpusArguments, make_pretraining_trainer
from ...options import parse_command
from ...terminal.console import make_table, percent
from .training_run import TrainingRun


def run(argv: list[str]) -> int:
    """Pretrains a student; see `hf-mwp pretrain --help`. Also runs under `torchrun` and `accelerate launch`."""
    (corpus_args, model_args, resume_args, config), values = parse_command(
        "pretrain",
        "Pretrain a student on texts of math word problems: masked words, of which those that carry the mathematics "
        "are masked more often, and parts of speech.",
        argv,
    )
    options = {"values": values, "config": config, "args": resume_args}
    return Pretraining(corpus_args, model_args, command="pretrain", name="student", **options).run()


class Pretraining(TrainingRun):
    """A run that pretrains a student on texts, and measures it on those that are held out."""

    panels = {"masked words, loss": "eval_mlm_loss", "tagging, F1": "eval_pos_f1"}

    def __init__(self, corpus_args: CorpusArguments, model_args: PretrainingArguments, **kwargs) -> None:
        super().__init__(**kwargs)
        self.corpus_args, self.model_args = corpus_args, model_args

    def make_trainer(self, folder):
        from ...terminal.progress import counting_bar

        if not self.config.validation_fraction:
            self.turn_off_evaluation("No text is held out")
        bar = partial(counting_bar, self.console)
        trainer, self.corpus = make_pretraining_trainer(
            self.corpus_args, self.model_args, self.config, folder.path, bar
        )
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
    labels = {
        "mlm_loss": "masked words, loss",
        "mlm_loss_keywords": "... of keywords",
        "mlm_loss_numbers": "... of numbers and quantities",
        "mlm_accuracy": "masked words, right %",
        "pos_f1": "tagging, F1 %",
        "pos_precision": "tagging, precision %",
        "pos_recall": "tagging, recall %",
    }
    rows = (
        (label, percent(figures[name]) if label.endswith("%") else f"{figures[name]:.3f}")
        for name, label in labels.items()
        if name in figures
    )
    table = make_table("held-out texts", ("", ""), rows)
    table.columns[1].justify = "right"
    return table
