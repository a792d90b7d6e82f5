"""Functions that build, load and derive sequence-to-sequence models and their tokenizers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from hf_mwp.utils.checks import check_used
from hf_mwp.utils.option import options_in
from hf_mwp.utils.usage_error import UsageError

from .classifier import limit_length, load_classifier
from .encoder import parse_layers, set_dropout
from .model_sources import check_fields, check_same_tokens, is_classifier, load_config, load_pretrained, load_tokenizer
from .solver import MAX_LENGTH, SolverArguments, load_solver
from .student import StudentArguments


if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase, PreTrainedTokenizerFast

# Options of `SolverArguments` that also apply to sequence-to-sequence models.
SEQ2SEQ_OPTIONS = ("encoder", "encoder_config", "tokenizer", "solver", "max_length", "dropout", "attn_implementation")
# `--tokenizer learn:4000` learns a tokenizer with 4,000 tokens.
LEARN = "learn:"
SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>"}
# Starts of [`~distillation.make_seq2seq_student`]. "slice" copies layers, or the first rows and columns of weights.
STUDENT_INITS = {"cut": "slice", "project": "slice", "random": "random"}
UNUSED_STUDENT_OPTIONS = ("student_encoder", "student_intermediate_size", "student_heads", "student_dropout")
LONGEST_TEXT = 128


def build_seq2seq(
    texts: Iterable[str], options: SolverArguments, placeholders: Sequence[str], languages: Sequence[str | None]
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """
    Create a sequence-to-sequence model to train, and its tokenizer. The model starts from `encoder` or `solver` (both
    a pretrained model), or from `encoder_config`: a `model_type` (`"bart"` by default) and sizes of random weights.
    These need a `tokenizer`, which may be `learn:4000`: 4,000 tokens are learned from the `texts` (sources and
    targets), with each of the `placeholders` as a single token. For `languages`, see [`set_languages`]. Raises
    `UsageError` for options that do not apply.
    """
    check_used(options, SEQ2SEQ_OPTIONS, "applies only to solvers, not to this `task`. Remove it")
    if options.encoder_config is None:
        source, length = options.encoder or options.solver, options.max_length or MAX_LENGTH
        return load_seq2seq_model(
            source, options.dropout, options.tokenizer, length, options.attn_implementation, languages
        )
    if options.tokenizer.startswith(LEARN):
        size, least = options.tokenizer.removeprefix(LEARN), len(SPECIAL) + len(placeholders) + 1
        if not size.isdecimal() or int(size) < least:
            raise UsageError(f"`tokenizer` needs a number of at least {least}, such as {LEARN}4000, not {size!r}.")
        tokenizer = learn_tokenizer(texts, int(size), placeholders)
    else:
        tokenizer = load_tokenizer(options.tokenizer)
    return _random_model(options, tokenizer), tokenizer


def load_seq2seq_model(
    name: str,
    dropout: float | None = None,
    tokenizer: str | None = None,
    max_length: int | None = None,
    attention: str | None = None,
    languages: Sequence[str | None] = (),
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """Load a sequence-to-sequence model and its tokenizer. Raises `UsageError` if it is of a different kind."""
    from transformers import AutoModelForSeq2SeqLM

    config = load_config(name)
    if type(config) not in AutoModelForSeq2SeqLM._model_mapping:
        raise UsageError(
            f"{name} is not a sequence-to-sequence model (BART, Marian, T5), but of type {config.model_type!r}."
        )
    set_dropout(config, dropout)
    model = load_pretrained(AutoModelForSeq2SeqLM, name, config=config, attn_implementation=attention)
    reader = limit_length(load_tokenizer(tokenizer or name, model), model, max_length)
    search = model.generation_config
    if search.max_length is None and search.max_new_tokens is None:
        # Transformers would generate at most 20 tokens.
        search.max_length = min(reader.model_max_length, LONGEST_TEXT)
    set_languages(model, reader, *languages)
    return model, reader


def set_languages(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, source: str | None = None, target: str | None = None
) -> None:
    """Set the languages of a multilingual tokenizer (mBART, M2M100, NLLB) and the first token of its model's texts.
    `en` also stands for `en_XX`; names that are no languages of the tokenizer, such as `summary`, change nothing."""
    if not hasattr(tokenizer, "tgt_lang"):
        return
    tokens = sorted(tokenizer.all_special_tokens)

    def find(language: str | None) -> str | None:
        alike = (token for token in tokens if language in (token, token.partition("_")[0]))
        # The languages of M2M100 are no special tokens.
        return language if language in getattr(tokenizer, "lang_code_to_token", ()) else next(alike, None)

    tokenizer.src_lang = find(source) or tokenizer.src_lang
    tokenizer.tgt_lang = find(target) or tokenizer.tgt_lang or tokenizer.src_lang
    # Labels begin with the language, or end with it (mBART-cc25), and the decoder then begins with it.
    ids = tokenizer(text_target="")["input_ids"]
    if find(target) and len(ids) == 2:
        if ids[1] == tokenizer.eos_token_id:
            model.generation_config.forced_bos_token_id = ids[0]
        else:
            model.config.decoder_start_token_id = model.generation_config.decoder_start_token_id = ids[1]


def load_any(name: str) -> tuple[PreTrainedModel, Any]:
    """Load a solver, text classifier or sequence-to-sequence model, and its processor or tokenizer."""
    config = load_config(name)
    if is_classifier(config):
        return load_classifier(name)
    return load_seq2seq_model(name) if config.is_encoder_decoder else load_solver(name)


def make_student_seq2seq(
    teacher: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, options: StudentArguments
) -> PreTrainedModel:
    """Create a student ([`~distillation.make_seq2seq_student`]) or load it. It has the teacher's tokens."""
    from hf_mwp.compress.distillation.seq2seq_student import make_seq2seq_student
    from hf_mwp.utils.provenance import inherit_training_texts

    used = {*options_in(StudentArguments)} - {*UNUSED_STUDENT_OPTIONS}
    check_used(options, used, "has no effect on a sequence-to-sequence student. Remove it")
    if options.student_init not in STUDENT_INITS:
        raise UsageError(f"`student_init` of a sequence-to-sequence student is one of {', '.join(STUDENT_INITS)}.")
    if options.student is not None:
        languages = [getattr(tokenizer, name, None) for name in ("src_lang", "tgt_lang")]
        student, own = load_seq2seq_model(options.student, languages=languages)
        remedy = "Train this one on the teacher's texts (`hf-mwp pseudo-label`, then `hf-mwp train`)."
        check_same_tokens(options.student, own, tokenizer, remedy)
        return student
    layers = parse_layers(options.student_layers or "3")
    layers = [layers, layers] if isinstance(layers, int) else layers
    if len(layers) != 2:
        raise UsageError("`student_layers` of a sequence-to-sequence student are two numbers: of encoder and decoder.")
    init, choice = STUDENT_INITS[options.student_init], options.student_layer_choice or "uniform"
    student = make_seq2seq_student(teacher, *layers, options.student_hidden_size, init, choice)
    inherit_training_texts(student, teacher)
    return student


