"""Options of the student to pretrain, and a builder for the student and its processor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..options import option
from ..options.yaml_values import parse_mapping
from ..problems import MathWordProblem
from ..usage_error import UsageError
from .encoder import EncoderArguments, keep_layers, parse_layers, project_on_problems
from .model_sources import check_same_tokens, has_tokenizer, load_tokenizer
from .student_shape import ShapeTargets, StudentShape


if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

    from ..data.batches.mwp_processor import MwpProcessor

PROJECTED_SIZES = ("hidden_size", "intermediate_size", "num_attention_heads")


@dataclass
class PretrainingArguments(EncoderArguments, ShapeTargets):
    """Options of the encoder to pretrain: random weights, an existing encoder, or some of its layers."""

    language: str = option("zh", "Language of the texts.", common=True, choices=("zh", "en"))
    max_length: int = option(512, "Maximum number of tokens of a text; longer texts are cut off.")
    project_to: dict | str | None = option(
        None,
        "Start from a projection of the encoder to these sizes, fitted on a sample of the texts: hidden_size, "
        "intermediate_size, num_attention_heads ({}: 312, 1200, 12). The first three layers are used unless "
        "encoder_layers is given. A target replaces this option and encoder_layers.",
    )
    parse_number_words: bool | None = option(None, "Read number words as numbers; if not given, only in English.")
    new_pos_head: bool = option(
        False, "Start with a new tagging head, if the encoder's head has the labels of a different tagger."
    )
    freeze_encoder: bool = option(
        False, "Train only the heads, to measure how well the encoder's states predict the tags."
    )

    def __post_init__(self):
        ShapeTargets.__post_init__(self)
        self.project_to = parse_mapping("project_to", self.project_to)
        if self.project_to is not None:
            unknown = set(self.project_to) - set(PROJECTED_SIZES)
            if unknown or self.encoder is None:
                fault = f"has no field {min(unknown)!r}" if unknown else "needs an `encoder` to project"
                raise ValueError(f"`project_to` {fault}. Its fields are {', '.join(PROJECTED_SIZES)}.")
        super().__post_init__()

    def use_shape(self, shape: StudentShape, encoder: PreTrainedConfig | None) -> None:
        """Take the sizes that were chosen for a target, and as many layers of the encoder, at equal distances."""
        from ..distillation.students.cut_student import choose_layers

        sizes = dict(shape.sizes)
        if encoder is None:
            self.encoder_config = self.encoder_config | sizes
            return
        layers = sizes.pop("num_hidden_layers")
        self.encoder_layers = choose_layers(layers, encoder.num_hidden_layers, "uniform")
        self.project_to = sizes


class PretrainingBuilder:
    """
    Builder of the student and its processor, in two steps: the constructor checks all options, before a corpus is
    tagged; `build` creates the model, which needs the tags of the corpus.

    The processor has no constants, since texts without equations contain none. A solver built on the pretrained
    encoder collects constants from its training problems and reuses the tokens.

    `tagger=None` turns tagging off. Raises `UsageError` if a folder has no model or tokenizer or the tokenizer does
    not fit the encoder, and `ValueError` if the encoder was pretrained with a different tagger.
    """

    def __init__(self, args: PretrainingArguments, tagger: str | None) -> None:
        from ..data.batches.mwp_processor import MwpProcessor
        from ..data.corpus.pretraining_dataset import check_tagger
        from ..models import MwpStudentForPreTraining
        from ..models.architecture import count_positions
        from ..models.mwp_student.conversion_mwp_student import SOURCES

        self.args, self.tagger = args, tagger
        self.encoder = encoder = None if args.encoder is None else args.load(with_heads=True)
        tokenizer = load_tokenizer(args.tokenizer or args.encoder)
        # BERT-like encoders become students; other encoders keep their class and learn only masked words.
        self._becomes_student = encoder is None or encoder.config.model_type in SOURCES
        has_head = isinstance(encoder, MwpStudentForPreTraining) and encoder.config.pos_labels is not None
        self._keeps_head = has_head and not args.new_pos_head
        if encoder is not None:
            self._check_vocabulary(tokenizer)
        sizes = [name for name in ("project_to", "target_ms", "target_mb") if getattr(args, name) is not None]
        if not self._becomes_student and (sizes or tagger is not None):
            fault = sizes[0] if sizes else "tagging (take --pos_loss_weight 0)"
            kind = encoder.config.model_type
            raise UsageError(
                f"{args.encoder}, of type {kind!r}, supports only masked language modelling, not {fault}."
            )
        if self._keeps_head:
            check_tagger(encoder.config, tagger)
        self.processor: MwpProcessor = MwpProcessor(
            tokenizer,
            language=args.language,
            parse_number_words=args.parse_number_words,
            indexed_numbers=args.numbers_have_tokens(),
            max_length=args.max_length,
        )
        config = args.random_config(self.processor.tokenizer) if self.encoder is None else self.encoder.config
        self.processor.limit_length(count_positions(config))

    def build(self, tags: Sequence[str] | None, texts: Iterable[str] = ()) -> PreTrainedModel:
        """Return the model, with a tagging head if `tags` are given. A projected student is fitted on `texts`."""
        from ..data import pos_label_list
        from ..models import MwpStudentForMaskedLM, MwpStudentForPreTraining

        model_class: Any = MwpStudentForMaskedLM
        tagging: dict[str, Any] = {"num_pos_tags": 0, "pos_labels": None, "pos_tagger": None}
        if tags is not None:
            model_class = MwpStudentForPreTraining
            tagging = {"pos_labels": pos_label_list(tags), "pos_tagger": self.tagger}
        if self.encoder is None:
            model = model_class(self.args.random_config(self.processor.tokenizer, **tagging))
        else:
            model = self._start_from_encoder(model_class, tagging, texts)
        if self.args.freeze_encoder:
            model.base_model.requires_grad_(False)
        return model

    def _start_from_encoder(self, model_class: Any, tagging: dict[str, Any], texts: Iterable[str]) -> PreTrainedModel:
        from ..data.training_lineage import inherit_training_texts
        from ..models.masked_words import predict_masked_words

        config, layers, encoder = self.encoder.config, parse_layers(self.args.encoder_layers), self.encoder
        if not self._becomes_student:
            model = predict_masked_words(keep_layers(encoder.base_model, layers))
            self.processor.resize_embeddings(model)
            return model
        fields = {name: getattr(config, name) for name in ("hidden_dropout_prob", "attention_probs_dropout_prob")}
        if self.args.project_to is not None:
            self.processor.resize_embeddings(encoder)
            options = {"language": self.processor.language, "parse_number_words": self.processor.parse_number_words}
            problems = [MathWordProblem(text, **options) for text in texts]
            encoder = project_on_problems(encoder, self.processor, problems, layers or 3, self.args.project_to)
            layers = None
        # An existing tagging head is trained further; the corpus check verifies that it has all tags.
        new_head = bool(tagging["pos_labels"]) and not (self._keeps_head and encoder is self.encoder)
        if new_head or not tagging["pos_labels"]:
            fields |= tagging
        model = model_class.from_encoder(encoder, layers=layers, **fields)
        inherit_training_texts(model, encoder)
        if new_head:
            model._init_weights(model.cls.pos_tagger)
        self.processor.resize_embeddings(model)
        return model

    def _check_vocabulary(self, tokenizer: Any) -> None:
        source, encoder = self.args.tokenizer, self.args.encoder
        size = self.encoder.get_input_embeddings().num_embeddings
        if len(tokenizer) > size:
            raise UsageError(
                f"The tokenizer {source or encoder} has {len(tokenizer)} tokens, but {encoder} embeds {size}. Pass "
                "the tokenizer that the encoder was trained with."
            )
        if source is not None and has_tokenizer(encoder):
            check_same_tokens(encoder, load_tokenizer(encoder), tokenizer, "Omit --tokenizer.", part=True)
