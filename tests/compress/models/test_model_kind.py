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


def test_kinds():
    solver = tiny_solver(tiny_processor())
    classifier = tiny_classifier()
    masked = tiny_masked_lm()
    assert kind_of(solver, torch.zeros(1, 2, 3)) is SOLVER
    assert kind_of(classifier, torch.zeros(1, 2)) is CLASSIFIER and kind_of(None) is CLASSIFIER
    assert kind_of(masked, torch.zeros(1, 2, 3)) is TOKEN_MODEL
    assert [kind.reduction for kind in (SOLVER, CLASSIFIER, TOKEN_MODEL)] == ["batchmean", "mean", "mean"]
    assert SOLVER.encoder(solver) is solver.encoder and CLASSIFIER.encoder(classifier) is classifier.base_model
    assert SOLVER.num_symbols(solver) == solver.vocabulary.num_symbols and CLASSIFIER.num_symbols(classifier) is None


class Wrapper(nn.Module):
    """A user's module around a model, with a loss function that has no parameters."""

    def __init__(self, model):
        super().__init__()
        self.criterion = nn.CrossEntropyLoss()
        self.model = model

    def forward(self, **inputs):
        return self.model(**inputs)


class OwnHead(Wrapper):
    """Has weights of its own."""

    def __init__(self, model):
        super().__init__(model)
        self.head = nn.Linear(4, 3)


class FakeDDP(nn.parallel.DistributedDataParallel):
    """`DistributedDataParallel` without processes."""

    def __init__(self, module):
        nn.Module.__init__(self)
        self.module = module


def lora(model):
    peft = pytest.importorskip("peft")
    names = {name.rpartition(".")[2] for name, _ in model.named_modules()}
    targets = [name for name in ("q_proj", "query", "c_attn") if name in names]
    return peft.get_peft_model(model, peft.LoraConfig(r=2, target_modules=targets))


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
MODELS = {
    "solver": (lambda: tiny_solver(tiny_processor()), SOLVER, (1, 2, 3)),
    "classifier": (tiny_classifier, CLASSIFIER, (1, 3)),
    "masked LM": (tiny_masked_lm, TOKEN_MODEL, (1, 2, 40)),
    "BART": (tiny_seq2seq, SEQ2SEQ, (1, 2, 40)),
    "GPT-2": (lambda: gpt2(16, 0), CAUSAL, (1, 2, 40)),
}


# peft reads the attribute, which transformers will remove.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated", "ignore:fan_in_fan_out is set")
@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.parametrize("name", MODELS)
def test_wrappers_leave_the_kind(name, wrapper):
    make, kind, shape = MODELS[name]
    model = make()
    wrapped = WRAPPERS[wrapper](model)
    assert unwrapped(wrapped) is model
    assert kind_of(wrapped, torch.zeros(shape)) is kind
    assert kind.encoder(wrapped) is kind.encoder(model)
    assert kind.num_symbols(wrapped) == kind.num_symbols(model)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_prompts_of_peft_leave_the_kind():
    peft = pytest.importorskip("peft")
    sizes = {"num_layers": 2, "token_dim": 16, "num_attention_heads": 2, "num_transformer_submodules": 1}
    config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2, **sizes)
    assert kind_of(peft.get_peft_model(gpt2(16, 0), config), torch.zeros(1, 2, 40)) is CAUSAL


def test_modules_with_weights_of_their_own_are_not_wrappers():
    model = OwnHead(gpt2(16, 0))
    assert unwrapped(model) is model and unwrapped(FakeDDP(model)) is model
    assert kind_of(model, torch.zeros(1, 3)) is CLASSIFIER
    linear = nn.Sequential(nn.Linear(4, 3))
    assert unwrapped(linear) is linear and unwrapped(None) is None


@pytest.mark.parametrize("wrapper", WRAPPERS)
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated", "ignore:fan_in_fan_out is set")
def test_a_model_names_its_kind(wrapper):
    class Ranker(type(tiny_classifier())):
        kind = ModelKind("ranker", per_position=True)

    model = Ranker(tiny_classifier().config)
    wrapped = WRAPPERS[wrapper](model)
    assert unwrapped(wrapped) is model and kind_of(wrapped, torch.zeros(1, 2)) is Ranker.kind


def test_an_attribute_of_this_name_that_is_no_kind_is_ignored():
    wrapped = Wrapper(tiny_classifier())
    wrapped.kind = "a user's attribute"
    assert unwrapped(wrapped) is wrapped.model and kind_of(wrapped) is CLASSIFIER


def test_shapes_of_logits_distinguish_rows_positions_and_pixels():
    # A module that returns scores of rows is a classifier, whatever it wraps.
    assert kind_of(Wrapper(gpt2(16, 0)), torch.zeros(4, 3)) is CLASSIFIER
    assert kind_of(nn.Linear(2, 2), torch.zeros(4, 9, 3)) is TOKEN_MODEL
    assert kind_of(nn.Linear(2, 2), torch.zeros(4, 3, 8, 8)) is IMAGE_SEGMENTER


@pytest.mark.parametrize("wrapper", ["none", "own", "DDP of peft"])
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_outputs_have_names_without_return_dict(wrapper):
    model = tiny_classifier().eval()
    inputs = {"input_ids": torch.tensor([[2, 5, 3]])}
    expected = model(**inputs).logits
    model.config.return_dict = False
    assert isinstance(model(**inputs), tuple)
    wrapped = WRAPPERS[wrapper](model).eval()
    wrapped = getattr(wrapped, "module", wrapped)
    assert torch.equal(named_outputs(wrapped, inputs).logits, expected)
