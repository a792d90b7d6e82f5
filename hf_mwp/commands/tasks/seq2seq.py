"""Tasks of sequence-to-sequence models: pairs of texts (such as translations), and math word problems."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from hf_mwp.commands.building.seq2seq import build_seq2seq, load_seq2seq_model, make_student_seq2seq
from hf_mwp.compress.metrics.text_generation import text_figures, text_report
from hf_mwp.compress.trainers import (
    Seq2SeqDistillationConfig,
    Seq2SeqDistillationTrainer,
    Seq2SeqFineTuningConfig,
    Seq2SeqFineTuningTrainer,
)
from hf_mwp.compress.trainers.generate_texts import decode_texts, generate_texts, score_texts
from hf_mwp.compress.trainers.seq2seq_training_rules import PairCollator
from hf_mwp.runtime.answer import Beam
from hf_mwp.runtime.expressions import Expression, ExpressionError
from hf_mwp.runtime.problems import MathWordProblem, ProblemError
from hf_mwp.solver.data.schema import problem_from_row
from hf_mwp.solver.solving.solver_prediction import SolverPrediction
from hf_mwp.solver.training import MathSeq2SeqDistillationConfig, MathSeq2SeqFineTuningConfig
from hf_mwp.utils.files import shorten_paths
from hf_mwp.utils.usage_error import UsageError

from .data_options import TaskArguments
from .math_word_problems import MathWordProblems
from .seq2seq_files import load_seq2seq
from .task import Task, limit_rows


# Number of placeholders ([NUM0], ...) that are tokens of a newly trained tokenizer.
NUM_PLACEHOLDERS = 20
PLACEHOLDER = re.compile(r"\[\s*NUM\s*(\d+)\s*\]", re.IGNORECASE)
LANGUAGE = re.compile("[a-z]{2,3}")
SYMBOL = re.compile(r"\([^()]*\)|[-+*/^]|[^\s\[\]()+*/^-]+")


@dataclass(frozen=True)
class Seq2SeqPrediction:
    """Generated text of a row."""

    row: Mapping[str, Any]  # see [`load_seq2seq`]
    text: str
    log_probability: float | None = None  # of the row's target, given the source
    num_tokens: int = 0  # of the row's target

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.row,
            "prediction": self.text,
            "log_probability": self.log_probability,
            "num_tokens": self.num_tokens,
        }


class Seq2SeqTask(Task):
    """Task of generating target texts from source texts, for any model of `AutoModelForSeq2SeqLM`. Raises `UsageError`
    if a package of the metrics ([`metrics.text_report`]) is not installed."""

    kind = "sequence-to-sequence model"
    recorded = ("num_beams",)
    trainer_class = Seq2SeqFineTuningTrainer
    distillation_class = Seq2SeqDistillationTrainer
    # After pruning and STARK, texts are generated with the beams and the length of these configs.
    configs = {**MathWordProblems.configs, "train": Seq2SeqFineTuningConfig, "distill": Seq2SeqDistillationConfig}
    placeholders: Sequence[str] = ()

    def __init__(self, options: TaskArguments) -> None:
        self.options = options
        self.name = options.dataset
        self.scheme = "as its files have it"
        self.source = Path(options.dataset)
        self.metrics = text_figures(options.text_metrics)
        self.metric = self.metrics[0]
        if options.text_metrics[0] == "rouge":
            self.metric = "rougeL"

    def default_metric(self, command):
        """Return the loss for pruning and STARK, whose trainers generate no texts, otherwise the task's metric."""
        if command in ("prune", "stark"):
            return "loss"
        return self.metric

    @cached_property
    def splits(self):
        options = self.options
        splits = load_seq2seq(options.dataset, options.source, options.target, options.validation_fraction)
        return {split: limit_rows(rows, split, options) for split, rows in splits.items()}

    def pair(self, row: Mapping[str, Any]) -> tuple[str, str | None]:
        """Return the source and the target text of a row; the target is `None` if the row has none."""
        return self.options.source_prefix + row["text"], row["target"]

    def build_model(self, options):
        texts: list[str] = []
        for row in self.rows("train"):
            texts += filter(None, self.pair(row))
        languages = (self.options.source, self.options.target)
        return build_seq2seq(texts, options, self.placeholders, languages)

    def load_model(self, name, split="train"):
        return load_seq2seq_model(name, languages=(self.options.source, self.options.target))

    def make_student(self, teacher, processor, options):
        return make_student_seq2seq(teacher, processor, options), processor

    def collator(self, model, processor):
        return PairCollator(processor, model)

    def prepare(self, rows, processor):
        """Tokenise and truncate pairs, and keep the columns that are recorded in the model's folder."""

        def encode(row: Mapping[str, Any]) -> dict[str, Any]:
            return {**self.encode([row], processor)[0], "text": row["text"], "dataset": row["dataset"]}

        return rows.map(encode, remove_columns=rows.column_names, keep_in_memory=True)

    def encode(self, rows, processor):
        """Return the inputs and labels of rows. Without a target, the loss ignores the row's only label."""
        encoded = []
        for row in rows:
            source, target = self.pair(row)
            inputs = dict(processor(source, text_target=target or "", truncation=True))
            if not target:
                inputs["labels"] = [-100]
            encoded.append(inputs)
        return encoded

    def trainer_arguments(self, model, processor, config=None):
        arguments = super().trainer_arguments(model, processor)
        if config is not None:
            arguments |= self.metric_arguments(processor, config)
        return arguments

    def metric_arguments(self, processor: Any, config: Any) -> dict[str, Any]:
        """Return the arguments of a trainer that measure the texts generated in evaluations."""
        return {"text_metrics": partial(text_report, metrics=self.options.text_metrics, language=self.options.target)}

    def predict(self, model, processor, rows, max_decode_length=None, batch_size=64, **search):
        sources, targets = zip(*map(self.pair, rows), strict=True)
        search |= {"max_length": max_decode_length, "batch_size": batch_size}
        generated = generate_texts(model, processor, sources, **search)
        scores = score_texts(model, processor, sources, targets, batch_size)
        predictions = []
        for row, texts, (log_probability, num_tokens) in zip(rows, generated, scores, strict=True):
            predictions.append(Seq2SeqPrediction(row, texts[0].text, log_probability, num_tokens))
        return predictions

    def report(self, predictions: Sequence[Seq2SeqPrediction]) -> dict[str, float]:
        """Compute the metrics of the texts, `nll` (negative log-likelihood per target token) and `num_examples`."""
        texts = [prediction.text for prediction in predictions]
        references = [prediction.row["target"] for prediction in predictions]
        report = text_report(texts, references, self.options.text_metrics, self.options.target)
        if predictions:
            num_tokens = sum(prediction.num_tokens for prediction in predictions)
            log_probability = sum(prediction.log_probability for prediction in predictions)
            report["nll"] = -log_probability / max(num_tokens, 1)
        return report | {"num_examples": len(predictions)}

    def card(self) -> dict[str, Any]:
        # Source and target are languages, or names of fields such as "summary".
        pipeline_tag = "text2text-generation"
        language = None
        if LANGUAGE.fullmatch(self.options.source) and LANGUAGE.fullmatch(self.options.target):
            pipeline_tag = "translation"
            language = self.options.target
        dataset, _, _ = shorten_paths(self.name).partition(":")
        return {
            "pipeline_tag": pipeline_tag,
            "datasets": [dataset],
            "language": language,
            "tags": ["hf_mwp", "seq2seq"],
            "metrics": {name: [name, "num_examples"] for name in (*self.metrics, "nll")},
            "shares": False,
            "items": "examples",
            "example": self._example(),
        }

    def _example(self) -> str:
        """Return the source text that a model card shows."""
        last_rows = next(rows for rows in reversed(self.splits.values()) if len(rows))
        source, _ = self.pair(last_rows[0])
        return source


