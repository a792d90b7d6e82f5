import pytest
import torch
from transformers import BertModel

from hf_mwp.compress.distillation.layer_mapping import choose_layers
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.solver.models import MwpSolver
from hf_mwp.solver.models.cut_student import cut_student
from tests.solver.encoded_rows import rows_of
from tests.tiny import tiny_bert_config, tiny_problems, tiny_processor, tiny_solver


@pytest.fixture(scope="module")
def processor():
    return tiny_processor()


@pytest.fixture(scope="module")
def batch(processor):
    columns = processor.encode(tiny_problems(2), with_labels=True)
    return MwpCollator(processor)(rows_of(columns))


@pytest.fixture
def teacher(processor):
    return tiny_solver(processor, layers=4, dropout=0.3)


def check_copies(copies, modules):
    """Check that the weights are equal, but not shared."""
    weights = modules.state_dict()
    torch.testing.assert_close(copies.state_dict(), weights, rtol=0, atol=0)
    for name, copy in copies.state_dict().items():
        assert copy.data_ptr() != weights[name].data_ptr()


@pytest.mark.parametrize(
    ("num_layers", "total", "choice", "expected"),
    [
        (3, 12, "first", [0, 1, 2]),
        (3, 12, "last", [9, 10, 11]),
        (3, 12, "uniform", [3, 7, 11]),
        (3, 12, "alternate", [0, 4, 8]),
        (3, 6, "alternate", [0, 2, 4]),
        (2, 3, "alternate", [0, 1]),
        (4, 4, "alternate", [0, 1, 2, 3]),
    ],
)
def test_choices_of_layers(num_layers, total, choice, expected):
    assert choose_layers(num_layers, total, choice) == expected


def test_wrong_choices_are_named():
    with pytest.raises(ValueError, match="'some'"):
        choose_layers(3, 12, "some")
    with pytest.raises(ValueError, match=r"\b5 layers.* 4"):
        choose_layers(5, 4, "alternate")


def test_weights_are_copies_of_the_chosen_layers(teacher):
    student = cut_student(teacher, [1, 3])
    assert student.config.num_hidden_layers == 2
    layers = teacher.encoder.encoder.layer
    check_copies(student.encoder.encoder.layer, torch.nn.ModuleList([layers[1], layers[3]]))
    check_copies(student.encoder.embeddings, teacher.encoder.embeddings)
    check_copies(student.decoder, teacher.decoder)


def test_student_with_all_layers_and_bottlenecks_equals_the_teacher(processor, batch):
    teacher = tiny_solver(processor, layers=4, bottleneck_layers=[1, 3], bottleneck_size=5).eval()
    student = cut_student(teacher, 4).eval()
    with torch.no_grad():
        torch.testing.assert_close(student(**batch).logits, teacher(**batch).logits)
    assert [len(layer._forward_hooks) for layer in teacher.encoder.encoder.layer] == [1, 0, 1, 0]


def test_bottlenecks_of_the_chosen_layers_are_copied(processor):
    teacher = tiny_solver(processor, layers=4, bottleneck_layers=[1, 3], bottleneck_size=5)
    student = cut_student(teacher, [1, 2])
    assert (student.config.bottleneck_layers, student.config.bottleneck_size) == ([2], 5)
    check_copies(student.bottlenecks["2"], teacher.bottlenecks["3"])
    assert cut_student(teacher, [1, 3]).config.bottleneck_layers == []


def test_attention_and_dropout_carry_over_or_change(teacher):
    student = cut_student(teacher, 2)
    assert student.encoder.config._attn_implementation == teacher.encoder.config._attn_implementation == "sdpa"
    assert student.encoder.config.hidden_dropout_prob == student.decoder.config.dropout == 0.3
    student = cut_student(teacher, 2, decoder_dropout=0.1, hidden_dropout_prob=0.05)
    assert student.encoder.config.hidden_dropout_prob == 0.05
    assert student.decoder.config.dropout == student.decoder.dropout.p == 0.1
    assert teacher.decoder.config.dropout == 0.3


def test_new_decoder(teacher):
    student = cut_student(teacher, 2, new_decoder=True)
    assert not torch.equal(student.decoder.operator_scorer.weight, teacher.decoder.operator_scorer.weight)
    assert student.config.decoder_config.constants == teacher.config.decoder_config.constants


def test_bert_becomes_a_student_encoder(processor, tmp_path):
    bert = BertModel(tiny_bert_config(vocab_size=len(processor.tokenizer)))
    teacher = MwpSolver.from_encoder_decoder_pretrained(bert, processor)
    student = cut_student(teacher, [1])
    assert student.config.encoder_config.model_type == "mwp_student"
    student.save_pretrained(tmp_path)
    loaded = MwpSolver.from_pretrained(tmp_path)
    torch.testing.assert_close(loaded.state_dict(), student.state_dict(), rtol=0, atol=0)


@pytest.mark.parametrize(("layers", "message"), [([0, 4], "4"), (5, r"\b5 layers.* 4")])
def test_layers_beyond_the_teacher_are_named(teacher, layers, message):
    with pytest.raises(ValueError, match=message):
        cut_student(teacher, layers)
