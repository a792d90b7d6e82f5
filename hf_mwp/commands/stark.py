"""Find the sparsity of the teacher at which its student is best (STARK). A trial student learns from the whole
teacher. Then the teacher's heads and neurons are scored, the lowest are removed at each sparsity, and a student with
the same initial weights learns from each. The best on the validation split is kept. A killed run resumes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_mwp.utils.option import option, option_values
from hf_mwp.utils.run_folder import RunFolder, describe_contents
from hf_mwp.utils.usage_error import UsageError

from .building.model_sources import locate_solver
from .building.student import StudentArguments
from .building.student_shape import apply_size_targets
from .options.run_options import FinalArguments
from .tasks.data_options import TaskArguments
from .tasks.reporter import SILENT, Reporter
from .terminal.console import CommandConsole, model_table


if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from hf_mwp.compress.trainers import DistillationTrainer, StarkConfig, StarkTrainer

    from .tasks.task import Task
    from .training import RunResult


SPARSITIES = "sparsities.png"
DENSITIES = "densities.png"
COLUMNS = {
    "": lambda model: model["name"],
    "sparsity": lambda model: f"{model['sparsity']:.0%}",
    "heads": lambda model: " ".join(map(str, model["heads"])),
    "M parameters": lambda model: f"{model['teacher_parameters'] / 1e6:.2f}",
}


@dataclass
class StarkArguments(FinalArguments):
    """Options of the teacher and the scores of its heads and neurons. `overwrite` reuses completed stages."""

    _argument_group_name = "sparse teachers"

    teacher: str | None = option(None, "Model: folder or Hub id.", required=True, common=True, locate=locate_solver)
    scores: str = option(
        "knowledgeable",
        "Score of heads and neurons: knowledgeable (gradients, see expressiveness_weight) or random (STARK-RAND).",
        common=True,
        choices=("knowledgeable", "random"),
    )


OPTIONS = (TaskArguments, StarkArguments, StudentArguments)
EXAMPLES = ("hf-mwp stark --teacher runs/teacher --dataset asdiv_a --sparsities 0.3 0.6 --output_dir runs/stark",)


def run(console: CommandConsole, *options) -> None:
    result = find_sparse_teacher(*options, reporter=console)
    if result.metrics:
        metric = result.metrics["chosen_by"].removeprefix("eval_").replace("_", " ")
        title = f"{Path(options[1].teacher).name} on {result.task.name}\nsparsity, heads by layer and parameters are "
        title += f"the teacher's; chosen by {metric} on the validation split"
        console.print(model_table(title, _named_models(result.metrics), COLUMNS, result.task.metric))
    pictures = [name for name in (SPARSITIES, DENSITIES) if (result.folder / name).is_file()]
    console.print(describe_contents(result.folder, "model", "processor", *pictures))


def _named_models(metrics: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the metrics of the teacher and of its students, each with a name for the table."""
    models = [{**metrics["trial"], **metrics["teacher"], "name": "teacher"}]
    for model in metrics["models"]:
        name = "student" if model["sparsity"] else "trial student"
        if model["sparsity"] == metrics["chosen_sparsity"]:
            name += ", chosen"
        models.append({**model, "name": name})
    return models


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
    from hf_mwp.utils.main_process import is_main_process

    from .tasks.evaluation import measure_splits
    from .tasks.make_task import make_task
    from .tasks.plots import can_draw
    from .training import RunResult

    if config.auto_sparsity and args.scores == "random":
        raise UsageError("stark: --auto_sparsity does not support --scores random. Use --scores knowledgeable.")
    if config.push_to_hub:
        raise UsageError("stark: --push_to_hub is not supported. Publish the folder of the run with `hf-mwp publish`.")
    values = option_values(data_args, args, student_args, config)
    with RunFolder(config.output_dir, "stark", values, for_model=True) as folder:
        folder.check_record()
        folder.check_unused(args.overwrite or folder.is_unfinished)
        task = make_task(data_args)
        student_args = copy.copy(student_args)
        config = task.complete(config, "stark")
        trainer = make_stark_trainer(task, args, student_args, config, reporter)
        folder.begin()
        folder.write_json("data.json", task.data_record())
        trainer.train()
        with folder.replacing_model() as unfinished:
            trainer.save_model(unfinished)
        metrics: dict[str, Any] = {}
        if is_main_process():
            processor = trainer.processing_class
            measure = partial(measure_splits, task, processor=processor, config=config, args=args, reporter=reporter)
            metrics = _metrics_of(trainer, measure, task.metric)
            metrics["scores"] = args.scores
            if can_draw(reporter):
                title = f"{Path(args.teacher).name} on {task.name}"
                _draw(trainer, metrics["models"], task.metric, folder.path, title)
            folder.finish(metrics)
    return RunResult(folder.path, metrics, task)


