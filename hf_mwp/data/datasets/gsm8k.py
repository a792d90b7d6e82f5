"""GSM8K: 8,792 English problems of two to eight steps with worked answers (Cobbe et al., 2021)."""

from typing import Any

from ...problems import MathWordProblem
from ...problems.worked_steps import StepError, compose_steps
from ..reading.dataset_reader import RecordReader
from ..reading.record import Record
from ..reading.schema import make_row
from .mwp_loader import PARTS, MwpLoader, Rows


ANSWER_MARK = "####"


class Gsm8kLoader(MwpLoader):
    """
    Files, each optional: `train.jsonl`, `test.jsonl` as published (7,473 and 1,319 records of `question` and `answer`,
    a worked answer whose steps stand in double angle brackets and whose last line is `#### 72`).

    The equation is what the steps make up ([`~problems.worked_steps.compose_steps`]). Problems whose steps make up
    none have no equation, and the reason in the report; they are evaluated on and not trained on.
    """

    name = "gsm8k"
    language = "en"
    split_schemes = {
        "public": "the published training and test files, as far as they are there",
        "expressed": "the same, and of the test file the problems whose steps make up an expression",
    }
    files = {split: (f"{PARTS[split]}.jsonl",) for split in ("train", "test")}
    folders = ("gsm8k",)
    origin = (
        "The files come with the repository of hf_mwp, in examples/data/gsm8k; they are at "
        "https://github.com/openai/grade-school-math."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        splits = super().read(reader, scheme, fold)
        if scheme == "expressed" and "test" in splits:
            splits["test"] = [row for row in splits["test"] if row["equation"]]
        return splits

    def row(self, record: Record, fold: str | None = None) -> dict[str, Any]:
        """As in [`MwpLoader`], with the `fault` of steps that make up no equation."""
        worked, mark, answer = record.text("answer").rpartition(ANSWER_MARK)
        if not mark:
            record.fail(f"expected a worked answer with its result after {ANSWER_MARK}", "answer")
        problem = MathWordProblem(record.text("question").strip(), answer=answer.strip(), language=self.language)
        equation, fault = "", {}
        try:
            equation = f"x={compose_steps(problem, worked).to_infix()}"
        except StepError as error:
            fault = {"fault": (error.reason, str(error))}
        columns = {"dataset": self.name, "language": self.language, "text": problem.text, "answer": problem.answer}
        return make_row(record, **columns, equation=equation) | fault
