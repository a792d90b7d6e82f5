"""
Train a causal language model on texts, as `run_clm.py` of Transformers does, on prompts or on conversations:

    python examples/scripts/clm.py --model_name_or_path Qwen/Qwen3-0.6B --train_file train.jsonl \
        --validation_file dev.jsonl --block_size 1024 --do_train --do_eval --output_dir runs/clm

or with the options of a file:

    python examples/scripts/clm.py examples/compress_llm.yaml

`--teacher_model Qwen/Qwen3-1.7B` also learns from this model, `--max_ratio 0.3` removes 30 % of the attention heads.
Files have one text per line or, as JSON, columns `text`, `prompt` and `completion`, or `messages`, as in TRL.
"""

from dataclasses import dataclass, field

from transformers import AutoModelForCausalLM, AutoTokenizer, Trainer, TrainingArguments

from hf_mwp import CausalLMDistillationConfig, DistillationTrainer
from hf_mwp.compress.trainers.causal_rows import CausalCollator, tokenize_causal_rows
from training_script import ScriptArguments, parse_arguments, perplexity, run, validation_rows


@dataclass(kw_only=True)
class CausalArguments(ScriptArguments):
    """Options of the task."""

    block_size: int | None = field(default=None, metadata={"help": "Maximum number of tokens in a row."})
    dtype: str = field(default="float32", metadata={"help": "Type of the trained weights, or auto as in the folder."})
    pack_rows: bool = field(default=False, metadata={"help": "Join training rows to rows of block_size tokens."})


def main() -> None:
    """Train and evaluate."""
    options, args = parse_arguments(CausalArguments, TrainingArguments, CausalLMDistillationConfig)
    model = AutoModelForCausalLM.from_pretrained(
        options.model_name_or_path, trust_remote_code=options.trust_remote_code, dtype=options.dtype
    )
    tokenizer = AutoTokenizer.from_pretrained(options.model_name_or_path, trust_remote_code=options.trust_remote_code)
    splits = {}
    with args.main_process_first():
        for split, rows in options.load_splits().items():
            is_packed = options.pack_rows and split == "train"
            splits[split] = tokenize_causal_rows(rows, tokenizer, max_length=options.block_size, packing=is_packed)
    trainer_arguments = {
        "model": model,
        "args": args,
        "data_collator": CausalCollator(tokenizer),
        "train_dataset": splits.get("train"),
        "eval_dataset": validation_rows(splits),
        "processing_class": tokenizer,
        "callbacks": options.callbacks(),
    }
    if options.teacher_model is None:
        trainer = Trainer(**trainer_arguments)
    else:
        teacher = AutoModelForCausalLM.from_pretrained(
            options.teacher_model, trust_remote_code=options.trust_remote_code
        )
        trainer = DistillationTrainer(teacher_model=teacher, **trainer_arguments)
    run(trainer, splits, perplexity)


if __name__ == "__main__":
    main()
