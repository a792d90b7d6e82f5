"""Progress of a training run in the terminal."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from transformers import Trainer, TrainerCallback
from transformers.trainer_callback import PrinterCallback, ProgressCallback

from .console import of_equations, percent


# What an evaluation's line shows, of solvers and of pretraining.
FIGURES = {
    "eval_answer_accuracy": "answers",
    "eval_equation_accuracy": "equations",
    "eval_accuracy": "accuracy",
    "eval_f1": "F1",
    "eval_matthews": "Matthews",
    "eval_spearman": "Spearman",
    "eval_mlm_loss": "masked words, loss",
    "eval_pos_f1": "tagging F1",
}
SECONDS_BETWEEN_LINES = 30.0  # while the teacher's outputs are cached
SHARES = ("answers", "equations", "accuracy", "F1", "Matthews", "Spearman", "tagging F1")


class RichProgressCallback(TrainerCallback):
    """
    A progress bar, and one line for each evaluation; takes the place of the Trainer's own printing. Each report of the
    loss is a line of the run's log, and of the output where that is no terminal. A quiet console prints nothing.
    """

    def __init__(self, console: Console, name: str):
        self.console, self.name = console, name
        self.progress: Progress | None = None
        self.loss: float | None = None
        self.caching: tuple[float, float] | None = None

    @classmethod
    def attach(cls, trainer: Trainer, console: Console, name: str) -> RichProgressCallback:
        """Puts the callback into a trainer in place of those that print."""
        for callback in (ProgressCallback, PrinterCallback):
            trainer.remove_callback(callback)
        callback = cls(console, name)
        trainer.add_callback(callback)
        return callback

    def on_train_begin(self, args, state, control, **kwargs):
        self.started = time.perf_counter()
        self._start_bar(self.name, state.max_steps, state.global_step)

    def _start_bar(self, name: str, total: int, completed: int) -> None:
        if self.console.quiet or not self.console.is_terminal:
            return
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
        self.progress = Progress(*columns, TimeRemainingColumn(), console=self.console, transient=True)
        self.task = self.progress.add_task(name, total=total, completed=completed)
        self.progress.start()

    def on_teacher_cache(self, args, state, control, done: int, total: int, **kwargs):
        """While the teacher's outputs are cached, before training: a bar, or a line now and then."""
        now = time.perf_counter()
        if self.caching is None:
            self.caching = now, now
            self._start_bar("teacher cache", total, done)
        begin, reported = self.caching
        if self.progress is not None:
            self.progress.update(self.task, completed=done)
        if done == total or now - reported > SECONDS_BETWEEN_LINES:
            self.caching = begin, now
            line = f"teacher cache  {done}/{total} problems, {now - begin:.0f} s"
            logging.getLogger("hf_mwp.cli").info(line)
            if done == total or not self.console.is_terminal:
                self.console.print(line)
        if done == total:
            self.close()
            self.caching = None

    def on_step_end(self, args, state, control, **kwargs):
        if self.progress is not None:
            self.progress.update(self.task, completed=state.global_step)

    def on_log(self, args, state, control, logs=None, **kwargs):
        logs = logs or {}
        self.loss = logs.get("loss", self.loss)
        if "loss" not in logs:
            return
        if self.progress is not None:
            self.progress.update(self.task, description=f"{self.name}  loss {logs['loss']:.3f}")
        seconds = time.perf_counter() - self.started
        line = f"{self.name}  step {state.global_step}/{state.max_steps}, loss {logs['loss']:.3f}, {seconds:.0f} s"
        logging.getLogger("hf_mwp.cli").info(line)
        if not self.console.is_terminal:
            self.console.print(line)

    def on_evaluate(self, args, state, control, metrics=None, **kwargs):
        metrics = metrics or {}
        counts = {"eval_equation_accuracy": of_equations(metrics, "eval_")}
        figures = [
            f"{label} {percent(metrics[name])} %{counts.get(name, '')}"
            if label in SHARES
            else f"{label} {metrics[name]:.3f}"
            for name, label in FIGURES.items()
            if name in metrics
        ]
        if not figures or state.epoch is None:
            return
        parts = [f"{self.name}  epoch {state.epoch:g}"]
        if self.loss is not None:
            parts.append(f"loss {self.loss:.3f}")
        parts += [f"validation: {figures[0]}", *figures[1:]]
        if hasattr(self, "started"):
            parts.append(f"{time.perf_counter() - self.started:.0f} s")
        line = ", ".join(parts)
        self.console.print(line)
        logging.getLogger("hf_mwp.cli").info(line)

    def on_train_end(self, args, state, control, **kwargs):
        self.close()

    def close(self) -> None:
        """Takes the bar away; more than once does no harm."""
        if self.progress is not None:
            self.progress.stop()
            self.progress = None


@contextmanager
def counting_bar(console: Console, name: str) -> Iterator[Callable[[int, int | None], None]]:
    """
    A bar for something that is counted, to be called with the number done and, if it is known, of all; without a
    terminal a line when it is done.
    """
    started, count = time.perf_counter(), 0
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(name, total=None)

        def update(done: int, total: int | None = None) -> None:
            nonlocal count
            count = done
            bar.update(task, completed=done, total=total)

        yield update
    if count and not console.is_terminal:
        console.print(f"{name}: {count}, {time.perf_counter() - started:.0f} s")
