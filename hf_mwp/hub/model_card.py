"""Model cards from what the runs recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from huggingface_hub import EvalResult, ModelCard, ModelCardData
from transformers import PreTrainedModel

from ..data.datasets.sources import LOADERS
from ..data.training_texts import TrainingTexts
from ..distillation.objectives.layers.layer_objective import PAPER_WEIGHTS
from ..losses import HiddenMSELoss
from ..metrics import count_parameters
from ..models import MwpStudentModel, Solver
from ..trainers import DistillationConfig
from .encoder_pooling import has_identity_pooling
from .usage import usage_section


PAPER = "A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025)"
# What a card says of a task of which runs of former versions say nothing. A metric is a column of the figures:
# the key of a report, and that of the number of items that it is a mean over.
TASK = "math-word-problem"
MATH_WORD_PROBLEMS: Mapping[str, Any] = {
    "tags": ["hf_mwp", "math-word-problems"],
    "metrics": {
        "answers": ("answer_accuracy", "num_problems"),
        "equations": ("equation_accuracy", "num_equations"),
    },
}
# Options of stages that name the problems and texts which were trained on; those of `label` come back as equations.
DATA_OPTIONS = ("corpus", "problems", "dataset", "extra_train")


@dataclass(frozen=True)
class TrainingStage:
    """
    A step of a model's making.

    Args:
        name (`str`): What it is called in the recipe.
        command (`str`): The command that was run.
        options (`Mapping[str, Any]`): Its options, as far as they were set, without local paths.
        record (`Mapping[str, Any]`): What its `run.json` holds; may be empty.
        task (`Mapping[str, Any]`): What its `data.json` says of the task, see [`~tasks.Task.card`]; may be empty.
    """

    name: str
    command: str
    options: Mapping[str, Any]
    record: Mapping[str, Any] = field(default_factory=dict)
    task: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelFigures:
    """
    How a solver did on a part of a data set.

    Args:
        model (`str`): Whose figures: `"this model"`, `"teacher"`, `"solver built on it"`.
        dataset (`str`): Name of the data set.
        part (`str`): Which part of it.
        num_beams (`int`, *optional*): Beams of the search, `None` where nothing is searched.
        answer_match (`str`): What was a right answer, see [`metrics.answers_match`].
        reports (`Mapping[str, Mapping[str, float]]`): Results of [`metrics.accuracy_report`] by group of problems.
        remark (`str`): What has to be said beside them, see [`metrics.TrainingOverlap`].
        calibration (`Mapping[str, Any]`, *optional*): Result of [`metrics.calibration_report`] for all problems.
    """

    model: str
    dataset: str
    part: str
    num_beams: int | None
    answer_match: str
    reports: Mapping[str, Mapping[str, float]]
    remark: str = ""
    calibration: Mapping[str, Any] | None = None

    @property
    def search(self) -> str:
        """The search, in words."""
        return {None: "-", 1: "greedy"}.get(self.num_beams, f"beam {self.num_beams}")


def build_model_card(
    model: PreTrainedModel,
    model_id: str,
    figures: Sequence[ModelFigures] = (),
    stages: Sequence[TrainingStage] = (),
    language: str | None = None,
    indexed_numbers: bool = False,
    license: str | None = None,
    summary: str = "",
    notes: str = "",
    training_texts: TrainingTexts | None = None,
) -> ModelCard:
    """
    Writes the card of a student or solver: what it is, how it is loaded, how it was made and how well it does. All
    figures come from the arguments.

    Args:
        model (`PreTrainedModel`): The model.
        model_id (`str`): Folder or Hub id by which it is loaded.
        figures (`Sequence[ModelFigures]`, *optional*): What was measured; those of `"this model"` also go to the
            metadata, which the Hub shows, unless the model is an encoder, which solves nothing by itself.
        stages (`Sequence[TrainingStage]`, *optional*): How it was made; the data sets that their options name go to
            the metadata.
        language (`str`, *optional*): Language of the problems; that of the task, or Chinese, by default.
        indexed_numbers (`bool`, *optional*, defaults to `False`): Whether numbers are read as `[NUM0]`, `[NUM1]`, ...
            and not all as `[NUM]`.
        license (`str`, *optional*): Licence identifier of the weights.
        summary (`str`, *optional*): First paragraph.
        notes (`str`, *optional*): Sources, licences and limits that the records do not know, as Markdown.
        training_texts ([`~data.TrainingTexts`], *optional*): What it was trained on, as far as that is known.

    Returns:
        `ModelCard`: to be saved as `README.md`.
    """
    task = {**MATH_WORD_PROBLEMS, **next((stage.task for stage in reversed(stages) if stage.task), {})}
    language = language or task.get("language") or "zh"
    kind = "mwp_solver" if isinstance(model, Solver) else model.config.model_type
    is_encoder = isinstance(model, MwpStudentModel)
    tag = "feature-extraction" if is_encoder else task.get("pipeline_tag")
    # Of a classifier only if it was distilled.
    is_papers = task.get("pipeline_tag") is None or any(stage.command == "hf-mwp distill" for stage in stages)
    results = [] if is_encoder else [result for each in figures for result in _eval_results(each, task)]
    data = ModelCardData(
        language=language,
        license=license,
        library_name="transformers",
        pipeline_tag=tag,
        tags=[*task["tags"], "knowledge-distillation", kind],
        model_name=model_id.rstrip("/").rpartition("/")[2],
        eval_results=results or None,
        datasets=_data_sets(stages) or None,
    )
    sections = [
        f"# {data.model_name}",
        summary,
        f"Architecture: {_architecture(model)}." + (f" Method: {PAPER}." if is_papers else ""),
        usage_section(tag or TASK, model_id, language, indexed_numbers, task.get("example")),
        _figures_section(figures, task),
        _texts_section(training_texts),
        _stages_section(stages),
        notes,
        f"## Citation\n\n```bibtex\n{HiddenMSELoss().citation}\n```" if is_papers else "",
    ]
    text = "\n\n".join(section.strip() for section in sections if section.strip())
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{text}\n")


def _architecture(model: PreTrainedModel) -> str:
    encoder = model.encoder.config if isinstance(model, Solver) else model.config
    # DistilBERT's name is the second one.
    neurons = getattr(encoder, "intermediate_size", None) or getattr(encoder, "hidden_dim", "-")
    text = (
        f"{encoder.num_hidden_layers} transformer layers of width {encoder.hidden_size}, feed-forward "
        f"{neurons}, {encoder.num_attention_heads} heads, {encoder.vocab_size:,} tokens"
    )
    if isinstance(model, Solver):
        text += f", {model.decoder_title}"
    text += f"; {count_parameters(model):,} parameters"
    if isinstance(model, MwpStudentModel) and has_identity_pooling(model):
        text += (
            ". Its pooling layer is not trained but the identity: `pooler_output` is the tanh of the first token's "
            "([CLS]) last state"
        )
    return text


def _data_sets(stages: Sequence[TrainingStage]) -> list[str]:
    """Data sets among the options, parts of them included, and those of the Hub that tasks name; no files."""
    given = [stage.options.get(option) or [] for stage in stages for option in DATA_OPTIONS]
    sources = [source for value in given for source in ([value] if isinstance(value, str) else value)]
    named = {name for stage in stages for name in stage.task.get("datasets", ()) if "/" in name}
    return sorted({source.partition(":")[0] for source in sources} & set(LOADERS) | named)


def _eval_results(figures: ModelFigures, task: Mapping[str, Any]) -> list[EvalResult]:
    if figures.model != "this model":
        return []
    return [
        EvalResult(
            task_type=task.get("pipeline_tag") or TASK,
            dataset_type=figures.dataset,
            dataset_name=figures.dataset,
            # Results of the same data set are told apart by this field alone.
            dataset_config=f"{figures.part}, {group}",
            metric_type=metric if figures.num_beams is None else f"{metric}, {figures.search}",
            metric_value=round(100 * report[metric], 2),
            metric_args={task.get("items", "problems"): int(report[count])} if count in report else None,
        )
        for group, report in figures.reports.items()
        for metric, count in task["metrics"].values()
        if metric in report
    ]


def _figures_section(figures: Sequence[ModelFigures], task: Mapping[str, Any]) -> str:
    if not figures:
        return ""
    items = task.get("items", "problems")
    columns = ["model", "data", items, "search", *(f"{name} %" for name in task["metrics"])]
    rows = [columns, ["---", "---", "---:", "---", *("---:" for _ in task["metrics"])]]
    for each in figures:
        for group, report in each.reports.items():
            count, left_out = (int(report.get(name, 0)) for name in (f"num_{items}", "num_unjudged"))
            problems = f"{count:,} ({left_out:,} left out)" if left_out else f"{count:,}"
            row = [each.model, f"{each.dataset}, {each.part}: {group}", problems, each.search]
            for metric, number in task["metrics"].values():
                over = int(report.get(number) or count)
                row.append(_percent(report.get(metric)) + (f" of {over:,}" if over != count else ""))
            rows.append(row)
    rules = " and ".join(sorted({f'"{each.answer_match}"' for each in figures if each.answer_match}))
    answer_match = [f"An answer is right by the rule {rules} of `hf-mwp evaluate`."] if rules else []
    remarks = [f"{each.model}, {each.dataset}, {each.part}: {each.remark}." for each in figures if each.remark]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return "\n\n".join(["## Figures", table, *answer_match, *dict.fromkeys(remarks), *_calibration(figures)])


def _calibration(figures: Sequence[ModelFigures]) -> list[str]:
    """What the probabilities are worth, as far as it was measured."""
    measured = [each for each in figures if each.calibration]
    if not measured:
        return []
    rows = ["| model | data | search | calibration error | AUROC | surer half right, % |"]
    rows.append("| --- | --- | --- | ---: | ---: | ---: |")
    for each in measured:
        report = each.calibration
        auroc = "-" if report["auroc"] is None else f"{report['auroc']:.2f}"
        rows.append(
            f"| {each.model} | {each.dataset}, {each.part} | {each.search} | "
            f"{report['expected_calibration_error']:.3f} | {auroc} | "
            f"{_percent(report['surer_half_accuracy'])} of {report['num_surer_half']:,} |"
        )
    text = (
        "An equation comes with its probability, `score`, and how well that tells right answers from wrong ones was "
        f"measured: expected calibration error ({measured[0].calibration['num_bins']} bins of equal width, Guo et al. "
        "2017), AUROC (0.5: not at all, 1: fully), and how many of the surer half are right. With "
        '`confidence_threshold` the pipeline answers "unsure" below a probability.'
    )
    return [text, "\n".join(rows)]


def _texts_section(texts: TrainingTexts | None) -> str:
    file = f"`{TrainingTexts.file_name}`"
    if texts is None:
        said = f"Not known in full: {file}, which holds digests of the texts that a model was trained on, is not here."
    else:
        said = (
            f"{file} holds 32-bit digests of the {len(texts):,} texts that this model was trained on, with those of "
            f"its teachers, its start and what labelled its problems: {'; '.join(texts.sources) or 'none'}. `hf-mwp "
            "evaluate` tells by them which problems are new to it, whatever their spaces, punctuation and numerals."
        )
        if texts.unknown:
            said += f" Not known: what {' and '.join(texts.unknown)} was trained on."
    return f"## Training texts\n\n{said}"


def _stages_section(stages: Sequence[TrainingStage]) -> str:
    if not stages:
        return ""
    parts = ["## How it was made"]
    for stage in stages:
        record = stage.record
        lines = [f"**{stage.name}**: `{stage.command}`" + _circumstances(record)]
        options = ", ".join(f"`{key}: {value}`" for key, value in stage.options.items())
        if options:
            lines.append(options)
        if stage.command == "hf-mwp distill":
            lines.append(_loss_settings(stage.options))
        parts.append("\\\n".join(lines))
    # Stages may lie months apart.
    versions: dict[str, dict[str, None]] = {}
    for stage in stages:
        for name, version in stage.record.get("libraries", {}).items():
            versions.setdefault(name, {})[version] = None
    if versions:
        listed = ", ".join(f"{name} {' and '.join(found)}" for name, found in versions.items())
        parts.append(f"Versions: {listed}.")
    return "\n\n".join(parts)


def _loss_settings(options: Mapping[str, Any]) -> str:
    """What a distillation minimised, as the options or else the defaults say."""
    values = {each.name: each.default for each in fields(DistillationConfig)} | dict(options)
    hidden = "none"
    if values["hidden_loss"] not in (None, "none"):
        weights = values["hidden_weights"] or PAPER_WEIGHTS
        hidden = f"({values['hidden_loss']}) " + ", ".join(map(str, weights))
        if not values["hidden_weights"]:
            hidden += f" for {len(weights)} pairs of layers, else 1.0 each"
    scaled = "multiplied by T², unlike" if values["scale_by_square"] else "not multiplied by T², as in"
    return (
        f"Loss: hidden {hidden}; embedding {values['embedding_weight']}; prediction {values['prediction_weight']}, of "
        f"which soft (lambda) {values['soft_label_weight']}; temperature T {values['temperature']}, the soft part "
        f"{scaled} the paper's formula."
    )


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
