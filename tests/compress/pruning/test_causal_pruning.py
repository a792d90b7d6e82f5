"""Heads and neurons of causal language models: gated, cut, saved, loaded, scored, and pruned while they train."""

import copy

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    Gemma2Model,
    LlamaForSequenceClassification,
    Trainer,
    TrainingArguments,
)

from hf_mwp import HeadPruningCallback, export_dense
from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.compress.pruning import (
    AttentionEntropy,
    CombinedImportance,
    GateGradient,
    HeadGates,
    NeuronGates,
    RemovedUnits,
    UnitScores,
    WeightNorm,
    choose_heads,
    cut_teacher,
    head_groups,
    heads_of_groups,
    mask_teacher,
    measure_scores,
    prune,
)
from hf_mwp.compress.pruning.removed_units import UnitSparsifier
from hf_mwp.utils.usage_error import UsageError
from tests.compress.pruning.encoders import examples_of, rows_of, score_tables
from tests.compress.pruning.pruned_trainings import StopAt, arguments, assert_same_weights, losses
from tests.fresh_python import WITHOUT_HF_MWP, run_fresh
from tests.slow_parameters import slow_after, slow_except
from tests.tiny_causal import CAUSAL_TYPES, tiny_causal, tiny_causal_batch


GROUPED = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text", "phi3")
# Layers have 4 heads, in groups of 2 where keys and values are shared.
CUTS = {
    "queries": {0: [1, 2], 1: [0, 3]},
    "a layer and a group": {0: [0, 1, 2, 3], 1: [0, 1]},
}
CUT_NEURONS = {0: [0, 5, 47], 1: range(48)}
LENGTH = 6


def logits(model, batch):
    with torch.no_grad():
        return model(**batch).logits


def generated(model, batch, **options):
    prompts = {name: batch[name] for name in ("input_ids", "attention_mask")}
    return model.generate(**prompts, max_new_tokens=LENGTH, do_sample=False, **options).tolist()


def classifier(name):
    config = tiny_causal(name, num_labels=3).config
    torch.manual_seed(0)
    return AutoModelForSequenceClassification.from_config(config).eval()


def load_like(model, folder, auto_class=AutoModelForCausalLM):
    """
    Load a folder with the attention implementation of `model`. Transformers 5.17 loads Gemma 2 with scaled dot product
    attention otherwise, which leaves out its soft cap.
    """
    return auto_class.from_pretrained(folder, attn_implementation=model.config._attn_implementation)


def parameter_count(model):
    return sum(parameter.numel() for parameter in model.parameters())


@pytest.mark.parametrize("cut_heads", slow_after(1, CUTS.values()), ids=CUTS)
@pytest.mark.parametrize("name", slow_except(CAUSAL_TYPES, "llama", "gpt2"))
def test_gated_equals_cut_equals_reloaded(name, cut_heads, tmp_path):
    model = tiny_causal(name)
    batch = tiny_causal_batch(padding_side="left")
    before = logits(model, batch)
    with HeadGates(model) as head_gates, NeuronGates(model) as neuron_gates:
        head_gates.close(cut_heads)
        neuron_gates.close(CUT_NEURONS)
        gated = logits(model, batch)
        text = generated(model, batch)
    assert torch.equal(logits(model, batch), before) and not torch.allclose(gated, before, atol=1e-3)
    cut = prune(model, cut_heads, CUT_NEURONS)
    assert cut.config.heads_per_layer == [4 - len(cut_heads[0]), 2]
    assert cut.config.neurons_per_layer == [45, 0]
    assert parameter_count(cut) < parameter_count(model)
    cut.save_pretrained(tmp_path)
    loaded = load_like(cut, tmp_path)
    assert type(loaded) is type(cut)
    for pruned in (cut, loaded, copy.deepcopy(loaded)):
        torch.testing.assert_close(logits(pruned, batch), gated, rtol=0, atol=1e-5)
        # With keys and values in a cache, and without.
        assert generated(pruned, batch) == generated(pruned, batch, use_cache=False) == text
    # Eager attention repeats keys and values in its own way. It differs in padding.
    loaded.set_attn_implementation("eager")
    is_token = batch["attention_mask"].bool()
    torch.testing.assert_close(logits(loaded, batch)[is_token], gated[is_token], rtol=0, atol=1e-5)
    assert generated(loaded, batch) == text


