"""Prompts with which a language model is asked for equations. `--llm_prompt FILE` replaces them."""

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import yaml

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.utils.usage_error import UsageError


_FIELDS = ("instruction", "question", "examples")


@dataclass(frozen=True)
class LabelPrompt:
    """
    Few-shot prompt for the problems of one language.

    Attributes:
        instruction (`str`): Task, written before the first example.
        question (`str`): Template of a question; `{text}` is replaced by the text of a problem, and `{numbers}` by the
            numbers in the text.
        examples (`tuple[tuple[str, str], ...]`): Text and reply of each example.
    """

    instruction: str
    question: str
    examples: tuple[tuple[str, str], ...] = ()

    def messages(self, problem: MathWordProblem) -> list[dict[str, str]]:
        """Return the messages of a chat: the instruction, each example as a question and its reply, and the question
        of the problem. Some models do not support system messages, so the instruction begins the first question."""
        messages = []
        for text, reply in self.examples:
            example = MathWordProblem(text, language=problem.language)
            messages.append({"role": "user", "content": self._question_of(example)})
            messages.append({"role": "assistant", "content": reply})
        messages.append({"role": "user", "content": self._question_of(problem)})
        first = messages[0]
        first["content"] = f"{self.instruction.strip()}\n\n{first['content']}"
        return messages

    def _question_of(self, problem: MathWordProblem) -> str:
        # A text may contain braces, so `str.format` cannot be used.
        question = self.question.replace("{numbers}", ", ".join(problem.numbers))
        return question.replace("{text}", problem.text).strip()


PROMPTS = {
    "zh": LabelPrompt(
        "把每道应用题写成一个算式。算式里只用题目中的数（照题目的写法）和必要的常数，"
        "用 + - * / ^ 和括号，不写单位，不写得数，不作解释。",
        "题目：{text}\n算式：",
        (
            ("小明有4个苹果和2个梨，一共有多少个水果？", "4+2"),
            ("一本书有120页，小红每天看15页，看了6天，还剩多少页没有看？", "120-15*6"),
            ("一件上衣原价250元，现在降价20%出售，现价多少元？", "250*(1-20%)"),
            ("一根绳子长30米，第一次用去它的(1/5)，第二次用去(1/3)，还剩多少米？", "30*(1-(1/5)-(1/3))"),
            ("甲、乙两地相距360千米，一辆汽车3小时行了180千米，照这样计算，行完全程要几小时？", "360/(180/3)"),
            ("一个圆形花坛的半径是5米，它的面积是多少平方米？", "3.14*5^2"),
        ),
    ),
    "en": LabelPrompt(
        "Write each math word problem as one equation. Use only the numbers of the text, as the text writes them, and "
        "constants that are necessary. Use + - * / ^ and brackets. Write no units, no result and no explanation.",
        "Problem: {text}\nEquation:",
        (
            ("Tom has 4 apples and 2 pears. How many pieces of fruit does he have?", "4+2"),
            ("A book has 120 pages. Ann reads 15 pages a day for 6 days. How many pages are left?", "120-15*6"),
            ("A coat costs $250. The price is reduced by 20%. What is the new price?", "250*(1-20%)"),
            ("A rope is 30 meters long. Ben cuts off 1/5 of it. How many meters are left?", "30*(1-1/5)"),
            ("Three trucks carry 18 tons. How many tons do 5 such trucks carry?", "18/3*5"),
            ("Eggs are sold by the dozen. Mia buys 7 dozen and breaks 9 eggs. How many are left?", "7*12-9"),
        ),
    ),
}


def load_prompts(path: str | PathLike | None = None) -> dict[str, LabelPrompt]:
    """
    Return the prompt of each language. A YAML file replaces the prompts of the languages in it:

    ```yaml
    en:
      instruction: Write each problem as one equation.
      question: "Problem: {text}\\nEquation:"
      examples:
        - text: Tom has 4 apples and 2 pears. How many pieces of fruit does he have?
          reply: 4+2
    ```

    Raises `UsageError` with the file and the field if it cannot be read.
    """
    if path is None:
        return dict(PROMPTS)
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise UsageError(f"--llm_prompt: {path} cannot be read: {error}") from error
    if not isinstance(content, Mapping) or not content:
        raise UsageError(f"--llm_prompt: {path} must contain a mapping from languages to prompts.")
    prompts = dict(PROMPTS)
    for language, fields in content.items():
        if language not in PROMPTS:
            languages = " or ".join(PROMPTS)
            raise UsageError(f"--llm_prompt: {path} has the language {language!r}; expected {languages}.")
        prompts[language] = _read_prompt(f"--llm_prompt: {path}, {language}", fields)
    return prompts


def _read_prompt(place: str, fields: Any) -> LabelPrompt:
    if not isinstance(fields, Mapping) or not {"instruction", "question"} <= set(fields) <= set(_FIELDS):
        raise UsageError(f"{place}: expected the fields instruction, question and, optionally, examples.")
    for name in ("instruction", "question"):
        if not isinstance(fields[name], str):
            raise UsageError(f"{place}, {name}: expected a text, got {fields[name]!r}.")
    if "{text}" not in fields["question"]:
        raise UsageError(f"{place}, question: {{text}} is missing, which is replaced by the text of the problem.")
    examples = []
    rows = fields.get("examples") or []
    if not isinstance(rows, list):
        rows = [rows]
    for index, example in enumerate(rows):
        if not isinstance(example, Mapping) or set(example) != {"text", "reply"}:
            raise UsageError(f"{place}, examples[{index}]: expected the fields text and reply, got {example!r:.80}.")
        # YAML reads a reply such as 12 as a number.
        examples.append((str(example["text"]), str(example["reply"])))
    return LabelPrompt(fields["instruction"], fields["question"], tuple(examples))
