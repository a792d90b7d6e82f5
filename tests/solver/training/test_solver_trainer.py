import logging

import pytest
import torch
from transformers import AutoModel, TrainerCallback

from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.metrics import answers_match
from hf_mwp.solver.training import SolverDistillationConfig, SolverTrainer, SolverTrainingConfig
from hf_mwp.solver.training.solver_dataset import prepare_training_rows
from tests.tiny import tiny_classifier, tiny_dataset, tiny_processor, tiny_rows, tiny_solver, tiny_tokenizer


@pytest.fixture
def trainer_of(processor, tmp_path):
    def make(model=None, rows=None, eval_rows=None, callbacks=None, keywords=None, **fields):
        defaults = {"output_dir": str(tmp_path), "use_cpu": True, "report_to": "none", "disable_tqdm": True}
        defaults |= {"save_strategy": "no", "per_device_train_batch_size": 8, "num_train_epochs": 1}
        keywords = {"processing_class": processor} | (keywords or {})
        return SolverTrainer(
            model=tiny_solver(processor) if model is None else model,
            args=SolverTrainingConfig(**(defaults | fields)),
            train_dataset=tiny_rows() if rows is None else rows,
            eval_dataset=tiny_rows(12, seed=1) if eval_rows is None else eval_rows,
            callbacks=callbacks,
            **keywords,
        )

    return make


@pytest.mark.parametrize("kind", ["torch", "numpy"])
def test_datasets_may_have_a_format(trainer_of, kind):
    rows, held_out = tiny_dataset(8).with_format(kind), tiny_dataset(4, seed=1).with_format(kind)
    trainer = trainer_of(rows=rows, eval_rows=held_out, max_steps=1)
    trainer.train()
    assert trainer.evaluate()["eval_num_problems"] == 4 and rows.format["type"] == kind


def test_a_transform_of_a_dataset_is_applied(processor):
    changed = tiny_dataset(2).with_transform(
        lambda rows: {**rows, "text": ["一共有，" + each for each in rows["text"]]}
    )
    lengths = [prepare_training_rows(each, processor)["length"] for each in (tiny_dataset(2), changed)]
    assert all(plain < longer for plain, longer in zip(*lengths, strict=True))


@pytest.fixture(scope="module")
def trained(processor, tmp_path_factory):
    """A solver that has learned the templates, and its trainer."""
    folder = tmp_path_factory.mktemp("trained")
    args = SolverTrainingConfig(
        output_dir=str(folder),
        learning_rate=3e-3,
        decoder_learning_rate=5e-3,
        train_sampling_strategy="random",  # a batch of like lengths is a batch of one template
        num_train_epochs=10,
        per_device_train_batch_size=8,
        eval_strategy="epoch",
        save_strategy="epoch",
        save_total_limit=2,
        load_best_model_at_end=True,
        use_cpu=True,
        report_to="none",
        disable_tqdm=True,
    )
    trainer = SolverTrainer(
        model=tiny_solver(processor, hidden_size=32),
        args=args,
        train_dataset=tiny_rows(120),
        eval_dataset=tiny_rows(24, seed=1),
        processing_class=processor,
    )
    trainer.train()
    return trainer


def texts_and_labels(rows):
    return [MathWordProblem(row["text"], row["equation"], row["answer"]) for row in rows]


def copy_of(model):
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def test_rows_whose_values_are_texts_and_numbers(processor):
    rows = [{**row, "id": number} for number, row in enumerate(tiny_rows(2))]
    rows += [{"id": "b", "text": "小明有2个苹果，又买了1盒", "equation": "2*0.5", "answer": 1}]
    rows += [{"text": "有2个苹果", "equation": "2+1", "answer": float("nan"), "language": float("nan")}]
    prepared = prepare_training_rows(rows, processor)
    assert prepared["id"] == ["0", "1", None] and prepared["answer"][2] is None and prepared["language"][2] is None


