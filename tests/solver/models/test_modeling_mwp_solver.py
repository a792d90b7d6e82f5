import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertModel,
    AutoConfig,
    AutoModel,
    BertConfig,
    BertModel,
    BertTokenizerFast,
    DebertaV2Config,
    DebertaV2Model,
    ModernBertConfig,
    ModernBertModel,
    MPNetConfig,
    MPNetModel,
    RobertaConfig,
    RobertaModel,
    T5Config,
    T5EncoderModel,
)

from hf_mwp.compress.models import MwpStudentConfig, MwpStudentModel
from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.models import GTSConfig, GTSDecoder, MwpSolver, MwpSolverConfig
from tests.slow_parameters import slow_after


SIZES = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
}
# Models, their configs, and the length of the texts that they read with 64 positions. RoBERTa and MPNet count
# positions from the padding token, MPNet's from 1.
ENCODERS = [
    (AlbertModel, AlbertConfig, 64),
    (BertModel, BertConfig, 64),
    (DebertaV2Model, DebertaV2Config, 64),
    (ModernBertModel, ModernBertConfig, 64),
    (MPNetModel, MPNetConfig, 62),
    (MwpStudentModel, MwpStudentConfig, 64),
    (RobertaModel, RobertaConfig, 63),
]


@pytest.fixture
def processor(tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"小明有个苹果和梨"]
    vocabulary.write_text("\n".join(words) + "\n", "utf-8")
    return MwpProcessor(BertTokenizerFast(str(vocabulary)), OutputVocabulary(constants=("1",)))


@pytest.fixture
def solver():
    torch.manual_seed(0)
    encoder = MwpStudentConfig(**SIZES, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    decoder = GTSConfig(hidden_size=16, operator_embedding_size=4, constants=["1"], dropout=0.0)
    return MwpSolver(MwpSolverConfig(encoder_config=encoder, decoder_config=decoder)).eval()


@pytest.fixture
def batch():
    mask = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])
    return {
        "input_ids": torch.randint(5, 40, (2, 7), generator=torch.Generator().manual_seed(1)) * mask,
        "attention_mask": mask,
        "number_positions": torch.tensor([[1, 3], [2, -1]]),
        "number_groups": torch.tensor([[0, 1], [0, -1]]),
    }


LABELS = torch.tensor([[0, 6, 7], [5, -100, -100]])


def test_output_has_loss_logits_and_hidden_states(solver, batch):
    output = solver(**batch, labels=LABELS, output_hidden_states=True)
    assert output.logits.shape == (2, 3, 5 + 1 + 2)
    assert output.loss.shape == ()
    assert [tuple(states.shape) for states in output.hidden_states] == [(2, 7, 16)] * 3
    assert solver(**batch).logits is None
    assert isinstance(solver(**batch, labels=LABELS, return_dict=False), tuple)


def test_saved_solver_loads_with_the_auto_classes(solver, batch, tmp_path):
    solver.save_pretrained(tmp_path)
    assert isinstance(AutoConfig.from_pretrained(tmp_path), MwpSolverConfig)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert isinstance(loaded, MwpSolver)
    assert isinstance(loaded.encoder, MwpStudentModel)
    torch.testing.assert_close(loaded.state_dict(), solver.state_dict(), rtol=0, atol=0)
    torch.testing.assert_close(loaded(**batch, labels=LABELS).loss, solver(**batch, labels=LABELS).loss)


@pytest.mark.parametrize("name", ["eager", "sdpa"])
def test_attention_is_chosen_when_loading_or_afterwards(solver, batch, tmp_path, name):
    logits = solver(**batch, labels=LABELS).logits
    solver.save_pretrained(tmp_path)
    solver.set_attn_implementation(name)
    loaded = MwpSolver.from_pretrained(tmp_path, attn_implementation=name).eval()
    for model in (solver, loaded):
        assert model.encoder.config._attn_implementation == name
        torch.testing.assert_close(model(**batch, labels=LABELS).logits, logits)
    if name == "eager":
        attentions = solver(**batch, output_attentions=True).attentions
        assert [tuple(maps.shape) for maps in attentions] == [(2, 2, 7, 7)] * 2


@pytest.mark.parametrize("name", ["eager", "sdpa"])
def test_encoder_keeps_its_attention(processor, name):
    encoder = BertModel._from_config(BertConfig(**SIZES), attn_implementation=name)
    solver = MwpSolver.from_encoder_decoder_pretrained(encoder, processor)
    assert solver.encoder.config._attn_implementation == name
    assert solver.config.encoder_config is solver.encoder.config


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing_enable:FutureWarning")
def test_gradient_checkpointing_gives_the_same_gradients(solver, batch):
    def gradients():
        solver.train().zero_grad()
        solver(**batch, labels=LABELS).loss.backward()
        return {name: weight.grad for name, weight in solver.named_parameters() if weight.grad is not None}

    expected = gradients()
    # The name that transformers 5.17 knows; later versions call it activation checkpointing.
    solver.gradient_checkpointing_enable()
    torch.testing.assert_close(gradients(), expected)


