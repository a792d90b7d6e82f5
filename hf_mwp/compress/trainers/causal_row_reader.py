"""Reader of the forms of rows of causal language models, as in TRL."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from transformers import PreTrainedTokenizerBase

from .row_packing import IGNORED, positions_of


# The tag by which chat templates mark what the assistant writes.
GENERATION_TAG = re.compile(r"\{%-?\s*generation\s*-?%\}")
# Columns of tokenised rows that are 0 for tokens that are not learnt, as in TRL.
LEARNT_MASKS = ("completion_mask", "assistant_masks")


@dataclass(frozen=True)
class RowReader:
    """Tokenizer of rows of several forms. The arguments are those of [`tokenize_causal_rows`]."""

    tokenizer: PreTrainedTokenizerBase
    completion_only_loss: bool | None
    max_length: int | None
    max_positions: int | None
    packing: bool

    def read(self, row: Mapping[str, Any], index: int) -> dict[str, list[int]]:
        """Return the token ids and labels of a row."""
        from jinja2.exceptions import TemplateError

        try:
            encoded = self._reader_of(row)(row)
            self._limit(encoded)
            # The first token of a document is not predicted.
            if all(label == IGNORED for label in encoded["labels"][1:]):
                raise ValueError(
                    "No token is learnt: all labels are -100, or the row has only one token. Leave the row out, or "
                    "pass a larger `max_length` if the completion was truncated."
                )
        except (ValueError, TemplateError) as error:
            raise ValueError(f"Row {index}: {error}") from error
        return encoded

    def _reader_of(self, row: Mapping[str, Any]) -> Callable[[Mapping[str, Any]], dict[str, list[int]]]:
        """Return the method that reads the form of a row."""
        forms = {
            ("input_ids",): self._read_tokens,
            ("messages",): self._read_messages,
            ("prompt", "completion"): self._read_prompt_and_completion,
            ("text",): self._read_text,
        }
        # Datasets fill the missing fields of a row by `None`.
        fields = [name for name, value in row.items() if value is not None]
        for names, read in forms.items():
            if set(names) <= set(fields):
                return read
        if "prompt" in fields:
            raise ValueError("The row has a `prompt`, but no `completion`. Pass both, or `text`.")
        raise ValueError(
            f"The row has the fields {', '.join(fields) or 'none'}. Pass `messages`, `prompt` and `completion`, "
            "`text`, or `input_ids`."
        )

    def _limit(self, encoded: dict[str, list[int]]) -> None:
        """Truncate a row to `max_length`, and refuse a row with more tokens than positions."""
        num_tokens = len(encoded["input_ids"])
        if self.max_length is not None and num_tokens > self.max_length:
            for name, values in encoded.items():
                encoded[name] = values[: self.max_length]
        elif self.max_positions is not None and num_tokens > self.max_positions:
            raise ValueError(
                f"The row has {num_tokens} tokens, but the model has only {self.max_positions} positions. Pass "
                f"`max_length={self.max_positions}` to truncate such rows."
            )

    def _read_tokens(self, row: Mapping[str, Any]) -> dict[str, list[int]]:
        input_ids = list(row["input_ids"])
        columns = {"input_ids": input_ids, "labels": list(input_ids)}
        if row.get("labels") is not None:
            columns["labels"] = list(row["labels"])
        if row.get("position_ids") is not None:
            columns["position_ids"] = list(row["position_ids"])
        elif row.get("seq_lengths") is not None:
            columns["position_ids"] = positions_of(row["seq_lengths"])
        masks = {}
        for name in ("attention_mask", *LEARNT_MASKS):
            if row.get(name) is not None:
                masks[name] = list(row[name])
        for name, values in (columns | masks).items():
            if len(values) != len(input_ids):
                raise ValueError(f"The row has {len(input_ids)} `input_ids`, but `{name}` has {len(values)} values.")
        if self.packing and "position_ids" in columns:
            raise ValueError("The row has `position_ids` and is already packed. Set `packing=False`.")
        for name in LEARNT_MASKS:
            if name in masks and self.completion_only_loss is not False:
                columns["labels"] = _masked(columns["labels"], masks[name])
        if "attention_mask" in masks:
            # Padding is added again by the collator.
            for name, values in columns.items():
                columns[name] = _selected(values, masks["attention_mask"])
        return columns

    def _read_text(self, row: Mapping[str, Any]) -> dict[str, list[int]]:
        if not isinstance(row["text"], str):
            raise ValueError(f"`text` must be a string, got {row['text']!r}.")
        if self.completion_only_loss:
            raise ValueError("`completion_only_loss=True` needs rows with `prompt` and `completion`, or `messages`.")
        input_ids = self._tokens_of_string(row["text"])
        return {"input_ids": input_ids, "labels": list(input_ids)}

    def _read_prompt_and_completion(self, row: Mapping[str, Any]) -> dict[str, list[int]]:
        prompt = row["prompt"]
        completion = row["completion"]
        if isinstance(prompt, str) and isinstance(completion, str):
            if not completion:
                raise ValueError("`completion` is empty.")
            prompt_ids = self.tokenizer(prompt)["input_ids"]
            return self._after_prompt(prompt_ids, self._tokens_of_string(prompt + completion))
        for name, messages in (("prompt", prompt), ("completion", completion)):
            if isinstance(messages, str) or not _are_messages(messages):
                raise ValueError(
                    f"`prompt` and `completion` must be two strings or two lists of messages, got {messages!r} as "
                    f"`{name}`."
                )
        return self._after_messages(row, list(prompt), [*prompt, *completion], "completion")

    def _read_messages(self, row: Mapping[str, Any]) -> dict[str, list[int]]:
        messages = row["messages"]
        if not _are_messages(messages):
            raise ValueError(f"`messages` must be a list of dictionaries with `role` and `content`, got {messages!r}.")
        if self.completion_only_loss is False:
            input_ids = self._tokens_of_chat(self._render(row, messages))
            return {"input_ids": input_ids, "labels": list(input_ids)}
        if GENERATION_TAG.search(self._template(row)):
            encoded = self.tokenizer.apply_chat_template(
                messages,
                return_dict=True,
                return_assistant_tokens_mask=True,
                **_template_options(row),
            )
            input_ids = list(encoded["input_ids"])
            return {"input_ids": input_ids, "labels": _masked(input_ids, encoded["assistant_masks"])}
        if messages[-1]["role"] != "assistant":
            raise ValueError(
                f"The last of the `messages` is of the role {messages[-1]['role']!r}. The assistant's last message is "
                "learnt, so it must be the last."
            )
        return self._after_messages(row, messages[:-1], messages, "messages")

    def _after_messages(
        self, row: Mapping[str, Any], prompt: list[dict], conversation: list[dict], field: str
    ) -> dict[str, list[int]]:
        """Return a conversation of which the messages after the prompt are learnt."""
        text = self._render(row, conversation)
        prompt_text = ""
        if prompt:
            # The assistant may be asked to continue its own message.
            is_continued = prompt[-1]["role"] == "assistant"
            prompt_text = self._render(
                row, prompt, add_generation_prompt=not is_continued, continue_final_message=is_continued
            )
        if not text.startswith(prompt_text):
            raise ValueError(
                f"With the chat template, the messages before the learnt part of `{field}` are not the beginning of "
                f"the conversation: {prompt_text!r} and {text!r}. Mark the assistant's messages in the template by "
                "`{% generation %}`, or set `completion_only_loss=False`."
            )
        return self._after_prompt(self._tokens_of_chat(prompt_text), self._tokens_of_chat(text))

    def _after_prompt(self, prompt_ids: list[int], input_ids: list[int]) -> dict[str, list[int]]:
        """Return token ids of which those after the prompt are learnt."""
        labels = list(input_ids)
        if self.completion_only_loss is not False:
            # A token with characters of both prompt and completion is learnt.
            start = _common_prefix(prompt_ids, input_ids)
            labels[:start] = [IGNORED] * start
        return {"input_ids": input_ids, "labels": labels}

    def _tokens_of_string(self, text: str) -> list[int]:
        """Return the tokens of a string and of its end."""
        input_ids = list(self.tokenizer(text)["input_ids"])
        end = self.tokenizer.eos_token_id
        if end is not None and input_ids[-1:] != [end]:
            input_ids.append(end)
        return input_ids

    def _tokens_of_chat(self, text: str) -> list[int]:
        """Return the tokens of a text to which the chat template has added the special tokens."""
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _template(self, row: Mapping[str, Any]) -> str:
        if self.tokenizer.chat_template is None:
            raise ValueError(
                "The tokenizer has no chat template for the messages. Set `tokenizer.chat_template`, or pass strings "
                "as `prompt` and `completion`."
            )
        options = _template_options(row)
        return self.tokenizer.get_chat_template(options.get("chat_template"), options.get("tools"))

    def _render(self, row: Mapping[str, Any], messages: list[dict], **options) -> str:
        self._template(row)
        return self.tokenizer.apply_chat_template(messages, tokenize=False, **(_template_options(row) | options))


def _template_options(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `apply_chat_template` that a row has."""
    options = dict(row.get("chat_template_kwargs") or {})
    tools = row.get("tools")
    if isinstance(tools, str):
        tools = json.loads(tools)
    if tools:
        options["tools"] = tools
    return options


def _are_messages(messages: Any) -> bool:
    """Return whether a field of a row is a list of messages, which is not empty."""
    if not isinstance(messages, Sequence) or not messages:
        return False
    for message in messages:
        if not isinstance(message, Mapping) or "role" not in message or "content" not in message:
            return False
    return True


def _masked(labels: list[int], mask: Sequence[int]) -> list[int]:
    """Return labels that are ignored where the mask is 0."""
    return [label if is_learnt else IGNORED for label, is_learnt in zip(labels, mask, strict=True)]


def _selected(values: list[int], mask: Sequence[int]) -> list[int]:
    """Return the values where the mask is not 0."""
    return [value for value, is_selected in zip(values, mask, strict=True) if is_selected]


def _common_prefix(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the number of equal values at the beginning of two lists."""
    length = 0
    for first_value, second_value in zip(first, second, strict=False):
        if first_value != second_value:
            break
        length += 1
    return length
