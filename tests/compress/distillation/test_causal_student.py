"""Students of causal language models: copied layers, slices and main directions."""

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, LlamaForSequenceClassification
from transformers.pytorch_utils import Conv1D

from hf_mwp.compress.distillation.causal_copy import rotated_features
from hf_mwp.compress.distillation.causal_layouts import LAYOUTS, CausalSizes
from hf_mwp.compress.distillation.causal_student import make_causal_student
from hf_mwp.compress.distillation.seq2seq_student import make_seq2seq_student
from tests.slow_parameters import slow_after, slow_except
from tests.tiny import tiny_classifier
from tests.tiny_causal import CAUSAL_TYPES, tiny_causal, tiny_causal_batch


# Windows of four tokens in every second layer.
WINDOWS = ["sliding_attention", "full_attention", "sliding_attention", "full_attention"]
TYPE_FIELDS = {
    "qwen2": {"layer_types": WINDOWS, "use_sliding_window": True, "sliding_window": 4},
    "qwen3": {"layer_types": WINDOWS, "use_sliding_window": True, "sliding_window": 4},
    "gemma2": {"layer_types": WINDOWS},
    "gemma3_text": {"layer_types": WINDOWS},
}


def tiny_teacher(model_type="llama", **changes):
    """A teacher of four layers in double precision."""
    fields = {"num_hidden_layers": 4} | TYPE_FIELDS.get(model_type, {}) | changes
    return tiny_causal(model_type, **fields).double()


def inputs():
    """Token ids without padding: with masks, eager attention in double precision is NaN in windows of padding."""
    input_ids = torch.randint(5, 30, (4, 12), generator=torch.Generator().manual_seed(0))
    return {"input_ids": input_ids, "attention_mask": torch.ones_like(input_ids)}


@torch.no_grad()
def logits_of(model):
    return model(**inputs()).logits


def layers_of(model):
    return getattr(model.base_model, LAYOUTS[model.config.model_type].layers)


@pytest.mark.parametrize("init", ["slice", "project"])
@pytest.mark.parametrize("model_type", slow_except(CAUSAL_TYPES, "llama", "gpt2"))
def test_all_layers_at_the_same_width_are_the_teacher(model_type, init):
    teacher = tiny_teacher(model_type).float()
    student = make_causal_student(teacher, 4, init=init)
    assert type(student) is type(teacher)
    assert student.config.to_dict() == teacher.config.to_dict()
    assert not student.training
    weights = teacher.state_dict()
    for name, weight in student.state_dict().items():
        assert torch.equal(weight, weights[name]), name
        assert weight.data_ptr() != weights[name].data_ptr()
    assert torch.equal(logits_of(student), logits_of(teacher))


def without_layers(model, layers):
    """Let layers of a model return their inputs."""
    for layer in layers:

        def bypass(module, args, kwargs, output):
            states = args[0] if args else kwargs["hidden_states"]
            return (states, *output[1:]) if isinstance(output, tuple) else states

        layers_of(model)[layer].register_forward_hook(bypass, with_kwargs=True)
    return model


@pytest.mark.parametrize(("layers", "copied_layers"), [(2, [1, 3]), ([0, 1, 3], [0, 1, 3]), ([2], [2])])
@pytest.mark.parametrize("model_type", slow_except(CAUSAL_TYPES, "llama", "gpt2"))
def test_copied_layers_are_the_teacher_without_the_others(model_type, layers, copied_layers):
    teacher = tiny_teacher(model_type)
    student = make_causal_student(teacher, layers)
    assert student.config.num_hidden_layers == len(copied_layers)
    if model_type in TYPE_FIELDS:
        assert student.config.layer_types == [WINDOWS[layer] for layer in copied_layers]
    expected = logits_of(without_layers(teacher, {0, 1, 2, 3} - {*copied_layers}))
    assert torch.equal(logits_of(student), expected)


def test_layers_may_be_in_any_order():
    teacher = tiny_teacher("gemma2")
    student = make_causal_student(teacher, [3, 0])
    assert student.config.layer_types == [WINDOWS[3], WINDOWS[0]]
    for student_layer, layer in zip(layers_of(student), [3, 0], strict=True):
        weights = layers_of(teacher)[layer].state_dict()
        for name, weight in student_layer.state_dict().items():
            assert torch.equal(weight, weights[name])


