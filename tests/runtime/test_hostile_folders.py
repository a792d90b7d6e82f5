"""Damaged folders of a solver: loading them raises the same error in PyTorch and in the runtime without PyTorch."""

import json
import shutil

import pytest
import torch
from transformers import pipeline

from hf_mwp.commands.building import load_solver as load_torch_solver
from hf_mwp.runtime import load_solver
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.plausibility import PlausibilityReranker
from hf_mwp.runtime.solver_folder import decoder_shapes, encoder_shapes, read_config
from hf_mwp.solver.models.mwp_solver import SolverFolderError
from hf_mwp.utils.usage_error import UsageError
from tests.damage import change_fields, change_weights, cut, drop_weights
from tests.slow_parameters import slow_after
from tests.tiny import tiny_processor, tiny_solver


TEXT = "小明有4个苹果，又买了2个，一共有几个？"
CONFIG = "config.json"
PROCESSOR = "mwp_processor.json"
WEIGHTS = "model.safetensors"
SEARCH = "generation_config.json"
RERANKER = "plausibility.json"
TOKENIZER = "tokenizer.json"
DENSE = "encoder.encoder.layer.0.output.dense.weight"


@pytest.fixture(scope="session")
def whole_folder(solver_folder, tmp_path_factory):
    """A solver with all files that a solver may have."""
    folder = shutil.copytree(solver_folder, tmp_path_factory.mktemp("whole") / "solver")
    PlausibilityReranker.from_pretrained("zh").save_pretrained(folder)
    DefaultSearch(num_beams=8, rerank=True).save_pretrained(folder)
    return folder


@pytest.fixture
def folder(whole_folder, tmp_path):
    """A copy of the solver, to be damaged."""
    return shutil.copytree(whole_folder, tmp_path / "solver")


def set_field(path, name, value):
    """Set a field of a JSON file, whose name has a dot after the name of a section; `...` removes the field."""
    content = json.loads(path.read_text("utf-8"))
    section, _, field = name.rpartition(".")
    fields = content[section] if section else content
    if value is ...:
        del fields[field]
    else:
        fields[field] = value
    path.write_text(json.dumps(content), "utf-8")


def load_from_folder(folder):
    return pipeline("math-word-problem", model=folder, device="cpu")


def load_from_model(folder):
    model, processor = load_torch_solver(folder)
    return pipeline("math-word-problem", model=model, processor=processor, device="cpu")


def error_of(load, folder):
    with pytest.raises((UsageError, SolverFolderError)) as error:
        load(str(folder))
    return str(error.value)


def assert_refused(folder, *words):
    message = error_of(load_solver, folder)
    assert error_of(load_from_model, folder) == message
    for word in (str(folder), *words):
        assert word in message


@pytest.mark.parametrize(
    "content", slow_after(1, ["{", "[" * 100_000, "3"]), ids=["no JSON", "nested deeply", "number"]
)
@pytest.mark.parametrize("file", [CONFIG, PROCESSOR, SEARCH, RERANKER, TOKENIZER])
def test_damaged_json_file_is_named(folder, file, content):
    (folder / file).write_text(content, "utf-8")
    assert_refused(folder, file)


# File, field and a value that it must not have; the message names the field.
WRONG_FIELDS = [
    (CONFIG, "encoder_config", ...),
    (CONFIG, "decoder_config", 3),
    (CONFIG, "bottleneck_layers", "12"),
    (CONFIG, "bottleneck_layers", [1]),  # without a size
    (CONFIG, "encoder_config.num_hidden_layers", -1),
    (CONFIG, "encoder_config.num_hidden_layers", 10**9),
    (CONFIG, "encoder_config.num_hidden_layers", True),
    (CONFIG, "encoder_config.num_attention_heads", "2"),
    (CONFIG, "encoder_config.num_attention_heads", [2]),  # for two layers
    (CONFIG, "encoder_config.head_dim", 0),
    (CONFIG, "encoder_config.intermediate_size", {}),
    (CONFIG, "encoder_config.layer_norm_eps", float("nan")),
    (CONFIG, "encoder_config.hidden_act", []),
    (CONFIG, "encoder_config.vocab_size", 0),
    (CONFIG, "encoder_config.max_position_embeddings", 0),
    (CONFIG, "encoder_config.position_offset", 64),  # as many as positions
    (CONFIG, "decoder_config.encoder_hidden_size", 8),
    (CONFIG, "decoder_config.operators", []),
    (CONFIG, "decoder_config.operators", "+-*/^"),
    (CONFIG, "decoder_config.root_goal", "last"),
    (CONFIG, "decoder_config.max_length", 0),
    (CONFIG, "decoder_config.max_length", 10**9),
    (PROCESSOR, "operators", ...),
    (PROCESSOR, "max_length", 0),
    (PROCESSOR, "max_length", 10**12),
    (PROCESSOR, "num_index_tokens", 10**9),
    (PROCESSOR, "language", "fr"),
    (PROCESSOR, "parse_number_words", "no"),
    (SEARCH, "num_beams", 10**9),
    (SEARCH, "num_beams", 0),
    (SEARCH, "rerank", 1),
    (RERANKER, "weights.zero", 1e308),
    (RERANKER, "weights.zero", "1"),
    (RERANKER, "weights", [1]),
    (RERANKER, "num_beams", 10**9),
    (RERANKER, "language", ...),
]


