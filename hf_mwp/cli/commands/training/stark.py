"""`hf-mwp stark`: a student of the sparse teacher that teaches best."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....store.runs.main_process import is_main_process
from ....store.runs.run_folder import RunFolder, check_output_folder, describe_contents
from ....tasks.accuracy_cells import percent
from ....tasks.evaluation import records_of, splits_at_end
from ....tasks.make_task import make_task
from ....tasks.stark_arguments import StarkArguments
from ....usage_error import UsageError
from ...options import parse_command
from ...terminal.console import make_console, make_table, solving_bar
from ..recipes.run import is_recipe
from ..recipes.run import run as run_stages


if TYPE_CHECKING:
    from rich.table import Table
    from transformers import PreTrainedModel

    from ....pruning.sparse_teacher import UnitScores
    from ....tasks.task import Task
    from ....trainers import DistillationTrainer, StarkConfig, StarkStudent, StarkTrainer

PICTURE, DENSITIES, CUMULATIVE = "sparsities.png", "densities.png", "cumulative_densities.png"


def run(argv: list[str]) -> int:
    """
    Finds a sparse teacher, or runs a recipe if the configuration file has `stages`; see `hf-mwp stark --help`. Also
    runs under `torchrun` and `accelerate launch`.
    """
    if is_recipe(argv):
        return run_stages(argv, "stark")
    (data_args, args, student_args, config), values = parse_command(
        "stark",
        "Find the sparse teacher that teaches a student best (STARK): a trial student learns from the whole teacher, "
        "the teacher's heads and neurons are scored and removed at each sparsity, and a student learns from each "
        "sparse teacher, from the same start. The best on the validation split is kept. Started again, it goes on "
        "where it was. With a --config that has `stages`, run these one after another (--budget, --dry_run, "
        "--variable, --stage.option).",
        argv,
    )
    from transformers import set_seed

    if config.auto_sparsity and args.scores == "random":
        raise UsageError(
            "stark: --auto_sparsity reads the density of knowledgeable scores: leave out --scores random."
        )
    console = make_console()
    with RunFolder(config.output_dir, "stark", values, begin=False, for_model=True) as folder:
        folder.check_record()
        folder.check_unused(args.overwrite)
        for place in filter(None, (config.stages_dir, config.teacher_cache_dir)):
            check_output_folder(place)
        task = make_task(data_args)
        task.adapt(config)
        # A student from random weights is the same one whenever it goes on.
        set_seed(config.seed)
        teacher, processor = task.load_model(args.teacher)
        task.tell(console)
        task.check_training(processor, args.teacher)
        student, own = task.make_student(teacher, processor, student_args)
        if own is not processor:
            raise UsageError(
                f"stark: {student_args.student} must have the tokenizer of its teacher to be scored with."
            )
        rows = task.split(args.score_split)
        if task.validation is None or rows is None:
            split = "validation" if task.validation is None else args.score_split
            remedy = "hold out a share of the training split (--validation_fraction)"
            remedy += "" if split == "validation" else ", or score on another part (--score_split)"
            raise UsageError(f"stark: {task.name} has no {split} part, on which sparse teachers are found: {remedy}.")
        config.disable_tqdm = True
        trainer = make_trainer(task, args, config, student, teacher, processor, rows)
        folder.begin()
        folder.write_json("data.json", task.record())

        def on_trainer(trainer: DistillationTrainer, sparsity: float) -> None:
            from ...terminal.progress import RichProgressCallback

            name = f"student, sparsity {sparsity:.0%}" if sparsity else "trial student"
            RichProgressCallback.attach(trainer, console, name)

        trainer.on_trainer, trainer.on_scores = on_trainer, solving_bar(console, "Scoring")
        trainer.train()
        trainer.save_model(folder.path)
        if is_main_process():
            splits = splits_at_end(task, args.test, args.test_num_beams)

            def measure(model: PreTrainedModel) -> dict[str, Any]:
                bar = solving_bar(console)
                return records_of(task, model.to(config.device), processor, config, splits, progress=bar)

            metrics = metrics_of(task, trainer, measure) | {"scores": args.scores, "score_split": args.score_split}
            title = f"{Path(args.teacher).name} on {task.name}"
            console.print(student_table(task, metrics, title))
            draw_sparsities(task, metrics, folder.path / PICTURE, title)
            if trainer.knowledgeable is not None and not config.unstructured:
                draw_scores(trainer.scores, folder.path, title)
            folder.finish(metrics)
    pictures = (name for name in (PICTURE, DENSITIES, CUMULATIVE) if (folder.path / name).is_file())
    console.print(describe_contents(folder.path, "model", "processor", *pictures))
    return 0


def make_trainer(
    task: Task,
    args: StarkArguments,
    config: StarkConfig,
    student: PreTrainedModel,
    teacher: PreTrainedModel,
    processor: Any,
    rows: Any,
) -> StarkTrainer:
    """The trainer, which scores on `rows` of the task."""
    from ....trainers import StarkTrainer

    random = args.scores == "random"
    return StarkTrainer(
        teacher_model=teacher,
        args=config,
        score_dataset=task.prepare(rows, processor),
        scores=config.make_sparsifier().random(teacher, config.seed) if random else None,
        **task.trainer_arguments(student, processor),
    )


def metrics_of(
    task: Task, trainer: StarkTrainer, measure: Callable[[PreTrainedModel], Mapping[str, Any]]
) -> dict[str, Any]:
    """
    What `metrics.json` says: `models`, the trial student and those of the sparse teachers, with their teachers and
    figures; the trial student and the chosen one again; the whole teacher; what the chosen one has over the trial.
    """
    students = {student.sparsity: student for student in (trainer.trial, *trainer.students)}
    models = {sparsity: describe_student(each) | measure(each.load()) for sparsity, each in students.items()}
    chosen, trial = models[trainer.chosen.sparsity], models[0.0]
    found = {split: chosen[split] for split in ("validation", "test") if split in chosen}
    gains = {split: figure(task, chosen, split) - figure(task, trial, split) for split in found}
    measured = {} if trainer.knowledgeable is None else {"scored": dict(trainer.knowledgeable.about)}
    return {
        "models": list(models.values()),
        "chosen": chosen,
        "chosen_sparsity": trainer.chosen.sparsity,
        "chosen_by": trainer.chosen.metric,
        "trial": trial,
        "teacher": dict(measure(trainer.teacher_model)),
        "gain_over_trial": gains,
        **measured,
        **found,
    }


def describe_student(student: StarkStudent) -> dict[str, Any]:
    """A student and its teacher as JSON has them."""
    return {
        "sparsity": student.sparsity,
        "heads": list(student.heads),
        "neurons": list(student.neurons),
        "teacher_parameters": student.teacher_parameters,
        "folder": student.folder.name,
        student.metric: student.value,
    }


def figure(task: Task, model: Mapping[str, Any], split: str) -> float:
    """The task's first figure of a model on a part."""
    return model[split]["reports"]["all problems"].get(task.metric, float("nan"))


