"""Solvers and students from the options of the command line."""

import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    Gemma3TextModel,
    GPT2Config,
    GPT2Model,
    XLNetConfig,
    XLNetModel,
)

from hf_mwp import MwpSolver
from hf_mwp.commands.building import build_solver, load_solver, make_student
from hf_mwp.commands.building.classifier import build_classifier
from hf_mwp.commands.building.solver import SolverArguments
from hf_mwp.commands.building.student import StudentArguments
from hf_mwp.runtime.expressions import Expression
from hf_mwp.utils.usage_error import UsageError
from tests.commands.folders import save_solver
from tests.tiny import (
    tiny_athena_solver,
    tiny_bert_config,
    tiny_gemma_config,
    tiny_processor,
    tiny_rows,
    tiny_solver,
    tiny_tokenizer,
)


VOCAB_SIZE = len(tiny_tokenizer())


@pytest.fixture
def distilbert(save_encoder):
    """A folder with a tiny DistilBERT and its tokenizer."""
    config = DistilBertConfig(vocab_size=VOCAB_SIZE, dim=16, n_heads=2, n_layers=1, hidden_dim=16)
    return save_encoder(DistilBertModel(config))


def dropout_rates(model):
    return {module.p for module in model.modules() if isinstance(module, torch.nn.Dropout)}


def test_dropout_of_an_encoder_is_set(distilbert, encoder):
    bert, _ = build_solver(tiny_rows(), encoder=str(encoder), dropout=0.25)
    config = bert.encoder.config
    assert config.hidden_dropout_prob == config.attention_probs_dropout_prob == bert.decoder.config.dropout == 0.25
    solver, _ = build_solver(tiny_rows(), encoder=distilbert, dropout=0.25)
    config = solver.encoder.config
    assert config.dropout == config.attention_dropout == solver.decoder.config.dropout == 0.25
    solver, _ = build_solver(tiny_rows(), encoder=distilbert, attn_implementation="eager")
    config = solver.encoder.config
    assert (config.dropout, config._attn_implementation) == (0.1, "eager")


def test_dropout_of_a_student_is_set(distilbert):
    processor = tiny_processor(max_length=64)
    processor.save_pretrained(distilbert)
    args = StudentArguments(student_encoder=distilbert, student_dropout=0.25)
    student = make_student(tiny_solver(processor), processor, tiny_rows(), args)
    config = student.encoder.config
    assert config.dropout == config.attention_dropout == student.decoder.config.dropout == 0.25


def test_encoder_of_unknown_dropout_is_refused(save_encoder):
    folder = save_encoder(GPT2Model(GPT2Config(vocab_size=VOCAB_SIZE, n_embd=8, n_head=2, n_layer=1)))
    with pytest.raises(UsageError, match="dropout.*'gpt2'"):
        build_solver(tiny_rows(), encoder=folder, dropout=0.25)


def test_dropout_of_a_solver_on_albert_is_set(tmp_path):
    processor = tiny_processor()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    albert = AlbertModel(AlbertConfig(vocab_size=VOCAB_SIZE, embedding_size=8, **sizes))
    MwpSolver.from_encoder_decoder_pretrained(albert, processor).save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    solver, _ = build_solver([], solver=str(tmp_path), dropout=0.3)
    assert dropout_rates(solver) == {0.3}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"decoder": "athena", "decoder_config": {"treshold": 0.4}}, "`decoder_config`: Athena.*'threshold'"),
        ({"decoder_config": {"threshold": 0.4}}, "`decoder_config`: GTSConfig has no field 'threshold'"),
        ({"encoder_config": {"hidden_siz": 8}, "encoder": None}, "`encoder_config`: Mwp.*'hidden_size'"),
        ({"encoder_config": {"model_type": "bert"}, "encoder": None}, "`encoder_config`: Mwp.*'model_type'"),
    ],
)
def test_unknown_fields_of_a_configuration_are_named(distilbert, fields, message):
    with pytest.raises(UsageError, match=message):
        build_solver(tiny_rows(), **({"encoder": distilbert, "tokenizer": distilbert} | fields))


def test_length_and_constants_of_a_new_solver(save_encoder):
    folder = save_encoder(BertModel(tiny_bert_config(vocab_size=VOCAB_SIZE, max_position_embeddings=512)))
    rows = []
    for constant in [60] * 5 + [24] * 4:
        rows.append({"text": "每包有4个苹果，共几个？", "equation": f"x=4*{constant}"})
    _, processor = build_solver(rows, encoder=folder)
    assert processor.max_length == 512
    assert processor.vocabulary.constants == ("60",)


