"""Configuration of a math-word-problem solver: an encoder and a decoder."""

import copy
import shutil
from operator import attrgetter
from os import PathLike
from pathlib import Path
from typing import Any

from huggingface_hub.dataclasses import strict
from transformers import AutoConfig, PreTrainedConfig

from hf_mwp.compress.models.mwp_student.remote_code import name_code
from hf_mwp.runtime.solver_folder import check_config
from hf_mwp.utils.usage_error import UsageError


CODE = "use_hf_mwp.py"


class SolverFolderError(Exception):
    """Error for a folder or repository without a complete solver. It does not derive from `ValueError`, `OSError`,
    `TypeError` or `RuntimeError`, because `transformers.pipeline` would catch these and hide the message."""


def save_solver_code(folder: str | PathLike) -> None:
    """Add a code file to a solver's folder, and refer to it in the `config.json`, so that
    `AutoModel.from_pretrained(folder, trust_remote_code=True)` and `pipeline("math-word-problem", ...)` import hf_mwp,
    or ask to install it. `save_pretrained` calls this function; call it for folders of earlier versions."""
    shutil.copyfile(Path(__file__).with_name(CODE), Path(folder) / CODE)
    classes = {"AutoConfig": "use_hf_mwp.MwpSolverConfig", "AutoModel": "use_hf_mwp.MwpSolver"}
    name_code(Path(folder) / "config.json", classes)


@strict
class MwpSolverConfig(PreTrainedConfig):
    r"""
    Configuration of an [`MwpSolver`].

    Args:
        encoder_config (`PreTrainedConfig` or `dict`): Configuration of the encoder, of any type with an `AutoModel`.
        decoder_config (`PreTrainedConfig` or `dict`):
            Configuration of the decoder, by default a [`GTSConfig`]. Its `encoder_hidden_size` must be the encoder's
            `hidden_size`. If its own `hidden_size` differs, the states are projected (Ming et al., Table 1).
        bottleneck_layers (`list[int]`, *optional*, defaults to `[]`):
            Encoder layers, counted from 1, that are followed by a bottleneck network: two linear layers without
            activation, from the encoder's width to `bottleneck_size` and back. A teacher is fine-tuned with bottleneck
            networks, so that a student of width `bottleneck_size` can learn from their states.
        bottleneck_size (`int`, *optional*): Width of the bottleneck networks. Required with `bottleneck_layers`.

    Example:

    ```python
    >>> from hf_mwp import GTSConfig, MwpSolverConfig, MwpStudentConfig

    >>> config = MwpSolverConfig(encoder_config=MwpStudentConfig(), decoder_config=GTSConfig(constants=["1", "3.14"]))
    >>> config.decoder_config.hidden_size
    312
    ```"""

    model_type = "mwp_solver"
    sub_configs = {"encoder_config": AutoConfig, "decoder_config": AutoConfig}

    encoder_config: dict[str, Any] | PreTrainedConfig | None = None
    decoder_config: dict[str, Any] | PreTrainedConfig | None = None
    bottleneck_layers: list[int] | tuple[int, ...] = ()
    bottleneck_size: int | None = None

    def __post_init__(self, **kwargs):
        # `auto_map` describes the folder, not the model, and is written by each save.
        kwargs.pop("auto_map", None)
        self.bottleneck_layers = sorted(self.bottleneck_layers)
        for name, default in (("encoder_config", "mwp_student"), ("decoder_config", "mwp_gts")):
            # Copy, because the parent class resets the attention implementation of configs, which models may use.
            value = copy.deepcopy(getattr(self, name) or {})
            if isinstance(value, dict):
                value = AutoConfig.for_model(value.pop("model_type", default), **value)
            setattr(self, name, value)
        super().__post_init__(**kwargs)

    def validate_parts(self):
        """Check that the decoder and the bottleneck networks fit the encoder. `@strict` calls this method."""
        width = self.encoder_config.hidden_size
        expected = self.decoder_config.encoder_hidden_size
        if width != expected:
            raise ValueError(f"the encoder has hidden_size {width}, but the decoder encoder_hidden_size {expected}")
        layers = self.bottleneck_layers
        size = self.bottleneck_size
        if bool(layers) != (size is not None):
            raise ValueError(f"`bottleneck_layers` ({layers}) and `bottleneck_size` ({size}) must be set together")
        num_layers = self.encoder_config.num_hidden_layers
        if len({*layers} & {*range(1, num_layers + 1)}) != len(layers):
            raise ValueError(f"`bottleneck_layers` must be different layers from 1 to {num_layers}, got {layers}")
        if size is not None and size < 1:
            raise ValueError(f"`bottleneck_size` must be at least 1, got {size}")

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **kwargs):
        """Create the config of a `config.json`. Raises [`SolverFolderError`] if a field is missing or invalid."""
        # The Auto classes pass the name of the folder or repository.
        source = kwargs.get("name_or_path")
        if source is not None:
            try:
                check_config(config_dict, Path(source) / "config.json")
            except UsageError as error:
                raise SolverFolderError(str(error)) from error
        return super().from_dict(config_dict, **kwargs)

    def save_pretrained(self, save_directory: str | PathLike, **kwargs) -> None:
        """Save the config as `PreTrainedConfig` does, with the file of [`save_solver_code`]."""
        super().save_pretrained(save_directory, **kwargs)
        save_solver_code(save_directory)

    @classmethod
    def register_for_auto_class(cls, auto_class: str = "AutoConfig") -> None:
        """Do nothing. Transformers calls this method after loading remote code, to copy more code when saving."""

    def to_diff_dict(self) -> dict[str, Any]:
        """Return the fields to save, without the encoder's source, which may be a local path."""
        fields = super().to_diff_dict()
        for name in self.sub_configs:
            fields[name].pop("_name_or_path", None)
        return fields

    hidden_size = property(attrgetter("encoder_config.hidden_size"))
    num_hidden_layers = property(attrgetter("encoder_config.num_hidden_layers"))

    @property
    def vocab_size(self) -> int:
        return self.encoder_config.vocab_size

    @vocab_size.setter
    def vocab_size(self, size: int) -> None:
        self.encoder_config.vocab_size = size
