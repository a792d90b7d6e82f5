"""Prune attention heads of a trained solver or, with --task, a text classifier, in rounds of distillation
("generations"): each student has fewer heads and imitates the model of the previous round. --ratios 0.2 0.3 sets the
share of pruned heads after each round (--max_ratio 0.3: a single round), --num_train_epochs the length of a round. A
restarted run resumes."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_mwp.utils.checks import check_share
from hf_mwp.utils.option import given_options, option, option_values
from hf_mwp.utils.run_folder import RunFolder, describe_contents
from hf_mwp.utils.usage_error import UsageError

from .building.model_sources import locate_solver
from .heads import IMPORTANCE_HELP, IMPORTANCES, make_importance
from .options.run_options import FinalArguments
from .tasks.data_options import TaskArguments
from .tasks.reporter import SILENT, Reporter
from .terminal.console import CommandConsole, model_table


if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from hf_mwp.compress.trainers import DistillationTrainer, Generation, RecursiveDistillationConfig

    from .tasks.task import Task
    from .training import RunResult


ACCURACY_LATENCY = "accuracy_latency.png"
COLUMNS = {
    "heads pruned": lambda model: f"{model['ratio']:.0%}",
    "left, by layer": lambda model: " ".join(map(str, model["heads"])),
    "M parameters": lambda model: f"{model['parameters'] / 1e6:.2f}",
    "M operations": lambda model: f"{model['flops'] / 1e6:.1f}",
    "ms a text": lambda model: f"{1e3 * model['seconds']:.2f}",
}


@dataclass
class PruneArguments(FinalArguments):
    """Options that select the model and the score of heads. `overwrite` reuses completed generations."""

    _argument_group_name = "pruning"

    model: str | None = option(None, "Model: folder or Hub id.", required=True, common=True, locate=locate_solver)
    importance: str = option("combined", IMPORTANCE_HELP, common=True, choices=tuple(IMPORTANCES))
    max_ratio: float | None = option(
        None, "Share of the heads to prune in a single generation: the same as ratios with one value.", common=True
    )

    def __post_init__(self):
        super().__post_init__()
        check_share(self, "max_ratio")


OPTIONS = (TaskArguments, PruneArguments)
EXAMPLES = (
    "hf-mwp prune --model runs/teacher --dataset asdiv_a --fold 0 --ratios 0.2 0.3 --output_dir runs/pruned",
    "hf-mwp prune --model runs/teacher --dataset asdiv_a --max_ratio 0.3 --importance gradient --output_dir runs/cut",
)


def run(console: CommandConsole, *options) -> None:
    result = prune(*options, reporter=console)
    if result.metrics:
        title = f"{options[1].model} on {result.task.name}"
        title += "\nparameters, operations and time are the encoder's, for one text of 32 tokens"
        console.print(model_table(title, result.metrics["models"], COLUMNS, result.task.metric))
    files = ["model", "processor"]
    if (result.folder / ACCURACY_LATENCY).exists():
        files += [ACCURACY_LATENCY, "heads_*.png"]
    console.print(describe_contents(result.folder, *files))


def prune(
    data_args: TaskArguments, args: PruneArguments, config: RecursiveDistillationConfig, reporter: Reporter = SILENT
) -> RunResult:
    """
    Prune attention heads of a trained model in generations ([`recursive_distillation`]), and evaluate each generation:
    `hf-mwp prune`. Finished generations are reused, and an interrupted generation resumes. Raises `UsageError` if the
    folder contains a different run, or no generation reaches `least_metric`. The metrics of the result are `models`
    (the given model and each generation, with reports, costs, and `saved` shares of the first model's costs), and the
    reports and `saved` shares of the last model.
    """
    from hf_mwp.compress.trainers import recursive_distillation
    from hf_mwp.utils.files import writing_weights
    from hf_mwp.utils.main_process import is_main_process
    from hf_mwp.utils.provenance import write_training_texts

    from .tasks.evaluation import measure_splits
    from .tasks.loaded_data import print_data_report
    from .tasks.make_task import make_task
    from .tasks.plots import can_draw
    from .training import RunResult

    values = option_values(data_args, args, config)
    config = copy.copy(config)
    if args.max_ratio is not None:
        if "ratios" in given_options(config):
            raise UsageError("prune: --max_ratio and --ratios are both given. Pass one of them.")
        config.ratios = [args.max_ratio]
    with RunFolder(config.output_dir, "prune", values, for_model=True) as folder:
        folder.check_record()
        folder.check_unused(args.overwrite or folder.is_unfinished)
        task = make_task(data_args)
        config = task.complete(config, "prune")
        print_data_report(task, reporter)
        model, processor = task.load_model(args.model)
        config.check_model(model)
        folder.begin()
        folder.write_json("data.json", task.data_record())
        config.output_dir = str(folder.path / "generations")
        config.disable_tqdm = True

        def on_trainer(trainer: DistillationTrainer, number: int) -> None:
            reporter.follow(trainer, f"generation {number}, {config.ratios[number - 1]:.0%} of the heads pruned")

        generations = recursive_distillation(
            args=config,
            **task.trainer_arguments(model, processor),
            importance=make_importance(args.importance, config.alpha, config.seed),
            on_trainer=on_trainer,
        )
        if not generations:
            least = f"--least_metric {config.least_metric:g}"
            raise UsageError(f"The first generation does not reach {least}. Set lower --ratios, or train it longer.")
        metrics: dict[str, Any] = {}
        if is_main_process():
            pruned = generations[-1].load()
            with folder.replacing_model() as unfinished, writing_weights(unfinished):
                pruned.save_pretrained(unfinished)
                write_training_texts(pruned, unfinished)
                processor.save_pretrained(unfinished)
            measure = partial(measure_splits, task, processor=processor, config=config, args=args, reporter=reporter)
            metrics = _metrics_of(model, generations, measure)
            if can_draw(reporter):
                _draw(args, task, metrics["models"], generations, folder.path)
            folder.finish(metrics)
    return RunResult(folder.path, metrics, task)


def _draw(
    args: PruneArguments,
    task: Task,
    models: Sequence[Mapping[str, Any]],
    generations: Sequence[Generation],
    folder: Path,
) -> None:
    """Draw the models' metric over their time, and the last scores of the heads of each generation."""
    from hf_mwp.compress.pruning import draw_importance, scores_of

    from .tasks.plots import draw_models

    title = f"{Path(args.model).name} on {task.name}"
    labels = [f"{model['ratio']:.0%}" for model in models]
    axis = "time of the encoder, % of the first model's"
    times = [100 * model["seconds"] / models[0]["seconds"] for model in models]
    draw_models(models, times, task.metric, folder / ACCURACY_LATENCY, title, axis, labels)
    for generation in generations:
        last_event = generation.metrics["events"][-1]
        heading = f"{args.importance} of heads, generation {generation.number}"
        draw_importance(scores_of(last_event["scores"]), folder / f"heads_{generation.number}.png", heading)


def _metrics_of(
    model: PreTrainedModel, generations: Sequence[Generation], measure: Callable[[PreTrainedModel], dict[str, Any]]
) -> dict[str, Any]:
    from hf_mwp.compress.models.architecture import find_encoder, layer_parts
    from hf_mwp.solver.metrics import compare_costs

    models = [model.eval()]
    descriptions: list[dict[str, Any]] = [{"ratio": 0.0, "heads": [layer.num_heads for layer in layer_parts(model)]}]
    for generation in generations:
        models.append(generation.load().eval())
        descriptions.append(
            {"ratio": generation.ratio, "heads": list(generation.heads), "folder": generation.folder.name}
        )
    # Costs are measured on the CPU, before `measure` moves the models.
    encoders = {str(number): find_encoder(model) for number, model in enumerate(models)}
    costs = list(compare_costs(encoders).values())
    first_cost = costs[0]
    records = []
    for model, description, cost in zip(models, descriptions, costs, strict=True):
        # Shares of the first model's costs; `speed` is the relative gain in texts per second.
        saved = {name: 1 - cost[name] / first_cost[name] for name in first_cost if name != "seconds"}
        saved["speed"] = first_cost["seconds"] / cost["seconds"] - 1
        splits = measure(model)
        records.append({**description, **cost, "saved": saved, **splits})
    return {"models": records, "saved": saved, **splits}
