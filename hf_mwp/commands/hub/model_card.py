"""Model cards generated from the records of training and evaluation runs."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import yaml
from huggingface_hub import EvalResult, ModelCard, ModelCardData, metadata_load
from transformers import PreTrainedModel

from hf_mwp.compress.losses import CKALoss, HiddenMSELoss
from hf_mwp.compress.models import MwpStudentModel
from hf_mwp.compress.models.architecture import CUT_PREFIX
from hf_mwp.compress.models.model_kind import kind_of
from hf_mwp.solver.data.sources import LOADERS
from hf_mwp.solver.data.training_texts import TrainingTexts
from hf_mwp.solver.metrics import count_parameters
from hf_mwp.solver.metrics.accuracy import MATH_WORD_PROBLEMS, percent
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import as_list
from hf_mwp.utils.provenance import training_texts_of
from hf_mwp.utils.usage_error import UsageError

from .usage import usage_section


PAPER = "A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025)"
SEQ2SEQ_PAPER = "Improving Language Model Distillation through Hidden State Matching (ICLR 2025)"
# Default task of runs without a recorded task.
TASK = "math-word-problem"
CARD = "README.md"
RECORD = "record.json"
# Entries of `run.json` that are copied to the record.
CIRCUMSTANCES = ("seed", "wall_seconds", "cpu_seconds", "machine", "libraries", "trained_parameters")
# Metadata that cards are generated with.
GENERATED = frozenset({"language", "library_name", "pipeline_tag", "tags", "datasets", "model-index"})
# Maximum number of table rows and metadata results in the card; the record has all figures.
MAX_ROWS = 8
# Commands and trainers whose models have learned from a teacher.
DISTILLATIONS = ("hf-mwp distill", "hf-mwp prune", "hf-mwp stark", "DistillationTrainer", "Seq2SeqDistillationTrainer")
# Options of training stages that select the training problems and texts.
DATA_OPTIONS = ("corpus", "problems", "dataset", "extra_train")


@checked
@dataclass(frozen=True)
class TrainingStage:
    """A command that was run to train a model."""

    name: str  # of the stage in the recipe
    command: str
    options: Mapping[str, Any]  # that were set, without local paths
    record: Mapping[str, Any] = field(default_factory=dict)  # content of `run.json`
    task: Mapping[str, Any] = field(default_factory=dict)  # description of the task ([`~tasks.Task.card`])


@checked
@dataclass(frozen=True)
class ModelFigures:
    """Measured accuracy of a model on a dataset split."""

    model: str  # "this model", "teacher" or "solver built on it"
    dataset: str
    part: str  # the split
    num_beams: int | None  # `None` for models without search
    answer_match: str  # see [`metrics.answers_match`]
    reports: Mapping[str, Mapping[str, float]]  # metrics of the task for each group of problems
    remark: str = ""  # see [`metrics.TrainingOverlap`]
    calibration: Mapping[str, Any] | None = None  # see [`metrics.calibration_report`]

    @property
    def search(self) -> str:
        """Description of the search, such as `"beam 3"`."""
        if self.num_beams is None:
            return "-"
        return "greedy" if self.num_beams == 1 else f"beam {self.num_beams}"


@checked
def build_model_card(
    model: PreTrainedModel,
    model_id: str,
    figures: Sequence[ModelFigures] = (),
    stages: Sequence[TrainingStage] = (),
    language: str | None = None,
    indexed_numbers: bool = False,
    license: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    summary: str = "",
    notes: str = "",
    output: str | None = None,
    task: Mapping[str, Any] | None = None,
) -> ModelCard:
    """
    Create the card of a student, solver, classifier or sequence-to-sequence model, with usage, results and notes. The
    card names distillation as the method only if one of the `stages` distils.

    The examples load the model from `model_id`, a folder or Hub id, and show its `output`. Figures of `"this model"`,
    unless it is an encoder, and the datasets of the stages are also written to the metadata, which the Hub displays.
    `language` defaults to that of the task, or Chinese. `summary` and `notes` are the first and last paragraphs, as
    Markdown. `task` describes the task ([`~tasks.Task.card`]) if no stage does.
    """
    for stage in stages:
        # The task of the last stage that has one.
        task = stage.task or task
    task = {**MATH_WORD_PROBLEMS, **(task or {})}
    kind = kind_of(model)
    is_encoder = isinstance(model, MwpStudentModel)
    language = language or task.get("language")
    if language is None and (is_encoder or kind.is_solver):
        language = "zh"
    tags = list(task["tags"])
    method = ""
    citation = ""
    if any(map(_distils, stages)):
        tags.append("knowledge-distillation")
        paper, bibtex = _paper_of(model)
        method = f" Method: {paper}."
        citation = f"## Citation\n\n```bibtex\n{bibtex}\n```"
    tags.append("mwp_solver" if kind.is_solver else model.config.model_type)
    tag = task.get("pipeline_tag")
    shown_figures = _most_telling(figures)
    results = []
    if is_encoder:
        tag = "feature-extraction"
    else:
        model_figures = [row for row in shown_figures if row.model == "this model"]
        results = [_eval_result(row, task) for row in model_figures]
    data = ModelCardData(
        language=language,
        license=license,
        library_name="transformers",
        pipeline_tag=tag,
        tags=tags,
        model_name=model_id.rstrip("/").rpartition("/")[2],
        eval_results=results or None,
        datasets=_data_sets(stages, training_texts_of(model)) or None,
    )
    for name, value in (metadata or {}).items():
        data[name] = value
    usage_task = TASK if kind.is_solver else tag
    sections = [
        f"# {data.model_name}",
        summary,
        f"Architecture: {_architecture(model)}.{method}",
        usage_section(usage_task, model_id, language, indexed_numbers, task.get("example"), output, type(model)),
        _results_section(shown_figures, task),
        notes,
        f"The full record of metrics, stages, options and versions is in [`{RECORD}`]({RECORD}).",
        citation,
    ]
    text = "\n\n".join(section.strip() for section in sections if section.strip())
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{text}\n")


def earlier_metadata(card: Path | None, license: str | None = None) -> dict[str, Any]:
    """Return the metadata of a card, if it exists, that are not generated, such as `base_model`, without those of its
    licence if there is a new `license`. Raises `UsageError` if the card cannot be read."""
    if card is None or not card.is_file():
        return {}
    try:
        metadata = metadata_load(card) or {}
    except (ValueError, yaml.YAMLError) as error:
        raise UsageError(f"The metadata of {card} cannot be read ({error}). Correct or delete the file.") from error
    names = metadata.keys() - GENERATED
    return {name: metadata[name] for name in names if license is None or not name.startswith("license")}


@checked
def model_record(
    figures: Sequence[ModelFigures] = (), stages: Sequence[TrainingStage] = (), texts: TrainingTexts | None = None
) -> dict[str, Any]:
    """Return the content of `record.json`. Of the training texts, number, sources and unknown ancestors are kept."""
    training_texts = None
    if texts is not None:
        training_texts = {"texts": len(texts), "sources": list(texts.sources), "unknown": list(texts.unknown)}
    stage_records = []
    for stage in stages:
        circumstances = {name: stage.record[name] for name in CIRCUMSTANCES if name in stage.record}
        stage_records.append(
            {"name": stage.name, "command": stage.command, "options": dict(stage.options), **circumstances}
        )
    figure_records = [asdict(row) for row in figures]
    return {"figures": figure_records, "stages": stage_records, "training_texts": training_texts}


def _distils(stage: TrainingStage) -> bool:
    """Return whether a model has learned from a teacher in a stage, or is mixed from one that has."""
    return stage.command in DISTILLATIONS or (stage.command == "hf-mwp mix" and "solvers" not in stage.options)


def _paper_of(model: PreTrainedModel) -> tuple[str, str]:
    """Return the title and the citation of the method by which a student is distilled."""
    if kind_of(model).has_decoder:
        return SEQ2SEQ_PAPER, CKALoss.citation
    return PAPER, HiddenMSELoss.citation


def _architecture(model: PreTrainedModel) -> str:
    kind = kind_of(model)
    config = kind.encoder(model).config

    def size(*names: str) -> int | None:
        for name in names:
            if getattr(config, name, None) is not None:
                return getattr(config, name)
        return None

    num_layers = size("num_hidden_layers")
    width = size("hidden_size")
    heads = size("num_attention_heads")
    # The names of BERT, DistilBERT and encoder-decoder models.
    neurons = size("intermediate_size", "hidden_dim", "encoder_ffn_dim", "d_ff")
    num_tokens = size("vocab_size")
    if config.model_type.startswith(CUT_PREFIX):
        heads = config.heads_per_layer
        neurons = config.neurons_per_layer
    phrases = []
    if num_layers and kind.has_decoder:
        num_decoder_layers = size("decoder_layers", "num_decoder_layers")
        phrases.append(f"{num_layers} encoder and {num_decoder_layers} decoder layers of width {width}")
    elif num_layers:
        phrases.append(f"{num_layers} transformer layers of width {width}")
    if neurons:
        phrases.append(f"feed-forward {neurons}")
    if heads:
        phrases.append(f"{heads} heads")
    if num_tokens:
        phrases.append(f"{num_tokens:,} tokens")
    if kind.is_solver:
        phrases.append(model.decoder_title)
    text = f"{', '.join(phrases)}; {count_parameters(model):,} parameters"
    if isinstance(model, MwpStudentModel) and has_identity_pooling(model):
        text += ". Its pooling layer is the identity: `pooler_output` is the tanh of the last state of [CLS]"
    return text


def has_identity_pooling(encoder: MwpStudentModel) -> bool:
    """Return whether an encoder's pooling layer is the identity that [`with_pooling_layer`] adds."""
    if encoder.pooler is None:
        return False
    dense = encoder.pooler.dense
    return torch.equal(dense.weight, torch.eye(len(dense.weight)).to(dense.weight)) and not dense.bias.any()