@pytest.mark.parametrize("init", slow_after(1, ["slice", "project", "random"]))
@pytest.mark.parametrize("model_type", slow_except(CAUSAL_TYPES, "llama", "gpt2"))
def test_narrow_students_train_save_and_generate(model_type, init, tmp_path):
    teacher = tiny_teacher(model_type).float()
    teacher.generation_config.update(max_new_tokens=5, repetition_penalty=1.5)
    student = make_causal_student(teacher, 2, hidden_size=16, init=init)
    config = student.config
    assert (config.hidden_size, config.num_attention_heads) == (16, 2)
    assert getattr(config, "num_key_value_heads", 1) == 1
    assert (getattr(config, "n_inner", None) or config.intermediate_size) == 24
    assert student.get_input_embeddings().weight.shape == (teacher.config.vocab_size, 16)
    assert (config.pad_token_id, config.bos_token_id, config.eos_token_id) == (0, 2, 3)
    batch = tiny_causal_batch()
    student.train()
    student(**batch).loss.backward()
    assert all(parameter.grad.isfinite().all() for parameter in student.parameters())
    student.eval()
    student.save_pretrained(tmp_path)
    # Transformers 5.17 loads Gemma 2 with another implementation.
    attention = student.config._attn_implementation
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation=attention)
    assert type(loaded) is type(teacher)
    assert torch.equal(logits_of(loaded), logits_of(student))
    generated = loaded.generate(**inputs(), do_sample=False)
    assert torch.equal(generated, student.generate(**inputs(), do_sample=False))
    assert generated.shape[1] == inputs()["input_ids"].shape[1] + 5
    assert loaded.generation_config.repetition_penalty == 1.5


@pytest.mark.parametrize("is_tied", [True, False])
@pytest.mark.parametrize("init", slow_after(1, ["slice", "project", "random"]))
@pytest.mark.parametrize("model_type", ["llama", "gemma3_text", "gpt2"])
def test_embeddings_are_tied_if_the_teachers_are(model_type, init, is_tied):
    teacher = tiny_teacher(model_type, tie_word_embeddings=is_tied)
    student = make_causal_student(teacher, 2, hidden_size=16, init=init)
    assert (student.get_input_embeddings().weight is student.get_output_embeddings().weight) == is_tied


def test_slices_are_the_leading_weights():
    teacher = tiny_teacher("llama")
    student = make_causal_student(teacher, [2], hidden_size=16)
    weights = teacher.state_dict()
    for name, weight in student.state_dict().items():
        source = weights[name.replace("layers.0.", "layers.2.")]
        assert torch.equal(weight, source[tuple(slice(size) for size in weight.shape)]), name


def test_parts_of_fused_weights_are_sliced_apart():
    fused = tiny_teacher("phi3").model.layers[3]
    student = make_causal_student(tiny_teacher("phi3"), 1, hidden_size=16).model.layers[0]
    queries, keys, values = fused.self_attn.qkv_proj.weight[:, :16].split([32, 16, 16])
    expected = torch.cat([queries[:16], keys[:8], values[:8]])
    assert torch.equal(student.self_attn.qkv_proj.weight, expected)
    gates, neurons = fused.mlp.gate_up_proj.weight[:, :16].chunk(2)
    assert torch.equal(student.mlp.gate_up_proj.weight, torch.cat([gates[:24], neurons[:24]]))

    fused = tiny_teacher("gpt2").transformer.h[3].attn.c_attn
    student = make_causal_student(tiny_teacher("gpt2"), 1, hidden_size=16).transformer.h[0].attn.c_attn
    assert torch.equal(student.weight, torch.cat([part[:16, :16] for part in fused.weight.split(32, 1)], 1))
    assert torch.equal(student.bias, torch.cat([part[:16] for part in fused.bias.split(32)]))

    teacher = tiny_teacher("gpt_neox").gpt_neox.layers[3].attention
    student = make_causal_student(tiny_teacher("gpt_neox"), 1, hidden_size=16).gpt_neox.layers[0].attention
    # Queries, keys and values of the first two of four heads.
    assert torch.equal(student.query_key_value.weight, teacher.query_key_value.weight[:48, :16])
    assert torch.equal(student.query_key_value.bias, teacher.query_key_value.bias[:48])
    assert torch.equal(student.dense.weight, teacher.dense.weight[:16, :16])


