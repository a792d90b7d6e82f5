"""Bottleneck networks after encoder layers of a solver."""

import copy
import gc

import pytest
import torch
from huggingface_hub.errors import StrictDataclassClassValidationError
from torch import nn
from transformers import (
    AutoModel,
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    GPT2Config,
    GPT2Model,
    RobertaConfig,
    RobertaModel,
)
from transformers.testing_utils import CaptureLogger
from transformers.utils.logging import get_logger

from hf_mwp.compress.models import MwpStudentConfig, MwpStudentModel
from hf_mwp.compress.models.bottlenecks import (
    Bottleneck,
    bottlenecks_apart,
    detach_bottlenecks,
    encoder_layers,
)
from hf_mwp.solver.models import GTSConfig, MwpSolver, MwpSolverConfig
from tests.tiny import tiny_processor


SIZES = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
DISTIL = {"vocab_size": 40, "dim": 16, "n_layers": 3, "n_heads": 2, "hidden_dim": 24, "dropout": 0.0}
ENCODERS = {
    "student": (MwpStudentModel, MwpStudentConfig, SIZES),
    "bert": (BertModel, BertConfig, SIZES),
    "roberta": (RobertaModel, RobertaConfig, SIZES),
    "distilbert": (DistilBertModel, DistilBertConfig, DISTIL | {"attention_dropout": 0.0}),
}
LABELS = torch.tensor([[0, 6, 7], [5, -100, -100]])


def make_encoder(kind="student"):
    torch.manual_seed(0)
    cls, config, fields = ENCODERS[kind]
    return cls(config(**fields, initializer_range=0.3))


def make_solver(kind="student", layers=(1, 3), size=6, encoder=None):
    encoder = make_encoder(kind) if encoder is None else encoder
    decoder = GTSConfig(
        hidden_size=16, encoder_hidden_size=16, operator_embedding_size=4, constants=["1"], dropout=0.0
    )
    config = MwpSolverConfig(
        encoder_config=encoder.config, decoder_config=decoder, bottleneck_layers=list(layers), bottleneck_size=size
    )
    torch.manual_seed(1)
    return MwpSolver(config, encoder=encoder).eval()


def make_batch():
    generator = torch.Generator().manual_seed(1)
    mask = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])
    return {
        "input_ids": torch.randint(5, 40, (2, 7), generator=generator) * mask + (1 - mask),
        "attention_mask": mask,
        "number_positions": torch.tensor([[1, 3], [2, -1]]),
        "number_groups": torch.tensor([[0, 1], [0, -1]]),
    }


def by_hand(kind, solver):
    """States after each layer, and the narrow ones, of the bare encoder run layer by layer."""
    encoder = make_encoder(kind).eval()
    inputs = {name: make_batch()[name] for name in ("input_ids", "attention_mask")}
    reached = []

    class Stop(Exception):
        pass

    layers = encoder_layers(encoder)

    def keep(module, args, kwargs):
        reached.append((args, kwargs))
        raise Stop

    states = []
    narrow = []
    with torch.no_grad():
        for number, layer in enumerate(layers, start=1):
            # What a layer is called with besides the states (masks) is the same for all of them.
            if not reached:
                handle = layer.register_forward_pre_hook(keep, with_kwargs=True)
                with pytest.raises(Stop):
                    encoder(**inputs)
                handle.remove()
                (args, kwargs) = reached[0]
                hidden = args[0] if args else kwargs["hidden_states"]
                states.append(hidden)
            if args:
                output = layer(hidden, *args[1:], **kwargs)
            else:
                output = layer(**(kwargs | {"hidden_states": hidden}))
            hidden = output[0] if isinstance(output, tuple) else output
            if str(number) in solver.bottlenecks:
                bottleneck = solver.bottlenecks[str(number)]
                narrow.append(hidden @ bottleneck.reduce.weight.T + bottleneck.reduce.bias)
                hidden = narrow[-1] @ bottleneck.expand_weight.T + bottleneck.expand_bias
            states.append(hidden)
    return states, narrow


