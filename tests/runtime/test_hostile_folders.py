"""Damaged folders of a solver: loading says what is wrong, in PyTorch and in the runtime without PyTorch."""

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
from tests.tiny import tiny_processor, tiny_solver


TEXT = "小明有4个苹果，又买了2个，一共有几个？"
CONFIG, PROCESSOR, WEIGHTS = "config.json", "mwp_processor.json", "model.safetensors"
SEARCH, RERANKER, TOKENIZER = "generation_config.json", "plausibility.json", "tokenizer.json"
DEEP = "[" * 100_000


@pytest.fixture(scope="session")
def whole_folder(solver_folder, tmp_path_factory):
    """A solver with all files that a solver may have."""
    folder = shutil.copytree(solver_folder, tmp_path_factory.mktemp("whole") / "solver")
    PlausibilityReranker.from_pretrained("zh").save_pretrained(folder)
    DefaultSearch(num_beams=8, rerank=True).save_pretrained(folder)
    return folder


def write(name, text):
    """Replace a file."""
    return lambda folder: (folder / name).write_text(text, "utf-8")


def set_fields(name, **fields):
    """Set fields of a JSON file."""
    return lambda folder: change_fields(folder / name, **fields)


def set_part(part, **fields):
    """Set fields of a part of config.json; a field is removed with `...`."""

    def change(folder):
        content = json.loads((folder / CONFIG).read_text("utf-8"))
        content[part] |= fields
        content[part] = {name: value for name, value in content[part].items() if value is not ...}
        (folder / CONFIG).write_text(json.dumps(content), "utf-8")

    return change


def drop_field(name, field):
    """Remove a field of a JSON file."""

    def change(folder):
        content = json.loads((folder / name).read_text("utf-8"))
        del content[field]
        (folder / name).write_text(json.dumps(content), "utf-8")

    return change


def set_weight(name, value):
    """Replace a tensor."""
    return lambda folder: change_weights(folder, lambda tensors: tensors.update({name: value}))


def set_reranker_weight(value):
    """Change a weight of the re-ranker."""

    def change(folder):
        content = json.loads((folder / RERANKER).read_text("utf-8"))
        content["weights"]["zero"] = value
        (folder / RERANKER).write_text(json.dumps(content), "utf-8")

    return change


def set_tokenizer(change_content, **fields):
    """Change tokenizer.json, and processor fields of a folder of the first version, which has no digest."""

    def change(folder):
        content = json.loads((folder / TOKENIZER).read_text("utf-8"))
        change_content(content)
        (folder / TOKENIZER).write_text(json.dumps(content), "utf-8")
        change_fields(folder / PROCESSOR, tokenizer_digest=None, **fields)

    return change


def replacements(*pairs):
    """Change the normalizer to replacements of texts."""
    steps = [{"type": "Replace", "pattern": {"String": old}, "content": new} for old, new in pairs]
    return set_tokenizer(lambda content: content.update(normalizer={"type": "Sequence", "normalizers": steps}))


def added_tokens(content):
    start = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
    content["post_processor"]["single"] = [start] * 70 + [{"Sequence": {"id": "A", "type_id": 0}}]


def remove_placeholder(content):
    content["added_tokens"] = [token for token in content["added_tokens"] if token["content"] != "[NUM]"]


