"""Queries, keys and values of an encoder, read by hooks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from torch import Tensor, nn


KINDS = ("query", "key", "value")

# What models call the three layers: BERT and its kin, BART and most decoders, DistilBERT, T5.
NAMES = (KINDS, ("q_proj", "k_proj", "v_proj"), ("q_lin", "k_lin", "v_lin"), ("q", "k", "v"))
CROSS = ("cross", "encoder_attn", "EncDec")


def attention_inputs(model: nn.Module) -> list[dict[str, nn.Module]]:
    """
    The layers of self-attention of an encoder (or of a decoder that stands alone), first layer first, each with the
    modules that make `"query"`, `"key"` and `"value"`. Models that make the three in one are not among them.
    """
    encoder, found = model.get_encoder() if hasattr(model, "get_encoder") else model, []
    for path, module in encoder.named_modules():
        children = [[getattr(module, name, None) for name in names] for names in NAMES]
        complete = [each for each in children if all(isinstance(child, nn.Module) for child in each)]
        if complete and not any(word in path for word in CROSS):
            found.append(dict(zip(KINDS, complete[0], strict=True)))
    return found


@contextmanager
def recorded_inputs(model: nn.Module, names: Iterable[str]) -> Iterator[dict[str, Tensor]]:
    """
    Inside, each pass of a model leaves in the given `dict` those of the `names` that are queries, keys or values of a
    layer (`"query_1"`); afterwards, also after an error, the model is as it was.
    """
    wanted = [(name, *name.rsplit("_", 1)) for name in names if name.rpartition("_")[0] in KINDS]
    layers = attention_inputs(model) if wanted else []
    found: dict[str, Tensor] = {}
    handles = []
    try:
        for name, kind, layer in wanted:

            def keep(module: nn.Module, args: tuple, output: Tensor, name: str = name) -> None:
                found[name] = output

            handles.append(layers[int(layer) - 1][kind].register_forward_hook(keep))
        yield found
    finally:
        for handle in handles:
            handle.remove()


__all__ = ["KINDS", "attention_inputs", "recorded_inputs"]
