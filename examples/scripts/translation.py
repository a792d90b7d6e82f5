"""
Fine-tune a translation model, as `run_translation.py` of Transformers does:

    python examples/scripts/translation.py --model_name_or_path Helsinki-NLP/opus-mt-en-de --source_lang en \
        --target_lang de --train_file train.jsonl --validation_file dev.jsonl --predict_with_generate \
        --do_train --do_eval --output_dir runs/translation

`--teacher_model NAME` also learns from this model, which must have the same vocabulary, `--max_ratio 0.3` removes 30 %
of the attention heads. Rows of JSON files have a column `translation` with a text in each language; CSV files have a
column for each language. BLEU and chrF need `pip install 'hf-mwp[seq2seq]'`.
"""

from dataclasses import dataclass, field

from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
)

from hf_mwp import Seq2SeqDistillationConfig, Seq2SeqDistillationTrainer
from hf_mwp.compress.metrics.text_generation import text_report
from hf_mwp.compress.trainers.generate_texts import decode_texts
from training_script import ScriptArguments, encode_splits, parse_arguments, run, validation_rows, write_lines


@dataclass(kw_only=True)
class TranslationArguments(ScriptArguments):
    """Options of the task."""

    source_lang: str = field(metadata={"help": "Source language: key in `translation`, or column."})
    target_lang: str = field(metadata={"help": "Target language."})
    source_prefix: str = field(default="", metadata={"help": "Text before each source text, for T5."})
    max_source_length: int = field(default=256, metadata={"help": "Maximum number of tokens in a source text."})
    max_target_length: int = field(default=128, metadata={"help": "Maximum number of tokens in a target text."})


def main() -> None:
    """Train, evaluate and translate."""
    options, args = parse_arguments(TranslationArguments, Seq2SeqTrainingArguments, Seq2SeqDistillationConfig)
    data = options.load_splits()
    model = AutoModelForSeq2SeqLM.from_pretrained(
        options.model_name_or_path, trust_remote_code=options.trust_remote_code
    )
    tokenizer = AutoTokenizer.from_pretrained(options.model_name_or_path, trust_remote_code=options.trust_remote_code)
    if hasattr(tokenizer, "tgt_lang"):
        # mBART, M2M100 and NLLB read and write many languages.
        tokenizer.src_lang = options.source_lang
        tokenizer.tgt_lang = options.target_lang
        model.generation_config.forced_bos_token_id = tokenizer.convert_tokens_to_ids(options.target_lang)

    def encode(rows):
        if "translation" in rows:
            sources = [pair[options.source_lang] for pair in rows["translation"]]
            targets = [pair[options.target_lang] for pair in rows["translation"]]
        else:
            sources = rows[options.source_lang]
            targets = rows[options.target_lang]
        prefixed = [options.source_prefix + source for source in sources]
        encoded = tokenizer(prefixed, truncation=True, max_length=options.max_source_length)
        targets = tokenizer(text_target=targets, truncation=True, max_length=options.max_target_length)
        encoded["labels"] = targets["input_ids"]
        return encoded

    with args.main_process_first():
        splits = encode_splits(data, encode)

    def compute_metrics(prediction):
        translations = decode_texts(tokenizer, prediction.predictions)
        references = decode_texts(tokenizer, prediction.label_ids)
        return text_report(translations, references, language=options.target_lang)

    trainer_arguments = {
        "model": model,
        "args": args,
        "data_collator": DataCollatorForSeq2Seq(tokenizer, model),
        "train_dataset": splits.get("train"),
        "eval_dataset": validation_rows(splits),
        "processing_class": tokenizer,
        "compute_metrics": compute_metrics if args.predict_with_generate else None,
        "callbacks": options.callbacks(),
    }
    if options.teacher_model is None:
        trainer = Seq2SeqTrainer(**trainer_arguments)
    else:
        teacher = AutoModelForSeq2SeqLM.from_pretrained(
            options.teacher_model, trust_remote_code=options.trust_remote_code
        )
        trainer = Seq2SeqDistillationTrainer(teacher_model=teacher, **trainer_arguments)
    output = run(trainer, splits)
    if output is not None and args.predict_with_generate:
        write_lines(trainer, decode_texts(tokenizer, output.predictions))


if __name__ == "__main__":
    main()