def learn_tokenizer(texts: Iterable[str], size: int, placeholders: Sequence[str] = ()) -> PreTrainedTokenizerFast:
    """Learn byte-pair encoding (deterministic, SentencePiece's spaces); each of the `placeholders` is one token."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE(unk_token=SPECIAL["unk_token"]))
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    left, names = size - len(placeholders), [*SPECIAL.values()]
    limits = {"vocab_size": left, "limit_alphabet": max(left - len(names), 1)}
    trainer = trainers.BpeTrainer(special_tokens=names, show_progress=False, **limits)
    parts = re.compile("|".join(map(re.escape, placeholders)) or r"(?!)")
    tokenizer.train_from_iterator((part for text in texts for part in parts.split(text)), trainer)
    tokenizer.add_tokens([AddedToken(word, lstrip=True, rstrip=True, normalized=False) for word in placeholders])
    end = SPECIAL["eos_token"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"$A {end}", pair=f"$A $B {end}", special_tokens=[(end, tokenizer.token_to_id(end))]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **SPECIAL)


def _random_model(options: SolverArguments, tokenizer: PreTrainedTokenizerBase) -> PreTrainedModel:
    from transformers import CONFIG_MAPPING, AutoModelForSeq2SeqLM

    sizes = dict(options.encoder_config)
    kind = str(sizes.pop("model_type", "bart"))
    known = sorted(each.model_type for each in AutoModelForSeq2SeqLM._model_mapping)
    if kind not in known:
        raise UsageError(
            f"`encoder_config`: model_type {kind!r} is not a sequence-to-sequence model. Use {', '.join(known)}."
        )
    usual = CONFIG_MAPPING[kind]()
    check_fields("encoder_config", usual, sizes)
    ends = {name: getattr(tokenizer, name) for name in ("pad_token_id", "eos_token_id")}
    if None in ends.values():
        raise UsageError("`tokenizer`: a sequence-to-sequence model needs one with a padding and an end token.")
    begins = {"bos_token_id": tokenizer.bos_token_id, "decoder_start_token_id": ends["eos_token_id"]}
    forced = {"forced_eos_token_id": ends["eos_token_id"]} if hasattr(usual, "forced_eos_token_id") else {}
    config = CONFIG_MAPPING[kind](**({"vocab_size": len(tokenizer), **ends, **begins, **forced} | sizes))
    set_dropout(config, options.dropout)
    model = AutoModelForSeq2SeqLM.from_config(
        config, attn_implementation=options.attn_implementation, trust_remote_code=False
    )
    limit_length(tokenizer, model, options.max_length or MAX_LENGTH)
    # An untrained model generates texts of maximum length in evaluations.
    model.generation_config.max_length = min(tokenizer.model_max_length, LONGEST_TEXT)
    return model
