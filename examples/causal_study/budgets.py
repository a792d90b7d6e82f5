"""Sizes of the study."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Budget:
    """Sizes of data, models and training. Widths of heads stay the same in students."""

    datasets: tuple[str, ...]
    max_rows: int | None
    vocab_size: int
    layers: int
    hidden_size: int
    intermediate_size: int
    heads: int
    key_value_heads: int
    teacher_steps: int
    student_steps: int
    batch_size: int
    teacher_learning_rate: float
    student_learning_rate: float
    save_steps: int
    bf16: bool


BUDGETS = {
    "quick": Budget(
        datasets=("mawps",),
        max_rows=200,
        vocab_size=400,
        layers=2,
        hidden_size=32,
        intermediate_size=64,
        heads=4,
        key_value_heads=2,
        teacher_steps=20,
        student_steps=5,
        batch_size=8,
        teacher_learning_rate=1e-3,
        student_learning_rate=2e-3,
        save_steps=5,
        bf16=False,
    ),
    "cpu": Budget(
        datasets=("mawps", "gsm8k"),
        max_rows=None,
        vocab_size=4_000,
        layers=6,
        hidden_size=256,
        intermediate_size=768,
        heads=4,
        key_value_heads=2,
        teacher_steps=4_500,
        student_steps=1_000,
        batch_size=32,
        teacher_learning_rate=1e-3,
        student_learning_rate=2e-3,
        save_steps=300,
        bf16=True,
    ),
}
