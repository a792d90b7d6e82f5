"""Arguments of trainers as users of `Trainer` and of Transformers' example scripts pass them."""

import dataclasses
from dataclasses import dataclass, field

import pytest
from transformers import HfArgumentParser

from hf_mwp.compress.trainers import (
    DistillationConfig,
    DistillationTrainer,
    Seq2SeqDistillationConfig,
    Seq2SeqDistillationTrainer,
    Seq2SeqFineTuningConfig,
    Seq2SeqFineTuningTrainer,
)
from tests.compress.trainers.distilling import pad
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_tokenizer
from tests.tiny_seq2seq import tiny_pairs, tiny_seq2seq


COMMON = {"use_cpu": True, "report_to": "none", "disable_tqdm": True}


@dataclass
class ModelArguments:
    """As in `run_translation.py` and `run_summarization.py` of Transformers."""

    model_name_or_path: str = field(metadata={"help": "Path of a model."})
    config_name: str | None = None
    tokenizer_name: str | None = None
    cache_dir: str | None = None
    use_fast_tokenizer: bool = True
    model_revision: str = "main"
    token: str | None = None
    trust_remote_code: bool = False
    resize_position_embeddings: bool | None = None


@dataclass
class DataTrainingArguments:
    """As in these scripts, and `run_seq2seq_qa.py`."""

    source_lang: str | None = None
    target_lang: str | None = None
    lang: str | None = None
    dataset_name: str | None = None
    dataset_config_name: str | None = None
    text_column: str | None = None
    summary_column: str | None = None
    context_column: str | None = "context"
    question_column: str | None = "question"
    answer_column: str | None = "answers"
    train_file: str | None = None
    validation_file: str | None = None
    test_file: str | None = None
    overwrite_cache: bool = False
    preprocessing_num_workers: int | None = None
    max_source_length: int | None = 1024
    max_target_length: int | None = 128
    val_max_target_length: int | None = None
    max_seq_length: int = 384
    max_answer_length: int = 30
    val_max_answer_length: int | None = None
    pad_to_max_length: bool = False
    max_train_samples: int | None = None
    max_eval_samples: int | None = None
    max_predict_samples: int | None = None
    version_2_with_negative: bool = False
    null_score_diff_threshold: float = 0.0
    doc_stride: int = 128
    n_best_size: int = 20
    num_beams: int | None = field(default=None, metadata={"help": "Number of beams to use for evaluation."})
    ignore_pad_token_for_loss: bool = True
    source_prefix: str | None = ""
    forced_bos_token: str | None = None


@pytest.mark.parametrize("config_class", [Seq2SeqDistillationConfig, Seq2SeqFineTuningConfig])
def test_scripts_of_transformers_parse_the_config(config_class, tmp_path):
    parser = HfArgumentParser((ModelArguments, DataTrainingArguments, config_class))
    flags = ["--model_name_or_path", "x", "--num_beams", "4", "--output_dir", str(tmp_path), "--use_cpu", "true"]
    _, data, args = parser.parse_args_into_dataclasses([*flags, "--generation_num_beams", "3"])
    assert data.num_beams == 4 and args.generation_num_beams == 3 and args.num_beams == 1
    assert type(args) is config_class


@pytest.mark.parametrize("config_class", [Seq2SeqDistillationConfig, Seq2SeqFineTuningConfig])
def test_python_passes_the_number_of_beams(config_class, tmp_path):
    args = config_class(str(tmp_path), num_beams=3, **COMMON)
    assert args.num_beams == args.generation_num_beams == 3
    assert config_class(str(tmp_path), **COMMON).num_beams == 1
    with pytest.raises(ValueError, match="`num_beams`.* 0"):
        config_class(str(tmp_path), num_beams=0, **COMMON)
    assert "num_beams" in {each.name for each in dataclasses.fields(args)}


def test_arguments_by_position(tmp_path):
    rows = tiny_classifier_rows(4)
    args = DistillationConfig(str(tmp_path), **COMMON)
    student = tiny_classifier()
    teacher = tiny_classifier(1)
    trainers = [
        DistillationTrainer(student, args, pad, rows, rows[:2], teacher_model=teacher),
        DistillationTrainer(student, teacher, args, pad, rows, rows[:2]),
        DistillationTrainer(student, [teacher], args, pad, rows, eval_dataset=rows[:2]),
        DistillationTrainer(student, args=args, data_collator=pad, train_dataset=rows, teacher_model=teacher),
    ]
    for trainer in trainers:
        assert trainer.model is student and trainer.args is args and trainer.data_collator is pad
        assert trainer.teacher_model is teacher and trainer.train_dataset is rows


def test_arguments_of_sequence_to_sequence_trainers_by_position(tmp_path):
    student = tiny_seq2seq()
    teacher = tiny_seq2seq(seed=1)
    rows = tiny_pairs(4)
    args = Seq2SeqDistillationConfig(str(tmp_path), **COMMON)
    keywords = {"processing_class": tiny_tokenizer()}
    for trainer in (
        Seq2SeqDistillationTrainer(student, args, None, rows, rows, teacher_model=teacher, **keywords),
        Seq2SeqDistillationTrainer(student, teacher, args, None, rows, rows, **keywords),
    ):
        assert trainer.args is args and trainer.teacher_model is teacher and trainer.train_dataset is rows
    args = Seq2SeqFineTuningConfig(str(tmp_path), **COMMON)
    assert Seq2SeqFineTuningTrainer(student, args, None, rows, rows, **keywords).args is args


CARELESS = {
    "no model": (lambda student, args: {"args": args}, TypeError, "`model` must be a model, got `NoneType`.*Pass"),
    "a name": (lambda student, args: {"model": "bert", "args": args}, TypeError, "`model`.* 'bert'.*from_pretrained"),
    "a function": (lambda student, args: {"model": tiny_classifier}, TypeError, "`model`.*`function`"),
    "model_init": (lambda student, args: {"model_init": tiny_classifier}, ValueError, "`model_init`.*`model="),
    "no teacher": (lambda student, args: {"model": student, "teacher_model": None}, TypeError, "`NoneType`.*Load"),
    "a teacher's name": (lambda student, args: {"model": student, "teacher_model": "bert"}, TypeError, "`str`.*Load"),
}


@pytest.mark.parametrize("name", CARELESS)
def test_careless_arguments_are_named(name, tmp_path):
    make, error, message = CARELESS[name]
    args = DistillationConfig(str(tmp_path), **COMMON)
    keywords = {"teacher_model": tiny_classifier(1), "train_dataset": tiny_classifier_rows(4), "data_collator": pad}
    with pytest.raises(error, match=message):
        DistillationTrainer(**keywords | make(tiny_classifier(), args))


def test_too_many_or_repeated_arguments_are_named(tmp_path):
    args = DistillationConfig(str(tmp_path), **COMMON)
    student = tiny_classifier()
    with pytest.raises(TypeError, match="`args` is passed twice"):
        DistillationTrainer(student, args, args=args, teacher_model=tiny_classifier(1))
    with pytest.raises(TypeError, match="`teacher_model` is passed twice"):
        DistillationTrainer(student, tiny_classifier(1), args, teacher_model=tiny_classifier(1))
    with pytest.raises(TypeError, match="at most 13 positional arguments, got 20"):
        DistillationTrainer(student, args, *[None] * 18)
