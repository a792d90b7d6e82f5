"""Functions that evaluate a model on a split of a task."""

import copy
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from transformers import PreTrainedModel

from hf_mwp.compress.pruning import zero_random_weights
from hf_mwp.solver.metrics import TrainingOverlap
from hf_mwp.utils.checks import check_used
from hf_mwp.utils.files import remove_folder, write_json_lines
from hf_mwp.utils.main_process import is_main_process, share_rows, wait_for_all
from hf_mwp.utils.option import option_values, options_in
from hf_mwp.utils.run_folder import RunFolder, last_options
from hf_mwp.utils.usage_error import UsageError

from .options.search_options import EvaluateArguments, find_device
from .tasks.data_options import MeasuredTaskArguments
from .tasks.make_task import make_task, print_data_report
from .tasks.reporter import SILENT, Reporter
from .tasks.task import Task


@dataclass(frozen=True)
class Evaluation:
    """Predictions of a model on a split of a task, with their metrics."""

    task: Task
    split: str
    texts: Sequence[str]  # of the rows
    predictions: Sequence[Any]  # results of [`~Task.predict`]
    overlap: TrainingOverlap  # which of the texts the model was trained on
    options: Mapping[str, Any]  # of [`~Task.predict`]

    @cached_property
    def reports(self) -> dict[str, dict[str, float]]:
        """Metrics of all rows, of [`~metrics.TrainingOverlap.groups`], and of each kind of prediction."""
        return self.reports_of(self.predictions)

    def reports_of(self, predictions: Sequence[Any]) -> dict[str, dict[str, float]]:
        """Return the metrics of the given predictions for the same rows."""
        kinds: dict[str, list[int]] = {}
        for row, prediction in enumerate(predictions):
            if kind := getattr(prediction, "kind", None):
                kinds.setdefault(kind, []).append(row)
        groups = self.overlap.groups(self.texts) | dict(sorted(kinds.items()))
        return {name: self.task.report([predictions[row] for row in rows]) for name, rows in groups.items()}

    @cached_property
    def metrics(self) -> dict[str, Any]:
        """Metrics and search settings of the split, as written to `metrics.json`."""
        record = {"scheme": self.task.scheme} | {name: self.options[name] for name in self.task.recorded}
        return record | {"reports": self.reports, "training_texts": self.overlap.record(self.texts)}

    @property
    def record(self) -> dict[str, Any]:
        """Return the metrics with data to compare two models row by row: `outcomes`, a "1" for each correct and a "0"
        for each wrong row, and `examples`, the `predictions` and `labels` with six digits; empty if unknown."""
        right = [getattr(prediction, "is_right", None) for prediction in self.predictions]
        numbers = [getattr(prediction, "numbers", None) for prediction in self.predictions]
        examples = {}
        if numbers and None not in numbers:
            lines = (" ".join(f"{number:.6g}" for number in column) for column in zip(*numbers, strict=True))
            examples = dict(zip(("predictions", "labels"), lines, strict=True))
        outcomes = "" if None in right else "".join("01"[each] for each in right)
        return self.metrics | {"outcomes": outcomes, "examples": examples}

    @property
    def failures(self) -> dict[tuple[str, str], int]:
        """Number of wrong predictions by the reason for the failure and its meaning, the most frequent first."""
        found = (getattr(prediction, "failure", None) for prediction in self.predictions)
        return dict(Counter(each for each in found if each is not None).most_common())

    @property
    def heading(self) -> str:
        """Description of the split and the recorded options."""
        options = [f"{name.replace('_', ' ')} {self.options[name]!r}" for name in self.task.recorded]
        return ", ".join([f"{self.split} split ({self.task.scheme})", *options])

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield each prediction as a dictionary that also tells whether the model was trained on its text."""
        for text, prediction in zip(self.texts, self.predictions, strict=True):
            yield prediction.to_dict() | self.overlap.flags(text)


def evaluate(
    args: EvaluateArguments, data_args: MeasuredTaskArguments, reporter: Reporter = SILENT
) -> tuple[Evaluation, dict[str, Any], Path]:
    """
    Evaluate a model on a split of a task, and write each prediction with the reason for its failure to a file: `hf-mwp
    evaluate`. Processes under `accelerate launch` share the rows. A killed run on math word problems resumes. Raises
    `UsageError` if model and data do not match, or the folder belongs to another model. Returns the evaluation; its
    [`Evaluation.metrics`] with [`~Task.details`] and, if re-ranked, `reports_without_reranking`; and the path of the
    predictions.
    """
    device = find_device(args.device)
    with RunFolder(_output_folder(args, data_args), "evaluate", option_values(args, data_args)) as folder:
        folder.check_record()
        before = last_options(folder.path) or folder.values
        for name in ("model", "task", "dataset", "data_dir", "split_scheme", "fold", "split", "reverse_held_out"):
            old, now = (str(options.get(name)) for options in (before, folder.values))
            if Path(old).resolve() != Path(now).resolve():
                raise UsageError(f"{folder.path} contains the evaluation of {old} ({name}). Choose another folder.")
        data_args = copy.copy(data_args)
        if args.split == "test":
            # Test problems are compared with all problems that a model may have been trained on.
            data_args.validation_fraction = 0.0
        elif args.split == "train":
            data_args.max_train_samples = data_args.max_eval_samples or data_args.max_train_samples
        task = make_task(data_args)
        _check_search(task, args)
        print_data_report(task, reporter)
        model, processor = task.load_model(args.model, args.split)
        if args.random_sparsity:
            model = zero_random_weights(model, args.random_sparsity, args.seed)
        path, unfinished = folder.path / "predictions.jsonl", folder.path / "unfinished"
        options = _predict_options(task, args) | {"batch_size": args.batch_size, "progress": reporter.progress()}
        if task.solves:
            options["reranker"], options["num_beams"] = args.load_reranker(processor)
            options["unfinished"] = unfinished
        if args.half_precision:
            dtype = model.dtype
            model.half().to(dtype)
        folder.begin()
        evaluation = evaluate_split(task, model.to(device), processor, args.split, share=True, **options)
        metrics = evaluation.metrics | {"calibration": None} | task.details(evaluation.predictions)
        if options.get("reranker") is not None:
            without = evaluation.reports_of([each.without_reranking() for each in evaluation.predictions])
            metrics |= {"reranked": True, "reports_without_reranking": without}
        # Wait until all processes have read each other's predictions.
        wait_for_all()
        if is_main_process():
            write_json_lines(path, evaluation.records())
            if unfinished.exists():
                remove_folder(unfinished)
            folder.write_json("data.json", task.data_record())
            folder.finish({"model": args.model, "dataset": task.name, args.split: evaluation.record | metrics})
    return evaluation, metrics, path


def _check_search(task: Task, args: EvaluateArguments) -> None:
    """Raise `UsageError` if an option of the search is set that the task does not use."""
    unused = set() if task.solves else {"num_beams", "max_decode_length", "answer_match", "rerank", "reranker"}
    unused -= {*task.recorded, "max_decode_length"} if "num_beams" in task.recorded else set()
    check_used(args, options_in(EvaluateArguments).keys() - unused, "does not apply to this `task`. Remove it")


def _predict_options(task: Task, args: Any, num_beams: int | None = None) -> dict[str, Any]:
    """Return the options of [`~Task.predict`] from a trainer's config or `EvaluateArguments`."""
    options = {name: getattr(args, name) for name in task.recorded}
    if "num_beams" in options:
        options |= {"num_beams": num_beams or args.num_beams or 1, "max_decode_length": args.max_decode_length}
    return options


