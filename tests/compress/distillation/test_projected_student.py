import pytest
import torch
from torch.nn import functional
from transformers import AutoModel, BertModel, ElectraConfig, ElectraModel, RobertaConfig, RobertaModel

from hf_mwp.compress.distillation import project_student
from hf_mwp.compress.distillation.projected_student import factorise, fit_linear, residual_projection
from hf_mwp.compress.models import MwpStudentModel
from hf_mwp.compress.models.bottlenecks import Bottlenecks, bottlenecks_apart
from hf_mwp.compress.pruning import prune_heads
from tests.compress.trainers.distilling import copy_of, same_weights
from tests.slow_parameters import slow_after
from tests.tiny import tiny_bert_config


SMALL = {"hidden_size": 12, "intermediate_size": 20, "num_attention_heads": 2, "layers": 2}
SAME = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2, "layers": 3, "ridge": 1e-9}
SIZES = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}


@pytest.fixture
def encoder():
    torch.manual_seed(0)
    return BertModel(tiny_bert_config(num_hidden_layers=3, initializer_range=0.3), add_pooling_layer=False)


def texts(count=48, seed=1, length=20):
    generator = torch.Generator().manual_seed(seed)
    input_ids = torch.randint(1, 40, (count, length), generator=generator)
    attention_mask = torch.ones_like(input_ids)
    attention_mask[::3, length // 2 :] = 0
    return {"input_ids": input_ids, "attention_mask": attention_mask}


def explained(student, encoder):
    """Share of the variance of an encoder's states that a linear map of the student's gives, for new texts."""
    batch = texts(seed=2)
    valid = batch["attention_mask"].bool()
    shares = []
    with torch.no_grad():
        student_states = student.eval()(**batch, output_hidden_states=True).hidden_states
        encoder_states = encoder.eval()(**batch, output_hidden_states=True).hidden_states
    for narrow, wide in zip(student_states, encoder_states, strict=False):
        narrow = narrow[valid]
        wide = wide[valid]
        weight, bias = fit_linear(narrow, wide, 1e-9)
        unexplained = (wide - narrow @ weight.T - bias).square().sum()
        shares.append(1 - (unexplained / (wide - wide.mean(0)).square().sum()).item())
    return shares


def assert_nearer_than_random(student, encoder):
    torch.manual_seed(1)
    random_student = MwpStudentModel(student.config, add_pooling_layer=False)
    random_shares = explained(random_student, encoder)
    shares = explained(student, encoder)
    for share, random_share in list(zip(shares, random_shares, strict=True))[1:]:
        assert share > random_share + 0.1


@pytest.mark.parametrize("embedding_size", slow_after(1, [6, 12]))
def test_narrow_embeddings_stay_and_their_projection_is_narrowed(embedding_size):
    torch.manual_seed(0)
    fields = {"intermediate_size": 24, "embedding_size": embedding_size, "initializer_range": 0.3}
    electra = ElectraModel(ElectraConfig(**SIZES, **fields))
    assert min(explained(project_student(electra, sample=[texts()], **SAME), electra)) > 0.9999
    student = project_student(electra, sample=[texts()], **SMALL)
    assert (student.config.hidden_size, student.config.embedding_size) == (12, embedding_size)
    assert torch.equal(student.get_input_embeddings().weight, electra.get_input_embeddings().weight)
    assert_nearer_than_random(student, electra)


def test_a_student_is_fitted_to_states_with_bottlenecks(encoder):
    for bottleneck in Bottlenecks(encoder, [1, 2], 8).values():
        for parameter in bottleneck.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
    student = project_student(encoder, sample=[texts()], **SAME)
    with bottlenecks_apart(encoder):
        student_without = project_student(encoder, sample=[texts()], **SAME)
    shares = explained(student, encoder)
    shares_without = explained(student_without, encoder)
    assert shares[1] > 0.999
    assert shares[2] > shares_without[2] + 0.05
    assert shares[3] > shares_without[3] + 0.05


def test_a_narrower_student_starts_nearer_than_a_random_one(encoder):
    assert_nearer_than_random(project_student(encoder, sample=[texts()], **SMALL), encoder)


def test_shapes_dtype_and_config_are_those_of_a_student(encoder, tmp_path):
    before = copy_of(encoder)
    encoder = encoder.half().train()
    student = project_student(encoder, sample=[texts()], hidden_dropout_prob=0.05, **SMALL)
    config = student.config
    assert (config.hidden_size, config.intermediate_size, config.head_dim) == (12, 20, 6)
    assert (config.num_hidden_layers, config.vocab_size, config.max_position_embeddings) == (2, 40, 32)
    assert config.hidden_dropout_prob == 0.05
    assert config._attn_implementation == encoder.config._attn_implementation == "sdpa"
    assert student.dtype == torch.float16
    assert student.training
    assert student.pooler is None
    assert encoder.training
    for name, value in encoder.state_dict().items():
        assert torch.equal(value, before[name].half())
    assert all(value.isfinite().all() for value in student.state_dict().values())
    student.save_pretrained(tmp_path)
    assert same_weights(student, AutoModel.from_pretrained(tmp_path, add_pooling_layer=False))


def test_a_student_of_a_pruned_encoder_has_all_its_heads(encoder):
    student = MwpStudentModel.from_encoder(encoder)
    prune_heads(student, {0: [1], 1: [0]})
    projected = project_student(student, 8, 20, 1, layers=2, sample=[texts()])
    assert not projected.config.is_pruned
    assert projected.config.heads_per_layer == [1, 1]


def test_students_are_deterministic_and_do_not_depend_on_padding(encoder):
    batch = texts()
    student = project_student(encoder, sample=[batch], **SMALL)
    assert same_weights(student, project_student(encoder, sample=[batch], **SMALL))
    padded = {name: functional.pad(value, (0, 5)) for name, value in batch.items()}
    padded["input_ids"][:, 20:] = 7
    weights = project_student(encoder, sample=[padded], **SMALL).state_dict()
    for name, value in student.state_dict().items():
        torch.testing.assert_close(value, weights[name], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("heads", [1, 2])
def test_students_of_other_encoders_and_of_students(heads):
    torch.manual_seed(0)
    fields = {"intermediate_size": 24, "max_position_embeddings": 34, "initializer_range": 0.3}
    roberta = RobertaModel(RobertaConfig(**SIZES, **fields))
    student = project_student(roberta, 12, 8, heads, layers=[0, 2], sample=[texts()])
    assert student.config.position_offset == 2
    assert student.config.heads_per_layer == [heads, heads]
    assert student.config.head_dim == 12 // heads
    second_student = project_student(student, 8, 8, 1, layers=1, sample=[texts()])
    assert second_student.config.hidden_size == 8
    assert second_student.config.position_offset == 2


def test_no_more_texts_than_needed_are_read(encoder):
    def endless():
        while True:
            yield texts(4)

    project_student(encoder, sample=endless(), max_tokens=500, **SMALL)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"hidden_size": 20}, r"hidden_size=20 .*\b16\b"),
        ({"intermediate_size": 25}, "intermediate_size=25"),
        ({"num_attention_heads": 3}, "num_attention_heads=3"),
        ({"num_attention_heads": 0}, "num_attention_heads=0"),
        ({"layers": 4}, "layers=4.* 3 layers"),
        ({"layers": [3]}, r"layers=\[3\].* 3 layers"),
        ({"sample": []}, "`sample`"),
        ({"hidden_size": 11}, "hidden_size=11 .*num_attention_heads=2"),
    ],
)
def test_impossible_students_are_named(encoder, fields, message):
    with pytest.raises(ValueError, match=message):
        project_student(encoder, **({"sample": [texts()]} | SMALL | fields))


