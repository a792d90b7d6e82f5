"""`push_to_hub` of the trainers, with the real client against a server on the loopback device."""

import json

import pytest
from huggingface_hub import ModelCard
from transformers import DefaultDataCollator, TrainerCallback

import hf_mwp
from hf_mwp.commands.hub.trained_model import evaluated_figures
from hf_mwp.commands.main import main
from hf_mwp.compress.trainers import ParameterMixingCallback
from hf_mwp.compress.trainers.seq2seq_fine_tuning_config import Seq2SeqFineTuningConfig
from hf_mwp.compress.trainers.seq2seq_fine_tuning_trainer import Seq2SeqFineTuningTrainer
from hf_mwp.solver.training import SolverTrainingConfig
from hf_mwp.utils.usage_error import UsageError
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_rows, tiny_solver, tiny_tokenizer
from tests.tiny_seq2seq import tiny_seq2seq


ARGUMENTS = {"use_cpu": True, "report_to": "none", "disable_tqdm": True, "per_device_train_batch_size": 8}
SOLVER = {
    *("README.md", "config.json", "model.safetensors", "mwp_processor.json", "record.json", "tokenizer.json"),
    *("tokenizer_config.json", "training_texts.safetensors", "use_hf_mwp.py"),
}


@pytest.fixture
def trainer_of(processor, tmp_path):
    def make(**fields):
        fields = ARGUMENTS | {"num_train_epochs": 1, "learning_rate": 1e-3} | fields
        return hf_mwp.SolverTrainer(
            model=tiny_solver(processor),
            args=SolverTrainingConfig(str(tmp_path / "run"), **fields),
            train_dataset=tiny_rows(),
            eval_dataset=tiny_rows(12, seed=1),
            processing_class=processor,
        )

    return make


def pushed(hub, name):
    files = dict(hub.repositories[name].files())
    files.pop(".gitattributes")
    return files


def texts(files):
    return {name: data.decode() for name, data in files.items() if name.endswith((".md", ".json", ".py"))}


def test_a_solver_goes_up_as_the_published_folders_do(hub, trainer_of, tmp_path):
    trainer = trainer_of(eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True)
    trainer.train()
    # What a run leaves beside the model.
    (tmp_path / "run" / "run.log").write_text(str(tmp_path))
    done = trainer.push_to_hub("Trained", token="hf_user")
    files = pushed(hub, "user/run")
    assert files.keys() == SOLVER == done.files.keys()
    assert hub.repositories["user/run"].private and hub.repositories["user/run"].messages[-1] == ("main", "Trained")
    assert not [name for name, text in texts(files).items() if str(tmp_path) in text or "hf_user" in text]
    card = ModelCard(files["README.md"].decode())
    accuracy = trainer.state.best_metric
    assert card.data.eval_results[0].metric_value == round(100 * accuracy, 2)
    assert 'model="user/run"' in card.text and "None dataset" not in card.text
    record = json.loads(files["record.json"])
    assert record["figures"][0]["reports"]["all"]["num_problems"] == 12
    assert record["stages"][0]["options"]["learning_rate"] == 1e-3
    assert record["stages"][0]["libraries"]["hf_mwp"] == hf_mwp.__version__
    # Half precision, in about half the bytes of what training left.
    assert len(files["model.safetensors"]) < 0.6 * (tmp_path / "run" / "model.safetensors").stat().st_size


def test_weights_that_were_not_evaluated_have_no_figures(hub, trainer_of, tmp_path):
    trainer = trainer_of(save_strategy="no", hub_model_id="user/student", hub_private_repo=False, push_to_hub=True)
    assert not hub.repositories["user/student"].private
    trainer.train()
    assert trainer.push_to_hub(blocking=False).result().figures == 0
    files = pushed(hub, "user/student")
    assert files.keys() == SOLVER and json.loads(files["record.json"])["figures"] == []
    trainer.evaluate()
    (tmp_path / "run" / "README.md").write_text("---\nbase_model: me/encoder\nlicense: mit\ntags: [old]\n---\n")
    assert trainer.push_to_hub(revision="v2").figures == 2
    data = ModelCard(hub.repositories["user/student"].files("v2")["README.md"].decode()).data
    assert (data.base_model, data.license) == ("me/encoder", "mit") and "old" not in data.tags
    assert json.loads(hub.repositories["user/student"].files("v2")["record.json"])["figures"]


def test_what_cannot_be_published_is_refused_before_the_training(hub, trainer_of, monkeypatch):
    with pytest.raises(ValueError, match="`hub_strategy='end'`.*'every_save'"):
        trainer_of(push_to_hub=True, hub_strategy="every_save")
    # As run_config.yaml of earlier versions has it.
    assert trainer_of(hub_strategy="every_save").hub_model_id is None
    trainer_of(push_to_hub=True)
    hub.repositories["user/run"].commit("main", {"pytorch_model.bin": b"else"}, "other")
    with pytest.raises(UsageError, match="user/run exists"):
        trainer_of(push_to_hub=True)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UsageError, match="needs a token"):
        trainer_of(push_to_hub=True)
    with pytest.raises(ValueError, match="`push_to_hub`.*hf-mwp publish"):
        hf_mwp.RecursiveDistillationConfig("out", push_to_hub=True)


