"""Model cards from what the runs recorded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from huggingface_hub import EvalResult, ModelCard, ModelCardData
from transformers import PreTrainedModel

from ..data.datasets.sources import LOADERS
from ..data.training_texts import TrainingTexts
from ..losses import CKALoss, HiddenMSELoss
from ..metrics import count_parameters
from ..metrics.accuracy_cells import percent
from ..models import MwpStudentModel
from ..models.model_kind import kind_of
from .usage import usage_section


PAPER = "A Compact Model for Mathematics Problem Representations Distilled from BERT (AAAI 2025)"
SEQ2SEQ_PAPER = "Improving Language Model Distillation through Hidden State Matching (ICLR 2025)"
# The task of runs that record none. A metric is a column of the figures: the key of a report, and that of the number
# of items that it is a mean over.
TASK = "math-word-problem"
MATH_WORD_PROBLEMS: Mapping[str, Any] = {
    "tags": ["hf_mwp", "math-word-problems"],
    "metrics": {"answers": ("answer_accuracy", "num_problems"), "equations": ("equation_accuracy", "num_equations")},
}
RECORD = "record.json"
# Entries of a run's `run.json` that go into the record.
CIRCUMSTANCES = ("seed", "wall_seconds", "cpu_seconds", "machine", "libraries", "trained_parameters")
# Rows of the card's table and results of its metadata; the record has all.
MAX_ROWS = 8
DISTILLATIONS = ("hf-mwp distill", "DistillationTrainer", "Seq2SeqDistillationTrainer")
# Options of stages that name the problems and texts that were trained on.
DATA_OPTIONS = ("corpus", "problems", "dataset", "extra_train")


@dataclass(frozen=True)
class TrainingStage:
    """
    A step of a model's making.

    Args:
        name (`str`), command (`str`): Its name in the recipe, and the command that was run.
        options (`Mapping[str, Any]`): Options that were set, without local paths.
        record (`Mapping[str, Any]`), task (`Mapping[str, Any]`): Content of `run.json`, and of `data.json` on the task
            ([`~tasks.Task.card`]); may be empty.
    """

    name: str
    command: str
    options: Mapping[str, Any]
    record: Mapping[str, Any] = field(default_factory=dict)
    task: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelFigures:
    """
    Measured accuracy of a model on a split of a data set.

    Args:
        model (`str`): Whose figures: `"this model"`, `"teacher"`, `"solver built on it"`.
        dataset (`str`), part (`str`): Data set, and split of it.
        num_beams (`int`, *optional*): Beams of the search, `None` where nothing is searched.
        answer_match (`str`): See [`metrics.answers_match`].
        reports (`Mapping[str, Mapping[str, float]]`): Reports of the task by group of problems.
        remark (`str`): See [`metrics.TrainingOverlap`].
        calibration (`Mapping[str, Any]`, *optional*): See [`metrics.calibration_report`].
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
    output: str | None = None,
) -> ModelCard:
    """
    Write the card of a student, solver, classifier or sequence-to-sequence model: how to use it, how well it does, its
    limits.

    Args:
        model (`PreTrainedModel`): The model.
        model_id (`str`): Folder or Hub id by which it is loaded.
        figures (`Sequence[ModelFigures]`, *optional*): Measurements. Unless the model is an encoder, those of
            `"this model"` also go to the metadata, which the Hub shows.
        stages (`Sequence[TrainingStage]`, *optional*): How it was made; their data sets go to the metadata.
        language (`str`, *optional*): Language of the problems; that of the task, or Chinese, by default.
        indexed_numbers (`bool`, *optional*, defaults to `False`): Numbers are read as `[NUM0]`, `[NUM1]`, ...
        license (`str`, *optional*): Licence identifier of the weights.
        summary (`str`, *optional*), notes (`str`, *optional*): First paragraph and last section, as Markdown.
        output (`str`, *optional*): Output of the model for the example that the card shows.

    Returns:
        `ModelCard`: to be saved as `README.md`.
    """
    task = {**MATH_WORD_PROBLEMS, **next((stage.task for stage in reversed(stages) if stage.task), {})}
    kind = "mwp_solver" if kind_of(model).is_solver else model.config.model_type
    is_encoder = isinstance(model, MwpStudentModel)
    reads_problems = is_encoder or kind_of(model).is_solver
    language = language or task.get("language") or ("zh" if reads_problems else None)
    tag = "feature-extraction" if is_encoder else task.get("pipeline_tag")
    # Other models follow the paper only if they were distilled.
    is_papers = reads_problems or any(stage.command in DISTILLATIONS for stage in stages)
    paper, citation = PAPER, HiddenMSELoss.citation
    if model.config.is_encoder_decoder:
        paper, citation = SEQ2SEQ_PAPER, CKALoss.citation
    shown = _most_telling(figures)
    results = [] if is_encoder else [_eval_result(each, task) for each in shown if each.model == "this model"]
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
        f"Architecture: {_architecture(model)}." + (f" Method: {paper}." if is_papers else ""),
        usage_section(
            TASK if kind_of(model).is_solver else tag,
            model_id,
            language,
            indexed_numbers,
            task.get("example"),
            output,
            type(model),
        ),
        _results_section(shown, task),
        notes,
        f"The full record of figures, stages, options and versions is in [`{RECORD}`]({RECORD}).",
        f"## Citation\n\n```bibtex\n{citation}\n```" if is_papers else "",
    ]
    text = "\n\n".join(section.strip() for section in sections if section.strip())
    return ModelCard(f"---\n{data.to_yaml()}\n---\n\n{text}\n")


