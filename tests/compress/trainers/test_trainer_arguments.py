"""Arguments of trainers as users of `Trainer` and of Transformers' example scripts pass them."""

import dataclasses

import pytest
from transformers import HfArgumentParser

from hf_mwp.compress.trainers import (
    DistillationConfig,
    DistillationTrainer,
    Seq2SeqDistillationConfig,
    Seq2SeqFineTuningConfig,
)
from tests.compress.trainers.distilling import QUIET, pad
from tests.tiny import tiny_classifier, tiny_classifier_rows


# Options of `run_translation.py`, `run_summarization.py` and `run_seq2seq_qa.py` of Transformers.
SCRIPT_OPTIONS = """
model_name_or_path config_name tokenizer_name cache_dir use_fast_tokenizer model_revision token trust_remote_code
resize_position_embeddings source_lang target_lang lang dataset_name dataset_config_name text_column summary_column
context_column question_column answer_column train_file validation_file test_file overwrite_cache
preprocessing_num_workers max_source_length max_target_length val_max_target_length max_seq_length max_answer_length
val_max_answer_length pad_to_max_length max_train_samples max_eval_samples max_predict_samples version_2_with_negative
null_score_diff_threshold doc_stride n_best_size num_beams ignore_pad_token_for_loss source_prefix forced_bos_token
"""
ScriptArguments = dataclasses.make_dataclass(
    "ScriptArguments", [(name, str | None, None) for name in SCRIPT_OPTIONS.split()]
)


@pytest.mark.parametrize("config_class", [Seq2SeqDistillationConfig, Seq2SeqFineTuningConfig])
def test_scripts_of_transformers_parse_the_config(config_class, tmp_path):
    parser = HfArgumentParser((ScriptArguments, config_class))
    flags = ["--num_beams", "4", "--generation_num_beams", "3", "--output_dir", str(tmp_path), "--use_cpu", "true"]
    script_args, args = parser.parse_args_into_dataclasses(flags)
    assert type(args) is config_class
    assert script_args.num_beams == "4"
    assert args.generation_num_beams == 3
    assert args.num_beams == 1


@pytest.mark.parametrize("config_class", [Seq2SeqDistillationConfig, Seq2SeqFineTuningConfig])
def test_python_passes_the_number_of_beams(config_class, tmp_path):
    args = config_class(str(tmp_path), num_beams=3, **QUIET)
    assert args.num_beams == args.generation_num_beams == 3
    assert config_class(str(tmp_path), **QUIET).num_beams == 1
    with pytest.raises(ValueError, match="`num_beams`.* 0"):
        config_class(str(tmp_path), num_beams=0, **QUIET)
    assert "num_beams" in {field.name for field in dataclasses.fields(args)}


def test_arguments_by_position(tmp_path):
    rows = tiny_classifier_rows(4)
    args = DistillationConfig(str(tmp_path), **QUIET)
    student = tiny_classifier()
    teacher = tiny_classifier(1)
    trainers = [
        DistillationTrainer(student, args, pad, rows, rows[:2], teacher_model=teacher),
        DistillationTrainer(student, teacher, args, pad, rows, rows[:2]),
        DistillationTrainer(student, [teacher], args, pad, rows, eval_dataset=rows[:2]),
        DistillationTrainer(student, args=args, data_collator=pad, train_dataset=rows, teacher_model=teacher),
    ]
    for trainer in trainers:
        assert trainer.model is student
        assert trainer.teacher_model is teacher
        assert trainer.args is args
        assert trainer.data_collator is pad
        assert trainer.train_dataset is rows


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"model": None}, TypeError, "`model`.*`NoneType`"),
        ({"model": "bert"}, TypeError, "`model`.* 'bert'.*from_pretrained"),
        ({"model": tiny_classifier}, TypeError, "`model`.*`function`"),
        ({"model": None, "model_init": tiny_classifier}, ValueError, "`model_init`.*`model="),
        ({"teacher_model": None}, TypeError, "`teacher_model`.*`NoneType`"),
        ({"teacher_model": "bert"}, TypeError, "`teacher_model`.*`str`"),
    ],
)
def test_arguments_that_are_no_models_are_named(changes, error, message, tmp_path):
    keywords = {
        "model": tiny_classifier(),
        "teacher_model": tiny_classifier(1),
        "args": DistillationConfig(str(tmp_path), **QUIET),
        "train_dataset": tiny_classifier_rows(4),
        "data_collator": pad,
    }
    with pytest.raises(error, match=message):
        DistillationTrainer(**(keywords | changes))


def test_too_many_or_repeated_arguments_are_named(tmp_path):
    args = DistillationConfig(str(tmp_path), **QUIET)
    student = tiny_classifier()
    teacher = tiny_classifier(1)
    with pytest.raises(TypeError, match="`args` is passed twice"):
        DistillationTrainer(student, args, args=args, teacher_model=teacher)
    with pytest.raises(TypeError, match="`teacher_model` is passed twice"):
        DistillationTrainer(student, teacher, args, teacher_model=teacher)
    with pytest.raises(TypeError, match="at most 13 positional arguments, got 20"):
        DistillationTrainer(student, args, *[None] * 18)