def _output_folder(args: EvaluateArguments, data_args: MeasuredTaskArguments) -> Path:
    if args.output_dir is not None:
        return Path(args.output_dir)
    fold = [] if data_args.fold is None else [f"fold{data_args.fold}"]
    data = Path(data_args.dataset or data_args.task).name
    return Path("runs") / "_".join(["evaluate", Path(args.model).resolve().name, data, *fold, args.split])


def evaluate_split(
    task: Task, model: PreTrainedModel, processor: Any, split: str, share: bool = False, **options
) -> Evaluation:
    """Evaluate a model on a split with options of [`~Task.predict`]. With `share`, which all processes must set, each
    process predicts a part of the rows. Raises `UsageError` if the split has no rows."""
    rows = list(task.rows(split))
    predict = partial(task.predict, model, processor, **options)
    predictions = share_rows(predict, rows) if share and not task.solves else predict(rows)
    # If the model has no record of its training texts, texts are compared with the training split.
    train = None if split == "train" else task.rows("train", needed=False)
    overlap = TrainingOverlap.of(model, None if train is None else train["text"])
    return Evaluation(task, split, [row["text"] for row in rows], predictions, overlap, options)


def evaluate_splits(
    task: Task, model: PreTrainedModel, processor: Any, config: Any, args: Any, reporter: Reporter = SILENT
) -> dict[str, Evaluation]:
    """Evaluate a trained model, on the main process, on the validation and (with `args.test`) test split, if any."""
    beams, found = {"validation": None} | ({"test": args.test_num_beams} if args.test else {}), {}
    for split in beams if is_main_process() else ():
        if task.rows(split, needed=False) is not None:
            options = {"batch_size": config.per_device_eval_batch_size, "progress": reporter.progress()}
            options |= _predict_options(task, config, beams[split])
            found[split] = evaluate_split(task, model, processor, split, **options)
    return found


def measure_splits(
    task: Task, model: PreTrainedModel, processor: Any, config: Any, args: Any, reporter: Reporter = SILENT
) -> dict[str, dict[str, Any]]:
    """Move a model to the config's device, and return the [`Evaluation.record`] of each of [`evaluate_splits`]."""
    found = evaluate_splits(task, model.to(config.device), processor, config, args, reporter)
    return {split: evaluation.record for split, evaluation in found.items()}