@pytest.mark.parametrize(("file", "field", "value"), WRONG_FIELDS)
def test_wrong_value_of_a_field_is_named(folder, file, field, value):
    set_field(folder / file, field, value)
    assert_refused(folder, file, f"`{field}`")


# Fields whose values are valid but do not fit the other files, with words of the message.
INCONSISTENT_FIELDS = [
    (CONFIG, "model_type", "bert", "not a solver"),
    (CONFIG, "model_type", [], "not a solver"),
    (CONFIG, "encoder_config.num_hidden_layers", 1, WEIGHTS),
    (CONFIG, "encoder_config.num_hidden_layers", 3, "lacks 16 weights"),
    (CONFIG, "encoder_config.num_attention_heads", [2, -2], "num_attention_heads[1]`"),
    (CONFIG, "encoder_config.num_attention_heads", 1, "(16, 16)"),
    (CONFIG, "encoder_config.vocab_size", 5, "word_embeddings"),
    (CONFIG, "decoder_config.hidden_size", 32, "lacks 2 weights (decoder.input_projection"),
    (CONFIG, "decoder_config.operators", ["+", "eval"], "eval"),
    (CONFIG, "decoder_config.constants", [1], "constants[0]`"),
    (CONFIG, "decoder_config.constants", ["one"], "'one'"),
    (CONFIG, "decoder_config.constants", ["1", "1"], "repeat"),
    (PROCESSOR, "max_length", 2, "adds 2 tokens"),
    (PROCESSOR, "indexed_numbers", True, "[NUM0]"),
    (PROCESSOR, "constants", ["9"], "different symbols"),
    (PROCESSOR, "new", 1, "['new']"),
    (RERANKER, "language", "en", "'en'"),
]


@pytest.mark.parametrize(("file", "field", "value", "words"), INCONSISTENT_FIELDS)
def test_field_that_does_not_fit_the_folder_is_refused(folder, file, field, value, words):
    set_field(folder / file, field, value)
    assert_refused(folder, words)


def test_bottlenecks_beyond_the_layers_are_refused(folder):
    change_fields(folder / CONFIG, bottleneck_layers=[3], bottleneck_size=4)
    assert_refused(folder, "`bottleneck_layers` [3]", "2 layers")


def test_offset_of_positions_needs_the_id_of_the_padding(folder):
    set_field(folder / CONFIG, "encoder_config.position_offset", 2)
    set_field(folder / CONFIG, "encoder_config.pad_token_id", None)
    assert_refused(folder, "`encoder_config.pad_token_id`")


@pytest.mark.parametrize("file", [WEIGHTS, RERANKER])
def test_missing_file_is_named(folder, file):
    (folder / file).unlink()
    assert_refused(folder, file)


def damage_tokenizer(folder, section, value):
    """Set a field of the tokenizer of a folder of the first version, which has no digest."""
    set_field(folder / TOKENIZER, section, value)
    change_fields(folder / PROCESSOR, tokenizer_digest=None)


def replacement(old, new):
    return {"type": "Replace", "pattern": {"String": old}, "content": new}


EVERYWHERE = {"type": "Replace", "pattern": {"Regex": ""}, "content": "苹" * 100}
START = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
MANY_TOKENS = [START] * 70 + [{"Sequence": {"id": "A", "type_id": 0}}]


