"""English data sets."""

from functools import partial
from typing import Any

from ...problems import MathWordProblem
from ...problems.worked_steps import StepError, compose_steps
from ..reading.file_contents import RecordReader
from ..reading.schema import Record, make_row
from .mwp_loader import MwpLoader, Rows, split_by_complexity, split_by_fold


_ANSWER_MARK = "####"


class AsdivALoader(MwpLoader):
    """
    ASDiv-A: the 1,218 arithmetic problems of ASDiv (Miao et al., ACL 2020).

    File: `asdiv_a.jsonl` (`id`, `body`, `question`, `formula`, `answer`, `fold`). 28 formulas are divisions whose
    answer is rounded up or down; their equations do not give their answers.
    """

    name = "asdiv_a"
    language = "en"
    text_fields = ("body", "question")
    fields = {"equation": "formula", "answer": "answer", "id": "id"}
    split_schemes = {
        "five_fold": "the five folds of the data set, 238 / 238 / 238 / 238 / 266",
        "stratified": "8 : 1 : 1 within each level of complexity, as Yu et al. split it, chosen by a hash of the ids",
    }
    fold_schemes = {"five_fold": 5}
    folders = ("asdiv",)
    origin = (
        "The file comes with the repository of hf_mwp, in examples/data/asdiv; it is made from "
        "https://github.com/chaochun/nlu-asdiv-dataset."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        rows = reader.rows(partial(self.row, fold="fold"), "asdiv_a.jsonl")
        if scheme == "stratified":
            return split_by_complexity(rows, {"train": 8, "validation": 1, "test": 1})
        return split_by_fold(rows, fold)


class Gsm8kLoader(MwpLoader):
    """
    GSM8K: 8,792 problems of two to eight steps with worked answers (Cobbe et al., 2021).

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
    files = {split: (f"{split}.jsonl",) for split in ("train", "test")}
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
        worked, mark, answer = record.text("answer").rpartition(_ANSWER_MARK)
        if not mark:
            record.fail(f"expected a worked answer with its result after {_ANSWER_MARK}", "answer")
        problem = MathWordProblem(record.text("question").strip(), answer=answer.strip(), language=self.language)
        equation, fault = "", {}
        try:
            equation = f"x={compose_steps(problem, worked).to_infix()}"
        except StepError as error:
            fault = {"fault": (error.reason, str(error))}
        columns = {"dataset": self.name, "language": self.language, "text": problem.text, "answer": problem.answer}
        return make_row(record, **columns, equation=equation) | fault


class MawpsLoader(MwpLoader):
    """
    MAWPS: 2,373 problems (Koncel-Kedziorski et al., NAACL 2016). A third of them differ from one of another fold in
    their numbers alone; see `drop_overlap`.

    File: `mawps.jsonl` (`iIndex`, `sQuestion`, `lEquations`, `lSolutions`, `fold`, `single_fold`). 351 of the 2,373
    problems have an equation that is not solved for its unknown.
    """

    name = "mawps"
    language = "en"
    text_fields = ("sQuestion",)
    fields = {"equation": "lEquations", "answer": "lSolutions", "id": "iIndex"}
    lists = frozenset({"equation", "answer"})
    split_schemes = {
        "five_fold": "five folds of 474 or 476; one problem is in none",
        "single_five_fold": "the five folds of MAWPS-Single, 397 / 397 / 397 / 397 / 399; 386 problems are in none",
    }
    fold_schemes = {"five_fold": 5, "single_five_fold": 5}
    origin = "The problems are in https://github.com/LYH-YF/MWPToolkit."

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        field = "fold" if scheme == "five_fold" else "single_fold"
        return split_by_fold(reader.rows(partial(self.row, fold=field), "mawps.jsonl"), fold)


class MawpsSingleLoader(MawpsLoader):
    """
    MAWPS-Single: the 1,987 problems of MAWPS with one unknown.

    File: `mawps_single.jsonl` (`iIndex`, `sQuestion`, `lEquations`, `lSolutions`, `fold`), or `mawps.jsonl`, of which
    the problems with a `single_fold` are taken. The equations are solved for their unknown.
    """

    name = "mawps_single"
    split_schemes = {"five_fold": "the five folds of Deductive-MWP, 397 / 397 / 397 / 397 / 399"}
    fold_schemes = {"five_fold": 5}
    folders = ("mawps",)
    origin = (
        "The problems are in https://github.com/LYH-YF/MWPToolkit, the folds in "
        "https://github.com/allanj/Deductive-MWP."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        whole = reader.find("mawps_single.jsonl") is None and reader.find("mawps.jsonl") is not None
        file, field = ("mawps.jsonl", "single_fold") if whole else ("mawps_single.jsonl", "fold")
        return split_by_fold(reader.rows(partial(self.row, fold=field), file), fold)


class SvampLoader(MwpLoader):
    """
    SVAMP: 1,000 problems that vary those of ASDiv-A (Patel et al., NAACL 2021).

    File: `SVAMP.json`, as published: an array of `ID`, `Body`, `Question`, `Equation` (`"( 8.0 - 3.0 )"`), `Answer`
    and `Type`. A test set alone; the papers train on MAWPS and ASDiv-A.
    """

    name = "svamp"
    language = "en"
    text_fields = ("Body", "Question")
    fields = {"equation": "Equation", "answer": "Answer", "id": "ID"}
    split_schemes = {"public": "all 1,000 problems are test problems"}
    files = {"test": ("SVAMP.json",)}
    origin = "SVAMP.json is at https://github.com/arkilpatel/SVAMP."


LOADERS = (AsdivALoader, Gsm8kLoader, MawpsLoader, MawpsSingleLoader, SvampLoader)
