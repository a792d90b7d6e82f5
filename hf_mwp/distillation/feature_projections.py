"""Linear maps between the widths of student and teacher, part of the student while it is trained."""

import os
from dataclasses import make_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers.utils import ModelOutput

from .features import Features, hidden_states


PROJECTED = "projected_states"


class FeatureProjections:
    """
    Linear maps from the widths of a student to those of its teacher. While attached, they are the student's submodule
    `distillation_projections`, and in training mode their results are in its outputs ([`~FeatureProjections.read`]):
    optimisers, gradient clipping and `DistributedDataParallel` see them like any other layer. They are never
    saved by `save_pretrained`.

    Ming et al. write the map at the teacher's side for hidden states (`H_T W`), where a trained map has a trivial
    minimum. Here it stands at the student's side, as in TinyBERT (https://huggingface.co/papers/1909.10351, equations
    8 and 9), without bias, one for each pair of layers.

    Args:
        features (`dict[str, tuple[str, int, int]]`):
            Name of each map -> (the student's feature that it reads, see [`~distillation.features.Features`], its
            width, the teacher's width). A feature of equal widths gets no map.
        shared (`bool`, *optional*, defaults to `False`): One map with bias for all features, also of equal widths: the
            linear baseline of Dasgupta and Cohn.

    Raises:
        ValueError: `shared` for features of several widths.
    """

    name = "distillation_projections"
    file_name = "distillation_projections.safetensors"

    def __init__(self, features: dict[str, tuple[str, int, int]], shared: bool = False) -> None:
        different = {name: feature for name, feature in features.items() if shared or feature[1] != feature[2]}
        self.reads = {name: read for name, (read, _, _) in different.items()}
        self.shared = shared
        widths = {feature[1:] for feature in different.values()}
        if shared and len(widths) > 1:
            raise ValueError(f"One map for all layers needs layers of the same widths, got {sorted(widths)}.")
        maps = {"shared": next(iter(different.values()))} if shared and different else different
        self.module = nn.ModuleDict(
            {name: nn.Linear(width, target, bias=shared) for name, (_, width, target) in maps.items()}
        )
        self._undo = None

    def __len__(self) -> int:
        return len(self.module)

    def attach(self, student: nn.Module) -> None:
        """Attach the maps to a student as a submodule, unless there are none or they are attached already."""
        if not len(self) or self._undo is not None:
            return
        if hasattr(student, self.name):
            raise ValueError(f"The student has an attribute `{self.name}` already: is it trained by another trainer?")
        self.move_to(student)
        student.add_module(self.name, self.module)
        hook = student.register_forward_hook(self._add_projected)
        ignored = getattr(student, "_keys_to_ignore_on_save", None)
        student._keys_to_ignore_on_save = {
            *(ignored or ()),
            *(f"{self.name}.{key}" for key in self.module.state_dict()),
        }

        def undo() -> None:
            hook.remove()
            delattr(student, self.name)
            student._keys_to_ignore_on_save = ignored

        self._undo = undo

    def move_to(self, student: nn.Module) -> None:
        """Move the maps to the device and dtype of a student."""
        reference = next(student.parameters())
        self.module.to(reference.device, reference.dtype)

    def detach(self) -> None:
        """Detach the maps from the student; they keep their weights and may be attached again."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def save(self, folder: str | os.PathLike) -> None:
        """Save the maps beside a checkpoint."""
        if len(self):
            state = {name: value.detach().cpu().contiguous() for name, value in self.module.state_dict().items()}
            save_file(state, Path(folder) / self.file_name)

    def load(self, folder: str | os.PathLike) -> None:
        """Reads the maps of a checkpoint; raises `ValueError` if it has none or others."""
        if not len(self):
            return
        path = Path(folder) / self.file_name
        if not path.is_file():
            raise ValueError(
                f"{folder} has no {self.file_name}: it was written without these projections, or with "
                "`save_only_model`. Resume with the models and the layer mapping with which that training began."
            )
        state, own = load_file(path), self.module.state_dict()
        if {name: value.shape for name, value in state.items()} != {name: value.shape for name, value in own.items()}:
            raise ValueError(
                f"{path} holds other projections ({sorted(state)}) than the layer mapping needs ({sorted(own)}). "
                "Resume with the models and the layer mapping with which that training began."
            )
        self.module.load_state_dict(state)

    def project(self, output: Any) -> dict[str, torch.Tensor]:
        """Return the projected hidden states of an output, by name."""
        features = Features(output)
        return {name: self.module["shared" if self.shared else name](features[r]) for name, r in self.reads.items()}

    def read(self, output: Any) -> dict[str, torch.Tensor]:
        """Return the projected hidden states that the student's forward pass added to its output, by name."""
        projected = output.get(PROJECTED) if self._undo is not None else None
        return {} if projected is None else dict(zip(self.reads, projected, strict=True))

    def _add_projected(self, student: nn.Module, args: tuple, output: Any) -> Any:
        if hidden_states(output) is None or not student.training:
            return output
        projected = tuple(self.project(output).values())
        if not isinstance(output, ModelOutput):
            return {**output, PROJECTED: projected}
        return _with_projected(type(output))(**output, **{PROJECTED: projected})


@cache
def _with_projected(kind: type[ModelOutput]) -> type[ModelOutput]:
    """
    Outputs of a kind with one more field: distributed training takes outputs apart and makes them anew of the fields
    that they are known to have.
    """
    return make_dataclass(f"Projected{kind.__name__}", [(PROJECTED, Any, None)], bases=(kind,))
