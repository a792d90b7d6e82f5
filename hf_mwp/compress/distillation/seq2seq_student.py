"""Smaller students of encoder-decoder models."""

import copy
import re
from collections.abc import Sequence

import torch
from transformers import PreTrainedModel
from transformers.utils import logging

from hf_mwp.compress.metrics.efficiency import describe_compression
from hf_mwp.compress.models.architecture import CUT_PREFIX
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_at_least_one

from .layer_mapping import choose_layers


logger = logging.get_logger(__name__)

INITS = ("slice", "embeddings", "random")
# Names in a config: of the numbers of layers, and of the feed-forward sizes.
T5_SIZES = {"encoder": "num_layers", "decoder": "num_decoder_layers", "ffn": ("d_ff",)}
BART_SIZES = {"encoder": "encoder_layers", "decoder": "decoder_layers", "ffn": ("encoder_ffn_dim", "decoder_ffn_dim")}
LAYER = re.compile(r"^((?:model\.)?(encoder|decoder)\.(?:layers|block)\.)(\d+)\.")


@checked
def make_seq2seq_student(
    teacher: PreTrainedModel,
    encoder_layers: int | Sequence[int],
    decoder_layers: int | Sequence[int],
    hidden_size: int | None = None,
    init: str = "slice",
    choice: str = "uniform",
) -> PreTrainedModel:
    """
    Create a smaller encoder-decoder model of the teacher's class, with fewer layers and optionally a smaller width.
    Feed-forward layers shrink in proportion to the width. The student has the teacher's tokens, and keeps the
    teacher's head size if this size divides the new width.

    Args:
        teacher (`PreTrainedModel`): A BART, mBART, Marian, Pegasus, M2M100 or T5 model for conditional generation.
        encoder_layers, decoder_layers (`int` or `Sequence[int]`):
            Layers of the student's encoder and decoder: their number, or the teacher's layers (indices from 0).
        hidden_size (`int`, *optional*): Width of the student. Defaults to the teacher's width.
        init (`str`, *optional*, defaults to `"slice"`): `"slice"`: the leading part `W[:d, :d]` of the weights of the
            chosen layers, at the teacher's width the complete weights. `"embeddings"`: random weights, except for the
            teacher's word embeddings projected onto their `d` principal directions. `"random"`: random weights.
        choice (`str`, *optional*, defaults to `"uniform"`): Which layers of a stack are sliced if only their number
            is given, see [`choose_layers`]. The default is every k-th layer, as in the `"alternating"` mapping.

    Returns:
        `PreTrainedModel`: the student, in the teacher's dtype, with its own copies of the weights and the teacher's
        generation config.

    Raises:
        TypeError: if a size is not a whole number.
        ValueError: if the teacher's architecture is not supported, the student has more layers or a larger width than
            the teacher, the heads do not divide the width, or `init` is unknown.

    References: Improving Language Model Distillation through Hidden State Matching (ICLR 2025): leading slices of
    every k-th layer, in the authors' implementation.

    Example:
        >>> teacher = AutoModelForSeq2SeqLM.from_pretrained("facebook/bart-large-xsum")
        >>> student = make_seq2seq_student(teacher, encoder_layers=6, decoder_layers=3, hidden_size=640)
    """
    if init not in INITS:
        raise ValueError(f"`init` must be one of {', '.join(INITS)}, got {init!r}.")
    names = _sizes_of(teacher)
    config = copy.deepcopy(teacher.config)
    check_at_least_one({"hidden_size": hidden_size}, "hidden_size")
    width = config.d_model if hidden_size is None else hidden_size
    if width > config.d_model:
        raise ValueError(f"`hidden_size` must be from 1 to {config.d_model}, the teacher's width, got {hidden_size}.")
    layers = {}
    for stack, stack_layers in (("encoder", encoder_layers), ("decoder", decoder_layers)):
        layers[stack] = choose_layers(stack_layers, getattr(config, names[stack]), choice)
        setattr(config, names[stack], len(layers[stack]))
    if hasattr(config, "num_hidden_layers") and "num_hidden_layers" not in getattr(config, "attribute_map", {}):
        config.num_hidden_layers = len(layers["encoder"])
    _narrow(config, names, width)
    student = type(teacher)(config).to(teacher.dtype)
    with torch.no_grad():
        if init == "slice":
            _copy_slices(teacher, student, layers)
        elif init == "embeddings":
            embeddings = teacher.get_input_embeddings().weight
            student.get_input_embeddings().weight.copy_(_principal_directions(embeddings, width))
    student.tie_weights()
    student.generation_config = copy.deepcopy(teacher.generation_config)
    logger.info(describe_compression(student, teacher))
    return student


def _sizes_of(teacher: PreTrainedModel) -> dict:
    config = getattr(teacher, "config", None)
    if hasattr(teacher, "get_base_model") or getattr(config, "model_type", "").startswith(CUT_PREFIX):
        raise ValueError(
            f"`{type(teacher).__name__}` has adapters or pruned heads. Merge the adapters (`merge_and_unload()`), or "
            "create the student before the teacher is pruned."
        )
    is_led = hasattr(config, "attention_window")
    for names in (T5_SIZES, BART_SIZES):
        if hasattr(config, names["encoder"]) and hasattr(config, names["decoder"]) and not is_led:
            return names
    raise ValueError(f"`{type(teacher).__name__}` is not supported. Use BART, mBART, Marian, Pegasus, M2M100 or T5.")


def _narrow(config, names: dict, width: int) -> None:
    """Set the width of a config, with matching heads and feed-forward sizes."""
    if width == config.d_model:
        return
    for name in names["ffn"]:
        setattr(config, name, max(getattr(config, name) * width // config.d_model, 1))
    if names is T5_SIZES:
        # The head size of T5 does not depend on its width.
        config.num_heads = max(config.num_heads * width // config.d_model, 1)
    else:
        for name in ("encoder_attention_heads", "decoder_attention_heads"):
            heads = getattr(config, name)
            size = config.d_model // heads
            if width % size == 0:
                heads = width // size
            if width % heads:
                raise ValueError(f"{heads} heads do not divide a `hidden_size` of {width}. Use a multiple of {size}.")
            setattr(config, name, heads)
    config.d_model = width


def _copy_slices(teacher: PreTrainedModel, student: PreTrainedModel, layers: dict[str, list[int]]) -> None:
    # Computed for the width, not learned.
    sinusoidal = {name for name, module in student.named_modules() if "Sinusoidal" in type(module).__name__}
    weights = teacher.state_dict()
    for name, value in student.state_dict().items():
        if name.rpartition(".")[0] in sinusoidal:
            continue
        source = LAYER.sub(lambda match: f"{match[1]}{layers[match[2]][int(match[3])]}.", name)
        # T5 has biases of relative positions only in the first layer.
        if source not in weights:
            source = name
        corner = tuple(map(slice, value.shape))
        value.copy_(weights[source][corner])


def _principal_directions(embeddings: torch.Tensor, width: int) -> torch.Tensor:
    """Project embeddings `(tokens, teacher's width)` onto their `width` principal directions, with the same norm."""
    values = embeddings.double()
    _, directions = torch.linalg.eigh(values.T @ values)
    projected = values @ directions[:, -width:].flip(1)
    return (projected * values.norm() / projected.norm()).to(embeddings.dtype)
