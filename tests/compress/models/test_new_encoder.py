"""An encoder that the package does not know is registered with the Auto classes, and is then one like any other."""

import pytest
import torch
from torch import nn
from transformers import AutoConfig, AutoModel, PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from hf_mwp import (
    DistillationConfig,
    DistillationTrainer,
    MwpProcessor,
    MwpSolver,
    SolverTrainer,
    SolverTrainingConfig,
)
from tests.tiny import tiny_processor, tiny_rows, tiny_solver


class ConvolutionConfig(PreTrainedConfig):
    model_type = "convolution_of_the_tests"
    vocab_size: int = 40
    hidden_size: int = 16
    num_hidden_layers: int = 2


class ConvolutionModel(PreTrainedModel):
    """Each layer sees a token and its two neighbours; there is no attention."""

    config_class = ConvolutionConfig

    def __init__(self, config):
        super().__init__(config)
        width = config.hidden_size
        self.embeddings = nn.Embedding(config.vocab_size, width)
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 3, padding=1) for _ in range(config.num_hidden_layers))
        self.post_init()

    def get_input_embeddings(self):
        return self.embeddings

    def set_input_embeddings(self, value):
        self.embeddings = value

    def forward(self, input_ids, attention_mask=None, output_hidden_states=False, return_dict=True):
        mask = 1 if attention_mask is None else attention_mask[..., None]
        states = [self.embeddings(input_ids) * mask]
        for layer in self.layers:
            states.append((states[-1] + layer(states[-1].transpose(1, 2)).transpose(1, 2).tanh()) * mask)
        return BaseModelOutput(states[-1], hidden_states=tuple(states) if output_hidden_states else None)


@pytest.fixture(scope="module", autouse=True)
def registered():
    AutoConfig.register(ConvolutionConfig.model_type, ConvolutionConfig, exist_ok=True)
    AutoModel.register(ConvolutionConfig, ConvolutionModel, exist_ok=True)


@pytest.fixture(scope="module")
def processor():
    return tiny_processor(max_length=64)


@pytest.fixture
def solver(processor):
    torch.manual_seed(0)
    return MwpSolver.from_encoder_decoder_pretrained(
        ConvolutionModel(ConvolutionConfig(vocab_size=len(processor.tokenizer))), processor
    )


def arguments(folder, **fields):
    return {"output_dir": str(folder), "max_steps": 2, "use_cpu": True, "report_to": "none", **fields}


def test_it_trains_saves_loads_and_solves(solver, processor, tmp_path):
    trainer = SolverTrainer(
        model=solver,
        args=SolverTrainingConfig(**arguments(tmp_path)),
        train_dataset=tiny_rows(),
        eval_dataset=tiny_rows(6, seed=1),
        processing_class=processor,
    )
    before = {name: value.detach().clone() for name, value in solver.named_parameters()}
    trainer.train()
    assert all(not torch.equal(value, before[name]) for name, value in solver.named_parameters())
    assert 0 <= trainer.evaluate()["eval_answer_accuracy"] <= 1
    trainer.save_model()
    loaded = MwpSolver.from_pretrained(tmp_path)
    assert type(loaded.encoder) is ConvolutionModel
    batch = MwpProcessor.from_pretrained(tmp_path)(["小明有4个苹果，又买了2个，一共有几个？"])
    found = [model.eval().solve(**batch, num_beams=3) for model in (trainer.model, loaded)]
    assert torch.equal(found[0].sequences, found[1].sequences)
    torch.testing.assert_close(found[0].scores, found[1].scores)


@pytest.mark.parametrize("cached", [False, True])
def test_it_learns_from_a_transformer_and_teaches_one(solver, processor, tmp_path, cached):
    other = tiny_solver(processor, layers=4, hidden_size=24, seed=1)
    for name, (student, teacher) in {"student": (solver, other), "teacher": (tiny_solver(processor), solver)}.items():
        fields = arguments(tmp_path / name, cache_teacher_outputs=cached)
        trainer = DistillationTrainer(
            model=student,
            teacher_model=teacher,
            args=DistillationConfig(**fields),
            train_dataset=tiny_rows(),
            processing_class=processor,
        )
        trainer.train()
        (log,) = [entry for entry in trainer.state.log_history if "train_loss" in entry]
        assert log["train_loss"] > 0