ENCODER, DECODER = "encoder_config", "decoder_config"
LAYER = "encoder.encoder.layer.0"
# Name: (damage, file, field or words of the sentence).
HOSTILE = {
    # config.json
    "config is no JSON": (write(CONFIG, "{"), CONFIG, "damaged"),
    "config is empty": (write(CONFIG, ""), CONFIG, "damaged"),
    "config is a list": (write(CONFIG, "[]"), CONFIG, "no JSON object"),
    "config is nested deeply": (write(CONFIG, DEEP), CONFIG, "nested too deeply"),
    "config is of another encoding": (lambda folder: (folder / CONFIG).write_bytes(b"\xff\xfe{"), CONFIG, "damaged"),
    "another model": (set_fields(CONFIG, model_type="bert"), "solver", "not a solver"),
    "model type is a list": (set_fields(CONFIG, model_type=[]), "solver", "not a solver"),
    "no encoder": (drop_field(CONFIG, ENCODER), CONFIG, "`encoder_config` is missing"),
    "encoder is a list": (set_fields(CONFIG, encoder_config=[]), CONFIG, "`encoder_config` must be an object"),
    "decoder is a number": (set_fields(CONFIG, decoder_config=3), CONFIG, "`decoder_config` must be an object"),
    "bottlenecks are a text": (
        set_fields(CONFIG, bottleneck_layers="12"),
        CONFIG,
        "`bottleneck_layers` must be a list",
    ),
    "bottlenecks without size": (set_fields(CONFIG, bottleneck_layers=[1]), CONFIG, "`bottleneck_size` None"),
    "bottlenecks beyond the layers": (
        set_fields(CONFIG, bottleneck_layers=[3], bottleneck_size=4),
        CONFIG,
        "do not fit 2 layers",
    ),
    "layers -1": (set_part(ENCODER, num_hidden_layers=-1), CONFIG, "`encoder_config.num_hidden_layers` must be"),
    "layers 1e9": (set_part(ENCODER, num_hidden_layers=10**9), CONFIG, "`encoder_config.num_hidden_layers` must be"),
    "layers 2.0": (set_part(ENCODER, num_hidden_layers=2.0), CONFIG, "`encoder_config.num_hidden_layers` must be"),
    "layers true": (set_part(ENCODER, num_hidden_layers=True), CONFIG, "`encoder_config.num_hidden_layers` must be"),
    "fewer layers": (set_part(ENCODER, num_hidden_layers=1), WEIGHTS, "that the solver of config.json does not have"),
    "more layers": (set_part(ENCODER, num_hidden_layers=3), WEIGHTS, "lacks 16 weights"),
    "heads in a text": (set_part(ENCODER, num_attention_heads="2"), CONFIG, "`encoder_config.num_attention_heads`"),
    "heads of one layer": (set_part(ENCODER, num_attention_heads=[2]), CONFIG, "1 items for 2 layers"),
    "negative heads": (
        set_part(ENCODER, num_attention_heads=[2, -2]),
        CONFIG,
        "num_attention_heads[1]`",
    ),
    "other heads": (set_part(ENCODER, num_attention_heads=1), WEIGHTS, "(16, 16)"),
    "head of 0": (set_part(ENCODER, head_dim=0), CONFIG, "`encoder_config.head_dim`"),
    "no head": (set_part(ENCODER, head_dim=...), CONFIG, "`encoder_config.head_dim` is missing"),
    "neurons are an object": (set_part(ENCODER, intermediate_size={}), CONFIG, "`encoder_config.intermediate_size`"),
    "epsilon is NaN": (set_part(ENCODER, layer_norm_eps=float("nan")), CONFIG, "`encoder_config.layer_norm_eps`"),
    "epsilon is negative": (set_part(ENCODER, layer_norm_eps=-1.0), CONFIG, "`encoder_config.layer_norm_eps`"),
    "no activation": (set_part(ENCODER, hidden_act=...), CONFIG, "`encoder_config.hidden_act` is missing"),
    "activation is a list": (set_part(ENCODER, hidden_act=[]), CONFIG, "`encoder_config.hidden_act`"),
    "vocabulary of 0": (set_part(ENCODER, vocab_size=0), CONFIG, "`encoder_config.vocab_size`"),
    "smaller vocabulary": (set_part(ENCODER, vocab_size=5), WEIGHTS, "word_embeddings"),
    "no positions": (set_part(ENCODER, max_position_embeddings=0), CONFIG, "`encoder_config.max_position_embeddings`"),
    "offset beyond positions": (set_part(ENCODER, position_offset=64), CONFIG, "`encoder_config.position_offset`"),
    "offset without padding": (
        set_part(ENCODER, position_offset=2, pad_token_id=None),
        CONFIG,
        "`encoder_config.pad_token_id`",
    ),
    "widths differ": (set_part(DECODER, encoder_hidden_size=8), CONFIG, "`decoder_config.encoder_hidden_size` is 8"),
    "wider decoder": (set_part(DECODER, hidden_size=32), WEIGHTS, "lacks 2 weights (decoder.input_projection"),
    "unknown operator": (set_part(DECODER, operators=["+", "eval"]), CONFIG, "eval"),
    "no operators": (set_part(DECODER, operators=[]), CONFIG, "`decoder_config.operators` is empty"),
    "operators are a text": (
        set_part(DECODER, operators="+-*/^"),
        CONFIG,
        "`decoder_config.operators` must be",
    ),
    "constants are numbers": (
        set_part(DECODER, constants=[1]),
        CONFIG,
        "constants[0]` must be a text",
    ),
    "constant is no number": (set_part(DECODER, constants=["one"]), CONFIG, "'one'"),
    "repeated constant": (set_part(DECODER, constants=["1", "1"]), CONFIG, "repeat"),
    "unknown root": (
        set_part(DECODER, root_goal="last"),
        CONFIG,
        "must be one of cls, mean",
    ),
    "expressions of 0": (set_part(DECODER, max_length=0), CONFIG, "`decoder_config.max_length`"),
    "expressions of 1e9": (set_part(DECODER, max_length=10**9), CONFIG, "`decoder_config.max_length`"),
    "no length": (set_part(DECODER, max_length=...), CONFIG, "`decoder_config.max_length` is missing"),
    # mwp_processor.json
    "processor is nested deeply": (write(PROCESSOR, DEEP), PROCESSOR, "nested too deeply"),
    "processor is a number": (write(PROCESSOR, "3"), PROCESSOR, "no JSON object"),
    "no operators in the processor": (drop_field(PROCESSOR, "operators"), PROCESSOR, "`operators` is missing"),
    "texts of 0": (set_fields(PROCESSOR, max_length=0), PROCESSOR, "`max_length`"),
    "texts of 1e12": (set_fields(PROCESSOR, max_length=10**12), PROCESSOR, "`max_length`"),
    "texts of 2": (set_fields(PROCESSOR, max_length=2), TOKENIZER, "adds 2 tokens"),
    "placeholders 1e9": (set_fields(PROCESSOR, num_index_tokens=10**9), PROCESSOR, "`num_index_tokens`"),
    "placeholders are missing": (set_fields(PROCESSOR, indexed_numbers=True), TOKENIZER, "lacks the token [NUM0]"),
    "unknown language": (set_fields(PROCESSOR, language="fr"), PROCESSOR, "`language` must be one of zh, en"),
    "number words are a text": (set_fields(PROCESSOR, parse_number_words="no"), PROCESSOR, "`parse_number_words`"),
    "other symbols": (set_fields(PROCESSOR, constants=["9"]), PROCESSOR, "different symbols"),
    "field of a newer version": (set_fields(PROCESSOR, new=1), PROCESSOR, "['new']"),
    # generation_config.json
    "beams 1e9": (set_fields(SEARCH, num_beams=10**9), SEARCH, "`num_beams` must be an integer from 1 to 1,000"),
    "beams 0": (set_fields(SEARCH, num_beams=0), SEARCH, "`num_beams`"),
    "beams true": (set_fields(SEARCH, num_beams=True), SEARCH, "`num_beams`"),
    "re-ranker is a number": (set_fields(SEARCH, rerank=1), SEARCH, "`rerank`"),
    "search is nested deeply": (write(SEARCH, DEEP), SEARCH, "nested too deeply"),
    # plausibility.json
    "weight 1e308": (set_reranker_weight(1e308), RERANKER, "`weights.zero` must be a number"),
    "weight is infinite": (set_reranker_weight(float("inf")), RERANKER, "`weights.zero`"),
    "weight is a text": (set_reranker_weight("1"), RERANKER, "`weights.zero`"),
    "weights are a list": (set_fields(RERANKER, weights=[1]), RERANKER, "`weights` must be an object"),
    "re-ranker with 1e9 beams": (set_fields(RERANKER, num_beams=10**9), RERANKER, "`num_beams`"),
    "re-ranker with beams in a text": (set_fields(RERANKER, num_beams="20"), RERANKER, "`num_beams`"),
    "re-ranker without a language": (drop_field(RERANKER, "language"), RERANKER, "`language` is missing"),
    "re-ranker of another language": (set_fields(RERANKER, language="en"), "re-ranker", "'en'"),
    "re-ranker is nested deeply": (write(RERANKER, DEEP), RERANKER, "nested too deeply"),
    "re-ranker is missing": (lambda folder: (folder / RERANKER).unlink(), "plausibility.json", "has no"),
    # tokenizer.json
    "tokenizer is no JSON": (write(TOKENIZER, "{"), TOKENIZER, "cannot be read"),
    "tokenizer is nested deeply": (write(TOKENIZER, DEEP), TOKENIZER, "cannot be read"),
    "tokenizer is empty": (write(TOKENIZER, "{}"), TOKENIZER, "cannot be read"),
    "text is replaced by much": (replacements(("苹", "苹" * 1000)), TOKENIZER, "1,000, more than 16"),
    "text is doubled forty times": (replacements(*[("苹", "苹苹")] * 40), TOKENIZER, "more than 16"),
    "text is inserted everywhere": (
        set_tokenizer(
            lambda content: content.update(
                normalizer={"type": "Replace", "pattern": {"Regex": ""}, "content": "苹" * 100}
            )
        ),
        TOKENIZER,
        "more than 16",
    ),
    "placeholder is missing": (set_tokenizer(remove_placeholder), TOKENIZER, "lacks the token [NUM]"),
    "many tokens are added": (set_tokenizer(added_tokens), TOKENIZER, "adds 70 tokens"),
    "no unknown token": (
        set_tokenizer(lambda content: content["model"].update(unk_token="[NONE]")),
        TOKENIZER,
        "cannot be read",
    ),
    "id beyond the embeddings": (
        set_tokenizer(lambda content: content["model"]["vocab"].update({"苹": 10**6})),
        TOKENIZER,
        "1,000,000",
    ),
    # model.safetensors
    "weights are missing": (lambda folder: (folder / WEIGHTS).unlink(), WEIGHTS, ""),
    "weights are cut short": (lambda folder: cut(folder / WEIGHTS), WEIGHTS, "damaged or cut short"),
    "weights are empty": (lambda folder: (folder / WEIGHTS).write_bytes(b""), WEIGHTS, "damaged or cut short"),
    "header of 2^60 bytes": (
        lambda folder: (folder / WEIGHTS).write_bytes((2**60).to_bytes(8, "little") + b"{}"),
        WEIGHTS,
        "damaged or cut short",
    ),
    "a weight is missing": (lambda folder: drop_weights(folder, "decoder.merge"), WEIGHTS, "lacks 2 weights"),
    "a weight is unknown": (set_weight("decoder.extra", torch.zeros(3)), WEIGHTS, "has 1 weight (decoder.extra)"),
    "a weight has another shape": (
        set_weight(f"{LAYER}.output.dense.weight", torch.zeros(16, 3)),
        WEIGHTS,
        f"{LAYER}.output.dense.weight is (16, 3)",
    ),
    "a weight is turned round": (
        set_weight(f"{LAYER}.output.dense.weight", torch.zeros(24, 16)),
        WEIGHTS,
        f"{LAYER}.output.dense.weight is (24, 16)",
    ),
    "a weight has integers": (set_weight("decoder.constant_embedding", torch.zeros(1, 16).long()), WEIGHTS, "I64"),
    "int8 without scales": (
        set_weight("decoder.constant_embedding", torch.zeros(1, 16, dtype=torch.int8)),
        WEIGHTS,
        "lacks 1 weight (decoder.constant_embedding.scale)",
    ),
}


