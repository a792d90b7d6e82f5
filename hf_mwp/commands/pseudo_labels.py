"""Tasks that create pseudo-labels: equations for problems without equations, or target texts from a teacher."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from hf_mwp.compress.trainers.generate_texts import generate_texts
from hf_mwp.runtime.expressions import ExpressionError
from hf_mwp.solver.data.file_format import FileArguments
from hf_mwp.solver.data.sources import read_part
from hf_mwp.solver.labelling.label_problems import label_problems
from hf_mwp.solver.labelling.language_model_labeller import LanguageModelLabeller
from hf_mwp.solver.labelling.solver_labeller import SolverLabeller
from hf_mwp.utils.files import remove_folder, write_json_lines
from hf_mwp.utils.main_process import is_main_process, share_rows, wait_for_all
from hf_mwp.utils.option import option_values, options_in
from hf_mwp.utils.provenance import ancestry_of
from hf_mwp.utils.run_folder import RunFolder
from hf_mwp.utils.usage_error import UsageError

from .building.seq2seq import load_seq2seq_model
from .building.solver import load_solver
from .options.search_options import LabelArguments, find_device
from .tasks.data_options import SEQ2SEQ, TaskArguments
from .tasks.reporter import SILENT, Reporter
from .tasks.seq2seq import MathSeq2Seq, read_equation
from .tasks.seq2seq_files import load_seq2seq
from .tasks.task import limit_rows


TEXT_FATES = {
    "labelled": "the generated text is kept",
    "unsure": "its best text is not among the most probable (keep_fraction)",
    "empty": "nothing was generated, or no equation with a value",
}


def pseudo_label(args: LabelArguments, reporter: Reporter = SILENT) -> tuple[Path, Mapping[str, int]]:
    """
    Label the problems of files and datasets ([`label_problems`]), and write `labelled.jsonl`: `hf-mwp pseudo-label`.
    Processes under `accelerate launch` share the problems, and an interrupted run resumes. If `args.task` is set, see
    [`label_texts`]. Raises `UsageError` if the folder already contains labels, or solver and problems do not match.
    Returns the file, and the number of problems by result ([`~solving.label_problems.FATES`] or a labeller's fault).
    """
    if args.task is not None:
        return label_texts(args, reporter)
    with RunFolder(args.output_dir, "pseudo-label", option_values(args)) as folder:
        folder.check_record()
        unfinished = folder.path / "unfinished"
        path = folder.path / "labelled.jsonl"
        # If there is unfinished work, the file was written by the same run before it was killed.
        folder.check_unused(args.overwrite or unfinished.exists(), (path.name,))
        labeller = _make_solver_labeller(args) if args.endpoint is None else _make_language_model_labeller(args)
        options = {"language": labeller.default_language, "file_format": args.file_format}
        rows: list[Any] = []
        for source in args.problems:
            rows += read_part(source, args.data_dir, **options)[0]
        folder.begin()
        labelled = label_problems(
            labeller,
            problems=rows[: args.max_train_samples],
            exclude=args.exclude or (),
            data_dir=args.data_dir,
            file_format=args.file_format,
            unfinished=unfinished,
            progress=reporter.progress("Labelling"),
        )
        # Wait until all processes have read each other's labels.
        wait_for_all()
        if is_main_process():
            write_json_lines(path, labelled.rows)
            # Models trained on the labels inherit the record of the labeller's training texts.
            labeller.training_texts.save(folder.path)
            remove_folder(unfinished)
        cost = {"usage": labelled.usage} if labelled.usage else {}
        folder.finish({"problems": args.problems, "fates": labelled.fates} | cost)
    if labelled.usage:
        reporter.print(_describe_usage(labelled.usage))
    return path, labelled.fates


def _make_solver_labeller(args: LabelArguments) -> SolverLabeller:
    device = find_device(args.device)
    model, processor = load_solver(args.model)
    reranker, num_beams = args.load_reranker(processor)
    return SolverLabeller(
        model.to(device),
        processor,
        num_beams=num_beams,
        pseudo_label_fraction=args.pseudo_label_fraction,
        reranker=reranker,
        batch_size=args.batch_size,
    )


def _make_language_model_labeller(args: LabelArguments) -> LanguageModelLabeller:
    return LanguageModelLabeller(
        args.endpoint,
        args.llm,
        samples=args.llm_samples,
        agreement=args.llm_agreement,
        temperature=args.llm_temperature,
        max_tokens=args.llm_max_tokens,
        workers=args.llm_workers,
        timeout=args.llm_timeout,
        retries=args.llm_retries,
        api_key=args.llm_api_key,
        prompt=args.llm_prompt,
    )


def _describe_usage(usage: Mapping[str, int]) -> str:
    """Return a line with the cost of a language model's labels."""
    tokens = f"{usage['prompt_tokens']:,} of the prompts and {usage['completion_tokens']:,} of the replies"
    not_counted = usage["not_counted"]
    unknown = f"; the server does not state those of {not_counted:,} requests" if not_counted else ""
    return f"Tokens: {tokens}, {usage['requests']:,} requests{unknown}"


def label_texts(args: LabelArguments, reporter: Reporter = SILENT) -> tuple[Path, Mapping[str, int]]:
    """
    Generate targets for the training texts of a dataset, or equations for training problems (Kim and Rush,
    "Sequence-Level Knowledge Distillation", EMNLP 2016), and write them to `train.jsonl`, with the unchanged other
    splits: a dataset for students with any tokenizer. Each row has the texts `args.source` and `args.target`, or the
    fields of a problem, and also `score`, the mean log probability per token, and `rank`, the position among the
    beams. Processes under `accelerate launch` share the texts. Raises `UsageError` if the folder already contains
    labels, the model has a different kind, or it generates no usable text. Returns the file, and the number of source
    texts by result (`TEXT_FATES`).
    """
    device = find_device(args.device)
    with RunFolder(args.output_dir, "pseudo-label", option_values(args)) as folder:
        folder.check_record()
        path, others = folder.path / "train.jsonl", ("validation.jsonl", "test.jsonl")
        folder.check_unused(args.overwrite, (path.name, *others))
        model, tokenizer = load_seq2seq_model(args.model, languages=(args.source, args.target))
        rows, sources, label, other_splits = (_read_pairs if args.task == SEQ2SEQ else _read_problems)(args)
        folder.begin()
        search = {name: getattr(args, name) for name in ("num_beams", "num_return_sequences", "batch_size")}
        search |= {"max_length": args.max_decode_length, "progress": reporter.progress()}
        found = share_rows(partial(generate_texts, model.to(device), tokenizer, **search), sources)
        records: list[list[dict[str, Any]]] = [[] for _ in rows]
        for row, texts, made in zip(rows, found, records, strict=True):
            for rank, each in enumerate(texts):
                if each.text and (record := label(row, each.text)) is not None:
                    score = each.log_probability / max(each.num_tokens, 1)
                    made.append(record | {"score": score, "rank": rank})
        usable = [index for index, made in enumerate(records) if made]
        if not usable:
            remedy = "Train it longer, or set a higher --max_decode_length"
            raise UsageError(f"{args.model} generated no usable target for any of {len(rows)} texts. {remedy}.")
        likeliest = sorted(usable, key=lambda index: records[index][0]["score"], reverse=True)
        likeliest = likeliest[: max(round(args.keep_fraction * len(usable)), 1)]
        if is_main_process():
            for name in others:
                (folder.path / name).unlink(missing_ok=True)
            write_json_lines(path, [record for index in sorted(likeliest) for record in records[index]])
            for split, unchanged in other_splits.items():
                write_json_lines(folder.path / f"{split}.jsonl", unchanged)
            # Models trained on the labels inherit the record of the teacher's training texts.
            ancestry_of(model).save(folder.path)
        fates = {"labelled": len(likeliest), "unsure": len(usable) - len(likeliest), "empty": len(rows) - len(usable)}
        folder.finish({"problems": args.problems, "fates": fates})
    return path, fates


def _read_pairs(args: LabelArguments) -> tuple[Any, list[str], Callable, Mapping[str, Iterable]]:
    """Return the dataset to label; its source texts; a function that takes a row and its generated text and returns an
    output row (`None` if the text is not usable); and the output rows of the other splits."""

    def label(row: Mapping[str, Any], text: str) -> dict[str, Any]:
        return {"id": row["id"], args.source: row["text"], args.target: text}

    splits = load_seq2seq(args.problems[0], args.source, None, validation_fraction=0)
    rows = _pop_train(splits, args)
    # The training split needs no targets if there is no other split.
    pairs = load_seq2seq(args.problems[0], args.source, args.target, validation_fraction=0) if splits else {}
    others = {split: [label(row, row["target"]) for row in pairs[split]] for split in splits}
    return rows, [args.source_prefix + text for text in rows["text"]], label, others


def _read_problems(args: LabelArguments) -> tuple[Any, list[str], Callable, Mapping[str, Iterable]]:
    """Return the same as [`_read_pairs`] for math word problems, whose target texts are equations."""
    options = {"task": args.task, "dataset": args.problems[0], "data_dir": args.data_dir, "validation_fraction": 0.0}
    options |= {name: getattr(args, name) for name in options_in(FileArguments)}
    task = MathSeq2Seq(TaskArguments(**options))

    def label(row: Mapping[str, Any], text: str) -> dict[str, Any] | None:
        problem = task.problem(row)
        expression = read_equation(text, len(problem.numbers))
        try:
            if expression is None or expression.evaluate(problem.values) is None:
                return None
        except ExpressionError:
            return None
        problem = replace(problem, equation=expression.bind(problem.numbers).to_infix())
        # An annotated answer is kept if the equation evaluates to it.
        return _fields_of(vars(problem) | {"answer": problem.answer if problem.agrees() else None})

    splits = dict(task.splits)
    rows = _pop_train(splits, args)
    others = {split: map(_fields_of, rows) for split, rows in splits.items()}
    return rows, [task.pair(row)[0] for row in rows], label, others


def _pop_train(splits: dict[str, Any], args: LabelArguments) -> Any:
    """Remove the training split, or the first one if there is none, and return its first `max_train_samples` rows."""
    return limit_rows(splits.pop("train" if "train" in splits else next(iter(splits))), "train", args)


def _fields_of(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row.get(name) for name in ("id", "text", "equation", "answer", "language")}
