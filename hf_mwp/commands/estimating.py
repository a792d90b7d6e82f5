"""Functions that estimate time, memory and disk space of a distillation from its first steps."""

import copy
import math
import time
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from typing import Any

import psutil
import torch
from transformers import PrinterCallback, TrainerCallback

from hf_mwp.compress.trainers import DistillationConfig, DistillationTrainer

from .building.student import StudentArguments, TeacherArguments
from .tasks.data_options import TaskArguments
from .tasks.make_task import make_task, print_data_report
from .tasks.reporter import SILENT, Reporter
from .training import make_distillation


STEPS, WARM_UP, EVALUATED = 20, 3, 64
ROW_BYTES = 150  # memory per row that is not mapped from files: key, number, length and position in the order


@dataclass(frozen=True)
class Estimate:
    """Estimated costs of a distillation; seconds are wall-clock time."""

    rows: int
    rows_per_step: int  # in all processes
    epochs: float
    max_steps: int  # overrides epochs if positive
    step_seconds: float
    cache_seconds: float  # per row, for caching the teacher's outputs; 0 without a cache
    cache_bytes: float
    evaluation_seconds: float  # per evaluation during training; 0 without evaluations
    eval_steps: int | None  # steps between evaluations; one epoch if `None`
    peak_bytes: int  # tensors on a GPU, resident memory on a CPU

    def of_corpus(self, times: int = 1) -> dict[str, float]:
        """Return the costs of the whole run for a corpus that is `times` as large. `hours` include `cache_hours`."""
        rows = times * self.rows
        epoch = math.ceil(rows / self.rows_per_step)
        steps = self.max_steps if self.max_steps > 0 else math.ceil(self.epochs * epoch)
        evaluations = math.ceil(steps / (self.eval_steps or epoch))
        cache = rows * self.cache_seconds
        seconds = steps * self.step_seconds + cache + evaluations * self.evaluation_seconds
        return {
            "rows": rows,
            "steps": steps,
            "hours": seconds / 3600,
            "cache_hours": cache / 3600,
            "peak_bytes": self.peak_bytes + ROW_BYTES * (rows - self.rows),
            "cache_bytes": rows * self.cache_bytes,
        }


def estimate_distillation(
    data_args: TaskArguments,
    teacher_args: TeacherArguments,
    student_args: StudentArguments,
    config: DistillationConfig,
    reporter: Reporter = SILENT,
) -> Estimate:
    """Estimate a distillation without its final test from twenty steps: `hf-mwp distill --estimate`. Saves nothing."""
    task, student_args = make_task(data_args), copy.copy(student_args)
    plan = task.complete(config, "distill")
    print_data_report(task, reporter)
    config = copy.copy(plan)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows keeps files that are mapped in memory.
        config.output_dir = config.teacher_cache_dir = folder
        config.eval_strategy = config.save_strategy = "no"
        config.load_best_model_at_end = config.push_to_hub = False
        config.max_steps, config.early_stopping_patience = WARM_UP + STEPS, None
        config.disable_tqdm, config.report_to = True, []
        with reporter.status(f"Measuring {STEPS} steps"):
            return measure(make_distillation(task, teacher_args, student_args, config, reporter), plan)


def measure(trainer: DistillationTrainer, plan: Any) -> Estimate:
    """Run the few steps of a trainer and return the estimated costs of a run with the options `plan`."""
    # The callback would print the logs of the measured steps.
    trainer.remove_callback(PrinterCallback)
    rows, args = trainer.train_dataset, trainer.args
    per_step = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
    trainer.train_dataset = rows.select(_sample(rows, args.max_steps * per_step, per_step, args))
    on_gpu = args.device.type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats()
    cache_seconds = cache_bytes = 0.0
    source = trainer.teacher_source
    if args.cache_teacher_outputs:
        started = time.perf_counter()
        source.prepare(trainer.train_dataset, trainer.data_collator)
        cache_seconds = (time.perf_counter() - started) / len(trainer.train_dataset)
        cache_bytes = source.cache.nbytes / len(trainer.train_dataset)
    clock = _StepClock()
    trainer.add_callback(clock)
    trainer.train()
    peak = torch.cuda.max_memory_allocated() if on_gpu else psutil.Process().memory_info().rss
    evaluation_seconds, held_out = 0.0, trainer.eval_dataset
    if plan.eval_strategy != "no" and hasattr(held_out, "select") and len(held_out):
        count = min(len(held_out), EVALUATED)
        started = time.perf_counter()
        trainer.evaluate(held_out.select(range(count)))
        evaluation_seconds = (time.perf_counter() - started) * len(held_out) / count
    by_steps = plan.eval_strategy == "steps" and plan.eval_steps >= 1
    return Estimate(
        len(rows),
        per_step,
        plan.num_train_epochs,
        plan.max_steps,
        (clock.ends[-1] - clock.ends[WARM_UP - 1]) / (len(clock.ends) - WARM_UP),
        cache_seconds,
        cache_bytes,
        evaluation_seconds,
        int(plan.eval_steps) if by_steps else None,
        peak,
    )


def _sample(rows: Any, count: int, longest: int, args: Any) -> list[int]:
    """Return the indices of random rows and of the longest rows, which need the most memory."""
    order = torch.randperm(len(rows), generator=torch.Generator().manual_seed(args.seed)).tolist()
    if args.length_column_name in rows.column_names:
        lengths = rows[args.length_column_name][:]
        order = sorted(range(len(rows)), key=lengths.__getitem__)[-longest:] + order
    return list(dict.fromkeys(order))[:count]


class _StepClock(TrainerCallback):
    """Callback that records the end time of each step."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, args, state, control, **kwargs):
        if args.device.type == "cuda":
            torch.cuda.synchronize()
        self.ends.append(time.perf_counter())
