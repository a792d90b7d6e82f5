"""Outputs of a model for a batch, indexed by name."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from accelerate.utils import extract_model_from_parallel
from torch import Tensor, nn

from ..models.slicing import NoHeads


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


def hidden_states(output: Any) -> tuple[Tensor, ...] | None:
    """
    Return the hidden states of a model's output, embedding output first, or `None` if it has none. For an
    encoder-decoder model these are the encoder's.
    """
    return _of_encoder(output, "hidden_states") if hasattr(output, "get") else None


def attention_maps(output: Any) -> tuple[Tensor, ...] | None:
    """
    Return the attention matrices of a model's output, one per layer, or `None` if it has none. For an encoder-decoder
    model these are the encoder's.
    """
    return _of_encoder(output, "attentions")


def _of_encoder(output: Any, name: str) -> tuple[Tensor, ...] | None:
    found = output.get(name)
    return output.get(f"encoder_{name}") if found is None else found


# Layers are counted from 1. Index 0 is the embedding output, which has no attention.
LISTS = {
    "hidden": hidden_states,
    "decoder_hidden": lambda output: output["decoder_hidden_states"],
    "bottleneck": lambda output: output["bottleneck_states"],
    "attention": lambda output: (None, *attention_maps(output)),
    "decoder_attention": lambda output: (None, *output["decoder_attentions"]),
    "cross_attention": lambda output: (None, *output["cross_attentions"]),
}


class Features:
    """
    Outputs of a model that objectives read, by name. `features["hidden_4"]` is the output of the fourth layer (0: the
    embedding output), `"bottleneck_0"` the first narrow state of a bottleneck, and `"attention_4"` the attention
    matrices of the fourth layer. `"query_4"`, `"key_4"` and `"value_4"` are the vectors that it attends with. All
    other names are fields of the output. For an encoder-decoder model the layer names refer to the encoder.
    `"decoder_hidden_4"`, `"decoder_attention_4"`, `"decoder_query_4"` and so on refer to the decoder, and
    `"cross_attention_4"` to its attention to the encoder.

    Args:
        output (`ModelOutput`): Output of the model.
        recorded (`Mapping[str, Tensor]`, *optional*): Queries, keys and values by name.
        model (`nn.Module`, *optional*): The model itself. Passed only for [`Objective.setup`].

    Attributes:
        projected (`Mapping[str, Tensor]`): Hidden states after [`FeatureProjections`], by name.
    """

    def __init__(
        self, output: Any, recorded: Mapping[str, Tensor] | None = None, model: nn.Module | None = None
    ) -> None:
        self.output, self.model = output, model
        self.recorded, self.projected = recorded or {}, {}

    @property
    def states(self) -> tuple[Tensor, ...]:
        """Return the hidden states, embedding output first, or an empty tuple."""
        return hidden_states(self.output) or ()

    def stack(self, name: str) -> tuple[Tensor, ...]:
        """
        Return the hidden states of a stack (`"encoder"` or `"decoder"`), embedding output first, or an empty tuple.
        """
        return self.states if name == "encoder" else self.output.get("decoder_hidden_states") or ()

    def maps(self, stack: str) -> tuple[Tensor, ...]:
        """
        Return the attention matrices of a stack, one per layer; `"cross"` is the decoder's attention to the encoder.
        """
        names = {"decoder": "decoder_attentions", "cross": "cross_attentions"}
        return (self.output.get(names[stack]) if stack in names else self.attentions) or ()

    @property
    def attentions(self) -> tuple[Tensor, ...]:
        """Return the attention matrices, one per layer, or an empty tuple."""
        return attention_maps(self.output) or ()

    def get(self, name: str) -> Tensor | None:
        """Return a field of the output such as `"loss"`, or `None` if it is missing."""
        return self.output.get(name)

    def __getitem__(self, name: str) -> Tensor:
        if name in self.recorded:
            return self.recorded[name]
        kind, _, index = name.rpartition("_")
        return LISTS[kind](self.output)[int(index)] if kind in LISTS else self.output[name]


def attention_inputs(model: nn.Module, stack: str = "encoder") -> list[dict[str, nn.Module]]:
    """
    Return the modules that compute `"query"`, `"key"` and `"value"` in each self-attention layer, first layer first,
    or an empty dictionary for a layer without heads. The layers are those of an encoder or a decoder-only model;
    `stack="decoder"` selects the decoder of an encoder-decoder model. One module may compute all three in thirds of
    its output. Models that interleave queries, keys and values (GPT-2) are not supported.
    """
    find, found = getattr(model, f"get_{stack}", None), []
    for path, module in (find() if find else model).named_modules():
        if any(word in path for word in CROSS):
            continue
        children = [[getattr(module, name, None) for name in names] for names in NAMES]
        complete = [each for each in children if all(isinstance(child, nn.Module) for child in each)]
        if complete:
            found.append(dict(zip(KINDS, complete[0], strict=True)) if _has_outputs(complete[0][0]) else {})
        elif getattr(module, "self", module) is None or isinstance(module, NoHeads):
            found.append({})
    return found


def _has_outputs(module: nn.Module) -> bool:
    return getattr(module, "out_features", 1) > 0


@contextmanager
def recorded_inputs(model: nn.Module, names: Iterable[str]) -> Iterator[dict[str, Tensor]]:
    """
    Record queries, keys and values inside the context: each forward pass of the model writes the requested `names`
    (such as `"query_1"`) to the yielded dictionary. At the end, also after an error, the model is restored.
    """
    wanted = [
        (name, kind.removeprefix("decoder_"), layer, "decoder" if kind.startswith("decoder_") else "encoder")
        for name, kind, layer in ((name, *name.rpartition("_")[::2]) for name in names)
        if kind.removeprefix("decoder_") in KINDS
    ]
    layers = {stack: attention_inputs(model, stack) for stack in {stack for *_, stack in wanted}}
    found: dict[str, Tensor] = {}
    handles = [model.register_forward_pre_hook(lambda *args: found.clear())] if wanted else []
    try:
        for name, kind, layer, stack in wanted:
            modules = layers[stack][int(layer) - 1]
            third = KINDS.index(kind) if modules["query"] is modules["value"] else None

            def keep(
                module: nn.Module, args: tuple, output: Tensor, name: str = name, third: int | None = third
            ) -> None:
                # DeBERTa may call the module again for positions. The first call is for the states.
                found.setdefault(name, output if third is None else output.chunk(3, -1)[third])

            handles.append(modules[kind].register_forward_hook(keep))
        yield found
    finally:
        for handle in handles:
            handle.remove()


def read_features(
    model: nn.Module, inputs: Mapping[str, Any], options: Mapping[str, bool], names: Iterable[str] = ()
) -> Features:
    """
    Run a model, possibly wrapped for distributed training, on a batch and return its outputs. `options` are further
    arguments such as `output_hidden_states`, and `names` the features that will be read.
    """
    with recorded_inputs(extract_model_from_parallel(model), names) as recorded:
        return Features(model(**inputs, **options), recorded)
