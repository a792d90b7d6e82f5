import logging

import pytest
import torch
from datasets import DatasetDict
from transformers import AutoModel

from hf_mwp.runtime.output_vocabulary import OutputVocabulary
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.batches.mwp_collator import MwpCollator
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.metrics import answers_match
from hf_mwp.solver.training import SolverDistillationConfig, SolverTrainer, SolverTrainingConfig
from hf_mwp.solver.training.solver_dataset import prepare_training_rows
from tests.solver.encoded_rows import rows_of
from tests.solver.training.conftest import QUIET
from tests.tiny import tiny_classifier, tiny_dataset, tiny_processor, tiny_rows, tiny_solver, tiny_tokenizer


INPUTS = ("input_ids", "attention_mask", "number_positions")


@pytest.fixture
def make_trainer(processor, tmp_path):
    """Makes a trainer of a tiny solver; `keywords` are arguments of the trainer, `fields` of its config."""

    def make(model=None, rows=None, eval_rows=None, keywords=None, **fields):
        defaults = {"output_dir": str(tmp_path), "save_strategy": "no", "per_device_train_batch_size": 8, **QUIET}
        return SolverTrainer(
            model=tiny_solver(processor) if model is None else model,
            args=SolverTrainingConfig(**(defaults | {"num_train_epochs": 1} | fields)),
            train_dataset=tiny_rows() if rows is None else rows,
            eval_dataset=tiny_rows(12, seed=1) if eval_rows is None else eval_rows,
            **({"processing_class": processor} | (keywords or {})),
        )

    return make


