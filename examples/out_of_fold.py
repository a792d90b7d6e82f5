"""
Distil out-of-fold predictions. A teacher's predictions of the problems that it was trained on almost repeat the
labels. Here, a teacher that was not trained on a problem predicts it:

    python examples/out_of_fold.py --dataset math23k --encoder ENCODER --output_dir runs/out_of_fold --max_steps 2000

The script trains solvers with the options of `hf-mwp train`: `labels` on all problems, `fold_0`, `fold_1` ... each on
the problems outside one fold, for as many epochs. Then it distils two students with the options of `hf-mwp distill`,
each in as many steps as `labels`: `in_fold`, whose teacher is `labels`, and `out_of_fold`, whose teachers are those of
the folds. Their accuracy on validation problems is in `metrics.json`. After a kill, the same command continues.
"""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from hf_mwp import MwpSolver, SolverDistillationConfig, load_solver
from hf_mwp.commands.building.solver import SolverArguments
from hf_mwp.commands.options.parsing import parse
from hf_mwp.commands.options.run_options import RunArguments
from hf_mwp.commands.tasks import MathWordProblems
from hf_mwp.commands.tasks.data_options import DataArguments
from hf_mwp.commands.tasks.loaded_data import keep_loaded
from hf_mwp.commands.terminal.console import CommandConsole, make_console, quiet_libraries
from hf_mwp.commands.training import make_trainer, train_on_task
from hf_mwp.compress.trainers.base_trainer import BaseTrainer
from hf_mwp.solver.models.mwp_solver import MwpSolverOutput
from hf_mwp.utils.files import write_json
from hf_mwp.utils.job import Job
from hf_mwp.utils.option import affects_result, option, option_values, options_in
from hf_mwp.utils.run_folder import describe_environment, plain


@dataclass
class FoldArguments:
    """Number of folds."""

    num_folds: int = option(2, "Number of folds, each with its own teacher.")


@dataclass
class OutOfFoldConfig(SolverDistillationConfig):
    """[`SolverDistillationConfig`] with defaults for soft labels of the same symbols and 2,000 steps."""

    output_dir: str = "runs/out_of_fold"
    max_steps: int = 2000
    learning_rate: float = 5e-4
    decoder_learning_rate: float | None = 1e-3
    per_device_train_batch_size: int = 32
    warmup_steps: float = 0.05
    lr_scheduler_type: str = "cosine"
    weight_decay: float = 0.01
    hidden_loss: str | None = "none"
    embedding_weight: float = 0.0
    use_bottlenecks: bool = False
    soft_label_weight: float = 0.5
    temperature: float = 2.0
    cache_teacher_outputs: bool = True
    num_beams: int = 5
    save_steps: float = 200
    save_total_limit: int | None = 1


class OutsideFold(MathWordProblems):
    """Math word problems, whose training problems of the fold `left_out` are not used."""

    def __init__(self, options: DataArguments, num_folds: int, left_out: int) -> None:
        super().__init__(options)
        self.num_folds = num_folds
        self.left_out = left_out

    def trainer_arguments(self, model, processor, config=None):
        arguments = super().trainer_arguments(model, processor, config)
        rows = processor.prepare_dataset(arguments["train_dataset"])
        indices = []
        for index, ids in enumerate(rows["input_ids"]):
            fold = int(fold_of(torch.tensor(ids), self.num_folds))
            if fold != self.left_out:
                indices.append(index)
        arguments["train_dataset"] = rows.select(indices)
        return arguments


class OutOfFoldTeacher(MwpSolver):
    """Solvers with the same symbols, one per fold, whose problems it has not seen and predicts."""

    def __init__(self, solvers: Sequence[MwpSolver]) -> None:
        super().__init__(solvers[0].config)
        self.load_state_dict(solvers[0].state_dict())
        self.others = nn.ModuleList(solvers[1:])

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **batch: Any) -> MwpSolverOutput:
        output = super().forward(input_ids, attention_mask, **batch)
        logits_by_fold = [output.logits]
        for solver in self.others:
            logits_by_fold.append(solver(input_ids, attention_mask, **batch).logits)
        logits = torch.stack(logits_by_fold)
        folds = fold_of(input_ids * attention_mask, len(logits))
        output.logits = logits[folds, torch.arange(len(folds), device=folds.device)]
        return output


def fold_of(input_ids: Tensor, num_folds: int) -> Tensor:
    """Return the fold of each row `(B, S)` of token ids: it only depends on the text, so a teacher can compute it."""
    return input_ids.sum(-1) % num_folds


class Trainings:
    """Trains solvers with the same options, each in its own folder; `accuracy` is that on validation problems."""

    def __init__(self, options: Sequence[Any], console: CommandConsole) -> None:
        *self.options, self.config = options
        self.console = console
        self.accuracy = {}

    def train(self, name: str, task: MathWordProblems, max_steps: int, teacher: MwpSolver | None = None) -> MwpSolver:
        """Train the solver of a name unless it is trained, and load it."""
        options = options_in(*map(type, self.options), OutOfFoldConfig).values()
        values = option_values(*self.options, self.config)
        depends_on = {}
        for option_field in options:
            if affects_result(option_field):
                depends_on[option_field.name] = plain(values[option_field.name])
        job = Job.named(self.config.output_dir, name, depends_on)
        config = replace(self.config, output_dir=str(job.path), max_steps=max_steps)
        teachers = {}
        if teacher is not None:
            teachers["teacher_model"] = teacher

        def run() -> None:
            args = RunArguments(resume=job.checkpoint is not None, overwrite=True, test=False)

            def make() -> tuple[BaseTrainer, dict[str, Any]]:
                model, processor = task.build_model(self.options[1])
                trainer = make_trainer(task, config, model, processor, **teachers)
                return trainer, task.data_record()

            train_on_task(task, make, "train", name, (*self.options, args, config), self.console)

        job.run(run)
        self.accuracy[name] = job.metrics["validation"]["reports"]["all problems"]["answer_accuracy"]
        self.console.print(f"{name}: {100 * self.accuracy[name]:.1f} % of the validation problems")
        return load_solver(job.path)[0]


def main(argv: Sequence[str] | None = None) -> int:
    """Train and distil the solvers, and write their accuracy."""
    if argv is None:
        argv = sys.argv[1:]
    classes = (DataArguments, SolverArguments, FoldArguments, OutOfFoldConfig)
    options = parse("out_of_fold", __doc__, classes, argv)
    data_args, _, fold_args, config = options
    quiet_libraries()
    trainings = Trainings(options, make_console())
    every = MathWordProblems(data_args)
    with keep_loaded():
        whole = trainings.train("labels", every, config.max_steps)
        steps = math.ceil(config.max_steps * (1 - 1 / fold_args.num_folds))
        teachers = []
        for fold in range(fold_args.num_folds):
            task = OutsideFold(data_args, fold_args.num_folds, fold)
            teachers.append(trainings.train(f"fold_{fold}", task, steps))
        trainings.train("in_fold", every, config.max_steps, whole)
        trainings.train("out_of_fold", every, config.max_steps, OutOfFoldTeacher(teachers))
    record = {"validation": trainings.accuracy, "problems": len(every.rows("validation")), **describe_environment()}
    write_json(Path(config.output_dir) / "metrics.json", record | {"options": plain(option_values(*options))})
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:
        sys.exit(f"out_of_fold.py: {error}")
