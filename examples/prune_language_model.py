"""
Prune a causal language model, and distil the rest from the original model:

    python examples/prune_language_model.py --model google/gemma-3-270m --neurons 0.2 --uniform \
        --train_file examples/data/gsm8k/train.jsonl.gz --validation_file examples/data/gsm8k/test.jsonl.gz \
        --text_columns question answer --max_train_samples 2000 --max_eval_samples 200 --max_length 128 \
        --output_dir runs/pruned

The output folder has the pruned model (`cut`), the model after distillation (`mended`) and, with `--uniform`, the same
model as one of Transformers' own class (`stock`), which needs no code of hf_mwp. `metrics.json` has the perplexity,
parameters and seconds of each stage. Run the command again to resume: completed stages are skipped.

Options of `CausalLMDistillationConfig` are also accepted: `--max_steps`, `--learning_rate`, `--bf16`, ...
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset, load_dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, HfArgumentParser, PreTrainedModel, set_seed

from hf_mwp import CausalLMDistillationConfig, DistillationTrainer, export_dense
from hf_mwp.compress.metrics.efficiency import count_parameters
from hf_mwp.compress.pruning import KnowledgeableScores, RemovedUnits, measure_scores, prune
from hf_mwp.compress.pruning.removed_units import check_sparsity
from hf_mwp.compress.trainers.base_trainer import BaseTrainer
from hf_mwp.compress.trainers.causal_rows import CausalCollator, tokenize_causal_rows
from hf_mwp.utils.files import write_json
from hf_mwp.utils.job import Job
from hf_mwp.utils.option import WITHOUT_EFFECT
from hf_mwp.utils.run_folder import START_OPTIONS, describe_environment, plain


# Continues a prompt in a process that cannot import hf_mwp, with each of several models.
GENERATE = """
import json, sys

sys.modules["hf_mwp"] = None
from transformers import AutoModelForCausalLM, AutoTokenizer

prompt, length, *folders = sys.argv[1:]
texts = []
for folder in folders:
    model = AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True)
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    inputs = tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
    tokens = model.generate(**inputs, max_new_tokens=int(length), do_sample=False)[0]
    text = tokenizer.decode(tokens, skip_special_tokens=True)
    texts.append({"class": type(model).__name__, "text": text})