def test_solver_gets_further_constants_and_another_dropout_of_its_decoder(tmp_path):
    folder = str(save_solver(tmp_path))
    constants = tiny_processor().vocabulary.constants
    solver, processor = build_solver([], solver=folder, constants=["60", "3.5"], decoder_dropout=0.25)
    assert processor.vocabulary.constants == (*constants, "60", "3.5")
    config = solver.config.decoder_config
    processor.check_symbols(config.operators, config.constants)
    assert solver.decoder.dropout.p == config.dropout == 0.25
    solver.save_pretrained(folder)
    processor.save_pretrained(folder)
    saved, _ = load_solver(folder)
    assert torch.equal(saved.decoder.constant_embedding, solver.decoder.constant_embedding)


@pytest.mark.slow
def test_solver_saved_in_half_precision_is_trained_in_fp32(tmp_path):
    save_solver(tmp_path)
    MwpSolver.from_pretrained(tmp_path).half().save_pretrained(tmp_path)
    folder = str(tmp_path)
    built, _ = build_solver([], solver=folder)
    loaded, _ = load_solver(folder)
    half, _ = load_solver(folder, dtype="float16")
    assert (built.dtype, loaded.dtype, half.dtype) == (torch.float32, torch.float32, torch.float16)


def test_constant_that_was_only_written_can_be_used(tmp_path):
    processor = tiny_processor()
    tiny_athena_solver(processor).save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    assert processor.vocabulary.written == ("0", "2", "0.5")
    solver, processor = build_solver([], solver=str(tmp_path), constants=["2.0", "7"])
    vocabulary = processor.vocabulary
    assert vocabulary.written == ("0", "0.5")
    assert vocabulary.constants == ("1", "0", "2", "0.5", "7")
    assert solver.decoder.config.initial_constants == ["1", "2", "7"]
    row = {"labels": vocabulary.encode(Expression.from_infix("N0+2")), "number_positions": [1]}
    assert solver.target_error(row) is None


@pytest.fixture
def gemma(save_encoder):
    """A folder with an encoder that is no BERT: two layers, whose types its config lists."""
    torch.manual_seed(0)
    return save_encoder(Gemma3TextModel(tiny_gemma_config(VOCAB_SIZE, use_bidirectional_attention=True)))


@pytest.mark.slow
def test_first_layers_of_an_encoder_that_is_no_bert_are_used(gemma, tmp_path):
    options = {"bottleneck_layers": [1], "bottleneck_size": 4, "dropout": 0.1}
    solver, processor = build_solver(tiny_rows(), encoder=gemma, encoder_layers="1", **options)
    encoder = solver.encoder
    whole = Gemma3TextModel.from_pretrained(gemma)
    assert (type(encoder), encoder.config.num_hidden_layers) == (Gemma3TextModel, 1)
    assert encoder.config.layer_types == whole.config.layer_types[:1]
    assert encoder.config.attention_dropout == 0.1
    weights = whole.layers[0].state_dict()
    for name, value in encoder.layers[0].state_dict().items():
        assert torch.equal(value, weights[name])
    folder = tmp_path / "solver"
    solver.eval().save_pretrained(folder)
    processor.save_pretrained(folder)
    loaded, _ = load_solver(str(folder))
    batch = processor([row["text"] for row in tiny_rows(6)])
    assert torch.equal(solver.solve(**batch).sequences, loaded.eval().solve(**batch).sequences)
    changed, _ = build_solver([], solver=str(folder), dropout=0.3)
    assert changed.encoder.layers[0].self_attn.attention_dropout == 0.3


@pytest.mark.parametrize("layers", ["1,0", "5"])
def test_other_layers_of_an_encoder_that_is_no_bert_are_refused(gemma, layers):
    with pytest.raises(UsageError, match=rf"({layers}|\[1, 0\]) of Gemma3TextModel.*\b2\b"):
        build_solver(tiny_rows(), encoder=gemma, encoder_layers=layers)


def test_encoder_without_a_limit_of_positions_needs_no_limit(save_encoder):
    folder = save_encoder(XLNetModel(XLNetConfig(vocab_size=VOCAB_SIZE, d_model=16, n_layer=1, n_head=2, d_inner=16)))
    teacher, processor = build_solver(tiny_rows(), encoder=folder, max_length=40)
    assert processor.max_length == 40
    sizes = {"student_hidden_size": 12, "student_heads": 2, "student_intermediate_size": 8, "student_layers": "1"}
    student = make_student(teacher, processor, student_init="random", **sizes)
    assert student.encoder.config.max_position_embeddings == 512
    _, tokenizer = build_classifier(["no", "yes"], SolverArguments(encoder=folder, max_length=40))
    assert tokenizer.model_max_length == 40
