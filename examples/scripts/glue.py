"""
Fine-tune a text classifier on a task of GLUE or on files, as `run_glue.py` of Transformers does:

    python examples/scripts/glue.py --task_name sst2 --model_name_or_path distilbert/distilbert-base-uncased \
        --do_train --do_eval --output_dir runs/sst2

`--teacher_model textattack/bert-base-uncased-SST-2` also learns from this classifier, `--max_ratio 0.3` removes 30 %
of the attention heads. CSV and JSON files have one or two columns of texts and a column `label`; if the labels are
decimal numbers, it is a regression (with a teacher: `--prediction_loss mse`).
"""

from dataclasses import dataclass, field
from typing import Any

from training_script import ScriptArguments, parse_arguments, run, write_lines
from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

from hf_mwp import DistillationConfig, DistillationTrainer
from hf_mwp.compress.metrics.glue import GLUE_FIGURES


# Metrics of tasks that are not compared by accuracy only.
METRICS = {"cola": ["matthews"], "mrpc": ["accuracy", "f1"], "qqp": ["accuracy", "f1"]}


@dataclass(kw_only=True)
class GlueArguments(ScriptArguments):
    """Options of the task."""

    task_name: str | None = field(default=None, metadata={"help": "Task of GLUE, such as mrpc."})
    max_seq_length: int = field(default=128, metadata={"help": "Maximum number of tokens in a row."})

    def __post_init__(self) -> None:
        if self.task_name is not None:
            self.dataset_name = "nyu-mll/glue"
            self.dataset_config_name = self.task_name


def main() -> None:
    """Train, evaluate and predict."""
    options, args = parse_arguments(GlueArguments, TrainingArguments, DistillationConfig)
    data = options.load_splits()
    rows_with_labels = next(iter(data.values()))
    text_columns = [name for name in rows_with_labels.column_names if name not in ("label", "idx")][:2]
    is_regression = rows_with_labels.features["label"].dtype.startswith("float")
    label_column = rows_with_labels.features["label"]
    classes: list[Any] = ["score"]
    metric_names = ["spearman"]
    if not is_regression:
        classes = getattr(label_column, "names", None) or sorted(rows_with_labels.unique("label"))
        metric_names = METRICS.get(options.task_name, ["accuracy"])
    model = AutoModelForSequenceClassification.from_pretrained(
        options.model_name_or_path,
        id2label=dict(enumerate(map(str, classes))),
        label2id={str(name): index for index, name in enumerate(classes)},
        ignore_mismatched_sizes=True,
    )
    tokenizer = AutoTokenizer.from_pretrained(options.model_name_or_path)

    def encode(rows):
        texts = [rows[column] for column in text_columns]
        encoded = tokenizer(*texts, truncation=True, max_length=options.max_seq_length)
        labels = rows.get("label")
        # The test splits of GLUE have the label -1.
        if labels is not None and min(labels) != -1:
            is_named = not is_regression and labels[0] in classes
            encoded["labels"] = [classes.index(label) for label in labels] if is_named else labels
        return encoded

    splits = {}
    with args.main_process_first():
        for split, rows in data.items():
            splits[split] = rows.map(encode, batched=True, remove_columns=rows.column_names)

    def compute_metrics(prediction):
        scores = prediction.predictions
        answers = scores[:, 0] if is_regression else scores.argmax(-1)
        return {name: GLUE_FIGURES[name](answers, prediction.label_ids) for name in metric_names}

    trainer_arguments = {
        "model": model,
        "args": args,
        "train_dataset": splits.get("train"),
        "eval_dataset": next((rows for split, rows in splits.items() if split.startswith("validation")), None),
        "processing_class": tokenizer,
        "compute_metrics": compute_metrics,
        "callbacks": options.callbacks(),
    }
    if options.teacher_model is None:
        trainer = Trainer(**trainer_arguments)
    else:
        teacher = AutoModelForSequenceClassification.from_pretrained(options.teacher_model)
        trainer = DistillationTrainer(teacher_model=teacher, **trainer_arguments)
    scores = run(trainer, splits)
    if scores is not None:
        answers = scores[:, 0] if is_regression else [classes[index] for index in scores.argmax(-1)]
        write_lines(trainer, answers)


if __name__ == "__main__":
    main()
