import pytest
import torch
from transformers import AutoModel, BertModel, ElectraConfig, ElectraModel, RobertaConfig, RobertaModel

from hf_mwp.compress.distillation import project_student
from hf_mwp.compress.distillation.projected_student import factorise, fit_linear, residual_projection
from hf_mwp.compress.models import MwpStudentModel
from hf_mwp.compress.models.bottlenecks import Bottlenecks, bottlenecks_apart
from hf_mwp.compress.pruning import prune_heads
from tests.tiny import tiny_bert_config


SMALL = {"hidden_size": 12, "intermediate_size": 20, "num_attention_heads": 2, "layers": 2}


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
    shares = []
    valid = batch["attention_mask"].bool()
    with torch.no_grad():
        narrow = student.eval()(**batch, output_hidden_states=True).hidden_states
        wide = encoder.eval()(**batch, output_hidden_states=True).hidden_states
    for ours, theirs in zip(narrow, wide, strict=False):
        ours = ours[valid]
        theirs = theirs[valid]
        weight, bias = fit_linear(ours, theirs, 1e-9)
        rest = theirs - ours @ weight.T - bias
        shares.append(1 - (rest.square().sum() / (theirs - theirs.mean(0)).square().sum()).item())
    return shares


def test_at_the_same_sizes_nothing_is_lost(encoder):
    student = project_student(encoder, 16, 24, 2, layers=3, sample=[texts()], ridge=1e-9)
    assert min(explained(student, encoder)) > 0.9999


@pytest.mark.parametrize("embedding_size", [6, 12])
def test_narrow_embeddings_stay_and_their_projection_is_narrowed(embedding_size):
    torch.manual_seed(0)
    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}
    fields = {"intermediate_size": 24, "embedding_size": embedding_size, "initializer_range": 0.3}
    electra = ElectraModel(ElectraConfig(**sizes, **fields))
    same = project_student(electra, 16, 24, 2, layers=3, sample=[texts()], ridge=1e-9)
    assert min(explained(same, electra)) > 0.9999
    student = project_student(electra, sample=[texts()], **SMALL)
    assert (student.config.hidden_size, student.config.embedding_size) == (12, embedding_size)
    words = student.get_input_embeddings().weight
    assert torch.equal(words, electra.get_input_embeddings().weight)
    torch.manual_seed(1)
    chance = explained(MwpStudentModel(student.config, add_pooling_layer=False), electra)
    shares = explained(student, electra)
    assert all(share > other + 0.1 for share, other in zip(shares[1:], chance[1:], strict=True)), (shares, chance)


def test_a_student_is_fitted_to_states_with_bottlenecks(encoder):
    for bottleneck in Bottlenecks(encoder, [1, 2], 8).values():
        for parameter in bottleneck.parameters():
            torch.nn.init.normal_(parameter, std=0.4)
    student = project_student(encoder, 16, 24, 2, layers=3, sample=[texts()], ridge=1e-9)
    with bottlenecks_apart(encoder):
        without = project_student(encoder, 16, 24, 2, layers=3, sample=[texts()], ridge=1e-9)
    shares = explained(student, encoder)
    others = explained(without, encoder)
    assert shares[1] > 0.999
    assert shares[2] > others[2] + 0.05 and shares[3] > others[3] + 0.05, (shares, others)


def test_a_narrower_student_starts_nearer_than_a_random_one(encoder):
    student = project_student(encoder, sample=[texts()], **SMALL)
    torch.manual_seed(1)
    chance = explained(MwpStudentModel(student.config, add_pooling_layer=False), encoder)
    shares = explained(student, encoder)
    assert all(share > other + 0.1 for share, other in zip(shares[1:], chance[1:], strict=True)), (shares, chance)


