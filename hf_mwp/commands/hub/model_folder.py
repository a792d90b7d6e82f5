"""Preparation of a model folder for upload to the Hub."""

import copy
import json
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from huggingface_hub import ModelCard
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn
from transformers import PreTrainedModel
from transformers.utils import SAFE_WEIGHTS_NAME, logging

from hf_mwp.commands.building.seq2seq import load_any
from hf_mwp.compress.models.model_kind import kind_of
from hf_mwp.compress.models.mwp_student import MwpStudentModel
from hf_mwp.compress.models.mwp_student.layers_mwp_student import MwpStudentPooler
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.runtime.plausibility import PlausibilityReranker
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.pipelines.math_word_problem_pipeline import MathWordProblemPipeline
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.downloads import LICENCES, find_beside, read_beside
from hf_mwp.utils.files import writing_weights
from hf_mwp.utils.provenance import training_texts_of, write_training_texts
from hf_mwp.utils.run_folder import MODEL_FILES, OLD_MODEL, RunFolder, check_output_folder
from hf_mwp.utils.usage_error import UsageError

from .card_arguments import CardArguments
from .finite_weights import check_finite
from .model_card import CARD, RECORD, build_model_card, earlier_metadata, model_record
from .run_records import read_figures, read_stage, read_task
from .usage import EXAMPLES


logger = logging.get_logger(__name__)


@checked
def make_model_folder(args: CardArguments) -> None:
    """
    Write a folder for a trained solver, its encoder, a text classifier or a sequence-to-sequence model: weights in
    half precision, configuration, processor, and a card generated from the run records.

    Args:
        args ([`CardArguments`]): Options of `hf-mwp card`.

    Raises:
        UsageError: The model cannot be loaded, the encoder cannot be used without its solver, a folder has no run
            records, or the output folder already contains a model.

    Example:

    ```python
    >>> make_model_folder(CardArguments("runs/student", "me/mwp-student", evaluations=["runs/evaluate"]))
    ```
    """
    source = args.model
    folder = Path(args.output_dir)
    encoder_only = args.part == "encoder"
    check_output_folder(folder, for_model=True)
    notes = _read_notes(args.notes)
    model, processor = load_any(str(source))
    is_solver = kind_of(model).is_solver and not encoder_only
    if args.reranker is not None and not is_solver:
        raise UsageError("`reranker` applies only to solvers. Remove it for an encoder or a classifier.")
    card_options: dict[str, Any] = {"license": args.license, "summary": args.summary, "notes": notes}
    if isinstance(processor, MwpProcessor):
        card_options |= {"language": processor.language, "indexed_numbers": processor.indexed_numbers}
    search_files: list[DefaultSearch | PlausibilityReranker] = []
    texts = training_texts_of(model)
    if encoder_only:
        model = _encoder_alone(model, source)
        # As after `hf-mwp pretrain`: the constants are collected when a solver is built on the encoder.
        processor.vocabulary = OutputVocabulary()
        if texts is not None:
            model.training_texts = texts
    elif is_solver:
        search, reranker = _read_search(source, args.reranker)
        card_options["output"] = _example_output(model, processor, search, reranker)
        if search != DefaultSearch():
            search_files.append(search)
        if reranker is not None:
            search_files.append(reranker)

    # Read the records, and write the card.
    card_options["metadata"] = _metadata(args, folder, model)
    card_options["task"] = next(filter(None, map(read_task, args.evaluations or ())), None)
    name = "solver built on it" if encoder_only else "this model"
    figures = [read_figures(evaluation, name) for evaluation in args.evaluations or ()]
    figures += [read_figures(evaluation, "teacher") for evaluation in args.teacher_evaluations or ()]
    stages = [read_stage(stage) for stage in args.stages or ()]
    card = build_model_card(model, args.model_id or folder.as_posix(), figures, stages, **card_options)
    record = json.dumps(model_record(figures, stages, texts), indent=1, ensure_ascii=False)

    # Write the folder.
    notices = read_beside(source, LICENCES)
    with RunFolder(folder, for_model=True) as run:
        run.check_unused(args.overwrite, (*MODEL_FILES, CARD, *notices))
        # The model may be in the output folder itself.
        with run.replacing_model(OLD_MODEL) as unfinished:
            write_model_folder(model, unfinished, card, processor)
            (unfinished / RECORD).write_text(record + "\n", encoding="utf-8")
            for name, content in notices.items():
                (unfinished / name).write_bytes(content)
            for search_file in search_files:
                search_file.save_pretrained(unfinished)


def _read_notes(notes: str) -> str:
    """Return the notes, or the content of the Markdown file that they name."""
    if notes.endswith(".md") and (Path(notes).is_file() or len(notes.split()) == 1):
        return Path(notes).read_text(encoding="utf-8-sig")
    return notes