@pytest.mark.parametrize(
    ("sizes", "fraction", "features"),
    [
        ((8, 8), 1.0, [0, 1, 2, 3, 4, 5, 6, 7]),
        # Pairs are (0, 4), (1, 5), (2, 6), (3, 7): every second keeps its frequency.
        ((8, 4), 1.0, [0, 2, 4, 6]),
        ((16, 8), 0.25, [0, 2, 4, 5, 6, 7, 8, 9]),
        ((8, 4), 0.0, [0, 1, 2, 3]),
    ],
)
def test_smaller_heads_keep_pairs_of_rotated_features(sizes, fraction, features):
    assert rotated_features(*sizes, fraction).tolist() == features


@torch.no_grad()
def test_smaller_heads_keep_their_scores():
    teacher = tiny_teacher("llama")
    # Only the features that smaller heads keep are used. Scores are divided by the root of a head's size.
    for layer in teacher.model.layers:
        layer.self_attn.q_proj.weight.view(-1, 8, 32)[:, [1, 3, 5, 7]] = 0
        layer.self_attn.v_proj.weight.view(-1, 8, 32)[:, 4:] = 0
    student = make_causal_student(teacher, 4, head_dim=4)
    for layer in student.model.layers:
        assert layer.self_attn.head_dim == 4
        layer.self_attn.q_proj.weight *= 0.5**0.5
    assert torch.allclose(logits_of(student), logits_of(teacher))


def heads_and_neurons(layout, layer):
    """The columns of the output projections of heads and neurons."""
    columns = []
    for name in (layout.contexts, layout.down):
        module = layer.get_submodule(name)
        columns.append(module.weight.T if isinstance(module, Conv1D) else module.weight)
    return columns


@torch.no_grad()
def narrow_teacher(model_type, width=16, uniform_gains=False, **changes):
    """
    A teacher of width 32 whose hidden states lie in `width` directions, in `width - 1` if norms subtract a mean. Only
    the heads 1 and 3 and every second neuron have outputs.
    """
    teacher = tiny_teacher(model_type, **changes)
    layout = LAYOUTS[model_type]
    directions = torch.randn(32, width - layout.centres, dtype=torch.float64)
    if layout.centres:
        directions -= directions.mean(0)
    directions = torch.linalg.qr(directions).Q
    projection = directions @ directions.T
    base = teacher.base_model
    for name in layout.embeddings:
        table = getattr(base, name).weight
        table.copy_(table @ projection)
    for layer in layers_of(teacher):
        outputs, neurons = heads_and_neurons(layout, layer)
        for head in (0, 2):
            outputs[:, 8 * head : 8 * head + 8] = 0
        neurons[:, ::2] = 0
        for name, (_, norm) in layout.writers.items():
            module = layer.get_submodule(name)
            weight = module.weight.T if isinstance(module, Conv1D) else module.weight
            weight.copy_(projection @ weight)
            if getattr(module, "bias", None) is not None:
                module.bias.copy_(projection @ module.bias)
            if norm is not None:
                layer.get_submodule(norm).weight.fill_(0.3)
    norm = base.get_submodule(layout.final_norm)
    if uniform_gains:
        norm.weight.fill_(0.8)
    norms = [norm]
    for layer in layers_of(teacher):
        norms += [layer.get_submodule(name) for name in layout.readers]
    for norm in norms:
        # Layers without a bias see the bias of a norm only through their weights.
        if getattr(norm, "bias", None) is not None:
            norm.bias.copy_(norm.weight * (projection @ norm.bias))
    return teacher


def narrow_sizes(layout):
    """Sizes of a student with the heads and neurons that have outputs."""
    sizes = {"num_attention_heads": 2, "intermediate_size": 24}
    if not layout.divides_width:
        sizes["num_key_value_heads"] = 2
    return sizes