@pytest.mark.parametrize("kind", ENCODERS)
def test_output_is_that_of_layers_and_linear_maps_in_turn(kind):
    solver = make_solver(kind)
    with torch.no_grad():
        for bottleneck in solver.bottlenecks.values():
            bottleneck.reduce.bias.normal_()
            bottleneck.expand_bias.normal_()
        output = solver(**make_batch(), labels=LABELS, output_hidden_states=True)
    states, narrow = by_hand(kind, solver)
    assert len(output.hidden_states) == len(states) == 4 and len(output.bottleneck_states) == len(narrow) == 2
    # What padding holds is the attention implementation's affair.
    valid = make_batch()["attention_mask"].bool()
    for ours, expected in zip((*output.hidden_states, *output.bottleneck_states), (*states, *narrow), strict=True):
        torch.testing.assert_close(ours[valid], expected[valid], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(output.last_hidden_state[valid], states[-1][valid], rtol=1e-4, atol=1e-5)
    decoded = solver.decoder(output.last_hidden_state, **decoder_inputs(), labels=LABELS)
    torch.testing.assert_close(output.logits, decoded.logits)


def decoder_inputs():
    return {name: value for name, value in make_batch().items() if name != "input_ids"}


def test_narrow_states_come_with_hidden_states_alone_and_are_kept_nowhere():
    solver = make_solver()
    assert solver(**make_batch()).bottleneck_states is None
    output = solver(**make_batch(), output_hidden_states=True)
    assert [tuple(state.shape) for state in output.bottleneck_states] == [(2, 7, 6)] * 2
    assert not any(bottleneck.reduce._forward_hooks for bottleneck in solver.bottlenecks.values())
    assert solver(**make_batch(), output_hidden_states=True, return_dict=False)[-1][0].shape == (2, 7, 6)
    plain = make_solver(layers=(), size=None)
    assert plain(**make_batch(), output_hidden_states=True).bottleneck_states is None and plain.bottlenecks is None


@pytest.mark.parametrize("kind", ENCODERS)
def test_hidden_states_are_what_the_next_layer_reads_whatever_was_asked_before(kind):
    batch = make_batch()
    solver = make_solver(kind)
    asked = make_encoder(kind).eval()
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    asked(**inputs, output_hidden_states=True)
    with torch.no_grad():
        expected = solver(**batch, output_hidden_states=True).hidden_states
        late = make_solver(kind, encoder=asked)(**batch, output_hidden_states=True).hidden_states
        with bottlenecks_apart(solver.encoder):
            solver.encoder(**inputs, output_hidden_states=True)
        again = solver(**batch, output_hidden_states=True).hidden_states
    for states in zip(expected, late, again, strict=True):
        torch.testing.assert_close(states[1], states[0])
        torch.testing.assert_close(states[2], states[0])


def test_hooks_that_record_are_taken_away_after_an_error():
    solver = make_solver()
    with pytest.raises(IndexError):
        solver(input_ids=torch.tensor([[99]]))
    assert not any(bottleneck.reduce._forward_hooks for bottleneck in solver.bottlenecks.values())


def test_they_begin_as_a_projection():
    bottleneck = make_solver().bottlenecks["1"]
    torch.testing.assert_close(bottleneck.reduce.weight @ bottleneck.reduce.weight.T, torch.eye(6))
    states = torch.randn(3, 16)
    torch.testing.assert_close(bottleneck(bottleneck(states)), bottleneck(states), rtol=1e-4, atol=1e-5)
    assert bottleneck(states).norm() <= states.norm()


def test_a_bottleneck_as_wide_as_the_encoder_begins_as_nothing():
    with torch.no_grad():
        ours = make_solver(layers=[1, 2, 3], size=16)(**make_batch()).last_hidden_state
        plain = make_solver(layers=(), size=None)(**make_batch()).last_hidden_state
    torch.testing.assert_close(ours, plain, rtol=1e-3, atol=1e-4)


def test_solving_goes_through_them():
    solver = make_solver()
    inputs = {name: value for name, value in make_batch().items() if name != "number_groups"}
    before = solver.solve(**inputs).scores.clone()
    with torch.no_grad():
        solver.bottlenecks["3"].expand_weight.mul_(3.0)
    assert not torch.allclose(solver.solve(**inputs).scores, before)


@pytest.mark.parametrize("kind", ENCODERS)
def test_save_and_load(kind, tmp_path):
    solver = make_solver(kind)
    solver.save_pretrained(tmp_path)
    loaded, info = AutoModel.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"] and not info["unexpected_keys"]
    assert loaded.config.bottleneck_layers == [1, 3] and loaded.config.bottleneck_size == 6
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in solver.state_dict().items())
    with torch.no_grad():
        ours = solver(**make_batch(), labels=LABELS)
        torch.testing.assert_close(loaded.eval()(**make_batch(), labels=LABELS).logits, ours.logits)


def test_a_checkpoint_without_them_gets_new_ones(tmp_path):
    plain = make_solver(layers=(), size=None)
    plain.save_pretrained(tmp_path)
    loaded, info = MwpSolver.from_pretrained(
        tmp_path, bottleneck_layers=[2], bottleneck_size=5, output_loading_info=True
    )
    assert all(name.startswith("bottlenecks.2.") for name in info["missing_keys"]) and info["missing_keys"]
    bottleneck = loaded.bottlenecks["2"]
    torch.testing.assert_close(bottleneck.reduce.weight @ bottleneck.reduce.weight.T, torch.eye(5))
    assert torch.equal(bottleneck.expand_weight, bottleneck.reduce.weight.T)
    assert not bottleneck.reduce.bias.any() and not bottleneck.expand_bias.any()
    for name, value in plain.state_dict().items():
        assert torch.equal(loaded.state_dict()[name], value)