def test_solver_runs_in_bfloat16(solver, batch):
    solver.bfloat16()
    assert solver(**batch, labels=LABELS).loss.isfinite()
    assert solver.solve(**batch).finished.all()


def test_all_parameters_get_a_gradient_from_a_deep_tree(solver, batch):
    # (N0 + N1) - N0 uses merge, both goals, and all scorers; constants and all operators do not occur.
    labels = torch.tensor([[1, 0, 6, 7, 5], [0, 5, 6, -100, -100]])
    solver.train()(**batch, labels=labels).loss.backward()
    assert [name for name, parameter in solver.named_parameters() if parameter.grad is None] == []


@pytest.mark.parametrize(("encoder_class", "config_class", "length"), slow_after(3, ENCODERS))
def test_any_encoder_becomes_a_solver(processor, encoder_class, config_class, length):
    encoder = encoder_class(config_class(**SIZES, pad_token_id=0, max_position_embeddings=64))
    solver = MwpSolver.from_encoder_decoder_pretrained(encoder, processor, decoder_kwargs={"dropout": 0.1}).eval()
    assert getattr(solver.encoder, "pooler", None) is None
    assert solver.config.decoder_config.constants == ["1"]
    assert solver.config.decoder_config.dropout == 0.1
    output = solver.solve(**processor(["小明有4个苹果", "小明有3个苹果和2个梨"]), num_beams=3)
    assert output.finished.all()
    # A text that is longer than the encoder reads is cut, also where only the tokenizer is used.
    batch = processor(["小明有" + "4个苹果和" * 200])
    assert batch["input_ids"].shape[1] == processor.max_length == length
    assert len(processor.tokenizer("小" * 200, truncation=True)["input_ids"]) == length
    assert solver.solve(**batch).finished.all()


def test_encoder_of_a_folder_may_be_cut_and_its_path_is_not_saved(processor, tmp_path):
    BertModel(BertConfig(**SIZES)).save_pretrained(tmp_path / "encoder")
    solver = MwpSolver.from_encoder_decoder_pretrained(tmp_path / "encoder", processor, num_hidden_layers=1)
    assert solver.config.num_hidden_layers == 1
    solver.save_pretrained(tmp_path / "solver")
    assert str(tmp_path) not in (tmp_path / "solver" / "config.json").read_text("utf-8")


def test_added_tokens_are_saved_with_the_model(solver, tmp_path):
    solver.resize_token_embeddings(solver.config.vocab_size + 3, mean_resizing=False)
    assert solver.config.vocab_size == len(solver.get_input_embeddings().weight) == 43
    solver.save_pretrained(tmp_path)
    loaded = MwpSolver.from_pretrained(tmp_path)
    assert torch.equal(loaded.get_input_embeddings().weight, solver.get_input_embeddings().weight)


def test_encoders_that_a_saved_solver_could_not_load_are_refused(processor, monkeypatch):
    encoder = T5EncoderModel(T5Config(vocab_size=40, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2))
    with pytest.raises(ValueError, match=r"T5EncoderModel.*creates T5Model"):
        MwpSolver.from_encoder_decoder_pretrained(encoder, processor)
    encoder = BertModel(BertConfig(**SIZES))
    monkeypatch.setattr(type(encoder.config), "model_type", "of_its_repository")
    with pytest.raises(ValueError, match="no model.*register"):
        MwpSolver.from_encoder_decoder_pretrained(encoder, processor)


def test_encoder_in_a_pickle_is_refused(processor, tmp_path):
    encoder = BertModel(BertConfig(**SIZES))
    encoder.config.save_pretrained(tmp_path)
    torch.save(encoder.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(OSError, match="model.safetensors"):
        MwpSolver.from_encoder_decoder_pretrained(tmp_path, processor)


def test_decoder_must_fit(processor):
    encoder = BertModel(BertConfig(**SIZES))
    with pytest.raises(ValueError, match=r"symbols.*processor.*\['1'\]"):
        MwpSolver.from_encoder_decoder_pretrained(encoder, processor, GTSDecoder(GTSConfig(hidden_size=16)))
    with pytest.raises(Exception, match="encoder_hidden_size 8"):
        MwpSolver.from_encoder_decoder_pretrained(encoder, processor, GTSConfig(hidden_size=8, constants=["1"]))


def test_chinese_student_has_10_3_million_parameters():
    with torch.device("meta"):
        encoder = MwpStudentModel(MwpStudentConfig(vocab_size=21129))
    assert sum(parameter.numel() for parameter in encoder.parameters()) == 10_277_448
