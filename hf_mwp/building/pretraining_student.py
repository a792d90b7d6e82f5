"""From options to a student to pretrain and its processor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..usage_error import UsageError
from .distilled_student import project_on_problems
from .pretraining_options import StudentModelArguments
from .solver_building import check_tokenizer, numbers_have_tokens, set_dropout
from .solver_loading import check_folder
from .solver_options import parse_layers


if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from ..data.batches.mwp_processor import MwpProcessor

TOKENIZER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json")


class StudentBuilder:
    """
    Builds what the options describe, in two steps: all that can be wrong with the options is found before a corpus is
    tagged, whose tags the model needs.

    The processor has no constants, since texts without equations show none: a solver that is built on the pretrained
    encoder collects them from its own training problems, and takes over the tokens.

    Args:
        args ([`StudentModelArguments`]): The options.
        tagger (`str`, *optional*): Name of the tagger; `None` without tagging.

    Raises:
        UsageError: a folder that is no model or tokenizer, or a tokenizer that is not the encoder's.
        ValueError: an encoder that was pretrained with another tagger.
    """

    def __init__(self, args: StudentModelArguments, tagger: str | None) -> None:
        from transformers import AutoTokenizer

        from ..data.batches.mwp_processor import MwpProcessor

        self.args, self.tagger = args, tagger
        if args.encoder is not None:
            check_folder(args.encoder)
        source = args.tokenizer or args.encoder
        check_tokenizer(source)
        try:
            tokenizer = AutoTokenizer.from_pretrained(source)
            self.encoder = None if args.encoder is None else self._load_encoder()
        except OSError as error:
            raise UsageError(
                f"{source if args.encoder is None else args.encoder} cannot be loaded: {error}"
            ) from error
        if self.encoder is not None:
            self._check_vocabulary(tokenizer)
            self._check_tagger()
        self.processor: MwpProcessor = MwpProcessor(
            tokenizer,
            language=args.language,
            numerals=args.numerals,
            indexed_numbers=numbers_have_tokens(args),
            max_length=args.max_length,
        )
        self.config = self._random_config() if self.encoder is None else self.encoder.config
        from ..models.positions import count_positions

        self.processor.max_length = min(self.processor.max_length, count_positions(self.config))

    def build(self, tags: Sequence[str] | None, texts: Iterable[str] = ()) -> PreTrainedModel:
        """
        The model.

        Args:
            tags (`Sequence[str]`, *optional*): The corpus's tags; without them the model has no tagging head.
            texts (`Iterable[str]`, *optional*): A sample of the corpus, on which a projected student is fitted.
        """
        if self.args.project_to is not None:
            self._project(texts)
        model = self._build(tags)
        if self.args.freeze_encoder:
            model.base_model.requires_grad_(False)
        return model

    def _build(self, tags: Sequence[str] | None) -> PreTrainedModel:
        from ..data import pos_label_list
        from ..data.training_lineage import inherit_training_texts
        from ..models import MwpStudentConfig, MwpStudentForMaskedLM, MwpStudentForPreTraining

        tagging: dict[str, Any] = {"num_pos_tags": 0, "pos_labels": None, "pos_tagger": None}
        if tags is not None:
            tagging = {"pos_labels": pos_label_list(tags), "pos_tagger": self.tagger}
        model_class = MwpStudentForMaskedLM if tags is None else MwpStudentForPreTraining
        if self.encoder is None:
            config = MwpStudentConfig(**(self._random_fields() | tagging))
            if self.args.attn_implementation is not None:
                config._attn_implementation = self.args.attn_implementation
            set_dropout(config, self.args.dropout)
            return model_class(config)
        if tags is not None and not self.args.new_pos_head and self._has_tagging_head:
            # The head that is there goes on learning; whether it knows all tags is checked with the corpus.
            tagging = {}
        options = {
            name: getattr(self.config, name) for name in ("hidden_dropout_prob", "attention_probs_dropout_prob")
        }
        projected = self.args.project_to is not None
        model = model_class.from_encoder(
            self.encoder, layers=None if projected else parse_layers(self.args.encoder_layers), **options, **tagging
        )
        inherit_training_texts(model, self.encoder)
        if tags is not None and tagging:
            model._init_weights(model.cls.pos_tagger)
        self.processor.resize_embeddings(model)
        return model

    def _project(self, texts: Iterable[str]) -> None:
        from ..problems import MathWordProblem

        args, processor = self.args, self.processor
        processor.resize_embeddings(self.encoder)
        problems = [MathWordProblem(text, language=processor.language, numerals=processor.numerals) for text in texts]
        layers = parse_layers(args.encoder_layers or "3")
        self.encoder = project_on_problems(self.encoder, processor, problems, layers, args.project_to)

    @property
    def _has_tagging_head(self) -> bool:
        return type(self.encoder).__name__ == "MwpStudentForPreTraining" and self.encoder.config.pos_labels is not None

    def _random_fields(self) -> dict[str, Any]:
        tokenizer = self.processor.tokenizer
        sizes = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id or 0}
        return sizes | self.args.encoder_config

    def _random_config(self) -> Any:
        from ..models import MwpStudentConfig

        return MwpStudentConfig(**self._random_fields())

    def _load_encoder(self) -> PreTrainedModel:
        """The encoder, with its head for masked language modelling and tagging if it has one."""
        from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoModelForPreTraining

        from ..data.training_lineage import inherit_training_texts

        args = self.args
        config = AutoConfig.from_pretrained(args.encoder)
        architecture = (config.architectures or [""])[0]
        auto = AutoModel
        if architecture.endswith("ForPreTraining"):
            auto = AutoModelForPreTraining
        elif architecture.endswith("ForMaskedLM"):
            auto = AutoModelForMaskedLM
        options: dict[str, Any] = {}
        if args.attn_implementation is not None:
            options["attn_implementation"] = args.attn_implementation
        if args.dropout is not None:
            options |= {"hidden_dropout_prob": args.dropout, "attention_probs_dropout_prob": args.dropout}
        if config.model_type == "mwp_solver":
            # Dropout is a field of its encoder's configuration, and set there afterwards.
            solver = AutoModel.from_pretrained(args.encoder, dtype="float32", use_safetensors=True)
            encoder = solver.encoder
            inherit_training_texts(encoder, solver)
            set_dropout(encoder.config, args.dropout)
            if args.attn_implementation is not None:
                encoder.set_attn_implementation(args.attn_implementation)
            return encoder
        return auto.from_pretrained(args.encoder, dtype="float32", use_safetensors=True, **options)

    def _check_vocabulary(self, tokenizer: Any) -> None:
        from transformers import AutoTokenizer

        source, size = self.args.tokenizer, self.encoder.get_input_embeddings().num_embeddings
        if len(tokenizer) > size:
            raise UsageError(
                f"The tokenizer {source or self.args.encoder} has {len(tokenizer)} tokens, but {self.args.encoder} "
                f"embeds {size}: give the tokenizer that the encoder was trained with."
            )
        folder = Path(self.args.encoder)
        if source is None or not any((folder / name).exists() for name in TOKENIZER_FILES):
            return
        own = {index: token for token, index in AutoTokenizer.from_pretrained(folder).get_vocab().items()}
        other = next(((i, token) for token, i in tokenizer.get_vocab().items() if own.get(i, token) != token), None)
        if other is not None:
            raise UsageError(
                f"The tokenizer {source} is not that of {folder}: the id {other[0]} is {other[1]!r} in one and "
                f"{own[other[0]]!r} in the other. Leave --tokenizer away."
            )

    def _check_tagger(self) -> None:
        from ..data.corpus.tagger_checks import check_tagger

        if self._has_tagging_head and not self.args.new_pos_head:
            check_tagger(self.encoder.config, self.tagger)
