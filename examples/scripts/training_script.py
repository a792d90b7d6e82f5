"""Options and steps that the scripts of this folder share."""

import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from datasets import Dataset, DatasetDict, load_dataset
from torch import Tensor
from transformers import HfArgumentParser, Trainer, TrainingArguments, set_seed
from transformers.trainer_utils import PredictionOutput, get_last_checkpoint

from hf_mwp import HeadPruningCallback


# Loaders of `datasets` by the ending of a file; other files have JSON lines.
LOADERS = {".csv": "csv", ".txt": "text"}


@dataclass(kw_only=True)
class CompressionArguments:
    """Options of hf_mwp. Without them, a script trains with the `Trainer` of Transformers."""

    teacher_model: str | None = field(default=None, metadata={"help": "Model to distil: folder or Hub id."})
    max_ratio: float | None = field(default=None, metadata={"help": "Share of the attention heads to remove."})

    def callbacks(self) -> list[HeadPruningCallback]:
        """Return the callbacks of the training."""
        if self.max_ratio is None:
            return []
        return [HeadPruningCallback(max_ratio=self.max_ratio)]


@dataclass(kw_only=True)
class ScriptArguments(CompressionArguments):
    """Options of all scripts: the compression, the model, and a dataset of the Hub or files."""

    model_name_or_path: str = field(metadata={"help": "Model to train: folder or Hub id."})
    trust_remote_code: bool = field(
        default=False, metadata={"help": "Run the code in the repositories of the models."}
    )
    dataset_name: str | None = field(default=None, metadata={"help": "Dataset: Hub id or folder."})
    dataset_config_name: str | None = field(default=None, metadata={"help": "Configuration of the dataset."})
    train_file: str | None = field(default=None, metadata={"help": "File of training rows, instead of a dataset."})
    validation_file: str | None = field(default=None, metadata={"help": "File of rows for --do_eval."})
    test_file: str | None = field(default=None, metadata={"help": "File of rows for --do_predict."})
    max_train_samples: int | None = field(default=None, metadata={"help": "Number of training rows to use."})
    max_eval_samples: int | None = field(default=None, metadata={"help": "Number of rows of other splits to use."})

    def load_splits(self) -> DatasetDict:
        """
        Load the dataset or the files.

        Raises:
            ValueError: Neither a dataset nor a file is given.
        """
        files: dict[str, str] = {}
        for split in ("train", "validation", "test"):
            path = getattr(self, f"{split}_file")
            if path is not None:
                files[split] = path
        if self.dataset_name is not None:
            splits = load_dataset(self.dataset_name, self.dataset_config_name)
        elif files:
            ending = Path(next(iter(files.values()))).suffix
            splits = load_dataset(LOADERS.get(ending, "json"), data_files=files)
        else:
            raise ValueError("There are no data. Set --dataset_name, or --train_file and --validation_file.")
        for split, rows in splits.items():
            limit = self.max_train_samples if split == "train" else self.max_eval_samples
            if limit is not None:
                splits[split] = rows.select(range(min(limit, len(rows))))
        return splits


def parse_arguments(
    script_class: type[ScriptArguments],
    training_class: type[TrainingArguments],
    distillation_class: type[TrainingArguments],
) -> tuple[Any, Any]:
    """Return the options of the script and the arguments of its trainer, with `--teacher_model` of
    `distillation_class`, otherwise of `training_class`, and set the seed. The first argument may be a YAML file of
    options, which those after it replace."""
    arguments = sys.argv[1:]
    if arguments and Path(arguments[0]).suffix == ".yaml":
        arguments = _read_options(arguments[0]) + arguments[1:]
    first_parser = HfArgumentParser(CompressionArguments, add_help=False, allow_abbrev=False)
    compression, _ = first_parser.parse_args_into_dataclasses(arguments, return_remaining_strings=True)
    args_class = training_class if compression.teacher_model is None else distillation_class
    options, args = HfArgumentParser((script_class, args_class)).parse_args_into_dataclasses(arguments)
    set_seed(args.seed)
    return options, args


