import pytest
import torch
from huggingface_hub import ModelCard
from safetensors.torch import load_file
from transformers import AutoModel

from hf_mwp.commands.hub import write_model_folder
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from tests.tiny import tiny_processor, tiny_solver


def test_folder_has_half_precision_weights_and_loads_in_single_precision(tmp_path):
    processor = tiny_processor()
    solver = tiny_solver(processor)
    before = {name: value.clone() for name, value in solver.state_dict().items()}
    write_model_folder(solver, tmp_path, ModelCard("---\nlanguage: zh\n---\n\n# Tiny\n"), processor)

    stored = load_file(tmp_path / "model.safetensors")
    assert {value.dtype for value in stored.values()} == {torch.float16}
    loaded = AutoModel.from_pretrained(tmp_path)
    assert loaded.dtype == torch.float32
    for name, value in loaded.state_dict().items():
        torch.testing.assert_close(value, before[name].half().float(), rtol=0, atol=0)
    assert MwpProcessor.from_pretrained(tmp_path).vocabulary == processor.vocabulary
    assert ModelCard.load(tmp_path / "README.md").data.language == "zh"

    assert solver.dtype == torch.float32
    for name, value in solver.state_dict().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0)


@pytest.mark.slow
def test_large_weights_are_one_file(tmp_path):
    solver = tiny_solver(tiny_processor())
    # More than the 50 MB at which Transformers can be told to split, in half precision.
    solver.encoder.resize_token_embeddings(1_600_000, mean_resizing=False)
    write_model_folder(solver, tmp_path)
    (weights,) = tmp_path.glob("*.safetensors*")
    assert weights.name == "model.safetensors"
    assert weights.stat().st_size > 50e6
