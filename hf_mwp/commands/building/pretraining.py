"""Options of the student to pretrain, and a builder for the student and its processor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.utils.option import option
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.yaml_values import parse_mapping

from .encoder import EncoderArguments, derive_student, keep_layers, load_encoder, parse_layers, project_on_problems
from .model_sources import check_same_tokens, has_tokenizer, load_tokenizer
from .student_shape import ShapeTargets, StudentShape


if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

    from hf_mwp.solver.batches.mwp_processor import MwpProcessor

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
    parse_number_words: bool | None = option(
        None, "Read number words as numbers; by default in English, and in Chinese texts without digits."
    )
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
        from hf_mwp.compress.distillation.layer_mapping import choose_layers

        sizes = dict(shape.sizes)
        if encoder is None:
            self.encoder_config = self.encoder_config | sizes
            return
        layers = sizes.pop("num_hidden_layers")
        self.encoder_layers = choose_layers(layers, encoder.num_hidden_layers, "uniform")
        self.project_to = sizes


class PretrainingBuilder:
    """Builder of the student and its processor. The constructor checks all options, before a corpus is tagged
    (`UsageError`, or `ValueError` if the encoder was pretrained with another tagger); `build` needs the tags of the
    corpus. The processor has no constants: a solver built on the encoder collects them from its training problems."""

    def __init__(self, args: PretrainingArguments, tagger: str | None) -> None:
        from hf_mwp.compress.models import MwpStudentForPreTraining
        from hf_mwp.compress.models.architecture import count_positions
        from hf_mwp.compress.models.mwp_student.conversion_mwp_student import SOURCES
        from hf_mwp.solver.batches.mwp_processor import MwpProcessor
        from hf_mwp.solver.corpus.pretraining_dataset import check_tagger

        self.args, self.tagger, self.encoder = args, tagger, None
        # BERT-like encoders become students. Other types keep their class and support only masked language modelling.
        self._becomes_student = True
        # An existing tagging head is trained further, unless the encoder is projected.
        self._keeps_head = False
        if args.encoder is not None:
            self.encoder = load_encoder(args.encoder, args.dropout, args.attn_implementation, with_heads=True)
            config = self.encoder.config
            self._becomes_student = config.model_type in SOURCES
            has_head = isinstance(self.encoder, MwpStudentForPreTraining) and config.pos_labels is not None
            self._keeps_head = has_head and not args.new_pos_head
        tokenizer = load_tokenizer(args.tokenizer or args.encoder, self.encoder)
        if None not in (args.encoder, args.tokenizer) and has_tokenizer(args.encoder):
            check_same_tokens(args.encoder, load_tokenizer(args.encoder), tokenizer, "Omit --tokenizer.", subset=True)
        if not self._becomes_student and (args.project_to is not None or args.targets or tagger is not None):
            raise UsageError(
                f"{args.encoder}, of type {config.model_type!r}, supports only masked language modelling, not tagging "
                "(take --pos_loss_weight 0), `project_to` or a target."
            )
        words = None if self._becomes_student else self.encoder.get_input_embeddings().embedding_dim
        if words is not None and words != config.hidden_size:
            raise UsageError(
                f"{args.encoder}, of type {config.model_type!r}, cannot be pretrained: its word embeddings have "
                f"{words} dimensions, its hidden states {config.hidden_size}."
            )
        if self._keeps_head:
            check_tagger(config, tagger)
        self.processor: MwpProcessor = MwpProcessor(
            tokenizer,
            language=args.language,
            parse_number_words=args.parse_number_words,
            indexed_numbers=args.uses_indexed_numbers(),
            max_length=args.max_length,
        )
        if self.encoder is None:
            config = args.random_config(self.processor.tokenizer)
        self.processor.limit_length(count_positions(config))

    def build(self, tags: Sequence[str] | None, texts: Iterable[str] = ()) -> PreTrainedModel:
        """Return the model, with a tagging head if `tags` are given. A projected student is fitted on `texts`."""
        from hf_mwp.compress.models import MwpStudentForMaskedLM, MwpStudentForPreTraining
        from hf_mwp.compress.models.masked_lm import as_masked_lm
        from hf_mwp.solver.corpus import pos_label_list

        layers = parse_layers(self.args.encoder_layers)
        model_class: Any = MwpStudentForMaskedLM
        tagging: dict[str, Any] = {"num_pos_tags": 0, "pos_labels": None, "pos_tagger": None}
        if tags is not None:
            model_class = MwpStudentForPreTraining
            tagging = {"pos_labels": pos_label_list(tags), "pos_tagger": self.tagger}
        if self.encoder is None:
            model = model_class(self.args.random_config(self.processor.tokenizer, **tagging))
        elif not self._becomes_student:
            model = as_masked_lm(keep_layers(self.encoder.base_model, layers))
        elif self.args.project_to is not None:
            self.processor.resize_embeddings(self.encoder)
            options = {name: getattr(self.processor, name) for name in ("language", "parse_number_words")}
            problems = [MathWordProblem(text, **options) for text in texts]
            sizes = self.args.project_to
            encoder = project_on_problems(self.encoder, self.processor, problems, layers or 3, **sizes)
            model = self._student(encoder, model_class, None, tagging)
        else:
            # The corpus check verifies that a kept head has all tags.
            keeps_head = tags is not None and self._keeps_head
            model = self._student(self.encoder, model_class, layers, {} if keeps_head else tagging)
        self.processor.resize_embeddings(model)
        if self.args.freeze_encoder:
            model.base_model.requires_grad_(False)
        return model

    def _student(
        self, encoder: PreTrainedModel, model_class: Any, layers: int | list[int] | None, tagging: dict[str, Any]
    ) -> PreTrainedModel:
        """Return a student with the encoder's weights, and with a new tagging head if `tagging` describes one."""
        model = derive_student(model_class, encoder, layers=layers, **tagging)
        if tagging.get("pos_labels"):
            model._init_weights(model.cls.pos_tagger)
        return model
