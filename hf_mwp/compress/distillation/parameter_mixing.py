"""Interpolation and averaging of model weights."""

import copy
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from hf_mwp.compress.models.model_kind import kind_of, unwrapped
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_weight
from hf_mwp.utils.provenance import inherit_training_texts


@checked
@torch.no_grad()
def mix_parameters(
    pretrained: nn.Module, distilled: nn.Module, pretrained_weight: float = 0.2, inplace: bool = False
) -> nn.Module:
    """
    Interpolate between the weights of a model before and after distillation:
    `pretrained_weight * pretrained + (1 - pretrained_weight) * distilled`, parameter by parameter, in fp32.

    For two models of the same class all weights are mixed. For different classes only the base models are mixed, for
    example the encoder of a solver with a pretrained encoder. Weights that only the distilled model has (decoder,
    bottlenecks, heads) and poolers that one model lacks keep their distilled values; integers are the larger ones.

    Args:
        pretrained (`nn.Module`): The model before distillation.
        distilled (`nn.Module`): The same model after distillation.
        pretrained_weight (`float`, *optional*, defaults to 0.2): Share of the pretrained weights, from 0 to 1.
        inplace (`bool`, *optional*, defaults to `False`): Change `distilled` instead of a copy.

    Returns:
        `nn.Module`: the distilled model or a copy of it, in its own dtypes.

    Raises:
        ValueError: if the names or shapes of weights differ, or `pretrained_weight` is not between 0 and 1.

    References: A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), parameter
    mixing with `pretrained_weight = 0.2`.

    Example:
        >>> student = mix_parameters(MwpStudentForPreTraining.from_pretrained("pretrained"), distilled_solver)
    """
    check_weight({"pretrained_weight": pretrained_weight}, "pretrained_weight")
    if not inplace:
        distilled = copy.deepcopy(distilled)
    old, new = check_mixing(pretrained, distilled)
    mixed = set()
    for name, value in new.items():
        # Tied weights have several names but are mixed only once.
        if name in old and value.is_floating_point() and value.data_ptr() not in mixed:
            before = old[name].to(value.device, torch.float32)
            # `lerp` is exact at both ends.
            value.copy_(torch.lerp(value.float(), before, pretrained_weight).to(value.dtype))
            mixed.add(value.data_ptr())
        elif name in old and value.dtype == torch.long:
            # For example ATHENA's limit of the search, the depth of the deepest training target.
            value.copy_(torch.maximum(value, old[name].to(value.device)))
    inherit_training_texts(distilled, pretrained)
    return distilled


@checked
def average_parameters(models: Sequence[nn.Module]) -> nn.Module:
    """
    Average the weights of models of one class that started from the same weights and were trained separately, with
    different seeds or options. Return a copy of the first model with the averaged weights, see [`mix_parameters`]. The
    average is as fast as a single model and often better than each of them.

    Raises:
        ValueError: if `models` is empty, or the names or shapes of weights differ.

    References: Model soups: averaging weights of multiple fine-tuned models improves accuracy without increasing
    inference time (Wortsman et al., ICML 2022), the uniform soup.

    Example:
        >>> student = average_parameters([load_solver(f"runs/student_{seed}")[0] for seed in (42, 43, 44)])
    """
    if not models:
        raise ValueError("`models` is empty. Pass at least one model to average.")
    mean = mix_parameters(models[0], models[0], pretrained_weight=0.0)
    for count, model in enumerate(models[1:], start=2):
        mean = mix_parameters(model, mean, pretrained_weight=1 / count, inplace=True)
    return mean


def check_mixing(pretrained: nn.Module, distilled: nn.Module) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the state dicts of the part that two models share. Raises `ValueError` if names or shapes differ."""
    pretrained = unwrapped(pretrained)
    distilled = unwrapped(distilled)
    if type(pretrained) is not type(distilled):
        pretrained = kind_of(pretrained).encoder(pretrained)
        distilled = kind_of(distilled).encoder(distilled)
    old = _state(pretrained)
    new = _state(distilled)
    problems = _missing(old, new, "pretrained") + _missing(new, old, "distilled")
    for name, value in new.items():
        if name in old and old[name].shape != value.shape:
            problems.append(
                f"{name} is {tuple(old[name].shape)} in the pretrained weights, "
                f"{tuple(value.shape)} in the distilled weights"
            )
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems[:12])
        more = f"\n- and {len(problems) - 12} more" if len(problems) > 12 else ""
        raise ValueError(
            f"Only weights of the same model can be mixed, but these differ:\n{listed}{more}\nPass the model from "
            "which the distillation started, with embeddings of the same tokenizer (`MwpProcessor.resize_embeddings`)."
        )
    return old, new


def _missing(weights: dict[str, Tensor], other_weights: dict[str, Tensor], owner: str) -> list[str]:
    """Return a message for each weight that only one model has; poolers may be missing."""
    names = [name for name in weights if name not in other_weights]
    return [f"{name} is only in the {owner} weights" for name in names if not name.startswith("pooler.")]


def _state(model: nn.Module) -> dict[str, Tensor]:
    # Temporary modules, such as the projections of a trainer, are not part of the model.
    ignored = getattr(model, "_keys_to_ignore_on_save", None) or ()
    return {name: value for name, value in model.state_dict().items() if name not in ignored}
