"""Fine-tuning of sequence-to-sequence models."""

import pytest

from hf_mwp.trainers import Seq2SeqFineTuningConfig, Seq2SeqFineTuningTrainer
from tests.tiny import tiny_tokenizer
from tests.tiny_seq2seq import KINDS, tiny_pairs, tiny_seq2seq
from tests.trainers.distilling import copy_of, training_logs


def train(folder, kind="bart", size=8, **fields):
    options = {"output_dir": str(folder), "use_cpu": True, "report_to": "none", "disable_tqdm": True}
    options |= {"save_strategy": "no", "logging_steps": 1, "warmup_steps": 0, "max_grad_norm": 0.0, "optim": "sgd"}
    options |= {"per_device_train_batch_size": size, "gradient_accumulation_steps": 8 // size, "max_decode_length": 8}
    trainer = Seq2SeqFineTuningTrainer(
        tiny_seq2seq(kind),
        args=Seq2SeqFineTuningConfig(**(options | fields)),
        train_dataset=tiny_pairs(),
        eval_dataset=tiny_pairs(4, 1),
        processing_class=tiny_tokenizer(),
    )
    trainer.train()
    return trainer


@pytest.mark.parametrize("kind", KINDS)
def test_small_batches_are_a_large_one(tmp_path, kind):
    whole, parts = (train(tmp_path, kind, size, max_steps=2, learning_rate=0.1) for size in (8, 2))
    for ours, theirs in zip(training_logs(whole), training_logs(parts), strict=True):
        assert ours["loss"] == pytest.approx(theirs["loss"], rel=1e-5)
    other = copy_of(parts.model)
    for name, value in whole.model.state_dict().items():
        assert value.flatten().tolist() == pytest.approx(other[name].flatten().tolist(), abs=1e-5), name


def test_the_best_checkpoint_has_the_highest_bleu(tmp_path):
    fields = {"eval_strategy": "epoch", "save_strategy": "epoch", "load_best_model_at_end": True}
    trainer = train(tmp_path, num_train_epochs=2, **fields)
    found = [entry["eval_bleu"] for entry in trainer.state.log_history if "eval_bleu" in entry]
    assert trainer.state.best_metric == max(found)