@pytest.mark.parametrize("from_sample", slow_after(1, [True, False]))
@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        *slow_except([(model_type, {}) for model_type in CAUSAL_TYPES], ("llama", {}), ("gpt2", {}), ("gpt_neox", {})),
        *slow_after(
            1,
            [
                ("gemma3_text", {"tie_word_embeddings": False}),
                ("llama", {"tie_word_embeddings": True}),
                ("llama", {"attention_bias": True, "mlp_bias": True}),
                ("gpt2", {"tie_word_embeddings": False}),
                ("gpt_neox", {"use_parallel_residual": False}),
                ("gpt_neox", {"attention_bias": False}),
            ],
        ),
    ],
)
def test_main_directions_preserve_what_lies_in_them(model_type, changes, from_sample):
    layout = LAYOUTS[model_type]
    is_tied = changes.get("tie_word_embeddings", model_type in ("gpt2", "gemma2", "gemma3_text"))
    teacher = narrow_teacher(model_type, uniform_gains=layout.centres and is_tied, **changes)
    sample = [inputs()] if from_sample else None
    student = make_causal_student(teacher, 4, hidden_size=16, init="project", sample=sample, **narrow_sizes(layout))
    assert student.config.hidden_size == 16
    # Norms compute in single precision.
    assert torch.allclose(logits_of(student), logits_of(teacher), atol=1e-5)
    sliced = make_causal_student(teacher, 4, hidden_size=16, **narrow_sizes(layout))
    assert not torch.allclose(logits_of(sliced), logits_of(teacher), atol=0.1)


def test_main_directions_are_closer_than_slices_if_states_nearly_lie_in_them():
    teacher = narrow_teacher("qwen3")
    with torch.no_grad():
        for parameter in teacher.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.003)
    distances = {}
    for init in ("slice", "project"):
        student = make_causal_student(teacher, 4, hidden_size=16, init=init, **narrow_sizes(LAYOUTS["qwen3"]))
        distances[init] = (logits_of(student) - logits_of(teacher)).norm() / logits_of(teacher).norm()
    assert distances["project"] < 0.3 < 0.9 < distances["slice"]


def test_the_type_of_weights_remains():
    teacher = tiny_causal("gemma3_text", num_hidden_layers=3, layer_types=None).bfloat16()
    student = make_causal_student(teacher, 3, init="project")
    assert torch.equal(student.model.norm.weight, teacher.model.norm.weight)
    for init in ("slice", "project", "random"):
        student = make_causal_student(teacher, 2, hidden_size=16, init=init)
        assert {parameter.dtype for parameter in student.parameters()} == {torch.bfloat16}
        assert logits_of(student).isfinite().all()


@pytest.mark.parametrize(
    ("model_type", "options", "sizes"),
    slow_after(
        7,
        [
            # Of four queries in two groups, one group remains.
            ("llama", {"hidden_size": 24}, (2, 1, 8, 36)),
            ("llama", {"hidden_size": 10}, (2, 1, 8, 15)),
            ("llama", {"hidden_size": 16, "num_attention_heads": 4}, (4, 2, 8, 24)),
            ("llama", {"num_key_value_heads": 1}, (2, 1, 8, 48)),
            ("llama", {"num_attention_heads": 2, "num_key_value_heads": 2}, (2, 2, 8, 48)),
            ("llama", {"head_dim": 4, "intermediate_size": 7}, (4, 2, 4, 7)),
            ("gemma3_text", {"hidden_size": 24}, (2, 1, 8, 36)),
            ("phi3", {"hidden_size": 16}, (2, 1, 8, 24)),
            ("gpt2", {"hidden_size": 24}, (3, 3, 8, 36)),
            ("gpt2", {"hidden_size": 16, "num_attention_heads": 4}, (4, 4, 4, 24)),
            ("gpt_neox", {"hidden_size": 8}, (1, 1, 8, 12)),
        ],
    ),
)
def test_heads_and_neurons_shrink_with_the_width(model_type, options, sizes):
    student = make_causal_student(tiny_teacher(model_type), 2, **options)
    layout = LAYOUTS[model_type]
    found = CausalSizes.of(student.config, layout)
    assert (
        found.num_attention_heads,
        found.num_key_value_heads,
        found.head_dim,
        found.intermediate_size,
    ) == sizes
    assert logits_of(student).isfinite().all()


def test_a_single_group_loses_queries():
    teacher = tiny_teacher("gemma3_text", num_key_value_heads=1)
    config = make_causal_student(teacher, 2, hidden_size=24).config
    assert (config.num_attention_heads, config.num_key_value_heads) == (3, 1)


