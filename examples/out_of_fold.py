"""
Distil out-of-fold predictions. A teacher's predictions of the problems that it was trained on almost repeat the
labels. Here, a teacher that was not trained on a problem predicts it:

    python examples/out_of_fold.py --dataset math23k --encoder ENCODER --output_dir runs/out_of_fold --max_steps 2000

The script trains solvers from the same encoder: `labels` on all problems, `fold_0`, `fold_1` ... each on the problems
outside one fold, for as many epochs. Then it distils two students, each in as many steps as `labels`: `in_fold`, whose
teacher is `labels`, and `out_of_fold`, whose teachers are those of the folds. Their accuracy on validation problems is
in `metrics.json`. All options of `DistillationConfig` can be given. After a kill, the same command continues.
"""

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch import Tensor, nn
from transformers import HfArgumentParser, set_seed
from transformers.trainer_utils import get_last_checkpoint

from hf_mwp import (
    DistillationConfig,
    DistillationTrainer,
    MwpSolver,
    SolverTrainer,
    SolverTrainingConfig,
    build_solver,
    load_mwp_dataset,
    load_solver,
    solve_problems,
)
from hf_mwp.cli.terminal.console import make_console, quiet_libraries
from hf_mwp.cli.terminal.progress import RichProgressCallback
from hf_mwp.metrics import accuracy_report
from hf_mwp.models.mwp_solver import MwpSolverOutput
from hf_mwp.store.runs.run_folder import describe_environment


@dataclass
class Arguments:
    encoder: str
    dataset: str = "math23k"
    data_dir: str | None = None
    validation_fraction: float | None = None  # of the training problems, for a dataset without validation problems
    num_folds: int = 2
    beams: int = 5
    max_eval_samples: int | None = None


@dataclass
class OutOfFoldConfig(DistillationConfig):
    max_steps: int = 2000
    learning_rate: float = 5e-4
    decoder_learning_rate: float | None = 1e-3
    per_device_train_batch_size: int = 32
    warmup_steps: float = 0.05
    lr_scheduler_type: str = "cosine"
    weight_decay: float = 0.01
    hidden_loss: str = "none"
    embedding_weight: float = 0.0
    use_bottlenecks: bool = False
    soft_label_weight: float = 0.5
    temperature: float = 2.0
    cache_teacher_outputs: bool = True
    save_steps: float = 200
    save_total_limit: int | None = 1


class OutOfFoldTeacher(MwpSolver):
    """Solvers with the same symbols, one per fold, whose problems it has not seen and predicts."""

    def __init__(self, solvers: Sequence[MwpSolver]) -> None:
        super().__init__(solvers[0].config)
        self.load_state_dict(solvers[0].state_dict())
        self.others = nn.ModuleList(solvers[1:])

    def forward(self, input_ids: Tensor, attention_mask: Tensor, **batch: Any) -> MwpSolverOutput:
        output = super().forward(input_ids, attention_mask, **batch)
        others = [other(input_ids, attention_mask, **batch).logits for other in self.others]
        logits = torch.stack([output.logits, *others])
        folds = fold_of(input_ids * attention_mask, len(logits))
        output.logits = logits[folds, torch.arange(len(folds), device=folds.device)]
        return output


def fold_of(input_ids: Tensor, num_folds: int) -> Tensor:
    """Return the fold of each row `(B, S)` of token ids: it only depends on the text, so a teacher can compute it."""
    return input_ids.sum(-1) % num_folds


def main(argv: Sequence[str] | None = None) -> int:
    parser = HfArgumentParser((Arguments, OutOfFoldConfig))
    args, config = parser.parse_args_into_dataclasses(argv)
    quiet_libraries()
    folder, console = Path(config.output_dir), make_console()
    data = load_mwp_dataset(args.dataset, args.data_dir, validation_fraction=args.validation_fraction)
    held_out = list(data["validation"])[: args.max_eval_samples]
    options = {"encoder": args.encoder, "min_constant_count": 2, "decoder_dropout": 0.25}
    _, processor = build_solver(data["train"], **options)
    rows = processor.prepare_dataset(data["train"])
    folds = [int(fold_of(torch.tensor(ids), args.num_folds)) for ids in rows["input_ids"]]
    accuracy = {}

    def train(name: str, rows: Dataset, max_steps: int, teacher: MwpSolver | None = None) -> MwpSolver:
        """Train or load the solver of a name, and evaluate it."""
        place = folder / name
        if not (place / "model.safetensors").exists():
            set_seed(config.seed)
            model, _ = build_solver(data["train"], **options)
            given = {**config.to_dict(), "output_dir": str(place), "max_steps": max_steps}
            if teacher is None:
                known = SolverTrainingConfig.__dataclass_fields__
                own = SolverTrainingConfig(**{key: value for key, value in given.items() if key in known})
                trainer = SolverTrainer(model, own, train_dataset=rows, processing_class=processor)
            else:
                own = DistillationConfig(**given)
                trainer = DistillationTrainer(model, teacher, own, train_dataset=rows, processing_class=processor)
            progress = RichProgressCallback.attach(trainer, console, name)
            trainer.train(resume_from_checkpoint=get_last_checkpoint(place) if place.is_dir() else None)
            progress.close()
            processor.save_pretrained(place)
            trainer.save_model()
        solver, _ = load_solver(place)
        found = solve_problems(solver, processor, held_out, num_beams=args.beams)
        accuracy[name] = accuracy_report([each.score for each in found])["answer_accuracy"]
        console.print(f"{name}: {100 * accuracy[name]:.1f} % of {len(held_out)} validation problems")
        return solver

    whole = train("labels", rows, config.max_steps)
    teachers = []
    for fold in range(args.num_folds):
        rest = rows.select([row for row, each in enumerate(folds) if each != fold])
        teachers.append(train(f"fold_{fold}", rest, math.ceil(config.max_steps * len(rest) / len(rows))))
    train("in_fold", rows, config.max_steps, whole)
    train("out_of_fold", rows, config.max_steps, OutOfFoldTeacher(teachers))
    record = {"validation": accuracy, "problems": len(held_out), "num_beams": args.beams, **describe_environment()}
    record["options"] = {**vars(args), **config.to_dict()}
    (folder / "metrics.json").write_text(json.dumps(record, indent=2, default=str) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
