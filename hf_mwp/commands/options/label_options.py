"""Options of `hf-mwp pseudo-label`."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hf_mwp.commands.building.model_sources import locate_solver
from hf_mwp.solver.data.file_format import FileArguments
from hf_mwp.utils.checks import check_at_least_one, check_share
from hf_mwp.utils.option import given_options, option, options_in
from hf_mwp.utils.usage_error import UsageError

from .locating import locate_source, locate_texts
from .search_options import RankedSearchOptions


# Options of pseudo-labels that do not apply to a task.
_OF_PAIRS = ("source", "target", "source_prefix")
_OF_PROBLEMS = ("exclude", "pseudo_label_fraction", "score_margin", "rerank", "reranker")
_OF_TEXTS = (*_OF_PAIRS, "num_return_sequences", "keep_fraction", "max_decode_length")
_UNUSED = {
    None: _OF_TEXTS,
    "seq2seq": (*_OF_PROBLEMS, "data_dir", *options_in(FileArguments)),
    "math_seq2seq": (*_OF_PROBLEMS, *_OF_PAIRS),
}
# Options of pseudo-labels that do not apply to a language model.
_OF_SEARCH = ("num_beams", "score_margin", "rerank", "reranker")
_OF_MODELS = ("model", "task", "batch_size", "device", "pseudo_label_fraction", *_OF_SEARCH)


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
        given_names = given_options(self)
        if self.endpoint is None:
            if self.model is None:
                raise ValueError("`model` must be given, or `endpoint` and `llm` for labels from a language model.")
            needs_endpoint = [name for name in given_names if name.startswith("llm")]
            if needs_endpoint:
                raise ValueError(f"`{needs_endpoint[0]}` needs `endpoint`, the URL of a language model's server.")
        else:
            if self.llm is None:
                raise ValueError("`endpoint` needs `llm`, the name of the language model on the server.")
            unused = [name for name in given_names if name in _OF_MODELS or name in _OF_TEXTS]
            if unused:
                raise ValueError(f"`{unused[0]}` does not apply to a language model. Remove it, or remove `endpoint`.")
