"""How much a teacher's heads and neurons know, and how well a student learns it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...store.files import write_whole
from ...usage_error import UsageError
from .unit_scores import UnitScores


EXPRESSIVENESS, FRIENDLINESS = "expressiveness.safetensors", "friendliness.safetensors"
RECORD = "scores.json"


@dataclass(frozen=True, eq=False)
class KnowledgeableScores:
    """
    Expressiveness `P` and student-friendliness `Q` of a teacher's heads and neurons, before normalisation and apart:
    any trade-off between them, random scores and densities need no second measurement.

    Args:
        expressiveness ([`UnitScores`], *optional*): `P`, gradients of the teacher's loss on its task.
        friendliness ([`UnitScores`], *optional*): `Q`, gradients of the distillation loss to a trial student.
        about (`Mapping[str, Any]`, *optional*): How and on what they were measured, as JSON has it.

    References:
        Yang et al., "Sparse Teachers Can Be Dense with Knowledge" (EMNLP 2022), section 3.2.

    Example:

    ```python
    >>> folder = FinishedFolder.named("runs", "scores", digest_of(settings))
    >>> folder.fill(lambda: measure_scores(teacher, batches, student=trial).save(folder.path))
    >>> scores = KnowledgeableScores.load(folder.path).combined(0.5)
    >>> for sparsity in (0.1, 0.5, 0.9):
    ...     sparse = cut_teacher(teacher, RemovedUnits.lowest(scores, sparsity))
    ```
    """

    expressiveness: UnitScores | None = None
    friendliness: UnitScores | None = None
    about: Mapping[str, Any] = field(default_factory=dict)

    def combined(self, expressiveness_weight: float = 0.5) -> UnitScores:
        """
        `I = λ P + (1 - λ) Q` of the normalised scores (section 3.2).

        Args:
            expressiveness_weight (`float`, *optional*, defaults to 0.5):
                λ, from 0, student-friendliness alone, to 1, expressiveness alone: what students are pruned by.

        Raises:
            UsageError: λ outside `[0, 1]`, or scores that it needs were not measured.
        """
        if not 0 <= expressiveness_weight <= 1:
            raise UsageError(
                f"λ weighs expressiveness against student-friendliness: from 0 to 1, not {expressiveness_weight}."
            )
        heads = neurons = 0
        for name, share, scores in (
            ("expressiveness", expressiveness_weight, self.expressiveness),
            ("student-friendliness", 1 - expressiveness_weight, self.friendliness),
        ):
            if not share:
                continue
            if scores is None:
                raise UsageError(f"λ = {expressiveness_weight} needs scores of {name}, which were not measured.")
            normal = scores.normalized()
            heads, neurons = heads + share * normal.heads, neurons + share * normal.neurons
        return UnitScores(heads, neurons)

    def save(self, folder: str | Path) -> None:
        """Writes `expressiveness.safetensors`, `friendliness.safetensors`, as far as measured, and `scores.json`."""
        for name, scores in ((EXPRESSIVENESS, self.expressiveness), (FRIENDLINESS, self.friendliness)):
            if scores is not None:
                scores.save(Path(folder) / name)
        write_whole(Path(folder) / RECORD, json.dumps(dict(self.about), indent=2, ensure_ascii=False) + "\n")

    @classmethod
    def load(cls, folder: str | Path) -> KnowledgeableScores:
        """Reads a folder that [`save`] has written; [`UsageError`] if it holds no scores."""
        folder = Path(folder)
        try:
            about = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise UsageError(f"{folder} holds no finished scores ({error}): measure them anew.") from error
        present = [
            UnitScores.load(folder / name) if (folder / name).is_file() else None
            for name in (EXPRESSIVENESS, FRIENDLINESS)
        ]
        return cls(*present, about)


__all__ = ["KnowledgeableScores"]
