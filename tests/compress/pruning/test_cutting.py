import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForMultipleChoice,
    AutoModelForQuestionAnswering,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    BertForNextSentencePrediction,
    BertForSequenceClassification,
    GPTJConfig,
    GPTJModel,
    T5Config,
    T5EncoderModel,
)

from hf_mwp import MwpSolver, MwpStudentModel
from hf_mwp.compress.models.architecture import find_encoder
from hf_mwp.compress.models.pruned_form import pruned_class
from hf_mwp.compress.pruning import HeadGates, NeuronGates, export_dense, prune, prune_heads, prune_neurons
from hf_mwp.solver.data import TrainingTexts
from hf_mwp.utils.provenance import ancestry_of
from tests.compress.pruning.encoders import (
    CLASSES,
    FOREIGN,
    TASK_HEADS,
    first_output,
    head_batch,
    tiny_batch,
    tiny_encoder,
)
from tests.slow_parameters import slow_after, slow_except
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


AUTO = {
    "Model": AutoModel,
    "ForSequenceClassification": AutoModelForSequenceClassification,
    "ForMaskedLM": AutoModelForMaskedLM,
    "ForTokenClassification": AutoModelForTokenClassification,
    "ForQuestionAnswering": AutoModelForQuestionAnswering,
    "ForMultipleChoice": AutoModelForMultipleChoice,
}
# One layer without heads, one without neurons, one of each as it was.
CUT_HEADS = {0: [1, 3], 1: [0, 1, 2, 3]}
CUT_NEURONS = {0: range(20), 2: [0, 5, 19]}


@pytest.mark.parametrize(
    ("name", "head"),
    [
        *slow_except(
            [(name, "ForSequenceClassification") for name in [*CLASSES, *FOREIGN]],
            *[(name, "ForSequenceClassification") for name in ("bert", "mwp_student", "albert")],
        ),
        *slow_except(
            [(name, "ForMaskedLM") for name in ["bert", *FOREIGN]],
            ("modernbert", "ForMaskedLM"),
        ),
        *slow_except((name, "Model") for name in ("bert", "albert", "mpnet")),
        *slow_except(("distilbert", head) for head in TASK_HEADS),
        *slow_except(
            (name, head) for name in ("mwp_student", "bert", "roberta", "electra", "deberta-v2") for head in TASK_HEADS
        ),
    ],
)
def test_gated_equals_cut_equals_reloaded(name, head, tmp_path):
    model = tiny_encoder(name, head)
    batch = head_batch(model, head)
    before = first_output(model, batch)
    with HeadGates(model) as head_gates, NeuronGates(model) as neuron_gates:
        head_gates.close(CUT_HEADS)
        neuron_gates.close(CUT_NEURONS)
        gated = first_output(model, batch)
    assert torch.equal(first_output(model, batch), before) and not torch.allclose(gated, before, atol=1e-3)
    cut = prune(model, CUT_HEADS, CUT_NEURONS)
    torch.testing.assert_close(first_output(cut, batch), gated, rtol=0, atol=1e-6)
    assert torch.equal(first_output(model, batch), before)
    one_by_one = prune_neurons(prune_heads(model, CUT_HEADS), CUT_NEURONS)
    assert torch.equal(first_output(one_by_one, batch), first_output(cut, batch))
    config = find_encoder(cut).config
    assert config.heads_per_layer == [2, 0, 4]
    assert config.neurons_per_layer == [0, 20, 17]
    cut.save_pretrained(tmp_path)
    loaded = AUTO[head].from_pretrained(tmp_path)
    assert type(loaded) is type(cut)
    torch.testing.assert_close(first_output(loaded, batch), gated, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["bert", "mwp_student"])
