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
from hf_mwp.solver.metrics.accuracy import percent
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.provenance import training_texts_of
from hf_mwp.utils.usage_error import UsageError

from .usage import usage_section


PAPER = "A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025)"
SEQ2SEQ_PAPER = "Improving Language Model Distillation through Hidden State Matching (ICLR 2025)"
# Default task of runs without a recorded task. `metrics` maps a table column to two keys of a report: the metric and
# the number of examples over which the metric is averaged.
TASK = "math-word-problem"
MATH_WORD_PROBLEMS: Mapping[str, Any] = {
    "tags": ["hf_mwp", "math-word-problems"],
    "metrics": {"answers": ("answer_accuracy", "num_problems"), "equations": ("equation_accuracy", "num_equations")},
}
CARD, RECORD = "README.md", "record.json"
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
        return {None: "-", 1: "greedy"}.get(self.num_beams, f"beam {self.num_beams}")


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
    task = {**MATH_WORD_PROBLEMS, **next((stage.task for stage in reversed(stages) if stage.task), task or {})}
    kind, is_encoder = kind_of(model), isinstance(model, MwpStudentModel)
    language = language or task.get("language") or ("zh" if is_encoder or kind.is_solver else None)
    tag = "feature-extraction" if is_encoder else task.get("pipeline_tag")
    is_distilled = any(map(_distils, stages))
    paper, citation = _paper_of(model) if is_distilled else ("", "")
    shown = _most_telling(figures)
    results = [] if is_encoder else [_eval_result(each, task) for each in shown if each.model == "this model"]
    data = ModelCardData(
        language=language,
        license=license,
        library_name="transformers",
        pipeline_tag=tag,
        tags=[
            *task["tags"],
            *(["knowledge-distillation"] if is_distilled else []),
            "mwp_solver" if kind.is_solver else model.config.model_type,
        ],
        model_name=model_id.rstrip("/").rpartition("/")[2],
        eval_results=results or None,
        datasets=_data_sets(stages, training_texts_of(model)) or None,
    )
    for name, value in (metadata or {}).items():
        data[name] = value
    used_as = TASK if kind.is_solver else tag
    sections = [
        f"# {data.model_name}",
        summary,
        f"Architecture: {_architecture(model)}." + (f" Method: {paper}." if paper else ""),
        usage_section(used_as, model_id, language, indexed_numbers, task.get("example"), output, type(model)),
        _results_section(shown, task),
        notes,
        f"The full record of metrics, stages, options and versions is in [`{RECORD}`]({RECORD}).",
        f"## Citation\n\n```bibtex\n{citation}\n```" if citation else "",
    ]
    text = "\n\n".join(section.strip() for section in sections if section.strip())
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{text}\n")


def earlier_metadata(card: Path | None, license: str | None = None) -> dict[str, Any]:
    """Return the metadata of a card, if it exists, that are not generated, such as `base_model`, without those of its
    licence if there is a new `license`. Raises `UsageError` if the card cannot be read."""
    try:
        known = (metadata_load(card) if card and card.is_file() else None) or {}
    except (ValueError, yaml.YAMLError) as error:
        raise UsageError(f"The metadata of {card} cannot be read ({error}). Correct or delete the file.") from error
    kept = known.keys() - GENERATED
    return {name: known[name] for name in kept if license is None or not name.startswith("license")}


@checked
def model_record(
    figures: Sequence[ModelFigures] = (), stages: Sequence[TrainingStage] = (), texts: TrainingTexts | None = None
) -> dict[str, Any]:
    """Return the content of `record.json`. Of the training texts, number, sources and unknown ancestors are kept."""
    known = None
    if texts is not None:
        known = {"texts": len(texts), "sources": list(texts.sources), "unknown": list(texts.unknown)}
    steps = []
    for stage in stages:
        kept = {name: stage.record[name] for name in CIRCUMSTANCES if name in stage.record}
        steps.append({"name": stage.name, "command": stage.command, "options": dict(stage.options), **kept})
    return {"figures": [asdict(each) for each in figures], "stages": steps, "training_texts": known}


def _distils(stage: TrainingStage) -> bool:
    """Return whether a model has learned from a teacher in a stage, or is mixed from one that has."""
    return stage.command in DISTILLATIONS or (stage.command == "hf-mwp mix" and "solvers" not in stage.options)


def _paper_of(model: PreTrainedModel) -> tuple[str, str]:
    """Return the title and the citation of the method by which a student is distilled."""
    return (SEQ2SEQ_PAPER, CKALoss.citation) if kind_of(model).has_decoder else (PAPER, HiddenMSELoss.citation)


