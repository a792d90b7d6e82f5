"""
Distils causal language models of math word problems, with and without hidden states: a Llama-shaped teacher learns
problems and their equations, students of half and quarter width learn from it. Perplexity on held-out texts and the
accuracy of generated equations are written as a table (JSON, Markdown and a picture).

    python examples/causal_math.py --budget quick
    python examples/causal_math.py --budget cpu --new_data FOLDER --output_dir runs/causal_math

`FOLDER` has Math23k in English (`math23k_en_train.jsonl.gz`); without it, the study has no such problems. Completed
stages are skipped, interrupted ones resume, and the results have all students that are completed.
"""

import argparse
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from causal_study.texts import full_text, read_rows, train_tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

from hf_mwp.compress.trainers.causal_rows import CausalCollator, tokenize_causal_rows
from hf_mwp.utils.files import read_json, write_json
from hf_mwp.utils.job import Job


PROGRAM = "causal_math.py"
TEACHER_SEED = 42
VALIDATION_SHARE = 40  # one of so many training texts chooses the best checkpoint


@dataclass(frozen=True)
class Budget:
    """Sizes of data, models and training. Widths of heads stay the same in students."""

    datasets: tuple[str, ...]
    max_rows: int | None
    vocab_size: int
    layers: int
    hidden_size: int
    intermediate_size: int
    heads: int
    key_value_heads: int
    teacher_steps: int
    student_steps: int
    batch_size: int
    learning_rate: float
    save_steps: int
    bf16: bool


BUDGETS = {
    "quick": Budget(
        datasets=("mawps",),
        max_rows=200,
        vocab_size=400,
        layers=2,
        hidden_size=32,
        intermediate_size=64,
        heads=4,
        key_value_heads=2,
        teacher_steps=20,
        student_steps=5,
        batch_size=8,
        learning_rate=1e-3,
        save_steps=5,
        bf16=False,
    ),
    "cpu": Budget(
        datasets=("mawps", "gsm8k"),
        max_rows=None,
        vocab_size=4_000,
        layers=6,
        hidden_size=256,
        intermediate_size=768,
        heads=4,
        key_value_heads=2,
        teacher_steps=4_500,
        student_steps=1_000,
        batch_size=32,
        learning_rate=1e-3,
        save_steps=300,
        bf16=True,
    ),
}


class CausalStudy:
    """The stages of the study, each a [`Job`] in a folder of its own."""

    def __init__(self, budget: str, output_dir: Path, data_dir: str | None, new_data: str | None) -> None:
        self.budget_name = budget
        self.budget = BUDGETS[budget]
        self.output_dir = output_dir
        self.data_dir = data_dir
        self.new_data = new_data
        data_fields = {
            "datasets": self.budget.datasets,
            "max_rows": self.budget.max_rows,
            "translated": new_data is not None,
            "vocab_size": self.budget.vocab_size,
        }
        self.data_job = Job.named(output_dir, "data", data_fields)
        teacher_fields = {
            **self.teacher_sizes(),
            **self.training_options(),
            "max_steps": self.budget.teacher_steps,
            "seed": TEACHER_SEED,
            "data": self.data_job.fingerprint,
        }
        self.teacher_job = Job.named(output_dir, "teacher", teacher_fields)

    def prepare_data(self) -> None:
        """Read the texts and train the tokenizer."""

        def work() -> None:
            rows = read_rows(self.budget.datasets, self.data_dir, self.new_data, self.budget.max_rows)
            write_json(self.data_job.path / "rows.json", rows)
            texts = [full_text(row) for row in rows["train"]]
            train_tokenizer(texts, self.budget.vocab_size).save_pretrained(self.data_job.path)

        self.data_job.run(work)
        self.rows = read_json(self.data_job.path / "rows.json")
        self.tokenizer = AutoTokenizer.from_pretrained(self.data_job.path)
        texts = [{"text": full_text(row)} for row in self.rows["train"]]
        random.Random(0).shuffle(texts)
        num_validation = len(texts) // VALIDATION_SHARE
        self.validation = tokenize_causal_rows(texts[:num_validation], self.tokenizer)
        self.train = tokenize_causal_rows(texts[num_validation:], self.tokenizer)

    def train_teacher(self) -> None:
        """Train the teacher from random weights."""

        def work() -> None:
            trainer = Trainer(
                model=self.make_teacher(),
                args=TrainingArguments(
                    self.teacher_job.path,
                    max_steps=self.budget.teacher_steps,
                    seed=TEACHER_SEED,
                    **self.training_options(),
                ),
                train_dataset=self.train,
                eval_dataset=self.validation,
                data_collator=CausalCollator(self.tokenizer),
                processing_class=self.tokenizer,
            )
            trainer.train(resume_from_checkpoint=self.teacher_job.checkpoint)
            trainer.save_model()

        self.teacher_job.run(work)

    def make_teacher(self) -> LlamaForCausalLM:
        """Return a Llama with grouped queries and random weights."""
        torch.manual_seed(TEACHER_SEED)
        config = LlamaConfig(
            **self.teacher_sizes(),
            vocab_size=len(self.tokenizer),
            max_position_embeddings=512,
            tie_word_embeddings=True,
            pad_token_id=self.tokenizer.pad_token_id,
            bos_token_id=None,
            eos_token_id=self.tokenizer.eos_token_id,
        )
        return LlamaForCausalLM(config)

    def teacher_sizes(self) -> dict[str, int]:
        """Return the sizes of the teacher, as fields of its config."""
        budget = self.budget
        return {
            "hidden_size": budget.hidden_size,
            "intermediate_size": budget.intermediate_size,
            "num_hidden_layers": budget.layers,
            "num_attention_heads": budget.heads,
            "num_key_value_heads": budget.key_value_heads,
        }

    def training_options(self) -> dict[str, Any]:
        """Return the arguments of training that teacher and students share."""
        return {
            "per_device_train_batch_size": self.budget.batch_size,
            "train_sampling_strategy": "group_by_length",
            "learning_rate": self.budget.learning_rate,
            "lr_scheduler_type": "cosine",
            "warmup_steps": 0.03,
            "weight_decay": 0.1,
            "max_grad_norm": 1.0,
            "bf16": self.budget.bf16,
            "use_cpu": True,
            "per_device_eval_batch_size": 64,
            "eval_strategy": "steps",
            "eval_steps": self.budget.save_steps,
            "save_steps": self.budget.save_steps,
            "load_best_model_at_end": True,
            "save_total_limit": 1,
            "logging_steps": 50,
            "report_to": "none",
            "disable_tqdm": True,
            "dataloader_pin_memory": False,
        }


def main(argv: list[str] | None = None) -> int:
    """Run the stages that are not completed."""
    args = parser().parse_args(argv)
    study = CausalStudy(args.budget, args.output_dir, args.data_dir, args.new_data)
    study.prepare_data()
    print(f"{len(study.rows['train']):,} training texts, {len(study.rows['test']):,} held-out texts")
    study.train_teacher()
    return 0


def parser() -> argparse.ArgumentParser:
    """Return the parser of the options."""
    parser = argparse.ArgumentParser(
        prog=PROGRAM, description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", choices=list(BUDGETS), default="quick", help="size of the study")
    parser.add_argument("--output_dir", type=Path, default=Path("runs/causal_math"), help="folder of the stages")
    parser.add_argument("--data_dir", help="folder of MAWPS and GSM8K; examples/data by default")
    parser.add_argument("--new_data", help="folder of Math23k in English")
    return parser


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:
        sys.exit(f"{PROGRAM}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)
