import pytest
import torch
import transformers
from torch import nn

from hf_mwp.compress import models
from hf_mwp.compress.models.batch_inputs import find_token_mask
from hf_mwp.compress.models.model_kind import (
    CAUSAL,
    CLASSIFIER,
    CTC,
    DETECTOR,
    IMAGE_SEGMENTER,
    INSTANCE_SEGMENTER,
    MULTIPLE_CHOICE,
    ORDER_PRETRAINING,
    PRETRAINING,
    QUESTION,
    REPLACED_TOKEN,
    SEQ2SEQ,
    TOKEN_MODEL,
    ModelKind,
    kind_of,
    unwrapped,
)
from hf_mwp.compress.models.model_outputs import named_outputs
from hf_mwp.compress.pruning import prune_heads
from hf_mwp.solver.models.solver_kind import SOLVER
from tests.compress.pruning.encoders import tiny_encoder
from tests.compress.trainers.distilling import gpt2
from tests.slow_parameters import slow_except
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
    "compiled own": lambda model: torch.compile(Wrapper(model), backend="eager"),
    "own of peft": lambda model: Wrapper(lora(model)),
}
# PyTorch takes seconds to load its compiler.
QUICK_WRAPPERS = [name for name in WRAPPERS if "compile" not in name]


def make_solver():
    return tiny_solver(tiny_processor())


def make_gpt2():
    return gpt2(16, 0)


@pytest.mark.parametrize(
    ("make", "kind", "logits_shape", "wrappers"),
    [
        (tiny_classifier, CLASSIFIER, (1, 3), QUICK_WRAPPERS),
        *slow_except([(tiny_classifier, CLASSIFIER, (1, 3), WRAPPERS)]),
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


class Chooser(transformers.BertForMultipleChoice):
    """A user's class."""


HEADS = [
    (transformers.BertForQuestionAnswering, QUESTION),
    (models.MwpStudentForQuestionAnswering, QUESTION),
    (transformers.BartForQuestionAnswering, QUESTION),
    (transformers.BertForMultipleChoice, MULTIPLE_CHOICE),
    (Chooser, MULTIPLE_CHOICE),
    (models.MwpStudentForMultipleChoice, MULTIPLE_CHOICE),
    (transformers.BertForPreTraining, PRETRAINING),
    (transformers.AlbertForPreTraining, ORDER_PRETRAINING),
    (transformers.BertForNextSentencePrediction, CLASSIFIER),
    (transformers.ElectraForPreTraining, REPLACED_TOKEN),
    (transformers.Wav2Vec2ForCTC, CTC),
    (transformers.YolosForObjectDetection, DETECTOR),
    (transformers.Mask2FormerForUniversalSegmentation, INSTANCE_SEGMENTER),
]


@pytest.mark.parametrize(("model_class", "kind"), slow_except(HEADS, *HEADS[3:10]))
def test_head_decides_the_kind(model_class, kind):
    config_class = model_class.config_class
    fields = {"vocab_size": 40} if "Wav2Vec2" in model_class.__name__ else {}
    with torch.device("meta"):
        model = model_class(config_class(**fields))
    logits = torch.zeros(4, 9)
    assert kind_of(model, logits) is kind
    assert kind_of(Wrapper(model), logits) is kind


def test_pruned_models_have_the_kind_of_their_head():
    for head, kind in (("ForQuestionAnswering", QUESTION), ("ForMultipleChoice", MULTIPLE_CHOICE)):
        for name in ("bert", "modernbert"):
            pruned = prune_heads(tiny_encoder(name, head), {0: [1]})
            assert kind_of(pruned) is kind


def test_masks_of_choices_are_those_of_texts():
    mask = torch.tensor([[[1, 1, 0], [1, 0, 0]]])
    assert find_token_mask({"input_ids": mask, "attention_mask": mask}).tolist() == [[1, 1, 0], [1, 0, 0]]
    # A mask of pairs of tokens says nothing about padding.
    assert find_token_mask({"input_ids": mask[0], "attention_mask": mask}) is None
    assert find_token_mask({"input_ids": mask[0]}) is None


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


@pytest.mark.parametrize("wrapper", slow_except(WRAPPERS, "own", "DDP of peft"))
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
