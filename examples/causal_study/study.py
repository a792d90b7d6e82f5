"""Stages of the study: data, teacher, students and their evaluation."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoTokenizer,
    LlamaConfig,
    LlamaForCausalLM,
    Trainer,
    TrainingArguments,
)

from hf_mwp import CausalLMDistillationConfig, DistillationTrainer, make_causal_student
from hf_mwp.compress.trainers.causal_rows import CausalCollator, tokenize_causal_rows
from hf_mwp.utils.files import read_json, write_json
from hf_mwp.utils.job import Job
from hf_mwp.utils.run_folder import describe_environment
from reproduce.report import write_report
from reproduce.table_result import TableResult

from .budgets import BUDGETS
from .evaluation import evaluate, top_k_losses
from .results import read_run, study_table, top_k_table
from .students import LOSSES, STUDENT_ARMS, StudentArm
from .texts import full_text, read_rows, train_tokenizer


TEACHER_SEED = 42
TOP_K_ARM = StudentArm("half", "none")
TOP_K_SIZES = (1, 4, 16, 64, 256)
VALIDATION_SHARE = 40  # one of so many training texts chooses the best checkpoint


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
            **self.evaluation_options(),
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
        self.tokenizer = AutoTokenizer.from_pretrained(self.data_job.path, trust_remote_code=False)
        rows = read_json(self.data_job.path / "rows.json")
        self.test_rows = rows["test"]
        self.datasets = list(dict.fromkeys(row["dataset"] for row in self.test_rows))
        texts = [{"text": full_text(row)} for row in rows["train"]]
        random.Random(0).shuffle(texts)
        num_validation = len(texts) // VALIDATION_SHARE
        self.validation_rows = tokenize_causal_rows(texts[:num_validation], self.tokenizer)
        self.train_rows = tokenize_causal_rows(texts[num_validation:], self.tokenizer)

    def train_teacher(self) -> None:
        """Train the teacher from random weights."""

        def work() -> None:
            config = TrainingArguments(
                self.teacher_job.path,
                max_steps=self.budget.teacher_steps,
                seed=TEACHER_SEED,
                **self.training_options(),
                **self.evaluation_options(),
            )
            trainer = Trainer(
                model=self.make_teacher(),
                args=config,
                train_dataset=self.train_rows,
                eval_dataset=self.validation_rows,
                data_collator=CausalCollator(self.tokenizer),
                processing_class=self.tokenizer,
            )
            trainer.train(resume_from_checkpoint=self.teacher_job.checkpoint)
            trainer.save_model()

        self.teacher_job.run(work)

    def train_student(self, arm: StudentArm, seed: int) -> None:
        """Distil a student."""
        job = self.student_job(arm, seed)

        def work() -> None:
            teacher = self.load(self.teacher_job)
            student = make_causal_student(
                teacher, self.budget.layers, hidden_size=arm.hidden_size(self.budget.hidden_size)
            )
            config = CausalLMDistillationConfig(job.path, seed=seed, **self.student_options(arm))
            trainer = DistillationTrainer(
                model=student,
                teacher_model=teacher,
                args=config,
                train_dataset=self.train_rows,
                processing_class=self.tokenizer,
            )
            trainer.train(resume_from_checkpoint=job.checkpoint)
            trainer.save_model()

        job.run(work)

    def evaluate(self, model_job: Job) -> None:
        """Compute the figures of a trained model."""
        job = self.evaluation_job(model_job)

        def work() -> None:
            model = self.load(model_job)
            write_json(job.path / "metrics.json", evaluate(model, self.tokenizer, self.test_rows))

        job.run(work)

    def compare_top_k(self, seed: int) -> None:
        """Compute the divergence of a student from the most likely tokens of the teacher."""
        student_job = self.student_job(TOP_K_ARM, seed)
        job = self.top_k_job(seed)

        def work() -> None:
            texts = [full_text(row) for row in self.test_rows]
            figures = top_k_losses(
                self.load(self.teacher_job), self.load(student_job), self.tokenizer, texts, TOP_K_SIZES
            )
            write_json(job.path / "metrics.json", figures)

        job.run(work)

    def student_job(self, arm: StudentArm, seed: int) -> Job:
        """Return the training of a student."""
        depends_on = {
            **self.student_options(arm),
            "hidden_size": arm.hidden_size(self.budget.hidden_size),
            "seed": seed,
            "teacher": self.teacher_job.fingerprint,
        }
        return Job.named(self.output_dir, f"{arm.name}-{seed}", depends_on)

    def evaluation_job(self, model_job: Job) -> Job:
        """Return the evaluation of a trained model."""
        name = f"evaluate-{model_job.path.name.rpartition('-')[0]}"
        return Job.named(self.output_dir, name, {"model": model_job.fingerprint})

    def top_k_job(self, seed: int) -> Job:
        """Return the comparison with the most likely tokens of the teacher."""
        student_job = self.student_job(TOP_K_ARM, seed)
        return Job.named(self.output_dir, "top_k", {"sizes": TOP_K_SIZES, "student": student_job.fingerprint})

    @staticmethod
    def load(job: Job) -> LlamaForCausalLM:
        """Return the model of a completed training."""
        return LlamaForCausalLM.from_pretrained(job.path).eval()

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
        """Return the arguments of training that teacher and students share, but for the learning rate of students."""
        return {
            "per_device_train_batch_size": self.budget.batch_size,
            "train_sampling_strategy": "group_by_length",
            "learning_rate": self.budget.teacher_learning_rate,
            "lr_scheduler_type": "cosine",
            "warmup_steps": 0.03,
            "weight_decay": 0.1,
            "max_grad_norm": 1.0,
            "bf16": self.budget.bf16,
            "use_cpu": True,
            "per_device_eval_batch_size": 64,
            "save_steps": self.budget.save_steps,
            "save_total_limit": 1,
            "logging_steps": 50,
            "report_to": "none",
            "disable_tqdm": True,
            "dataloader_pin_memory": False,
        }

    def evaluation_options(self) -> dict[str, Any]:
        """Return the arguments by which the teacher's best checkpoint is chosen."""
        return {"eval_strategy": "steps", "eval_steps": self.budget.save_steps, "load_best_model_at_end": True}

    def student_options(self, arm: StudentArm) -> dict[str, Any]:
        """Return the arguments of the training of students."""
        return {
            **self.training_options(),
            **LOSSES[arm.loss],
            "learning_rate": self.budget.student_learning_rate,
            "max_steps": self.budget.student_steps,
        }

    def results(self, seeds: Sequence[int]) -> list[TableResult]:
        """Return the table of all models that are completed, and, if it is, that of the most likely tokens."""
        budget = self.budget
        teacher = f"random weights, {budget.layers} x {budget.hidden_size}, {budget.teacher_steps:,} steps"
        teacher_jobs = {"teacher": self.teacher_job, "evaluate_teacher": self.evaluation_job(self.teacher_job)}
        runs = {"teacher": [read_run(TEACHER_SEED, teacher_jobs, teacher)]}
        for arm in STUDENT_ARMS:
            runs[arm.name] = []
            for seed in seeds:
                job = self.student_job(arm, seed)
                jobs = {"teacher": self.teacher_job, "distill": job, "evaluate": self.evaluation_job(job)}
                runs[arm.name].append(read_run(seed, jobs, teacher))
        sources = ", ".join(self.datasets)
        steps = f"{budget.student_steps:,} steps of {budget.batch_size} texts"
        fields = {
            "budget": self.budget_name,
            "seeds": list(seeds),
            "data": f"{sources}, {len(self.train_rows):,} training texts, students {steps}",
            "command": f"python examples/causal_math.py --budget {self.budget_name}",
            "environment": describe_environment(),
        }
        tables = [study_table(runs, self.datasets, fields)]
        top_k_job = self.top_k_job(seeds[0])
        if top_k_job.is_done:
            tables.append(top_k_table(top_k_job.metrics, top_k_job, fields))
        return tables

    def write_results(self, seeds: Sequence[int]) -> None:
        """Write the tables as JSON, Markdown and pictures."""
        for table in self.results(seeds):
            write_report(table, self.output_dir)
