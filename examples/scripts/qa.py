"""
Fine-tune a model that finds the answer to a question in a text, as `run_qa.py` of Transformers does:

    python examples/scripts/qa.py --model_name_or_path distilbert/distilbert-base-uncased \
        --dataset_name rajpurkar/squad --do_train --do_eval --output_dir runs/squad

`--teacher_model csarron/bert-base-uncased-squad-v1` also learns from this model, `--max_ratio 0.3` removes 30 % of the
attention heads. JSON files have the columns of SQuAD: `id`, `question`, `context` and `answers` (`text`,
`answer_start`). Questions without an answer (SQuAD 2) need `--version_2_with_negative`.
"""

import json
from dataclasses import dataclass, field

import numpy as np
from transformers import AutoModelForQuestionAnswering, AutoTokenizer, Trainer, TrainingArguments

from hf_mwp import DistillationConfig, DistillationTrainer
from question_answers import answer_scores, answer_tokens, find_answers
from training_script import ScriptArguments, encode_splits, parse_arguments, run, validation_rows, write_lines


@dataclass(kw_only=True)
class QuestionArguments(ScriptArguments):
    """Options of the task."""

    max_seq_length: int = field(default=384, metadata={"help": "Maximum number of tokens in a row."})
    doc_stride: int = field(default=128, metadata={"help": "Tokens that two parts of a long text share."})
    max_answer_length: int = field(default=30, metadata={"help": "Maximum number of tokens in an answer."})
    version_2_with_negative: bool = field(default=False, metadata={"help": "Questions may have no answer."})


def main() -> None:
    """Train, evaluate and answer."""
    options, args = parse_arguments(QuestionArguments, TrainingArguments, DistillationConfig)
    # `Trainer` would also order evaluation rows by length, but predictions are matched with rows by their order.
    if args.train_sampling_strategy == "group_by_length" and options.teacher_model is None:
        raise ValueError("Set `--train_sampling_strategy random`, or pass `--teacher_model`.")
    data = options.load_splits()
    model = AutoModelForQuestionAnswering.from_pretrained(
        options.model_name_or_path, trust_remote_code=options.trust_remote_code
    )
    tokenizer = AutoTokenizer.from_pretrained(options.model_name_or_path, trust_remote_code=options.trust_remote_code)

    def encode(rows):
        encoded = tokenizer(
            rows["question"],
            rows["context"],
            truncation="only_second",
            max_length=options.max_seq_length,
            stride=options.doc_stride,
            return_overflowing_tokens=True,
            return_offsets_mapping=True,
        )
        columns = {"example_id": [], "offset_mapping": [], "start_positions": [], "end_positions": []}
        for feature, row in enumerate(encoded.pop("overflow_to_sample_mapping")):
            offsets = []
            for sequence, span in zip(encoded.sequence_ids(feature), encoded["offset_mapping"][feature], strict=True):
                offsets.append(span if sequence == 1 else (-1, -1))
            start, end = answer_tokens(offsets, rows["answers"][row])
            columns["example_id"].append(rows["id"][row])
            columns["offset_mapping"].append(offsets)
            columns["start_positions"].append(start)
            columns["end_positions"].append(end)
        return {**encoded, **columns}

    with args.main_process_first():
        splits = encode_splits(data, encode)
    if "test" in splits:
        # Without labels, no metrics are computed.
        splits["test"] = splits["test"].remove_columns(["start_positions", "end_positions"])
    eval_rows = validation_rows(data)
    eval_features = validation_rows(splits)
    search = {"max_answer_length": options.max_answer_length, "may_be_empty": options.version_2_with_negative}

    def compute_metrics(prediction):
        answers = find_answers(prediction.predictions, eval_features, eval_rows, **search)
        scores = []
        for row in eval_rows:
            scores.append(answer_scores(answers[row["id"]], row["answers"]["text"]))
        exact_match, f1 = np.mean(scores, axis=0)
        return {"exact_match": 100 * exact_match, "f1": 100 * f1}

    trainer_arguments = {
        "model": model,
        "args": args,
        "train_dataset": splits.get("train"),
        "eval_dataset": eval_features,
        "processing_class": tokenizer,
        "compute_metrics": compute_metrics,
        "callbacks": options.callbacks(),
    }
    if options.teacher_model is None:
        trainer = Trainer(**trainer_arguments)
    else:
        teacher = AutoModelForQuestionAnswering.from_pretrained(
            options.teacher_model, trust_remote_code=options.trust_remote_code
        )
        trainer = DistillationTrainer(teacher_model=teacher, **trainer_arguments)
    output = run(trainer, splits)
    if output is not None:
        answers = find_answers(output.predictions, splits["test"], data["test"], **search)
        write_lines(trainer, map(json.dumps, answers.items()))


if __name__ == "__main__":
    main()