@pytest.mark.parametrize(
    ("field", "value", "words"),
    [
        ("normalizer", replacement("苹", "苹" * 1000), "1,000, more than 16"),
        ("normalizer", {"type": "Sequence", "normalizers": [replacement("苹", "苹苹")] * 40}, "more than 16"),
        ("normalizer", EVERYWHERE, "more than 16"),
        ("added_tokens", [], "lacks the token [NUM]"),
        ("post_processor.single", MANY_TOKENS, "adds 70 tokens"),
        ("model.unk_token", "[NONE]", "cannot be read"),
        ("model.vocab", {"[UNK]": 0, "苹": 10**6}, "1,000,000"),
    ],
    ids=lambda value: "" if isinstance(value, dict | list) else None,
)
def test_tokenizer_that_cannot_be_used_is_refused(folder, field, value, words):
    damage_tokenizer(folder, field, value)
    assert_refused(folder, TOKENIZER, words)


@pytest.mark.parametrize("size", [None, 0, 8])
def test_weights_that_are_cut_short_are_refused(folder, size):
    path = folder / WEIGHTS
    if size is None:
        cut(path)
    else:
        path.write_bytes((2**60).to_bytes(8, "little")[:size])
    assert_refused(folder, WEIGHTS, "damaged or cut short")


def test_missing_weight_is_named(folder):
    drop_weights(folder, "decoder.merge")
    assert_refused(folder, WEIGHTS, "lacks 2 weights", "decoder.merge")


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("decoder.extra", torch.zeros(3), "has 1 weight (decoder.extra)"),
        (DENSE, torch.zeros(16, 3), f"{DENSE} is (16, 3)"),
        (DENSE, torch.zeros(24, 16), f"{DENSE} is (24, 16)"),
        ("decoder.constant_embedding", torch.zeros(1, 16).long(), "I64"),
        ("decoder.constant_embedding", torch.zeros(1, 16).to(torch.int8), "(decoder.constant_embedding.scale)"),
    ],
)
def test_weight_that_does_not_fit_the_configuration_is_named(folder, name, value, words):
    change_weights(folder, lambda tensors: tensors.update({name: value}))
    assert_refused(folder, WEIGHTS, words)


def test_unexpected_int8_weights_are_refused(folder):
    extra = {"extra.weight": torch.zeros(4, 4, dtype=torch.int8), "extra.weight.scale": torch.ones(4)}
    change_weights(folder, lambda tensors: tensors.update(extra))
    assert "has 2 weights (extra.weight, extra.weight.scale) that" in error_of(load_solver, folder)


@pytest.mark.parametrize(
    ("file", "field", "value"),
    [(CONFIG, "encoder_config.head_dim", 0), (RERANKER, "weights.zero", 1e308), (WEIGHTS, None, None)],
)
def test_pipeline_of_a_damaged_folder_raises_the_same_error(folder, file, field, value):
    if field is None:
        cut(folder / file)
    else:
        set_field(folder / file, field, value)
    assert error_of(load_from_folder, folder) == error_of(load_solver, folder)


def test_texts_are_limited_to_the_positions_of_the_encoder(folder):
    change_fields(folder / PROCESSOR, max_length=512)
    text = "苹果" * 50 + TEXT
    assert load_solver(folder)(text) == load_from_folder(str(folder))(text)
    assert load_torch_solver(str(folder))[1].max_length == 64


def test_weights_in_double_precision_are_read(whole_folder, folder):
    def to_double(tensors):
        for name in list(tensors):
            tensors[name] = tensors[name].double()

    change_weights(folder, to_double)
    assert load_solver(folder)(TEXT) == load_solver(whole_folder)(TEXT)


@pytest.mark.parametrize("cut_short", [True, False])
def test_loaded_solver_does_not_need_its_files(whole_folder, folder, cut_short):
    solver = load_solver(folder)
    if cut_short:
        with open(folder / WEIGHTS, "r+b") as file:
            file.truncate(100)
    else:
        shutil.rmtree(folder)
    assert solver(TEXT) == load_solver(whole_folder)(TEXT)


def assert_described(model, folder):
    model.save_pretrained(folder)
    config = read_config(folder)
    described = encoder_shapes(config) | decoder_shapes(config["decoder_config"])
    assert described == {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def test_described_weights_equal_those_of_a_model_with_bottlenecks(tmp_path):
    assert_described(tiny_solver(tiny_processor(), bottleneck_layers=[1, 2], bottleneck_size=4), tmp_path)


def test_described_weights_equal_those_of_a_pruned_and_projected_model(tmp_path):
    model = tiny_solver(tiny_processor())
    model.config.encoder_config.update(
        {"num_attention_heads": [0, 1], "intermediate_size": [5, 0], "embedding_size": 6}
    )
    model.config.decoder_config.update({"hidden_size": 12})
    assert_described(type(model)(model.config), tmp_path)
