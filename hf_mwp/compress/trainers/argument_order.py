"""Positional arguments of trainers."""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from transformers import Trainer, TrainingArguments


# Names of the arguments of `Trainer` after the model, in their order.
TRAINER_ORDER = list(inspect.signature(Trainer.__init__).parameters)[2:]


def in_trainer_order(init: Callable[..., None]) -> Callable[..., None]:
    """Let the `__init__` of a trainer accept arguments by position in the order of `Trainer`, or with a teacher after
    the model. The second argument shows which order it is."""

    @wraps(init)
    def wrapped(self: Any, model: Any = None, *positional: Any, **named: Any) -> None:
        order = TRAINER_ORDER
        if positional and not isinstance(positional[0], TrainingArguments | None):
            order = ["teacher_model", *TRAINER_ORDER]
        if len(positional) > len(order):
            raise TypeError(f"Expected at most {len(order) + 1} positional arguments, got {len(positional) + 1}.")
        for name, value in zip(order, positional, strict=False):
            if name in named:
                raise TypeError(f"`{name}` is passed twice, by position and as a keyword argument.")
            named[name] = value
        init(self, model, **named)

    return wrapped