@pytest.mark.parametrize("name", slow_after(1, CAUSAL_TYPES))
def test_cut_model_is_pruned_further(name):
    model = tiny_causal(name)
    batch = tiny_causal_batch()
    once = prune(model, {0: [2, 3], 1: [1, 2]}, {0: [0]})
    # Heads are counted anew: 0 and 3 of the second layer are 0 and 1, each with its own key and value.
    twice = prune(once, {1: [1]}, {0: [0, 1]})
    at_once = prune(model, {0: [2, 3], 1: [1, 2, 3]}, {0: [0, 1, 2]})
    torch.testing.assert_close(logits(twice, batch), logits(at_once, batch), rtol=0, atol=1e-5)
    assert twice.config.cut_heads == at_once.config.cut_heads == [[2, 3], [1, 2, 3]]
    assert parameter_count(twice) == parameter_count(at_once)


@pytest.mark.parametrize("name", slow_except(CAUSAL_TYPES, "llama", "phi3", "gpt2"))
def test_sizes_are_those_of_heads_and_groups(name):
    cut = prune(tiny_causal(name), {0: [2, 3], 1: [1, 2]})
    first, second = layer_parts(cut)
    num_groups = (1, 2) if name in GROUPED else (2, 2)
    assert (first.num_heads, second.num_heads) == (2, 2)
    assert (first.num_groups, second.num_groups) == num_groups
    # Queries, keys and values of width 8.
    for linears, groups in zip((first, second), num_groups, strict=True):
        sizes = [sum(len(rows) for _, rows in linears.state_rows(range(2)))]
        assert sizes == [8 * (2 + 2 * groups)]


LOAD = """
import sys
import torch
import transformers

folder, inputs, auto_class, target = sys.argv[1:]
model = getattr(transformers, auto_class).from_pretrained(folder, trust_remote_code=True)
batch = torch.load(inputs)
print(type(model).__name__)
if auto_class == "AutoModelForCausalLM":
    print(model.generate(**batch, max_new_tokens=6, do_sample=False).tolist())
torch.save(model(**batch).logits.detach(), target)
assert "hf_mwp" not in sys.modules
"""


@pytest.mark.slow
def test_folders_load_without_hf_mwp(tmp_path):
    batch = tiny_causal_batch(padding_side="left")
    inputs = {name: batch[name] for name in ("input_ids", "attention_mask")}
    torch.save(inputs, tmp_path / "inputs.pt")
    models = [tiny_causal("phi3"), tiny_causal("gpt2"), classifier("llama")]
    pruned = []
    jobs = []
    for number, model in enumerate(models):
        pruned.append(prune(model, {0: [0, 1, 2, 3], 1: [0, 1]}, {0: [1]}))
        folder = tmp_path / str(number)
        pruned[number].save_pretrained(folder)
        auto_class = "AutoModelForCausalLM" if model.can_generate() else "AutoModelForSequenceClassification"
        target = tmp_path / f"{number}.pt"
        jobs.append((WITHOUT_HF_MWP + LOAD, folder, tmp_path / "inputs.pt", auto_class, target))
    for number, (lines, _) in enumerate(run_fresh(tmp_path, *jobs)):
        model = pruned[number]
        assert lines[0] == type(model).__name__
        if model.can_generate():
            assert lines[1] == str(generated(model, batch))
        loaded_logits = torch.load(tmp_path / f"{number}.pt", weights_only=True)
        torch.testing.assert_close(loaded_logits, logits(model, inputs), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", slow_after(1, ["llama", "qwen3", "gemma3_text", "phi3", "gpt2", "gpt_neox"]))
def test_classifiers_are_cut(name, tmp_path):
    model = classifier(name)
    batch = tiny_causal_batch()
    batch["labels"] = torch.tensor([0, 1, 2, 0])
    heads = {0: [0, 1], 1: [1, 2]}
    with HeadGates(model) as gates:
        gates.close(heads)
        gated = logits(model, batch)
    prune(model, heads).save_pretrained(tmp_path)
    loaded = AutoModelForSequenceClassification.from_pretrained(tmp_path)
    torch.testing.assert_close(logits(loaded, batch), gated, rtol=0, atol=1e-5)


def test_rotary_frequencies_of_half_precision_keep_their_precision(tmp_path):
    tiny_causal().save_pretrained(tmp_path / "whole")
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "whole", dtype=torch.bfloat16)
    cut = prune(model, {0: [0, 1], 1: [0, 1]})
    assert cut.dtype == torch.bfloat16
    cut.save_pretrained(tmp_path / "cut")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "cut", dtype=torch.bfloat16)
    batch = tiny_causal_batch()
    for pruned in (cut, export_dense(cut)):
        assert pruned.model.rotary_emb.inv_freq.dtype == torch.float32
        assert torch.equal(logits(pruned, batch), logits(loaded, batch))