def sentence_of(load, folder):
    with pytest.raises((UsageError, SolverFolderError)) as error:
        load(str(folder))
    return str(error.value)


@pytest.mark.parametrize("name", HOSTILE)
def test_damaged_folder_is_refused_in_one_sentence_by_pytorch_and_the_runtime(whole_folder, tmp_path, name):
    damage, file, words = HOSTILE[name]
    folder = shutil.copytree(whole_folder, tmp_path / "solver")
    damage(folder)
    sentence = sentence_of(load_solver, folder)
    assert str(folder) in sentence and file in sentence and words in sentence

    def load_pipeline(path):
        model, processor = load_torch_solver(path)
        pipeline("math-word-problem", model=model, processor=processor, device="cpu")

    assert sentence_of(load_pipeline, folder) == sentence


@pytest.mark.parametrize(
    "name", ["layers -1", "no head", "weights are cut short", "weight 1e308", "placeholder is missing"]
)
def test_the_pipeline_of_a_folder_has_the_same_sentence(whole_folder, tmp_path, name):
    folder = shutil.copytree(whole_folder, tmp_path / "solver")
    HOSTILE[name][0](folder)
    expected = sentence_of(load_solver, folder)
    assert sentence_of(lambda path: pipeline("math-word-problem", model=path, device="cpu"), folder) == expected