def test_shapes_dtype_and_config_are_those_of_a_student(encoder, tmp_path):
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    encoder = encoder.half().train()
    student = project_student(encoder, sample=[texts()], hidden_dropout_prob=0.05, **SMALL)
    config = student.config
    assert (config.hidden_size, config.intermediate_size, config.head_dim) == (12, 20, 6)
    assert (config.num_hidden_layers, config.vocab_size, config.max_position_embeddings) == (2, 40, 32)
    assert config.hidden_dropout_prob == 0.05 and config._attn_implementation == "sdpa"
    assert student.dtype == torch.float16 and student.training and student.pooler is None
    assert encoder.training and encoder.config._attn_implementation == "sdpa"
    for name, value in encoder.state_dict().items():
        assert torch.equal(value, before[name].half())
    assert all(value.isfinite().all() for value in student.state_dict().values())
    student.save_pretrained(tmp_path)
    loaded = AutoModel.from_pretrained(tmp_path, add_pooling_layer=False)
    for name, value in student.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)


def test_a_student_of_a_pruned_encoder_has_all_its_heads(encoder):
    student = MwpStudentModel.from_encoder(encoder)
    prune_heads(student, {0: [1], 1: [0]})
    projected = project_student(student, 8, 20, 1, layers=2, sample=[texts()])
    assert not projected.config.is_pruned and projected.config.heads_per_layer == [1, 1]


def test_it_is_the_same_each_time(encoder):
    first, second = (project_student(encoder, sample=[texts()], **SMALL).state_dict() for _ in range(2))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_padding_and_its_amount_have_no_influence(encoder):
    batch = texts()
    padded = {name: torch.nn.functional.pad(value, (0, 5)) for name, value in batch.items()}
    padded["input_ids"][:, 20:] = 7
    ours = project_student(encoder, sample=[batch], **SMALL).state_dict()
    theirs = project_student(encoder, sample=[padded], **SMALL).state_dict()
    for name, value in ours.items():
        torch.testing.assert_close(value, theirs[name], rtol=1e-2, atol=1e-3)


@pytest.mark.parametrize("heads", [1, 2])
def test_other_encoders_layers_and_heads(heads):
    torch.manual_seed(0)
    sizes = {"vocab_size": 40, "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2}
    roberta = RobertaModel(
        RobertaConfig(**sizes, intermediate_size=24, max_position_embeddings=34, initializer_range=0.3)
    )
    student = project_student(roberta, 12, 8, heads, layers=[0, 2], sample=[texts()])
    assert student.config.position_offset == 2 and student.config.heads_per_layer == [heads, heads]
    assert student.config.head_dim == 12 // heads
    again = project_student(student, 8, 8, 1, layers=1, sample=[texts()])
    assert again.config.hidden_size == 8 and again.config.position_offset == 2


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
    projection = residual_projection([torch.nn.functional.layer_norm(states, (16,))], 10)
    wide = torch.nn.functional.layer_norm(states, (16,)) @ projection
    narrow = torch.nn.functional.layer_norm(states @ projection, (10,))
    torch.testing.assert_close(narrow, wide, rtol=1e-3, atol=1e-3)


def test_a_linear_map_is_found_again():
    torch.manual_seed(0)
    inputs = torch.randn(50, 4)
    weight = torch.randn(3, 4)
    bias = torch.randn(3)
    found = fit_linear(inputs, inputs @ weight.T + bias, 1e-9)
    torch.testing.assert_close(found[0], weight, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found[1], bias, rtol=1e-4, atol=1e-4)


def test_factors_are_those_that_the_inputs_need():
    matrix = torch.diag(torch.tensor([1.0, 2.0, 3.0]))
    left, right = factorise(matrix, None, torch.eye(3), 1)
    torch.testing.assert_close(left.T @ right, torch.diag(torch.tensor([0.0, 0.0, 3.0])), atol=1e-5, rtol=0)
    # The first direction has the smallest entry, but most of the inputs.
    left, right = factorise(matrix, torch.diag(torch.tensor([100.0, 1.0, 1.0])), torch.eye(3), 1)
    torch.testing.assert_close(left.T @ right, torch.diag(torch.tensor([1.0, 0.0, 0.0])), atol=1e-5, rtol=0)
    left, right = factorise(torch.diag(torch.tensor([2.0, 0.0, 0.0])), None, torch.eye(3), 2)
    assert right[1].norm() > 0 and left[1].norm() > 0
