"""Tasks that score attention heads, and prune them in rounds of distillation ("generations")."""

import copy
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from hf_mwp.compress import pruning
from hf_mwp.compress.models.architecture import find_encoder, layer_parts
from hf_mwp.compress.pruning import HeadImportance, draw_importance, rows_of, scores_of
from hf_mwp.compress.trainers import (
    DistillationTrainer,
    Generation,
    RecursiveDistillationConfig,
    recursive_distillation,
)
from hf_mwp.solver.metrics import compare_costs
from hf_mwp.utils.files import write_json, writing_weights
from hf_mwp.utils.main_process import is_main_process
from hf_mwp.utils.option import option_values
from hf_mwp.utils.provenance import write_training_texts
from hf_mwp.utils.run_folder import RunFolder, check_output_folder
from hf_mwp.utils.usage_error import UsageError

from .evaluation import measure_splits
from .run_options import IMPORTANCES, HeadsArguments, PruneArguments
from .tasks.data_options import MeasuredTaskArguments, TaskArguments
from .tasks.make_task import make_task, print_data_report
from .tasks.plots import draw_models
from .tasks.reporter import SILENT, Reporter
from .training import RunResult


ACCURACY_LATENCY = "accuracy_latency.png"


def make_importance(name: str, alpha: float = 0.5, seed: int = 0) -> HeadImportance:
    """Create the score of attention heads with this name; `alpha` is used by "combined", `seed` by "random"."""
    kind = getattr(pruning, IMPORTANCES[name])
    return kind(alpha) if name == "combined" else kind(seed) if name == "random" else kind()


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
    values = option_values(data_args, args, config)
    with RunFolder(config.output_dir, "prune", values, for_model=True) as folder:
        folder.check_record()
        folder.check_unused(args.overwrite or folder.is_unfinished)
        task, config = make_task(data_args), copy.copy(config)
        config.adapt(task)
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
            options = {"processor": processor, "config": config, "args": args, "reporter": reporter}
            metrics = _metrics_of(model, generations, partial(measure_splits, task, **options))
            models, title = metrics["models"], f"{Path(args.model).name} on {task.name}"
            labels, axis = [f"{each['ratio']:.0%}" for each in models], "time of the encoder, % of the first model's"
            times = [100 * each["seconds"] / models[0]["seconds"] for each in models]
            draw_models(models, times, task.metric, folder.path / ACCURACY_LATENCY, title, axis, labels)
            for generation in generations:
                scores, number = scores_of(generation.metrics["events"][-1]["scores"]), generation.number
                heading = f"{args.importance} of heads, generation {number}"
                draw_importance(scores, folder.path / f"heads_{number}.png", heading)
            folder.finish(metrics)
    return RunResult(folder.path, metrics, task)


def _metrics_of(
    model: PreTrainedModel, generations: Sequence[Generation], measure: Callable[[PreTrainedModel], dict[str, Any]]
) -> dict[str, Any]:
    every = [model.eval(), *(each.load().eval() for each in generations)]
    # Costs are measured on the CPU, before `measure` moves the models.
    costs = list(compare_costs({str(number): find_encoder(each) for number, each in enumerate(every)}).values())
    known = [{"ratio": 0.0, "heads": [each.num_heads for each in layer_parts(model)]}]
    known += [{"ratio": each.ratio, "heads": list(each.heads), "folder": each.folder.name} for each in generations]
    models, first, splits = [], costs[0], {}
    for about, cost, each in zip(known, costs, every, strict=True):
        # Shares of the first model's costs; `speed` is the relative gain in texts per second.
        saved = {name: 1 - cost[name] / first[name] for name in first if name != "seconds"}
        saved["speed"] = first["seconds"] / cost["seconds"] - 1
        splits = measure(each)
        models.append({**about, **cost, "saved": saved, **splits})
    return {"models": models, "saved": models[-1]["saved"], **splits}


def score_heads(args: HeadsArguments, data_args: MeasuredTaskArguments) -> tuple[Path, list[list[float | None]]]:
    """Score the attention heads of a model, and write the scores to `heads.json` and `heads.png`: `hf-mwp heads`.
    Returns the folder, and the scores by layer and head, with `None` for pruned heads."""
    importance = make_importance(args.importance, args.alpha, args.seed)
    folder = Path(args.output_dir or Path("runs") / f"heads_{Path(args.model).resolve().name}")
    check_output_folder(folder)
    task = make_task(data_args)
    rows = task.learnable(task.rows(args.split))
    rows = list(rows.select(range(min(len(rows), args.num_batches * args.batch_size))))
    model, processor = task.load_model(args.model, args.split)
    batches = task.labelled_batches(model, processor, rows, args.batch_size)
    scores = importance.scores(model, batches)
    folder.mkdir(parents=True, exist_ok=True)
    known = {"model": args.model, "importance": args.importance, "dataset": task.name}
    num_texts, layers = sum(len(batch["input_ids"]) for batch in batches), rows_of(scores)
    write_json(folder / "heads.json", known | {"texts": num_texts, "scores": layers})
    draw_importance(scores, folder / "heads.png", title=f"{args.importance} of the heads of {Path(args.model).name}")
    return folder, layers
