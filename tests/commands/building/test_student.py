"""Teachers and students from Python, by the names of the command line's options."""

import pytest
import torch

import hf_mwp
from hf_mwp.commands.building.student import StudentArguments
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import tiny_encoder
from tests.tiny import tiny_classifier, tiny_processor, tiny_rows, tiny_solver, tiny_tokenizer
from tests.tiny_seq2seq import tiny_seq2seq


SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    tiny_tokenizer().save_pretrained(folder)
    return str(folder)


def test_a_teacher_with_bottlenecks_from_random_weights(tokenizer):
    fields = {"encoder_config": SIZES, "tokenizer": tokenizer, "max_length": 64}
    teacher, processor = hf_mwp.build_solver(tiny_rows(), **fields, bottleneck_layers="1,2", bottleneck_size=6)
    assert list(teacher.bottlenecks) == ["1", "2"] and teacher.config.num_hidden_layers == 2
    assert (processor.language, processor.max_length) == ("zh", 64)
    processor.check_model(teacher)


def test_the_language_is_that_of_the_rows(tokenizer):
    rows = [row | {"text": "Tom has 4 apples and 2 pears.", "language": "en"} for row in tiny_rows(2)]
    fields = {"encoder_config": SIZES, "tokenizer": tokenizer}
    assert hf_mwp.build_solver(iter(rows), **fields)[1].language == "en"
    assert hf_mwp.build_solver(rows, **fields, language="zh")[1].language == "zh"


def test_every_row_counts_for_the_constants(tokenizer):
    # The first row is looked at for its language, and is counted as the others are.
    row = tiny_rows(1)[0] | {"text": "小明有4个苹果。", "equation": "x=4*7", "answer": "28"}
    fields = {"encoder_config": SIZES, "tokenizer": tokenizer, "min_constant_count": 3}
    assert hf_mwp.build_solver(iter([row] * 3), **fields)[1].vocabulary.constants == ("7",)
    assert hf_mwp.build_solver(iter([row] * 2), **fields)[1].vocabulary.constants == ()


def test_students_of_a_teacher():
    processor = tiny_processor(max_length=64)
    teacher = tiny_solver(processor, layers=3)
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    cut = hf_mwp.make_student(teacher, processor, student_layers=[2])
    ours, theirs = (model.encoder.encoder.layer for model in (cut, teacher))
    assert len(ours) == 1 and torch.equal(ours[0].output.dense.weight, theirs[2].output.dense.weight)
    sizes = {"student_hidden_size": 8, "student_intermediate_size": 12, "student_heads": 2, "student_layers": 1}
    for start in ("project", "random"):
        student = hf_mwp.make_student(teacher, processor, tiny_rows(), student_init=start, **sizes)
        assert student.encoder.config.hidden_size == student.decoder.config.hidden_size == 8
        processor.check_model(student)
    pruned = hf_mwp.make_student(teacher, processor, tiny_rows(), student_init="prune", student_sparsity=0.5)
    assert sum(parts.num_heads for parts in layer_parts(pruned)) == 3
    assert sum(parts.num_neurons for parts in layer_parts(pruned)) == 36
    for fields in ({"student_sparsity": 0.5}, {"student_init": "prune", "student_layers": 1}):
        with pytest.raises(ValueError, match="`student_(sparsity|layers)`.*student_init="):
            StudentArguments(**fields)
    assert all(torch.equal(value, before[name]) for name, value in teacher.state_dict().items())


def test_students_of_a_teacher_whose_embeddings_are_projected(tmp_path):
    processor = tiny_processor(max_length=32)
    electra = tiny_encoder("narrow electra", vocab_size=len(processor.tokenizer))
    teacher = hf_mwp.MwpSolver.from_encoder_decoder_pretrained(electra, processor)
    sizes = {"student_hidden_size": 12, "student_intermediate_size": 12, "student_heads": 2, "student_layers": 1}
    starts = {"cut": {"student_layers": 1}, "prune": {"student_sparsity": 0.5}, "project": sizes, "random": sizes}
    batch = processor([row["text"] for row in tiny_rows(4)])
    for start, fields in starts.items():
        student = hf_mwp.make_student(teacher, processor, tiny_rows(), student_init=start, **fields).eval()
        assert student.encoder.config.embedding_size == (None if start == "random" else 8)
        student.save_pretrained(tmp_path / start)
        again = hf_mwp.MwpSolver.from_pretrained(tmp_path / start)
        with torch.no_grad():
            states = again.encoder(batch["input_ids"])[0]
            expected = student.encoder(batch["input_ids"])[0]
        assert torch.equal(states, expected)
        assert torch.equal(again.solve(**batch).sequences, student.solve(**batch).sequences)


@pytest.mark.parametrize("start", ["project", "prune"])
def test_a_student_that_is_fitted_needs_rows(start):
    processor = tiny_processor()
    with pytest.raises(UsageError, match=f"`student_init={start}` needs .*`rows`"):
        hf_mwp.make_student(tiny_solver(processor, layers=3), processor, student_init=start)


def test_unknown_options_are_named():
    with pytest.raises(TypeError, match="layer"):
        hf_mwp.build_solver([], encoder="encoder", layer=1)


def test_a_teacher_that_is_no_solver_is_led_to_its_students():
    with pytest.raises(TypeError, match="got `BartForConditionalGeneration`. .*`hf_mwp.make_seq2seq_student`"):
        hf_mwp.make_student(tiny_seq2seq(), tiny_tokenizer())
    with pytest.raises(
        TypeError, match="got `BertForSequenceClassification`. .*`hf_mwp.compress.distillation.project_student`"
    ):
        hf_mwp.make_student(tiny_classifier(), tiny_tokenizer())
