"""Outputs of a model for a batch, by name."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from accelerate.utils import extract_model_from_parallel
from torch import Tensor, nn

from ..models.slicing import NoHeads


KINDS = ("query", "key", "value")

# Names of the three layers in models: BERT and its kin, BART and most decoders, DistilBERT, T5, DeBERTa. ModernBERT
# has one, of all queries, then all keys, then all values.
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
    """Hidden states of a model's output, embedding output first; those of the encoder if it has a decoder as well."""
    return _of_encoder(output, "hidden_states") if hasattr(output, "get") else None


def attention_maps(output: Any) -> tuple[Tensor, ...] | None:
    """Attention matrices of a model's output, one per layer; those of the encoder if it has a decoder as well."""
    return _of_encoder(output, "attentions")


def _of_encoder(output: Any, name: str) -> tuple[Tensor, ...] | None:
    found = output.get(name)
    return output.get(f"encoder_{name}") if found is None else found


# Layers are counted from 1; before them there is the embedding output, which has no attention.
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
    Outputs of a model that objectives read: `features["hidden_4"]` is the output of its fourth layer (0: the embedding
    output), `"bottleneck_0"` the first narrow state, `"attention_4"` the fourth layer's attention matrices,
    `"query_4"`, `"key_4"` and `"value_4"` what it attends with, all other names what the output calls so. Of a model
    with two stacks these are the encoder's; `"decoder_hidden_4"`, `"decoder_attention_4"`, `"decoder_query_4"` ... are
    the decoder's, `"cross_attention_4"` what it attends to in the encoder.

    Args:
        output (`ModelOutput`): Output of the model.
        recorded (`Mapping[str, Tensor]`, *optional*): Queries, keys and values.
        model (`nn.Module`, *optional*): The model itself; given while objectives are planned.

    Attributes:
        projected (`Mapping[str, Tensor]`): Hidden states after [`FeatureProjections`].
    """

    def __init__(
        self, output: Any, recorded: Mapping[str, Tensor] | None = None, model: nn.Module | None = None
    ) -> None:
        self.output, self.model = output, model
        self.recorded, self.projected = recorded or {}, {}

    @property
    def states(self) -> tuple[Tensor, ...]:
        """Hidden states, embedding output first; none if the model gave none."""
        return hidden_states(self.output) or ()

    def stack(self, name: str) -> tuple[Tensor, ...]:
        """Hidden states of a stack, `"decoder"` or else the encoder, embedding output first; none if it gave none."""
        return self.states if name == "encoder" else self.output.get("decoder_hidden_states") or ()

    def maps(self, stack: str) -> tuple[Tensor, ...]:
        """Attention matrices of a stack, or those of the decoder to the encoder (`"cross"`), one per layer."""
        names = {"decoder": "decoder_attentions", "cross": "cross_attentions"}
        return (self.output.get(names[stack]) if stack in names else self.attentions) or ()

    @property
    def attentions(self) -> tuple[Tensor, ...]:
        """Attention matrices, one per layer; none if the model gave none."""
        return attention_maps(self.output) or ()

    def get(self, name: str) -> Tensor | None:
        """Something that the output may lack, such as `"loss"`."""
        return self.output.get(name)

    def __getitem__(self, name: str) -> Tensor:
        if name in self.recorded:
            return self.recorded[name]
        kind, _, index = name.rpartition("_")
        return LISTS[kind](self.output)[int(index)] if kind in LISTS else self.output[name]


def attention_inputs(model: nn.Module, stack: str = "encoder") -> list[dict[str, nn.Module]]:
    """
    The layers of self-attention of an encoder (or of a decoder that stands alone; with `stack="decoder"` of the second
    stack of a model), first layer first, each with the modules that make `"query"`, `"key"` and `"value"`, or none
    where a layer has no heads. One module may make all three in thirds of its output; models that interleave them
    (GPT-2) are not among them.
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
    Inside, each pass of a model leaves in the given `dict` those of the `names` that are queries, keys or values of a
    layer (`"query_1"`); afterwards, also after an error, the model is as it was.
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
                # DeBERTa's may project positions as well, after the states.
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
    Runs a model, perhaps wrapped for distributed training, on a batch, with further arguments such as
    `output_hidden_states`; `names` says what will be read of it.
    """
    with recorded_inputs(extract_model_from_parallel(model), names) as recorded:
        return Features(model(**inputs, **options), recorded)
