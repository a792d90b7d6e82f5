"""The example that prunes a language model and distils the rest from the original, with tiny models."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM

from hf_mwp.compress.models.architecture import layer_parts
from hf_mwp.utils.usage_error import UsageError
from tests.examples.scripts import load_script, write_json_lines
from tests.tiny import tiny_rows, tiny_tokenizer
from tests.tiny_causal import tiny_causal


@pytest.fixture(scope="module")
def script():
    return load_script("prune_language_model.py")


@pytest.fixture
def run(script, tmp_path, monkeypatch):
    """A function that prunes a model of a type, saved with a tokenizer and rows, and returns `metrics.json`."""
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")

    def prune(model_type, *arguments):
        model = tmp_path / "model"
        tiny_causal(model_type).save_pretrained(model)
        tiny_tokenizer().save_pretrained(model)
        rows = [{"question": row["text"], "answer": "4"} for row in tiny_rows(24)]
        argv = ["--model", str(model), "--output_dir", str(tmp_path / "out"), "--text_columns", "question", "answer"]
        argv += ["--train_file", write_json_lines(tmp_path / "train.jsonl", rows[:16])]
        argv += ["--validation_file", write_json_lines(tmp_path / "dev.jsonl", rows[16:])]
        argv += ["--max_length", "16", "--use_cpu", "true", "--per_device_train_batch_size", "4", "--max_steps", "6"]
        argv += ["--learning_rate", "1e-3", "--save_steps", "2", "--new_tokens", "4", "--scored_rows", "10"]
        assert script.main([*argv, *arguments]) == 0
        return json.loads((tmp_path / "out" / "metrics.json").read_text("utf-8"))

    return prune


@pytest.mark.slow
def test_model_is_cut_mended_exported_and_generates_in_a_new_process(run, tmp_path, capsys):
    metrics = run("gemma3_text", "--neurons", "0.25", "--uniform", "true", "--seed", "3")
    stages = metrics["stages"]
    assert list(stages) == ["original", "scores", "cut", "mended", "stock", "texts"]
    assert stages["scores"]["examples"] == 10
    mended = AutoModelForCausalLM.from_pretrained(tmp_path / "out" / "mended")
    assert [layer.num_neurons for layer in layer_parts(mended)] == [36, 36]
    # The tables of tokens are frozen, all other weights of the cut model are trained.
    cut = AutoModelForCausalLM.from_pretrained(tmp_path / "out" / "cut").state_dict()
    unchanged = [name for name, value in mended.state_dict().items() if value.equal(cut[name])]
    assert unchanged == ["model.embed_tokens.weight", "lm_head.weight"]
    # Removed neurons: 12 of 2 layers, with two rows and a column of width 32.
    difference = stages["original"]["parameters"] - stages["mended"]["parameters"]
    assert difference == 2 * 12 * 3 * 32
    assert stages["stock"]["perplexity"] == pytest.approx(stages["mended"]["perplexity"], rel=1e-4)
    original_loss = stages["original"]["loss"]
    assert abs(stages["mended"]["loss"] - original_loss) < abs(stages["cut"]["loss"] - original_loss)
    texts = stages["texts"]
    assert texts["stock"] == {"class": "Gemma3ForCausalLM", "text": texts["mended"]["text"]}
    assert texts["cut"]["class"] == texts["mended"]["class"] == "CutGemma3ForCausalLM"
    assert "| stock |" in capsys.readouterr().out


@pytest.mark.slow
def test_completed_stages_are_skipped_and_an_interrupted_one_resumes(run, script, tmp_path, monkeypatch, capsys):
    trainer_class = script.DistillationTrainer

    class InterruptedTrainer(trainer_class):
        def training_step(self, *args, **kwargs):
            if self.state.global_step == 5:
                raise KeyboardInterrupt
            return super().training_step(*args, **kwargs)

    monkeypatch.setattr(script, "DistillationTrainer", InterruptedTrainer)
    with pytest.raises(KeyboardInterrupt):
        run("llama")
    checkpoints = []

    class ResumedTrainer(trainer_class):
        def train(self, resume_from_checkpoint=None):
            checkpoints.append(resume_from_checkpoint)
            return super().train(resume_from_checkpoint)

    monkeypatch.setattr(script, "DistillationTrainer", ResumedTrainer)
    capsys.readouterr()
    metrics = run("llama")
    assert [checkpoint.rpartition("-")[2] for checkpoint in checkpoints] == ["4"]
    assert "cut: complete\nmended: running\n" in capsys.readouterr().out
    # Nothing is trained again.
    assert run("llama")["stages"] == metrics["stages"]
    assert len(checkpoints) == 1
    with pytest.raises(UsageError, match="neurons: 0.2 -> 0.3"):
        run("llama", "--neurons", "0.3")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--neurons", "1"], "below 1, got 1"),
        (["--neurons", "0"], "Nothing would be removed"),
        (["--text_columns", "question", "solution"], r"no columns \['solution'\]"),
    ],
)
def test_impossible_options_are_named(run, arguments, message):
    with pytest.raises(ValueError, match=message):
        run("llama", *arguments)


@pytest.mark.slow
@pytest.mark.parametrize("model_type", ["qwen3", "phi3", "gpt2"])
def test_heads_and_neurons_of_other_types_are_removed(run, tmp_path, model_type):
    stages = run(model_type, "--neurons", "0.25", "--heads", "0.5", "--uniform", "true", "--train_embeddings", "true")
    stages = stages["stages"]
    assert stages["stock"]["perplexity"] == pytest.approx(stages["mended"]["perplexity"], rel=1e-4)
    cut = AutoModelForCausalLM.from_pretrained(tmp_path / "out" / "cut")
    assert [layer.num_heads for layer in layer_parts(cut)] == [2, 2]
    mended = AutoModelForCausalLM.from_pretrained(tmp_path / "out" / "mended")
    assert not torch.equal(cut.get_input_embeddings().weight, mended.get_input_embeddings().weight)
