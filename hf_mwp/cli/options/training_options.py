"""What `--help` of the training commands says of the trainers' options."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class TrainingOptions:
    """
    The options of [`SolverConfig`] that most runs set. The config itself has a hundred, those of
    `transformers.TrainingArguments`, whose import takes seconds: `--help all` shows them.
    """

    _argument_group_name = "training"

    output_dir: str | None = field(
        default=None, metadata={"help": "Folder for the model and the run's record; trainer_output if not given."}
    )
    num_train_epochs: float = field(default=3.0, metadata={"help": "Times that each example is seen."})
    per_device_train_batch_size: int = field(default=32, metadata={"help": "Examples per device and step."})
    learning_rate: float = field(default=1e-4, metadata={"help": "Learning rate of the encoder."})
    decoder_learning_rate: float | None = field(default=1e-3, metadata={"help": "Learning rate of the decoder."})
    eval_strategy: str = field(
        default="no",
        metadata={"help": "When to evaluate on the way.", "choices": ["no", "steps", "epoch"]},
    )
    save_strategy: str = field(
        default="steps",
        metadata={"help": "When to save a checkpoint.", "choices": ["no", "steps", "epoch", "best"]},
    )
    load_best_model_at_end: bool = field(
        default=False, metadata={"help": "Keep the weights of the best evaluation, not the last ones."}
    )
    seed: int = field(default=42, metadata={"help": "Seed of weights, order and dropout."})


@dataclass
class DistillationOptions(TrainingOptions):
    """The same of [`DistillationConfig`]."""

    temperature: float = field(default=4.0, metadata={"help": "Temperature of both models' predictions."})
    soft_label_weight: float = field(
        default=0.5, metadata={"help": "Share of the teacher's predictions; the rest is the labels'."}
    )
    hidden_loss: str | None = field(
        default="mse", metadata={"help": "What layers learn: mse, attention, attention_mean, fsp, nst or none."}
    )
    cache_teacher_outputs: bool | None = field(
        default=None, metadata={"help": "Run the teacher once and keep its outputs on disk."}
    )


@dataclass
class PreTrainingOptions(TrainingOptions):
    """The same of [`PreTrainingConfig`]."""

    num_train_epochs: float = field(default=6.0, metadata={"help": "Times that each text is seen."})
    learning_rate: float = field(default=5e-4, metadata={"help": "Learning rate."})
    mlm_probability: float = field(default=0.15, metadata={"help": "Share of the tokens that are masked."})
    pos_loss_weight: float = field(default=5.0, metadata={"help": "Weight of tagging; 0 leaves it away."})
