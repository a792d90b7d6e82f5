"""Options of the commands that run a solver."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hf_mwp.commands.building.model_sources import locate_solver
from hf_mwp.solver.data.file_format import FileArguments
from hf_mwp.utils.checks import check_at_least_one, check_options, check_share
from hf_mwp.utils.option import given_options, option, options_in
from hf_mwp.utils.usage_error import UsageError

from .locating import locate_source, locate_texts


if TYPE_CHECKING:
    from hf_mwp.runtime.plausibility import PlausibilityReranker
    from hf_mwp.solver.batches.mwp_processor import MwpProcessor


@dataclass
class SearchOptions:
    """Options for the solver, its search, the batch size and the device."""

    model: str | None = option(None, "Solver: folder or Hub id.", required=True, common=True, locate=locate_solver)
    num_beams: int | None = option(
        None,
        "Number of beams; 1 is greedy search, the papers use 5. If neither num_beams nor re-ranking is set, "
        "generation_config.json in the model folder sets both.",
    )
    batch_size: int = option(64, "Number of problems per batch.", affects_result=False)
    device: str | None = option(None, "Device, such as cuda:0; default: a CUDA GPU, if any.", affects_result=False)

    def __post_init__(self):
        check_options(self)
        check_at_least_one(self, "num_beams", "batch_size")


@dataclass
class RankedSearchOptions(SearchOptions):
    """[`SearchOptions`] and options for re-ranking."""

    rerank: bool | None = option(
        None, "Select the most plausible answer in the beam with the model folder's re-ranker (plausibility.json)."
    )
    reranker: str | None = option(
        None, "Folder or Hub id of a different re-ranker (created by `hf-mwp rerank`), or en or zh of this package."
    )

    @property
    def rerank_with(self) -> bool | str | None:
        """Value of both options as the `rerank` of a solver."""
        return self.rerank if self.reranker is None else self.reranker

    def load_reranker(self, processor: MwpProcessor) -> tuple[PlausibilityReranker | None, int]:
        """Return the re-ranker and the number of beams, see [`~runtime.default_search.FolderSearch.search`]."""
        from hf_mwp.runtime.default_search import FolderSearch

        return FolderSearch(self.model, processor.language).search(self.num_beams, self.rerank_with)


# Options of pseudo-labels that do not apply to a task.
_OF_PAIRS = ("source", "target", "source_prefix")
_OF_PROBLEMS = ("exclude", "pseudo_label_fraction", "rerank", "reranker")
_OF_TEXTS = (*_OF_PAIRS, "num_return_sequences", "keep_fraction", "max_decode_length")
_UNUSED = {
    None: _OF_TEXTS,
    "seq2seq": (*_OF_PROBLEMS, "data_dir", *options_in(FileArguments)),
    "math_seq2seq": (*_OF_PROBLEMS, *_OF_PAIRS),
}
# Options of pseudo-labels that do not apply to a language model.
_OF_MODELS = ("model", "task", "num_beams", "batch_size", "device", "pseudo_label_fraction", "rerank", "reranker")


def _locate_file(path: str, options: Mapping[str, Any]) -> Path:
    """Return the path of a file. Raises `UsageError` if it does not exist."""
    if not Path(path).is_file():
        raise UsageError(f"there is no file {path}")
    return Path(path)


@dataclass
class LabelArguments(RankedSearchOptions, FileArguments):
    """Options of `hf-mwp pseudo-label`."""

    model: str | None = option(None, "Solver: folder or Hub id. Not with endpoint.", common=True, locate=locate_solver)
    problems: list[str] = option(
        [],
        "Problems with `text` and `answer`: files, datasets or their splits; with task, only one.",
        required=True,
        common=True,
        locate=locate_source,
    )
    output_dir: str | None = option(None, "Folder for labelled.jsonl and the counts.", required=True)
    data_dir: str | None = option(None, "Folder of the datasets.")
    exclude: list[str] | None = option(
        None, "Datasets or files whose texts must not be labelled, even with different numbers.", locate=locate_texts
    )
    num_beams: int = option(5, "Number of beams, and of trees to try for each problem.")
    pseudo_label_fraction: float = option(
        0.0, "Share of the problems without an answer to label with the most confident predictions (see --rerank)."
    )
    task: str | None = option(
        None,
        "seq2seq or math_seq2seq: generate target texts, or equations of problems, with a sequence-to-sequence model. "
        "output_dir then contains a dataset for training: train.jsonl and the other splits.",
        common=True,
        choices=("seq2seq", "math_seq2seq"),
    )
    source: str | None = option(None, "For seq2seq: field or language of the source texts.")
    target: str | None = option(None, "For seq2seq: field or language of the generated target texts.")
    source_prefix: str = option("", "For seq2seq: prefix of each source text, such as 'summarize: ' for T5.")
    num_return_sequences: int = option(1, "With task: number of texts to generate from each source text.")
    keep_fraction: float = option(
        1.0, "With task: share of the source texts to keep, by the probability per token of their best text."
    )
    max_decode_length: int | None = option(
        None, "With task: maximum number of tokens of a text. Defaults to the generation config of the model."
    )
    max_train_samples: int | None = option(None, "Maximum number of texts to label, for a quick test.")
    endpoint: str | None = option(
        None,
        "URL of a server with OpenAI's chat protocol (vLLM, llama.cpp, TGI, https://router.huggingface.co/v1), whose "
        "language model labels the problems instead of a solver.",
        common=True,
    )
    llm: str | None = option(None, "With endpoint: name of the language model on the server.", common=True)
    llm_samples: int = option(
        1,
        "With endpoint: maximum number of replies to a problem. Replies are requested until one evaluates to the "
        "answer; with several, problems without an answer are labelled, too.",
    )
    llm_agreement: float = option(
        0.6,
        "With endpoint: minimum share of the replies to a problem without an answer that must have the same value.",
    )
    llm_temperature: float = option(0.7, "With endpoint: temperature of the replies after the first.")
    llm_max_tokens: int = option(256, "With endpoint: maximum number of tokens of a reply. Cut replies are not used.")
    llm_prompt: str | None = option(
        None,
        "With endpoint: YAML file with the instruction, the question and the examples for a language.",
        locate=_locate_file,
    )
    llm_workers: int = option(4, "With endpoint: number of simultaneous requests.", affects_result=False)
    llm_timeout: float = option(120.0, "With endpoint: maximum seconds to wait for a reply.", affects_result=False)
    llm_retries: int = option(5, "With endpoint: maximum number of repetitions of a request.", affects_result=False)
    llm_api_key: str | None = option(
        None,
        "With endpoint: key of the server; written to no file. Default: the environment variable LLM_API_KEY, or "
        "HF_TOKEN for servers of Hugging Face.",
        affects_result=False,
    )
    overwrite: bool = option(False, "Replace existing labels in output_dir.", affects_result=False)

    def __post_init__(self):
        super().__post_init__()
        FileArguments.__post_init__(self)
        check_share(self, "pseudo_label_fraction")
        check_at_least_one(self, "num_return_sequences", "max_decode_length", "max_train_samples")
        self._check_labeller()
        unused = [name for name in given_options(self) if name in _UNUSED[self.task]]
        if unused:
            raise ValueError(f"`{unused[0]}` does not apply to the task {self.task or 'none'}. Remove it.")
        if (self.rerank or self.reranker is not None) and not self.pseudo_label_fraction:
            raise ValueError("`rerank` needs `pseudo_label_fraction`, which labels problems without an answer.")
        if self.task == "seq2seq" and None in (self.source, self.target):
            raise ValueError("The task seq2seq needs a `source`, a `target` and a file, folder or dataset.")
        if self.task is not None and len(self.problems) > 1:
            raise ValueError(f"The task {self.task} needs a single file, folder or dataset in `problems`.")
        if self.num_return_sequences > self.num_beams:
            raise ValueError(f"`num_return_sequences` must be at most `num_beams` ({self.num_beams}).")
        if not 0 < self.keep_fraction <= 1:
            raise ValueError(f"`keep_fraction` must be above 0 and at most 1, not {self.keep_fraction}.")

    def _check_labeller(self) -> None:
        """Raise `ValueError` unless the options are those of a model, or those of a language model."""
        given = given_options(self)
        if self.endpoint is None:
            if self.model is None:
                raise ValueError("`model` must be given, or `endpoint` and `llm` for labels from a language model.")
            of_language_model = [name for name in given if name.startswith("llm")]
            if of_language_model:
                raise ValueError(f"`{of_language_model[0]}` needs `endpoint`, the URL of a language model's server.")
        else:
            if self.llm is None:
                raise ValueError("`endpoint` needs `llm`, the name of the language model on the server.")
            unused = [name for name in given if name in (*_OF_MODELS, *_OF_TEXTS)]
            if unused:
                raise ValueError(f"`{unused[0]}` does not apply to a language model. Remove it, or remove `endpoint`.")


@dataclass
class RerankArguments(SearchOptions):
    """Options of `hf-mwp rerank`, except the data options."""

    output_dir: str | None = option(None, "Folder for plausibility.json. Defaults to the model folder.")
    split: str = option("train", "Dataset split for fitting.", choices=["train", "validation"])
    num_samples: int = option(4000, "Number of random problems for fitting; --max_train_samples sets it as well.")
    num_beams: int = option(20, "Number of beams.")
    min_beams: int | None = option(None, "Minimum beams for re-ranking later, also measured. Defaults to num_beams.")
    regularization: float = option(1.0, "Weight of the squared distance from the ranking by probability.")
    mc_dropout_fraction: float = option(
        0.0, "Share of the problems to solve with dropout, because a solver is overconfident on its training problems."
    )
    seed: int = option(0, "Seed for the choice of problems.")
    overwrite: bool = option(False, "Replace an existing plausibility.json.", affects_result=False)

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, "num_samples")


@dataclass
class EvaluateArguments(RankedSearchOptions):
    """Options of `hf-mwp evaluate`, except the data options."""

    split: str = option("test", "Dataset split to solve.", choices=["test", "validation", "train"])
    max_decode_length: int | None = option(None, "Maximum number of symbols of an equation; default: the decoder's.")
    answer_match: str = option(
        "annotated",
        "Target value: the annotated answer (integers must be equal, other values within a relative 1e-4), "
        "or the value of the target equation (absolute tolerance).",
        choices=["annotated", "equation_value"],
    )
    output_dir: str | None = option(
        None,
        "Folder (predictions.jsonl, metrics.json); default: runs/evaluate_<model>_<dataset>[_fold<fold>]_<split>.",
    )
    random_sparsity: float = option(
        0.0, "Share of the weights in the encoder layers to set to 0 at random first (pilot study of STARK)."
    )
    seed: int = option(0, "Seed for the choice of the weights set to 0.")
    half_precision: bool = option(False, "Round the weights to half precision first, as `hf-mwp card` does.")
    json: bool = option(False, "Print the metrics as a JSON object instead of tables.", affects_result=False)

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, "max_decode_length")
        check_share(self, "random_sparsity")


def find_device(name: str | None) -> str:
    """Return `name` or, if not given, a CUDA GPU or the CPU. Raises `UsageError` if the device does not exist."""
    import torch

    found = ["cpu"]
    if torch.accelerator.is_available():
        kind = torch.accelerator.current_accelerator().type
        found += [f"{kind}:{number}" for number in range(torch.accelerator.device_count())]
    kinds = {each.partition(":")[0] for each in found}
    # `cpu:0` is the CPU.
    if name and name not in found and name.removesuffix(":0") not in kinds:
        raise UsageError(f"--device: this machine has no device {name!r}. Choose one of: {', '.join(found)}.")
    if name is None and len(found) > 1 and "LOCAL_RANK" in os.environ:
        # Assign a different device to each process of the machine.
        return found[1:][int(os.environ["LOCAL_RANK"]) % (len(found) - 1)]
    return name or ("cuda" if torch.cuda.is_available() else "cpu")
