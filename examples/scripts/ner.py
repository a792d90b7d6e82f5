"""
Fine-tune a model that tags words, such as named entities, as `run_ner.py` of Transformers does:

    python examples/scripts/ner.py --model_name_or_path distilbert/distilbert-base-cased \
        --train_file train.json --validation_file dev.json --do_train --do_eval --output_dir runs/ner

`--teacher_model dslim/bert-base-NER` also learns from this model, whose tags must be in the same order,
`--max_ratio 0.3` removes 30 % of the attention heads. Rows of JSON files have lists of words in `tokens` and lists of
tags in `ner_tags`.
"""

from dataclasses import dataclass, field
from itertools import chain

from transformers import (
    AutoModelForTokenClassification,
    AutoTokenizer,
    DataCollatorForTokenClassification,
    Trainer,
    TrainingArguments,
)

from hf_mwp import DistillationConfig, DistillationTrainer
from tagging_metrics import tagging_metrics
from training_script import (
    ScriptArguments,
    encode_splits,
    most_likely,
    parse_arguments,
    run,
    validation_rows,
    write_lines,
)


@dataclass(kw_only=True)
class TaggingArguments(ScriptArguments):
    """Options of the task."""

    text_column_name: str = field(default="tokens", metadata={"help": "Column of the words."})
    label_column_name: str = field(default="ner_tags", metadata={"help": "Column of the tags."})
    max_seq_length: int = field(default=128, metadata={"help": "Maximum number of tokens in a row."})


def main() -> None:
    """Train, evaluate and predict."""
    options, args = parse_arguments(TaggingArguments, TrainingArguments, DistillationConfig)
    data = options.load_splits()
    rows_with_tags = next(iter(data.values()))
    names = getattr(rows_with_tags.features[options.label_column_name].feature, "names", None)
    if names is None:
        names = sorted(set(chain.from_iterable(rows_with_tags[options.label_column_name])))
    label2id = {name: index for index, name in enumerate(names)}
    model = AutoModelForTokenClassification.from_pretrained(
        options.model_name_or_path,
        trust_remote_code=options.trust_remote_code,
        id2label=dict(enumerate(names)),
        label2id=label2id,
    )
    tokenizer = AutoTokenizer.from_pretrained(options.model_name_or_path, trust_remote_code=options.trust_remote_code)

    def encode(rows):
        words = rows[options.text_column_name]
        encoded = tokenizer(words, is_split_into_words=True, truncation=True, max_length=options.max_seq_length)
        encoded["labels"] = []
        for row, tags in enumerate(rows[options.label_column_name]):
            labels = []
            previous_word = None
            for word in encoded.word_ids(row):
                # A word is tagged at its first token. Tags of the Hub's datasets are numbers already.
                is_first = word is not None and word != previous_word
                labels.append(label2id.get(tags[word], tags[word]) if is_first else -100)
                previous_word = word
            encoded["labels"].append(labels)
        return encoded

    with args.main_process_first():
        splits = encode_splits(data, encode)

    def tags_of(classes, labels):
        """Return the tags of each text at the tokens that have a label."""
        tags = []
        for row, row_labels in zip(classes, labels, strict=True):
            tags.append([names[index] for index in row[row_labels != -100]])
        return tags

    def compute_metrics(prediction):
        labels = prediction.label_ids
        return tagging_metrics(tags_of(prediction.predictions, labels), tags_of(labels, labels))

    trainer_arguments = {
        "model": model,
        "args": args,
        "data_collator": DataCollatorForTokenClassification(tokenizer),
        "train_dataset": splits.get("train"),
        "eval_dataset": validation_rows(splits),
        "processing_class": tokenizer,
        "compute_metrics": compute_metrics,
        "preprocess_logits_for_metrics": most_likely,
        "callbacks": options.callbacks(),
    }
    if options.teacher_model is None:
        trainer = Trainer(**trainer_arguments)
    else:
        teacher = AutoModelForTokenClassification.from_pretrained(
            options.teacher_model, trust_remote_code=options.trust_remote_code
        )
        trainer = DistillationTrainer(teacher_model=teacher, **trainer_arguments)
    output = run(trainer, splits)
    if output is not None:
        write_lines(trainer, map(" ".join, tags_of(output.predictions, output.label_ids)))


if __name__ == "__main__":
    main()
