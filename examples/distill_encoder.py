"""
Distil a narrow encoder for any task on raw text by hidden states only, without labels or masked tokens, as the CKA
paper distils BERT before fine-tuning on GLUE.

    pip install -e '.[demo]'
    python examples/distill_encoder.py --corpus gsm8k mawps --hidden_size 192
    hf-mwp train --task rte --encoder runs/encoder --output_dir runs/rte

Options of `DistillationConfig` are also accepted: `--hidden_loss`, `--learning_rate`, `--num_train_epochs`, ...
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from datasets import Dataset
from transformers import AutoModel, AutoTokenizer, DataCollatorWithPadding, HfArgumentParser

from hf_mwp import DistillationConfig, DistillationTrainer
from hf_mwp.commands.building.model_sources import resolve_encoder
from hf_mwp.compress.distillation import project_student
from hf_mwp.compress.models.architecture import count_positions
from hf_mwp.solver.corpus import read_texts
from hf_mwp.solver.metrics import describe_compression


@dataclass
class Arguments:
    """Teacher, texts, and the student's size."""

    corpus: list[str] = field(metadata={"help": "Text files with one text per line, or names of datasets."})
    teacher: str = field(default="all-MiniLM-L6-v2", metadata={"help": "Folder or Hub id of an encoder."})
    layers: int = field(default=3, metadata={"help": "Number of layers in the student, evenly spaced in the teacher."})
    hidden_size: int = field(default=192, metadata={"help": "The student's width, at most the teacher's."})
    heads: int = field(default=12, metadata={"help": "The student's attention heads in each layer."})
    max_length: int = field(default=128, metadata={"help": "Maximum number of tokens in a text."})
    max_texts: int | None = field(default=None, metadata={"help": "Maximum number of texts."})
    validation_fraction: float = field(default=0.02, metadata={"help": "Share of the texts held out."})


@dataclass
class EncoderDistillationConfig(DistillationConfig):
    """[`DistillationConfig`] with defaults for distillation by hidden states only."""

    output_dir: str = "runs/encoder"
    prediction_weight: float = 0.0
    hidden_loss: str | None = "cka"
    layer_mapping: str = "alternating"
    embedding_weight: float = 0.0
    # Learning rate and batch size in the paper.
    learning_rate: float = 2e-4
    per_device_train_batch_size: int = 32
    warmup_steps: float = 0.05
    eval_strategy: str = "epoch"
    save_strategy: str = "epoch"
    save_total_limit: int = 1
    report_to: str = "none"


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line, distil, and save the student."""
    args, config = HfArgumentParser((Arguments, EncoderDistillationConfig)).parse_args_into_dataclasses(argv)
    source = resolve_encoder(args.teacher)
    teacher = AutoModel.from_pretrained(source, use_safetensors=True, trust_remote_code=False)
    tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
    texts = list(islice(read_texts(args.corpus), args.max_texts))
    length = min(args.max_length, count_positions(teacher.config))
    rows = []
    for text in texts:
        rows.append(dict(tokenizer(text, truncation=True, max_length=length)))
    splits = Dataset.from_list(rows).train_test_split(args.validation_fraction, seed=config.seed)
    train = splits["train"]
    collate = DataCollatorWithPadding(tokenizer)
    num_sampled = min(256, len(train))
    sampled_rows = list(train.select(range(num_sampled)))
    sample = [collate(sampled_rows)]
    depth = teacher.config.num_hidden_layers
    student = project_student(
        teacher,
        args.hidden_size,
        intermediate_size=min(4 * args.hidden_size, teacher.config.intermediate_size),
        num_attention_heads=args.heads,
        layers=[depth * (layer + 1) // args.layers - 1 for layer in range(args.layers)],
        sample=sample,
    )
    print(describe_compression(student, teacher))
    trainer = DistillationTrainer(
        model=student,
        teacher_model=teacher,
        args=config,
        data_collator=collate,
        train_dataset=train,
        eval_dataset=splits["test"],
        processing_class=tokenizer,
    )
    trainer.train(resume_from_checkpoint=config.resume_from_checkpoint)
    trainer.save_model()
    print(f"{config.output_dir} has the encoder; held-out loss {trainer.evaluate()['eval_loss']:.4f}.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:
        sys.exit(f"distill_encoder.py: {error}")
