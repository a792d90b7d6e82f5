"""Replacements of `save_pretrained` on one model, so that `Trainer` saves it without its pruned heads."""

from collections.abc import Callable
from functools import partial
from typing import Any

from torch import nn

from hf_mwp.compress.models.pruned_form import loadable_config

from .cutting import prune


def save_pruned(model: nn.Module, *args, state_dict: Any = None, replaced: Callable | None = None, **kwargs) -> None:
    """Save a model without its closed heads. `state_dict` is ignored, because it contains all heads."""
    prune(model).save_pretrained(*args, **kwargs)


def save_sliced(model: nn.Module, *args, replaced: Callable | None = None, **kwargs) -> None:
    """Save a model whose heads were removed while it trains, with the names of its weights. The folder can be resumed
    from, and `from_pretrained` loads it. A method of another library (`replaced`) is called, if there was one."""
    with loadable_config(model):
        if replaced is None:
            type(model).save_pretrained(model, *args, **kwargs)
        else:
            replaced(*args, **kwargs)


def replace_saving(model: nn.Module, save: Callable) -> None:
    """Replace `save_pretrained` of one model by [`save_pruned`] or [`save_sliced`]; see [`restore_saving`]."""
    restore_saving(model)
    # On the instance, since `Trainer.save_model` calls this method and the class belongs to Transformers. State dict
    # hooks could slice weights, but not change the saved class and config, and `on_save` is for checkpoints alone. A
    # partial of a function moves with the model through `copy.deepcopy`, pickling and PEFT's wrappers.
    model.save_pretrained = partial(save, model, replaced=vars(model).get("save_pretrained"))


def restore_saving(model: nn.Module) -> None:
    """Undo [`replace_saving`]: the model has the `save_pretrained` of its class again or, if another library had
    replaced it before, that one. A replacement by others is left as it is."""
    current = vars(model).get("save_pretrained")
    if not isinstance(current, partial) or current.func not in (save_pruned, save_sliced):
        return
    del model.save_pretrained
    before = current.keywords.get("replaced")
    if before is not None:
        model.save_pretrained = before
