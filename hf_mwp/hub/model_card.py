"""Model cards from what the runs recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from transformers import PreTrainedModel

from ..metrics import count_parameters


PAPER = "A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025)"
CITATION = """@inproceedings{ming2025compact,
    title = {A Compact Model for Mathematics Problem Representations Distilled from BERT},
    author = {Hao Ming and Xinguo Yu and Xiaotian Cheng and Zhenquan Shen and Xiaopan Lyu},
    booktitle = {Proceedings of the AAAI Conference on Artificial Intelligence},
    year = {2025}
}"""
USAGE = {
    "mwp_student": """```python
import hf_mwp
from transformers import AutoModel, AutoTokenizer

encoder = AutoModel.from_pretrained("{model_id}")
tokenizer = AutoTokenizer.from_pretrained("{model_id}")
states = encoder(**tokenizer("{example}", return_tensors="pt")).last_hidden_state
```

Without hf_mwp: `AutoModel.from_pretrained("{model_id}", trust_remote_code=True)`.""",
    "mwp_solver": """```python
import hf_mwp
from transformers import pipeline

solver = pipeline("math-word-problem", model="{model_id}")
solver("{example}")
```

or `hf-mwp solve --model {model_id} "{example}"`.""",
}
EXAMPLES = {
    "zh": "小明有4个苹果和2个梨，一共有多少个水果？",
    "en": "Tom has 4 apples and 2 pears. How many fruits does he have?",
}


@dataclass(frozen=True)
class TrainingStage:
    """
    A step of a model's making.

    Args:
        name (`str`): What it is called in the recipe.
        command (`str`): The command that was run.
        options (`Mapping[str, Any]`): Its options, as far as they were set.
        record (`Mapping[str, Any]`): What its `run.json` holds; may be empty.
    """

    name: str
    command: str
    options: Mapping[str, Any]
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelFigures:
    """
    How a solver did on a part of a data set.

    Args:
        model (`str`): Whose figures: `"this model"`, `"teacher"`.
        dataset (`str`): Name of the data set.
        part (`str`): Which part of it.
        num_beams (`int`): Beams of the search.
        rule (`str`): What was a right answer, see [`metrics.answers_match`].
        reports (`Mapping[str, Mapping[str, float]]`): Results of [`metrics.accuracy_report`] by group of problems.
    """

    model: str
    dataset: str
    part: str
    num_beams: int
    rule: str
    reports: Mapping[str, Mapping[str, float]]


def build_model_card(
    model: PreTrainedModel,
    model_id: str,
    figures: Sequence[ModelFigures] = (),
    stages: Sequence[TrainingStage] = (),
    language: str = "zh",
    license: str | None = None,
    summary: str = "",
    notes: str = "",
) -> ModelCard:
    """
    Writes the card of a student or solver: what it is, how it is loaded, how it was made and how well it does. All
    figures come from the arguments.

    Args:
        model (`PreTrainedModel`): The model.
        model_id (`str`): Folder or Hub id by which it is loaded.
        figures (`Sequence[ModelFigures]`, *optional*): What was measured; those of `"this model"` also go to the
            metadata, which the Hub shows.
        stages (`Sequence[TrainingStage]`, *optional*): How it was made.
        language (`str`, *optional*, defaults to `"zh"`): Language of the problems.
        license (`str`, *optional*): Licence identifier of the weights.
        summary (`str`, *optional*): First paragraph.
        notes (`str`, *optional*): Sources, licences and limits that the records do not know, as Markdown.

    Returns:
        `ModelCard`: to be saved as `README.md`.
    """
    kind = model.config.model_type
    data = ModelCardData(
        language=language,
        license=license,
        library_name="transformers",
        pipeline_tag="feature-extraction" if kind == "mwp_student" else None,
        tags=["hf_mwp", "math-word-problems", "knowledge-distillation", kind],
        model_name=model_id.rstrip("/").rpartition("/")[2],
        eval_results=[result for each in figures for result in _eval_results(each)] or None,
        datasets=sorted({each.dataset for each in figures}) or None,
    )
    usage = USAGE[kind].format(model_id=model_id, example=EXAMPLES.get(language, EXAMPLES["en"]))
    sections = [
        f"# {data.model_name}",
        summary,
        f"Architecture: {_architecture(model)}. Method: {PAPER}.",
        f"## How to use\n\n{usage}",
        _figures_section(figures),
        _stages_section(stages),
        notes,
        f"## Citation\n\n```bibtex\n{CITATION}\n```",
    ]
    text = "\n\n".join(section.strip() for section in sections if section.strip())
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{text}\n")


def _architecture(model: PreTrainedModel) -> str:
    config = model.config
    encoder = getattr(config, "encoder_config", config)
    text = (
        f"{encoder.num_hidden_layers} transformer layers of width {encoder.hidden_size}, feed-forward "
        f"{encoder.intermediate_size}, {encoder.num_attention_heads} heads, {encoder.vocab_size:,} tokens"
    )
    if encoder is not config:
        text += f", goal-driven tree decoder (GTS) of width {config.decoder_config.hidden_size}"
    return f"{text}; {count_parameters(model):,} parameters"


def _eval_results(figures: ModelFigures) -> list[EvalResult]:
    if figures.model != "this model":
        return []
    search = "greedy" if figures.num_beams == 1 else f"beam {figures.num_beams}"
    return [
        EvalResult(
            task_type="math-word-problem",
            dataset_type=figures.dataset,
            dataset_name=figures.dataset,
            # Results of the same data set are told apart by this field alone.
            dataset_config=f"{figures.part}, {group}",
            metric_type=f"{metric}, {search}",
            metric_value=round(100 * report[metric], 2),
        )
        for group, report in figures.reports.items()
        for metric in ("answer_accuracy", "equation_accuracy")
        if metric in report
    ]


def _figures_section(figures: Sequence[ModelFigures]) -> str:
    if not figures:
        return ""
    rows = [
        "| model | data | problems | search | answers % | equations % |",
        "| --- | --- | ---: | --- | ---: | ---: |",
    ]
    for each in figures:
        search = "greedy" if each.num_beams == 1 else f"beam {each.num_beams}"
        for group, report in each.reports.items():
            answers, equations = (_percent(report.get(f"{name}_accuracy")) for name in ("answer", "equation"))
            count = int(report.get("num_problems", 0))
            rows.append(
                f"| {each.model} | {each.dataset}, {each.part}: {group} | {count:,} | {search} | {answers} | "
                f"{equations} |"
            )
    rules = " and ".join(sorted({f'"{each.rule}"' for each in figures}))
    rule = f"An answer is right by the rule {rules} of `hf-mwp evaluate`."
    return "## Figures\n\n" + "\n".join(rows) + f"\n\n{rule}"


def _stages_section(stages: Sequence[TrainingStage]) -> str:
    if not stages:
        return ""
    parts = ["## How it was made"]
    for stage in stages:
        record = stage.record
        lines = [f"**{stage.name}**: `{stage.command}`" + _circumstances(record)]
        options = ", ".join(f"`{key}: {value}`" for key, value in stage.options.items())
        parts.append("\n".join(lines) + (f"\\\n{options}" if options else ""))
    versions = next((stage.record["libraries"] for stage in stages if stage.record.get("libraries")), {})
    if versions:
        parts.append("Versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()) + ".")
    return "\n\n".join(parts)


def _circumstances(record: Mapping[str, Any]) -> str:
    known = []
    if record.get("seed") is not None:
        known.append(f"seed {record['seed']}")
    if record.get("wall_seconds") is not None:
        known.append(f"{record['wall_seconds']:,.0f} s")
    machine = record.get("machine") or {}
    if machine:
        threads = f"{machine.get('torch_threads')} CPU thread(s) of {machine.get('cores')} cores"
        known.append(machine.get("accelerator") or threads)
    return f" ({', '.join(known)})" if known else ""


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"
