"""LoRA: low-rank adapters that are trained instead of an encoder's weights and merged into them."""

import copy
from collections import defaultdict
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.files import writing_weights
from hf_mwp.utils.usage_error import UsageError

from .architecture import find_architecture
from .model_kind import kind_of


# File in a checkpoint, beside the merged weights: adapters and unmerged linear layers.
ADAPTERS = "lora_adapters.safetensors"
MARK = "_adapted_by_hf_mwp"


class TrainedTokens(nn.Module):
    """Trainable rows `tokens` of a frozen embedding table, to which this module attaches itself as `trained_tokens`.
    They belong to new tokens of a pretrained encoder. peft's version would copy the whole table in each step."""

    name = "trained_tokens"

    def __init__(self, embedding: nn.Embedding, tokens: Sequence[int]) -> None:
        super().__init__()
        weight = embedding.weight
        self.rows = nn.Parameter(weight.detach()[list(tokens)].clone())
        # Row in `rows` of each token, -1 for tokens that use the table.
        row_of_token = torch.full((weight.shape[0],), -1, device=weight.device)
        row_of_token[list(tokens)] = torch.arange(len(tokens), device=weight.device)
        self.register_buffer("place", row_of_token, persistent=False)
        embedding.add_module(self.name, self)
        self._hook = embedding.register_forward_hook(self._replace)

    def _replace(self, embedding: nn.Embedding, inputs: tuple[Any, ...], output: Tensor) -> Tensor:
        row_indices = self.place[inputs[0]]
        rows = functional.embedding(row_indices.clamp(min=0), self.rows)
        # Some encoders scale their embeddings.
        rows = rows * getattr(embedding, "embed_scale", 1.0)
        is_trained = row_indices >= 0
        return torch.where(is_trained[..., None], rows.to(output.dtype), output)

    @torch.no_grad()
    def merge(self, embedding: nn.Embedding) -> None:
        """Write the rows into the table and detach from it."""
        is_trained = self.place >= 0
        embedding.weight[is_trained] = self.rows[self.place[is_trained]].to(embedding.weight.dtype)
        self._hook.remove()
        delattr(embedding, self.name)


@checked
def add_lora(
    model: PreTrainedModel,
    rank: int,
    alpha: float | None = None,
    dropout: float = 0.0,
    targets: Sequence[str] | None = None,
    tokens: Sequence[int] = (),
) -> PreTrainedModel:
    """
    Add LoRA adapters (`peft`) to linear layers of a model's encoder, and freeze its weights. The adapters are trained
    together with the modules on top of the encoder: decoder, bottleneck networks, pooler, classifier.

    Trainers of this package save an ordinary model with merged adapters. Their checkpoints also contain the separate
    adapters, for exact resumption. With other trainers, call [`merge_lora`] before saving.

    Args:
        model (`PreTrainedModel`): A solver, a classifier or an encoder. It is changed in place.
        rank (`int`): Rank of the adapters.
        alpha (`float`, *optional*): Outputs of adapters are scaled by `alpha / rank`. Defaults to twice the rank.
        dropout (`float`, *optional*, defaults to 0.0): Dropout of the adapters' inputs.
        targets (`Sequence[str]`, *optional*):
            Linear layers to adapt, by their field names in [`~models.architecture.Architecture`] (`"query"`,
            `"intermediate"`, ...), or by the last parts of the encoder's own module names, as for encoders of an
            unknown type. Defaults to the architecture's `lora_targets`.
        tokens (`Sequence[int]`, *optional*): Rows of the embeddings to train as well, such as rows of new tokens.

    Raises:
        UsageError: The encoder does not have the targets, or already has adapters.

    References:
        Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", ICLR 2022.

    Example:

    ```python
    >>> solver, processor = hf_mwp.build_solver(data["train"], encoder="hfl/chinese-roberta-wwm-ext")
    >>> solver = hf_mwp.add_lora(solver, rank=8, tokens=processor.number_token_ids)
    ```
    """
    from peft import LoraConfig, inject_adapter_in_model

    if any(hasattr(module, "peft_config") for module in model.modules()):
        raise UsageError(f"This {type(model).__name__} already has adapters. Merge them first (`hf_mwp.merge_lora`).")
    if alpha is None:
        alpha = 2 * rank
    encoder = kind_of(model).encoder(model)
    target_modules = _find_targets(encoder, targets)
    config = LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules=target_modules)
    inject_adapter_in_model(config, encoder)
    setattr(encoder, MARK, True)
    if getattr(encoder, "pooler", None) is not None:
        encoder.pooler.requires_grad_(True)
    if tokens:
        TrainedTokens(encoder.get_input_embeddings(), tokens)
    return model