def _architecture(model: PreTrainedModel) -> str:
    kind = kind_of(model)
    config = kind.encoder(model).config

    def size(*names: str) -> int | None:
        return next((getattr(config, name) for name in names if getattr(config, name, None) is not None), None)

    layers, width, heads, tokens = map(size, ("num_hidden_layers", "hidden_size", "num_attention_heads", "vocab_size"))
    # The names of BERT, DistilBERT and encoder-decoder models.
    neurons = size("intermediate_size", "hidden_dim", "encoder_ffn_dim", "d_ff")
    if config.model_type.startswith(CUT_PREFIX):
        heads, neurons = config.heads_per_layer, config.neurons_per_layer
    summary = f"{layers} transformer layers of width {width}"
    if kind.has_decoder:
        decoder_layers = size("decoder_layers", "num_decoder_layers")
        summary = f"{layers} encoder and {decoder_layers} decoder layers of width {width}"
    known = ((layers, summary), (neurons, f"feed-forward {neurons}"), (heads, f"{heads} heads"))
    text = ", ".join(part for value, part in (*known, (tokens, f"{tokens or 0:,} tokens")) if value)
    if kind.is_solver:
        text += f", {model.decoder_title}"
    text += f"; {count_parameters(model):,} parameters"
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
    given = [stage.options.get(option) or [] for stage in stages for option in DATA_OPTIONS]
    sources = [source for value in given for source in ([value] if isinstance(value, str) else value)]
    named = {name for stage in stages for name in stage.task.get("datasets", ()) if "/" in name}
    # Sources are written as "ape210k:validation" or "gsm8k (public), train".
    names = {re.split("[: ]", source)[0] for source in (*sources, *(texts.sources if texts else ()))}
    return sorted(names & set(LOADERS) | named)


def _most_telling(figures: Sequence[ModelFigures]) -> list[ModelFigures]:
    """Return at most `MAX_ROWS` figures: if there are more, the widest search of each split, this model first."""
    if len(figures) <= MAX_ROWS:
        return list(figures)
    best: dict[tuple[str, ...], ModelFigures] = {}
    for each in figures:
        key = (each.model, each.dataset, each.part.replace(", re-ranked", ""))
        width = ("re-ranked" in each.part, each.num_beams or 0)
        if key not in best or width > ("re-ranked" in best[key].part, best[key].num_beams or 0):
            best[key] = each
    return sorted(best.values(), key=lambda each: each.model != "this model")[:MAX_ROWS]


def _eval_result(figures: ModelFigures, task: Mapping[str, Any]) -> EvalResult:
    # The first metric of the task, over all problems.
    metric, report = next(iter(task["metrics"].values()))[0], next(iter(figures.reports.values()))
    scale = 100 if task.get("shares", True) else 1
    items = task.get("items", "problems")
    return EvalResult(
        task_type=task.get("pipeline_tag") or TASK,
        dataset_type=figures.dataset,
        dataset_name=figures.dataset,
        dataset_config=figures.part,
        metric_type="accuracy" if metric.endswith("accuracy") else metric,
        metric_name=metric.replace("_", " "),
        metric_value=round(scale * report.get(metric, float("nan")), 2),
        metric_args={"search": figures.search, items: int(report.get(f"num_{items}", 0))},
    )


def _results_section(figures: Sequence[ModelFigures], task: Mapping[str, Any]) -> str:
    if not figures:
        return ""
    items = task.get("items", "problems")
    known = any(_new_items(each) for each in figures)
    metrics, write = {name: key for name, (key, *_) in task["metrics"].items()}, "{:.2f}".format
    if task.get("shares", True):
        name, key = next(iter(metrics.items()))
        metrics, write = {f"{name} %": key}, percent
    header = ["model", "data", "search", items, *metrics] + ([f"new {items}", *metrics] if known else [])
    rows = [header, ["---", "---", "---", *("---:" for _ in header[3:])]]
    for each in figures:
        report = next(iter(each.reports.values()))
        row = [each.model, f"{each.dataset}, {each.part}", each.search]
        for group in (report, _new_items(each))[: 2 if known else 1]:
            row.append(f"{int(group[f'num_{items}']):,}" if group else "-")
            values = (group and group.get(key) for key in metrics.values())
            row += ["-" if value is None else write(value) for value in values]
        rows.append(row)
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    notes = []
    if known:
        notes.append(f"New {items} are those whose text, numbers ignored, is not in the training data.")
    if (each := next((each for each in figures if each.calibration), None)) is not None:
        error, right = (each.calibration[name] for name in ("expected_calibration_error", "surer_half_accuracy"))
        notes.append(
            f"The `score` of an equation is its probability. On {each.dataset}, {each.part}: expected calibration "
            f"error {error:.3f}; of the more probable half of the answers, {percent(right)} % are correct (see "
            "`confidence_threshold`)."
        )
    return "\n\n".join(["## Results", table, " ".join(notes)])


def _new_items(figures: ModelFigures) -> Mapping[str, float] | None:
    """Return the report of the problems whose masked text is not in the training texts, or `None` if unknown."""
    return next((report for group, report in figures.reports.items() if group.startswith("masked text not in")), None)
