"""Mixing of what a model was before distillation into what distillation made of it."""

import copy
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from ..data.training_lineage import inherit_training_texts
from ..models.model_kind import kind_of
from ..options.checks import check_numbers


Weights = nn.Module | Mapping[str, Tensor]


@torch.no_grad()
def mix_parameters(
    pretrained: Weights, distilled: Weights, pretrained_weight: float = 0.2, inplace: bool = False
) -> nn.Module | dict[str, Tensor]:
    """
    Return `pretrained_weight * pretrained + (1 - pretrained_weight) * distilled`, parameter by parameter, in fp32.

    Two models of the same class are mixed whole, others by their base models, such as the encoder of a solver with a
    pretrained encoder. Weights of the distilled model alone (decoder, bottlenecks, heads), poolers that one of them
    lacks, and integers stay as they are.

    Args:
        pretrained (`nn.Module` or `Mapping[str, Tensor]`): The model before distillation, or its state dict.
        distilled (`nn.Module` or `Mapping[str, Tensor]`): The same model afterwards.
        pretrained_weight (`float`, *optional*, defaults to 0.2): Share of the pretrained weights, from 0 to 1.
        inplace (`bool`, *optional*, defaults to `False`): Change `distilled` instead of a copy.

    Returns:
        `nn.Module` or `dict[str, Tensor]`: the distilled model or a copy of it, in its dtypes; a state dict if it is
        one.

    Raises:
        ValueError: weights of other names or shapes, which are listed, or `pretrained_weight` beyond 0 to 1.

    References:
        A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025), parameter mixing with
        `pretrained_weight = 0.2`.

    Example:
        >>> student = mix_parameters(MwpStudentForPreTraining.from_pretrained("pretrained"), distilled_solver)
    """
    check_numbers(pretrained_weight=pretrained_weight)
    if not 0 <= pretrained_weight <= 1:
        raise ValueError(f"`pretrained_weight` must be from 0 to 1, got {pretrained_weight}.")
    if not inplace:
        distilled = copy.deepcopy(distilled) if isinstance(distilled, nn.Module) else dict(distilled)
    old, new = check_mixing(pretrained, distilled)
    done: set[int] = set()
    for name, value in new.items():
        if not (name in old and value.is_floating_point()):
            continue
        before = old[name].to(value.device, torch.float32)
        # `lerp` is exact at both ends.
        mixed = torch.lerp(value.float(), before, pretrained_weight).to(value.dtype)
        if inplace or isinstance(distilled, nn.Module):
            # What is tied has several names, and is mixed once.
            if value.data_ptr() not in done:
                value.copy_(mixed)
            done.add(value.data_ptr())
        else:
            distilled[name] = mixed
    if isinstance(pretrained, nn.Module) and isinstance(distilled, nn.Module):
        inherit_training_texts(distilled, pretrained)
    return distilled


def average_parameters(models: Sequence[Weights]) -> nn.Module | dict[str, Tensor]:
    """
    Return the mean of models that began alike and were trained apart (other seeds or options): no slower than one of
    them, and often better than each.

    Args:
        models (`Sequence`): Models of one class, or their state dicts.

    Returns:
        `nn.Module` or `dict[str, Tensor]`: a copy of the first with the mean weights; see [`mix_parameters`].

    Raises:
        ValueError: there is none, or weights have other names or shapes.

    References:
        Model soups: averaging weights of multiple fine-tuned models improves accuracy without increasing inference
        time (Wortsman et al., ICML 2022), the uniform soup.

    Example:
        >>> student = average_parameters([load_solver(f"runs/student_{seed}")[0] for seed in (42, 43, 44)])
    """
    if not models:
        raise ValueError("There are no models to average.")
    mean = mix_parameters(models[0], models[0], pretrained_weight=0.0)
    for count, model in enumerate(models[1:], start=2):
        mean = mix_parameters(model, mean, pretrained_weight=1 / count, inplace=True)
    return mean


def check_mixing(pretrained: Weights, distilled: Weights) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the state dicts of what two models have in common; `ValueError` if their names or shapes differ."""
    if isinstance(pretrained, nn.Module) and isinstance(distilled, nn.Module):
        if type(pretrained) is not type(distilled):
            pretrained, distilled = (kind_of(each).encoder(each) for each in (pretrained, distilled))
    old, new = _state(pretrained), _state(distilled)

    def missing(one: dict[str, Tensor], other: dict[str, Tensor]) -> list[str]:
        # A second name of something tied may be left out, as it is in files.
        common = {value.data_ptr() for name, value in one.items() if name in other}
        names = [name for name in one if name not in other and not name.startswith("pooler.")]
        return [name for name in names if one[name].data_ptr() not in common or not one[name].numel()]

    problems = [f"{name} is only in the pretrained weights" for name in missing(old, new)]
    problems += [f"{name} is only in the distilled weights" for name in missing(new, old)]
    problems += [
        f"{name} is {tuple(old[name].shape)} in the pretrained weights, {tuple(value.shape)} in the distilled ones"
        for name, value in new.items()
        if name in old and old[name].shape != value.shape
    ]
    if problems:
        listed = "\n".join(f"- {problem}" for problem in problems[:12])
        more = f"\n- and {len(problems) - 12} more" if len(problems) > 12 else ""
        raise ValueError(
            f"Only weights of the same model can be mixed, these differ:\n{listed}{more}\nGive the model from which "
            "the distillation began. If embeddings differ in rows, resize those of the pretrained one to the same "
            "tokenizer first (`MwpProcessor.resize_embeddings`)."
        )
    if not any(name in old for name in new):
        raise ValueError("There are no weights to mix.")
    return old, new


def _state(weights: Weights) -> dict[str, Tensor]:
    if not isinstance(weights, nn.Module):
        return dict(weights)
    # Modules that stand in a model for a while, such as the projections of a trainer, are not part of it.
    ignored = set(getattr(weights, "_keys_to_ignore_on_save", None) or ())
    return {name: value for name, value in weights.state_dict().items() if name not in ignored}