def test_a_projection_commutes_with_layer_norms():
    torch.manual_seed(0)
    basis = torch.randn(7, 16)
    states = torch.randn(400, 7) @ (basis - basis.mean(1, keepdim=True))
    projection = residual_projection([functional.layer_norm(states, (16,))], 10)
    wide = functional.layer_norm(states, (16,)) @ projection
    narrow = functional.layer_norm(states @ projection, (10,))
    torch.testing.assert_close(narrow, wide, rtol=1e-3, atol=1e-3)


def test_a_linear_map_is_found_again():
    torch.manual_seed(0)
    inputs = torch.randn(50, 4)
    weight = torch.randn(3, 4)
    bias = torch.randn(3)
    fitted_weight, fitted_bias = fit_linear(inputs, inputs @ weight.T + bias, 1e-9)
    torch.testing.assert_close(fitted_weight, weight, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(fitted_bias, bias, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("input_variances", "product"),
    [
        (None, [0.0, 0.0, 3.0]),
        # The first direction has the smallest entry, but most of the inputs.
        ([100.0, 1.0, 1.0], [1.0, 0.0, 0.0]),
    ],
)
def test_factors_are_those_that_the_inputs_need(input_variances, product):
    matrix = torch.diag(torch.tensor([1.0, 2.0, 3.0]))
    covariance = None if input_variances is None else torch.diag(torch.tensor(input_variances))
    left, right = factorise(matrix, covariance, torch.eye(3), 1)
    torch.testing.assert_close(left.T @ right, torch.diag(torch.tensor(product)), atol=1e-5, rtol=0)


def test_factors_of_a_matrix_of_low_rank_are_not_zero():
    left, right = factorise(torch.diag(torch.tensor([2.0, 0.0, 0.0])), None, torch.eye(3), 2)
    assert right[1].norm() > 0
    assert left[1].norm() > 0
