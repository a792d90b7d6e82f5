"""Requested outputs of a teacher."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from ..objectives.objective import Objective


@dataclass(frozen=True)
class TeacherRequest:
    """Outputs of a teacher that objectives need for each batch."""

    features: tuple[str, ...]  # what is read of it, see [`~distillation.features.Features`]
    options: Mapping[str, bool] = field(default_factory=dict)  # arguments of its `forward` that make it show them
    top_k: int | None = None  # classes of which a cache keeps the scores, see [`OutputLayout`]; all if `None`
    temperature: float | None = None  # at which these are exact
    offset: int = 0  # how many positions before its label a prediction stands
    listed: tuple[str, ...] = ()  # those with one score for each item of a list of the row's own length

    @classmethod
    def of(cls, objectives: Iterable[Objective], top_k: int | None = None) -> Self:
        """
        Collect the outputs that a list of objectives reads.

        Raises:
            ValueError: they read logits at different temperatures, and not all classes are to be kept.
        """
        readers = [each for each in objectives if each.teacher_reads]
        features = sorted({name for each in readers for name in each.teacher_reads})
        options = {name: value for each in readers for name, value in each.options.items()}
        if "logits" not in features:
            return cls(tuple(features), options)
        predicting = [each for each in readers if "logits" in each.teacher_reads]
        temperatures = {each.temperature for each in predicting}
        if top_k is not None and len(temperatures) > 1:
            raise ValueError(
                f"Objectives read the teacher's scores at temperatures {sorted(temperatures)}; those of the likeliest "
                "classes can be kept at one only: leave out `cache_top_k`."
            )
        temperature = None if top_k is None else temperatures.pop()
        listed = tuple(dict.fromkeys(name for each in predicting for name in each.listed))
        return cls(tuple(features), options, top_k, temperature, max(each.offset for each in predicting), listed)

    @property
    def states(self) -> list[str]:
        """The features that are one vector for each token."""
        return [name for name in self.features if name != "logits" and name not in self.listed]

    @property
    def logits(self) -> bool:
        """Return whether logits are read that are scores of classes."""
        return "logits" in self.features and "logits" not in self.listed