@pytest.fixture(scope="module")
def trained(processor, tmp_path_factory):
    """The trainer of a solver that has learned the templates."""
    args = SolverTrainingConfig(
        output_dir=str(tmp_path_factory.mktemp("trained")),
        learning_rate=3e-3,
        decoder_learning_rate=5e-3,
        train_sampling_strategy="random",  # a batch of equal lengths is a batch of one template
        num_train_epochs=8,
        per_device_train_batch_size=8,
        eval_strategy="steps",
        eval_steps=40,
        save_strategy="steps",
        save_steps=40,
        load_best_model_at_end=True,
        **QUIET,
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


def logged(trainer, *names):
    """The logged values, a list for each step."""
    return [[entry[name] for name in names] for entry in trainer.state.log_history if names[0] in entry]


def problem_of(row):
    return MathWordProblem(row["text"], row["equation"], row["answer"])


def test_transform_of_a_dataset_is_applied(processor):
    dataset = tiny_dataset(2)
    lengthened = dataset.with_transform(lambda rows: {**rows, "text": ["一共有，" + text for text in rows["text"]]})
    lengths = prepare_training_rows(dataset, processor)["length"]
    for length, longer in zip(lengths, prepare_training_rows(lengthened, processor)["length"], strict=True):
        assert length < longer


def test_rows_may_have_numbers_and_nan(processor):
    rows = [
        {**tiny_rows(1)[0], "id": 0},
        {"id": "b", "text": "小明有2个苹果，又买了1盒", "equation": "2*0.5", "answer": 1},  # a symbol is unknown
        {"text": "有2个苹果", "equation": "2+1", "answer": float("nan"), "language": float("nan")},
    ]
    prepared = prepare_training_rows(rows, processor)
    assert prepared["id"] == ["0", None]
    assert prepared["answer"][1] is None
    assert prepared["language"][1] is None


def test_all_trainable_parameters_change_and_no_frozen_one(make_trainer):
    trainer = make_trainer(warmup_steps=0)  # the first step of a warm-up has rate 0
    frozen = "encoder.embeddings.word_embeddings.weight"
    trainer.model.get_parameter(frozen).requires_grad_(False)
    before = {name: parameter.detach().clone() for name, parameter in trainer.model.named_parameters()}
    trainer.train()
    for name, parameter in trainer.model.named_parameters():
        assert torch.equal(parameter, before[name]) == (name == frozen), name


def test_solver_learns_and_accuracies_are_reported_by_level(trained):
    metrics = trained.evaluate()
    assert metrics["eval_answer_accuracy"] == 1.0
    assert metrics["eval_answer_accuracy_low"] == metrics["eval_answer_accuracy_medium"] == 1.0
    assert (metrics["eval_num_problems"], metrics["eval_num_problems_low"]) == (24, 20)
    assert metrics["eval_equation_accuracy"] == metrics["eval_canonical_equation_accuracy"] == 1.0
    assert "eval_answer_accuracy_high" not in metrics


def test_metrics_equal_those_of_one_problem_at_a_time(trained, processor):
    rows = tiny_rows(13, seed=2)
    for row in rows[::2]:
        # The solver has not learned this.
        row["equation"] += "+1"
        problem = MathWordProblem(row["text"], row["equation"])
        row["answer"] = str(problem.expression.evaluate(problem.numbers))
    metrics = trained.evaluate(rows)
    model = trained.model.eval()
    losses = []
    num_right = 0
    for row in rows:
        problem = problem_of(row)
        batch = MwpCollator(processor)(rows_of(processor.encode([problem], with_labels=True)))
        with torch.no_grad():
            losses.append(model(**batch).loss.item())
        solved = model.solve(**{name: batch[name] for name in INPUTS})
        expression = processor.decode(solved.sequences[0, 0].tolist())
        num_right += answers_match(expression.evaluate(problem.numbers), problem.answer_value)
    assert metrics["eval_loss"] == pytest.approx(sum(losses) / 13, rel=1e-5)
    assert metrics["eval_answer_accuracy"] == pytest.approx(num_right / 13)
    assert 0 < num_right < 13


def test_predictions_are_in_the_order_of_the_rows(trained, processor):
    rows = tiny_rows(17, seed=3)
    output = trained.predict(rows)
    sequences, scores = output.predictions
    assert output.label_ids.tolist() == list(range(17))
    assert "test_answer_accuracy" in output.metrics
    assert (scores <= 0).all()
    for row, ids in zip(rows, sequences, strict=True):
        assert processor.decode(ids) == problem_of(row).expression


def test_evaluations_do_not_drop_rows(make_trainer):
    fields = {"dataloader_drop_last": True, "per_device_train_batch_size": 4, "per_device_eval_batch_size": 4}
    trainer = make_trainer(None, tiny_rows(10), tiny_rows(7), **fields)
    assert trainer.evaluate()["eval_num_problems"] == 7
    assert len(trainer.predict(tiny_rows(5)).label_ids) == 5
    assert len(trainer.get_train_dataloader()) == 2


def test_best_checkpoint_has_the_best_answer_accuracy(trained):
    evaluations = logged(trained, "eval_answer_accuracy", "step")[:3]  # those of the training
    best = max(accuracy for accuracy, _ in evaluations)
    step = next(step for accuracy, step in evaluations if accuracy == best)
    assert trained.state.best_metric == best
    assert trained.state.best_model_checkpoint.endswith(f"checkpoint-{step}")
    saved = AutoModel.from_pretrained(trained.state.best_model_checkpoint)
    torch.testing.assert_close(saved.state_dict(), trained.model.state_dict(), rtol=0, atol=0)


def test_saved_folder_loads_and_solves(trained, tmp_path):
    trained.save_model(str(tmp_path))
    model = AutoModel.from_pretrained(tmp_path)
    processor = MwpProcessor.from_pretrained(tmp_path)
    inputs = processor("小明有4个苹果，又买了12个，一共有几个？")
    solved = model.eval().solve(**{name: inputs[name] for name in INPUTS})
    assert processor.decode(solved.sequences[0, 0].tolist()).to_prefix() == ["+", "N0", "N1"]


def test_rows_that_cannot_be_encoded_are_left_out_of_training_only(make_trainer, caplog, monkeypatch):
    rows = tiny_rows(12, seed=1)
    rows[3]["equation"] = "x=(1+"
    rows[4]["equation"] = "x=77+1"
    rows[5]["equation"] = "x=78+1"
    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    with caplog.at_level("WARNING"):
        trainer = make_trainer(rows=rows, eval_rows=rows)
    assert len(trainer.train_dataset) == 9
    summary, unknown_symbols, unreadable = caplog.records[0].getMessage().splitlines()
    assert "3 of 12 training rows" in summary
    assert unknown_symbols.split()[:3] == ["2,", "e.g.", "tiny-4:"]
    assert "77" in unknown_symbols
    assert unreadable.split()[:3] == ["1,", "e.g.", "tiny-3:"]
    metrics = trainer.evaluate()
    # Batches may have problems with and without labels.
    assert metrics["eval_num_problems"] == 12
    assert metrics["eval_loss"] > 0
    assert trainer.evaluate(rows[3:5])["eval_num_problems"] == 2


@pytest.mark.slow
def test_lists_datasets_and_encoded_datasets_are_trained_alike(make_trainer, processor):
    dataset = tiny_dataset(16)
    in_torch = dataset.with_format("torch")
    in_numpy = dataset.with_format("numpy")
    losses = []
    for rows in (tiny_rows(16), dataset, in_torch, in_numpy, processor.prepare_dataset(dataset)):
        trainer = make_trainer(rows=rows, eval_rows=rows, logging_steps=1)
        trainer.train()
        losses.append((logged(trainer, "loss"), trainer.evaluate()["eval_loss"]))
    assert losses == [losses[0]] * 5
    assert in_torch.format["type"] == "torch"


def test_several_evaluation_sets(make_trainer):
    trainer = make_trainer(eval_rows={"a": tiny_rows(6, seed=1), "b": tiny_dataset(12, seed=2)})
    metrics = trainer.evaluate()
    assert metrics["eval_a_num_problems"] == 6
    assert metrics["eval_b_num_problems"] == 12
    assert {"eval_a_loss", "eval_b_answer_accuracy"} <= set(metrics)


def test_accumulated_batches_are_one(make_trainer, processor):
    logs = []
    for size, steps in ((8, 1), (4, 2)):
        trainer = make_trainer(
            rows=tiny_rows(16), per_device_train_batch_size=size, gradient_accumulation_steps=steps, logging_steps=1
        )
        trainer.train()
        logs.append(sum(logged(trainer, "loss", "grad_norm"), []))
    assert len(logs[0]) == 4
    assert logs[0] == pytest.approx(logs[1], rel=1e-4)


def test_encoder_and_decoder_have_their_own_rates_and_decays(make_trainer):
    fields = {"learning_rate": 1e-4, "decoder_learning_rate": 2e-3, "weight_decay": 0.01, "decoder_weight_decay": 0.1}
    trainer = make_trainer(**fields)
    settings = {}
    for group in trainer.create_optimizer().param_groups:
        for parameter in group["params"]:
            assert id(parameter) not in settings
            settings[id(parameter)] = (group["lr"], group["weight_decay"])
    parameters = dict(trainer.model.named_parameters())
    assert len(settings) == len(parameters)
    for name, parameter in parameters.items():
        rate, decay = (2e-3, 0.1) if name.startswith("decoder.") else (1e-4, 0.01)
        if name.endswith("bias") or "LayerNorm" in name:
            decay = 0.0
        assert settings[id(parameter)] == (rate, decay), name
    assert make_trainer(decoder_learning_rate=None).create_optimizer().param_groups[-1]["lr"] == 1e-4


@pytest.mark.slow
def test_early_stopping_counts_on_after_resuming(make_trainer, tmp_path):
    def train(patience=3, checkpoint=None):
        # One step an epoch; the first evaluation stays the best.
        trainer = make_trainer(
            rows=tiny_rows(8),
            eval_rows=tiny_rows(2),
            learning_rate=0.0,
            decoder_learning_rate=0.0,
            eval_strategy="epoch",
            save_strategy="epoch",
            num_train_epochs=20,
            early_stopping_patience=patience,
        )
        trainer.train(resume_from_checkpoint=checkpoint)
        return trainer

    train()
    checkpoints = sorted(map(str, tmp_path.glob("checkpoint-*")))
    assert len(checkpoints) == 4
    for checkpoint in checkpoints:
        assert train(3, checkpoint).state.epoch == 4.0
    # A new patience counts, and a second training begins anew.
    trainer = train(5, checkpoints[-1])
    assert trainer.state.epoch == 6.0
    trainer.train()
    assert trainer.state.epoch == 6.0


def test_without_predictions_only_the_loss_is_evaluated(make_trainer):
    metrics = make_trainer(prediction_loss_only=True, metric_for_best_model="loss").evaluate()
    assert "eval_loss" in metrics
    assert "eval_answer_accuracy" not in metrics


def test_users_metrics_are_added(make_trainer):
    def compute_metrics(prediction):
        sequences, scores, _ = prediction.predictions
        return {"rows": len(set(prediction.label_ids.tolist())), "sizes": len(sequences) + len(scores)}

    metrics = make_trainer(keywords={"compute_metrics": compute_metrics}).evaluate()
    assert (metrics["eval_rows"], metrics["eval_sizes"]) == (12, 24)
    assert "eval_answer_accuracy" in metrics


def test_beams_and_length_reach_the_decoder(make_trainer, monkeypatch):
    trainer = make_trainer(num_beams=3, max_decode_length=5)
    solve = trainer.model.solve
    searches = set()

    def recording_solve(**inputs):
        searches.add((inputs["num_beams"], inputs["max_length"]))
        return solve(**inputs)

    monkeypatch.setattr(trainer.model, "solve", recording_solve)
    trainer.evaluate()
    assert searches == {(3, 5)}


def test_bf16_keeps_the_weights_in_full_precision(make_trainer):
    trainer = make_trainer(rows=tiny_rows(8), bf16=True)
    trainer.train()
    assert trainer.evaluate()["eval_num_problems"] == 12
    assert trainer.model.dtype == torch.float32


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"label_smoothing_factor": 0.1}, "label_smoothing_factor"),
        ({"batch_eval_metrics": True}, "batch_eval_metrics"),
        ({"eval_do_concat_batches": False}, "eval_do_concat_batches"),
        ({"eval_rows": []}, "`eval_dataset`.*empty"),
        ({"rows": [{**row, "equation": ""} for row in tiny_rows(3)]}, "equation.*`train_dataset`"),
        ({"keywords": {"model_init": tiny_solver}}, "`model_init`"),
    ],
)
def test_wrong_values_are_named(make_trainer, fields, message):
    with pytest.raises(ValueError, match=message):
        make_trainer(**fields)


