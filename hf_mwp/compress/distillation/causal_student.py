"""Smaller students of causal language models."""

import copy
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn
from transformers import MODEL_FOR_CAUSAL_LM_MAPPING, PreTrainedModel
from transformers.utils import logging

from hf_mwp.compress.metrics.efficiency import describe_compression
from hf_mwp.compress.models.architecture import CUT_PREFIX
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.provenance import inherit_training_texts

from .causal_copy import CausalCopy
from .causal_features import Features, LeadingFeatures, LinearCopy, MainDirections
from .causal_layouts import LAYOUTS, CausalLayout, CausalSizes
from .causal_sizes import student_config, student_sizes
from .layer_mapping import choose_layers
from .projected_student import read_sample, relative_moment


logger = logging.get_logger(__name__)

INITS = ("slice", "project", "random")
# Modules with adapters, or with closed heads or neurons, have one of these attributes.
WRAPPER_ATTRIBUTES = ("base_layer", "closed_heads", "closed_neurons")


@checked
@torch.no_grad()
def make_causal_student(
    teacher: PreTrainedModel,
    layers: int | Sequence[int],
    hidden_size: int | None = None,
    init: str = "slice",
    choice: str = "uniform",
    *,
    num_attention_heads: int | None = None,
    num_key_value_heads: int | None = None,
    head_dim: int | None = None,
    intermediate_size: int | None = None,
    sample: Iterable[Mapping[str, Tensor]] | None = None,
    max_tokens: int = 30_000,
) -> PreTrainedModel:
    """
    Create a smaller causal language model of the teacher's class, a stock Transformers model, with fewer layers and
    optionally a smaller width. It has the teacher's tokens, and its embeddings are tied if the teacher's are.

    Args:
        teacher (`PreTrainedModel`):
            A Llama, Mistral, Qwen2, Qwen3, Gemma 2, Gemma 3 (text), Phi-3, GPT-2 or GPT-NeoX language model.
        layers (`int` or `Sequence[int]`): The student's layers: their number, or the teacher's layers (indices from
            0) in the student's order.
        hidden_size (`int`, *optional*): Width of the student. Defaults to the teacher's width.
        init (`str`, *optional*, defaults to `"slice"`): Initial weights.

            - `"slice"`: the leading part of the weights of the chosen layers, at the teacher's sizes the complete
              weights. Heads and neurons are the first ones.
            - `"project"`: the hidden states are projected onto their main directions, see [`MainDirections`]. Heads
              and neurons are those with the largest weights.
            - `"random"`: random weights.
        choice (`str`, *optional*, defaults to `"uniform"`): Which layers are copied if only their number is given,
            see [`choose_layers`].
        num_attention_heads (`int`, *optional*), num_key_value_heads (`int`, *optional*):
            Numbers of query and key-value heads. By default, they shrink with the width, as many whole groups of
            heads as fit, at least one; a single group loses queries.
        head_dim (`int`, *optional*): Size of a head. Defaults to the teacher's. Rotary position embeddings of a
            smaller head keep their frequencies if the size divides the teacher's.
        intermediate_size (`int`, *optional*): Number of neurons. By default, it shrinks with the width.
        sample (`Iterable[Mapping]`, *optional*): Batches of typical texts with `input_ids`, for the main directions of
            the teacher's hidden states. By default, those of its embeddings and of the layers that write hidden states
            are used.
        max_tokens (`int`, *optional*, defaults to 30,000): Number of tokens of the sample to read.

    Returns:
        `PreTrainedModel`: the student, in the teacher's dtype and on its device, with copies of the weights, of the
        generation config and of the ids of special tokens.

    Raises:
        TypeError: if a size is not a whole number.
        ValueError: if the teacher's type is not supported, the teacher is wrapped, pruned or quantised, the student
            would be larger than the teacher, heads do not fit the width, or `init` is unknown.

    References: Improving Language Model Distillation through Hidden State Matching (ICLR 2025): leading slices.
    SliceGPT (ICLR 2024): main directions of the hidden states.

    Example:
        >>> teacher = AutoModelForCausalLM.from_pretrained("Qwen/Qwen3-1.7B")
        >>> student = make_causal_student(teacher, layers=14, hidden_size=1024)
    """
    if init not in INITS:
        raise ValueError(f"`init` must be one of {', '.join(INITS)}, got {init!r}.")
    layout = _layout_of(teacher)
    if sample is not None and init != "project":
        raise ValueError('`sample` is only read by `init="project"`. Remove it.')
    chosen_layers = choose_layers(layers, teacher.config.num_hidden_layers, choice)
    teacher_sizes = CausalSizes.of(teacher.config, layout)
    requested = {
        "hidden_size": hidden_size,
        "num_attention_heads": num_attention_heads,
        "num_key_value_heads": num_key_value_heads,
        "head_dim": head_dim,
        "intermediate_size": intermediate_size,
    }
    sizes = student_sizes(teacher_sizes, requested, layout, layout.rotary_fraction(teacher.config))
    config = student_config(teacher.config, chosen_layers, sizes, layout)
    student = type(teacher)(config).to(teacher.device, teacher.dtype)
    if init != "random":
        features: Features = LeadingFeatures(sizes.hidden_size)
        if init == "project" and sizes.hidden_size < teacher_sizes.hidden_size:
            features = _main_directions(teacher, chosen_layers, layout, sizes.hidden_size, sample, max_tokens)
        CausalCopy(teacher, student, layout, features).run(chosen_layers, by_size=init == "project")
        inherit_training_texts(student, teacher)
    student.tie_weights()
    student.generation_config = copy.deepcopy(teacher.generation_config)
    logger.info(describe_compression(student, teacher))
    return student.train(teacher.training)


