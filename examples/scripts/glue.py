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

from transformers import AutoModelForSequenceClassification, AutoTokenizer, Trainer, TrainingArguments

from hf_mwp import DistillationConfig, DistillationTrainer
from hf_mwp.compress.metrics.glue import GLUE_FIGURES
from training_script import ScriptArguments, encode_splits, parse_arguments, run, validation_rows, write_lines


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
    label_column = rows_with_labels.features["label"]
    is_regression = label_column.dtype.startswith("float")
    classes: list[Any] = ["score"]
    metric_names = ["spearman"]
    if not is_regression:
        classes = getattr(label_column, "names", None) or sorted(rows_with_labels.unique("label"))
        metric_names = METRICS.get(options.task_name, ["accuracy"])
    model = AutoModelForSequenceClassification.from_pretrained(
        options.model_name_or_path,
        trust_remote_code=options.trust_remote_code,
        id2label=dict(enumerate(map(str, classes))),
        label2id={str(name): index for index, name in enumerate(classes)},
    )
    tokenizer = AutoTokenizer.from_pretrained(options.model_name_or_path, trust_remote_code=options.trust_remote_code)

    def encode(rows):
        texts = [rows[column] for column in text_columns]
        encoded = tokenizer(*texts, truncation=True, max_length=options.max_seq_length)
        labels = rows.get("label")
        # The test splits of GLUE have the label -1 in all rows.
        if labels is not None and set(labels) != {-1}:
            encoded["labels"] = labels
            if not is_regression and labels[0] in classes:
                # Classes of files. Datasets of the Hub have numbered labels.
                encoded["labels"] = [classes.index(label) for label in labels]
        return encoded

    with args.main_process_first():
        splits = encode_splits(data, encode)

    def answers_of(logits):
        return logits[:, 0] if is_regression else logits.argmax(-1)

    def compute_metrics(prediction):
        answers = answers_of(prediction.predictions)
        return {name: GLUE_FIGURES[name](answers, prediction.label_ids) for name in metric_names}

    trainer_arguments = {
        "model": model,
        "args": args,
        "train_dataset": splits.get("train"),
        "eval_dataset": validation_rows(splits),
        "processing_class": tokenizer,
        "compute_metrics": compute_metrics,
        "callbacks": options.callbacks(),
    }
    if options.teacher_model is None:
        trainer = Trainer(**trainer_arguments)
    else:
        teacher = AutoModelForSequenceClassification.from_pretrained(
            options.teacher_model, trust_remote_code=options.trust_remote_code
        )
        trainer = DistillationTrainer(teacher_model=teacher, **trainer_arguments)
    output = run(trainer, splits)
    if output is not None:
        answers = answers_of(output.predictions)
        write_lines(trainer, answers if is_regression else [classes[index] for index in answers])


if __name__ == "__main__":
    main()