@pytest.mark.parametrize("name", slow_except(CAUSAL_TYPES, "llama", "gpt2"))
def test_scores_of_heads(name):
    model = tiny_causal(name)
    batch = tiny_causal_batch()
    entropy = AttentionEntropy().scores(model, [batch])
    implementation = model.config._attn_implementation
    model.set_attn_implementation("eager")
    with torch.no_grad():
        maps = torch.stack(model(**batch, output_attentions=True).attentions).double()
    model.set_attn_implementation(implementation)
    mask = batch["attention_mask"]
    entropies = -torch.special.xlogy(maps, maps).sum(-1) * mask[:, None]
    torch.testing.assert_close(entropy, entropies.sum((1, 3)) / mask.sum(), rtol=1e-5, atol=1e-6)
    for importance in (CombinedImportance(), GateGradient()):
        assert importance.scores(model, [batch]).isfinite().sum(1).tolist() == [4, 4]
    # A layer without heads has no scores, and does not shift those of others.
    cut = prune(model, {0: [0, 1, 2, 3], 1: [0, 1]})
    scores = AttentionEntropy().scores(cut, [batch])
    assert scores.isfinite().sum(1).tolist() == [0, 2]
    assert CombinedImportance().scores(cut, [batch]).isfinite().sum(1).tolist() == [0, 2]


@pytest.mark.parametrize("name", ["llama", "phi3"])
def test_weight_norm_of_grouped_queries_by_hand(name):
    model = tiny_causal(name)
    for linears in layer_parts(model):
        # All weights of head h are h; keys of group g are 10 (g + 1), values 100 (g + 1).
        projections = {
            "query": torch.arange(4.0).repeat_interleave(8),
            "key": torch.tensor([10.0, 20.0]).repeat_interleave(8),
            "value": torch.tensor([100.0, 200.0]).repeat_interleave(8),
        }
        fused = {"query_key_value": torch.cat(list(projections.values()))}
        for field, values in (projections if name == "llama" else fused).items():
            getattr(linears, field).weight.data = values[:, None].repeat(1, 32)
    assert WeightNorm().scores(model).tolist() == [[110.0, 111.0, 222.0, 223.0]] * 2


def test_weight_norm_of_gpt2_reads_transposed_weights():
    model = tiny_causal("gpt2")
    for linears in layer_parts(model):
        linears.query_key_value.weight.data = torch.arange(4.0).repeat_interleave(8).repeat(3).repeat(32, 1)
    assert WeightNorm().scores(model).tolist() == [[0.0, 3.0, 6.0, 9.0]] * 2


# The lowest of each group are 1 and 2 in the first layer, 0 and 3 in the second.
SCORES = torch.tensor([[0.9, 0.1, 0.3, 0.6], [0.2, 0.5, 0.8, 0.4]])


