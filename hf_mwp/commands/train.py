"""
Fine-tune a solver of math word problems: an encoder, pretrained or with random weights, and a tree decoder. With
--task, fine-tune a text classifier for a GLUE task or a sequence-to-sequence model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .building.solver import SolverArguments
from .options.run_options import RunArguments
from .tasks.data_options import TaskArguments
from .tasks.reporter import SILENT, Reporter
from .terminal.console import CommandConsole, print_result


if TYPE_CHECKING:
    from hf_mwp.compress.trainers.base_config import BaseConfig
    from hf_mwp.compress.trainers.base_trainer import BaseTrainer

    from .training import RunResult


OPTIONS = (TaskArguments, SolverArguments, RunArguments)
EXAMPLES = (
    "hf-mwp train --dataset asdiv_a --encoder sentence-transformers/all-MiniLM-L6-v2 --output_dir runs/teacher",
    "hf-mwp train --task rte --data_dir GLUE --encoder google-bert/bert-base-uncased --output_dir runs/classifier",
)


def run(console: CommandConsole, *options) -> None:
    result = train(*options, reporter=console)
    print_result(console, result, result.task.kind)


def train(
    data_args: TaskArguments,
    solver_args: SolverArguments,
    run_args: RunArguments,
    config: BaseConfig,
    reporter: Reporter = SILENT,
) -> RunResult:
    """
    Fine-tune a solver or, with `data_args.task`, a different model, and evaluate it: `hf-mwp train`. The config is a
    [`SolverTrainingConfig`], or that of the task ([`~tasks.Task.configs`]). Raises `UsageError` if the folder contains
    a different run, or model, data and options do not match.

    Example:

    ```python
    >>> config = SolverTrainingConfig("runs/teacher", num_train_epochs=10)
    >>> result = train(TaskArguments("math23k"), SolverArguments(encoder="bert-base-chinese"), RunArguments(), config)
    >>> result.metrics["test"]["reports"]["all problems"]["answer_accuracy"]
    ```
    """
    from .tasks.make_task import make_task
    from .training import make_trainer, train_on_task

    task = make_task(data_args)
    config = task.complete(config, "train")

    def make() -> tuple[BaseTrainer, dict[str, Any]]:
        model, processor = task.build_model(solver_args)
        return make_trainer(task, config, model, processor), task.data_record()

    options = (data_args, solver_args, run_args, config)
    return train_on_task(task, make, "train", task.kind, options, reporter)
