"""Weights that a checkpoint stores in files of their own, or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from accelerate.utils import extract_model_from_parallel
from torch import nn
from transformers import TrainerCallback

from hf_mwp.compress.models.lora import has_lora, load_adapters


class LoadBestAdapters(TrainerCallback):
    """Callback that loads the LoRA adapters of the best checkpoint, after `Trainer` has loaded the other weights."""

    def on_train_end(self, args, state, control, model=None, **kwargs):
        """Load the adapters, if any, into the model."""
        if args.load_best_model_at_end and state.best_model_checkpoint is not None:
            load_adapters(extract_model_from_parallel(model), state.best_model_checkpoint)


@contextmanager
def ignoring_unsaved_weights(model: nn.Module) -> Iterator[None]:
    """Inside the context, weights that checkpoints do not contain do not count as missing when a model is loaded."""
    hook = model.register_load_state_dict_post_hook(_remove_unsaved_names)
    try:
        yield
    finally:
        hook.remove()


def _remove_unsaved_names(model: nn.Module, load_result: Any) -> None:
    # Adapters are saved in a separate file, and loaded and checked afterwards.
    if has_lora(model):
        load_result.missing_keys.clear()
        load_result.unexpected_keys.clear()
        return
    # A tied weight is saved under one of its names, and ignored weights are not saved: neither is missing.
    not_saved = {*(getattr(model, "all_tied_weights_keys", None) or ())}
    not_saved |= {*(getattr(model, "_keys_to_ignore_on_save", None) or ())}
    load_result.missing_keys[:] = [name for name in load_result.missing_keys if name not in not_saved]
