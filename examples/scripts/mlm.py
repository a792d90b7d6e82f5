"""
Train a masked language model on texts, as `run_mlm.py` of Transformers does:

    python examples/scripts/mlm.py --model_name_or_path distilbert/distilbert-base-uncased \
        --train_file texts.txt --validation_file others.txt --do_train --do_eval --output_dir runs/mlm

`--teacher_model google-bert/bert-base-uncased` also learns from this model, which must have the same tokenizer,
`--max_ratio 0.3` removes 30 % of the attention heads. Text files have one text per line, CSV and JSON files a column
`text`.
"""

from dataclasses import dataclass, field
from itertools import chain

from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)

from hf_mwp import DistillationConfig, DistillationTrainer
from training_script import (
    ScriptArguments,
    encode_splits,
    most_likely,
    parse_arguments,
    perplexity,
    run,
    validation_rows,
)


@dataclass(kw_only=True)
class MaskedArguments(ScriptArguments):
    """Options of the task."""

    text_column_name: str = field(default="text", metadata={"help": "Column of the texts."})
    max_seq_length: int = field(default=128, metadata={"help": "Number of tokens in a row."})
    line_by_line: bool = field(default=False, metadata={"help": "Make a row of each text instead of joining texts."})
    mlm_probability: float = field(default=0.15, metadata={"help": "Share of the tokens that are masked."})


def compute_metrics(prediction):
    """Return the accuracy at masked tokens."""
    is_masked = prediction.label_ids != -100
    is_right = prediction.predictions[is_masked] == prediction.label_ids[is_masked]
    return {"accuracy": float(is_right.mean())}


def main() -> None:
    """Train and evaluate."""
    options, args = parse_arguments(MaskedArguments, TrainingArguments, DistillationConfig)
    data = options.load_splits()
    model = AutoModelForMaskedLM.from_pretrained(
        options.model_name_or_path, trust_remote_code=options.trust_remote_code
    )
    tokenizer = AutoTokenizer.from_pretrained(options.model_name_or_path, trust_remote_code=options.trust_remote_code)
    length = options.max_seq_length

    def encode_lines(rows):
        return tokenizer(rows[options.text_column_name], truncation=True, max_length=length)

    def encode_joined(rows):
        """Join all texts of a batch, and divide them into rows of equal length."""
        encoded = tokenizer(rows[options.text_column_name], return_attention_mask=False)
        tokens = list(chain.from_iterable(encoded["input_ids"]))
        return {"input_ids": [tokens[start : start + length] for start in range(0, len(tokens), length)]}

    with args.main_process_first():
        splits = encode_splits(data, encode_lines if options.line_by_line else encode_joined)
    trainer_arguments = {
        "model": model,
        "args": args,
        "data_collator": DataCollatorForLanguageModeling(tokenizer, mlm_probability=options.mlm_probability),
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
        teacher = AutoModelForMaskedLM.from_pretrained(
            options.teacher_model, trust_remote_code=options.trust_remote_code
        )
        trainer = DistillationTrainer(teacher_model=teacher, **trainer_arguments)
    run(trainer, splits, perplexity)


if __name__ == "__main__":
    main()
