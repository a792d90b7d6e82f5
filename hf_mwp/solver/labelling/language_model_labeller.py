"""The labeller that asks a language model on a server."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from fractions import Fraction
from pathlib import Path
from typing import Any

from transformers.utils import logging

from hf_mwp.runtime.expressions import Expression
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.data.schema import problems_from
from hf_mwp.solver.data.training_texts import TrainingTexts, short_name
from hf_mwp.solver.metrics import score_prediction
from hf_mwp.solver.solving.kept_records import ProgressBar, kept_records
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_at_least_one, check_not_negative, check_positive
from hf_mwp.utils.usage_error import UsageError

from .chat_client import ChatClient, ReplyError
from .label_prompt import load_prompts
from .labeller import Candidate, Labeller, Proposal
from .replies import read_reply


logger = logging.get_logger(__name__)

API_KEY = "LLM_API_KEY"  # environment variable with the key of the server
AT_ONCE = 32  # problems after which the replies are written to disk
FAULTS = {
    "unreadable": "no reply is an equation over numbers of the text and common constants",
    "failed": "the server returned no usable reply",
}


@checked
class LanguageModelLabeller(Labeller):
    """
    Labeller that asks a language model for an equation over the numbers of a text, with `InferenceClient` of
    `huggingface_hub` and any server with OpenAI's chat protocol: vLLM, llama.cpp, TGI, the providers on the Hub.

    Replies to a problem with an answer are requested until one evaluates to the answer, at most `samples`. A problem
    without an answer is labelled if at least a share `agreement` of `samples` replies has the same value; with one
    sample, such problems are not labelled. The first reply is the most probable one (temperature 0), the others are
    drawn with `temperature`. Replies are parsed and never executed ([`~labelling.replies.read_reply`]).

    Args:
        endpoint (`str`): URL of the server, such as `http://127.0.0.1:8080/v1`.
        llm (`str`): Name of the model on the server.
        samples (`int`, *optional*, defaults to 1): Maximum number of replies to a problem.
        agreement (`float`, *optional*, defaults to 0.6): Minimum share of the replies that must agree.
        temperature (`float`, *optional*, defaults to 0.7): Temperature of the replies after the first.
        max_tokens (`int`, *optional*, defaults to 256): Maximum number of tokens of a reply. Cut replies are not used.
        workers (`int`, *optional*, defaults to 4): Number of simultaneous requests.
        timeout (`float`, *optional*, defaults to 120.0): Maximum seconds to wait for a reply.
        retries (`int`, *optional*, defaults to 5): Maximum number of repetitions of a request after a timeout, a
            broken connection, an invalid reply, or a status such as 429 or 503. The delay between them doubles.
        api_key (`str`, *optional*): Key of the server. Defaults to the environment variable `LLM_API_KEY` and, only
            for servers of Hugging Face, to the Hub token (`HF_TOKEN`). It is not written to a file.
        prompt (`str`, *optional*): YAML file with prompts, see [`~labelling.label_prompt.load_prompts`].

    Attributes:
        usage (`dict[str, int]`): `requests`, `prompt_tokens` and `completion_tokens` as stated by the server, and
            `not_counted`, the number of replies for which it states no tokens.

    Raises:
        UsageError: If the URL or the file of prompts cannot be used. [`label_problems`] raises it if the server cannot
            be reached, denies access, or does not have the model.
        ValueError: If a number is out of range.

    Example:

    ```python
    >>> labeller = hf_mwp.LanguageModelLabeller("http://127.0.0.1:8080/v1", "qwen2.5-coder", samples=5)
    >>> labelled = hf_mwp.label_problems(labeller, problems=rows, exclude=["math23k:test"])
    >>> labelled.fates["labelled"], labelled.usage["completion_tokens"]
    ```
    """

    default_language = "en"
    faults = FAULTS

    def __init__(
        self,
        endpoint: str,
        llm: str,
        *,
        samples: int = 1,
        agreement: float = 0.6,
        temperature: float = 0.7,
        max_tokens: int = 256,
        workers: int = 4,
        timeout: float = 120.0,
        retries: int = 5,
        api_key: str | None = None,
        prompt: str | Path | None = None,
    ):
        counts = {"samples": samples, "max_tokens": max_tokens, "workers": workers}
        check_at_least_one(counts, *counts)
        check_not_negative({"temperature": temperature, "retries": retries}, "temperature", "retries")
        check_positive({"timeout": timeout}, "timeout")
        if not 0 < agreement <= 1:
            raise ValueError(f"`agreement` must be above 0 and at most 1, not {agreement}.")
        self.client = ChatClient(endpoint, llm, api_key or os.environ.get(API_KEY), timeout, retries)
        self.samples = samples
        self.agreement = agreement
        self.temperature = temperature
        self.max_tokens = max_tokens
        self.workers = workers
        self.prompts = load_prompts(prompt)
        self.languages = tuple(self.prompts)
        self.labels_unanswered = samples > 1
        self.usage = {}

    def read(self, problems: Iterable[str | MathWordProblem | Mapping[str, Any]]) -> list[MathWordProblem]:
        return problems_from(problems)

    def propose(
        self, problems: Sequence[MathWordProblem], unfinished: str | Path | None = None, progress: ProgressBar = None
    ) -> list[Proposal]:
        if unfinished is None:
            chunks = [problems[start : start + AT_ONCE] for start in range(0, len(problems), AT_ONCE)]
            records = []
            if progress is not None:
                chunks = progress(chunks)
            for chunk in chunks:
                records += self._ask_all(chunk)
        else:
            records = kept_records(unfinished, self._facts, problems, self._ask_all, progress, AT_ONCE)
        self.usage = _sum_usage(records)
        return [self._proposal(problem, record) for problem, record in zip(problems, records, strict=True)]

    def surest(self, confidences: Sequence[float | None]) -> set[int]:
        # The share of a count is rounded: three of five must not be below 0.6.
        least = self.agreement - 1e-9
        return {index for index, share in enumerate(confidences) if share is not None and share >= least}

    @property
    def training_texts(self) -> TrainingTexts:
        return TrainingTexts(unknown=(short_name(self.client.llm),))

    @property
    def _facts(self) -> dict[str, Any]:
        """Settings that the replies depend on."""
        sampling = {"samples": self.samples, "temperature": self.temperature, "max_tokens": self.max_tokens}
        prompts = {language: vars(prompt) for language, prompt in self.prompts.items()}
        return {"endpoint": self.client.endpoint, "llm": self.client.llm, "prompts": prompts} | sampling

    def _ask_all(self, problems: Sequence[MathWordProblem]) -> list[dict[str, Any]]:
        """Return a record for each problem, from simultaneous requests."""
        self.client.start()
        with ThreadPoolExecutor(self.workers) as pool:
            futures = [pool.submit(self._ask, problem) for problem in problems]
            try:
                done, _ = wait(futures, return_when=FIRST_EXCEPTION)
                for future in done:
                    future.result()
            except BaseException:
                # An error ends the run: waiting requests are not sent, failed ones are not repeated.
                self.client.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        if not self.client.has_replied:
            raise UsageError(self.client.last_fault)
        return [future.result() for future in futures]

    def _ask(self, problem: MathWordProblem) -> dict[str, Any]:
        """
        Return the record of a problem: in `equations` the prefix tokens of each readable reply, and the numbers of
        `requests`, `failed` requests, `prompt_tokens`, `completion_tokens` and replies that are `not_counted`.
        """
        messages = self.prompts[problem.language].messages(problem)
        counts = Counter({"requests": 0, "failed": 0, "prompt_tokens": 0, "completion_tokens": 0, "not_counted": 0})
        equations: list[list[str]] = []
        for sample in range(self.samples):
            sampling = {"temperature": 0.0}
            if sample > 0:
                sampling = {"temperature": self.temperature, "seed": sample}
            counts["requests"] += 1
            try:
                reply = self.client.ask(messages, max_tokens=self.max_tokens, **sampling)
            except ReplyError as error:
                logger.warning(f"No label for problem {problem.id!r}: {error}")
                counts["failed"] += 1
                continue
            if reply.prompt_tokens is None or reply.completion_tokens is None:
                counts["not_counted"] += 1
            counts["prompt_tokens"] += reply.prompt_tokens or 0
            counts["completion_tokens"] += reply.completion_tokens or 0
            expression = read_reply(reply.text, problem) if reply.is_complete else None
            if expression is None:
                continue
            equations.append(expression.to_prefix())
            if problem.answer is not None and score_prediction(problem, expression).answer_correct:
                break
        return {"equations": equations, **counts}

    def _proposal(self, problem: MathWordProblem, record: Mapping[str, Any]) -> Proposal:
        """Return the different equations in the replies to a problem, and the first of those with the most frequent
        value as the best one."""
        expressions = [Expression.from_prefix(tokens) for tokens in record["equations"]]
        if not expressions:
            all_failed = record["failed"] == record["requests"]
            return Proposal(fault="failed" if all_failed else "unreadable")
        frequency = Counter(expressions)
        different = list(frequency)
        candidates = [Candidate(expression, {"samples": frequency[expression]}) for expression in different]
        # Replies with the same value agree.
        values = [expression.evaluate(problem.values) for expression in different]
        votes: Counter[Fraction | float] = Counter()
        for value, expression in zip(values, different, strict=True):
            votes[value] += frequency[expression]
        value, num_votes = votes.most_common(1)[0]
        agreeing = [index for index in range(len(different)) if values[index] == value]
        best = max(agreeing, key=lambda index: frequency[different[index]])
        return Proposal(candidates, best, num_votes / self.samples)


def _sum_usage(records: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    usage = Counter({"requests": 0, "prompt_tokens": 0, "completion_tokens": 0, "not_counted": 0})
    for record in records:
        usage.update({name: record[name] for name in usage})
    return dict(usage)
