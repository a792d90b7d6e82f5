"""Processor that converts problems to model inputs and predicted symbols to expressions."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, Self

import torch
from transformers import AddedToken, BatchEncoding, PreTrainedTokenizerBase
from transformers.utils import PushToHubMixin, cached_file, logging

from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.numbers.masked_text import DEFAULT_READING, NUMBER_READINGS
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.runtime.text_reader import (
    TOKENIZER_NAME,
    find_number_positions,
    find_question_positions,
    foreign_tokenizer,
    open_tokenizer,
    read_fields,
)
from hf_mwp.solver.data.schema import problem_from, problems_from
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.usage_error import UsageError

from .padding import pad_rows
from .tokenizer_files import load_tokenizer, tokenizer_digest


logger = logging.get_logger(__name__)
LANGUAGES = {"zh": "Chinese", "en": "English"}
EXTRA_COLUMNS = ("question_positions", "number_values")
ProblemLike = str | MathWordProblem | Mapping[str, Any]
"""A text, a problem, or a row of [`load_mwp_dataset`]."""


class MwpProcessor(PushToHubMixin):
    """`processing_class` of solvers, which masks numbers, tokenizes, encodes equations and decodes predictions.

    The processor is saved in the same folder as the tokenizer and the model.

    Args:
        tokenizer (`PreTrainedTokenizerBase`): A fast tokenizer. The number placeholders are added to its vocabulary.
        vocabulary ([`OutputVocabulary`], *optional*): Symbols of the decoder. Without a vocabulary the processor can
            encode problems, but not labels, and cannot decode predictions.
        language (`str`, *optional*, defaults to `"zh"`): Language of problems that are passed as texts, `"zh"` or
            `"en"`.
        parse_number_words (`bool`, *optional*): Whether number words ("seven", 三) count as numbers. By default they
            do in English, and in Chinese texts without digits.
        number_reading (`str`, *optional*, defaults to `"plain"`): Forms of numbers that are read, see
            [`~problems.find_numbers`]: `"original"`, `"plain"`, or `"people"`, which also reads Chinese numerals
            before units (两个) in texts with digits. Models must be trained with the same reading.
        indexed_numbers (`bool`, *optional*, defaults to `False`): Whether the `i`-th number becomes `[NUMi]` instead
            of `[NUM]`. Papers use the same placeholder for all numbers. With separate placeholders, an encoder with
            random initial weights learns much faster.
        num_index_tokens (`int`, *optional*, defaults to 16): Number of separate placeholders `[NUMi]`. All further
            numbers become `[NUM]`.
        max_length (`int`, *optional*, defaults to 512): Maximum number of tokens of a text. Longer texts are
            truncated, and numbers in the truncated part cannot be used.
        extra_columns (`Sequence[str]`, *optional*): Additional columns of encoded problems that the decoder reads:
            `"question_positions"`, `"number_values"`. See [`~models.decoder.Decoder`].

    Raises:
        ValueError: The tokenizer is not a fast tokenizer, or another argument is invalid.
    """

    file_name = "mwp_processor.json"
    model_input_names = ("input_ids", "attention_mask", "number_positions", "number_groups")

    @checked
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
        number_reading: str = DEFAULT_READING,
    ) -> None:
        if not getattr(tokenizer, "is_fast", False):
            raise ValueError(f"{type(tokenizer).__name__} is not a fast tokenizer. Pass a fast tokenizer.")
        if language not in LANGUAGES or max_length < 1 or num_index_tokens < 0:
            raise ValueError(
                "`language` must be 'zh' or 'en', `max_length` at least 1 and `num_index_tokens` not negative, got "
                f"{language!r}, {max_length}, {num_index_tokens}."
            )
        if number_reading not in NUMBER_READINGS:
            raise ValueError(f"`number_reading` must be one of {', '.join(NUMBER_READINGS)}, got {number_reading!r}.")
        self.tokenizer = tokenizer
        # Numbers are counted from the start of the text, also in the runtime without Transformers.
        self.tokenizer.truncation_side = "right"
        self.number_reading = number_reading
        self.vocabulary = OutputVocabulary() if vocabulary is None else vocabulary
        self.language = language
        self.parse_number_words = parse_number_words
        self.indexed_numbers = indexed_numbers
        self.num_index_tokens = num_index_tokens
        self.max_length = max_length
        self.extra_columns: tuple[str, ...] = ()
        self.add_columns(extra_columns)
        tokens = tokenizer.get_vocab()
        missing = [AddedToken(token, special=True) for token in self.number_tokens if token not in tokens]
        if missing:
            tokenizer.add_tokens(missing, special_tokens=True)

    @classmethod
    def build(
        cls,
        tokenizer: PreTrainedTokenizerBase | str | PathLike,
        problems: Iterable[MathWordProblem],
        min_constant_count: int = 5,
        **kwargs,
    ) -> Self:
        """Build a processor whose vocabulary contains the constants of training problems.

        Args:
            tokenizer (`PreTrainedTokenizerBase` or `str`): A tokenizer, or the Hub id or folder of a tokenizer.
            problems (iterable of [`MathWordProblem`]): Training problems.
            min_constant_count (`int`, *optional*, defaults to 5): Minimum number of problems that contain a constant.
            kwargs: Additional arguments of [`MwpProcessor`].
        """
        if not isinstance(tokenizer, PreTrainedTokenizerBase):
            tokenizer = load_tokenizer(tokenizer)
        return cls(tokenizer, OutputVocabulary.from_problems(problems, min_constant_count), **kwargs)

    def add_columns(self, names: Iterable[str]) -> None:
        """Add columns to the output of `encode`. Raises `ValueError` for an unknown column."""
        unknown = [name for name in names if name not in EXTRA_COLUMNS]
        if unknown:
            raise ValueError(f"`extra_columns` may contain {', '.join(EXTRA_COLUMNS)}, got {unknown}.")
        self.extra_columns = tuple(dict.fromkeys((*self.extra_columns, *names)))

    def limit_length(self, positions: int | None) -> None:
        """Lower `max_length` and the tokenizer's `model_max_length` to an encoder's positions, if they are limited."""
        if positions is None:
            return
        self.max_length = min(self.max_length, positions)
        self.tokenizer.model_max_length = min(self.tokenizer.model_max_length, positions)

    @property
    def number_tokens(self) -> list[str]:
        """Number placeholders: `[NUM]`, and with `indexed_numbers` `[NUM0]`, `[NUM1]`, ..."""
        tokens = ["[NUM]"]
        if self.indexed_numbers:
            tokens += [f"[NUM{index}]" for index in range(self.num_index_tokens)]
        return tokens

    @property
    def number_token_ids(self) -> list[int]:
        """Token ids of the number placeholders."""
        return self.tokenizer.convert_tokens_to_ids(self.number_tokens)

    def problem(self, source: ProblemLike) -> MathWordProblem:
        """Return the problem of a text or row, in the processor's language unless the row states another."""
        return problem_from(source, self.parse_number_words, self.language, self.number_reading)

    def problems(self, sources: Iterable[ProblemLike]) -> list[MathWordProblem]:
        """Return the problem of each source. Raises `TypeError` with the index of a source that has no text."""
        return problems_from(sources, self.parse_number_words, self.language, self.number_reading)

    def encode(
        self, problems: Iterable[ProblemLike], with_labels: bool = False, skipped: list | None = None
    ) -> dict[str, list]:
        """Encode problems without padding.

        Args:
            problems (iterable of `str`, [`MathWordProblem`] or `Mapping`): Texts, problems, or rows of
                [`load_mwp_dataset`].
            with_labels (`bool`, *optional*, defaults to `False`): Whether to encode the equations too.
            skipped (`list`, *optional*): List to which `(id, reason)` is appended for each problem whose equation
                cannot be encoded. The labels of this problem are empty. Without `skipped`, an error is raised.

        Returns:
            `dict[str, list]`: for each problem `input_ids`, `number_positions` (index of the token of each number),
            `number_groups`, `length` (number of tokens), the `extra_columns` and, if `with_labels`, `labels` (symbol
            ids in prefix order). Numbers in the truncated part of a text are left out of the columns with numbers.

        Raises:
            ExpressionError: An equation cannot be parsed, or uses a constant that is not in the vocabulary or a number
                that was truncated.
            ProblemError: A problem has no equation.
        """
        problems = self.problems(problems)
        encoded = self.tokenize(problems)
        columns: dict[str, list] = {"input_ids": encoded["input_ids"]}
        names = ["number_positions", "number_groups", "length"]
        names += [name for name in EXTRA_COLUMNS if name in self.extra_columns]
        if with_labels:
            names.append("labels")
        for name in names:
            columns[name] = []
        for problem, offsets in zip(problems, encoded["offset_mapping"], strict=True):
            positions = find_number_positions(problem, offsets, self.style)
            # The columns with numbers end at the last number that the model reads.
            num_read = len(positions)
            columns["number_positions"].append(positions)
            columns["number_groups"].append(list(problem.number_groups[:num_read]))
            columns["length"].append(len(offsets))
            if "question_positions" in columns:
                columns["question_positions"].append(find_question_positions(problem, offsets, self.style))
            if "number_values" in columns:
                columns["number_values"].append(list(map(str, problem.values[:num_read])))
            if with_labels:
                columns["labels"].append(self._encode_equation(problem, positions, skipped))
        return columns

    @property
    def style(self) -> dict[str, Any]:
        """Arguments of [`~problems.MaskedText.text`], which masks numbers."""
        return {"indexed": self.indexed_numbers, "limit": self.num_index_tokens}

    def tokenize(self, problems: Sequence[MathWordProblem]) -> BatchEncoding:
        """Return `input_ids` and `offset_mapping` of the masked texts, truncated to `max_length` tokens."""
        if not problems:
            # Tokenizers refuse an empty list.
            return BatchEncoding({"input_ids": [], "offset_mapping": []})
        return self.tokenizer(
            [problem.masked.text(**self.style) for problem in problems],
            truncation=True,
            max_length=self.max_length,
            return_offsets_mapping=True,
            return_attention_mask=False,
            return_token_type_ids=False,
        )

    def _encode_equation(self, problem: MathWordProblem, positions: list[int], skipped: list | None) -> list[int]:
        """Return the labels of a problem. With `skipped`, an error is added to it, and the labels are empty."""
        try:
            ids = self.vocabulary.encode(problem.expression)
            for symbol in ids:
                slot = symbol - self.vocabulary.num_symbols
                if slot >= len(positions) or (slot >= 0 and positions[slot] < 0):
                    number = problem.numbers[slot]
                    fault = f"the equation uses number {number!r}, which is beyond max_length={self.max_length} tokens"
                    raise ExpressionError(fault, token=number)
        except ValueError as error:
            if skipped is None:
                raise
            skipped.append((problem.id, str(error)))
            return []
        return ids

    def __call__(self, problems: ProblemLike | Sequence[ProblemLike]) -> BatchEncoding:
        """Return padded tensors for [`MwpSolver.solve`]: `input_ids` and `attention_mask` of shape `(B, S)`,
        `number_positions` and `number_groups` `(B, N)`, and `question_positions` `(B, Q)` if it is an extra column."""
        if isinstance(problems, (str, MathWordProblem, Mapping)):
            problems = [problems]
        return self.pad(self.encode(problems))

    def pad(self, columns: dict[str, list]) -> BatchEncoding:
        """Convert encoded problems to tensors, padded to the longest problem."""
        ids = columns["input_ids"]
        batch = {
            "input_ids": pad_rows(ids, self.tokenizer.pad_token_id or 0),
            "attention_mask": pad_rows([[1] * len(row) for row in ids], 0),
        }
        for name in ("number_positions", "number_groups", "question_positions"):
            if name in columns:
                batch[name] = pad_rows(columns[name], -1)
        return BatchEncoding(batch)

    def decode(self, ids: Iterable[int]) -> Expression:
        """Convert a row of [`SolveOutput.sequences`] to a tree. Raises `ExpressionError` if it is not a valid tree."""
        return self.vocabulary.decode(ids)

    def prepare_dataset(self, dataset, skipped: list | None = None):
        """Add model inputs to the rows of a dataset. The original columns are kept.

        Args:
            dataset (`datasets.Dataset`): Rows of [`load_mwp_dataset`].
            skipped (`list`, *optional*): List to which `(id, reason)` is appended for each row whose equation cannot
                be encoded. Such rows are left out. Without `skipped` they are kept with empty labels.
        """

        def encode(columns: dict[str, list]) -> dict[str, list]:
            rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
            errors = [] if skipped is None else skipped
            return self.encode(rows, with_labels=True, skipped=errors)

        prepared = dataset.map(encode, batched=True, desc="Encoding problems", load_from_cache_file=False)
        if skipped is None:
            return prepared
        return prepared.select([index for index, labels in enumerate(prepared["labels"]) if labels])

    def check_symbols(self, operators: Sequence[str], constants: Sequence[str]) -> None:
        """Raise `ValueError` unless a decoder has the same symbols as this processor, in the same order."""
        decoder_symbols = (list(operators), list(constants))
        symbols = (list(self.vocabulary.operators), list(self.vocabulary.constants))
        if decoder_symbols != symbols:
            raise ValueError(
                f"The decoder has the symbols {decoder_symbols}, but the processor has {symbols}. Load both from "
                "the same folder, or build the decoder from this processor."
            )

    def check_language(self, languages: Iterable[str | None], reader: str, source: str) -> None:
        """Raise [`UsageError`] if the language of the processor is not among the stated languages of the problems
        (`None`: not stated), and warn if only some are in it. `reader` and `source` name the model and the data."""
        counts = Counter(languages)
        del counts[None]
        num_readable = counts.pop(self.language, 0)
        fault = f"{reader} solves problems in {LANGUAGES[self.language]}, but"
        if counts and num_readable:
            logger.warning(f"{fault} {counts.total()} of {source} are in another language and will be misread.")
        elif counts:
            language = min(counts)
            raise UsageError(
                f"{fault} the problems of {source} are in {LANGUAGES.get(language, language)}. Choose a dataset in "
                f"the language of the model, or a model whose processor has `language={language!r}`."
            )

    def check_model(self, model) -> None:
        """Raise `ValueError` unless a solver has the symbols of this processor and an embedding for each token."""
        self.check_symbols(model.vocabulary.operators, model.vocabulary.constants)
        lacking = [name for name in model.extra_columns if name not in self.extra_columns]
        if lacking:
            raise ValueError(
                f"The decoder reads {lacking}, which the processor does not encode. Load both from the same folder, "
                "or call `processor.add_columns(model.extra_columns)`."
            )
        rows = model.get_input_embeddings().num_embeddings
        if len(self.tokenizer) > rows or max(self.tokenizer.get_vocab().values()) >= rows:
            raise ValueError(
                f"The tokenizer has {len(self.tokenizer)} tokens, but the encoder has {rows} embeddings. Load both "
                "from the same folder. For a new model, call `processor.resize_embeddings(model.encoder)`, or build "
                "it with `MwpSolver.from_encoder_decoder_pretrained`."
            )

    @torch.no_grad()
    def resize_embeddings(self, encoder) -> None:
        """Extend the word embeddings of an encoder to the size of the tokenizer. The new embedding of `[NUMi]` is the
        embedding of `[NUM]` plus noise."""
        old_size = encoder.get_input_embeddings().num_embeddings
        if len(self.tokenizer) > old_size:
            encoder.resize_token_embeddings(len(self.tokenizer), mean_resizing=False)
        weight = encoder.get_input_embeddings().weight
        generator = torch.Generator().manual_seed(0)
        base_id, *indexed_ids = self.number_token_ids
        for token_id in indexed_ids:
            if token_id >= old_size:
                noise = torch.randn(weight.shape[1], generator=generator) * weight[base_id].float().std().cpu()
                weight[token_id] = weight[base_id] + noise.to(weight)

    def save_pretrained(self, save_directory: str | PathLike, push_to_hub: bool = False, **kwargs) -> None:
        """Write the tokenizer files and `mwp_processor.json`. `kwargs` are passed to `push_to_hub`."""
        folder = Path(save_directory)
        folder.mkdir(parents=True, exist_ok=True)
        self.tokenizer.save_pretrained(folder)
        fields = {"operators": self.vocabulary.operators, "constants": self.vocabulary.constants, **self.settings}
        fields["tokenizer_digest"] = tokenizer_digest(self.tokenizer)
        if self.extra_columns:
            fields["extra_columns"] = self.extra_columns
        if self.vocabulary.written:
            fields["written_constants"] = self.vocabulary.written
        (folder / self.file_name).write_text(json.dumps(fields, indent=2, ensure_ascii=False) + "\n", "utf-8")
        if push_to_hub:
            self.push_to_hub(kwargs.pop("repo_id", folder.name), **kwargs)

    @property
    def settings(self) -> dict[str, Any]:
        """Arguments that determine how texts are encoded, besides the tokenizer."""
        return {
            "language": self.language,
            "parse_number_words": self.parse_number_words,
            "number_reading": self.number_reading,
            "indexed_numbers": self.indexed_numbers,
            "num_index_tokens": self.num_index_tokens,
            "max_length": self.max_length,
        }

    @classmethod
    def from_pretrained(cls, name_or_path: str | PathLike, **kwargs) -> Self:
        """Load a processor from a folder or the Hub. `kwargs` (`revision`, `token`, ...) are passed to the download.

        Raises:
            OSError: The folder or repository does not exist, or has no `mwp_processor.json`.
            ValueError: `mwp_processor.json` or the tokenizer is damaged, or the tokenizer is not the saved tokenizer.
        """
        path = cached_file(str(name_or_path), cls.file_name, **kwargs)
        fields = read_fields(path)
        digest = fields.pop("tokenizer_digest")
        tokenizer_path = Path(path).parent / TOKENIZER_NAME
        if tokenizer_path.is_file():
            # With the errors of the runtime. The tokenizer of Transformers may have further settings.
            open_tokenizer(tokenizer_path, fields)
        tokenizer = load_tokenizer(name_or_path, **kwargs)
        try:
            symbols = [fields.pop(name, ()) for name in ("operators", "constants", "written_constants")]
            processor = cls(tokenizer, OutputVocabulary(*symbols), **fields)
        except ValueError as error:
            raise ValueError(f"{path}: {error} Save the processor again.") from error
        if digest is not None and digest != tokenizer_digest(processor.tokenizer):
            raise UsageError(foreign_tokenizer(Path(name_or_path) / TOKENIZER_NAME))
        return processor