def test_copies_have_bottlenecks_of_their_own():
    solver = make_solver()
    twin = copy.deepcopy(solver)
    with torch.no_grad():
        before = solver(**make_batch()).last_hidden_state
        for bottleneck in solver.bottlenecks.values():
            bottleneck.expand_weight.zero_()
        torch.testing.assert_close(twin(**make_batch()).last_hidden_state, before)
        assert not solver(**make_batch()).last_hidden_state.any()
    del solver
    gc.collect()
    with torch.no_grad():
        torch.testing.assert_close(twin(**make_batch()).last_hidden_state, before)


def test_gradients_reach_both_maps_and_the_layers_below():
    solver = make_solver().train()
    solver(**make_batch(), labels=LABELS).loss.backward()
    for name, parameter in solver.named_parameters():
        if name.startswith(("bottlenecks.", "encoder.encoder.layer.0.output", "encoder.embeddings.word")):
            assert parameter.grad is not None and parameter.grad.any(), name


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing_enable:FutureWarning")
@pytest.mark.parametrize("reentrant", [False, True])
@pytest.mark.parametrize("kind", ["student", "bert"])
def test_gradient_checkpointing_gives_the_same(kind, reentrant):
    grads = []
    for checkpointing in (False, True):
        solver = make_solver(kind).train()
        if checkpointing:
            # The name that transformers 5.17 knows; later versions call it activation checkpointing.
            solver.gradient_checkpointing_enable({"use_reentrant": reentrant})
        output = solver(**make_batch(), labels=LABELS, output_hidden_states=True)
        assert len(output.bottleneck_states) == 2
        output.loss.backward()
        grads.append({name: parameter.grad for name, parameter in solver.named_parameters()})
        assert not any(bottleneck.reduce._forward_hooks for bottleneck in solver.bottlenecks.values())
    for name, grad in grads[0].items():
        torch.testing.assert_close(grads[1][name], grad, rtol=1e-4, atol=1e-6)


def test_an_encoder_made_of_a_solvers_has_none_and_says_so():
    encoder = make_solver().encoder
    with CaptureLogger(get_logger("hf_mwp.compress.models.mwp_student.conversion_mwp_student")) as log:
        student = MwpStudentModel.from_encoder(encoder).eval()
    assert "bottleneck networks" in log.out
    batch = {name: make_batch()[name] for name in ("input_ids", "attention_mask")}
    with torch.no_grad():
        ours = student(**batch).last_hidden_state
        assert not torch.allclose(ours, encoder(**batch).last_hidden_state)
        with bottlenecks_apart(encoder):
            torch.testing.assert_close(ours, encoder(**batch).last_hidden_state)
            with CaptureLogger(get_logger("hf_mwp.compress.models.mwp_student.conversion_mwp_student")) as log:
                MwpStudentModel.from_encoder(encoder)
    assert "bottleneck" not in log.out


def test_an_encoder_with_bottlenecks_is_not_given_others():
    solver = make_solver()
    for layers, size in (([1], 4), ((), None)):
        with pytest.raises(ValueError, match="`MwpStudentModel`.*`detach_bottlenecks"):
            make_solver(encoder=solver.encoder, layers=layers, size=size)
    detach_bottlenecks(solver.encoder)
    with torch.no_grad():
        plain = make_solver(layers=(), size=None)(**make_batch()).last_hidden_state
        torch.testing.assert_close(solver.encoder(*list(make_batch().values())[:2]).last_hidden_state, plain)
    assert len(make_solver(encoder=solver.encoder, layers=[1], size=4).bottlenecks) == 1


def test_from_encoder_decoder_pretrained():
    processor = tiny_processor()
    encoder = MwpStudentModel(MwpStudentConfig(**(SIZES | {"vocab_size": len(processor.tokenizer)})))
    solver = MwpSolver.from_encoder_decoder_pretrained(encoder, processor, bottleneck_layers=(3, 2), bottleneck_size=8)
    assert solver.config.bottleneck_layers == [2, 3]
    output = solver(**make_batch() | {"input_ids": torch.full((2, 7), 6)}, output_hidden_states=True)
    assert [state.shape[-1] for state in output.bottleneck_states] == [8, 8]


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
def test_impossible_bottlenecks_are_named(layers, size, message):
    with pytest.raises(StrictDataclassClassValidationError, match=message):
        make_solver(layers=layers, size=size)


def test_encoders_without_a_list_of_layers_are_named():
    encoder = MwpStudentModel(MwpStudentConfig(**SIZES))
    encoder.encoder.layer = nn.ModuleList([*encoder.encoder.layer[:2]])
    with pytest.raises(ValueError, match="`MwpStudentModel`.* 3 layers"):
        encoder_layers(encoder)
    assert len(encoder_layers(GPT2Model(GPT2Config(n_layer=2, n_head=2, n_embd=8, vocab_size=9)))) == 2


def test_bottlenecks_are_counted_in_the_parameters():
    solver = make_solver()
    plain = make_solver(layers=(), size=None)
    more = solver.num_parameters() - plain.num_parameters()
    assert more == 2 * (16 * 6 + 6 + 6 * 16 + 16)
    assert isinstance(solver.bottlenecks["1"], Bottleneck)
