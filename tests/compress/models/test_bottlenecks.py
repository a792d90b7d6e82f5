"""Bottleneck networks after encoder layers of a solver."""

import copy
import gc

import pytest
import torch
from huggingface_hub.errors import StrictDataclassClassValidationError
from torch import nn
from transformers import AutoModel, GPT2Config, GPT2Model
from transformers.testing_utils import CaptureLogger
from transformers.utils.logging import get_logger

from hf_mwp.compress.models import MwpStudentModel
from hf_mwp.compress.models.bottlenecks import bottlenecks_apart, detach_bottlenecks, encoder_layers
from hf_mwp.solver.models import GTSConfig, MwpSolver, MwpSolverConfig
from tests.compress.pruning.encoders import first_output, tiny_encoder
from tests.slow_parameters import slow_after
from tests.tiny import tiny_processor


LABELS = torch.tensor([[0, 6, 7], [5, -100, -100]])
MASK = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])
INPUTS = {
    "input_ids": torch.randint(5, 40, (2, 7), generator=torch.Generator().manual_seed(1)) * MASK,
    "attention_mask": MASK,
}
# The entries of a batch that only solvers read.
NUMBERS = {
    "number_positions": torch.tensor([[1, 3], [2, -1]]),
    "number_groups": torch.tensor([[0, 1], [0, -1]]),
}
BATCH = INPUTS | NUMBERS


def make_encoder(name):
    """The student has three layers without dropout; `distilbert` returns tensors where `bert` returns tuples."""
    dropouts = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    if name == "distilbert":
        dropouts = {"dropout": 0.0, "attention_dropout": 0.0}
    return tiny_encoder(name, **dropouts)


def make_solver(name="mwp_student", layers=(1, 3), size=6, encoder=None):
    encoder = encoder or make_encoder(name)
    decoder = GTSConfig(
        hidden_size=16, encoder_hidden_size=24, operator_embedding_size=4, constants=["1"], dropout=0.0
    )
    config = MwpSolverConfig(
        encoder_config=encoder.config, decoder_config=decoder, bottleneck_layers=list(layers), bottleneck_size=size
    )
    torch.manual_seed(1)
    return MwpSolver(config, encoder=encoder).eval()


def make_plain_solver(name="mwp_student"):
    return make_solver(name, layers=(), size=None)


def states_by_hand(name, bottlenecks):
    """States after the embeddings and each layer, and the narrow ones, of an encoder of which each output is mapped
    by the matrices of its bottleneck."""
    encoder = make_encoder(name)
    states = []
    narrow_states = []

    def map_output(layer, args, output):
        hidden = output[0] if isinstance(output, tuple) else output
        bottleneck = bottlenecks.get(layer.number)
        if bottleneck is not None:
            narrow = hidden @ bottleneck.reduce.weight.T + bottleneck.reduce.bias
            narrow_states.append(narrow)
            hidden = narrow @ bottleneck.expand_weight.T + bottleneck.expand_bias
        states.append(hidden)
        return (hidden, *output[1:]) if isinstance(output, tuple) else hidden

    for number, layer in enumerate(encoder_layers(encoder), start=1):
        layer.number = number
        layer.register_forward_hook(map_output)
    with torch.no_grad():
        embeddings = encoder(**INPUTS, output_hidden_states=True).hidden_states[0]
    return [embeddings, *states], narrow_states