def test_every_trainable_parameter_changes_and_no_frozen_one(trainer_of):
    trainer = trainer_of(warmup_steps=0)  # the first step of a warm-up has rate 0
    frozen = "encoder.embeddings.word_embeddings.weight"
    trainer.model.get_parameter(frozen).requires_grad_(False)
    before = copy_of(trainer.model)
    trainer.train()
    for name, parameter in trainer.model.named_parameters():
        assert torch.equal(parameter, before[name]) == (name == frozen), name


def test_it_learns_and_reports_accuracies_by_level(trained):
    metrics = trained.evaluate()
    assert metrics["eval_answer_accuracy"] == 1.0
    assert metrics["eval_answer_accuracy_low"] == metrics["eval_answer_accuracy_medium"] == 1.0
    assert (metrics["eval_num_problems"], metrics["eval_num_problems_low"]) == (24, 20)
    assert metrics["eval_equation_accuracy"] == metrics["eval_canonical_equation_accuracy"] == 1.0
    assert "eval_answer_accuracy_high" not in metrics


def test_figures_equal_those_of_one_problem_at_a_time(trainer_of, processor):
    rows = tiny_rows(13, seed=2)
    fields = {"learning_rate": 3e-3, "decoder_learning_rate": 5e-3, "num_train_epochs": 3}
    solver = tiny_solver(processor, hidden_size=32)
    trainer = trainer_of(solver, tiny_rows(120), rows, per_device_eval_batch_size=5, **fields)
    trainer.train()
    metrics = trainer.evaluate()
    model, losses, right = trainer.model.eval(), [], []
    for problem in texts_and_labels(rows):
        columns = processor.encode([problem], with_labels=True)
        batch = MwpCollator(processor)([{name: values[0] for name, values in columns.items()}])
        with torch.no_grad():
            losses.append(model(**batch).loss.item())
        batch = {name: batch[name] for name in ("input_ids", "attention_mask", "number_positions")}
        expression = processor.decode(model.solve(**batch).sequences[0, 0].tolist())
        right.append(answers_match(expression.evaluate(problem.numbers), problem.answer_value))
    assert metrics["eval_loss"] == pytest.approx(sum(losses) / 13, rel=1e-5)
    assert metrics["eval_answer_accuracy"] == pytest.approx(sum(right) / 13)
    assert 0 < sum(right) < 13


def test_predictions_come_in_the_order_of_the_rows(trained, processor):
    rows = tiny_rows(17, seed=3)
    output = trained.predict(rows)
    sequences, scores = output.predictions
    assert output.label_ids.tolist() == list(range(17))
    assert "test_answer_accuracy" in output.metrics
    for problem, ids, score in zip(texts_and_labels(rows), sequences, scores, strict=True):
        assert processor.decode(ids) == problem.expression and score <= 0


def test_evaluations_do_not_drop_rows(trainer_of):
    fields = {"dataloader_drop_last": True, "per_device_train_batch_size": 4, "per_device_eval_batch_size": 4}
    trainer = trainer_of(None, tiny_rows(10), tiny_rows(7), **fields)
    assert trainer.evaluate()["eval_num_problems"] == 7
    assert len(trainer.predict(tiny_rows(5)).label_ids) == 5
    assert len(trainer.get_train_dataloader()) == 2


def test_best_checkpoint_by_answer_accuracy(trained):
    evaluations = [entry for entry in trained.state.log_history if "eval_answer_accuracy" in entry]
    best = max(entry["eval_answer_accuracy"] for entry in evaluations)
    first = next(entry for entry in evaluations if entry["eval_answer_accuracy"] == best)
    assert trained.state.best_metric == best
    assert trained.state.best_model_checkpoint.endswith(f"checkpoint-{first['step']}")
    saved = AutoModel.from_pretrained(trained.state.best_model_checkpoint)
    for name, value in saved.state_dict().items():
        assert torch.equal(value, trained.model.state_dict()[name]), name


