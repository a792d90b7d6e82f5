"""English datasets."""

from itertools import chain
from pathlib import Path
from typing import Any

from hf_mwp.runtime.augmentation.step_questions import ask_steps
from hf_mwp.runtime.problems.worked_steps import StepError, compose_steps

from .file_contents import RecordReader
from .mwp_loader import MwpLoader, changed_columns, kind_by_operations
from .record import Record, Rows
from .schema import make_row, problem_from_row
from .splits import hash_bucket, split_by_complexity, split_by_fold, split_by_lists


class AsdivALoader(MwpLoader):
    """Loader of ASDiv-A, the 1,218 arithmetic problems of ASDiv (Miao et al., ACL 2020), from `asdiv_a.jsonl`. In 28
    problems the answer is a quotient rounded up or down, so it differs from the value of the equation."""

    name = "asdiv_a"
    language = "en"
    text_fields = ("body", "question")
    fields = {"equation": "formula", "answer": "answer", "id": "id"}
    fold_field = "fold"
    split_schemes = {
        "five_fold": 5,  # 238 / 238 / 238 / 238 / 266
        "stratified": 0,  # 8 : 1 : 1 within each level of complexity (Yu et al.), chosen by a hash of the ids.
    }
    folders = ("asdiv",)
    origin = (
        "The file is in examples/data/asdiv of the hf_mwp repository. It was made from "
        "https://github.com/chaochun/nlu-asdiv-dataset."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        rows = reader.rows(self.row, "asdiv_a.jsonl")
        if scheme == "stratified":
            return split_by_complexity(rows, {"train": 8, "validation": 1, "test": 1})
        return split_by_fold(rows, fold)


class Gsm8kLoader(MwpLoader):
    """Loader of GSM8K, 8,792 problems of two to eight steps with worked answers (Cobbe et al., 2021), from
    `train.jsonl` and `test.jsonl`, each optional, as published (7,473 and 1,319 records of `question` and `answer`, a
    worked answer whose steps are in double angle brackets and whose last line is `#### 72`). The equation is composed
    of the steps ([`~problems.worked_steps.compose_steps`]). A problem whose steps cannot be composed has no equation,
    is used for evaluation but not for training, and is listed in the report with the reason."""

    name = "gsm8k"
    language = "en"
    # "expressed" is like "public", but without test problems whose steps cannot be composed.
    split_schemes = {"public": 0, "expressed": 0}
    files = {split: (f"{split}.jsonl",) for split in ("train", "test")}
    origin = (
        "The files are in examples/data/gsm8k of the hf_mwp repository and at "
        "https://github.com/openai/grade-school-math."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        splits = super().read(reader, scheme, fold)
        if scheme == "expressed" and "test" in splits:
            splits["test"] = [row for row in splits["test"] if row["equation"]]
        return splits

    def row(self, record: Record) -> dict[str, Any]:
        """Create the row of a record, with a `fault` if the steps cannot be composed into an equation."""
        worked, mark, answer = record.text("answer").rpartition("####")
        if not mark:
            record.fail("expected a worked answer with the result after ####", "answer")
        columns = {"text": record.text("question").strip(), "answer": answer.strip(), "language": self.language}
        row = make_row(record, self.name, **columns) | {"worked": worked}
        try:
            expression = compose_steps(problem_from_row(columns), worked)
        except StepError as error:
            return row | {"fault": (error.reason, str(error))}
        return row | {"equation": f"x={expression.to_infix()}"}


class Gsm8kStepsLoader(Gsm8kLoader):
    """Loader of GSM8K (files of [`Gsm8kLoader`]) with several questions for each context: the question of the problem,
    and questions that ask for the results of its steps ([`~problems.ask_steps`]). Problems without such steps are left
    out. The rows of a problem have the same `context`, and the number of operations as `kind`."""

    name = "gsm8k_steps"
    split_schemes = {"contexts": 0}  # The validation split is a tenth of the training contexts, chosen by a hash.
    folders = ("gsm8k",)

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        splits = super().read(reader, scheme, fold)
        for split, rows in splits.items():
            splits[split] = list(chain.from_iterable(row["questions"] for row in rows))
        if "train" in splits:
            rows = splits.pop("train")
            buckets = [hash_bucket(row["context"]) for row in rows]
            splits |= split_by_lists(rows, buckets, validation=[0], test=[])
        return splits

    def row(self, record: Record) -> dict[str, Any]:
        """Create the row of a record. Its `questions` are the rows of all questions on its context."""
        file_name = Path(record.file).name.partition(".")[0]
        row = super().row(record) | {"context": f"{file_name}-{record.line}"}
        problem = problem_from_row(row)
        step_problems = ask_steps(problem, row["worked"])
        if not step_problems:
            return row | {"questions": []}
        # The steps of an answer are usable even if they cannot be composed into one equation.
        step_row = dict(row)
        step_row.pop("fault", None)
        questions = [row, *(step_row | changed_columns(step_problem) for step_problem in step_problems)]
        for question, asked_problem in zip(questions, (problem, *step_problems), strict=True):
            if question["equation"]:
                question["kind"] = kind_by_operations(asked_problem.expression.num_operators)
        return row | {"questions": questions}


class MawpsLoader(MwpLoader):
    """Loader of MAWPS, 2,373 problems (Koncel-Kedziorski et al., NAACL 2016), from `mawps.jsonl`. In 351 problems the
    equation is not solved for its unknown. A third of the problems differ only in their numbers from a problem of a
    different fold; see `drop_overlap`."""

    name = "mawps"
    language = "en"
    text_fields = ("sQuestion",)
    fields = {"equation": "lEquations", "answer": "lSolutions", "id": "iIndex"}
    fold_field = "fold"
    split_schemes = {"five_fold": 5}  # 474 or 476 each; one problem is in no fold.
    origin = "The problems are in https://github.com/LYH-YF/MWPToolkit."

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        return split_by_fold(reader.rows(self.row, "mawps.jsonl"), fold)


class MawpsSingleLoader(MawpsLoader):
    """Loader of MAWPS-Single, the 1,987 problems of MAWPS with one unknown, whose equations are solved for it, from
    `mawps_single.jsonl`, or the problems with a `single_fold` in `mawps.jsonl`."""

    name = "mawps_single"
    split_schemes = {"five_fold": 5}  # The folds of Deductive-MWP, 397 / 397 / 397 / 397 / 399.
    folders = ("mawps",)
    origin = (
        "The problems are in https://github.com/LYH-YF/MWPToolkit, the folds in "
        "https://github.com/allanj/Deductive-MWP."
    )

    def read(self, reader: RecordReader, scheme: str, fold: int | None) -> dict[str, Rows]:
        if reader.find("mawps_single.jsonl") or not reader.find("mawps.jsonl"):
            return split_by_fold(reader.rows(self.row, "mawps_single.jsonl"), fold)
        self.fold_field = "single_fold"
        return super().read(reader, scheme, fold)


class SvampLoader(MwpLoader):
    """Loader of SVAMP, 1,000 variations of problems of ASDiv-A (Patel et al., NAACL 2021), from `SVAMP.json`, a JSON
    array, as published. SVAMP is only a test set. Papers train on MAWPS and ASDiv-A."""

    name = "svamp"
    language = "en"
    text_fields = ("Body", "Question")
    fields = {"equation": "Equation", "answer": "Answer", "id": "ID"}
    files = {"test": ("SVAMP.json",)}
    origin = "SVAMP.json is at https://github.com/arkilpatel/SVAMP."


LOADERS = (AsdivALoader, Gsm8kLoader, Gsm8kStepsLoader, MawpsLoader, MawpsSingleLoader, SvampLoader)