@pytest.mark.parametrize(
    ("ratio", "options", "expected"),
    [
        # Means of groups: 0.5 and 0.45, 0.35 and 0.6. Of 8 heads, 3 are rounded down to a group.
        (0.25, {}, {1: [0, 1]}),
        (0.4, {}, {1: [0, 1]}),
        (0.5, {}, {0: [2, 3], 1: [0, 1]}),
        # Means of the lowest of each group: 0.2 and 0.3; then 0.75 and 0.65.
        (0.25, {"unit": "query"}, {0: [1, 2]}),
        (0.5, {"unit": "query"}, {0: [1, 2], 1: [0, 3]}),
        (0.75, {"unit": "query", "min_heads_per_layer": 0}, {0: [1, 2], 1: [0, 1, 2, 3]}),
        # A group of each layer.
        (0.5, {"uniform": True}, {0: [2, 3], 1: [0, 1]}),
        (0.7, {"uniform": True}, {0: [2, 3], 1: [0, 1]}),
        (0.4, {"uniform": True}, {}),
        # Heads that were chosen before count.
        (0.5, {"gone": {0: [0, 1]}}, {0: [0, 1], 1: [0, 1]}),
        (0.5, {"gone": {0: [0, 1]}, "uniform": True}, {0: [0, 1], 1: [0, 1]}),
        (0.5, {"gone": {0: [0, 3]}, "unit": "query"}, {0: [0, 3], 1: [0, 3]}),
    ],
)
def test_heads_that_share_keys_are_chosen_together(ratio, options, expected):
    groups = [[0, 0, 1, 1]] * 2
    assert choose_heads(SCORES, ratio, groups=groups, **options) == expected


def test_any_query_of_a_single_key_is_chosen():
    groups = [[0, 0, 0, 0]] * 2
    assert choose_heads(SCORES, 0.4, groups=groups, unit="query") == {0: [1, 2], 1: [0]}
    with pytest.raises(ValueError, match=r"4 heads.* only 0 .*`unit='group'`"):
        choose_heads(SCORES, 0.5, groups=groups)
    with pytest.raises(ValueError, match="'head'"):
        choose_heads(SCORES, 0.25, groups=groups, unit="head")
    for wrong_groups in ([], [[0, 0, 1, 1]], [[0, 0, 1], [0, 0, 1, 1]]):
        with pytest.raises(ValueError, match=r"\[4, 4\] heads.*`head_groups\(model\)`"):
            choose_heads(SCORES, 0.25, groups=wrong_groups)
    with pytest.raises(ValueError, match=r"\[4, 2\] heads.*`uniform=False`"):
        choose_heads(torch.tensor([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, torch.nan, torch.nan]]), 0.25, uniform=True)