def test_saved_folder_loads_and_solves(trained, tmp_path):
    trained.save_model(str(tmp_path))
    model, processor = AutoModel.from_pretrained(tmp_path), MwpProcessor.from_pretrained(tmp_path)
    inputs = processor("小明有4个苹果，又买了12个，一共有几个？")
    solved = model.eval().solve(**{name: inputs[name] for name in ("input_ids", "attention_mask", "number_positions")})
    assert processor.decode(solved.sequences[0, 0].tolist()).to_prefix() == ["+", "N0", "N1"]


def test_rows_that_cannot_be_encoded(trainer_of, caplog, monkeypatch):
    rows = tiny_rows(12, seed=1)
    rows[3]["equation"] = "x=(1+"
    rows[4]["equation"], rows[5]["equation"] = "x=77+1", "x=78+1"
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    with caplog.at_level("WARNING"):
        trainer = trainer_of(rows=rows, eval_rows=rows)
    assert len(trainer.train_dataset) == 9
    first, *lines = caplog.records[0].getMessage().splitlines()
    assert "3 of 12 training rows" in first
    assert [line.partition(":")[0].split() for line in lines] == [["2,", "e.g.", "tiny-4"], ["1,", "e.g.", "tiny-3"]]
    assert "77" in lines[0] and all(len(line) < 80 for line in lines)
    metrics = trainer.evaluate()
    # All count, in batches with and without problems that have labels.
    assert metrics["eval_num_problems"] == 12 and metrics["eval_loss"] > 0
    assert trainer.evaluate(rows[3:5])["eval_num_problems"] == 2


def test_data_sets_and_lists_raw_and_encoded_are_the_same(trainer_of, processor):
    losses = []
    for rows in (tiny_rows(), tiny_dataset(), processor.prepare_dataset(tiny_dataset())):
        trainer = trainer_of(rows=rows, eval_rows=rows, logging_steps=1)
        trainer.train()
        metrics = trainer.evaluate()
        losses.append(
            [entry["loss"] for entry in trainer.state.log_history if "loss" in entry] + [metrics["eval_loss"]]
        )
    assert losses[0] == losses[1] == losses[2] and len(losses[0]) == 4


def test_several_evaluation_sets(trainer_of):
    trainer = trainer_of(eval_rows={"a": tiny_rows(6, seed=1), "b": tiny_dataset(12, seed=2)})
    metrics = trainer.evaluate()
    assert (metrics["eval_a_num_problems"], metrics["eval_b_num_problems"]) == (6, 12)
    assert {"eval_a_loss", "eval_b_answer_accuracy"} <= set(metrics)


def test_accumulation_changes_nothing(trainer_of, processor):
    runs = []
    for size, steps in ((8, 1), (4, 2)):
        trainer = trainer_of(
            model=tiny_solver(processor),
            per_device_train_batch_size=size,
            gradient_accumulation_steps=steps,
            num_train_epochs=2,
            logging_steps=1,
        )
        trainer.train()
        logs = [(entry["loss"], entry["grad_norm"]) for entry in trainer.state.log_history if "loss" in entry]
        runs.append((logs, trainer.model.state_dict()))
    (logs, weights), (other_logs, other_weights) = runs
    assert len(logs) == 6
    for ours, theirs in zip(logs, other_logs, strict=True):
        assert ours == pytest.approx(theirs, rel=1e-4)
    for name, value in weights.items():
        torch.testing.assert_close(value, other_weights[name], rtol=1e-4, atol=1e-5)