def _layout_of(teacher: PreTrainedModel) -> CausalLayout:
    """Return the layout of a teacher, or raise `ValueError` if a student cannot be made from it."""
    name = type(teacher).__name__
    config = getattr(teacher, "config", None)
    model_type = getattr(config, "model_type", "")
    modules = list(teacher.modules())
    is_changed = hasattr(teacher, "get_base_model") or model_type.startswith(CUT_PREFIX)
    for attribute in WRAPPER_ATTRIBUTES:
        is_changed = is_changed or any(getattr(module, attribute, None) for module in modules)
    if is_changed:
        raise ValueError(
            f"`{name}` has adapters, or pruned or closed heads or neurons. Merge the adapters "
            "(`merge_and_unload()`), or create the student before the teacher is pruned."
        )
    if getattr(teacher, "hf_quantizer", None) is not None or getattr(config, "quantization_config", None) is not None:
        raise ValueError(f"`{name}` is quantised. Load the teacher without quantisation, or call `dequantize()`.")
    layout = LAYOUTS.get(model_type)
    if layout is None or not isinstance(teacher, MODEL_FOR_CAUSAL_LM_MAPPING.get(type(config), ())):
        raise ValueError(
            f"`{name}` of the type {model_type!r} is not supported. Use a causal language model of one of the types "
            f"{', '.join(LAYOUTS)}."
        )
    for flag in ("add_cross_attention", "scale_attn_by_inverse_layer_idx"):
        if getattr(config, flag, False):
            raise ValueError(f"A teacher with `{flag}=True` is not supported.")
    return layout


def _main_directions(
    teacher: PreTrainedModel,
    layers: list[int],
    layout: CausalLayout,
    width: int,
    sample: Iterable[Mapping[str, Tensor]] | None,
    max_tokens: int,
) -> MainDirections:
    base = getattr(teacher, layout.base)
    if sample is None:
        moment = _moment_of_weights(base, layers, layout)
    else:
        moment = _moment_of_states(teacher, base, layers, layout, read_sample(sample, max_tokens, teacher.device))
    final_norm = getattr(base, layout.final_norm)
    dtype = torch.promote_types(teacher.dtype, torch.float32)
    gain = final_norm.weight + layout.gain_offset
    return MainDirections(moment, width, gain, layout.centres, layout.scales_embeddings, dtype)


def _moment_of_weights(base: nn.Module, layers: list[int], layout: CausalLayout) -> Tensor:
    """Return the second moment `(D, D)` of what is written to the hidden states: half embeddings, half outputs."""
    moments = []
    for name in layout.embeddings:
        moments.append(_moment(getattr(base, name).weight, layout))
    embeddings = torch.stack(moments).mean(0)
    moments = []
    for index in layers:
        layer = getattr(base, layout.layers)[index]
        for name, (_, norm_name) in layout.writers.items():
            writer = LinearCopy.of(layer.get_submodule(name), None)
            weight = writer.weight
            if writer.bias is not None:
                weight = torch.cat([weight, writer.bias[:, None]], dim=1)
            if norm_name is not None:
                gain = layer.get_submodule(norm_name).weight + layout.gain_offset
                weight = gain[:, None] * weight
            moments.append(_moment(weight.T, layout))
    return embeddings + torch.stack(moments).mean(0)


def _moment_of_states(
    teacher: PreTrainedModel,
    base: nn.Module,
    layers: list[int],
    layout: CausalLayout,
    batches: list[dict[str, Tensor]],
) -> Tensor:
    """Return the second moment `(D, D)` of the hidden states before the chosen layers and the last norm."""
    mask = torch.empty(0)
    moments = []

    def record(module: nn.Module, args: tuple, kwargs: dict) -> None:
        states = args[0] if args else kwargs["hidden_states"]
        moments.append(_moment(states[mask], layout))

    modules = [getattr(base, layout.final_norm)]
    modules += [getattr(base, layout.layers)[index] for index in layers]
    hooks = [module.register_forward_pre_hook(record, with_kwargs=True) for module in modules]
    was_training = teacher.training
    teacher.eval()
    try:
        for batch in batches:
            mask = batch["attention_mask"].bool()
            base(**batch, use_cache=False)
    finally:
        for hook in hooks:
            hook.remove()
        teacher.train(was_training)
    return torch.stack(moments).sum(0)


def _moment(vectors: Tensor, layout: CausalLayout) -> Tensor:
    vectors = vectors.to(torch.promote_types(vectors.dtype, torch.float32))
    if layout.centres:
        vectors = vectors - vectors.mean(1, keepdim=True)
    return relative_moment(vectors)