def test_texts_are_limited_to_the_positions_of_the_encoder(whole_folder, tmp_path):
    folder = shutil.copytree(whole_folder, tmp_path / "solver")
    change_fields(folder / PROCESSOR, max_length=512)
    text = "苹果" * 50 + TEXT
    torch_pipeline = pipeline("math-word-problem", model=str(folder), device="cpu")
    assert load_solver(folder)(text) == torch_pipeline(text)
    assert load_torch_solver(str(folder))[1].max_length == 64


def test_unexpected_int8_weights_are_refused(whole_folder, tmp_path):
    folder = shutil.copytree(whole_folder, tmp_path / "solver")
    extra = {"extra.weight": torch.zeros(4, 4, dtype=torch.int8), "extra.weight.scale": torch.ones(4)}
    change_weights(folder, lambda tensors: tensors.update(extra))
    assert "has 2 weights (extra.weight, extra.weight.scale) that" in sentence_of(load_solver, folder)


def test_weights_in_double_precision_are_read(whole_folder, tmp_path):
    folder = shutil.copytree(whole_folder, tmp_path / "solver")
    change_weights(folder, lambda tensors: tensors.update({name: each.double() for name, each in tensors.items()}))
    assert load_solver(folder)(TEXT) == load_solver(whole_folder)(TEXT)


