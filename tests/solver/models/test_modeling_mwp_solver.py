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


SIZES = {
    "vocab_size": 40,
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 24,
}
CONFIGS = {
    AlbertModel: AlbertConfig,
    BertModel: BertConfig,
    DebertaV2Model: DebertaV2Config,
    ModernBertModel: ModernBertConfig,
    MPNetModel: MPNetConfig,
    MwpStudentModel: MwpStudentConfig,
    RobertaModel: RobertaConfig,
}


@pytest.fixture
def processor(tmp_path):
    vocabulary = tmp_path / "vocab.txt"
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"小明有个苹果和梨"]
    vocabulary.write_text("\n".join(words) + "\n", "utf-8")
    return MwpProcessor(BertTokenizerFast(str(vocabulary)), OutputVocabulary(constants=("1",)))


def make_solver(**encoder_fields):
    torch.manual_seed(0)
    encoder = MwpStudentConfig(**(SIZES | encoder_fields))
    decoder = GTSConfig(hidden_size=16, operator_embedding_size=4, constants=["1"], dropout=0.0)
    return MwpSolver(MwpSolverConfig(encoder_config=encoder, decoder_config=decoder)).eval()


def make_batch():
    generator = torch.Generator().manual_seed(1)
    mask = torch.tensor([[1] * 7, [1] * 5 + [0] * 2])
    return {
        "input_ids": torch.randint(5, 40, (2, 7), generator=generator) * mask,
        "attention_mask": mask,
        "number_positions": torch.tensor([[1, 3], [2, -1]]),
        "number_groups": torch.tensor([[0, 1], [0, -1]]),
    }


LABELS = torch.tensor([[0, 6, 7], [5, -100, -100]])


def test_output_has_loss_logits_and_hidden_states():
    solver = make_solver()
    output = solver(**make_batch(), labels=LABELS, output_hidden_states=True)
    assert output.logits.shape == (2, 3, 5 + 1 + 2)
    assert output.loss.shape == ()
    assert [tuple(states.shape) for states in output.hidden_states] == [(2, 7, 16)] * 3
    assert solver(**make_batch()).logits is None
    assert isinstance(solver(**make_batch(), labels=LABELS, return_dict=False), tuple)


def test_save_and_load_with_the_auto_classes(tmp_path):
    solver = make_solver()
    solver.save_pretrained(tmp_path)
    assert isinstance(AutoConfig.from_pretrained(tmp_path), MwpSolverConfig)
    loaded = AutoModel.from_pretrained(tmp_path)
    assert isinstance(loaded, MwpSolver)
    assert isinstance(loaded.encoder, MwpStudentModel)
    assert all(torch.equal(value, loaded.state_dict()[name]) for name, value in solver.state_dict().items())
    torch.testing.assert_close(loaded(**make_batch(), labels=LABELS).loss, solver(**make_batch(), labels=LABELS).loss)


def test_eager_equals_sdpa_and_gives_attention_maps():
    solver = make_solver()
    sdpa = solver(**make_batch(), labels=LABELS)
    solver.set_attn_implementation("eager")
    eager = solver(**make_batch(), labels=LABELS, output_attentions=True)
    torch.testing.assert_close(eager.logits, sdpa.logits)
    assert [tuple(maps.shape) for maps in eager.attentions] == [(2, 2, 7, 7)] * 2


def test_attention_can_be_chosen_when_loading_and_afterwards(tmp_path):
    solver = make_solver()
    before = solver(**make_batch(), labels=LABELS).logits
    solver.save_pretrained(tmp_path)
    for name in ("eager", "sdpa"):
        solver.set_attn_implementation(name)
        loaded = MwpSolver.from_pretrained(tmp_path, attn_implementation=name).eval()
        for each in (solver, loaded):
            assert each.encoder.config._attn_implementation == name
            torch.testing.assert_close(each(**make_batch(), labels=LABELS).logits, before)


def test_a_given_encoder_keeps_its_attention(processor):
    for name in ("eager", "sdpa"):
        encoder = BertModel._from_config(BertConfig(**SIZES), attn_implementation=name)
        solver = MwpSolver.from_encoder_decoder_pretrained(encoder, processor)
        assert solver.encoder.config._attn_implementation == name
        assert solver.config.encoder_config is solver.encoder.config


@pytest.mark.filterwarnings("ignore:.*gradient_checkpointing_enable:FutureWarning")
def test_gradient_checkpointing_gives_the_same_gradients():
    gradients = []
    for checkpointing in (False, True):
        solver = make_solver(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0).train()
        if checkpointing:
            # The name that transformers 5.17 knows; later versions call it activation checkpointing.
            solver.gradient_checkpointing_enable()
        solver(**make_batch(), labels=LABELS).loss.backward()
        gradients.append([parameter.grad for parameter in solver.parameters() if parameter.grad is not None])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other)


def test_bfloat16():
    solver = make_solver().bfloat16()
    output = solver(**make_batch(), labels=LABELS)
    assert output.loss.isfinite()
    assert solver.solve(**make_batch()).finished.all()


