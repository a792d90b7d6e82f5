import pytest
import torch
from torch import nn

from hf_mwp.compress.models.model_kind import (
    CAUSAL,
    CLASSIFIER,
    IMAGE_SEGMENTER,
    SEQ2SEQ,
    TOKEN_MODEL,
    ModelKind,
    kind_of,
    unwrapped,
)
from hf_mwp.compress.models.model_outputs import named_outputs
from hf_mwp.solver.models.solver_kind import SOLVER
from tests.compress.trainers.distilling import gpt2
from tests.tiny import tiny_classifier, tiny_masked_lm, tiny_processor, tiny_solver
from tests.tiny_seq2seq import tiny_seq2seq


# peft reads the attribute, which transformers will remove.
pytestmark = pytest.mark.filterwarnings(
    "ignore:`is_gradient_checkpointing` is deprecated", "ignore:fan_in_fan_out is set"
)


def test_encoder_symbols_and_reduction_of_a_kind():
    solver = tiny_solver(tiny_processor())
    classifier = tiny_classifier()
    assert SOLVER.encoder(solver) is solver.encoder
    assert CLASSIFIER.encoder(classifier) is classifier.base_model
    assert SOLVER.num_symbols(solver) == solver.vocabulary.num_symbols
    assert CLASSIFIER.num_symbols(classifier) is None
    assert SOLVER.reduction == "batchmean"
    assert CLASSIFIER.reduction == TOKEN_MODEL.reduction == "mean"
    assert kind_of(None) is CLASSIFIER


class Wrapper(nn.Module):
    """A user's module around a model, with a loss function that has no parameters."""

    def __init__(self, model):
        super().__init__()
        self.criterion = nn.CrossEntropyLoss()
        self.model = model

    def forward(self, **inputs):
        return self.model(**inputs)


class FakeDDP(nn.parallel.DistributedDataParallel):
    """`DistributedDataParallel` without processes."""

    def __init__(self, module):
        nn.Module.__init__(self)
        self.module = module


def lora(model):
    peft = pytest.importorskip("peft")
    # Of BERT and students, GPT-2, and BART.
    config = peft.LoraConfig(r=2, target_modules=r".*\.(query|c_attn|q_proj)")
    return peft.get_peft_model(model, config)


WRAPPERS = {
    "none": lambda model: model,
    "peft": lora,
    "compile": torch.compile,
    "DDP": FakeDDP,
    "own": Wrapper,
    "own of own": lambda model: Wrapper(Wrapper(model)),
    "DDP of peft": lambda model: FakeDDP(lora(model)),
    "compiled own": lambda model: torch.compile(Wrapper(model)),
    "own of peft": lambda model: Wrapper(lora(model)),
}


def make_solver():
    return tiny_solver(tiny_processor())


def make_gpt2():
    return gpt2(16, 0)


@pytest.mark.parametrize(
    ("make", "kind", "logits_shape", "wrappers"),
    [
        (tiny_classifier, CLASSIFIER, (1, 3), WRAPPERS),
        (make_solver, SOLVER, (1, 2, 3), ["DDP", "DDP of peft"]),
        (tiny_masked_lm, TOKEN_MODEL, (1, 2, 40), ["DDP"]),
        (tiny_seq2seq, SEQ2SEQ, (1, 2, 40), ["DDP", "peft"]),
        (make_gpt2, CAUSAL, (1, 2, 40), ["own", "DDP of peft"]),
    ],
)
def test_wrapped_model_has_the_kind_of_the_model(make, kind, logits_shape, wrappers):
    logits = torch.zeros(logits_shape)
    for wrapper in wrappers:
        model = make()
        wrapped = WRAPPERS[wrapper](model)
        assert unwrapped(wrapped) is model
        assert kind_of(wrapped, logits) is kind
        assert kind.encoder(wrapped) is kind.encoder(model)
        assert kind.num_symbols(wrapped) == kind.num_symbols(model)


def test_prompts_of_peft_keep_the_kind():
    peft = pytest.importorskip("peft")
    sizes = {"num_layers": 2, "token_dim": 16, "num_attention_heads": 2, "num_transformer_submodules": 1}
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2, **sizes)
    assert kind_of(peft.get_peft_model(make_gpt2(), config), torch.zeros(1, 2, 40)) is CAUSAL


def test_modules_with_their_own_weights_are_not_wrappers():
    model = Wrapper(make_gpt2())
    model.head = nn.Linear(4, 3)
    assert unwrapped(model) is model and unwrapped(FakeDDP(model)) is model
    assert kind_of(model, torch.zeros(1, 3)) is CLASSIFIER
    linear = nn.Sequential(nn.Linear(4, 3))
    assert unwrapped(linear) is linear and unwrapped(None) is None


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_model_class_may_define_its_kind(wrapper):
    class Ranker(type(tiny_classifier())):
        kind = ModelKind("ranker", per_position=True)

    model = Ranker(tiny_classifier().config)
    assert kind_of(WRAPPERS[wrapper](model), torch.zeros(1, 2)) is Ranker.kind


def test_attribute_of_this_name_that_is_no_kind_is_ignored():
    wrapped = Wrapper(tiny_classifier())
    wrapped.kind = "a user's attribute"
    assert unwrapped(wrapped) is wrapped.model and kind_of(wrapped) is CLASSIFIER


@pytest.mark.parametrize(
    ("shape", "kind"), [((4, 3), CLASSIFIER), ((4, 9, 3), TOKEN_MODEL), ((4, 3, 8, 8), IMAGE_SEGMENTER)]
)
def test_shape_of_logits_decides_the_kind_of_other_modules(shape, kind):
    assert kind_of(nn.Linear(2, 2), torch.zeros(shape)) is kind
    # A module that returns scores of rows is a classifier, whatever it wraps.
    assert kind_of(Wrapper(make_gpt2()), torch.zeros(4, 3)) is CLASSIFIER


@pytest.mark.parametrize("wrap", [Wrapper, lora])
def test_outputs_have_names_without_return_dict(wrap):
    model = tiny_classifier().eval()
    inputs = {"input_ids": torch.tensor([[2, 5, 3]])}
    expected = model(**inputs).logits
    model.config.return_dict = False
    assert isinstance(model(**inputs), tuple)
    assert torch.equal(named_outputs(model, inputs).logits, expected)
    assert torch.equal(named_outputs(wrap(model).eval(), inputs).logits, expected)
