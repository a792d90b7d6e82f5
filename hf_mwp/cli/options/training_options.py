"""What `--help` of the training commands says of the trainers' options."""

from __future__ import annotations

from dataclasses import dataclass

from ...option_roles import option


@dataclass
class TrainingOptions:
    """
    The options of trainers that most runs set. The configs themselves have a hundred, those of
    `transformers.TrainingArguments`, whose import takes seconds: `--help all` shows them.
    """

    _argument_group_name = "training"

    output_dir: str | None = option(None, "Folder for the model and the run's record; trainer_output if not given.")
    num_train_epochs: float = option(3.0, "Times that each example is seen.")
    per_device_train_batch_size: int = option(32, "Examples per device and step.")
    learning_rate: float = option(1e-4, "Learning rate of the encoder.")
    eval_strategy: str = option("no", "When to evaluate on the way.", choices=("no", "steps", "epoch"))
    save_strategy: str = option("steps", "When to save a checkpoint.", choices=("no", "steps", "epoch", "best"))
    seed: int = option(42, "Seed of weights, order and dropout.")


@dataclass
class SolverTrainingOptions(TrainingOptions):
    """Those of [`SolverConfig`]."""

    decoder_learning_rate: float | None = option(1e-3, "Learning rate of the decoder.")
    load_best_model_at_end: bool = option(False, "Keep the weights of the best evaluation, not the last ones.")


@dataclass
class DistillationOptions(TrainingOptions):
    """Those of [`DistillationConfig`]."""

    temperature: float = option(4.0, "Temperature of both models' predictions.")
    soft_label_weight: float = option(0.5, "Share of the teacher's predictions; the rest is the labels'.")
    hidden_loss: str | None = option("mse", "What layers learn: mse, attention, attention_mean, fsp, nst or none.")
    cache_teacher_outputs: bool | None = option(None, "Run the teacher once and keep its outputs on disk.")


@dataclass
class PruningOptions(TrainingOptions):
    """Those of [`RecursiveDistillationConfig`]."""

    learning_rate: float = option(5e-5, "Learning rate of the encoder.")
    ratios: list[float] = option([0.2, 0.25, 0.3], "Share of the heads that is gone after each generation.")
    alpha: float = option(0.5, "Weight of the heads' norm against their entropy.")
    least_metric: float | None = option(None, "Stop before a generation that is worse than this.")


@dataclass
class StarkOptions(TrainingOptions):
    """Those of [`StarkConfig`]."""

    num_train_epochs: float = option(10.0, "Times that each example is seen by a student.")
    learning_rate: float = option(3e-5, "Learning rate of the encoder.")
    eval_strategy: str = option("epoch", "When to evaluate on the way.", choices=("no", "steps", "epoch"))
    save_strategy: str = option("epoch", "When to save a checkpoint.", choices=("no", "steps", "epoch", "best"))
    sparsities: list[float] = option(
        [number / 10 for number in range(1, 10)], "Shares of heads and neurons that teachers do without."
    )
    tradeoff: float = option(0.5, "Weight of expressiveness against student-friendliness; the paper's lambda.")
    auto: bool = option(False, "Take the sparsity at the first peak of the scores' density.")
    temperature: float = option(2.0, "Temperature of both models' predictions.")
    cache_teacher_outputs: bool | None = option(None, "Run each teacher once and keep its outputs on disk.")
    stages_dir: str | None = option(None, "Folder of trial student, scores and students, which runs may share.")


@dataclass
class PreTrainingOptions(TrainingOptions):
    """Those of [`PreTrainingConfig`]."""

    num_train_epochs: float = option(6.0, "Times that each text is seen.")
    learning_rate: float = option(5e-4, "Learning rate.")
    mlm_probability: float = option(0.15, "Share of the tokens that are masked.")
    pos_loss_weight: float = option(5.0, "Weight of tagging; 0 leaves it away.")