def test_rates_and_decays_of_encoder_and_decoder(trainer_of):
    fields = {"learning_rate": 1e-4, "decoder_learning_rate": 2e-3, "weight_decay": 0.01, "decoder_weight_decay": 0.1}
    trainer = trainer_of(**fields)
    optimizer = trainer.create_optimizer()
    names = {id(parameter): name for name, parameter in trainer.model.named_parameters()}
    seen = {}
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            assert id(parameter) not in seen
            seen[id(parameter)] = (group["lr"], group["weight_decay"])
    assert len(seen) == len(names)
    for key, (rate, decay) in seen.items():
        is_decoder = names[key].startswith("decoder.")
        assert rate == (2e-3 if is_decoder else 1e-4), names[key]
        exempt = names[key].endswith("bias") or "LayerNorm" in names[key]
        assert decay == (0.0 if exempt else 0.1 if is_decoder else 0.01), names[key]
    trainer.create_scheduler(num_training_steps=10)
    assert trainer.lr_scheduler.base_lrs[0] == 1e-4
    assert trainer_of(decoder_learning_rate=None).create_optimizer().param_groups[-1]["lr"] == 1e-4


def test_early_stopping(trainer_of):
    trainer = trainer_of(
        learning_rate=0.0,
        decoder_learning_rate=0.0,
        num_train_epochs=20,
        eval_strategy="epoch",
        early_stopping_patience=2,
    )
    trainer.train()
    # The first evaluation is the best for ever.
    assert trainer.state.epoch == 3.0


def test_early_stopping_counts_on_after_resuming(trainer_of, tmp_path):
    fields = {"learning_rate": 0.0, "decoder_learning_rate": 0.0, "eval_strategy": "epoch", "save_strategy": "epoch"}
    fields |= {"num_train_epochs": 20, "early_stopping_patience": 3, "output_dir": str(tmp_path)}
    trainer_of(**fields).train()
    epochs = []
    checkpoints = sorted(tmp_path.glob("checkpoint-*"), key=lambda path: int(path.name[11:]))
    assert len(checkpoints) == 4
    for checkpoint in checkpoints:
        trainer = trainer_of(**fields)
        trainer.train(resume_from_checkpoint=str(checkpoint))
        epochs.append(trainer.state.epoch)
    assert epochs == [4.0, 4.0, 4.0, 4.0]
    # A new patience counts, and a second training begins anew.
    trainer = trainer_of(**{**fields, "early_stopping_patience": 5})
    trainer.train(resume_from_checkpoint=str(checkpoints[-1]))
    assert trainer.state.epoch == 6.0
    trainer.train()
    assert trainer.state.epoch == 6.0


def test_loss_alone(trainer_of):
    trainer = trainer_of(prediction_loss_only=True, eval_strategy="epoch", metric_for_best_model="loss")
    trainer.train()
    metrics = trainer.evaluate()
    assert "eval_loss" in metrics and "eval_answer_accuracy" not in metrics