@pytest.mark.parametrize("uniform", slow_after(1, [False, True]))
@pytest.mark.parametrize("unit", ["group", "query"])
@pytest.mark.parametrize(("heads", "groups"), slow_except([(4, 2), (6, 2), (6, 3), (4, 1), (4, 4)], (6, 3)))
def test_any_choice_can_be_cut(heads, groups, unit, uniform):
    model = tiny_causal(num_attention_heads=heads, num_key_value_heads=groups, hidden_size=24)
    batch = tiny_causal_batch()
    for seed, ratio in enumerate((0.3, 0.5, 0.7)):
        scores = UnitScores.random(model, seed).heads
        options = {"groups": head_groups(model), "unit": unit, "uniform": uniform, "min_heads_per_layer": 0}
        chosen = choose_heads(scores, ratio, **options)
        cut = prune(model, chosen)
        with HeadGates(model) as gates:
            gates.close(chosen)
            gated = logits(model, batch)
        torch.testing.assert_close(logits(cut, batch), gated, rtol=0, atol=1e-5)
        if uniform:
            assert len(set(cut.config.heads_per_layer)) == 1
        # Less than the heads that go together are missing.
        num_missing = int(ratio * 2 * heads) - sum(map(len, chosen.values()))
        together = {"group": heads // groups, "query": 1 if groups in (1, heads) else groups}[unit]
        assert 0 <= num_missing < together * (2 if uniform else 1)


def test_groups_that_would_differ_raise_before_work():
    model = tiny_causal()
    with pytest.raises(ValueError, match=r"Layer 1 would keep \[1, 2\] heads.*`groups=head_groups"):
        prune(model, {1: [0]})
    HeadGates(model).close({1: [0]})
    with pytest.raises(ValueError, match=r"Layer 1 would keep \[1, 2\] heads"):
        prune(model)
    assert prune(model, {1: [2]}).config.heads_per_layer == [4, 2]


def test_heads_of_groups_by_hand():
    model = tiny_causal(num_attention_heads=8, num_key_value_heads=2)
    assert heads_of_groups(model, {1: [1], 0: [1, 0]}) == {1: [4, 5, 6, 7], 0: [0, 1, 2, 3, 4, 5, 6, 7]}
    assert head_groups(model) == [[0, 0, 0, 0, 1, 1, 1, 1]] * 2
    with pytest.raises(ValueError, match=r"Layer 0\b.* 2\b"):
        heads_of_groups(model, {0: [2]})


def causal_trainer(folder, callback, name="llama", **fields):
    examples = examples_of(tiny_causal_batch(16))
    args = arguments(folder, TrainingArguments, **fields)
    return Trainer(tiny_causal(name), args, train_dataset=examples, callbacks=[callback])


@pytest.mark.parametrize("name", slow_except(CAUSAL_TYPES, "gpt_neox"))
def test_heads_are_pruned_while_it_trains(name, tmp_path):
    callback = HeadPruningCallback(max_ratio=0.5, num_pruning_steps=2, calibration_examples=4)
    trainer = causal_trainer(tmp_path, callback, name, max_steps=2)
    trainer.train()
    trainer.save_model()
    smaller = load_like(trainer.model, tmp_path)
    assert sum(smaller.config.heads_per_layer) == 4
    batch = tiny_causal_batch()
    torch.testing.assert_close(logits(smaller, batch), logits(trainer.model.eval(), batch), rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("phi3", {"unit": "query", "uniform": True}),
        *slow_except(
            [("llama", {}), ("gemma3_text", {"unit": "query"}), ("gpt2", {}), ("gpt_neox", {"uniform": True})]
        ),
    ],
)
def test_slicing_learns_as_gates_do_and_resumes(name, options, tmp_path):
    fields = {"max_steps": 4, "save_strategy": "steps", "save_steps": 3, "learning_rate": 1e-3}
    runs = {}
    for run in ("gated", "sliced", "interrupted", "resumed"):
        mode = "mask" if run == "gated" else "slice"
        callback = HeadPruningCallback(
            max_ratio=0.5, num_pruning_steps=2, calibration_examples=4, mode=mode, **options
        )
        trainer = causal_trainer(tmp_path / run.replace("interrupted", "resumed"), callback, name, **fields)
        if run == "interrupted":
            trainer.add_callback(StopAt(3))
        trainer.train(resume_from_checkpoint=run == "resumed")
        runs[run] = trainer, callback
    sliced, callback = runs["sliced"]
    gated, gated_callback = runs["gated"]
    events = [event["heads"] for event in callback.log]
    assert events == [event["heads"] for event in gated_callback.log]
    assert sum(map(len, callback.closed.values())) == 4
    if options.get("uniform"):
        assert [len(heads) for heads in callback.closed.values()] == [2, 2]
    assert losses(sliced) == pytest.approx(losses(gated), abs=1e-5)
    resumed, resumed_callback = runs["resumed"]
    assert resumed_callback.log == callback.log
    assert_same_weights(sliced.model, resumed.model)
    # Checkpoints of sliced models load.
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "sliced" / "checkpoint-4")
    batch = tiny_causal_batch()
    torch.testing.assert_close(logits(loaded, batch), logits(sliced.model.eval(), batch), rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "changes", "message"),
    [
        # A group of two of eight heads, in both layers.
        ({"max_ratio": 0.2}, {}, r"0\.2 is less than 2 of the 8 heads.*at least 0\.25"),
        ({"max_ratio": 0.4, "uniform": True}, {}, r"0\.4 is less than 4 of the 8 heads.*at least 0\.5"),
        ({"max_ratio": 0.5}, {"num_key_value_heads": 1}, "only 0 .*other unit"),
    ],
)
def test_ratios_that_groups_cannot_give_raise_before_training(options, changes, message, tmp_path):
    callback = HeadPruningCallback(calibration_examples=4, **options)
    args = arguments(tmp_path, TrainingArguments, max_steps=1)
    examples = examples_of(tiny_causal_batch(4))
    trainer = Trainer(tiny_causal(**changes), args, train_dataset=examples, callbacks=[callback])
    with pytest.raises(ValueError, match=message):
        trainer.train()
    assert trainer.state.global_step == 0
    with pytest.raises(ValueError, match="'head'"):
        HeadPruningCallback(unit="head")