def has_lora(model: nn.Module) -> bool:
    """Return whether a model has adapters of [`add_lora`]. Adapters that users add with peft do not count."""
    return any(hasattr(module, MARK) for module in model.modules())


@checked
def merge_lora(model: nn.Module) -> nn.Module:
    """Merge the adapters of [`add_lora`], if any, into the weights in place, and make all weights trainable."""
    if not has_lora(model):
        return model
    from peft.tuners.lora import LoraLayer

    for name, module in list(model.named_modules()):
        if isinstance(module, LoraLayer):
            module.merge()
            model.set_submodule(name, module.get_base_layer())
        elif isinstance(module, TrainedTokens):
            module.merge(model.get_submodule(name.rpartition(".")[0]))
    for module in model.modules():
        if hasattr(module, MARK):
            delattr(module, MARK)
            del module.peft_config
            module.requires_grad_(True)
    return model


def merged_weights(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights of a model after merging its adapters. The model itself keeps its adapters."""
    return merge_lora(copy.deepcopy(model)).state_dict()


def save_adapters(model: nn.Module, folder: str | PathLike) -> None:
    """Save the adapters of a model, if it has any, to the folder of a checkpoint."""
    path = Path(folder) / ADAPTERS
    path.unlink(missing_ok=True)
    weights = {name: weight.cpu().contiguous() for name, weight in _adapters(model).items()}
    if weights:
        path.parent.mkdir(parents=True, exist_ok=True)
        with writing_weights(path.parent):
            save_file(weights, path)


def load_adapters(model: nn.Module, folder: str | PathLike) -> None:
    """Load the adapters of a checkpoint. Raises `UsageError` if they differ from the adapters of the model."""
    path = Path(folder) / ADAPTERS
    saved = load_file(path) if path.is_file() else {}
    if _shapes(saved) != _shapes(_adapters(model)):
        raise UsageError(f"{folder} has different adapters. Resume with the LoRA options of the first run.")
    model.load_state_dict(saved, strict=False)


def _shapes(weights: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: weight.shape for name, weight in weights.items()}


def _adapters(model: nn.Module) -> dict[str, Tensor]:
    """Return the weights of all adapted modules: adapters, unmerged linear layers and trained tokens."""
    if not has_lora(model):
        return {}
    from peft.tuners.lora import LoraLayer

    prefixes = []
    for name, module in model.named_modules():
        if isinstance(module, LoraLayer | TrainedTokens):
            prefixes.append(f"{name}.")
    return {name: weight for name, weight in model.state_dict().items() if name.startswith(tuple(prefixes))}


def _find_targets(encoder: PreTrainedModel, targets: Sequence[str] | None) -> list[str]:
    """Return the names of the encoder's linear layers that `targets` selects."""
    architecture = find_architecture(encoder.config)
    # Full module names by the names that `targets` may contain.
    names_by_target = defaultdict(list)
    names_by_module = defaultdict(list)
    for name, module in encoder.named_modules():
        if type(module) is nn.Linear:
            field = None
            if architecture is not None:
                field = architecture.part_of(name)
            if field is not None:
                names_by_target[field].append(name)
            if field is not None or architecture is None:
                names_by_module[name.rpartition(".")[2]].append(name)
    if architecture is None:
        names_by_target = names_by_module
    if targets is None and architecture is not None:
        targets = [target for target in architecture.lora_targets if target in names_by_target]
    fault = None if targets else "no default LoRA targets"
    names = []
    for target in targets or ():
        target_names = names_by_target.get(target) or names_by_module.get(target)
        if target_names is None:
            fault = f"no {target!r}"
            break
        names += target_names
    if fault is not None:
        model_type = encoder.config.model_type
        choices = ", ".join(names_by_target)
        raise UsageError(f"An encoder of type {model_type!r} has {fault}. Choose from its layers: {choices}.")
    return names