def _data_sets(stages: Sequence[TrainingStage], texts: TrainingTexts | None) -> list[str]:
    """Return the datasets in the options and in the sources of the training texts, and the tasks' Hub datasets."""
    sources = list(texts.sources) if texts else []
    hub_datasets = set()
    for stage in stages:
        for option in DATA_OPTIONS:
            sources += as_list(stage.options.get(option))
        hub_datasets |= {name for name in stage.task.get("datasets", ()) if "/" in name}
    # Sources are written as "ape210k:validation" or "gsm8k (public), train".
    names = {re.split("[: ]", source)[0] for source in sources}
    return sorted(names & set(LOADERS) | hub_datasets)


def _most_telling(figures: Sequence[ModelFigures]) -> list[ModelFigures]:
    """Return at most `MAX_ROWS` figures: if there are more, the widest search of each split, this model first."""
    if len(figures) <= MAX_ROWS:
        return list(figures)
    widest: dict[tuple[str, ...], ModelFigures] = {}
    for row in figures:
        split = (row.model, row.dataset, row.part.replace(", re-ranked", ""))
        if split not in widest or _search_width(row) > _search_width(widest[split]):
            widest[split] = row
    return sorted(widest.values(), key=lambda row: row.model != "this model")[:MAX_ROWS]