class MathSeq2Seq(Seq2SeqTask, MathWordProblems):
    """Math word problems for a sequence-to-sequence model, which reads texts with `[NUM0]`, `[NUM1]`, ... for numbers
    and writes equations in prefix notation with these placeholders. Predictions are scored by their answers."""

    metric = "answer_accuracy"
    metrics = ()
    recorded = ("num_beams", "answer_match")
    solves = False
    configs = {
        **MathWordProblems.configs,
        "train": MathSeq2SeqFineTuningConfig,
        "distill": MathSeq2SeqDistillationConfig,
    }
    placeholders = [f"[NUM{index}]" for index in range(NUM_PLACEHOLDERS)]

    # Data and metrics come from MathWordProblems, everything else from Seq2SeqTask.
    __init__ = MathWordProblems.__init__
    splits = MathWordProblems.splits
    report = MathWordProblems.report

    def problem(self, row: Mapping[str, Any]) -> MathWordProblem:
        return problem_from_row(row, self.options.parse_number_words)

    def pair(self, row):
        problem = self.problem(row)
        return problem.masked.text(indexed=True), write_equation(problem)

    def learnable(self, rows):
        """Return the problems whose equation can be parsed. Raises `UsageError` if there are none."""
        learnable = []
        for index, row in enumerate(rows):
            _, equation = self.pair(row)
            if equation:
                learnable.append(index)
        if not learnable:
            raise UsageError(f"None of the {len(rows)} problems has an equation. Choose a different split or dataset.")
        return rows.select(learnable)

    def metric_arguments(self, processor, config):
        rows = list(self.rows("validation", needed=False) or ())

        def measure(output: Any) -> dict[str, float]:
            texts = decode_texts(processor, output.predictions)
            predictions = []
            for row, text in zip(rows, texts, strict=True):
                predictions.append(self.prediction(row, text, answer_match=config.answer_match))
            return self.report(predictions)

        return {"compute_metrics": measure}

    def predict(self, model, processor, rows, answer_match="annotated", max_decode_length=None, **search):
        sources = []
        for row in rows:
            source, _ = self.pair(row)
            sources.append(source)
        generated = generate_texts(model, processor, sources, max_length=max_decode_length, **search)
        predictions = []
        for row, texts in zip(rows, generated, strict=True):
            best = texts[0]
            predictions.append(self.prediction(row, best.text, best.log_probability, answer_match))
        return predictions

    def prediction(
        self, row: Mapping[str, Any], text: str, log_probability: float = 0.0, answer_match: str = "annotated"
    ) -> SolverPrediction:
        """Convert a generated text to a prediction, which has no tree if the text is not a valid equation."""
        problem = self.problem(row)
        expression = read_equation(text, len(problem.numbers))
        trees: tuple = ()
        if expression is not None:
            trees = ((expression, log_probability),)
        return SolverPrediction(problem, Beam(trees), answer_match=answer_match)

    def card(self):
        return MathWordProblems.card(self) | {"pipeline_tag": "text2text-generation", "example": self._example()}


def write_equation(problem: MathWordProblem) -> str | None:
    """Return the prefix notation of a problem's equation, with `[NUM0]` for its first number, or `None`."""
    try:
        tokens = problem.expression.to_prefix()
    except (ExpressionError, ProblemError):
        return None
    return re.sub(r"(?<!\S)N(\d+)(?!\S)", r"[NUM\1]", " ".join(tokens))


def read_equation(text: str, num_numbers: int) -> Expression | None:
    """Parse a generated text as an expression over `num_numbers` numbers. Returns `None` for an invalid text."""
    # Some tokenizers put spaces into placeholders and numbers, or write them in lower case.
    text = PLACEHOLDER.sub(r" N\1 ", text)
    text = re.sub(r"(?<=\d)\s*\.\s*(?=\d)", ".", text)
    tokens = []
    for symbol in SYMBOL.findall(text):
        token = "".join(symbol.split())
        if re.fullmatch(r"N\d+", token) and int(token[1:]) >= num_numbers:
            return None
        tokens.append(token)
    try:
        return Expression.from_prefix(tokens)
    except ExpressionError:
        return None