@pytest.mark.parametrize("strategy", ["every_save", "checkpoint", "all_checkpoints"])
def test_a_later_strategy_does_not_upload_checkpoints(hub, trainer_of, strategy):
    trainer = trainer_of(save_strategy="epoch")
    with pytest.raises(ValueError, match=f"`hub_strategy='end'`, got '{strategy}'"):
        trainer.args.set_push_to_hub("user/run", strategy=strategy)
    with pytest.raises(ValueError, match=f"`hub_strategy='end'`, got '{strategy}'"):
        trainer.train()
    assert trainer.args.set_push_to_hub("user/run", token="hf_user") is trainer.args
    assert trainer.args.push_to_hub and trainer.args.hub_strategy == "end"

    class ChangeStrategy(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            args.hub_strategy = strategy

    trainer.add_callback(ChangeStrategy())
    trainer.init_hf_repo()
    files = hub.repositories["user/run"].files().keys()
    with pytest.raises(ValueError, match=f"`hub_strategy='end'`, got '{strategy}'"):
        trainer.train()
    assert hub.repositories["user/run"].files().keys() == files


def test_the_token_is_in_no_file(hub, trainer_of, tmp_path):
    trainer = trainer_of(save_strategy="epoch", push_to_hub=True, hub_token="hf_user", hub_model_id="user/run")
    trainer.train()
    trainer.save_model()
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len([path for path in files if path.name == "training_args.bin"]) == 2
    assert not [path for path in files if b"hf_user" in path.read_bytes()]
    assert trainer.args.hub_token == "hf_user"
    assert trainer.push_to_hub().repo_id == "user/run"
    modes = {path.stat().st_mode for path in files if path.name in ("config.json", "model.safetensors")}
    assert len(modes) == 1


def test_the_card_has_what_example_scripts_of_transformers_pass(hub, trainer_of, encoder):
    trainer = trainer_of(save_strategy="no", max_steps=1)
    trainer.train()
    trainer.evaluate()
    trainer.push_to_hub(
        finetuned_from="google-bert/bert-base-chinese",
        tasks="text-classification",
        dataset="GLUE MRPC",
        dataset_tags="glue",
        dataset_args="mrpc",
        language="en",
        model_name="A classifier",
        license="mit",
        tags="example",
    )
    files = pushed(hub, "user/run")
    card = ModelCard(files["README.md"].decode())
    assert (card.data.base_model, card.data.datasets) == ("google-bert/bert-base-chinese", ["glue"])
    assert (card.data.language, card.data.license) == ("en", "mit")
    assert card.data.pipeline_tag == "text-classification" and {"example", "hf_mwp"} <= {*card.data.tags}
    assert "# A classifier" in card.text and "| this model | GLUE MRPC, evaluation split |" in card.text
    options = json.loads(files["record.json"])["stages"][0]["options"]
    assert (options["dataset"], options["dataset_args"]) == ("GLUE MRPC", "mrpc")
    # A local folder is no model of the Hub.
    trainer.push_to_hub(finetuned_from=str(encoder), dataset=[str(encoder)])
    assert not [name for name, text in texts(pushed(hub, "user/run")).items() if str(encoder) in text]
    with pytest.raises(TypeError, match="base"):
        trainer.push_to_hub(base="google-bert/bert-base-chinese")
    # Example scripts call this method without `push_to_hub`.
    trainer.create_model_card(finetuned_from="google-bert/bert-base-chinese", tasks="text-classification")


def test_other_models_too(hub, processor, tmp_path):
    rows = [{"input_ids": [2, 9, 8, 3], "attention_mask": [1] * 4, "labels": row % 2} for row in range(8)]
    evaluated = {"eval_strategy": "steps", "metric_for_best_model": "accuracy"}
    classifier = hf_mwp.DistillationTrainer(
        model=tiny_classifier(),
        teacher_model=tiny_classifier(),
        args=hf_mwp.DistillationConfig(str(tmp_path / "classifier"), **ARGUMENTS, max_steps=1, **evaluated),
        train_dataset=rows,
        eval_dataset=rows,
        data_collator=DefaultDataCollator(),
        compute_metrics=lambda prediction: {"accuracy": 0.5},
        processing_class=tiny_tokenizer(),
    )
    classifier.train()
    # Evaluations of other rows are no figures of the evaluation split.
    classifier.compute_metrics = lambda prediction: {"accuracy": 1.0}
    classifier.evaluate(rows[:3])
    classifier.push_to_hub()
    card = pushed(hub, "user/classifier")["README.md"].decode()
    assert 'BertForSequenceClassification.from_pretrained("user/classifier")' in card
    assert "| this model | evaluation data, evaluation split | - | 8 | 50.0 |" in card

    pairs = [{"input_ids": [9, 8, 3], "labels": [8, 9, 3]} for _ in range(4)]
    translator = Seq2SeqFineTuningTrainer(
        tiny_seq2seq(),
        args=Seq2SeqFineTuningConfig(str(tmp_path / "translator"), **ARGUMENTS, max_steps=1),
        train_dataset=pairs,
        processing_class=tiny_tokenizer(),
    )
    translator.train()
    translator.push_to_hub()
    card = pushed(hub, "user/translator")["README.md"].decode()
    assert 'BartForConditionalGeneration.from_pretrained("user/translator")' in card
    assert "2 encoder and 2 decoder layers" in card
    assert {"model.safetensors", "generation_config.json"} <= pushed(hub, "user/translator").keys()


def test_evaluations_of_other_rows_than_the_trainers_are_no_figures(hub, trainer_of):
    trainer = trainer_of(save_strategy="no", eval_strategy="epoch")
    trainer.train()
    trainer.evaluate(tiny_rows(6, seed=2))
    (found,) = evaluated_figures(trainer)
    assert found.reports["all"]["num_problems"] == 12
    trainer.eval_dataset = None
    assert trainer.push_to_hub().figures == 0
    # Rows that are streamed have no number.
    trainer.eval_dataset = (row for row in tiny_rows(6, seed=2))
    assert evaluated_figures(trainer) == []


def test_evaluations_before_the_weights_are_mixed_are_no_figures(processor, trainer_of):
    trainer = trainer_of(save_strategy="epoch", eval_strategy="epoch", load_best_model_at_end=True)
    trainer.add_callback(ParameterMixingCallback(tiny_solver(processor), pretrained_weight=0.5))
    trainer.train()
    assert evaluated_figures(trainer) == []
    accuracy = trainer.evaluate()["eval_answer_accuracy"]
    (found,) = evaluated_figures(trainer)
    assert found.reports["all"]["answer_accuracy"] == accuracy


def test_a_pruned_model_has_the_card_of_the_saved_one(hub, tmp_path):
    trainer = hf_mwp.DistillationTrainer(
        model=tiny_classifier(),
        teacher_model=tiny_classifier(seed=1),
        args=hf_mwp.DistillationConfig(str(tmp_path / "pruned"), **ARGUMENTS, max_steps=1),
        train_dataset=tiny_classifier_rows(),
        processing_class=tiny_tokenizer(),
        callbacks=[hf_mwp.HeadPruningCallback(max_ratio=0.5, num_pruning_steps=1)],
    )
    trainer.train()
    trainer.push_to_hub()
    saved = hf_mwp.MwpStudentForSequenceClassification.from_pretrained(tmp_path / "pruned")
    card = pushed(hub, "user/pruned")["README.md"].decode()
    assert "MwpStudentForSequenceClassification" in card and "BertForSequenceClassification" not in card
    assert f"{saved.num_parameters():,} parameters" in card


def test_the_card_of_a_model_with_adapters_is_that_of_the_merged_one(hub, trainer_of, tmp_path):
    pytest.importorskip("peft")
    trainer = trainer_of(save_strategy="no", max_steps=1)
    before = trainer.model.num_parameters()
    hf_mwp.add_lora(trainer.model, rank=2)
    trainer.train()
    trainer.push_to_hub()
    assert f"{before:,} parameters" in pushed(hub, "user/run")["README.md"].decode()
    assert hf_mwp.MwpSolver.from_pretrained(tmp_path / "run").num_parameters() == before
    assert trainer.model.num_parameters() > before


def test_a_run_of_the_command_has_its_figures_and_no_local_path(hub, problems, encoder, tmp_path, capsys):
    argv = ["train", "--encoder", str(encoder), "--dataset", str(problems), "--output_dir", str(tmp_path / "run")]
    argv += ["--use_cpu", "--max_steps=1", "--push_to_hub", "--hub_model_id=user/trained", "--hub_token=hf_user"]
    assert main(argv) == 0
    assert f"{hub.url}/user/trained/commit/" in capsys.readouterr().out
    files = pushed(hub, "user/trained")
    assert files.keys() == SOLVER
    for name, text in texts(files).items():
        assert not any(str(place) in text for place in (tmp_path, problems, encoder)) and "hf_user" not in text, name
    record = json.loads(files["record.json"])
    assert [each["part"].split()[0] for each in record["figures"]] == ["validation", "test"]
    assert record["stages"][0]["command"] == "hf-mwp train"
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert record["figures"][1]["reports"] == metrics["test"]["reports"]
    assert len(hub.repositories["user/trained"].messages) == 2, "one commit beside the first"
    # Nor does the run's own record keep the token.
    kept = [path for path in (tmp_path / "run").iterdir() if path.suffix in (".json", ".yaml", ".log")]
    assert len(kept) > 5 and not [path.name for path in kept if "hf_user" in path.read_text("utf-8")]
