import pytest
import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    BartConfig,
    BertConfig,
    BertForSequenceClassification,
    LEDConfig,
    LEDForConditionalGeneration,
    M2M100Config,
    MarianConfig,
    MBartConfig,
    PegasusConfig,
    T5Config,
)

from hf_mwp import prune_heads
from hf_mwp.compress.distillation.seq2seq_student import make_seq2seq_student


BART = {
    "vocab_size": 30,
    "d_model": 16,
    "encoder_layers": 4,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 32,
    "max_position_embeddings": 20,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
    "forced_eos_token_id": 2,
}
CONFIGS = {
    "bart": lambda: BartConfig(**BART),
    "mbart": lambda: MBartConfig(**BART),
    "marian": lambda: MarianConfig(**BART),
    "pegasus": lambda: PegasusConfig(**BART),
    "m2m_100": lambda: M2M100Config(**BART),
    "t5": lambda: T5Config(
        vocab_size=30, d_model=16, d_kv=4, d_ff=24, num_layers=4, num_decoder_layers=2, num_heads=4,
        decoder_start_token_id=0,
    ),
}  # fmt: skip
INPUTS = {"input_ids": torch.tensor([[5, 6, 7, 2]]), "labels": torch.tensor([[8, 9, 2]])}


@pytest.fixture(params=CONFIGS)
def teacher(request):
    torch.manual_seed(0)
    return AutoModelForSeq2SeqLM.from_config(CONFIGS[request.param]()).eval()


def test_all_layers_at_the_same_width_are_the_teacher(teacher):
    student = make_seq2seq_student(teacher, 4, 2).eval()
    assert torch.equal(student(**INPUTS).logits, teacher(**INPUTS).logits)
    assert not {each.data_ptr() for each in student.parameters()} & {each.data_ptr() for each in teacher.parameters()}


@pytest.mark.parametrize(("layers", "sources"), [(2, (1, 3)), ([0, 2], (0, 2))])
def test_chosen_layers_are_copied(teacher, layers, sources):
    student = make_seq2seq_student(teacher, layers, 1)
    assert student.config.num_hidden_layers == 2
    ours, theirs = (dict(model.named_parameters()) for model in (student, teacher))
    stack = "encoder.block" if teacher.config.model_type == "t5" else "model.encoder.layers"
    for layer, source in enumerate(sources):
        names = [name for name in ours if name.startswith(f"{stack}.{layer}.") and "relative" not in name]
        assert names
        for name in names:
            assert torch.equal(ours[name], theirs[name.replace(f".{layer}.", f".{source}.", 1)]), name


def test_the_search_is_the_teachers(teacher):
    teacher.generation_config.update(max_length=33, num_beams=4)
    student = make_seq2seq_student(teacher, 2, 1)
    assert (student.generation_config.max_length, student.generation_config.num_beams) == (33, 4)
    student.generation_config.max_length = 5
    assert teacher.generation_config.max_length == 33


@pytest.mark.parametrize("init", ["slice", "embeddings", "random"])
def test_narrow_students_train_save_and_generate(teacher, init, tmp_path):
    student = make_seq2seq_student(teacher, 2, 1, hidden_size=8, init=init)
    assert student.config.d_model == 8
    loss = student(**INPUTS).loss
    loss.backward()
    assert loss.isfinite() and all(
        each.grad is not None for name, each in student.named_parameters() if each.requires_grad
    )
    student.save_pretrained(tmp_path)
    again = AutoModelForSeq2SeqLM.from_pretrained(tmp_path).eval()
    assert torch.equal(again(**INPUTS).logits, student.eval()(**INPUTS).logits)
    assert again.generate(INPUTS["input_ids"], max_new_tokens=3, do_sample=False).shape[0] == 1
    embeddings = student.get_input_embeddings().weight
    theirs = teacher.get_input_embeddings().weight
    assert torch.equal(embeddings, theirs[:, :8]) == (init == "slice")
    if init == "embeddings":
        # As many directions as there are carry most of the products of tokens.
        products = [each @ each.T for each in (embeddings, theirs)]
        cosine = torch.nn.functional.cosine_similarity(products[0].flatten(), products[1].flatten(), dim=0)
        assert cosine > 0.8


def test_whole_heads_are_kept_where_their_size_divides_the_width():
    teacher = AutoModelForSeq2SeqLM.from_config(CONFIGS["bart"]())
    config = make_seq2seq_student(teacher, 1, 1, hidden_size=12).config
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
    teacher = AutoModelForSeq2SeqLM.from_config(CONFIGS["bart"]())
    with pytest.raises((ValueError, TypeError), match=message):
        make_seq2seq_student(teacher, **({"encoder_layers": 2, "decoder_layers": 1} | options))


# peft reads it; transformers will remove it.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_pruned_models_and_adapters_are_refused():
    teacher = AutoModelForSeq2SeqLM.from_config(CONFIGS["bart"]())
    with pytest.raises(ValueError, match="CutBartForConditionalGeneration.*before the teacher is pruned"):
        make_seq2seq_student(prune_heads(teacher, {0: [0]}), 1, 1)
    peft = pytest.importorskip("peft")
    teacher = AutoModelForSeq2SeqLM.from_config(CONFIGS["bart"]())
    adapted = peft.get_peft_model(teacher, peft.LoraConfig(target_modules=["q_proj"], task_type="SEQ_2_SEQ_LM"))
    with pytest.raises(ValueError, match="merge_and_unload"):
        make_seq2seq_student(adapted, 1, 1)


def test_other_models_are_refused():
    model = BertForSequenceClassification(
        BertConfig(vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4)
    )
    with pytest.raises(ValueError, match="BertForSequenceClassification.*BART"):
        make_seq2seq_student(model, 1, 1)
    sizes = {"vocab_size": 9, "d_model": 4, "encoder_attention_heads": 1, "decoder_attention_heads": 1}
    config = LEDConfig(**sizes, encoder_layers=2, decoder_layers=2, attention_window=4)
    with pytest.raises(ValueError, match="LEDForConditionalGeneration.*BART"):
        make_seq2seq_student(LEDForConditionalGeneration(config), 1, 1)
    with pytest.raises(TypeError, match="`teacher` must be a `PreTrainedModel`, got 'facebook/bart-large'"):
        make_seq2seq_student("facebook/bart-large", 1, 1)