def test_closed_gates_are_cut(name):
    model = tiny_encoder(name)
    batch = tiny_batch(model)
    HeadGates(model).close({0: [1]})
    NeuronGates(model).close({2: [0, 5]})
    gated = first_output(model, batch)
    for cut in (prune_heads(model, {0: [1]}), prune_heads(model, {}), prune_neurons(model, {})):
        torch.testing.assert_close(first_output(cut, batch), gated, rtol=0, atol=1e-6)
        assert cut.config.heads_per_layer == [3, 4, 4]
        assert cut.config.neurons_per_layer == [20, 20, 18]
        assert cut.config.cut_heads == [[1], [], []]
    with pytest.raises(ValueError, match="(?i)gates"):
        MwpStudentModel.from_encoder(model)


def test_modules_that_a_trainer_attaches_are_not_copied():
    model = tiny_encoder("deberta-v2", "ForSequenceClassification")
    batch = tiny_batch(model)
    expected = first_output(prune(model, CUT_HEADS), batch)
    model.add_module("distillation_projections", torch.nn.Linear(2, 2))
    cut = prune(model, CUT_HEADS)
    assert torch.equal(first_output(cut, batch), expected)
    assert not hasattr(cut, "distillation_projections")


def test_pruned_model_is_pruned_further():
    model = tiny_encoder("bert", "ForSequenceClassification")
    batch = tiny_batch(model)
    once = prune_heads(model, {0: [0, 1], 2: [3]})
    # Heads are counted anew: 2 of the first layer is now its first.
    twice = prune_heads(once, {0: [0]})
    at_once = prune_heads(model, {0: [0, 1, 2], 2: [3]})
    torch.testing.assert_close(first_output(twice, batch), first_output(at_once, batch))
    assert once.config.num_attention_heads == [2, 4, 3]
    assert twice.config.num_attention_heads == [1, 4, 3]


@pytest.mark.parametrize("name", slow_after(1, ["mwp_student", "bert", "deberta-v3"]))
def test_pruned_solver_keeps_decoder_and_bottlenecks(name, tmp_path):
    processor = tiny_processor(max_length=32)
    encoder = tiny_encoder(name, vocab_size=len(processor.tokenizer))
    solver = MwpSolver.from_encoder_decoder_pretrained(
        encoder, processor, bottleneck_layers=[1, 2], bottleneck_size=5
    ).eval()
    batch = processor([row["text"] for row in tiny_rows(4)])
    cut_heads = {0: range(4), 1: [0]}
    with HeadGates(solver) as gates:
        gates.close(cut_heads)
        expected = solver.solve(**batch, num_beams=3)
    pruned = prune_heads(solver, cut_heads)
    assert pruned.config.encoder_config.heads_per_layer == [0, 3, 4]
    pruned.save_pretrained(tmp_path)
    for model in (pruned, MwpSolver.from_pretrained(tmp_path)):
        solution = model.solve(**batch, num_beams=3)
        assert torch.equal(solution.sequences, expected.sequences)
        torch.testing.assert_close(solution.scores, expected.scores, rtol=0, atol=1e-5)
        for weight_name, weight in solver.decoder.state_dict().items():
            assert torch.equal(weight, model.decoder.state_dict()[weight_name])


def prune_a_head(model):
    return prune(model, {0: [1]})


@pytest.mark.parametrize(
    ("name", "change"), slow_after(1, [("bert", prune_a_head), ("modernbert", prune_a_head), (None, export_dense)])
)
def test_changed_solver_keeps_its_training_texts(name, change, tmp_path):
    processor = tiny_processor(max_length=32)
    solver = tiny_solver(processor)
    if name is not None:
        encoder = tiny_encoder(name, vocab_size=len(processor.tokenizer))
        solver = MwpSolver.from_encoder_decoder_pretrained(encoder, processor)
    solver.training_texts = TrainingTexts.from_texts(["有1个", "有2个"], ["a.txt"])
    solver.save_pretrained(tmp_path / "whole")
    change(MwpSolver.from_pretrained(tmp_path / "whole")).save_pretrained(tmp_path / "changed")
    texts = TrainingTexts.load(tmp_path / "changed")
    assert len(texts) == 2 and texts.sources == ("a.txt",)


