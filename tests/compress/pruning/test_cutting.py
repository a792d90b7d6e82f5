import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForSequenceClassification,
    BertConfig,
    BertForQuestionAnswering,
    BertForSequenceClassification,
    GPT2Config,
    GPT2Model,
    T5Config,
    T5EncoderModel,
)

from hf_mwp import MwpSolver, MwpStudentModel
from hf_mwp.compress.models.architecture import find_encoder, layer_parts
from hf_mwp.compress.models.pruned_form import pruned_class
from hf_mwp.compress.pruning import HeadGates, NeuronGates, prune, prune_heads, prune_neurons
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.utils.provenance import ancestry_of
from tests.compress.pruning.encoders import CLASSES, FOREIGN, HEADS, tiny_batch, tiny_encoder
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


AUTO = dict(zip(HEADS, [AutoModel, AutoModelForSequenceClassification, AutoModelForMaskedLM], strict=True))
# One layer without heads, one without neurons, one of each as it was.
GONE_HEADS = {0: [1, 3], 1: [0, 1, 2, 3]}
GONE_NEURONS = {0: range(20), 2: [0, 5, 19]}


def first_output(model, batch):
    with torch.no_grad():
        return model(**batch)[0]


@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("name", [*CLASSES, *FOREIGN])
def test_gated_equals_cut_equals_reloaded(name, head, tmp_path):
    model = tiny_encoder(name, head)
    batch = tiny_batch(model)
    before = first_output(model, batch)
    with HeadGates(model) as heads, NeuronGates(model) as neurons:
        heads.close(GONE_HEADS)
        neurons.close(GONE_NEURONS)
        gated = first_output(model, batch)
    assert torch.equal(first_output(model, batch), before) and not torch.allclose(gated, before, atol=1e-3)
    cut = prune(model, GONE_HEADS, GONE_NEURONS)
    torch.testing.assert_close(first_output(cut, batch), gated, rtol=0, atol=1e-6)
    assert torch.equal(first_output(model, batch), before)
    one_by_one = prune_neurons(prune_heads(model, GONE_HEADS), GONE_NEURONS)
    assert torch.equal(first_output(one_by_one, batch), first_output(cut, batch))
    config = find_encoder(cut).config
    assert (config.heads_per_layer, config.neurons_per_layer) == ([2, 0, 4], [0, 20, 17])
    cut.save_pretrained(tmp_path)
    again = AUTO[head].from_pretrained(tmp_path)
    assert type(again) is type(cut)
    torch.testing.assert_close(first_output(again, batch), gated, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["bert", "mwp_student"])
def test_what_gates_have_closed_is_cut_and_not_opened_again(name):
    model = tiny_encoder(name)
    batch = tiny_batch(model)
    HeadGates(model).close({0: [1]})
    NeuronGates(model).close({2: [0, 5]})
    gated = first_output(model, batch)
    cuts = {"heads": prune_heads(model, {0: [1]}), "none": prune_heads(model, {}), "neurons": prune_neurons(model, {})}
    for cut in cuts.values():
        torch.testing.assert_close(first_output(cut, batch), gated, rtol=0, atol=1e-6)
        assert (cut.config.heads_per_layer, cut.config.neurons_per_layer) == ([3, 4, 4], [20, 20, 18])
        assert cut.config.cut_heads == [[1], [], []]
    with pytest.raises(ValueError, match=r"(?i)gates.*`hf_mwp.prune_heads\(model, \{\}\)`"):
        MwpStudentModel.from_encoder(model)


def test_modules_that_a_trainer_attaches_are_left_out():
    model = tiny_encoder("deberta-v2", HEADS[1])
    expected = first_output(prune(model, GONE_HEADS), tiny_batch(model))
    model.add_module("distillation_projections", torch.nn.Linear(2, 2))
    cut = prune(model, GONE_HEADS)
    assert torch.equal(first_output(cut, tiny_batch(model)), expected) and not hasattr(cut, "distillation_projections")


def test_a_pruned_model_is_pruned_further():
    model = tiny_encoder("bert", "ForSequenceClassification")
    batch = tiny_batch(model)
    once = prune_heads(model, {0: [0, 1], 2: [3]})
    # Heads are counted anew: 2 of the first layer is now its first.
    twice = prune_heads(once, {0: [0]})
    at_once = prune_heads(model, {0: [0, 1, 2], 2: [3]})
    torch.testing.assert_close(first_output(twice, batch), first_output(at_once, batch))
    assert once.config.num_attention_heads == [2, 4, 3] and twice.config.num_attention_heads == [1, 4, 3]


@pytest.mark.parametrize("bottlenecks", [{}, {"bottleneck_layers": [1, 2], "bottleneck_size": 5}])
@pytest.mark.parametrize("name", ["bert", "modernbert", "deberta-v3"])
def test_a_pruned_solver_keeps_its_decoder_and_bottlenecks(name, bottlenecks, tmp_path):
    processor = tiny_processor(max_length=32)
    stock = tiny_encoder(name, vocab_size=len(processor.tokenizer))
    solver = MwpSolver.from_encoder_decoder_pretrained(stock, processor, **bottlenecks).eval()
    for model in (solver, tiny_solver(processor, layers=3, hidden_size=24, **bottlenecks).eval()):
        batch = processor([row["text"] for row in tiny_rows(4)])
        size = layer_parts(model)[0].num_heads
        gone = {0: range(size), 1: [0]}
        with HeadGates(model) as gates:
            gates.close(gone)
            expected = model.solve(**batch, num_beams=3)
        pruned = prune_heads(model, gone)
        pruned.save_pretrained(tmp_path)
        for each in (pruned, MwpSolver.from_pretrained(tmp_path)):
            found = each.solve(**batch, num_beams=3)
            assert torch.equal(found.sequences, expected.sequences)
            torch.testing.assert_close(found.scores, expected.scores, rtol=0, atol=1e-5)
        assert pruned.config.encoder_config.heads_per_layer == [0, size - 1, size]
        for name, value in model.decoder.state_dict().items():
            assert torch.equal(value, pruned.decoder.state_dict()[name])