@pytest.mark.parametrize("name", slow_after(1, ["mwp_student", "bert", "roberta", "distilbert"]))
def test_output_is_that_of_layers_and_linear_maps_in_turn(name):
    solver = make_solver(name)
    with torch.no_grad():
        for bottleneck in solver.bottlenecks.values():
            bottleneck.reduce.bias.normal_()
            bottleneck.expand_bias.normal_()
        output = solver(**BATCH, labels=LABELS, output_hidden_states=True)
    bottlenecks = {int(layer): bottleneck for layer, bottleneck in solver.bottlenecks.items()}
    states, narrow_states = states_by_hand(name, bottlenecks)
    # Values at padding depend on the implementation of attention.
    valid = MASK.bool()
    for outputs, expected in ((output.hidden_states, states), (output.bottleneck_states, narrow_states)):
        for state, expected_state in zip(outputs, expected, strict=True):
            torch.testing.assert_close(state[valid], expected_state[valid], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(output.last_hidden_state[valid], states[-1][valid], rtol=1e-4, atol=1e-5)
    decoded = solver.decoder(output.last_hidden_state, attention_mask=MASK, **NUMBERS, labels=LABELS)
    torch.testing.assert_close(output.logits, decoded.logits)


def test_narrow_states_come_only_with_hidden_states():
    solver = make_solver()
    assert solver(**BATCH).bottleneck_states is None
    output = solver(**BATCH, output_hidden_states=True)
    assert [tuple(state.shape) for state in output.bottleneck_states] == [(2, 7, 6)] * 2
    assert solver(**BATCH, output_hidden_states=True, return_dict=False)[-1][0].shape == (2, 7, 6)
    plain = make_plain_solver()
    assert plain(**BATCH, output_hidden_states=True).bottleneck_states is None and plain.bottlenecks is None


def assert_no_recording_hooks(solver):
    for bottleneck in solver.bottlenecks.values():
        assert not bottleneck.reduce._forward_hooks


@pytest.mark.parametrize("name", ["mwp_student", "bert"])
def test_hidden_states_do_not_depend_on_earlier_calls(name):
    solver = make_solver(name)
    encoder = make_encoder(name)
    encoder(**INPUTS, output_hidden_states=True)
    with torch.no_grad():
        expected = solver(**BATCH, output_hidden_states=True).hidden_states
        late = make_solver(encoder=encoder)(**BATCH, output_hidden_states=True).hidden_states
        with bottlenecks_apart(solver.encoder):
            solver.encoder(**INPUTS, output_hidden_states=True)
        repeated = solver(**BATCH, output_hidden_states=True).hidden_states
    torch.testing.assert_close(late, expected)
    torch.testing.assert_close(repeated, expected)
    assert_no_recording_hooks(solver)


def test_recording_hooks_are_removed_after_an_error():
    solver = make_solver()
    with pytest.raises(IndexError):
        solver(input_ids=torch.tensor([[99]]))
    assert_no_recording_hooks(solver)


def test_bottleneck_as_wide_as_the_encoder_begins_as_identity():
    wide = first_output(make_solver(layers=[1, 2, 3], size=24), BATCH | {"labels": LABELS})
    plain = first_output(make_plain_solver(), BATCH | {"labels": LABELS})
    torch.testing.assert_close(wide, plain, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("name", slow_after(1, ["mwp_student", "distilbert"]))
def test_saved_bottlenecks_are_loaded(name, tmp_path):
    solver = make_solver(name)
    solver.save_pretrained(tmp_path)
    loaded, info = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert loaded.config.bottleneck_layers == [1, 3] and loaded.config.bottleneck_size == 6
    batch = BATCH | {"labels": LABELS}
    torch.testing.assert_close(loaded.eval()(**batch).logits, solver(**batch).logits)


def test_checkpoint_without_bottlenecks_gets_new_projections(tmp_path):
    plain = make_plain_solver()
    plain.save_pretrained(tmp_path)
    options = {"bottleneck_layers": [2], "bottleneck_size": 5}
    loaded, info = MwpSolver.from_pretrained(tmp_path, **options, output_loading_info=True)
    assert len(info["missing_keys"]) == 4
    bottleneck = loaded.bottlenecks["2"]
    torch.testing.assert_close(bottleneck.reduce.weight @ bottleneck.reduce.weight.T, torch.eye(5))
    assert torch.equal(bottleneck.expand_weight, bottleneck.reduce.weight.T)
    assert not bottleneck.reduce.bias.any() and not bottleneck.expand_bias.any()
    weights = loaded.state_dict()
    for name, weight in plain.state_dict().items():
        assert torch.equal(weights[name], weight)


def test_copies_have_their_own_bottlenecks():
    solver = make_solver()
    copied = copy.deepcopy(solver)
    with torch.no_grad():
        before = solver(**BATCH).last_hidden_state
        for bottleneck in solver.bottlenecks.values():
            bottleneck.expand_weight.zero_()
        torch.testing.assert_close(copied(**BATCH).last_hidden_state, before)
        assert not solver(**BATCH).last_hidden_state.any()
        del solver
        gc.collect()
        torch.testing.assert_close(copied(**BATCH).last_hidden_state, before)


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing_enable:FutureWarning")
@pytest.mark.parametrize("use_reentrant", slow_after(1, [False, True]))
@pytest.mark.parametrize("name", ["mwp_student", "bert"])
def test_gradient_checkpointing_gives_the_same_gradients(name, use_reentrant):
    runs = []
    for checkpointing in (False, True):
        solver = make_solver(name).train()
        if checkpointing:
            # The name that transformers 5.17 knows; later versions call it activation checkpointing.
            solver.gradient_checkpointing_enable({"use_reentrant": use_reentrant})
        output = solver(**BATCH, labels=LABELS, output_hidden_states=True)
        assert len(output.bottleneck_states) == 2
        output.loss.backward()
        runs.append({parameter_name: parameter.grad for parameter_name, parameter in solver.named_parameters()})
        assert_no_recording_hooks(solver)
    torch.testing.assert_close(runs[1], runs[0], rtol=1e-4, atol=1e-6)
    for parameter_name, gradient in runs[0].items():
        if parameter_name.startswith(("bottlenecks.", "encoder.embeddings.word")):
            assert gradient.any(), parameter_name


def test_student_made_of_an_encoder_with_bottlenecks_has_none_and_warns():
    encoder = make_solver().encoder
    logger = get_logger("hf_mwp.compress.models.mwp_student.conversion_mwp_student")
    with CaptureLogger(logger) as log:
        student = MwpStudentModel.from_encoder(encoder).eval()
    assert "bottleneck networks" in log.out
    states = first_output(student, INPUTS)
    assert not torch.allclose(states, first_output(encoder, INPUTS))
    with bottlenecks_apart(encoder):
        torch.testing.assert_close(states, first_output(encoder, INPUTS))
        with CaptureLogger(logger) as log:
            MwpStudentModel.from_encoder(encoder)
    assert "bottleneck" not in log.out


def test_encoder_with_bottlenecks_gets_no_others_until_they_are_detached():
    encoder = make_solver().encoder
    for layers, size in (([1], 4), ((), None)):
        with pytest.raises(ValueError, match="`MwpStudentModel`.*`detach_bottlenecks"):
            make_solver(encoder=encoder, layers=layers, size=size)
    detach_bottlenecks(encoder)
    torch.testing.assert_close(first_output(encoder, INPUTS), first_output(make_encoder("mwp_student"), INPUTS))
    assert len(make_solver(encoder=encoder, layers=[1], size=4).bottlenecks) == 1


def test_bottlenecks_of_from_encoder_decoder_pretrained():
    processor = tiny_processor()
    encoder = tiny_encoder("mwp_student", vocab_size=len(processor.tokenizer))
    solver = MwpSolver.from_encoder_decoder_pretrained(encoder, processor, bottleneck_layers=(3, 2), bottleneck_size=8)
    assert solver.config.bottleneck_layers == [2, 3]
    assert solver.bottlenecks["3"].reduce.weight.shape == (8, 24)


@pytest.mark.parametrize(
    ("layers", "size", "message"),
    [
        ([1], None, r"`bottleneck_layers`.*\[1\].*`bottleneck_size`.*None"),
        ([], 6, r"`bottleneck_layers`.*\[\].*`bottleneck_size`.*6"),
        ([4], 6, r"`bottleneck_layers`.* 1 to 3.*\[4\]"),
        ([0], 6, r"`bottleneck_layers`.* 1 to 3.*\[0\]"),
        ([2, 2], 6, r"`bottleneck_layers`.* 1 to 3.*\[2, 2\]"),
        ([1], 0, "`bottleneck_size`.* 0"),
    ],
)
def test_impossible_bottlenecks_raise(layers, size, message):
    with pytest.raises(StrictDataclassClassValidationError, match=message):
        make_solver(layers=layers, size=size)


def test_encoders_without_a_list_of_layers_raise():
    encoder = make_encoder("mwp_student")
    encoder.encoder.layer = nn.ModuleList(encoder.encoder.layer[:2])
    with pytest.raises(ValueError, match="`MwpStudentModel`.* 3 layers"):
        encoder_layers(encoder)
    assert len(encoder_layers(GPT2Model(GPT2Config(n_layer=2, n_head=2, n_embd=8, vocab_size=9)))) == 2
