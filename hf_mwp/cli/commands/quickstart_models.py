"""The three solvers of the quickstart: a teacher, a student cut from it, and the same student from random weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from ...building.encoder import parse_layers
from ...building.model_sources import find_encoder
from ...building.solver import build_solver
from ...option_checks import check_at_least_one, check_not_negative, check_share


if TYPE_CHECKING:
    from ...data.batches.mwp_processor import MwpProcessor
    from ...models import MwpSolver


@dataclass
class QuickstartArguments:
    """
    Options of `hf-mwp quickstart`. Learning rates, epochs and layers were chosen on problems held out from the
    training part of fold 0, never on the part that the quickstart reports.
    """

    output_dir: str = field(default="hf_mwp_quickstart", metadata={"help": "Folder for models and figures."})
    encoder: str = field(
        default="all-MiniLM-L6-v2",
        metadata={"help": "Hub id or folder of the encoder; the 6-layer MiniLM of the `demo` extra otherwise."},
    )
    data_dir: str | None = field(
        default=None, metadata={"help": "Folder of ASDiv-A; examples/data/asdiv of the repository if not given."}
    )
    fold: int = field(default=0, metadata={"help": "Fold of ASDiv-A to hold out."})
    seed: int = field(default=42, metadata={"help": "Seed of weights and order."})
    num_beams: int = field(default=1, metadata={"help": "Beams of the search in the final evaluation."})
    fast: bool = field(default=False, metadata={"help": "One epoch on a part of the data: to see that it runs."})
    teacher_epochs: float = field(default=5.0, metadata={"help": "Epochs of the teacher's fine-tuning."})
    student_epochs: float = field(
        default=4.0, metadata={"help": "Epochs of the distillation, and of the student from random weights."}
    )
    student_layers: str = field(
        default="3",
        metadata={"help": "Layers of the teacher that the student starts from: a number, or indices (0,2,4)."},
    )
    baseline: bool = field(default=True, metadata={"help": "Train the student from random weights as well."})
    learning_rate: float = field(default=2e-4, metadata={"help": "Learning rate of the encoders."})
    decoder_learning_rate: float = field(default=1e-3, metadata={"help": "Learning rate of the decoders."})
    scratch_learning_rate: float = field(
        default=5e-4, metadata={"help": "Learning rate of the encoder that starts from random weights."}
    )
    batch_size: int = field(default=16, metadata={"help": "Problems of a training step."})
    dropout: float = field(default=0.1, metadata={"help": "Dropout of all models."})
    temperature: float = field(default=2.0, metadata={"help": "Temperature of the distillation."})
    threads: int | None = field(default=None, metadata={"help": "Threads; one for each core if not given."})

    def __post_init__(self):
        for name in ("teacher_epochs", "student_epochs", "batch_size", "num_beams", "temperature"):
            if not 0 < getattr(self, name) < math.inf:
                raise ValueError(f"`{name}` must be positive, not {getattr(self, name)}.")
        check_not_negative(self, "fold", "seed", "learning_rate", "decoder_learning_rate", "scratch_learning_rate")
        check_share(self, "dropout")
        check_at_least_one(self, "threads")
        if self.fast:
            self.teacher_epochs, self.student_epochs = min(self.teacher_epochs, 1), min(self.student_epochs, 1)
        parse_layers(self.student_layers, "student_layers")
        self.encoder = find_encoder(self.encoder)


def train_models(
    args: QuickstartArguments, rows: Sequence[Mapping[str, Any]], console: Console
) -> tuple[dict[str, MwpSolver], MwpProcessor, dict[str, list[dict]]]:
    """
    The trained models by name, their processor, and the logs of their trainings; teacher and student are saved.

    They are made in one process and not by stages of a recipe: a teacher that was saved and loaded gives a student
    of other last digits, and `hf-mwp train` draws random weights in another order, so that seed 42 would not give
    the accuracies that are told of it.
    """
    from transformers import set_seed

    from ...distillation import cut_student
    from ...models import MwpSolver
    from ...trainers import DistillationConfig, DistillationTrainer, SolverConfig, SolverTrainer
    from ..terminal.progress import RichProgressCallback

    folder, logs = Path(args.output_dir), {}

    def train(name, trainer_type, config_type, model, epochs, learning_rate, config=None, **more) -> MwpSolver:
        config = config_type(
            output_dir=str(folder / name.replace(" ", "_")),
            num_train_epochs=epochs,
            per_device_train_batch_size=args.batch_size,
            learning_rate=learning_rate,
            decoder_learning_rate=args.decoder_learning_rate,
            save_strategy="no",
            logging_steps=0.02,
            seed=args.seed,
            disable_tqdm=True,
            report_to="none",
            **(config or {}),
        )
        trainer = trainer_type(model=model, args=config, train_dataset=rows, processing_class=processor, **more)
        progress = RichProgressCallback.attach(trainer, console, name)
        try:
            trainer.train()
        finally:
            progress.close()
        logs[name] = trainer.state.log_history
        return model

    def save(name: str, model: MwpSolver) -> None:
        model.save_pretrained(folder / name)
        processor.save_pretrained(folder / name)

    set_seed(args.seed)
    teacher, processor = build_solver(
        rows, encoder=args.encoder, dropout=args.dropout, min_constant_count=2, indexed_numbers=True, language="en"
    )
    train("teacher", SolverTrainer, SolverConfig, teacher, args.teacher_epochs, args.learning_rate)
    save("teacher", teacher)
    student = cut_student(teacher, parse_layers(args.student_layers))
    train(
        "student",
        DistillationTrainer,
        DistillationConfig,
        student,
        args.student_epochs,
        args.learning_rate,
        config={"temperature": args.temperature},
        teacher_model=teacher,
    )
    save("student", student)
    models = {"teacher": teacher, "student": student}
    if args.baseline:
        set_seed(args.seed)
        baseline = MwpSolver(type(student.config).from_dict(student.config.to_dict()))
        models["random student"] = train(
            "random student", SolverTrainer, SolverConfig, baseline, args.student_epochs, args.scratch_learning_rate
        )
    return models, processor, logs
