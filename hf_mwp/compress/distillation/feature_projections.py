"""Linear maps from the student's width to the teacher's width, part of the student during training."""

import os
from dataclasses import make_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import nn
from transformers.utils import ModelOutput

from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.files import writing_weights

from .features import Features


PROJECTED = "projected_states"


class FeatureProjections:
    """
    Linear maps from features of the student's width to features of the teacher's width. While attached, they are the
    submodule `distillation_projections` of the student, so optimisers, gradient clipping and `DistributedDataParallel`
    include them. In training mode the student's outputs contain the projected features ([`~FeatureProjections.read`]).
    `save_pretrained` leaves the maps out.

    The maps project the student's states, without bias and with one map for each pair of layers, as in TinyBERT
    (https://huggingface.co/papers/1909.10351, equations 8 and 9). A Compact Model for Mathematics Problem
    Representations Distilled from BERT (AAAI 2025) projects the teacher's hidden states instead (`H_T W`); if that map
    is trained, its loss has a trivial minimum.

    `features` contains, for the name of each map, the student's feature that it reads (see [`Features`]), its width
    and the teacher's width; equal widths get no map. With `shared`, a single map with bias is used for all features,
    which must have the same widths, also if they have the teacher's width. This is the linear baseline of Improving
    Language Model Distillation through Hidden State Matching (ICLR 2025).
    """

    name = "distillation_projections"
    file_name = "distillation_projections.safetensors"

    @checked
    def __init__(self, features: dict[str, tuple[str, int, int]], shared: bool = False) -> None:
        self.reads: dict[str, str] = {}
        self.shared = shared
        self.module = nn.ModuleDict()
        self._undo = None
        widths = {feature[1:] for feature in features.values()}
        if shared and len(widths) > 1:
            raise ValueError(f"A shared projection needs layers with the same widths, got {sorted(widths)}.")
        for name, (read, student_width, teacher_width) in features.items():
            if not shared and student_width == teacher_width:
                continue
            self.reads[name] = read
            map_name = "shared" if shared else name
            if map_name not in self.module:
                self.module[map_name] = nn.Linear(student_width, teacher_width, bias=shared)

    def __len__(self) -> int:
        return len(self.module)

    def attach(self, student: nn.Module) -> None:
        """Attach the maps to a student as a submodule, unless there are none or they are already attached."""
        if not len(self) or self._undo is not None:
            return
        self.move_to(student)
        student.add_module(self.name, self.module)
        hook = student.register_forward_hook(self._add_projected)
        ignored = getattr(student, "_keys_to_ignore_on_save", None)
        keys = {f"{self.name}.{key}" for key in self.module.state_dict()}
        student._keys_to_ignore_on_save = keys.union(ignored or ())

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
        """Detach the maps from the student. They keep their weights and can be attached again."""
        if self._undo is not None:
            self._undo()
            self._undo = None

    def save(self, folder: str | os.PathLike) -> None:
        """Save the maps in a checkpoint folder."""
        if len(self):
            with writing_weights(folder):
                save_file(self.module.state_dict(), Path(folder) / self.file_name)

    def load(self, folder: str | os.PathLike) -> None:
        """Load the maps from a checkpoint folder. Raises `ValueError` if the file is missing."""
        if not len(self):
            return
        path = Path(folder) / self.file_name
        if not path.is_file():
            raise ValueError(
                f"{folder} has no {self.file_name}: it was saved without these projections, or with "
                "`save_only_model`. Resume with the models and the layer mapping of the original training."
            )
        self.module.load_state_dict(load_file(path))

    def project(self, output: Any) -> dict[str, torch.Tensor]:
        """Return the projected hidden states of an output by name."""
        features = Features(output)
        projected = {}
        for name, read in self.reads.items():
            map_name = "shared" if self.shared else name
            linear = self.module[map_name]
            # `bf16_full_eval` converts only the student.
            projected[name] = linear(features[read].to(linear.weight.dtype))
        return projected

    def read(self, output: Any) -> dict[str, torch.Tensor]:
        """Return by name the projected hidden states that the student's forward pass added to its output."""
        if self._undo is None or output.get(PROJECTED) is None:
            return {}
        return dict(zip(self.reads, output[PROJECTED], strict=True))

    def _add_projected(self, student: nn.Module, args: tuple, output: Any) -> Any:
        if not student.training or not hasattr(output, "get") or not Features(output).layers("hidden"):
            return output
        projected = tuple(self.project(output).values())
        if not isinstance(output, ModelOutput):
            return {**output, PROJECTED: projected}
        return _with_projected(type(output))(**output, **{PROJECTED: projected})


@cache
def _with_projected(output_class: type[ModelOutput]) -> type[ModelOutput]:
    # Distributed training rebuilds outputs from their declared fields, and would lose an undeclared field.
    return make_dataclass(f"Projected{output_class.__name__}", [(PROJECTED, Any, None)], bases=(output_class,))