@pytest.mark.parametrize("cut_short", [True, False])
def test_a_loaded_solver_does_not_need_its_files(whole_folder, tmp_path, cut_short):
    folder = shutil.copytree(whole_folder, tmp_path / "solver")
    solver = load_solver(folder)
    if cut_short:
        with open(folder / WEIGHTS, "r+b") as file:
            file.truncate(100)
    else:
        shutil.rmtree(folder)
    assert solver(TEXT) == load_solver(whole_folder)(TEXT)


SHAPES = {
    "plain": {},
    "bottlenecks": {"bottleneck_layers": [1, 2], "bottleneck_size": 4},
}


@pytest.mark.parametrize("name", SHAPES)
def test_described_weights_are_those_of_the_model(tmp_path, name):
    model = tiny_solver(tiny_processor(), **SHAPES[name])
    assert_described(model, tmp_path)


def test_described_weights_of_pruned_and_projected_models(tmp_path):
    config = tiny_solver(tiny_processor()).config
    config.encoder_config.update({"num_attention_heads": [0, 1], "intermediate_size": [5, 0], "embedding_size": 6})
    config.decoder_config.update({"hidden_size": 12})
    assert_described(type(tiny_solver(tiny_processor()))(config), tmp_path)


def assert_described(model, folder):
    model.save_pretrained(folder)
    config = read_config(folder)
    described = encoder_shapes(config) | decoder_shapes(config["decoder_config"])
    assert described == {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
