"""Base class of objectives on layers."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from hf_mwp.compress.models.batch_inputs import find_token_mask
from hf_mwp.compress.models.model_kind import kind_of
from hf_mwp.utils.checked_types import checked

from ..features import Features, decoder_mask
from ..layer_mapping import map_layers
from .objective import Objective


# Config fields that encoders read in each forward pass; others copy the value to an attribute `layerdrop`.
CONFIG_LAYERDROPS = ("layerdrop", "speech_encoder_layerdrop")


class LayerObjective(Objective):
    """
    Base class of objectives that compare layers of the student with layers of the teacher. A derived class defines the
    outputs that are read for a pair of layers (`_names`), and the pairs that form a part of the loss together
    (`_group`). By default each pair is a part. LayerDrop of the student is turned off.

    Args:
        loss (`nn.Module`): Called with the student's outputs, the teacher's outputs (each a list if there are several
            tensors), and a mask of the tokens. An optional method `count` returns the number of items in a mask that
            the loss is averaged over; by default these are the tokens.
        layer_mapping (`str` or sequence of pairs, *optional*, defaults to `"uniform"`): See [`map_layers`].
        layer_weights (`list[float]` or `float`, *optional*): A weight for each part, or a total that is divided
            evenly. Defaults to 1.0 for each part; [`HiddenStates`] has its own defaults.
        weight (`float`, *optional*, defaults to 1.0), name (`str`): See [`Objective`].
        stack (`str`, *optional*, defaults to `"encoder"`): `"decoder"` compares layers of the decoder. In the decoder
            of [`AthenaModel`], layer 0 are the embeddings of the scored candidates and layer 1 their contexts.
        decoder_mask (`str`, *optional*, defaults to `"labels"`): Decoder states that are compared, see
            [`~distillation.features.decoder_mask`]. A teacher cache only stores the states of `"labels"`.
        hidden_mask (`str`, *optional*, defaults to `"tokens"`): States of the encoder, or of a model without decoder,
            that are compared: `"tokens"` (all but padding) or `"labels"` (positions whose prediction has a label).
    """

    stacks: Sequence[str] = ("encoder", "decoder")
    options = {"output_hidden_states": True}

    @checked
    def __init__(
        self,
        loss: nn.Module,
        layer_mapping: str | Sequence[Sequence[int]] = "uniform",
        layer_weights: list[float] | float | None = None,
        weight: float = 1.0,
        name: str = "layers",
        stack: str = "encoder",
        decoder_mask: str = "labels",
        hidden_mask: str = "tokens",
    ) -> None:
        super().__init__(name, weight)
        self._check_choice("hidden_mask", hidden_mask, ("tokens", "labels"))
        self.hidden_mask = hidden_mask
        self._check_choice("stack", stack, self.stacks)
        self._check_choice("decoder_mask", decoder_mask, ("labels", "shifted"))
        self.stack = stack
        self.decoder_mask = decoder_mask
        self.prefix = "" if stack == "encoder" else f"{stack}_"
        self.hidden = "hidden" if stack == "encoder" else "decoder_hidden"
        self.cacheable = self.cacheable and decoder_mask == "labels"
        self.loss = loss
        self.layer_mapping = layer_mapping
        self.layer_weights = layer_weights
        self.num_examples = max(self.num_examples, getattr(loss, "min_rows", 0))

    def _check_choice(self, option: str, value: str, choices: Sequence[str]) -> None:
        if value not in choices:
            raise ValueError(f"`{option}` of `{type(self).__name__}` must be one of {[*choices]}, got {value!r}.")

    def setup(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> None:
        for who, features in (("student", student), ("teacher", teacher)):
            if not features.layers(self.hidden):
                raise ValueError(
                    f"The {who}, a `{type(features.model).__name__}`, returns no {self.stack} hidden states for "
                    f"`{self.name}`. Map layers of the encoder, or set `hidden_loss=None` and `embedding_weight=0`."
                )
        if student.model is not None:
            _turn_off_layerdrop(student.model)
        self.kind = kind_of(student.model, student.get("logits"))
        self._check_mask(self.mask(inputs), student)
        # The first states are the embeddings.
        num_student_layers = len(student.layers(self.hidden)) - 1
        num_teacher_layers = len(teacher.layers(self.hidden)) - 1
        try:
            self.layers = map_layers(self.layer_mapping, num_student_layers, num_teacher_layers)
        except ValueError as error:
            raise ValueError(f"`{self.name}` ({self.stack} layers): {error}") from error
        self.groups = self._group(self.layers)
        self.parts = dict(zip(self.groups, self._resolve_weights(), strict=True))
        # Names of all outputs that are read, each once, in the order of the parts.
        student_names: dict[str, None] = {}
        teacher_names: dict[str, None] = {}
        for group in self.groups.values():
            for pair in group:
                names_of_student, names_of_teacher = self._names(pair)
                student_names |= dict.fromkeys(names_of_student)
                teacher_names |= dict.fromkeys(names_of_teacher)
        self.student_reads = tuple(student_names)
        self.teacher_reads = tuple(teacher_names)

    def _check_mask(self, mask: Tensor | None, student: Features) -> None:
        """Raise `ValueError` if the mask is not one of the states, as of audio, which has fewer states than inputs."""
        states = student.layers(self.hidden)[-1]
        if mask is not None and mask.shape[:2] != states.shape[:2]:
            raise ValueError(
                f"`{self.name}` compares {states.shape[1]} hidden states a row, but the mask of the batch has "
                f"{mask.shape[1]} positions. Leave `attention_mask` out of the batches "
                "(`return_attention_mask=False`), so that all states are compared."
            )

    def _group(self, layers: list[tuple[int, int]]) -> dict[str, list[tuple[int, int]]]:
        """Return the parts of the loss and the layer pairs that each reads, the pair that names the part last."""
        return {f"{self.name}_{pair[0]}": [pair] for pair in layers}

    def _names(self, pair: tuple[int, int]) -> tuple[list[str], list[str]]:
        """Return the names of the student's and the teacher's outputs that are read for a pair."""
        raise NotImplementedError

    def _default_weights(self, count: int) -> list[float]:
        return [1.0] * count

    def _resolve_weights(self) -> list[float]:
        weights = self.layer_weights
        num_parts = len(self.groups)
        if weights is None:
            weights = self._default_weights(num_parts)
        if isinstance(weights, int | float):
            weights = [weights / num_parts] * num_parts
        if len(weights) != num_parts:
            raise ValueError(f"`hidden_weights` has {len(weights)} entries for {num_parts} parts: {[*self.groups]}.")
        return [self.weight * weight for weight in weights]

    def mask(self, inputs: Mapping[str, Any]) -> Tensor | None:
        """Return the mask of the tokens that are compared, or `None` for all tokens."""
        if self.stack == "encoder":
            return self._encoder_mask(inputs)
        return decoder_mask(inputs, self.decoder_mask)

    def _encoder_mask(self, inputs: Mapping[str, Any]) -> Tensor | None:
        if self.hidden_mask == "tokens":
            return find_token_mask(inputs)
        mask = self.kind.positions(inputs)
        if mask is None or mask.dim() != 2 or inputs.get("labels") is None:
            raise ValueError(
                f"`{self.name}` compares the states that predict labels, but positions of the batch have no labels. "
                'Pass `labels`, or set `hidden_mask="tokens"`.'
            )
        return mask

    def losses(self, student: Features, teacher: Features, inputs: Mapping[str, Any]) -> dict[str, Tensor]:
        mask = self.mask(inputs)
        states = self._states(student, teacher)
        return {name: self._compare(*states[name], mask) for name in states}

    def _states(self, student: Features, teacher: Features) -> dict[str, tuple[list[Tensor], list[Tensor]]]:
        """Return the outputs of student and teacher that each part reads."""
        states = {}
        for name, group in self.groups.items():
            student_states = []
            teacher_states = []
            for pair in group:
                student_names, teacher_names = self._names(pair)
                student_states += [self._of_student(student, student_name) for student_name in student_names]
                teacher_states += [teacher[teacher_name] for teacher_name in teacher_names]
            states[name] = student_states, teacher_states
        return states

    def _of_student(self, student: Features, name: str) -> Tensor:
        return student[name]

    def _compare(self, student_states: list[Tensor], teacher_states: list[Tensor], mask: Tensor | None) -> Tensor:
        if len(student_states) == 1:
            return self.loss(student_states[0], teacher_states[0], mask)
        return self.loss(student_states, teacher_states, mask)

    def num_items(self, inputs: Mapping[str, Any]) -> dict[str, Tensor | int | None]:
        mask = self.mask(inputs)
        if mask is None:
            return dict.fromkeys(self.parts)
        num_items = self.loss.count(mask) if hasattr(self.loss, "count") else mask.sum()
        return dict.fromkeys(self.parts, num_items)


def _turn_off_layerdrop(model: nn.Module) -> None:
    """Turn off LayerDrop, since a layer that is skipped at random returns no states. The model's own config, which is
    saved with it, stays unchanged."""
    for module in model.modules():
        if getattr(module, "layerdrop", 0):
            module.layerdrop = 0.0
        is_stack = any(isinstance(child, nn.ModuleList) for child in module.children())
        if is_stack and not isinstance(module, PreTrainedModel):
            for name in CONFIG_LAYERDROPS:
                if getattr(getattr(module, "config", None), name, 0):
                    module.config = copy.copy(module.config)
                    setattr(module.config, name, 0.0)
