"""Results of the study as tables of `reproduce`."""

from collections.abc import Mapping, Sequence
from typing import Any

from hf_mwp.utils.job import Job
from reproduce.metrics import perplexity
from reproduce.table_result import ArmResult, ArmRun, TableResult

from .students import STUDENT_ARMS


PAPER = "Improving Language Model Distillation through Hidden State Matching (ICLR 2025)"
TITLES = {"mawps": "MAWPS", "gsm8k": "GSM8K", "math23k_en": "Math23k in English"}
NOTE = """
The teacher is Llama-shaped with grouped queries and tied embeddings, trained from random weights on the same texts,
problems with masked numbers and their equations; students have as many layers and begin with leading slices of its
weights. All losses have weight 1. Perplexity is per token of held-out texts that have a valid equation and differ from
all training texts in more than their numbers. An answer to one of these problems is right if the value of the equation
that the model generates greedily is. The paper has no such table.
"""
TOP_K_NOTE = """
Divergence of the student (half width, no hidden states, first seed) from the teacher on held-out texts, computed from
the k most likely tokens, the label among them, and the probability of all others together, as a teacher cache stores
them (`cache_top_k`), in 6 k + 2 bytes a token; all tokens take 2 bytes each in half precision.
"""


def measure(metrics: Mapping[str, Any]) -> ArmRun:
    """Return the figures of an evaluated model, without seed and stages."""
    losses = metrics["losses"]
    counts = metrics["num_tokens"]
    run = ArmRun(0, "done")
    run.figures = {
        "perplexity": round(perplexity(losses, counts), 4),
        "parameters": round(metrics["parameters"] / 1e6, 4),
        "core": round(metrics["parameters_without_embeddings"] / 1e6, 4),
    }
    run.counts = {"perplexity": len(losses)}
    run.examples = {"perplexity": {"predictions": _joined(losses), "labels": _joined(counts)}}
    for dataset, outcomes in metrics["outcomes"].items():
        run.figures[dataset] = round(100 * outcomes.count("1") / len(outcomes), 4)
        run.counts[dataset] = len(outcomes)
        run.outcomes[dataset] = outcomes
    return run


def read_run(seed: int, jobs: Mapping[str, Job], teacher: str) -> ArmRun:
    """Return the run of an arm, of which the stages `jobs` are needed; the last one evaluates it."""
    stages = []
    for name, job in jobs.items():
        if not job.is_done:
            return ArmRun(seed)
        record = {"stage": name, "folder": job.path.name, "fingerprint": job.fingerprint}
        stages.append({**record, "seconds": job.record["seconds"]})
    *_, last = jobs.values()
    run = measure(last.metrics)
    run.seed = seed
    run.stages = stages
    run.seconds = round(sum(stage["seconds"] for stage in stages), 1)
    run.teacher = teacher
    return run


def study_table(
    runs: Mapping[str, Sequence[ArmRun]], datasets: Sequence[str], fields: Mapping[str, Any]
) -> TableResult:
    """Return the table of the runs of `"teacher"` and of each student arm. `fields` are further fields of
    [`TableResult`]."""
    columns: list[dict[str, Any]] = [
        {"name": "perplexity", "title": "Perplexity", "unit": "", "metric": "perplexity"},
        {"name": "answers", "title": "Answers", "unit": "%", "pooled_of": list(datasets)},
    ]
    for name in datasets:
        columns.append({"name": name, "title": TITLES[name], "unit": "%", "part_of": "answers"})
    columns.append({"name": "parameters", "title": "Parameters", "unit": "M", "optional": True})
    columns.append({"name": "core", "title": "without embeddings", "unit": "M", "optional": True})
    arms = [ArmResult("teacher", "teacher", runs=list(runs["teacher"]))]
    for arm in STUDENT_ARMS:
        arms.append(ArmResult(arm.name, arm.title, runs=list(runs[arm.name]), compare_with=arm.compare_with))
    title = "Hidden-state matching of causal language models"
    result = TableResult("cka-causal", title, PAPER, NOTE, columns=columns, arms=arms, **fields)
    result.derive()
    return result


def top_k_table(figures: Mapping[str, Mapping[str, float]], job: Job, fields: Mapping[str, Any]) -> TableResult:
    """Return the table of the divergence by the number of stored tokens, which are the keys of `figures`; the last has
    all tokens."""
    columns = [
        {"name": "loss", "title": "Divergence", "unit": "", "optional": True},
        {"name": "share", "title": "Share of the divergence from all tokens", "unit": "%"},
        {"name": "mass", "title": "Stored probability", "unit": "%"},
        {"name": "bytes", "title": "Bytes a token", "unit": "", "optional": True},
    ]
    *sizes, num_tokens = map(int, figures)
    arms = {}
    bytes_of = {}
    for size in sizes:
        arms[size] = ArmResult(f"k-{size}", f"k = {size:,}")
        bytes_of[size] = 6 * size + 2
    arms[num_tokens] = ArmResult("all", f"all {num_tokens:,} tokens")
    bytes_of[num_tokens] = 2 * num_tokens
    full_loss = figures[str(num_tokens)]["loss"]
    seconds = job.record["seconds"]
    stage = {"stage": "top_k", "folder": job.path.name, "fingerprint": job.fingerprint, "seconds": seconds}
    for size, arm in arms.items():
        values = figures[str(size)]
        run = ArmRun(fields["seeds"][0], "done", seconds=seconds, stages=[stage])
        run.figures = {
            "loss": round(values["loss"], 4),
            "share": round(100 * values["loss"] / full_loss, 4),
            "mass": round(100 * values["mass"], 4),
            "bytes": bytes_of[size],
        }
        arm.runs.append(run)
    title = "Divergence from the most likely tokens of a teacher"
    return TableResult("causal-top-k", title, PAPER, TOP_K_NOTE, columns=columns, arms=list(arms.values()), **fields)


def _joined(values: Sequence[float]) -> str:
    return " ".join(f"{value:g}" for value in values)