def _example_output(
    model: PreTrainedModel, processor: MwpProcessor, search: DefaultSearch, reranker: PlausibilityReranker | None
) -> str:
    """Return what the pipeline prints for the example of the card."""
    rerank = reranker if search.rerank is True else search.rerank
    solver = MathWordProblemPipeline(
        model=model,
        processor=processor,
        device="cpu",
        num_beams=search.num_beams,
        rerank=rerank,
        score_margin=search.score_margin,
    )
    return str(solver(EXAMPLES.get(processor.language, EXAMPLES["en"])))


def _read_search(source: str | PathLike, fitted: str | None) -> tuple[DefaultSearch, PlausibilityReranker | None]:
    """Return the default search and the re-ranker (in `fitted` or beside the model, if any) of a solver."""
    reranker = None
    if fitted is not None or find_beside(source, PlausibilityReranker.file_name):
        reranker = PlausibilityReranker.from_pretrained(fitted or source)
    # `hf-mwp rerank` writes the best search settings to the folder of its re-ranker.
    if fitted is not None and (Path(fitted) / DefaultSearch.file_name).is_file():
        source = fitted
    return DefaultSearch.from_pretrained(source), reranker


def _metadata(args: CardArguments, folder: Path, model: nn.Module) -> dict[str, Any]:
    """Return the given metadata, and those of the cards of the model and, if it has the same weights, the folder."""
    metadata = earlier_metadata(find_beside(args.model, CARD), args.license)
    option = args.metadata or {}
    replaced = earlier_metadata(folder / CARD, args.license)
    if _has_other_weights(folder, model):
        lost = sorted(replaced.keys() - metadata.keys() - option.keys())
        if lost:
            logger.warning(f"The card in {folder} is of another model: {', '.join(lost)} not kept. Use --metadata.")
    else:
        metadata |= replaced
    return metadata | option


def _has_other_weights(folder: Path, model: nn.Module) -> bool:
    """Return whether a folder has weights of another model; those of this model may be in half precision."""
    if not (folder / SAFE_WEIGHTS_NAME).is_file():
        return False
    state = model.state_dict()
    try:
        stored = load_file(folder / SAFE_WEIGHTS_NAME)
    except SafetensorError:
        return True
    for name, value in stored.items():
        if name not in state or not torch.equal(value, state[name].to(value)):
            return True
    return False


def _encoder_alone(solver: Any, source: str | PathLike) -> MwpStudentModel:
    encoder = getattr(solver, "encoder", None)
    if not isinstance(encoder, MwpStudentModel) or solver.config.bottleneck_layers:
        model_type = getattr(encoder, "config", solver.config).model_type
        raise UsageError(f"The encoder of {source} ({model_type!r}) is no student, or needs its bottleneck networks.")
    return with_pooling_layer(encoder)


@checked
def with_pooling_layer(encoder: MwpStudentModel) -> MwpStudentModel:
    """Return the encoder itself if it has a pooling layer, otherwise a copy with an identity pooling layer, so that
    its folder has all weights that `AutoModel` expects. `pooler_output` is the tanh of the first token's state."""
    if encoder.pooler is not None:
        return encoder
    encoder = copy.deepcopy(encoder)
    pooler = MwpStudentPooler(encoder.config)
    nn.init.eye_(pooler.dense.weight)
    nn.init.zeros_(pooler.dense.bias)
    encoder.pooler = pooler.to(encoder.device, encoder.dtype)
    return encoder


@checked
def write_model_folder(
    model: PreTrainedModel, folder: str | PathLike, card: ModelCard | None = None, processor: Any = None
) -> None:
    """Write weights in half precision, configuration, processor, digests of the training texts
    ([`~data.TrainingTexts`]) and card to a folder for `from_pretrained` and the Hub. The model is not changed. The
    configuration keeps its dtype, to which the weights are converted on loading. Raises `UsageError` if weights are
    infinite, NaN or too large for half precision, or cannot be written."""
    folder = Path(folder)
    source = getattr(model, "name_or_path", None) or type(model).__name__
    check_finite(model.state_dict(), source)
    stored = copy.deepcopy(model).half()
    check_finite(stored.state_dict(), source, "half precision")
    # Save the processor first: its tokenizer may write files with the same names as the model's files.
    if processor is not None:
        processor.save_pretrained(folder)
    with writing_weights(folder):
        write_training_texts(model, folder)
        # Write a single weight file of any size.
        stored.save_pretrained(folder, max_shard_size="1000TB")
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    for section in (config, *config.values()):
        if isinstance(section, dict) and "dtype" in section:
            section["dtype"] = str(model.dtype).removeprefix("torch.")
    path.write_text(json.dumps(config, indent=2, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")
    if card is not None:
        card.save(folder / CARD)
