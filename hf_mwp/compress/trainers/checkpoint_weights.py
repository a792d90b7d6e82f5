"""Weights that a checkpoint stores in files of their own, or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from accelerate.utils import extract_model_from_parallel
from safetensors import safe_open
from torch import nn
from transformers import PreTrainedModel, TrainerCallback
from transformers.utils import SAFE_WEIGHTS_INDEX_NAME, SAFE_WEIGHTS_NAME

from hf_mwp.compress.models.lora import has_lora, load_adapters
from hf_mwp.utils.files import read_json
from hf_mwp.utils.main_process import shards_weights


class LoadBestWeights(TrainerCallback):
    """Callback that loads those weights of the best checkpoint that `Trainer` has not loaded."""

    def on_train_end(self, args, state, control, model=None, **kwargs):
        """Load the adapters, if any, and the renamed weights into the model."""
        if args.load_best_model_at_end and state.best_model_checkpoint is not None:
            load_adapters(extract_model_from_parallel(model), state.best_model_checkpoint)
            if not shards_weights(args):
                load_renamed_weights(model, state.best_model_checkpoint)


def load_renamed_weights(model: nn.Module, folder: str | Path) -> None:
    """Load the weights of a checkpoint that a Transformers model saves under other names than its own, such as the
    head of GPT-NeoX. `Trainer` leaves them at their initial values."""
    model = extract_model_from_parallel(model, keep_torch_compile=False)
    if not isinstance(model, PreTrainedModel) or has_lora(model):
        return
    path = Path(folder) / SAFE_WEIGHTS_NAME
    index = Path(folder) / SAFE_WEIGHTS_INDEX_NAME
    if index.exists():
        saved_names = set(read_json(index)["weight_map"])
    elif path.exists():
        with safe_open(path, "pt") as file:
            saved_names = set(file.keys())
    else:
        return
    if set(model.state_dict()) - saved_names - _unsaved_names(model):
        loaded = type(model).from_pretrained(folder, dtype=model.dtype)
        model.load_state_dict(loaded.state_dict())


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
    not_saved = _unsaved_names(model)
    load_result.missing_keys[:] = [name for name in load_result.missing_keys if name not in not_saved]
    if len(load_result.missing_keys) == len(load_result.unexpected_keys):
        # Weights with other names in the file are loaded afterwards.
        load_result.missing_keys.clear()
        load_result.unexpected_keys.clear()


def _unsaved_names(model: nn.Module) -> set[str]:
    """Return the names of weights that are in no file: all but one name of tied weights, and ignored weights."""
    names = {*(getattr(model, "all_tied_weights_keys", None) or ())}
    return names | {*(getattr(model, "_keys_to_ignore_on_save", None) or ())}