def test_pruned_encoder_has_the_unknown_texts_of_its_source(tmp_path):
    tiny_encoder("bert").save_pretrained(tmp_path / "encoder")
    encoder = AutoModel.from_pretrained(tmp_path / "encoder")
    (unknown,) = ancestry_of(encoder).unknown
    assert unknown.endswith("encoder")
    assert ancestry_of(prune(encoder, {0: [0]})).unknown == (unknown,)


class WithScorer(BertForSequenceClassification):
    def __init__(self, config):
        super().__init__(config)
        self.scorer = torch.nn.Linear(config.hidden_size, 1)


def bert():
    return tiny_encoder("bert")


@pytest.mark.parametrize(
    ("make", "heads", "neurons", "message"),
    [
        (lambda: BertForNextSentencePrediction(bert().config), {}, {}, r"BertForNextSentence.*\(BertModel\)"),
        (lambda: WithScorer(bert().config), {}, {}, r"WithScorer.*\(BertModel\)"),
        (lambda: torch.nn.Sequential(bert()), {}, {}, "Sequential"),
        (bert, {3: [0]}, {}, r"layer 3\b.* 0 to 2"),
        (bert, {0: [4]}, {}, r"Layer 0\b.* 4\b.* 4\b"),
        (bert, {}, {0: [-1]}, r"Layer 0\b.* -1\b.* 20\b"),
        (lambda: GPTJModel(GPTJConfig(n_layer=1, n_embd=8, n_head=2, rotary_dim=2)), {0: [0]}, {}, "ARCHITECTURES"),
        (lambda: tiny_encoder("bert", is_decoder=True), {0: [0]}, {}, "ARCHITECTURES"),
        (lambda: T5EncoderModel(T5Config(num_layers=1, d_model=8, num_heads=2)), {}, {}, "T5EncoderModel.*bias"),
    ],
)
def test_unsupported_models_and_units_raise(make, heads, neurons, message):
    with pytest.raises(ValueError, match=message):
        prune(make(), heads, neurons)


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapters_must_be_merged_first():
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["query", "value"], init_lora_weights=False)
    adapted = peft.get_peft_model(bert(), config)
    with pytest.raises(ValueError, match="`hf_mwp.merge_lora"):
        prune_heads(adapted, {0: [0]})
    # The callback calls it before the training.
    with pytest.raises(ValueError, match="`hf_mwp.merge_lora"):
        pruned_class(adapted)
    with HeadGates(adapted.merge_and_unload()) as gates:
        gates.close({0: [0]})


@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapters_on_a_pruned_encoder_train():
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(r=2, target_modules=["query", "value"])
    adapted = peft.get_peft_model(prune_heads(bert(), {0: [0, 2]}), config)
    weight = adapted.base_model.model.encoder.layer[0].attention.self.query.lora_B["default"].weight
    adapted(**tiny_batch(adapted)).last_hidden_state.sum().backward()
    assert weight.shape == (12, 2) and weight.grad.any()


@pytest.mark.parametrize("indices", [torch.tensor, iter])
def test_indices_may_be_tensors_and_iterators(indices):
    model = bert()
    expected = prune(model, heads={0: [1, 3]}, neurons={2: [0, 5]})
    cut = prune(model, heads={0: indices([1, 3])}, neurons={2: indices([0, 5])})
    assert cut.config.to_dict() == expected.config.to_dict()
    with HeadGates(model) as gates:
        gates.close({0: indices([1, 3])})
        assert gates.values[0].tolist() == [1, 0, 1, 0] and HeadGates.closed_on(model)[0] == {1, 3}
    with pytest.raises(TypeError, match=r"`heads\[0\]\[0\]` must be a whole number"):
        prune_heads(model, {0: [1.0]})
