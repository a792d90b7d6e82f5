"""What the training commands have in common: the run around a trainer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ....store.runs.main_process import is_main_process
from ....store.runs.run_folder import RunFolder, describe_contents
from ....tasks.evaluation import evaluate_trained, splits_at_end
from ....tasks.pictures import PANELS, draw_learning_curve
from ....tasks.resuming import begin_record, begin_run
from ....tasks.run_arguments import ResumeArguments
from ....tasks.task import Task
from ...terminal.console import make_console, print_evaluation, solving_bar


if TYPE_CHECKING:
    from ....trainers.base_config import BaseConfig
    from ....trainers.base_trainer import BaseTrainer


class TrainingRun(ABC):
    """
    A run of a training command, from its options (`values` as they were resolved) to the finished folder. What is
    trained, `name` in bars and tables, and how it is measured is a subclass's.
    """

    panels: Mapping[str, str] = PANELS

    def __init__(
        self, command: str, name: str, values: Mapping[str, Any], config: BaseConfig, args: ResumeArguments
    ) -> None:
        self.command, self.name, self.values, self.config, self.args = command, name, values, config, args
        self.console = make_console()

    @abstractmethod
    def make_trainer(self, folder: RunFolder) -> BaseTrainer:
        """The trainer, with its data."""

    @abstractmethod
    def record(self, trainer: BaseTrainer) -> dict[str, Any]:
        """What is learned from, for `data.json`."""

    @abstractmethod
    def measure(self, trainer: BaseTrainer) -> dict[str, Any]:
        """Figures of the trained model, for `metrics.json`."""

    @abstractmethod
    def title(self) -> str:
        """Heading of the learning curve."""

    def run(self) -> int:
        """Trains, saves model and processor, measures, and leaves records and curve beside them."""
        from transformers import set_seed

        with RunFolder(self.config.output_dir, self.command, self.values, begin=False, for_model=True) as folder:
            checkpoint, changes = begin_run(folder, self.config, self.args, self.console)
            self.config.disable_tqdm = True
            set_seed(self.config.seed)
            trainer = self.make_trainer(folder)
            begin_record(folder, checkpoint, changes)
            folder.write_json("data.json", self.record(trainer))
            metrics = self._train(trainer, checkpoint) | self.measure(trainer)
            if is_main_process():
                curve = folder.path / "learning_curve.png"
                draw_learning_curve({self.name: trainer.state.log_history}, curve, self.title(), self.panels)
            folder.finish(metrics)
        self.console.print(describe_contents(folder.path, "model", "processor"))
        return 0

    def turn_off_evaluation(self, reason: str) -> None:
        """Turns off what needs examples to evaluate on, where there are none."""
        config = self.config
        if config.eval_strategy != "no":
            self.console.print(f"{reason}: nothing is evaluated on the way, and the last weights are kept.")
            config.eval_strategy, config.load_best_model_at_end = "no", False
            config.early_stopping_patience = None

    def _train(self, trainer: BaseTrainer, checkpoint: str | None) -> dict[str, Any]:
        from ....metrics import count_parameters
        from ....models.lora import merge_lora
        from ...terminal.progress import RichProgressCallback

        trained, there = (count_parameters(trainer.model, trainable_only=only) for only in (True, False))
        if trained < there:
            self.console.print(f"{trained:,} of {there:,} parameters are trained.")
        progress = RichProgressCallback.attach(trainer, self.console, self.name)
        try:
            result = trainer.train(resume_from_checkpoint=checkpoint)
        finally:
            progress.close()
        trainer.save_model()
        trainer.save_state()
        # What is measured is what was saved.
        parameters = count_parameters(merge_lora(trainer.model))
        return {"parameters": parameters, "trained_parameters": trained, "train": dict(result.metrics)}


class TaskTraining(TrainingRun):
    """
    A run that trains a model on a task, with the trainer that `make` makes of it, and measures it on the validation
    and test splits at the end. `kwargs` are those of [`TrainingRun`].
    """

    def __init__(self, task: Task, make: Callable[[Any], BaseTrainer], **kwargs) -> None:
        super().__init__(**kwargs)
        self.task, self.make = task, make
        self.panels = {"training loss": "loss", task.metric.replace("_", " "): f"eval_{task.metric}"}

    def make_trainer(self, folder):
        self.task.adapt(self.config)
        self.task.tell(self.console)
        if self.task.split("validation") is None:
            self.turn_off_evaluation("No validation split")
        return self.make(self.task)

    def record(self, trainer):
        return self.task.record()

    def title(self):
        return f"{self.name} on {self.task.name}"

    def measure(self, trainer):
        if not is_main_process():
            return {}
        metrics: dict[str, Any] = {"best_model_checkpoint": trainer.state.best_model_checkpoint}
        for split, num_beams in splits_at_end(self.task, self.args.test, self.args.test_num_beams).items():
            bar = solving_bar(self.console)
            evaluation = evaluate_trained(self.task, trainer, split, num_beams, progress=bar)
            metrics[split] = evaluation.record
            print_evaluation(self.console, evaluation, self.name, reasons=split == "test")
        return metrics
