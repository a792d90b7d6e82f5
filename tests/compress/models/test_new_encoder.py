"""An encoder that the package does not know is registered with the Auto classes, and then works like any other."""

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
from tests.slow_parameters import slow_after
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

    def forward(self, input_ids, attention_mask, output_hidden_states=False, return_dict=True):
        mask = attention_mask[..., None]
        states = [self.embeddings(input_ids) * mask]
        for layer in self.layers:
            hidden = states[-1]
            states.append((hidden + layer(hidden.transpose(1, 2)).transpose(1, 2).tanh()) * mask)
        return BaseModelOutput(states[-1], hidden_states=tuple(states))


@pytest.fixture(scope="module")
def processor():
    return tiny_processor(max_length=64)


@pytest.fixture
def solver(processor):
    AutoConfig.register(ConvolutionConfig.model_type, ConvolutionConfig, exist_ok=True)
    AutoModel.register(ConvolutionConfig, ConvolutionModel, exist_ok=True)
    torch.manual_seed(0)
    encoder = ConvolutionModel(ConvolutionConfig(vocab_size=len(processor.tokenizer)))
    return MwpSolver.from_encoder_decoder_pretrained(encoder, processor)


OPTIONS = {"max_steps": 2, "use_cpu": True, "report_to": "none"}


def test_solver_trains_saves_loads_and_solves(solver, processor, tmp_path):
    trainer = SolverTrainer(
        model=solver,
        args=SolverTrainingConfig(str(tmp_path), **OPTIONS),
        train_dataset=tiny_rows(),
        eval_dataset=tiny_rows(6, seed=1),
        processing_class=processor,
    )
    before = {name: parameter.detach().clone() for name, parameter in solver.named_parameters()}
    trainer.train()
    for name, parameter in solver.named_parameters():
        assert not torch.equal(parameter, before[name])
    assert 0 <= trainer.evaluate()["eval_answer_accuracy"] <= 1
    trainer.save_model()
    loaded = MwpSolver.from_pretrained(tmp_path)
    assert type(loaded.encoder) is ConvolutionModel
    batch = MwpProcessor.from_pretrained(tmp_path)(["小明有4个苹果，又买了2个，一共有几个？"])
    expected = trainer.model.eval().solve(**batch, num_beams=3)
    solution = loaded.solve(**batch, num_beams=3)
    assert torch.equal(solution.sequences, expected.sequences)
    torch.testing.assert_close(solution.scores, expected.scores)


@pytest.mark.slow
@pytest.mark.parametrize("is_cached", slow_after(1, [False, True]))
@pytest.mark.parametrize("role", slow_after(1, ["student", "teacher"]))
def test_solver_learns_from_a_transformer_and_teaches_one(role, is_cached, solver, processor, tmp_path):
    transformer = tiny_solver(processor, layers=4 if role == "student" else 2, hidden_size=24, seed=1)
    student, teacher = (solver, transformer) if role == "student" else (transformer, solver)
    trainer = DistillationTrainer(
        model=student,
        teacher_model=teacher,
        args=DistillationConfig(str(tmp_path), cache_teacher_outputs=is_cached, **OPTIONS),
        train_dataset=tiny_rows(),
        processing_class=processor,
    )
    assert trainer.train().training_loss > 0
