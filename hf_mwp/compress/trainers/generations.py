"""Recursive distillation: each pruned student becomes the teacher of the next, smaller student."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn
from transformers import PreTrainedModel

from hf_mwp.compress.distillation.objectives import EmbeddingOutputs, LayerObjective, Objective
from hf_mwp.compress.metrics.efficiency import count_parameters
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.models.fingerprints import hash_model
from hf_mwp.compress.models.pruned_form import pruned_class
from hf_mwp.compress.pruning import HeadImportance
from hf_mwp.utils.checked_types import checked

from .distillation_config import default_objectives
from .distillation_trainer import DistillationTrainer
from .recursive_distillation_config import RecursiveDistillationConfig
from .stage_folders import TrainingStages


# Arguments that do not affect the training of a generation.
OF_THE_LOOP = ("ratios", "max_parameters", "least_metric")


@dataclass(frozen=True)
class Generation:
    """A student of [`recursive_distillation`], which becomes the teacher of the next student."""

    number: int  # from 1
    ratio: float  # share of the first model's heads that has been removed
    folder: Path  # with the model, processor and `metrics.json`
    heads: tuple[int, ...]  # number of remaining heads in each layer
    parameters: int
    metrics: Mapping[str, Any]  # `eval`, if there is an evaluation split; `events`, the log of [`HeadPruningCallback`]
    model_class: type[PreTrainedModel]

    def load(self) -> PreTrainedModel:
        """Load the model."""
        return self.model_class.from_pretrained(self.folder)


@checked
def recursive_distillation(
    model: PreTrainedModel,
    args: RecursiveDistillationConfig,
    train_dataset: Any,
    eval_dataset: Any = None,
    processing_class: Any = None,
    data_collator: Any = None,
    objectives: Sequence[Objective] | None = None,
    importance: HeadImportance | None = None,
    on_trainer: Callable[[DistillationTrainer, int], None] | None = None,
    compute_metrics: Callable[[Any], Mapping[str, float]] | None = None,
) -> list[Generation]:
    """
    Prune attention heads in several generations. In each generation a copy of the teacher is pruned while it learns
    from the teacher ([`HeadPruningCallback`] in a [`DistillationTrainer`]); it is the teacher of the next generation,
    which has fewer heads. Each generation is saved in a folder of `args.output_dir`, named by a fingerprint of its
    inputs. Completed generations are reused, interrupted trainings resume.

    Args:
        model (`PreTrainedModel`):
            The first teacher, trained for its task: a classifier, a masked language model or a solver whose encoder is
            supported by [`~models.architecture.find_encoder`]. It is not changed.
        args ([`RecursiveDistillationConfig`]): Ratios, pruning schedule, loss and training arguments.
        train_dataset (`Dataset` of a known length), eval_dataset, processing_class, data_collator:
            As in [`DistillationTrainer`].
        objectives (`Sequence[Objective]`, *optional*): Objectives to use instead of the loss of equations 6 and 7.
        importance ([`HeadImportance`], *optional*): Importance score to use instead of [`CombinedImportance`].
        on_trainer (`Callable`, *optional*): Called with a generation's trainer and number before training.
        compute_metrics (`Callable`, *optional*): As in `Trainer`, for models that are not solvers.

    Returns:
        `list[Generation]`: The generations; the last one is the result. The list ends before the highest ratio if a
        generation is small enough (`args.max_parameters`) or the next one is too bad (`args.least_metric`). It is
        empty if the first generation is too bad.

    Raises:
        ValueError: A ratio is higher than the heads allow, the encoder is not supported, or the evaluation split or
            metric for `least_metric` is missing; also as [`HeadPruningCallback`] and [`DistillationTrainer`].

    References:
        Yu et al., "Efficient Mathematical Reasoning Models via Dynamic Pruning and Knowledge Distillation",
        Algorithm 2, equations 6 and 7.

    Example:

    ```python
    >>> generations = recursive_distillation(
    ...     solver, RecursiveDistillationConfig("pruned", ratios=[0.2, 0.3]), train, valid, processor
    ... )
    >>> smaller = generations[-1].load()
    ```
    """
    if args.least_metric is not None and eval_dataset is None:
        raise ValueError("`least_metric` needs an `eval_dataset`. Pass `eval_dataset`, or omit `least_metric`.")
    data = {
        "train_dataset": train_dataset,
        "eval_dataset": eval_dataset,
        "processing_class": processing_class,
        "data_collator": data_collator,
    }
    model_class = pruned_class(model)
    args.check_model(model)
    if objectives is None:
        objectives = _default_objectives(args)
    stages = TrainingStages(
        args.output_dir, args, data, objectives, OF_THE_LOOP, [importance], compute_metrics=compute_metrics
    )
    num_heads = sum(_heads(model))
    teacher = model
    generations = []
    for number, ratio in enumerate(args.ratios, start=1):
        num_remaining = num_heads - args.num_pruned(model, ratio)
        callback = args.make_callback(1 - num_remaining / sum(_heads(teacher)), importance)

        def begin(trainer: DistillationTrainer, number=number) -> None:
            if on_trainer is not None:
                on_trainer(trainer, number)

        def finish(trainer: DistillationTrainer, ratio=ratio, callback=callback) -> dict[str, Any]:
            return {"ratio": ratio, "events": callback.log}

        job = stages.job(f"generation_{number}", teacher=hash_model(teacher), num_heads=num_remaining)
        metrics = stages.train(job, teacher, teacher, finish, begin, callbacks=[callback])
        student = model_class.from_pretrained(job.path)
        generation = Generation(
            number, ratio, job.path, _heads(student), count_parameters(student), metrics, model_class
        )
        if args.least_metric is not None and not _reaches(metrics, args.least_metric):
            break
        generations.append(generation)
        if args.max_parameters is not None and generation.parameters <= args.max_parameters:
            break
        teacher = student
    return generations


def _default_objectives(args: RecursiveDistillationConfig) -> list[Objective]:
    """Return the objectives of equations 6 and 7, in which the layers share the weight of the soft labels."""
    objectives = default_objectives(args)
    for objective in objectives:
        compares_layers = isinstance(objective, LayerObjective) and not isinstance(objective, EmbeddingOutputs)
        if compares_layers and args.hidden_weights is None:
            objective.layer_weights = float(args.soft_label_weight)
    return objectives


def _reaches(metrics: Mapping[str, Any], least: float) -> bool:
    """Return whether the metric of a generation is at least as good as `least`. NaN is not."""
    value = metrics["eval"][metrics["metric"]]
    return value >= least if metrics["greater_is_better"] else value <= least


def _heads(model: nn.Module) -> tuple[int, ...]:
    return tuple(parts.num_heads for parts in layer_parts(model))