@pytest.mark.parametrize("name", slow_except(["llama", "gemma3_text", "phi3", "gpt2", "gpt_neox"], "llama", "gpt2"))
def test_knowledgeable_scores_per_example_equal_those_of_single_rows(name):
    teacher = tiny_causal(name).double()
    student = tiny_causal(name, seed=1).double()
    batch = tiny_causal_batch(3)
    per_example = measure_scores(teacher, [batch], student, per_example=True)
    loop = measure_scores(teacher, rows_of([batch]), student)
    torch.testing.assert_close(score_tables(per_example), score_tables(loop), rtol=1e-8, atol=1e-10)
    assert (per_example.friendliness.heads > 0).all()


@pytest.mark.parametrize("uniform", slow_after(1, [False, True]))
@pytest.mark.parametrize("unit", ["group", "query"])
@pytest.mark.parametrize("name", slow_except(["qwen3", "phi3", "gpt2"], "phi3"))
def test_sparse_teacher_equals_masked_teacher(name, unit, uniform, tmp_path):
    teacher = tiny_causal(name)
    batch = tiny_causal_batch()
    measured = measure_scores(teacher, [batch], tiny_causal(name, seed=1))
    measured.save(tmp_path)
    scores = type(measured).load(tmp_path).combined()
    sparsifier = UnitSparsifier(unit=unit, uniform=uniform)
    sparsifier.check(teacher, scores, 0.5)
    sparse = sparsifier.sparse(teacher, scores, 0.5)
    assert sum(sparse.config.heads_per_layer) == 4 and sum(sparse.config.neurons_per_layer) == 48
    if uniform:
        assert sparse.config.heads_per_layer == [2, 2] and sparse.config.neurons_per_layer == [24, 24]
    removed = RemovedUnits.lowest(scores, 0.5, unit=unit, uniform=uniform)
    masked = mask_teacher(teacher, removed)
    torch.testing.assert_close(logits(sparse, batch), logits(masked, batch), rtol=0, atol=1e-5)


def test_lowest_groups_are_removed_by_their_mean_scores():
    groups = torch.tensor([[0, 0, 1, 1]] * 2)
    scores = UnitScores(SCORES.double(), torch.arange(8.0).view(2, 4), groups)
    assert RemovedUnits.lowest(scores, 0.25).heads == {1: [0, 1]}
    assert RemovedUnits.lowest(scores, 0.25, unit="query").heads == {0: [1, 2]}
    uniform = RemovedUnits.lowest(scores, 0.5, uniform=True)
    assert uniform == RemovedUnits({0: [2, 3], 1: [0, 1]}, {0: [0, 1], 1: [0, 1]})
    with pytest.raises(UsageError, match=r"\[2, 1\] heads.*`uniform=False`"):
        uneven = torch.tensor([[1.0, 2.0], [1.0, torch.nan]])
        RemovedUnits.lowest(UnitScores(uneven, uneven), 0.5, uniform=True)