def model_record(
    figures: Sequence[ModelFigures] = (),
    stages: Sequence[TrainingStage] = (),
    training_texts: TrainingTexts | None = None,
) -> dict[str, Any]:
    """
    Return all that is known of a model's making, for the file beside its card: `figures` and `stages` as in
    [`build_model_card`], and the number, sources and unknown ancestors of its [`~data.TrainingTexts`], if known.
    """
    texts = training_texts
    known = texts and {"texts": len(texts), "sources": list(texts.sources), "unknown": list(texts.unknown)}
    steps = []
    for stage in stages:
        kept = {name: stage.record[name] for name in CIRCUMSTANCES if name in stage.record}
        steps.append({"name": stage.name, "command": stage.command, "options": dict(stage.options), **kept})
    return {"figures": [asdict(each) for each in figures], "stages": steps, "training_texts": known}


def _architecture(model: PreTrainedModel) -> str:
    encoder = kind_of(model).encoder(model).config
    told, layers = "{} transformer layers of width {}", ["num_hidden_layers"]
    if model.config.is_encoder_decoder:
        told = "{} encoder and {} decoder layers of width {}"
        layers.append(_named(encoder, "decoder_layers", "num_decoder_layers"))
    # Other names are those of DistilBERT and of encoder-decoders.
    sizes = {
        told: (*layers, "hidden_size"),
        "feed-forward {}": (_named(encoder, "intermediate_size", "hidden_dim", "encoder_ffn_dim", "d_ff"),),
        "{} heads": ("num_attention_heads",),
        "{:,} tokens": ("vocab_size",),
    }
    found = {told: [getattr(encoder, name, None) for name in names] for told, names in sizes.items()}
    text = ", ".join(told.format(*values) for told, values in found.items() if None not in values)
    if kind_of(model).is_solver:
        text += f", {model.decoder_title}"
    text += f"; {count_parameters(model):,} parameters"
    if isinstance(model, MwpStudentModel) and has_identity_pooling(model):
        text += ". Its pooling layer is the identity: `pooler_output` is the tanh of the last state of [CLS]"
    return text


def has_identity_pooling(encoder: MwpStudentModel) -> bool:
    """Return whether an encoder's pooling layer is that of [`with_pooling_layer`]."""
    if encoder.pooler is None:
        return False
    dense = encoder.pooler.dense
    return torch.equal(dense.weight, torch.eye(len(dense.weight)).to(dense.weight)) and not dense.bias.any()


def _named(config: Any, *names: str) -> str:
    """Return the first name that a configuration has."""
    return next((name for name in names if getattr(config, name, None) is not None), names[0])


def _data_sets(stages: Sequence[TrainingStage]) -> list[str]:
    """Data sets among the options, parts of them included, and those of the Hub that tasks name; no files."""
    given = [stage.options.get(option) or [] for stage in stages for option in DATA_OPTIONS]
    sources = [source for value in given for source in ([value] if isinstance(value, str) else value)]
    named = {name for stage in stages for name in stage.task.get("datasets", ()) if "/" in name}
    return sorted({source.partition(":")[0] for source in sources} & set(LOADERS) | named)


def _most_telling(figures: Sequence[ModelFigures]) -> list[ModelFigures]:
    """Return all figures if the table has room, otherwise the widest search of each split, the model's own first."""
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
    # The task's first metric, of all problems.
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
        notes.append(f"New {items} are those whose text, with any numbers, is not among the model's training texts.")
    if measured := next((each.calibration for each in figures if each.calibration), None):
        notes.append(
            f"The `score` of an equation is its probability: expected calibration error "
            f"{measured['expected_calibration_error']:.3f}, and {percent(measured['surer_half_accuracy'])} % of the "
            "surer half are right; see `confidence_threshold`."
        )
    return "\n\n".join(["## Results", table, " ".join(notes)])


def _new_items(figures: ModelFigures) -> Mapping[str, float] | None:
    """Return the report of the problems whose masked text is new to the model, if it is known."""
    return next((report for group, report in figures.reports.items() if group.startswith("masked text not in")), None)
