import pytest
import torch
from transformers import BertModel

from hf_mwp.compress.distillation.layer_mapping import choose_layers
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.solver.models import MwpSolver
from hf_mwp.solver.models.cut_student import cut_student
from tests.tiny import tiny_bert_config, tiny_processor, tiny_solver


@pytest.fixture(scope="module")
def processor():
    return tiny_processor()


@pytest.fixture
def teacher(processor):
    return tiny_solver(processor, layers=4, dropout=0.3)


def rows_of(processor):
    columns = processor.encode(["小明有4个苹果，又买了12个，一共有几个？", "每盒3个苹果，2盒一共有几个？"])
    columns["labels"] = [[0, 6, 7], [2, 6, 7]]
    return [{name: values[index] for name, values in columns.items()} for index in range(2)]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [("first", [0, 1, 2]), ("last", [9, 10, 11]), ("uniform", [3, 7, 11]), ("alternate", [0, 4, 8])],
)
def test_choices_of_layers(choice, expected):
    assert choose_layers(3, 12, choice) == expected


def test_alternate_layers_of_any_count():
    assert choose_layers(3, 6, "alternate") == [0, 2, 4]
    assert choose_layers(2, 3, "alternate") == [0, 1]
    assert choose_layers(4, 4, "alternate") == [0, 1, 2, 3]


def test_wrong_choices_are_named():
    with pytest.raises(ValueError, match="'some'"):
        choose_layers(3, 12, "some")
    with pytest.raises(ValueError, match=r"\b5 layers.* 4"):
        choose_layers(5, 4, "alternate")


def test_weights_are_copies_of_the_chosen_layers(teacher):
    student = cut_student(teacher, [1, 3])
    assert student.config.num_hidden_layers == 2
    for new, old in ((0, 1), (1, 3)):
        ours = student.encoder.encoder.layer[new].state_dict()
        for name, value in teacher.encoder.encoder.layer[old].state_dict().items():
            assert torch.equal(ours[name], value) and ours[name].data_ptr() != value.data_ptr()
    for name, value in teacher.decoder.state_dict().items():
        assert torch.equal(student.decoder.state_dict()[name], value)
    shared = {p.data_ptr() for p in teacher.parameters()} & {p.data_ptr() for p in student.parameters()}
    assert not shared


def test_all_layers_give_the_teacher(teacher, processor):
    student = cut_student(teacher, 4).eval()
    batch = MwpCollator(processor)(rows_of(processor))
    with torch.no_grad():
        torch.testing.assert_close(student(**batch).logits, teacher.eval()(**batch).logits)


def test_bottlenecks_come_along(processor):
    teacher = tiny_solver(processor, layers=4, bottleneck_layers=[1, 3], bottleneck_size=5).eval()
    batch = MwpCollator(processor)(rows_of(processor))
    hooks = [len(layer._forward_hooks) for layer in teacher.encoder.encoder.layer]
    student = cut_student(teacher, 4).eval()
    with torch.no_grad():
        torch.testing.assert_close(student(**batch).logits, teacher(**batch).logits)
    assert [len(layer._forward_hooks) for layer in teacher.encoder.encoder.layer] == hooks == [1, 0, 1, 0]
    student = cut_student(teacher, [1, 2])
    assert (student.config.bottleneck_layers, student.config.bottleneck_size) == ([2], 5)
    for name, value in teacher.bottlenecks["3"].state_dict().items():
        ours = student.bottlenecks["2"].state_dict()[name]
        assert torch.equal(ours, value) and ours.data_ptr() != value.data_ptr()
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


def test_a_bert_becomes_a_student_encoder(processor, tmp_path):
    bert = BertModel(tiny_bert_config(vocab_size=len(processor.tokenizer)))
    teacher = MwpSolver.from_encoder_decoder_pretrained(bert, processor)
    student = cut_student(teacher, [1])
    assert student.config.encoder_config.model_type == "mwp_student"
    student.save_pretrained(tmp_path)
    loaded = MwpSolver.from_pretrained(tmp_path)
    for name, value in student.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)


def test_layers_beyond_the_teacher_are_named(teacher):
    with pytest.raises(ValueError, match="4"):
        cut_student(teacher, [0, 4])
    with pytest.raises(ValueError, match=r"\b5 layers.* 4"):
        cut_student(teacher, 5)