@pytest.mark.parametrize("unit", ["group", "query"])
@pytest.mark.parametrize("name", slow_except(CAUSAL_TYPES, "qwen3"))
def test_evenly_cut_model_becomes_a_stock_model(name, unit, tmp_path):
    model = tiny_causal(name)
    removed = RemovedUnits.lowest(UnitScores.random(model), 0.5, unit=unit, uniform=True)
    cut = cut_teacher(model, removed)
    dense = export_dense(cut)
    assert type(dense) is type(model) and type(dense.config) is type(model.config)
    dense.save_pretrained(tmp_path)
    assert not list(tmp_path.glob("*.py"))
    loaded = load_like(model, tmp_path, type(model))
    batch = tiny_causal_batch(padding_side="left")
    torch.testing.assert_close(logits(loaded, batch), logits(cut, batch), rtol=0, atol=1e-5)
    assert generated(loaded, batch) == generated(cut, batch)
    neurons = loaded.config.n_inner if name == "gpt2" else loaded.config.intermediate_size
    assert neurons == 24
    if name in GROUPED:
        num_groups = {"group": 1, "query": 2}[unit]
        sizes = (loaded.config.num_attention_heads, loaded.config.num_key_value_heads, loaded.config.head_dim)
        assert sizes == (2, num_groups, 8)
        assert parameter_count(loaded) == parameter_count(cut)
    else:
        # The width of a head is derived from the number of heads.
        assert loaded.config.num_attention_heads == 4


@pytest.mark.slow
def test_stock_config_that_needs_another_number_of_heads_gets_zeros():
    # A Llama of width 64 may have 8 or 16 heads, but not 6 or 12.
    batch = tiny_causal_batch()
    for num_heads, num_groups, heads, sizes in (
        (8, 4, {0: [0, 1], 1: [6, 7]}, {"llama": (8, 4), "qwen3": (6, 3)}),
        (8, 2, {0: [1, 6], 1: [0, 4]}, {"llama": (8, 2), "qwen3": (6, 2)}),
        (16, 2, {0: [1, 3, 8, 9], 1: [0, 1, 10, 15]}, {"llama": (16, 2), "phi3": (12, 2)}),
        (4, 1, {0: [3], 1: [0]}, {"gemma3_text": (4, 1), "mistral": (3, 1)}),
    ):
        changes = {"num_attention_heads": num_heads, "num_key_value_heads": num_groups, "hidden_size": 64}
        for name, expected in sizes.items():
            cut = prune(tiny_causal(name, **changes), heads)
            dense = export_dense(cut)
            assert (dense.config.num_attention_heads, dense.config.num_key_value_heads) == expected
            torch.testing.assert_close(logits(dense, batch), logits(cut, batch), rtol=0, atol=1e-5)


def test_closed_gates_and_classifiers_are_exported():
    model = classifier("llama")
    HeadGates(model).close({0: [0, 1], 1: [2, 3]})
    batch = tiny_causal_batch() | {"labels": torch.zeros(4, dtype=torch.long)}
    dense = export_dense(model)
    assert type(dense) is LlamaForSequenceClassification and dense.config.num_attention_heads == 2
    torch.testing.assert_close(logits(dense, batch), logits(model, batch), rtol=0, atol=1e-5)
    encoder = Gemma2Model(tiny_causal("gemma2").config)
    assert type(export_dense(prune(encoder, {0: range(4), 1: range(4)}))) is Gemma2Model


@pytest.mark.parametrize(
    ("heads", "neurons", "message"),
    [
        ({0: [0, 1]}, {}, r"num_heads=\[2, 4\].*`uniform=True`"),
        ({0: [0, 1], 1: [0, 2]}, {}, r"num_groups=\[1, 2\].*`uniform=True`"),
        ({}, {1: [0]}, r"num_neurons=\[48, 47\].*`uniform=True`"),
    ],
)
def test_unevenly_cut_models_raise(heads, neurons, message):
    with pytest.raises(ValueError, match=message):
        export_dense(prune(tiny_causal(), heads, neurons))