def test_users_metrics_and_callbacks(trainer_of):
    calls = []

    class Counter(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            calls.append(state.global_step)

    def compute_metrics(prediction):
        sequences, scores, _ = prediction.predictions
        return {"rows": len(set(prediction.label_ids.tolist())), "shape": len(sequences) + len(scores)}

    trainer = trainer_of(callbacks=[Counter()], keywords={"compute_metrics": compute_metrics})
    trainer.train()
    assert calls == [1, 2, 3]
    metrics = trainer.evaluate()
    assert (metrics["eval_rows"], metrics["eval_shape"]) == (12, 24) and "eval_answer_accuracy" in metrics


def test_beams_and_length_reach_the_decoder(trainer_of, monkeypatch):
    trainer = trainer_of(num_beams=3, max_decode_length=5)
    seen, solve = [], trainer.model.solve
    monkeypatch.setattr(
        trainer.model,
        "solve",
        lambda **inputs: seen.append((inputs["num_beams"], inputs["max_length"])) or solve(**inputs),
    )
    trainer.evaluate()
    assert set(seen) == {(3, 5)}


def test_bf16(trainer_of):
    trainer = trainer_of(bf16=True)
    trainer.train()
    assert trainer.evaluate()["eval_num_problems"] == 12
    assert all(parameter.dtype == torch.float32 for parameter in trainer.model.parameters())


def test_wrong_use_is_named(trainer_of, processor, tmp_path):
    from datasets import DatasetDict

    with pytest.raises(TypeError, match="`BertForSequenceClassification`.*`MwpSolver.from_encoder_decoder_pretrained"):
        trainer_of(model=tiny_classifier())
    with pytest.raises(TypeError, match="MwpProcessor"):
        trainer_of(keywords={"processing_class": tiny_tokenizer()})
    with pytest.raises(TypeError, match="SolverTrainingConfig|BaseConfig"):
        SolverTrainer(model=tiny_solver(processor), args=object(), processing_class=processor)
    with pytest.raises(ValueError, match=r"symbols.*\['1'\].*\['2'\]"):
        other = MwpProcessor(tiny_tokenizer(), OutputVocabulary(constants=("2",)))
        trainer_of(keywords={"processing_class": other})
    with pytest.raises(ValueError, match=r"\b47 .*\b31\b.*`processor.resize_embeddings"):
        other = tiny_processor(indexed_numbers=True)
        trainer_of(model=tiny_solver(processor), keywords={"processing_class": other})
    for rows in (tiny_rows(), tiny_dataset()):
        with pytest.raises(ValueError, match="English.*`train_dataset` .*language='zh'"):
            trainer_of(rows=rows, keywords={"processing_class": tiny_processor(language="en")})
    with pytest.raises(TypeError, match="`train_dataset`.*DatasetDict"):
        trainer_of(rows=DatasetDict({"train": tiny_dataset()}))
    with pytest.raises(ValueError, match="`model_init`"):
        trainer_of(keywords={"model_init": lambda: tiny_solver(processor)})
    with pytest.raises(ValueError, match="`model_init`"):
        SolverTrainer(model_init=lambda: tiny_solver(processor), processing_class=processor)
    with pytest.raises(ValueError, match="label_smoothing_factor"):
        trainer_of(label_smoothing_factor=0.1)
    for fields in ({"batch_eval_metrics": True}, {"eval_do_concat_batches": False}):
        with pytest.raises(ValueError, match=next(iter(fields))):
            trainer_of(**fields)
    with pytest.raises(ValueError, match="`eval_dataset`.*empty"):
        trainer_of(eval_rows=[])
    with pytest.raises(ValueError, match="equation.*`train_dataset`"):
        trainer_of(rows=[{**row, "equation": ""} for row in tiny_rows(3)])
    with pytest.raises(ValueError, match="`text`"):
        trainer_of(eval_rows=processor.prepare_dataset(tiny_dataset()).remove_columns(["text"]))


# peft reads it; transformers will remove it.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapters_of_peft_are_refused_with_a_remedy(trainer_of, processor):
    peft = pytest.importorskip("peft")
    adapted = peft.get_peft_model(tiny_solver(processor), peft.LoraConfig(r=2, target_modules=["query"]))
    with pytest.raises(TypeError, match="`PeftModel`.*`hf_mwp.add_lora"):
        trainer_of(model=adapted)


def test_zero_3_is_refused(trainer_of, monkeypatch):
    # What this function answers after DeepSpeed's configuration was read.
    monkeypatch.setattr("hf_mwp.solver.training.solver_training_rules.is_deepspeed_zero3_enabled", lambda: True)
    with pytest.raises(ValueError, match="ZeRO-3.*ZeRO-2, FSDP or DDP"):
        trainer_of()


def test_a_distillation_config_is_fine_too(trainer_of, processor, tmp_path):
    args = SolverDistillationConfig(output_dir=str(tmp_path), use_cpu=True, report_to="none")
    trainer = SolverTrainer(model=tiny_solver(processor), args=args, processing_class=processor)
    assert trainer.args.metric_for_best_model == "answer_accuracy" and trainer.args.greater_is_better