print(json.dumps(texts))
"""


@dataclass
class PruningArguments:
    """The model, its texts, and what is removed."""

    model: str = field(metadata={"help": "Causal language model: folder or Hub id."})
    train_file: str = field(metadata={"help": "JSON lines with `text`, `prompt` and `completion`, or `messages`."})
    validation_file: str = field(metadata={"help": "Rows in the same form, to measure the perplexity."})
    gguf_file: str | None = field(default=None, metadata={"help": "GGUF file in the folder or repository."})
    text_columns: list[str] | None = field(default=None, metadata={"help": "Columns to join to texts, by lines."})
    max_train_samples: int | None = field(default=None, metadata={"help": "Number of training rows to use."})
    max_eval_samples: int | None = field(default=None, metadata={"help": "Number of validation rows to use."})
    neurons: float = field(default=0.2, metadata={"help": "Share of the feed-forward neurons to remove."})
    heads: float = field(default=0.0, metadata={"help": "Share of the attention heads to remove."})
    unit: str = field(default="group", metadata={"help": "Heads removed together.", "choices": ["group", "query"]})
    uniform: bool = field(default=False, metadata={"help": "Remove equally many units of each layer."})
    scored_rows: int = field(default=64, metadata={"help": "Number of training rows that score the units."})
    train_embeddings: bool = field(default=False, metadata={"help": "Also train the tables of tokens."})
    new_tokens: int = field(default=32, metadata={"help": "Number of tokens to generate."})


@dataclass
class MendingConfig(CausalLMDistillationConfig):
    """[`CausalLMDistillationConfig`] with defaults for a pruned model that learns from the original."""

    output_dir: str = "runs/pruned_language_model"
    max_steps: int = 200
    # With 1e-4 and batches of two rows, the loss of Gemma 3 270M rose in the first 20 steps.
    learning_rate: float = 2e-5
    # The teacher's probabilities alone, as in Muralidharan et al. (Compact Language Models via Pruning and Knowledge
    # Distillation, NeurIPS 2024) for models with all layers. The labels would also adapt the model to the texts.
    soft_label_weight: float = 1.0
    prediction_weight: float = 1.0
    hidden_loss: str | None = None
    save_steps: float = 50
    save_total_limit: int | None = 1
    report_to: None | str | list[str] = "none"


class PrunedLanguageModel:
    """
    Stages of the pruning, each a [`Job`] in a folder of its own.

    Args:
        options ([`PruningArguments`]): The model, the texts, and what is removed.
        config ([`MendingConfig`]): Arguments of the distillation.

    Raises:
        UsageError: A share is not at least 0 and below 1, or the output folder has results of other options.
        ValueError: Both shares are 0.
    """

    def __init__(self, options: PruningArguments, config: MendingConfig) -> None:
        for share in (options.neurons, options.heads):
            check_sparsity(share)
        if not options.neurons and not options.heads:
            raise ValueError("Nothing would be removed. Set --neurons or --heads above 0.")
        self.options = options
        self.config = config
        self.folder = Path(config.output_dir)
        self.tokenizer = AutoTokenizer.from_pretrained(
            options.model, gguf_file=options.gguf_file, trust_remote_code=False
        )
        values = asdict(options)
        training = {}
        for name, value in config.to_dict().items():
            if name not in WITHOUT_EFFECT and name not in START_OPTIONS:
                training[name] = value
        measured = ("model", "gguf_file", "validation_file", "text_columns", "max_eval_samples")
        scored = ("train_file", "max_train_samples", "scored_rows")
        removed = ("neurons", "heads", "unit", "uniform")
        depends_on = {name: values[name] for name in measured}
        depends_on["max_length"] = config.max_length
        self.original = self._job("original", depends_on)
        depends_on = depends_on | {name: values[name] for name in scored}
        self.scores = self._job("scores", depends_on)
        depends_on = depends_on | {name: values[name] for name in removed}
        self.cut = self._job("cut", depends_on)
        depends_on = depends_on | {"train_embeddings": options.train_embeddings, "training": plain(training)}
        self.mended = self._job("mended", depends_on)
        self.stock = self._job("stock", depends_on)
        self.texts = self._job("texts", depends_on | {"new_tokens": options.new_tokens})

    def _job(self, name: str, depends_on: Mapping[str, Any]) -> Job:
        job = Job(self.folder / name, depends_on)
        job.check_folder()
        return job

    def run(self) -> dict[str, Any]:
        """Run the stages that are not complete, and return the content of `metrics.json`."""
        stages = {"original": self._measure_original, "scores": self._score, "cut": self._cut, "mended": self._mend}
        if self.options.uniform:
            stages["stock"] = self._export
        stages["texts"] = self._generate
        results = {}
        for name, work in stages.items():
            job = getattr(self, name)
            print(f"{name}: {'complete' if job.is_done else 'running'}", flush=True)
            job.run(work)
            results[name] = job.metrics | {"seconds": job.record["seconds"]}
        options = asdict(self.options) | {"training": plain(self.config.to_sanitized_dict())}
        metrics = {"stages": results, "options": options, **describe_environment()}
        write_json(self.folder / "metrics.json", metrics)
        return metrics

    def _measure_original(self) -> None:
        model = load_model(self.options.model, self.options.gguf_file)
        if self.options.gguf_file is not None:
            self._save(model, self.original)
        self._measure(model, self.original)

    def _score(self) -> None:
        model = self._load_original().requires_grad_(False).to(self.config.device)
        is_half = self.config.bf16 or self.config.fp16
        dtype = torch.float16 if self.config.fp16 else torch.bfloat16
        with torch.autocast(self.config.device.type, dtype, enabled=is_half):
            scores = measure_scores(model, self._batches(self.options.scored_rows))
        scores.save(self.scores.path)
        write_json(self.scores.path / "metrics.json", dict(scores.about))

    def _cut(self) -> None:
        options = self.options
        # The gradient of the model's own loss, divided by the norm of its layer.
        scores = KnowledgeableScores.load(self.scores.path).combined(1.0)
        heads = RemovedUnits.lowest(scores, options.heads, unit=options.unit, uniform=options.uniform).heads
        neurons = RemovedUnits.lowest(scores, options.neurons, unit=options.unit, uniform=options.uniform).neurons
        model = prune(self._load_original(), heads, neurons)
        self._save(model, self.cut)
        self._measure(model, self.cut)

    def _mend(self) -> None:
        student = AutoModelForCausalLM.from_pretrained(self.cut.path, trust_remote_code=False)
        if not self.options.train_embeddings:
            student.get_input_embeddings().requires_grad_(False)
            student.get_output_embeddings().requires_grad_(False)
        trainer = DistillationTrainer(
            model=student,
            teacher_model=self._load_original(),
            args=replace(self.config, output_dir=str(self.mended.path)),
            train_dataset=self._rows("train"),
            eval_dataset=self._rows("validation"),
            processing_class=self.tokenizer,
        )
        trainer.train(resume_from_checkpoint=self.mended.checkpoint)
        trainer.save_model()
        trainer.save_state()
        self._write_metrics(self.mended, student, trainer.evaluate())

    def _export(self) -> None:
        model = export_dense(AutoModelForCausalLM.from_pretrained(self.mended.path, trust_remote_code=False))
        self._save(model, self.stock)
        self._measure(model, self.stock)

    def _generate(self) -> None:
        """Generate a text with each model, also in a new process, which shows that the folders are complete."""
        folders = [str(job.path) for job in (self.cut, self.mended, self.stock) if job.is_done]
        prompt = self._prompt()
        command = [sys.executable, "-c", GENERATE, prompt, str(self.options.new_tokens), *folders]
        result = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if result.returncode:
            raise RuntimeError(f"{folders} do not load in a new process: {result.stderr[-2000:]}")
        generated = {"original": {"text": self._continue(self._load_original(), prompt)}}
        reloaded = json.loads(result.stdout.splitlines()[-1])
        for folder, result_of_folder in zip(folders, reloaded, strict=True):
            text = self._continue(AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=False), prompt)
            if result_of_folder["text"] != text:
                raise RuntimeError(f"{folder} generates {result_of_folder['text']!r} in a new process, here {text!r}.")
            generated[Path(folder).name] = result_of_folder
        write_json(self.texts.path / "metrics.json", generated)

    def _continue(self, model: PreTrainedModel, prompt: str) -> str:
        inputs = self.tokenizer(prompt, return_tensors="pt", return_token_type_ids=False)
        tokens = model.generate(**inputs, max_new_tokens=self.options.new_tokens, do_sample=False)[0]
        return self.tokenizer.decode(tokens, skip_special_tokens=True)

    def _prompt(self) -> str:
        """Return the first half of the first validation row."""
        tokens = self._rows("validation")[0]["input_ids"]
        return self.tokenizer.decode(tokens[: max(1, len(tokens) // 2)], skip_special_tokens=True)

    def _load_original(self) -> PreTrainedModel:
        if self.options.gguf_file is None:
            return load_model(self.options.model)
        return load_model(str(self.original.path))

    def _rows(self, split: str) -> Dataset:
        """Return the tokenised rows of the training or validation file."""
        options = self.options
        path = options.train_file
        limit = options.max_train_samples
        if split == "validation":
            path = options.validation_file
            limit = options.max_eval_samples
        rows = load_dataset("json", data_files=path, split="train")
        if limit is not None:
            rows = rows.select(range(min(limit, len(rows))))
        if options.text_columns is not None:
            missing = set(options.text_columns) - set(rows.column_names)
            if missing:
                raise ValueError(f"{path} has no columns {sorted(missing)}. Set --text_columns, or leave it out.")
            columns = {"columns": options.text_columns}
            rows = rows.map(join_columns, fn_kwargs=columns, remove_columns=rows.column_names)
        return tokenize_causal_rows(
            rows,
            self.tokenizer,
            max_length=self.config.max_length,
            completion_only_loss=self.config.completion_only_loss,
        )

    def _batches(self, num_rows: int) -> Iterator[dict[str, Any]]:
        """Yield batches of the first training rows."""
        rows = self._rows("train")
        collate = CausalCollator(self.tokenizer)
        size = self.config.per_device_train_batch_size
        num_rows = min(num_rows, len(rows))
        for start in range(0, num_rows, size):
            indices = range(start, min(start + size, num_rows))
            yield collate(list(rows.select(indices)))

    def _save(self, model: PreTrainedModel, job: Job) -> None:
        model.save_pretrained(job.path)
        self.tokenizer.save_pretrained(job.path)

    def _measure(self, model: PreTrainedModel, job: Job) -> None:
        """Write the perplexity on the validation rows and the size of a model."""
        args = replace(self.config, output_dir=str(job.path))
        rows = self._rows("validation")
        trainer = BaseTrainer(model=model, args=args, eval_dataset=rows, processing_class=self.tokenizer)
        self._write_metrics(job, model, trainer.evaluate())

    def _write_metrics(self, job: Job, model: PreTrainedModel, evaluated: Mapping[str, float]) -> None:
        metrics = {
            "loss": evaluated["eval_loss"],
            "perplexity": evaluated["eval_perplexity"],
            "parameters": count_parameters(model),
            "parameters_without_embeddings": count_parameters(model, embeddings=False),
        }
        write_json(job.path / "metrics.json", metrics)


def join_columns(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, str]:
    """Return a row with the texts of some columns, one below the other."""
    return {"text": "\n".join(str(row[name]) for name in columns)}


def load_model(name: str, gguf_file: str | None = None) -> PreTrainedModel:
    """Load a causal language model in single precision. The weights of a GGUF file are de-quantised."""
    if gguf_file is None:
        return AutoModelForCausalLM.from_pretrained(name, dtype=torch.float32, trust_remote_code=False)
    quantised = AutoModelForCausalLM.from_pretrained(
        name, gguf_file=gguf_file, dtype=torch.float32, trust_remote_code=False
    )
    # Transformers neither saves nor trains a model that it counts as quantised.
    fields = quantised.config.to_dict()
    fields.pop("quantization_config", None)
    config = type(quantised.config).from_dict(fields)
    return type(quantised).from_pretrained(None, config=config, state_dict=quantised.state_dict())


def print_table(stages: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the perplexity, the parameters and the seconds of each stage with a model."""
    print("| model | parameters (M) | without embeddings (M) | perplexity | seconds |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for name, metrics in stages.items():
        if "perplexity" in metrics:
            parameters = metrics["parameters"] / 1e6
            without_embeddings = metrics["parameters_without_embeddings"] / 1e6
            cells = f"{parameters:.1f} | {without_embeddings:.1f} | {metrics['perplexity']:.2f}"
            print(f"| {name} | {cells} | {metrics['seconds']:.0f} |")


def main(argv: Sequence[str] | None = None) -> int:
    """Read the command line, prune, distil and check the model."""
    options, config = HfArgumentParser((PruningArguments, MendingConfig)).parse_args_into_dataclasses(argv)
    set_seed(config.seed)
    metrics = PrunedLanguageModel(options, config).run()
    print_table(metrics["stages"])
    for name, generated in metrics["stages"]["texts"].items():
        if isinstance(generated, dict):
            print(f"{name}: {generated['text']}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (OSError, ValueError) as error:
        sys.exit(f"prune_language_model.py: {error}")
