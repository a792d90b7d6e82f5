"""Sizes of a smaller causal language model."""

import copy
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hf_mwp.utils.checks import check_at_least_one

from .causal_layouts import CausalLayout, CausalSizes


def student_sizes(
    teacher: CausalSizes, requested: Mapping[str, int | None], layout: CausalLayout, rotary_fraction: float
) -> CausalSizes:
    """
    Return the sizes of a student.

    Args:
        teacher ([`CausalSizes`]): Sizes of the teacher.
        requested (`Mapping[str, int | None]`): Sizes by name; `None` for those that shrink with the width.
        layout ([`CausalLayout`]): Layout of both models.
        rotary_fraction (`float`): Share of the features of a head that are rotated.

    Raises `ValueError` if a size exceeds the teacher's, or heads do not fit the width.
    """
    check_at_least_one(requested, *requested)
    sizes = teacher
    for name, size in requested.items():
        limit = getattr(teacher, name)
        if size is None:
            continue
        if size > limit:
            raise ValueError(f"`{name}` must be from 1 to {limit}, the teacher's, got {size}.")
        sizes = replace(sizes, **{name: size})
    width = sizes.hidden_size
    if requested["intermediate_size"] is None:
        neurons = max(teacher.intermediate_size * width // teacher.hidden_size, 1)
        sizes = replace(sizes, intermediate_size=neurons)
    heads = requested["num_attention_heads"]
    groups = requested["num_key_value_heads"]
    if layout.divides_width and groups is not None:
        raise ValueError("Each head has its own keys in this type. Pass `num_attention_heads` only.")
    queries_per_group = teacher.num_attention_heads // teacher.num_key_value_heads
    if heads is None and groups is None and width < teacher.hidden_size:
        sizes = _with_fewer_heads(sizes, teacher, layout)
    elif heads is None:
        sizes = replace(sizes, num_attention_heads=sizes.num_key_value_heads * queries_per_group)
    elif groups is None:
        sizes = replace(sizes, num_key_value_heads=max(heads // queries_per_group, 1))
    _check_heads(sizes, queries_per_group)
    if layout.divides_width:
        sizes = _with_derived_head_dim(sizes, teacher, requested["head_dim"])
    num_rotated = int(sizes.head_dim * rotary_fraction)
    if num_rotated % 2:
        raise ValueError(
            f"A `head_dim` of {sizes.head_dim} has {num_rotated} rotated features, but pairs are rotated. Use another "
            "size, or another number of heads."
        )
    return sizes


def _with_fewer_heads(sizes: CausalSizes, teacher: CausalSizes, layout: CausalLayout) -> CausalSizes:
    """Return sizes with as many whole groups of heads as are proportional to the width and divide it."""
    width = sizes.hidden_size
    groups = teacher.num_key_value_heads
    queries_per_group = teacher.num_attention_heads // groups
    if layout.divides_width and width % teacher.head_dim:
        raise ValueError(
            f"`hidden_size` must be a multiple of {teacher.head_dim}, the size of a head, got {width}. Otherwise, "
            "pass `num_attention_heads`."
        )
    if groups == 1:
        # A single group loses queries.
        most = max(queries_per_group * width // teacher.hidden_size, 1)
        candidates = [(heads, 1) for heads in range(most, 0, -1)]
    else:
        most = max(groups * width // teacher.hidden_size, 1)
        candidates = [(count * queries_per_group, count) for count in range(most, 0, -1)]
    for heads, count in candidates:
        if width % heads == 0:
            return replace(sizes, num_attention_heads=heads, num_key_value_heads=count)
    raise ValueError(
        f"A `hidden_size` of {width} cannot be divided by whole groups of {queries_per_group} heads. Use a multiple "
        f"of {queries_per_group}, or pass `num_attention_heads` and `num_key_value_heads`."
    )


def _check_heads(sizes: CausalSizes, queries_per_group: int) -> None:
    """Raise `ValueError` if heads do not fit their groups or the width."""
    heads = sizes.num_attention_heads
    groups = sizes.num_key_value_heads
    if heads % groups or heads // groups > queries_per_group:
        raise ValueError(
            f"{groups} `num_key_value_heads` cannot serve {heads} `num_attention_heads`: each serves equally many, at "
            f"most {queries_per_group} as in the teacher."
        )
    if sizes.hidden_size % heads:
        raise ValueError(f"{heads} heads do not divide a `hidden_size` of {sizes.hidden_size}.")


def _with_derived_head_dim(sizes: CausalSizes, teacher: CausalSizes, head_dim: int | None) -> CausalSizes:
    """Return sizes with heads as large as the width divided by their number."""
    derived = sizes.hidden_size // sizes.num_attention_heads
    if head_dim not in (None, derived):
        raise ValueError(f"`head_dim` must be `hidden_size` / `num_attention_heads` = {derived}, got {head_dim}.")
    if derived > teacher.head_dim:
        raise ValueError(
            f"{sizes.num_attention_heads} heads of a `hidden_size` of {sizes.hidden_size} have {derived} features, "
            f"but the teacher's only {teacher.head_dim}. Pass more `num_attention_heads`."
        )
    return replace(sizes, head_dim=derived)


def student_config(config: Any, layers: list[int], sizes: CausalSizes, layout: CausalLayout) -> Any:
    """Return a copy of a teacher's config with the layers of these indices, and other sizes."""
    config = copy.deepcopy(config)
    config.hidden_size = sizes.hidden_size
    config.num_hidden_layers = len(layers)
    config.num_attention_heads = sizes.num_attention_heads
    setattr(config, layout.neurons_field, sizes.intermediate_size)
    if hasattr(config, "num_key_value_heads"):
        config.num_key_value_heads = sizes.num_key_value_heads
    is_derived = sizes.head_dim == sizes.hidden_size // sizes.num_attention_heads
    has_field = getattr(config, "head_dim", None) is not None
    # A config needs no field for the size of a head that follows from other sizes.
    if has_field or not is_derived:
        config.head_dim = sizes.head_dim
    layer_types = getattr(config, "layer_types", None)
    if layer_types is not None:
        config.layer_types = [layer_types[layer] for layer in layers]
    return config
