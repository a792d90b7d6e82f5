import pytest
import torch
from torch.nn import functional
from transformers import LEDConfig, LEDForConditionalGeneration

from hf_mwp import prune_heads
from hf_mwp.compress.distillation.seq2seq_student import make_seq2seq_student
from tests.slow_parameters import slow_after, slow_except
from tests.tiny import tiny_classifier
from tests.tiny_seq2seq import KINDS, tiny_seq2seq


INPUTS = {"input_ids": torch.tensor([[5, 6, 7, 3]]), "labels": torch.tensor([[8, 9, 3]])}
HEADS = {"encoder_attention_heads": 4, "decoder_attention_heads": 4, "decoder_ffn_dim": 32}


def tiny_teacher(architecture="bart", **fields):
    return tiny_seq2seq(architecture, encoder_layers=4, **fields)


@pytest.mark.parametrize("architecture", slow_except(KINDS, "bart", "t5"))
def test_all_layers_at_the_same_width_are_the_teacher(architecture):
    teacher = tiny_teacher(architecture)
    student = make_seq2seq_student(teacher, 4, 2).eval()
    assert torch.equal(student(**INPUTS).logits, teacher(**INPUTS).logits)
    addresses = {parameter.data_ptr() for parameter in teacher.parameters()}
    assert not any(parameter.data_ptr() in addresses for parameter in student.parameters())


@pytest.mark.parametrize("architecture", ["bart", "t5"])
@pytest.mark.parametrize(("layers", "copied_layers"), [(2, (1, 3)), ([0, 2], (0, 2))])
def test_some_layers_are_copied(architecture, layers, copied_layers):
    teacher = tiny_teacher(architecture)
    student = make_seq2seq_student(teacher, layers, 1)
    assert student.config.num_hidden_layers == 2
    student_layers = student.get_encoder().block if architecture == "t5" else student.get_encoder().layers
    teacher_layers = teacher.get_encoder().block if architecture == "t5" else teacher.get_encoder().layers
    for student_layer, index in zip(student_layers, copied_layers, strict=True):
        weights = dict(teacher_layers[index].named_parameters())
        for name, parameter in student_layer.named_parameters():
            assert "relative" in name or torch.equal(parameter, weights[name]), name


def test_the_generation_config_is_a_copy_of_the_teachers():
    teacher = tiny_teacher()
    teacher.generation_config.update(max_length=33, num_beams=4)
    student = make_seq2seq_student(teacher, 2, 1)
    assert (student.generation_config.max_length, student.generation_config.num_beams) == (33, 4)
    student.generation_config.max_length = 5
    assert teacher.generation_config.max_length == 33


@pytest.mark.parametrize(
    ("architecture", "init"),
    slow_after(
        1,
        [
            ("bart", "slice"),
            ("mbart", "slice"),
            ("marian", "slice"),
            ("pegasus", "slice"),
            ("m2m_100", "slice"),
            ("t5", "slice"),
            ("bart", "embeddings"),
            ("t5", "embeddings"),
            ("t5", "random"),
        ],
    ),
)
def test_narrow_students_train_save_and_generate(architecture, init, tmp_path):
    teacher = tiny_teacher(architecture)
    student = make_seq2seq_student(teacher, 2, 1, hidden_size=8, init=init)
    assert student.config.d_model == 8
    loss = student(**INPUTS).loss
    loss.backward()
    assert loss.isfinite()
    assert all(parameter.grad is not None for parameter in student.parameters() if parameter.requires_grad)
    student.save_pretrained(tmp_path)
    loaded = type(student).from_pretrained(tmp_path).eval()
    assert torch.equal(loaded(**INPUTS).logits, student.eval()(**INPUTS).logits)
    assert loaded.generate(INPUTS["input_ids"], max_new_tokens=3, do_sample=False).shape[0] == 1
    embeddings = student.get_input_embeddings().weight
    teacher_embeddings = teacher.get_input_embeddings().weight
    assert torch.equal(embeddings, teacher_embeddings[:, :8]) == (init == "slice")
    if init == "embeddings":
        # As many directions as there are carry most of the products of tokens.
        products = (embeddings @ embeddings.T).flatten()
        teacher_products = (teacher_embeddings @ teacher_embeddings.T).flatten()
        assert functional.cosine_similarity(products, teacher_products, dim=0) > 0.8


def test_heads_keep_their_size_if_it_divides_the_width():
    config = make_seq2seq_student(tiny_teacher(**HEADS), 1, 1, hidden_size=12).config
    assert (config.encoder_attention_heads, config.encoder_ffn_dim, config.decoder_ffn_dim) == (3, 18, 24)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoder_layers": 5}, r"\b5\b.*\b4\b"),
        ({"decoder_layers": 0}, r"\b0\b.*\b2\b"),
        ({"hidden_size": 17}, r"`hidden_size`.*16.*17"),
        ({"hidden_size": 10}, r"4 heads.* 10.*multiple of 4"),
        ({"init": "copy"}, "`init`.*'copy'"),
        ({"encoder_layers": [0, 4]}, r"`layers`.* 3\b.*\[0, 4\]"),
        ({"encoder_layers": []}, r"`layers`.*\[\]"),
        ({"encoder_layers": "0,2"}, "`encoder_layers`.*whole number.*'0,2'"),
        ({"decoder_layers": 1.0}, r"whole number.* 1\.0"),
        ({"decoder_layers": None}, "whole number.*None"),
        ({"hidden_size": "8"}, "`hidden_size`.*whole number.*'8'"),
    ],
)
def test_wrong_sizes_are_named(options, message):
    teacher = tiny_teacher(**HEADS)
    with pytest.raises((ValueError, TypeError), match=message):
        make_seq2seq_student(teacher, **({"encoder_layers": 2, "decoder_layers": 1} | options))


# peft reads it; transformers will remove it.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_models_with_adapters_are_refused():
    peft = pytest.importorskip("peft")
    adapted = peft.get_peft_model(tiny_teacher(), peft.LoraConfig(target_modules=["q_proj"], task_type="SEQ_2_SEQ_LM"))
    with pytest.raises(ValueError, match="merge_and_unload"):
        make_seq2seq_student(adapted, 1, 1)


def test_other_models_are_refused():
    with pytest.raises(ValueError, match="CutBartForConditionalGeneration.*before the teacher is pruned"):
        make_seq2seq_student(prune_heads(tiny_teacher(), {0: [0]}), 1, 1)
    with pytest.raises(ValueError, match="BertForSequenceClassification.*BART"):
        make_seq2seq_student(tiny_classifier(), 1, 1)
    sizes = {"vocab_size": 9, "d_model": 4, "encoder_attention_heads": 1, "decoder_attention_heads": 1}
    config = LEDConfig(**sizes, encoder_layers=2, decoder_layers=2, attention_window=4)
    with pytest.raises(ValueError, match="LEDForConditionalGeneration.*BART"):
        make_seq2seq_student(LEDForConditionalGeneration(config), 1, 1)
    with pytest.raises(TypeError, match="`teacher` must be a `PreTrainedModel`, got 'facebook/bart-large'"):
        make_seq2seq_student("facebook/bart-large", 1, 1)
