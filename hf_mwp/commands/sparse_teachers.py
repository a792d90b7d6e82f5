"""Task that finds the sparse teacher with the best student (STARK)."""

import copy
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel, set_seed

from hf_mwp.compress.pruning import ScoreDensity, draw_densities
from hf_mwp.compress.trainers import DistillationTrainer, StarkConfig, StarkTrainer
from hf_mwp.utils.main_process import is_main_process
from hf_mwp.utils.option import option_values
from hf_mwp.utils.run_folder import RunFolder
from hf_mwp.utils.usage_error import UsageError

from .building.student import StudentArguments
from .building.student_shape import apply_size_targets
from .evaluation import measure_splits
from .run_options import StarkArguments
from .tasks.data_options import TaskArguments
from .tasks.make_task import make_task, print_data_report
from .tasks.plots import draw_models, metric_of
from .tasks.reporter import SILENT, Reporter
from .tasks.task import Task
from .training import RunResult


SPARSITIES, DENSITIES = PICTURES = "sparsities.png", "densities.png"


def find_sparse_teacher(
    data_args: TaskArguments,
    args: StarkArguments,
    student_args: StudentArguments,
    config: StarkConfig,
    reporter: Reporter = SILENT,
) -> RunResult:
    """
    Find the sparse teacher with the best student ([`StarkTrainer`]), and evaluate every student: `hf-mwp stark`.
    Finished students are reused, and an interrupted student resumes. Raises `UsageError` if the folder contains a
    different run, or model, data and options do not match. The metrics of the result are `models` (the trial student
    and the students of sparse teachers, with sizes of their teachers and reports), `trial` and `chosen` (two of these
    models), the reports of the `teacher`, and `gain_over_trial` (metric of the chosen minus the trial student).
    """
    if config.auto_sparsity and args.scores == "random":
        raise UsageError("stark: --auto_sparsity does not support --scores random. Use --scores knowledgeable.")
    values = option_values(data_args, args, student_args, config)
    with RunFolder(config.output_dir, "stark", values, for_model=True) as folder:
        folder.check_record()
        folder.check_unused(args.overwrite or folder.is_unfinished)
        task, student_args = make_task(data_args), copy.copy(student_args)
        config = task.complete(config, "stark")
        trainer = make_stark_trainer(task, args, student_args, config, reporter)
        folder.begin()
        folder.write_json("data.json", task.data_record())
        trainer.train()
        with folder.replacing_model() as unfinished:
            trainer.save_model(unfinished)
        metrics: dict[str, Any] = {}
        if is_main_process():
            options = {"processor": trainer.processing_class, "config": config, "args": args, "reporter": reporter}
            metrics = _metrics_of(trainer, partial(measure_splits, task, **options), task.metric)
            metrics["scores"] = args.scores
            _draw(trainer, metrics["models"], task.metric, folder.path, f"{Path(args.teacher).name} on {task.name}")
            folder.finish(metrics)
    return RunResult(folder.path, metrics, task)


def make_stark_trainer(
    task: Task, args: StarkArguments, student_args: StudentArguments, config: StarkConfig, reporter: Reporter
) -> StarkTrainer:
    """Load the teacher, create the student, and return the trainer. Raises `UsageError` if they do not match."""
    # The same seed gives a student with the same random weights when the run resumes.
    set_seed(config.seed)
    print_data_report(task, reporter)
    teacher, processor = task.load_model(args.teacher)
    apply_size_targets(student_args, teacher, processor, config, reporter.print)
    student, own = task.make_student(teacher, processor, student_args)
    if own is not processor:
        raise UsageError(f"stark: {student_args.student} must have the same tokenizer as its teacher.")
    if task.rows("validation", needed=False) is None:
        raise UsageError(f"stark: {task.name} has no validation split. Set --validation_fraction.")
    config.disable_tqdm = True

    def on_trainer(trainer: DistillationTrainer, sparsity: float) -> None:
        reporter.follow(trainer, f"student, sparsity {sparsity:.0%}" if sparsity else "trial student")

    return StarkTrainer(
        teacher_model=teacher,
        args=config,
        score_dataset=task.prepare(task.learnable(task.rows("validation")), processor),
        scores=config.make_sparsifier().random(teacher, config.seed) if args.scores == "random" else None,
        on_trainer=on_trainer,
        on_scores=reporter.progress("Scoring"),
        **task.trainer_arguments(student, processor),
    )


def _draw(trainer: StarkTrainer, models: list[dict[str, Any]], metric: str, folder: Path, title: str) -> None:
    """Draw the students' metric over the sparsity, and the density of measured scores."""
    shares, chosen = [100 * each["sparsity"] for each in models], 100 * trainer.chosen.sparsity
    axis = "share of the teacher removed, %"
    draw_models(models, shares, metric, folder / SPARSITIES, title, axis, chosen=chosen)
    if trainer.knowledgeable is not None and not trainer.args.unstructured:
        scores = {"heads": trainer.scores.heads, "neurons": trainer.scores.neurons}
        densities = {name: ScoreDensity.of(each) for name, each in scores.items()}
        draw_densities(densities, folder / DENSITIES, title=f"Scores, {title}")


def _metrics_of(
    trainer: StarkTrainer, measure: Callable[[PreTrainedModel], dict[str, Any]], metric: str
) -> dict[str, Any]:
    models = {}
    for each in (trainer.trial, *trainer.students):
        known = {"sparsity": each.sparsity, "heads": list(each.heads), "neurons": list(each.neurons)}
        known |= {"teacher_parameters": each.teacher_parameters, "folder": each.folder.name, each.metric: each.value}
        models[each.sparsity] = known | measure(each.load())
    chosen, trial = models[trainer.chosen.sparsity], models[0.0]
    reports = {split: chosen[split] for split in ("validation", "test") if split in chosen}
    gains = {split: metric_of(chosen, split, metric) - metric_of(trial, split, metric) for split in reports}
    return {
        "models": list(models.values()),
        "chosen": chosen,
        "chosen_sparsity": trainer.chosen.sparsity,
        "chosen_by": trainer.chosen.metric,
        "trial": trial,
        "teacher": measure(trainer.teacher_model),
        "gain_over_trial": gains,
        **({} if trainer.knowledgeable is None else {"scored": dict(trainer.knowledgeable.about)}),
        **reports,
    }