def test_every_parameter_gets_a_gradient_from_a_deep_tree():
    solver = make_solver().train()
    # (N0 + N1) - N0 uses merge, both goals, and all scorers; constants and all operators do not occur.
    solver(**make_batch(), labels=torch.tensor([[1, 0, 6, 7, 5], [0, 5, 6, -100, -100]])).loss.backward()
    without = [name for name, parameter in solver.named_parameters() if parameter.grad is None]
    assert without == []


@pytest.mark.parametrize("encoder_class", CONFIGS)
def test_any_encoder_becomes_a_solver(processor, encoder_class):
    encoder = encoder_class(CONFIGS[encoder_class](**SIZES, pad_token_id=0, max_position_embeddings=64))
    solver = MwpSolver.from_encoder_decoder_pretrained(encoder, processor, decoder_kwargs={"dropout": 0.1})
    assert getattr(solver.encoder, "pooler", None) is None
    assert solver.config.decoder_config.constants == ["1"]
    assert solver.config.decoder_config.dropout == 0.1
    batch = processor(["小明有4个苹果", "小明有3个苹果和2个梨"])
    output = solver.eval().solve(**batch, num_beams=3)
    assert output.finished.all()
    # A text that is longer than the encoder reads is cut.
    batch = processor(["小明有" + "4个苹果和" * 200])
    # RoBERTa and MPNet count positions from the padding token on, the latter's is always 1.
    length = {RobertaModel: 63, MPNetModel: 62}.get(encoder_class, 64)
    assert batch["input_ids"].shape[1] == processor.max_length == length
    # Also where only the tokenizer is used.
    assert len(processor.tokenizer("小" * 200, truncation=True)["input_ids"]) == length
    assert solver.solve(**batch).finished.all()
    processor.decode(output.sequences[0, 0])


def test_an_encoder_loads_from_its_folder_and_may_be_cut(processor, tmp_path):
    BertModel(BertConfig(**SIZES)).save_pretrained(tmp_path)
    solver = MwpSolver.from_encoder_decoder_pretrained(tmp_path, processor, num_hidden_layers=1)
    assert solver.config.num_hidden_layers == 1


def test_more_tokens_are_saved_with_the_model(tmp_path):
    solver = make_solver()
    solver.resize_token_embeddings(solver.config.vocab_size + 3, mean_resizing=False)
    assert solver.config.vocab_size == len(solver.get_input_embeddings().weight) == 43
    solver.save_pretrained(tmp_path)
    again = MwpSolver.from_pretrained(tmp_path)
    assert torch.equal(again.get_input_embeddings().weight, solver.get_input_embeddings().weight)


def test_where_an_encoder_was_loaded_from_is_not_saved(processor, tmp_path):
    BertModel(BertConfig(**SIZES)).save_pretrained(tmp_path / "encoder")
    solver = MwpSolver.from_encoder_decoder_pretrained(tmp_path / "encoder", processor)
    solver.save_pretrained(tmp_path / "solver")
    assert str(tmp_path) not in (tmp_path / "solver" / "config.json").read_text("utf-8")


def test_an_encoder_that_a_saved_solver_could_not_load_is_refused(processor, monkeypatch):
    encoder = T5EncoderModel(T5Config(vocab_size=40, d_model=16, d_kv=8, d_ff=16, num_layers=1, num_heads=2))
    with pytest.raises(ValueError, match=r"T5EncoderModel.*creates T5Model"):
        MwpSolver.from_encoder_decoder_pretrained(encoder, processor)
    encoder = BertModel(BertConfig(**SIZES))
    monkeypatch.setattr(type(encoder.config), "model_type", "of_its_repository")
    with pytest.raises(ValueError, match="no model.*register"):
        MwpSolver.from_encoder_decoder_pretrained(encoder, processor)


def test_an_encoder_in_a_pickle_is_refused(processor, tmp_path):
    encoder = BertModel(BertConfig(**SIZES))
    encoder.config.save_pretrained(tmp_path)
    torch.save(encoder.state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(OSError, match="model.safetensors"):
        MwpSolver.from_encoder_decoder_pretrained(tmp_path, processor)


def test_a_given_decoder_must_fit(processor):
    encoder = BertModel(BertConfig(**SIZES))
    with pytest.raises(ValueError, match=r"symbols.*processor.*\['1'\]"):
        MwpSolver.from_encoder_decoder_pretrained(encoder, processor, GTSDecoder(GTSConfig(hidden_size=16)))
    with pytest.raises(Exception, match="encoder_hidden_size 8"):
        MwpSolver.from_encoder_decoder_pretrained(encoder, processor, GTSConfig(hidden_size=8, constants=["1"]))


def test_the_chinese_student_has_10_3_million_parameters():
    with torch.device("meta"):
        encoder = MwpStudentModel(MwpStudentConfig(vocab_size=21129))
    assert sum(parameter.numel() for parameter in encoder.parameters()) == 10_277_448
