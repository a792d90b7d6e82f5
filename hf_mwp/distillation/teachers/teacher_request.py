"""Outputs that are requested from a teacher."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from ..objectives.objective import Objective


@dataclass(frozen=True)
class TeacherRequest:
    """Teacher outputs that objectives need for each batch."""

    features: tuple[str, ...]  # names of the outputs, see [`~distillation.features.Features`]
    options: Mapping[str, bool] = field(
        default_factory=dict
    )  # arguments of `forward` that make the teacher return them
    top_k: int | None = None  # number of classes that a cache stores, see [`OutputLayout`]; all if `None`
    temperature: float | None = None  # temperature at which these classes are exact
    offset: int = 0  # number of positions from a prediction to its label
    listed: tuple[str, ...] = ()  # outputs with one score per item of a list, such as candidates

    @classmethod
    def of(cls, objectives: Iterable[Objective], top_k: int | None = None) -> Self:
        """
        Collect the outputs that a list of objectives reads.

        Raises:
            ValueError: if `top_k` is set and the objectives read logits at different temperatures.
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
                f"Objectives read the teacher's scores at the temperatures {sorted(temperatures)}, but the most "
                "likely classes can be cached for only one. Leave out `cache_top_k`."
            )
        temperature = None if top_k is None else temperatures.pop()
        listed = tuple(dict.fromkeys(name for each in predicting for name in each.listed))
        return cls(tuple(features), options, top_k, temperature, max(each.offset for each in predicting), listed)

    @property
    def states(self) -> list[str]:
        """Return the names of features with one vector for each token."""
        return [name for name in self.features if name != "logits" and name not in self.listed]

    @property
    def logits(self) -> bool:
        """Return whether logits are requested that are scores of classes."""
        return "logits" in self.features and "logits" not in self.listed