@pytest.mark.parametrize("name", ["bert", "modernbert"])
def test_a_pruned_solver_keeps_its_training_texts(name, tmp_path):
    processor = tiny_processor(max_length=32)
    solver = MwpSolver.from_encoder_decoder_pretrained(
        tiny_encoder(name, vocab_size=len(processor.tokenizer)), processor
    )
    solver.training_texts = TrainingTexts.from_texts(["有1个", "有2个"], ["a.txt"])
    solver.save_pretrained(tmp_path / "whole")
    prune(MwpSolver.from_pretrained(tmp_path / "whole"), {0: [1]}).save_pretrained(tmp_path / "pruned")
    kept = TrainingTexts.load(tmp_path / "pruned")
    assert (len(kept), kept.sources) == (2, ("a.txt",))


class WithAnotherPart(BertForSequenceClassification):
    def __init__(self, config):
        super().__init__(config)
        self.scorer = torch.nn.Linear(config.hidden_size, 1)


TINY = {"vocab_size": 8, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: prune_heads(BertForQuestionAnswering(BertConfig(**TINY)), {}),
            r"BertForQuestionAnswering.*\(BertModel\)",
        ),
        (lambda: prune_heads(WithAnotherPart(BertConfig(**TINY)), {}), r"WithAnotherPart.*\(BertModel\)"),
        (lambda: prune_heads(torch.nn.Sequential(tiny_encoder("bert")), {}), "Sequential"),
        (lambda: prune_heads(tiny_encoder("bert"), {3: [0]}), r"layer 3\b.* 0 to 2"),
        (lambda: prune_heads(tiny_encoder("bert"), {0: [4]}), r"Layer 0\b.* 4\b.* 4\b"),
        (lambda: prune_neurons(tiny_encoder("bert"), {0: [-1]}), r"Layer 0\b.* -1\b.* 20\b"),
        (lambda: prune_heads(GPT2Model(GPT2Config(n_layer=1, n_embd=8, n_head=2)), {0: [0]}), "ARCHITECTURES"),
        (
            lambda: prune_heads(T5EncoderModel(T5Config(num_layers=1, d_model=8, d_kv=4, num_heads=2, d_ff=8)), {}),
            "T5EncoderModel.*bias",
        ),
    ],
)
def test_what_cannot_be_cut(make, message):
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapters_are_merged_first():
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["query", "value"], init_lora_weights=False)
    adapted = peft.get_peft_model(tiny_encoder("bert"), config)
    # What a callback asks for before the training says so as well.
    for refuse in (lambda: prune_heads(adapted, {0: [0]}), lambda: pruned_class(adapted)):
        with pytest.raises(ValueError, match="`hf_mwp.merge_lora"):
            refuse()
    with HeadGates(adapted.merge_and_unload()) as gates:
        gates.close({0: [0]})


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapters_on_a_pruned_encoder_train():
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["query", "value"])
    adapted = peft.get_peft_model(prune_heads(tiny_encoder("bert"), {0: [0, 2]}), config)
    first_layer = adapted.base_model.model.encoder.layer[0].attention.self.query
    adapted(**tiny_batch(adapted)).last_hidden_state.sum().backward()
    assert first_layer.lora_B["default"].weight.shape == (12, 2)
    assert first_layer.lora_B["default"].weight.grad.abs().sum() > 0


@pytest.mark.parametrize("read", [torch.tensor, iter, lambda heads: map(int, heads), tuple])
def test_indices_may_be_tensors_and_iterators(read):
    model = tiny_encoder("bert")
    expected = prune(model, heads={0: [1, 3]}, neurons={2: [0, 5]})
    found = prune(model, heads={0: read([1, 3])}, neurons={2: read([0, 5])})
    assert found.config.to_dict() == expected.config.to_dict()
    for name, value in expected.state_dict().items():
        assert torch.equal(found.state_dict()[name], value)
    with HeadGates(model) as gates:
        gates.close({0: read([1, 3])})
        assert gates.values[0].tolist() == [1, 0, 1, 0] and HeadGates.closed_on(model)[0] == {1, 3}
    with pytest.raises(TypeError, match=r"`heads\[0\]\[0\]` must be a whole number"):
        prune_heads(model, {0: [1.0]})


def test_a_pruned_encoder_has_unknown_training_texts_too(tmp_path):
    tiny_encoder("bert").save_pretrained(tmp_path / "encoder")
    encoder = AutoModel.from_pretrained(tmp_path / "encoder")
    (unknown,) = ancestry_of(encoder).unknown
    assert unknown.endswith("encoder") and ancestry_of(prune(encoder, {0: [0]})).unknown == (unknown,)