def student_table(task: Task, metrics: Mapping[str, Any], title: str) -> Table:
    """The whole teacher, the trial student and the students of sparse teachers, a line each."""
    splits = [split for split in ("validation", "test") if split in metrics["trial"]]
    models = [model for model in metrics["models"] if model["sparsity"]]
    lines = [("teacher", {**metrics["trial"], **metrics["teacher"]}), ("trial student", metrics["trial"])]
    lines += [("student", model) for model in models]
    rows = []
    for name, model in lines:
        is_chosen = name != "teacher" and model["sparsity"] == metrics["chosen_sparsity"]
        shares = (percent(figure(task, model, split)) for split in splits)
        left = (" ".join(map(str, model["heads"])), f"{model['teacher_parameters'] / 1e6:.2f}")
        rows.append((name + (", chosen" if is_chosen else ""), f"{model['sparsity']:.0%}", *left, *shares))
    metric = task.metric.replace("_", " ")
    headings = ["", "sparsity", "heads", "M parameters", *(f"{split} %" for split in splits)]
    remark = (
        f"sparsity, heads by layer and parameters are the teacher's; {metric} of the model; chosen by "
        f"{metrics['chosen_by'].removeprefix('eval_').replace('_', ' ')} on the validation split"
    )
    return make_table(f"{title}\n{remark}", headings, rows, right=[each for each in headings[1:] if each != "heads"])


def draw_sparsities(task: Task, metrics: Mapping[str, Any], path: Path, title: str) -> None:
    """Draws the students' figures over the sparsity of their teachers, beside that of the trial student."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    picture = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(picture)
    panel = picture.subplots()
    shares = [100 * model["sparsity"] for model in metrics["models"]]
    for number, split in enumerate(split for split in ("validation", "test") if split in metrics["trial"]):
        figures = [100 * figure(task, model, split) for model in metrics["models"]]
        panel.plot(shares, figures, "o-", color=f"C{number}", label=split)
        panel.axhline(figures[0], color=f"C{number}", linewidth=0.8, linestyle="--")
    panel.axvline(100 * metrics["chosen_sparsity"], color="grey", linewidth=0.8, linestyle=":", label="chosen")
    panel.set(xlabel="of the teacher gone, %", ylabel=f"{task.metric.replace('_', ' ')} of the student, %")
    panel.set_title(title)
    panel.grid(alpha=0.3)
    panel.legend()
    picture.savefig(path, dpi=120, metadata={"Software": None})


def draw_scores(scores: UnitScores, folder: Path, title: str) -> None:
    """Draws the densities of the scores of heads and of neurons."""
    from ....pruning import ScoreDensity, draw_densities

    densities = {"heads": ScoreDensity.of(scores.heads), "neurons": ScoreDensity.of(scores.neurons)}
    draw_densities(densities, folder / DENSITIES, title=f"Scores, {title}")
    draw_densities(densities, folder / CUMULATIVE, cumulative=True, title=f"Scores, {title}")
