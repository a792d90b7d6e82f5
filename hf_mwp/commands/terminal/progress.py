"""Progress bars of training runs in the terminal."""

import logging
import time
from contextlib import ExitStack
from typing import Self

from rich.console import Console
from rich.progress import Progress
from transformers import Trainer, TrainerCallback, TrainerState
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from hf_mwp.solver.metrics.accuracy import of_equations, percent

from .counting_bar import LINE_SECONDS, counting_bar, make_bar


# Labels of the metrics that are printed after an evaluation. Metrics with a percent sign are shares.
LABELS = {
    "answer_accuracy": "answers {} %",
    "equation_accuracy": "equations {} %",
    "accuracy": "accuracy {} %",
    "f1": "F1 {} %",
    "matthews": "Matthews {} %",
    "spearman": "Spearman {} %",
    "mlm_loss": "masked words, loss {}",
    "pos_f1": "tagging F1 {} %",
}


class RichProgressCallback(TrainerCallback):
    """Callback with a progress bar and one line per evaluation. Losses are logged and, without a terminal, printed; a
    minute without a line prints the step."""

    def __init__(self, console: Console, name: str):
        self.console = console
        self.name = name
        self.progress: Progress | None = None
        self.loss: float | None = None
        self.started = self.printed = time.perf_counter()
        self.bars = ExitStack()
        self.count = None

    @classmethod
    def attach(cls, trainer: Trainer, console: Console, name: str) -> Self:
        """Add the callback to a trainer and remove the callbacks that print."""
        for callback in (ProgressCallback, PrinterCallback):
            trainer.remove_callback(callback)
        callback = cls(console, name)
        trainer.add_callback(callback)
        return callback

    def on_train_begin(self, args, state, control, **kwargs):
        self.started = self.printed = time.perf_counter()
        if not self.console.quiet and self.console.is_terminal:
            self.progress = self.bars.enter_context(make_bar(self.console))
            self.task = self.progress.add_task(self.name, total=state.max_steps, completed=state.global_step)

    def on_teacher_cache(self, args, state, control, done: int, total: int, **kwargs):
        """Show the progress while the teacher's outputs are cached; see [`counting_bar`]."""
        if self.count is None:
            self.count = self.bars.enter_context(counting_bar(self.console, "teacher cache"))
        self.count(done, total)
        if done == total:
            self.close()
            self._log(f"teacher cache: {done} of {total} problems", show=self.console.is_terminal)

    def on_step_end(self, args, state, control, **kwargs):
        self._update_bar(completed=state.global_step)
        if not self.console.is_terminal and time.perf_counter() - self.printed > LINE_SECONDS:
            self._log_step(state)

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" not in (logs or {}):
            return
        self.loss = logs["loss"]
        self._update_bar(description=f"{self.name}  loss {self.loss:.3f}")
        self._log_step(state)

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        metrics = metrics or {}
        phrases = []
        for name, label in LABELS.items():
            if f"eval_{name}" not in metrics:
                continue
            value = metrics[f"eval_{name}"]
            phrase = label.format(percent(value) if "%" in label else f"{value:.3f}")
            if name == "equation_accuracy":
                phrase += of_equations(metrics, "eval_")
            phrases.append(phrase)
        if not phrases or state.epoch is None:
            return
        validation = ", ".join(phrases)
        line = f"{self.name}  epoch {state.epoch:g}{self._shown_loss}, validation: {validation}, {self._seconds} s"
        self._log(line)

    def on_train_end(self, args, state, control, **kwargs):
        self.close()

    def close(self) -> None:
        """Remove the progress bars. Repeated calls have no effect."""
        self.bars.close()
        self.progress = None
        self.count = None

    @property
    def _shown_loss(self) -> str:
        return "" if self.loss is None else f", loss {self.loss:.3f}"

    @property
    def _seconds(self) -> str:
        return f"{time.perf_counter() - self.started:.0f}"

    def _log_step(self, state: TrainerState) -> None:
        line = f"{self.name}  step {state.global_step}/{state.max_steps}{self._shown_loss}, {self._seconds} s"
        self._log(line, show=not self.console.is_terminal)

    def _update_bar(self, **changes) -> None:
        if self.progress is not None:
            self.progress.update(self.task, **changes)

    def _log(self, line: str, show: bool = True) -> None:
        logging.getLogger("hf_mwp.commands").info(line)
        if show:
            self.printed = time.perf_counter()
            self.console.print(line)