def test_wrong_types_are_named(make_trainer, processor):
    with pytest.raises(TypeError, match="`BertForSequenceClassification`.*`MwpSolver.from_encoder_decoder_pretrained"):
        make_trainer(model=tiny_classifier())
    with pytest.raises(TypeError, match="MwpProcessor"):
        make_trainer(keywords={"processing_class": tiny_tokenizer()})
    with pytest.raises(TypeError, match="SolverTrainingConfig|BaseConfig"):
        SolverTrainer(model=tiny_solver(processor), args=object(), processing_class=processor)
    with pytest.raises(TypeError, match="`train_dataset`.*DatasetDict"):
        make_trainer(rows=DatasetDict({"train": tiny_dataset()}))
    with pytest.raises(ValueError, match="`model_init`"):
        SolverTrainer(model_init=lambda: tiny_solver(processor), processing_class=processor)
    with pytest.raises(ValueError, match="`text`"):
        make_trainer(eval_rows=processor.prepare_dataset(tiny_dataset()).remove_columns(["text"]))


@pytest.mark.parametrize(
    ("build_processor", "message"),
    [
        (
            lambda: MwpProcessor(tiny_tokenizer(), OutputVocabulary(constants=("2",))),
            r"symbols.*\['1'\].*\['2'\]",
        ),
        (lambda: tiny_processor(indexed_numbers=True), r"\b47 .*\b31\b.*`processor.resize_embeddings"),
        (lambda: tiny_processor(language="en"), "English.*`train_dataset` .*language='zh'"),
    ],
)
def test_processor_must_fit_model_and_data(make_trainer, build_processor, message):
    with pytest.raises(ValueError, match=message):
        make_trainer(keywords={"processing_class": build_processor()})


