"""Teachers and students from Python, by the names of the command line's options."""

import pytest
import torch

import hf_mwp
from hf_mwp.commands.building.student import StudentArguments
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import tiny_encoder
from tests.slow_parameters import slow_after
from tests.tiny import tiny_classifier, tiny_processor, tiny_rows, tiny_solver, tiny_tokenizer
from tests.tiny_causal import tiny_causal
from tests.tiny_seq2seq import tiny_seq2seq


SIZES = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
STUDENT_SIZES = {"student_hidden_size": 8, "student_intermediate_size": 12, "student_heads": 2, "student_layers": 1}


@pytest.fixture
def random_weights(tmp_path):
    """Options of a solver with random weights."""
    tiny_tokenizer().save_pretrained(tmp_path)
    return {"encoder_config": SIZES, "tokenizer": str(tmp_path)}


def test_language_is_that_of_the_rows(random_weights):
    rows = [row | {"text": "Tom has 4 apples and 2 pears.", "language": "en"} for row in tiny_rows(2)]
    assert hf_mwp.build_solver(iter(rows), **random_weights)[1].language == "en"
    assert hf_mwp.build_solver(rows, **random_weights, language="zh")[1].language == "zh"


@pytest.mark.parametrize(("num_rows", "constants"), [(3, ("7",)), (2, ())])
def test_every_row_counts_for_the_constants(random_weights, num_rows, constants):
    # The first row, which is read for its language, is counted as the others are.
    row = tiny_rows(1)[0] | {"text": "小明有4个苹果。", "equation": "x=4*7", "answer": "28"}
    _, processor = hf_mwp.build_solver(iter([row] * num_rows), **random_weights, min_constant_count=3)
    assert processor.vocabulary.constants == constants


def test_students_are_cut_projected_pruned_or_random():
    processor = tiny_processor(max_length=64)
    teacher = tiny_solver(processor, layers=3)
    before = {name: value.clone() for name, value in teacher.state_dict().items()}
    (layer,) = hf_mwp.make_student(teacher, processor, student_layers=[2]).encoder.encoder.layer
    assert torch.equal(layer.output.dense.weight, teacher.encoder.encoder.layer[2].output.dense.weight)
    for init in ("project", "random"):
        student = hf_mwp.make_student(teacher, processor, tiny_rows(), student_init=init, **STUDENT_SIZES)
        assert student.encoder.config.hidden_size == student.decoder.config.hidden_size == 8
        processor.check_model(student)
    pruned = hf_mwp.make_student(teacher, processor, tiny_rows(), student_init="prune", student_sparsity=0.5)
    assert sum(layer.num_heads for layer in layer_parts(pruned)) == 3
    assert sum(layer.num_neurons for layer in layer_parts(pruned)) == 36
    assert all(torch.equal(value, before[name]) for name, value in teacher.state_dict().items())


@pytest.mark.parametrize("fields", [{"student_sparsity": 0.5}, {"student_init": "prune", "student_layers": 1}])
def test_options_of_another_start_are_refused(fields):
    with pytest.raises(ValueError, match="`student_(sparsity|layers)`.*student_init="):
        StudentArguments(**fields)


@pytest.mark.parametrize(
    ("init", "fields", "embedding_size"),
    slow_after(
        1,
        [
            ("cut", {"student_layers": 1}, 8),
            ("prune", {"student_sparsity": 0.5}, 8),
            ("project", STUDENT_SIZES, 8),
            ("random", STUDENT_SIZES, None),
        ],
    ),
)
def test_student_of_a_teacher_with_projected_embeddings_is_saved(init, fields, embedding_size, tmp_path):
    processor = tiny_processor(max_length=32)
    electra = tiny_encoder("narrow electra", vocab_size=len(processor.tokenizer))
    teacher = hf_mwp.MwpSolver.from_encoder_decoder_pretrained(electra, processor)
    student = hf_mwp.make_student(teacher, processor, tiny_rows(), student_init=init, **fields).eval()
    assert student.encoder.config.embedding_size == embedding_size
    student.save_pretrained(tmp_path)
    loaded = hf_mwp.MwpSolver.from_pretrained(tmp_path)
    batch = processor([row["text"] for row in tiny_rows(4)])
    with torch.no_grad():
        assert torch.equal(loaded.encoder(batch["input_ids"])[0], student.encoder(batch["input_ids"])[0])
    assert torch.equal(loaded.solve(**batch).sequences, student.solve(**batch).sequences)


@pytest.mark.parametrize("init", ["project", "prune"])
def test_fitted_student_needs_rows(init):
    processor = tiny_processor()
    with pytest.raises(UsageError, match=f"`student_init={init}` needs .*`rows`"):
        hf_mwp.make_student(tiny_solver(processor, layers=3), processor, student_init=init)


def test_unknown_options_are_named():
    with pytest.raises(TypeError, match="layer"):
        hf_mwp.build_solver([], encoder="encoder", layer=1)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (tiny_seq2seq, "got `BartForConditionalGeneration`. .*`hf_mwp.make_seq2seq_student`"),
        (tiny_causal, "got `LlamaForCausalLM`. .*`hf_mwp.make_causal_student`"),
        (tiny_classifier, "got `BertForSequenceClassification`. .*`hf_mwp.compress.distillation.project_student`"),
    ],
)
def test_function_for_other_teachers_is_named(model, message):
    with pytest.raises(TypeError, match=message):
        hf_mwp.make_student(model(), tiny_tokenizer())
