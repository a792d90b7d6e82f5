"""Outputs of a model for a batch, indexed by name, and masks of those that are compared."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn

from hf_mwp.compress.models.batch_inputs import find_token_mask, num_choices, shift_labels
from hf_mwp.compress.models.cut_model import NoHeads
from hf_mwp.compress.models.model_kind import unwrapped
from hf_mwp.compress.models.model_outputs import named_outputs


KINDS = ("query", "key", "value")

# Names of the query, key and value modules: BERT and similar models, BART and most decoders, DistilBERT, T5, DeBERTa.
# ModernBERT has one module that returns all queries, then all keys, then all values.
NAMES = (
    KINDS,
    ("q_proj", "k_proj", "v_proj"),
    ("q_lin", "k_lin", "v_lin"),
    ("q", "k", "v"),
    ("query_proj", "key_proj", "value_proj"),
    ("Wqkv", "Wqkv", "Wqkv"),
)
CROSS = ("cross", "encoder_attn", "EncDec")

# Fields with a tensor for each layer: hidden states begin with the embedding output (0), attention with layer 1.
FIELDS = {
    "hidden": "hidden_states",
    "decoder_hidden": "decoder_hidden_states",
    "bottleneck": "bottleneck_states",
    "attention": "attentions",
    "decoder_attention": "decoder_attentions",
    "cross_attention": "cross_attentions",
}


class Features:
    """
    Outputs of a model that objectives read, by name. `features["hidden_4"]` is the output of the fourth layer (0: the
    embedding output), `"bottleneck_0"` the first narrow state of a bottleneck, `"attention_4"` the attention matrices
    of the fourth layer, and `"query_4"`, `"key_4"` and `"value_4"` the vectors that it attends with (`recorded`). All
    other names are fields of `output`. In an encoder-decoder model these layers are the encoder's;
    `"decoder_hidden_4"`, `"decoder_attention_4"`, `"decoder_query_4"` and so on refer to the decoder, and
    `"cross_attention_4"` to its attention to the encoder. `projected` contains hidden states after
    [`FeatureProjections`]. The `model` itself is passed only for [`Objective.setup`], as is `num_shared_tokens`, the
    number of first tokens that are the same in the tokenizers of student and teacher, if it is known.
    """

    def __init__(self, output: Any, recorded: Mapping[str, Tensor] | None = None, model: Any = None) -> None:
        self.output = output
        self.model = model
        self.recorded = recorded or {}
        self.projected: dict[str, Tensor] = {}
        self.num_shared_tokens: int | None = None

    def layers(self, kind: str) -> Sequence[Tensor]:
        """Return the outputs of all layers (`"hidden"`, `"decoder_attention"`, ...), or an empty tuple."""
        layers = self.get(FIELDS[kind])
        if layers is None:
            layers = self.get(f"encoder_{FIELDS[kind]}")
        return layers or ()

    def get(self, name: str) -> Tensor | None:
        """Return a field of the output such as `"loss"`, or `None` if it is missing."""
        return self.recorded.get(name, self.output.get(name))

    def __getitem__(self, name: str) -> Tensor:
        if name in self.recorded:
            return self.recorded[name]
        field, _, layer = name.rpartition("_")
        if field not in FIELDS:
            return self.output[name]
        index = int(layer)
        if field.endswith("attention"):
            # Embeddings have no attention.
            index -= 1
        return self.layers(field)[index]


def attention_inputs(model: nn.Module, stack: str = "encoder") -> list[dict[str, nn.Module]]:
    """Return the modules that compute `"query"`, `"key"` and `"value"` in each self-attention layer, or `{}` for a
    layer without heads. One module may compute all in thirds of its output, but not interleaved (GPT-2)."""
    model = unwrapped(model)
    get_stack = getattr(model, f"get_{stack}", None)
    if get_stack:
        model = get_stack()
    layers = []
    for path, module in model.named_modules():
        if any(word in path for word in CROSS):
            continue
        projections = _projections(module)
        if projections:
            has_heads = getattr(projections["query"], "out_features", 1) > 0
            if not has_heads:
                projections = {}
            layers.append(projections)
        elif getattr(module, "self", module) is None or isinstance(module, NoHeads):
            layers.append({})
    return layers


def _projections(module: nn.Module) -> dict[str, nn.Module]:
    """Return the query, key and value modules of an attention module, or `{}` for other modules."""
    for names in NAMES:
        children = [getattr(module, name, None) for name in names]
        if all(isinstance(child, nn.Module) for child in children):
            return dict(zip(KINDS, children, strict=True))
    return {}


@contextmanager
def recorded_inputs(model: nn.Module, names: Iterable[str]) -> Iterator[dict[str, Tensor]]:
    """Yield a dictionary that receives the queries, keys and values in `names` (`"query_1"`) in each forward pass."""
    layers_of = cache(partial(attention_inputs, model))
    recorded = {}
    handles = []
    try:
        for name in names:
            vector, _, layer = name.removeprefix("decoder_").rpartition("_")
            if vector not in KINDS:
                continue
            stack = "decoder" if name.startswith("decoder_") else "encoder"
            modules = layers_of(stack)[int(layer) - 1]
            third = KINDS.index(vector) if modules["query"] is modules["value"] else None

            def record(module, args, output, name=name, third=third):
                if third is not None:
                    output = output.chunk(3, -1)[third]
                # DeBERTa may call the module again for positions. The first call is for the states.
                recorded.setdefault(name, output)

            handles.append(modules[vector].register_forward_hook(record))
        if handles:
            handles.append(model.register_forward_pre_hook(lambda *args: recorded.clear()))
        yield recorded
    finally:
        for handle in handles:
            handle.remove()


def read_features(
    model: nn.Module, inputs: Mapping[str, Any], options: Mapping[str, bool], names: Iterable[str] = ()
) -> Features:
    """Run a model, possibly wrapped, and return its outputs with the features in `names`."""
    with recorded_inputs(unwrapped(model), names) as recorded:
        return Features(named_outputs(model, {**inputs, **options}), recorded)


def token_mask(inputs: Mapping[str, Any], shape: Sequence[int], device: Any) -> Tensor:
    """Return a mask `(batch, tokens)` that is true at tokens, or everywhere without an attention mask in the batch.
    For multiple choice, it has a row for each choice."""
    mask = find_token_mask(inputs)
    if mask is None:
        if num_choices(inputs) is not None:
            shape = inputs["input_ids"].flatten(0, 1).shape
        return torch.ones(tuple(shape), dtype=torch.bool, device=device)
    return mask.bool()


def decoder_mask(inputs: Mapping[str, Any], kind: str = "labels") -> Tensor:
    """
    Return a mask `(batch, positions)` of the decoder states that are compared: the states that predict a label, or
    with `"shifted"` the states whose input token is a label (`shift_tokens_right(labels) != pad` in the authors'
    implementation of Hidden State Matching, ICLR 2025), that is, without the start token and, in the longest rows, the
    end token. A decoder whose states do not correspond to labels has its own mask ([`~models.decoder.Decoder`]).
    """
    mask = inputs.get("decoder_state_mask")
    if mask is not None:
        if kind != "labels":
            raise ValueError(f'This decoder has no shifted states, got {kind!r}. Set `decoder_mask="labels"`.')
        return mask
    labels = inputs.get("labels")
    if labels is None:
        raise ValueError("Labels are needed to select the decoder states to compare. Pass `labels`.")
    valid = labels != -100
    if kind == "labels":
        return valid
    return nn.functional.pad(valid[:, :-1], (1, 0))


def read_mask(name: str, inputs: Mapping[str, Any], shape: Sequence[int], device: Any) -> Tensor:
    """Return the mask `(batch, positions)` of a feature with one vector per token, by its name in [`Features`]."""
    if name.startswith("decoder_"):
        return decoder_mask(inputs)
    return token_mask(inputs, shape, device)


def label_mask(inputs: Mapping[str, Any], shape: Sequence[int], device: Any, label_shift: int = 0) -> Tensor:
    """Return a mask `(batch, positions)` of the logits that are compared: where the label, `label_shift` positions
    later, is not -100, or at tokens without labels."""
    labels = inputs.get("labels")
    if labels is None:
        return token_mask(inputs, shape, device)
    return shift_labels(labels, label_shift) != -100