# peft reads it; transformers will remove it.
@pytest.mark.filterwarnings("ignore:`is_gradient_checkpointing` is deprecated")
def test_adapters_of_peft_are_refused_with_a_remedy(make_trainer, processor):
    peft = pytest.importorskip("peft")
    adapted = peft.get_peft_model(tiny_solver(processor), peft.LoraConfig(r=2, target_modules=["query"]))
    with pytest.raises(TypeError, match="`PeftModel`.*`hf_mwp.add_lora"):
        make_trainer(model=adapted)


def test_zero_3_is_refused(make_trainer, monkeypatch):
    # The result of this function after DeepSpeed's configuration was read.
    monkeypatch.setattr("hf_mwp.solver.training.solver_training_rules.is_deepspeed_zero3_enabled", lambda: True)
    with pytest.raises(ValueError, match="ZeRO-3.*ZeRO-2, FSDP or DDP"):
        make_trainer()


def test_distillation_config_is_accepted(processor, tmp_path):
    args = SolverDistillationConfig(output_dir=str(tmp_path), **QUIET)
    trainer = SolverTrainer(model=tiny_solver(processor), args=args, processing_class=processor)
    assert trainer.args.metric_for_best_model == "answer_accuracy"
    assert trainer.args.greater_is_better


def test_trees_of_compiled_models_are_padded(make_trainer):
    usual = make_trainer()
    padded = make_trainer(torch_compile=True)
    batches = [next(iter(trainer.get_train_dataloader())) for trainer in (usual, padded)]
    assert [batch["trees"].is_padded for batch in batches] == [False, True]
