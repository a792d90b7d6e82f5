"""`hf-mwp prune`: a solver pruned and distilled in generations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....store.runs.main_process import is_main_process
from ....store.runs.run_folder import RunFolder, check_output_folder, describe_contents
from ....tasks.accuracy_cells import percent
from ....tasks.evaluation import records_of, splits_at_end
from ....tasks.make_task import make_task
from ....tasks.pruning_arguments import make_importance
from ....usage_error import UsageError
from ...options import parse_command
from ...terminal.console import make_console, make_table, solving_bar


if TYPE_CHECKING:
    from rich.table import Table
    from transformers import PreTrainedModel

    from ....tasks.task import Task
    from ....trainers import DistillationTrainer, Generation

PICTURE = "accuracy_latency.png"


def run(argv: list[str]) -> int:
    """Prunes; see `hf-mwp prune --help`. Also runs under `torchrun` and `accelerate launch`."""
    (data_args, args, config), values = parse_command(
        "prune",
        "Prune attention heads of a trained solver, or with --task a classifier, in generations: each learns from the "
        "last one, which has more heads. Started again, it goes on where it was.",
        argv,
    )
    from ....pruning import draw_importance, scores_of
    from ....trainers import recursive_distillation
    from ...terminal.progress import RichProgressCallback

    console = make_console()
    with RunFolder(config.output_dir, "prune", values, begin=False, for_model=True) as folder:
        folder.check_record()
        folder.check_unused(args.overwrite)
        if args.generations_dir is not None:
            check_output_folder(args.generations_dir)
        task = make_task(data_args)
        task.adapt(config)
        model, processor = task.load_model(args.model)
        config.check_model(model)
        task.tell(console)
        task.check_training(processor, args.model)
        folder.begin()
        folder.write_json("data.json", task.record())
        config.output_dir = args.generations_dir or str(folder.path / "generations")
        config.disable_tqdm = True

        def on_trainer(trainer: DistillationTrainer, number: int) -> None:
            name = f"generation {number}, {config.ratios[number - 1]:.0%} of the heads pruned"
            RichProgressCallback.attach(trainer, console, name)

        splits = splits_at_end(task, args.test, args.test_num_beams) if is_main_process() else {}

        def measure(trainer: DistillationTrainer) -> dict[str, Any]:
            return records_of(task, trainer.model, processor, trainer.args, splits, progress=solving_bar(console))

        generations = recursive_distillation(
            args=config,
            **task.trainer_arguments(model, processor),
            importance=make_importance(args.importance, config.alpha, config.seed),
            on_trainer=on_trainer,
            measure=measure,
        )
        if not generations:
            raise UsageError(
                f"The first generation is worse than --least_metric {config.least_metric:g}: prune fewer heads at "
                "first (--ratios), train it longer, or lower the bound."
            )
        if is_main_process():
            result = generations[-1].load()
            result.save_pretrained(folder.path)
            processor.save_pretrained(folder.path)
            dense = records_of(task, model, processor, config, splits, progress=solving_bar(console))
            metrics = metrics_of(model, dense, generations)
            console.print(generation_table(task, metrics["models"], f"{args.model} on {task.name}"))
            title = f"{Path(args.model).name} on {task.name}"
            draw_accuracy_latency(metrics["models"], folder.path / PICTURE, title, task.metric)
            for generation in generations:
                scores, number = scores_of(generation.metrics["events"][-1]["scores"]), generation.number
                heading = f"{args.importance} of heads, generation {number}"
                draw_importance(scores, folder.path / f"heads_{number}.png", heading)
            folder.finish(metrics)
    console.print(describe_contents(folder.path, "model", "processor", PICTURE, "heads_*.png"))
    return 0


def metrics_of(model: PreTrainedModel, dense: Mapping[str, Any], generations: Sequence[Generation]) -> dict[str, Any]:
    """
    What `metrics.json` says: `models`, the one that was given and the generations, with figures, costs, and what each
    saves (shares of the first one's costs); and the last one's figures and savings.
    """
    from ....metrics import compare_costs
    from ....models.architecture import find_encoder, layer_parts

    students = [each.load().to(model.device).eval() for each in generations]
    encoders = {str(number): find_encoder(each) for number, each in enumerate([model.eval(), *students])}
    first, *others = compare_costs(encoders).values()
    heads = [each.num_heads for each in layer_parts(model)]
    models = [{"ratio": 0.0, "heads": heads, **first, "saved": savings(first, first), **dense}]
    for generation, cost in zip(generations, others, strict=True):
        known = {"ratio": generation.ratio, "heads": list(generation.heads), "folder": generation.folder.name}
        models.append(known | cost | {"saved": savings(first, cost)} | dict(generation.metrics["measured"]))
    return {"models": models, "saved": models[-1]["saved"], **generations[-1].metrics["measured"]}


def savings(first: Mapping[str, float], cost: Mapping[str, float]) -> dict[str, float]:
    """Shares of a model's costs that another one does not have; `speed`, by how much more it does in a time."""
    saved = {name: 1 - cost[name] / first[name] for name in first if name != "seconds"}
    return saved | {"speed": first["seconds"] / cost["seconds"] - 1}


def generation_table(task: Task, models: Sequence[Mapping[str, Any]], title: str) -> Table:
    """The model that was given and its generations, a line each."""
    splits = [split for split in ("validation", "test") if split in models[0]]
    headings = ["heads pruned", "left, by layer", "M parameters", "M operations", "ms a text"]
    rows = []
    for model in models:
        shares = [percent(model[split]["reports"]["all problems"].get(task.metric)) for split in splits]
        costs = (f"{model['parameters'] / 1e6:.2f}", f"{model['flops'] / 1e6:.1f}", f"{1e3 * model['seconds']:.2f}")
        heads = " ".join(map(str, model["heads"]))
        rows.append((f"{model['ratio']:.0%}", heads, *costs, *shares))
    headings += [f"{split}, {task.metric.replace('_', ' ')} %" for split in splits]
    remark = "parameters, operations and time are the encoder's, for one text of 32 tokens"
    return make_table(
        f"{title}\n{remark}", headings, rows, right=[each for each in headings if each != "left, by layer"]
    )


def draw_accuracy_latency(models: Sequence[Mapping[str, Any]], path: Path, title: str, metric: str) -> None:
    """Draws a figure against the time that an encoder takes, as a share of that of the first model."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
    panel = figure.subplots()
    times = [100 * model["seconds"] / models[0]["seconds"] for model in models]
    for split in (split for split in ("validation", "test") if split in models[0]):
        accuracies = [100 * model[split]["reports"]["all problems"][metric] for model in models]
        panel.plot(times, accuracies, "o-", label=split)
        for model, place in zip(models, zip(times, accuracies, strict=True), strict=True):
            panel.annotate(f"{model['ratio']:.0%}", place, textcoords="offset points", xytext=(5, 5), fontsize="small")
    panel.set(
        xlabel="time of the encoder, % of the first model's", ylabel=f"{metric.replace('_', ' ')}, %", title=title
    )
    panel.grid(alpha=0.3)
    if panel.lines:
        panel.legend()
    figure.savefig(path, dpi=120, metadata={"Software": None})