def make_stark_trainer(
    task: Task, args: StarkArguments, student_args: StudentArguments, config: StarkConfig, reporter: Reporter
) -> StarkTrainer:
    """Load the teacher, create the student, and return the trainer. Raises `UsageError` if they do not match."""
    from transformers import set_seed

    from hf_mwp.compress.trainers import StarkTrainer

    from .tasks.loaded_data import print_data_report

    # The same seed gives a student with the same random weights when the run resumes.
    set_seed(config.seed)
    print_data_report(task, reporter)
    teacher, processor = task.load_model(args.teacher)
    apply_size_targets(student_args, teacher, processor, config, reporter.print)
    student, student_processor = task.make_student(teacher, processor, student_args)
    if student_processor is not processor:
        raise UsageError(f"stark: {student_args.student} must have the same tokenizer as its teacher.")
    if task.rows("validation", needed=False) is None:
        raise UsageError(f"stark: {task.name} has no validation split. Set --validation_fraction.")
    config.disable_tqdm = True
    scores = None
    if args.scores == "random":
        scores = config.make_sparsifier().random(teacher, config.seed)

    def on_trainer(trainer: DistillationTrainer, sparsity: float) -> None:
        reporter.follow(trainer, f"student, sparsity {sparsity:.0%}" if sparsity else "trial student")

    return StarkTrainer(
        teacher_model=teacher,
        args=config,
        score_dataset=task.prepare(task.learnable(task.rows("validation")), processor),
        scores=scores,
        on_trainer=on_trainer,
        on_scores=reporter.progress("Scoring"),
        **task.trainer_arguments(student, processor),
    )


def _draw(trainer: StarkTrainer, models: Sequence[Mapping[str, Any]], metric: str, folder: Path, title: str) -> None:
    """Draw the students' metric over the sparsity, and the density of measured scores."""
    from hf_mwp.compress.pruning import ScoreDensity, draw_densities

    from .tasks.plots import draw_models

    shares = [100 * model["sparsity"] for model in models]
    axis = "share of the teacher removed, %"
    draw_models(models, shares, metric, folder / SPARSITIES, title, axis, chosen=100 * trainer.chosen.sparsity)
    if trainer.knowledgeable is not None and not trainer.args.unstructured:
        densities = {
            "heads": ScoreDensity.of(trainer.scores.heads),
            "neurons": ScoreDensity.of(trainer.scores.neurons),
        }
        draw_densities(densities, folder / DENSITIES, title=f"Scores, {title}")


def _metrics_of(
    trainer: StarkTrainer, measure: Callable[[PreTrainedModel], dict[str, Any]], metric: str
) -> dict[str, Any]:
    from .tasks.plots import metric_of

    models = {}
    for student in (trainer.trial, *trainer.students):
        record = {
            "sparsity": student.sparsity,
            "heads": list(student.heads),
            "neurons": list(student.neurons),
            "teacher_parameters": student.teacher_parameters,
            "folder": student.folder.name,
            student.metric: student.value,
        }
        models[student.sparsity] = record | measure(student.load())
    chosen_model = models[trainer.chosen.sparsity]
    trial = models[0.0]
    reports = {split: chosen_model[split] for split in ("validation", "test") if split in chosen_model}
    gains = {split: metric_of(chosen_model, split, metric) - metric_of(trial, split, metric) for split in reports}
    metrics = {
        "models": list(models.values()),
        "chosen": chosen_model,
        "chosen_sparsity": trainer.chosen.sparsity,
        "chosen_by": trainer.chosen.metric,
        "trial": trial,
        "teacher": measure(trainer.teacher_model),
        "gain_over_trial": gains,
    }
    if trainer.knowledgeable is not None:
        metrics["scored"] = dict(trainer.knowledgeable.about)
    return metrics | reports
