"""ATHENA as the decoder of a solver: training, solving, saving."""

import pytest
import torch
from transformers import AutoModel, pipeline

from hf_mwp import (
    AthenaModel,
    MwpProcessor,
    MwpSolver,
    MwpStudentConfig,
    MwpStudentModel,
    SolverTrainer,
    SolverTrainingConfig,
)
from hf_mwp.solver.models.athena import PlanBatch
from tests.solver.encoded_rows import rows_of
from tests.solver.training.conftest import QUIET
from tests.tiny import tiny_processor, tiny_rows


def athena_solver(processor):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    encoder = MwpStudentModel(MwpStudentConfig(vocab_size=len(processor.tokenizer), **sizes))
    fields = {"dropout": 0.0, "max_length": 9}
    return MwpSolver.from_encoder_decoder_pretrained(encoder, processor, AthenaModel, decoder_kwargs=fields)


def initial_constants(processor):
    return athena_solver(processor).decoder.config.initial_constants


def test_symbols_and_columns_of_the_decoder_are_added_to_the_processor(tmp_path):
    processor = tiny_processor()
    assert processor.vocabulary.constants == ("1",)
    solver = athena_solver(processor)
    assert processor.vocabulary.constants == ("1", "0", "2", "0.5") == solver.vocabulary.constants
    config = solver.decoder.config
    assert (config.initial_constants, config.intermediate_size, config.num_attention_heads) == (["1"], 24, 2)
    columns = processor.encode(tiny_rows(4), with_labels=True, skipped=[])
    batch = solver.make_collator(processor)(rows_of(columns))
    assert isinstance(batch["plans"], PlanBatch)
    assert len(batch["question_positions"]) == 4
    output = solver(**batch)
    assert output.logits.shape == (4, batch["plans"].num_judged)
    assert len(output.answer_logits) == 4
    # Constants that the first decoder only writes are not initial thoughts of a second one; those of the user are.
    processor.save_pretrained(tmp_path)
    saved = MwpProcessor.from_pretrained(tmp_path)
    assert initial_constants(saved) == ["1"]
    saved.vocabulary = saved.vocabulary.with_constants(["7", "2"])
    assert initial_constants(saved) == ["1", "2", "7"]


def test_solver_learns_and_is_loaded_in_the_pipeline(tmp_path):
    processor = tiny_processor()
    rows = tiny_rows(24)
    solver = athena_solver(processor)
    before = {name: parameter.detach().clone() for name, parameter in solver.decoder.named_parameters()}
    args = SolverTrainingConfig(
        output_dir=str(tmp_path),
        num_train_epochs=6,
        per_device_train_batch_size=12,
        learning_rate=5e-3,
        decoder_learning_rate=5e-3,
        save_strategy="no",
        lr_scheduler_type="constant",
        **QUIET,
    )
    trainer = SolverTrainer(model=solver, args=args, train_dataset=rows, eval_dataset=rows, processing_class=processor)
    loss = trainer.evaluate()["eval_loss"]
    trainer.train()
    # With one goal the answering layer's attention weights are all 1, and the layers behind them learn nothing.
    for name, parameter in solver.decoder.named_parameters():
        is_behind = name.startswith(("answer.query.", "answer.norm."))
        assert is_behind or not torch.equal(parameter, before[name]), name
    assert solver.decoder.deepest_target == 5
    assert trainer.evaluate()["eval_loss"] < 0.7 * loss

    trainer.save_model()
    loaded = AutoModel.from_pretrained(tmp_path)
    assert isinstance(loaded.decoder, AthenaModel)
    assert loaded.decoder.deepest_target == 5
    solve = pipeline("math-word-problem", model=str(tmp_path))
    text = rows[0]["text"]
    inputs = processor([text])
    inputs.pop("attention_mask")
    solved = solver.eval().solve(**inputs)
    assert solve(text)[0]["prefix"] == processor.decode(solved.sequences[0, 0]).to_prefix()
    answers = solve(text, num_beams=4, top_k=3)
    assert len(answers) == 3
    assert answers[0]["score"] >= answers[1]["score"]
    with pytest.raises(ValueError, match="AthenaModel has no margin of scores. Remove `score_margin`"):
        solve(text, score_margin=3)


def test_targets_that_are_not_thoughts_are_left_out_of_training(tmp_path, caplog):
    processor = tiny_processor()
    solver = athena_solver(processor)
    rows = tiny_rows(6)
    power = {"text": "小明有4个苹果，又买了5个，一共有几个？", "equation": "x=4^5", "answer": "1024", "id": "power"}
    rows.append(rows[0] | power)
    args = SolverTrainingConfig(output_dir=str(tmp_path), **QUIET)
    trainer = SolverTrainer(model=solver, args=args, train_dataset=rows, processing_class=processor)
    assert len(trainer.train_dataset) == 6
    assert "power: exponents must be" in caplog.text
    assert "N1 = 5" in caplog.text