def _read_options(path: str) -> list[str]:
    """Return the options of a YAML file as arguments of the command line. Options without a value are left out."""
    arguments: list[str] = []
    for name, value in yaml.safe_load(Path(path).read_text(encoding="utf-8")).items():
        if value is not None:
            values = value if isinstance(value, list) else [value]
            arguments += [f"--{name}", *map(str, values)]
    return arguments


def encode_splits(data: Mapping[str, Dataset], encode: Callable[..., Mapping[str, Any]]) -> dict[str, Dataset]:
    """Return the encoded rows of each split, without their other columns. `encode` encodes a batch of rows."""
    splits: dict[str, Dataset] = {}
    for split, rows in data.items():
        splits[split] = rows.map(encode, batched=True, remove_columns=rows.column_names)
    return splits


def validation_rows(splits: Mapping[str, Dataset]) -> Dataset | None:
    """Return the first split for evaluations, or `None`. MNLI has two."""
    for split, rows in splits.items():
        if split.startswith("validation"):
            return rows
    return None


def run(
    trainer: Trainer,
    splits: Mapping[str, Dataset],
    describe: Callable[[Mapping[str, float], str], Mapping[str, float]] | None = None,
) -> PredictionOutput | None:
    """
    Train, evaluate and predict, as `--do_train`, `--do_eval` and `--do_predict` ask for. A training resumes from the
    last checkpoint in the output folder.

    Args:
        trainer (`Trainer`): The trainer.
        splits (`Mapping[str, Dataset]`): Encoded rows of `train`, `test` and all splits named `validation...`.
        describe (`Callable`, *optional*): Function of metrics and their prefix that returns further metrics.

    Returns:
        `PredictionOutput`: The predictions of `test`, or `None`.

    Raises:
        ValueError: The split for `--do_predict` or all splits for `--do_eval` are missing.
    """
    args = trainer.args
    validation_splits = [split for split in splits if split.startswith("validation")]
    if args.do_eval and not validation_splits:
        raise ValueError("--do_eval needs a split `validation`. Set --validation_file, or choose another dataset.")
    if args.do_predict and "test" not in splits:
        raise ValueError("--do_predict needs a split `test`. Set --test_file, or choose another dataset.")
    output = None
    if args.do_train:
        checkpoint = args.resume_from_checkpoint
        if checkpoint is None and os.path.isdir(args.output_dir):
            checkpoint = get_last_checkpoint(args.output_dir)
        result = trainer.train(resume_from_checkpoint=checkpoint)
        trainer.save_model()
        trainer.save_state()
        _report(trainer, "train", result.metrics)
    if args.do_eval:
        for split in validation_splits:
            prefix = split.replace("validation", "eval")
            metrics = trainer.evaluate(splits[split], metric_key_prefix=prefix)
            if describe is not None:
                metrics |= describe(metrics, prefix)
            _report(trainer, prefix, metrics)
    if args.do_predict:
        output = trainer.predict(splits["test"], metric_key_prefix="predict")
        _report(trainer, "predict", output.metrics)
    if args.push_to_hub:
        trainer.push_to_hub()
    elif trainer.is_world_process_zero():
        trainer.create_model_card()
    return output


def _report(trainer: Trainer, name: str, metrics: Mapping[str, float]) -> None:
    trainer.log_metrics(name, metrics)
    trainer.save_metrics(name, metrics)


def most_likely(logits: Tensor, labels: Tensor) -> Tensor:
    """Return the most likely class of each prediction, for `preprocess_logits_for_metrics`."""
    return logits.argmax(-1)


def perplexity(metrics: Mapping[str, float], prefix: str) -> dict[str, float]:
    """Return the perplexity of a language model, for `run`."""
    return {f"{prefix}_perplexity": math.exp(metrics[f"{prefix}_loss"])}


def write_lines(trainer: Trainer, lines: Iterable[Any]) -> None:
    """Write one prediction per line to `predictions.txt` in the output folder."""
    if trainer.is_world_process_zero():
        path = Path(trainer.args.output_dir) / "predictions.txt"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
