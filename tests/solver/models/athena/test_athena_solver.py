"""ATHENA as the decoder of a solver: training, solving, saving."""

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
from tests.test_meta_device import META, OnMeta, mask_is_not_looked_at  # noqa: F401 (a fixture)
from tests.tiny import tiny_processor, tiny_rows


def athena_solver(processor, **fields):
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    encoder = MwpStudentModel(MwpStudentConfig(vocab_size=len(processor.tokenizer), **sizes))
    fields = {"dropout": 0.0, "max_length": 9} | fields
    return MwpSolver.from_encoder_decoder_pretrained(encoder, processor, AthenaModel, decoder_kwargs=fields)


def test_its_symbols_and_columns_come_into_the_processor(tmp_path):
    processor = tiny_processor()
    assert processor.vocabulary.constants == ("1",)
    solver = athena_solver(processor)
    assert processor.vocabulary.constants == ("1", "0", "2", "0.5") == solver.vocabulary.constants
    config = solver.decoder.config
    assert config.initial_constants == ["1"] and config.intermediate_size == 24 and config.num_attention_heads == 2
    rows = tiny_rows(4)
    encoded = processor.encode(rows, with_labels=True, skipped=[])
    batch = solver.make_collator(processor)([{name: encoded[name][row] for name in encoded} for row in range(4)])
    assert isinstance(batch["plans"], PlanBatch) and batch["question_positions"].shape[0] == 4
    processor.save_pretrained(tmp_path)
    saved = MwpProcessor.from_pretrained(tmp_path)
    # What the first decoder only writes with is not what a second one computes with; what a user adds is.
    assert athena_solver(saved).decoder.config.initial_constants == ["1"]
    saved.vocabulary = saved.vocabulary.with_constants(["7", "2"])
    assert athena_solver(saved).decoder.config.initial_constants == ["1", "2", "7"]
    output = solver(**batch)
    assert output.logits.shape == (4, batch["plans"].num_judged) and output.answer_logits.shape[0] == 4


def test_it_learns_and_is_loaded_again_in_the_pipeline(tmp_path):
    processor, rows = tiny_processor(), tiny_rows(24)
    solver = athena_solver(processor)
    before = {name: parameter.detach().clone() for name, parameter in solver.named_parameters()}
    args = SolverTrainingConfig(
        output_dir=str(tmp_path / "run"), num_train_epochs=40, per_device_train_batch_size=12, learning_rate=5e-3,
        decoder_learning_rate=5e-3, report_to="none", use_cpu=True, save_strategy="no", eval_strategy="no",
        disable_tqdm=True, lr_scheduler_type="constant",
    )  # fmt: skip
    trainer = SolverTrainer(model=solver, args=args, train_dataset=rows, eval_dataset=rows, processing_class=processor)
    trainer.train()
    # With one goal the answering layer's attention weights are all 1, and the layers behind them learn nothing.
    still = {f"decoder.answer.{name}.{kind}" for name in ("query", "norm") for kind in ("weight", "bias")}
    unchanged = {name for name, parameter in solver.named_parameters() if torch.equal(parameter, before[name])}
    assert {name for name in unchanged if name.startswith("decoder")} <= still
    assert solver.decoder.deepest_target == 5
    metrics = trainer.evaluate()
    assert metrics["eval_answer_accuracy"] > 0.8

    trainer.save_model(str(tmp_path / "solver"))
    loaded = AutoModel.from_pretrained(tmp_path / "solver")
    assert isinstance(loaded.decoder, AthenaModel) and loaded.decoder.deepest_target == 5
    solve = pipeline("math-word-problem", model=str(tmp_path / "solver"))
    text = rows[0]["text"]
    greedy = solve(text)
    several = solve(text, num_beams=4, top_k=3)
    assert greedy[0]["answer"] == float(rows[0]["answer"])
    assert len(several) == 3 and several[0]["score"] >= several[1]["score"]


def test_targets_that_are_no_thoughts_are_left_out_of_training(tmp_path, caplog):
    processor = tiny_processor()
    solver = athena_solver(processor)
    rows = tiny_rows(6)
    power = {"text": "小明有4个苹果，又买了5个，一共有几个？", "equation": "x=4^5", "answer": "1024", "id": "power"}
    rows.append(rows[0] | power)
    args = SolverTrainingConfig(output_dir=str(tmp_path), report_to="none", use_cpu=True, eval_strategy="no")
    trainer = SolverTrainer(model=solver, args=args, train_dataset=rows, processing_class=processor)
    assert len(trainer.train_dataset) == 6
    assert "power: exponents must be" in caplog.text and "N1 = 5" in caplog.text


def test_a_training_step_of_the_solver_waits_for_no_device():
    processor = tiny_processor()
    solver = athena_solver(processor).to(META).train()
    encoded = processor.encode(tiny_rows(6), with_labels=True, skipped=[])
    batch = solver.make_collator(processor)([{name: encoded[name][row] for name in encoded} for row in range(6)])
    batch = {name: value.to(META) for name, value in batch.items()}
    with OnMeta():
        loss = solver(**batch).loss
        loss.backward()
    assert loss.device == META