@pytest.mark.parametrize(
    ("model_type", "options", "message"),
    [
        ("llama", {"layers": 5}, r"\b5\b.*\b4\b"),
        ("llama", {"layers": [0, 4]}, r"`layers`.* 3\b.*\[0, 4\]"),
        ("llama", {"layers": []}, r"`layers`.*\[\]"),
        ("llama", {"layers": "0,2"}, "`layers`.*whole number.*'0,2'"),
        ("llama", {"hidden_size": 33}, r"`hidden_size`.*32.*33"),
        ("llama", {"hidden_size": 0}, r"`hidden_size`.*at least 1.*0"),
        ("llama", {"hidden_size": 16.0}, r"`hidden_size`.*whole number"),
        ("llama", {"hidden_size": 15}, "`hidden_size` of 15.*groups of 2"),
        ("llama", {"num_attention_heads": 8}, "`num_attention_heads`.*4.*8"),
        ("llama", {"num_attention_heads": 3}, "1 `num_key_value_heads`.* 3 `num_attention_heads`.*at most 2"),
        ("llama", {"num_attention_heads": 3, "num_key_value_heads": 2}, "2 `num_key_value_heads`.*equally many"),
        ("llama", {"hidden_size": 18, "num_attention_heads": 4}, "4 heads.*18"),
        ("llama", {"head_dim": 5}, "`head_dim` of 5.*pairs"),
        ("llama", {"intermediate_size": 49}, "`intermediate_size`.*48.*49"),
        ("gpt2", {"hidden_size": 12}, "multiple of 8.*12"),
        ("gpt2", {"num_attention_heads": 2}, "2 heads.*16 features.*8"),
        ("gpt2", {"head_dim": 4}, "`head_dim`.* 8, got 4"),
        ("gpt2", {"num_key_value_heads": 2}, "own keys.*`num_attention_heads`"),
        ("gpt_neox", {"hidden_size": 16, "num_attention_heads": 4}, "`head_dim` of 4.*pairs"),
        ("llama", {"init": "copy"}, "`init`.*'copy'"),
        ("llama", {"sample": []}, "`sample`.*project"),
        ("llama", {"sample": [], "init": "project", "hidden_size": 16}, "`sample` has no tokens"),
        ("gpt2", {"teacher": {"scale_attn_by_inverse_layer_idx": True}}, "scale_attn_by_inverse_layer_idx"),
    ],
)
def test_wrong_sizes_are_named(model_type, options, message):
    options = {"layers": 2} | options
    teacher = tiny_teacher(model_type, **options.pop("teacher", {}))
    with pytest.raises((ValueError, TypeError), match=message):
        make_causal_student(teacher, **options)


# peft reads it; transformers will remove it.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_models_with_adapters_are_refused():
    peft = pytest.importorskip("peft")
    config = peft.LoraConfig(target_modules=["q_proj"], task_type="CAUSAL_LM")
    with pytest.raises(ValueError, match="merge_and_unload"):
        make_causal_student(peft.get_peft_model(tiny_teacher(), config), 1)


def test_models_with_adapters_of_transformers_are_refused():
    peft = pytest.importorskip("peft")
    teacher = tiny_teacher()
    try:
        teacher.add_adapter(peft.LoraConfig(target_modules=["q_proj"], task_type="CAUSAL_LM"))
    except ValueError as error:
        # Transformers 5.24 needs PEFT 0.22.
        pytest.skip(str(error))
    with pytest.raises(ValueError, match="merge_and_unload"):
        make_causal_student(teacher, 1)


def test_other_models_are_refused():
    with pytest.raises(ValueError, match="BertForSequenceClassification.*'bert'.*llama"):
        make_causal_student(tiny_classifier(), 1)
    teacher = tiny_teacher()
    with pytest.raises(ValueError, match="LlamaForSequenceClassification"):
        make_causal_student(LlamaForSequenceClassification(teacher.config), 1)
    with pytest.raises(ValueError, match="LlamaModel"):
        make_causal_student(teacher.model, 1)
    with pytest.raises(ValueError, match="LlamaForCausalLM.*BART"):
        make_seq2seq_student(teacher, 1, 1)
    with pytest.raises(TypeError, match="`teacher` must be a `PreTrainedModel`, got 'gpt2'"):
        make_causal_student("gpt2", 1)
    with pytest.raises(TypeError, match="`teacher`"):
        make_causal_student(nn.DataParallel(teacher), 1)
    teacher.config.quantization_config = {"quant_method": "fp8"}
    with pytest.raises(ValueError, match="quantised"):
        make_causal_student(teacher, 1)
