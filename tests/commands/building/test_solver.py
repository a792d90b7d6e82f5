"""Solvers and students from the options of the command line."""

import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertModel,
    BertModel,
    DistilBertConfig,
    DistilBertModel,
    Gemma3TextConfig,
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
from tests.tiny import tiny_athena_solver, tiny_bert_config, tiny_processor, tiny_rows, tiny_solver, tiny_tokenizer


@pytest.fixture
def distilbert(tmp_path):
    """A folder with a tiny DistilBERT and its tokenizer."""
    tokenizer = tiny_tokenizer()
    config = DistilBertConfig(vocab_size=len(tokenizer), dim=16, n_heads=2, n_layers=1, hidden_dim=16)
    DistilBertModel(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    return str(tmp_path)


def test_dropout_has_the_names_of_the_encoder(distilbert, encoder):
    for source, names in (
        (distilbert, ("dropout", "attention_dropout")),
        (str(encoder), ("hidden_dropout_prob", "attention_probs_dropout_prob")),
    ):
        solver, _ = build_solver(tiny_rows(), encoder=source, dropout=0.25)
        assert {getattr(solver.encoder.config, name) for name in names} == {0.25}
        assert solver.decoder.config.dropout == 0.25
    solver, _ = build_solver(tiny_rows(), encoder=distilbert, attn_implementation="eager")
    assert (solver.encoder.config.dropout, solver.encoder.config._attn_implementation) == (0.1, "eager")


@pytest.mark.parametrize(
    ("fields", "match"),
    [
        ({"decoder": "athena", "decoder_config": {"treshold": 0.4}}, "`decoder_config`: Athena.*'threshold'"),
        ({"decoder_config": {"threshold": 0.4}}, "`decoder_config`: GTSConfig has no field 'threshold'"),
        ({"encoder_config": {"hidden_siz": 8}, "encoder": None}, "`encoder_config`: Mwp.*'hidden_size'"),
        ({"encoder_config": {"model_type": "bert"}, "encoder": None}, "`encoder_config`: Mwp.*'model_type'"),
    ],
)
def test_fields_that_a_configuration_does_not_have(distilbert, fields, match):
    with pytest.raises(UsageError, match=match):
        build_solver(tiny_rows(), **({"encoder": distilbert, "tokenizer": distilbert} | fields))


def test_dropout_of_a_student_on_a_distilbert(distilbert):
    processor = tiny_processor(max_length=64)
    processor.save_pretrained(distilbert)
    args = StudentArguments(student_encoder=distilbert, student_dropout=0.25)
    student = make_student(tiny_solver(processor), processor, tiny_rows(), args)
    assert student.encoder.config.dropout == student.encoder.config.attention_dropout == 0.25
    assert student.decoder.config.dropout == 0.25


def test_an_encoder_whose_dropout_is_not_known(tmp_path):
    tokenizer = tiny_tokenizer()
    GPT2Model(GPT2Config(vocab_size=len(tokenizer), n_embd=8, n_head=2, n_layer=1)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(UsageError, match="dropout.*'gpt2'"):
        build_solver(tiny_rows(), encoder=str(tmp_path), dropout=0.25)


def test_a_new_solver_by_default(tmp_path):
    tokenizer = tiny_tokenizer()
    BertModel(tiny_bert_config(vocab_size=len(tokenizer), max_position_embeddings=512)).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    rows = [{"text": "每包有4个苹果，共几个？", "equation": f"x=4*{constant}"} for constant in [60] * 5 + [24] * 4]
    _, processor = build_solver(rows, encoder=str(tmp_path))
    assert processor.max_length == 512 and processor.vocabulary.constants == ("60",)


def test_a_solver_gets_further_constants_and_another_dropout_of_its_decoder(tmp_path):
    processor = tiny_processor()
    for part in (tiny_solver(processor), processor):
        part.save_pretrained(tmp_path)
    solver, again = build_solver([], solver=str(tmp_path), constants=["60", "3.5"], decoder_dropout=0.25)
    assert again.vocabulary.constants == (*processor.vocabulary.constants, "60", "3.5")
    again.check_symbols(solver.config.decoder_config.operators, solver.config.decoder_config.constants)
    assert solver.decoder.dropout.p == solver.config.decoder_config.dropout == 0.25
    for part in (solver, again):
        part.save_pretrained(tmp_path / "again")
    saved, _ = load_solver(str(tmp_path / "again"))
    assert torch.equal(saved.decoder.constant_embedding, solver.decoder.constant_embedding)


def test_a_solver_saved_in_half_precision_is_trained_in_fp32(tmp_path):
    processor = tiny_processor()
    for part in (tiny_solver(processor).half(), processor):
        part.save_pretrained(tmp_path)
    for solver, _ in (build_solver([], solver=str(tmp_path)), load_solver(str(tmp_path))):
        assert {each.dtype for each in solver.parameters()} == {torch.float32}
    half, _ = load_solver(str(tmp_path), dtype="float16")
    assert {each.dtype for each in half.parameters()} == {torch.float16}


def test_a_constant_that_was_only_written_can_be_used(tmp_path):
    processor = tiny_processor()
    for part in (tiny_athena_solver(processor), processor):
        part.save_pretrained(tmp_path)
    assert processor.vocabulary.written == ("0", "2", "0.5")
    solver, again = build_solver([], solver=str(tmp_path), constants=["2.0", "7"])
    assert again.vocabulary.written == ("0", "0.5") and again.vocabulary.constants == ("1", "0", "2", "0.5", "7")
    assert solver.decoder.config.initial_constants == ["1", "2", "7"]
    row = {"labels": again.vocabulary.encode(Expression.from_infix("N0+2")), "number_positions": [1]}
    assert solver.target_error(row) is None


@pytest.fixture(scope="module")
def gemma(tmp_path_factory):
    """A folder with an encoder that is no BERT: four layers, whose kinds its config lists."""
    folder = tmp_path_factory.mktemp("gemma")
    tokenizer = tiny_tokenizer()
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "num_key_value_heads": 1}
    config = Gemma3TextConfig(
        vocab_size=len(tokenizer), num_hidden_layers=4, head_dim=8, use_bidirectional_attention=True, **sizes
    )
    Gemma3TextModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_first_layers_of_an_encoder_that_is_no_bert(gemma, tmp_path):
    options = {"bottleneck_layers": [1, 2], "bottleneck_size": 4, "dropout": 0.1}
    solver, processor = build_solver(tiny_rows(), encoder=str(gemma), encoder_layers="2", **options)
    encoder = solver.encoder
    whole = Gemma3TextModel.from_pretrained(gemma)
    assert (type(encoder), encoder.config.num_hidden_layers) == (Gemma3TextModel, 2)
    assert encoder.config.layer_types == whole.config.layer_types[:2]
    assert encoder.config.attention_dropout == 0.1
    for kept, original in zip(encoder.layers, whole.layers, strict=False):
        for name, value in kept.state_dict().items():
            assert torch.equal(value, original.state_dict()[name])
    solver.eval().save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    loaded, _ = load_solver(str(tmp_path))
    batch = processor([row["text"] for row in tiny_rows(6)])
    assert torch.equal(solver.solve(**batch).sequences, loaded.eval().solve(**batch).sequences)
    tuned, _ = build_solver([], solver=str(tmp_path), dropout=0.3)
    assert {each.self_attn.attention_dropout for each in tuned.encoder.layers} == {0.3}


def test_the_dropout_of_a_solver_on_albert_is_set(tmp_path):
    processor = tiny_processor()
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    albert = AlbertModel(AlbertConfig(vocab_size=len(processor.tokenizer), embedding_size=8, **sizes))
    for part in (MwpSolver.from_encoder_decoder_pretrained(albert, processor), processor):
        part.save_pretrained(tmp_path)
    solver, _ = build_solver([], solver=str(tmp_path), dropout=0.3)
    assert {each.p for each in solver.modules() if isinstance(each, torch.nn.Dropout)} == {0.3}


def test_an_encoder_without_a_limit_of_positions(tmp_path):
    tokenizer = tiny_tokenizer()
    config = XLNetConfig(vocab_size=len(tokenizer), d_model=16, n_layer=1, n_head=2, d_inner=16)
    XLNetModel(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    teacher, processor = build_solver(tiny_rows(), encoder=str(tmp_path), max_length=40)
    assert processor.max_length == 40
    sizes = {"student_hidden_size": 12, "student_heads": 2, "student_intermediate_size": 8, "student_layers": "1"}
    student = make_student(teacher, processor, student_init="random", **sizes)
    assert student.encoder.config.max_position_embeddings == 512
    _, tokenizer = build_classifier(["no", "yes"], SolverArguments(encoder=str(tmp_path), max_length=40))
    assert tokenizer.model_max_length == 40


@pytest.mark.parametrize("layers", ["0,2", "5"])
def test_layers_that_an_encoder_that_is_no_bert_does_not_keep(gemma, layers):
    with pytest.raises(UsageError, match=rf"({layers}|\[0, 2\]) of Gemma3TextModel.*\b4\b"):
        build_solver(tiny_rows(), encoder=str(gemma), encoder_layers=layers)
