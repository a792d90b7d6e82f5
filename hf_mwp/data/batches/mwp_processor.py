"""Turns problems into model inputs and decoded symbols into expressions."""

import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import torch
from transformers import AddedToken, BatchEncoding, PreTrainedTokenizerBase
from transformers.utils import PushToHubMixin, cached_file

from ...expressions import Expression, ExpressionError
from ...problems import MathWordProblem
from ...runtime.output_vocabulary import OutputVocabulary
from ...runtime.processor_fields import read_fields
from ...runtime.text_reader import find_number_positions, find_question_positions
from ...usage_error import UsageError
from ..reading.schema import problem_from_row
from .processor_file import load_tokenizer, tokenizer_digest


LANGUAGES = {"zh": "Chinese", "en": "English"}
EXTRA_COLUMNS = ("question_positions", "number_values")
ProblemLike = str | MathWordProblem | Mapping[str, Any]
"""A text, a problem, or a row of [`load_mwp_dataset`]."""


class MwpProcessor(PushToHubMixin):
    """The `processing_class` of solvers: masks numbers, tokenises, encodes equations, decodes predictions.

    It saves beside the tokenizer, so one folder holds both and the model.

    Args:
        tokenizer (`PreTrainedTokenizerBase`): A fast tokenizer; the number placeholders are added to it.
        vocabulary ([`OutputVocabulary`], *optional*): Symbols of the decoder. Without one, problems can be read but
            neither labels encoded nor trees decoded.
        language (`str`, *optional*, defaults to `"zh"`): Language of bare texts: `"zh"` or `"en"`.
        parse_number_words (`bool`, *optional*): Count number words ("seven", 三) as numbers; by default for English.
        indexed_numbers (`bool`, *optional*, defaults to `False`): Whether the `i`-th number becomes `[NUMi]` instead
            of `[NUM]`. The papers mask all alike; with their own placeholders an encoder that starts from random
            weights learns much faster.
        num_index_tokens (`int`, *optional*, defaults to 16): Numbers with a placeholder of their own; later ones
            become `[NUM]`.
        max_length (`int`, *optional*, defaults to 512): Most tokens of a text; the rest is cut off, and its numbers
            cannot be used.
        extra_columns (`Sequence[str]`, *optional*): Further columns of encoded problems that the solver's decoder
            reads: `"question_positions"`, `"number_values"`. See [`~models.decoder.Decoder`].

    Raises:
        ValueError: the tokenizer is not a fast one, or the language, a column or a number is not allowed.
    """

    file_name = "mwp_processor.json"
    model_input_names = ("input_ids", "attention_mask", "number_positions", "number_groups")

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        vocabulary: OutputVocabulary | None = None,
        language: str = "zh",
        parse_number_words: bool | None = None,
        indexed_numbers: bool = False,
        num_index_tokens: int = 16,
        max_length: int = 512,
        extra_columns: Sequence[str] = (),
    ) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ValueError(f"{type(tokenizer).__name__} is not a fast tokenizer, which MwpProcessor needs.")
        if language not in LANGUAGES or max_length < 1 or num_index_tokens < 0:
            raise ValueError(
                "`language` must be 'zh' or 'en', `max_length` at least 1 and `num_index_tokens` not negative, got "
                f"{language!r}, {max_length}, {num_index_tokens}."
            )
        self.tokenizer = tokenizer
        self.vocabulary = OutputVocabulary() if vocabulary is None else vocabulary
        self.language, self.parse_number_words = language, parse_number_words
        self.indexed_numbers, self.num_index_tokens, self.max_length = indexed_numbers, num_index_tokens, max_length
        self.extra_columns: tuple[str, ...] = ()
        self.add_columns(extra_columns)
        missing = [token for token in self.number_tokens if token not in tokenizer.get_vocab()]
        if missing:
            tokenizer.add_tokens([AddedToken(token, special=True) for token in missing], special_tokens=True)

    @classmethod
    def build(
        cls,
        tokenizer: PreTrainedTokenizerBase | str | PathLike,
        problems: Iterable[MathWordProblem],
        min_constant_count: int = 5,
        **kwargs,
    ) -> Self:
        """Build a processor whose vocabulary holds the constants of training problems.

        Args:
            tokenizer (`PreTrainedTokenizerBase` or `str`): A tokenizer, its Hub id, or its folder.
            problems (iterable of [`MathWordProblem`]): Training problems.
            min_constant_count (`int`, *optional*, defaults to 5): Problems in which a constant must occur.
            kwargs: Further arguments of [`MwpProcessor`].
        """
        if not isinstance(tokenizer, PreTrainedTokenizerBase):
            tokenizer = load_tokenizer(tokenizer)
        return cls(tokenizer, OutputVocabulary.from_problems(problems, min_constant_count), **kwargs)

    def add_columns(self, names: Iterable[str]) -> None:
        """Add columns to encoded problems; `ValueError` for an unknown name."""
        unknown = [name for name in names if name not in EXTRA_COLUMNS]
        if unknown:
            raise ValueError(f"`extra_columns` may name {', '.join(EXTRA_COLUMNS)}, got {unknown}.")
        self.extra_columns = tuple(dict.fromkeys((*self.extra_columns, *names)))

    @property
    def number_tokens(self) -> list[str]:
        """Placeholders of numbers: `[NUM]`, then those with an index."""
        indexed = range(self.num_index_tokens) if self.indexed_numbers else ()
        return ["[NUM]", *(f"[NUM{index}]" for index in indexed)]

    @property
    def number_token_ids(self) -> list[int]:
        """Token ids of the placeholders."""
        return self.tokenizer.convert_tokens_to_ids(self.number_tokens)

    def problem(self, source: ProblemLike) -> MathWordProblem:
        """Return the problem of a text in the processor's language, or of a row of [`load_mwp_dataset`]."""
        if isinstance(source, MathWordProblem):
            return source
        if isinstance(source, Mapping):
            return problem_from_row(source, self.parse_number_words)
        return MathWordProblem(text=source, language=self.language, parse_number_words=self.parse_number_words)

    def problems(self, sources: Iterable[ProblemLike]) -> list[MathWordProblem]:
        """Return the problem of each source; `TypeError` with the index of a source without a text."""
        found = []
        try:
            for source in sources:
                found.append(self.problem(source))
        except TypeError as error:
            raise TypeError(f"problems[{len(found)}]: {error}") from error
        return found

    def encode(self, problems: Sequence[ProblemLike], with_labels: bool = False) -> dict[str, list]:
        """Encode problems without padding.

        Args:
            problems (`Sequence[str | MathWordProblem | Mapping]`): Texts, problems, or rows of [`load_mwp_dataset`].
            with_labels (`bool`, *optional*, defaults to `False`): Whether to encode the equations too.

        Returns:
            `dict[str, list]`: for each problem `input_ids`, `number_positions` (token of each number, -1 if it was cut
            off), `number_groups`, `length` (tokens), the `extra_columns` and, with labels, `labels` (prefix ids).

        Raises:
            ExpressionError: an equation cannot be parsed, or uses a constant that the vocabulary lacks or a number
                that was cut off.
            ProblemError: with labels, a problem has no equation.
        """
        problems = self.problems(problems)
        encoded = self.tokenize(problems)
        read = list(zip(problems, encoded["offset_mapping"], strict=True))
        columns: dict[str, list] = {
            "input_ids": encoded["input_ids"],
            "number_positions": [find_number_positions(*each, self.style) for each in read],
            "number_groups": [list(problem.number_groups) for problem in problems],
            "length": [len(ids) for ids in encoded["input_ids"]],
        }
        if "question_positions" in self.extra_columns:
            columns["question_positions"] = [find_question_positions(*each, self.style) for each in read]
        if "number_values" in self.extra_columns:
            columns["number_values"] = [[str(value) for value in problem.values] for problem in problems]
        if with_labels:
            columns["labels"] = list(map(self._encode_equation, problems, columns["number_positions"]))
        return columns

    @property
    def style(self) -> dict[str, Any]:
        """Masking of numbers, as arguments of [`~problems.MaskedText.text`]."""
        return {"indexed": self.indexed_numbers, "limit": self.num_index_tokens}

    def tokenize(self, problems: Sequence[MathWordProblem]) -> BatchEncoding:
        """Return `input_ids` and `offset_mapping` of the masked texts, truncated to `max_length` tokens."""
        return self.tokenizer(
            [problem.masked.text(**self.style) for problem in problems],
            truncation=True,
            max_length=self.max_length,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
        )

    def _encode_equation(self, problem: MathWordProblem, positions: list[int]) -> list[int]:
        ids = self.vocabulary.encode(problem.expression)
        for symbol in ids:
            slot = symbol - self.vocabulary.num_symbols
            if slot >= 0 and positions[slot] < 0:
                number = problem.numbers[slot]
                fault = f"the equation uses number {number!r}, which is beyond max_length={self.max_length} tokens"
                raise ExpressionError(fault, token=number)
        return ids

    def __call__(self, problems: str | MathWordProblem | Sequence[str | MathWordProblem]) -> BatchEncoding:
        """Return padded tensors for [`MwpSolver.solve`]: `input_ids`, `attention_mask` `(B, S)`, `number_positions`,
        `number_groups` `(B, N)` and, if it is an extra column, `question_positions` `(B, Q)`."""
        single = isinstance(problems, (str, MathWordProblem))
        return self.pad(self.encode([problems] if single else problems))

    def pad(self, columns: dict[str, list]) -> BatchEncoding:
        """Return tensors of encoded problems, padded to the longest."""
        ids = pad_rows(columns["input_ids"], self.tokenizer.pad_token_id or 0)
        mask = pad_rows([[1] * len(row) for row in columns["input_ids"]], 0)
        names = ("number_positions", "number_groups", "question_positions")
        padded = {name: pad_rows(columns[name], -1) for name in names if name in columns}
        return BatchEncoding({"input_ids": ids, "attention_mask": mask, **padded})

    def decode(self, ids: Iterable[int]) -> Expression:
        """Return the tree of one row of [`SolveOutput.sequences`]; `ExpressionError` if it is not a tree."""
        return self.vocabulary.decode(ids)

    def encode_rows(self, rows: Iterable[dict[str, Any]], skipped: list | None = None) -> dict[str, list]:
        """Encode rows of [`load_mwp_dataset`] with labels. Labels that cannot be encoded are empty, and `(id, reason)`
        is appended to `skipped`."""
        problems = self.problems(rows)
        columns = self.encode(problems)
        columns["labels"] = []
        for problem, positions in zip(problems, columns["number_positions"], strict=True):
            try:
                columns["labels"].append(self._encode_equation(problem, positions))
            except ValueError as error:
                columns["labels"].append([])
                if skipped is not None:
                    skipped.append((problem.id, str(error)))
        return columns

    def prepare_dataset(self, dataset, skipped: list | None = None):
        """Add model inputs to the rows of a data set; raw columns stay.

        Args:
            dataset (`datasets.Dataset`): Rows of [`load_mwp_dataset`].
            skipped (`list`, *optional*): Receives `(id, reason)` of rows whose equation cannot be encoded, which are
                left out. Without it such rows stay, with empty labels, and count as wrong in an evaluation.
        """

        def encode(columns: dict[str, list]) -> dict[str, list]:
            rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
            return self.encode_rows(rows, skipped)

        prepared = dataset.map(encode, batched=True, desc="Encoding problems", load_from_cache_file=False)
        if skipped is None:
            return prepared
        keep = [index for index, labels in enumerate(prepared["labels"]) if labels]
        return prepared if len(keep) == len(prepared) else prepared.select(keep)

    def check_symbols(self, operators: Sequence[str], constants: Sequence[str]) -> None:
        """Raise `ValueError` unless a decoder has this processor's symbols, in the same order."""
        theirs, ours = (operators, constants), (self.vocabulary.operators, self.vocabulary.constants)
        theirs, ours = (tuple(map(list, symbols)) for symbols in (theirs, ours))
        if theirs != ours:
            raise ValueError(
                f"The decoder's symbols {theirs} are not the processor's {ours}. Load both from the same folder, or "
                "build the decoder from this processor."
            )

    def check_language(self, languages: Iterable[str | None], reader: str, source: str) -> None:
        """Raise [`UsageError`] if no problem is in the processor's language.

        Args:
            languages (`Iterable[str]`): Language of each problem; `None` if it is not stated.
            reader (`str`), source (`str`): Names of the model and of the data set, for the message.
        """
        stated = sorted({*languages} - {None})
        if stated and self.language not in stated:
            raise UsageError(
                f"{reader} solves problems in {LANGUAGES[self.language]}, but those of {source} are in "
                f"{LANGUAGES.get(stated[0], stated[0])}. Choose a data set in the model's language, or a model whose "
                f"processor has `language={stated[0]!r}`."
            )

    def check_model(self, model) -> None:
        """Raise `ValueError` unless a solver has this processor's output symbols and embeds each of its tokens."""
        self.check_symbols(model.vocabulary.operators, model.vocabulary.constants)
        lacking = [name for name in model.extra_columns if name not in self.extra_columns]
        if lacking:
            raise ValueError(
                f"The decoder reads {lacking}, which the processor does not encode. Load both from the same folder, "
                "or call `processor.add_columns(model.extra_columns)`."
            )
        rows = model.get_input_embeddings().num_embeddings
        if len(self.tokenizer) > rows:
            raise ValueError(
                f"The tokenizer has {len(self.tokenizer)} entries, the encoder embeds {rows}. Load both from the same "
                "folder; for a new model call `processor.resize_embeddings(model.encoder)`, or build it with "
                "`MwpSolver.from_encoder_decoder_pretrained`."
            )

    @torch.no_grad()
    def resize_embeddings(self, encoder) -> None:
        """Grow an encoder's word embeddings to the tokenizer. Rows of `[NUMi]` start as that of `[NUM]` with noise."""
        old, new = encoder.get_input_embeddings().num_embeddings, len(self.tokenizer)
        if new > old:
            encoder.resize_token_embeddings(new, mean_resizing=False)
        weight = encoder.get_input_embeddings().weight
        generator = torch.Generator().manual_seed(0)
        base, *indexed = self.number_token_ids
        for index in indexed:
            if index >= old:
                noise = torch.randn(weight.shape[1], generator=generator) * weight[base].float().std().cpu()
                weight[index] = weight[base] + noise.to(weight)

    def save_pretrained(self, save_directory: str | PathLike, push_to_hub: bool = False, **kwargs) -> None:
        """Write the tokenizer's files and `mwp_processor.json`; `kwargs` are those of `push_to_hub`."""
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save_pretrained(folder)
        fields = {"operators": self.vocabulary.operators, "constants": self.vocabulary.constants, **self.settings}
        fields["tokenizer_digest"] = tokenizer_digest(self.tokenizer)
        for name, values in (("extra_columns", self.extra_columns), ("written_constants", self.vocabulary.written)):
            if values:
                fields[name] = list(values)
        (folder / self.file_name).write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", "utf-8")
        if push_to_hub:
            self.push_to_hub(kwargs.pop("repo_id", folder.name), **kwargs)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments by which texts are read, beside the tokenizer."""
        names = ("language", "parse_number_words", "indexed_numbers", "num_index_tokens", "max_length")
        return {name: getattr(self, name) for name in names}

    @classmethod
    def from_pretrained(cls, name_or_path: str | PathLike, **kwargs) -> Self:
        """Read a processor from a folder or the Hub; `kwargs` (`revision`, `token`, ...) go to the download.

        Raises:
            OSError: there is no such folder or repository, or it has no `mwp_processor.json`.
            ValueError: that file or the tokenizer is damaged, or the tokenizer is not the one that was saved.
        """
        path = cached_file(str(name_or_path), cls.file_name, **kwargs)
        fields = read_fields(path)
        digest = fields.pop("tokenizer_digest", None)
        tokenizer = load_tokenizer(name_or_path, **kwargs)
        try:
            symbols = (fields.pop(name, ()) for name in ("operators", "constants", "written_constants"))
            vocabulary = OutputVocabulary(*symbols)
            processor = cls(tokenizer, vocabulary, **fields)
        except ValueError as error:
            raise ValueError(f"{path}: {error} Save the processor again.") from error
        if digest is not None and digest != tokenizer_digest(processor.tokenizer):
            raise ValueError(
                f"{name_or_path}: tokenizer.json is not the tokenizer that {cls.file_name} was saved with. Fetch the "
                "folder again, or save the processor again if the tokenizer was changed on purpose."
            )
        return processor


def tokenizer_settings(tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    """Return a tokenizer's settings as JSON, without the state of its last call."""
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if not hasattr(backend, "to_str"):
        settings = getattr(tokenizer, "init_kwargs", {})
        return {name: str(value) for name, value in settings.items() if name != "name_or_path"}
    return {**json.loads(backend.to_str()), "truncation": None, "padding": None}


def pad_rows(rows: Sequence[Sequence[int]], padding: int) -> torch.Tensor:
    """Return an int64 tensor `(rows, longest)` of rows of different length."""
    longest = max((len(row) for row in rows), default=0)
    padded = [list(row) + [padding] * (longest - len(row)) for row in rows]
    return torch.tensor(padded, dtype=torch.long).view(len(rows), longest)