def _search_width(figures: ModelFigures) -> tuple[bool, int]:
    return "re-ranked" in figures.part, figures.num_beams or 0


def _eval_result(figures: ModelFigures, task: Mapping[str, Any]) -> EvalResult:
    # The first metric of the task, over all problems.
    metric = next(iter(task["metrics"].values()))[0]
    report = next(iter(figures.reports.values()))
    metric_type = "accuracy" if metric.endswith("accuracy") else metric
    scale = 100 if task.get("shares", True) else 1
    items = task.get("items", "problems")
    return EvalResult(
        task_type=task.get("pipeline_tag") or TASK,
        dataset_type=figures.dataset,
        dataset_name=figures.dataset,
        dataset_config=figures.part,
        metric_type=metric_type,
        metric_name=metric.replace("_", " "),
        metric_value=round(scale * report.get(metric, float("nan")), 2),
        metric_args={"search": figures.search, items: int(report.get(f"num_{items}", 0))},
    )


def _results_section(figures: Sequence[ModelFigures], task: Mapping[str, Any]) -> str:
    if not figures:
        return ""
    items = task.get("items", "problems")
    # Heading of a column -> key of a report.
    metrics = {name: key for name, (key, *_) in task["metrics"].items()}
    format_metric = "{:.2f}".format
    if task.get("shares", True):
        name, key = next(iter(metrics.items()))
        metrics = {f"{name} %": key}
        format_metric = percent
    shows_new_items = any(_new_items(row) for row in figures)
    headings = ["model", "data", "search", items, *metrics]
    if shows_new_items:
        headings += [f"new {items}", *metrics]
    rows = [headings, ["---"] * 3 + ["---:"] * (len(headings) - 3)]
    for row in figures:
        cells = [row.model, f"{row.dataset}, {row.part}", row.search]
        groups = [next(iter(row.reports.values()))]
        if shows_new_items:
            groups.append(_new_items(row))
        for group in groups:
            cells.append(f"{int(group[f'num_{items}']):,}" if group else "-")
            for key in metrics.values():
                value = group.get(key) if group else None
                cells.append("-" if value is None else format_metric(value))
        rows.append(cells)
    table = "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
    notes = []
    if shows_new_items:
        notes.append(f"New {items} are those whose text, numbers ignored, is not in the training data.")
    calibrated = [row for row in figures if row.calibration]
    if calibrated:
        notes.append(_calibration_note(calibrated[0]))
    return "\n\n".join(["## Results", table, " ".join(notes)])


def _calibration_note(figures: ModelFigures) -> str:
    error = figures.calibration["expected_calibration_error"]
    accuracy = figures.calibration["surer_half_accuracy"]
    return (
        f"The `score` of an equation is its probability. On {figures.dataset}, {figures.part}: expected calibration "
        f"error {error:.3f}; of the more probable half of the answers, {percent(accuracy)} % are correct (see "
        "`confidence_threshold`)."
    )


def _new_items(figures: ModelFigures) -> Mapping[str, float] | None:
    """Return the report of the problems whose masked text is not in the training texts, or `None` if unknown."""
    for group, report in figures.reports.items():
        if group.startswith("masked text not in"):
            return report
    return None
