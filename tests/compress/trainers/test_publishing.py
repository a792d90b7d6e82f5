"""`push_to_hub` of the trainers, with the real client against a server on the loopback device."""

import json

import pytest
from huggingface_hub import ModelCard
from transformers import TrainerCallback

import hf_mwp
from hf_mwp.commands.hub.trained_model import evaluated_figures
from hf_mwp.commands.main import main
from hf_mwp.compress.trainers import ParameterMixingCallback, Seq2SeqFineTuningConfig, Seq2SeqFineTuningTrainer
from hf_mwp.utils.usage_error import UsageError
from tests.compress.trainers.distilling import QUIET, pad
from tests.tiny import tiny_classifier, tiny_classifier_rows, tiny_rows, tiny_solver, tiny_tokenizer
from tests.tiny_seq2seq import tiny_pairs, tiny_seq2seq


ARGUMENTS = QUIET | {"per_device_train_batch_size": 8}
SOLVER_FILES = {
    "README.md",
    "config.json",
    "model.safetensors",
    "mwp_processor.json",
    "record.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "training_texts.safetensors",
    "use_hf_mwp.py",
}


@pytest.fixture
def classifier_trainer(tmp_path):
    def make(callbacks=None, compute_metrics=None, **fields):
        return hf_mwp.DistillationTrainer(
            model=tiny_classifier(),
            teacher_model=tiny_classifier(seed=1),
            args=hf_mwp.DistillationConfig(str(tmp_path / "classifier"), **ARGUMENTS, max_steps=1, **fields),
            train_dataset=tiny_classifier_rows(),
            eval_dataset=tiny_classifier_rows(8),
            data_collator=pad,
            compute_metrics=compute_metrics,
            processing_class=tiny_tokenizer(),
            callbacks=callbacks,
        )

    return make


def uploaded(hub, name="user/run", revision="main"):
    """The files of a repository."""
    files = dict(hub.repositories[name].files(revision))
    files.pop(".gitattributes")
    return files


def card_of(hub, name="user/run", revision="main"):
    return ModelCard(uploaded(hub, name, revision)["README.md"].decode())


def assert_not_uploaded(files, *texts):
    """No readable file has one of the texts."""
    for name, data in files.items():
        if name.endswith((".md", ".json", ".py")):
            for text in texts:
                assert str(text) not in data.decode(), name


def test_a_solver_is_uploaded_as_published_folders_are(hub, fine_tuning_trainer, tmp_path):
    trainer = fine_tuning_trainer(
        eval_strategy="epoch", save_strategy="epoch", load_best_model_at_end=True, learning_rate=1e-3
    )
    trainer.train()
    # What a run leaves beside the model.
    (tmp_path / "run" / "run.log").write_text(str(tmp_path))
    result = trainer.push_to_hub("Trained", token="hf_user")
    files = uploaded(hub)
    assert files.keys() == SOLVER_FILES == result.files.keys()
    assert hub.repositories["user/run"].private
    assert hub.repositories["user/run"].messages[-1] == ("main", "Trained")
    assert_not_uploaded(files, tmp_path, "hf_user")
    card = card_of(hub)
    assert card.data.eval_results[0].metric_value == round(100 * trainer.state.best_metric, 2)
    assert 'model="user/run"' in card.text
    assert "None dataset" not in card.text
    record = json.loads(files["record.json"])
    assert record["figures"][0]["reports"]["all"]["num_problems"] == 12
    assert record["stages"][0]["options"]["learning_rate"] == 1e-3
    assert record["stages"][0]["libraries"]["hf_mwp"] == hf_mwp.__version__
    # Half precision, in about half the bytes of what training left.
    assert len(files["model.safetensors"]) < 0.6 * (tmp_path / "run" / "model.safetensors").stat().st_size


@pytest.mark.slow
def test_weights_that_were_not_evaluated_have_no_figures(hub, fine_tuning_trainer, tmp_path):
    trainer = fine_tuning_trainer(max_steps=1, hub_model_id="user/student", hub_private_repo=False, push_to_hub=True)
    assert not hub.repositories["user/student"].private
    trainer.train()
    assert trainer.push_to_hub(blocking=False).result().figures == 0
    files = uploaded(hub, "user/student")
    assert files.keys() == SOLVER_FILES
    assert json.loads(files["record.json"])["figures"] == []
    trainer.evaluate()
    (tmp_path / "run" / "README.md").write_text("---\nbase_model: me/encoder\nlicense: mit\ntags: [old]\n---\n")
    assert trainer.push_to_hub(revision="v2").figures == 2
    data = card_of(hub, "user/student", "v2").data
    assert (data.base_model, data.license) == ("me/encoder", "mit")
    assert "old" not in data.tags
    assert json.loads(uploaded(hub, "user/student", "v2")["record.json"])["figures"]


def test_models_that_cannot_be_published_are_refused_before_the_training(hub, fine_tuning_trainer, monkeypatch):
    with pytest.raises(ValueError, match="`hub_strategy='end'`.*'every_save'"):
        fine_tuning_trainer(push_to_hub=True, hub_strategy="every_save")
    # As run_config.yaml of earlier versions has it.
    assert fine_tuning_trainer(hub_strategy="every_save").hub_model_id is None
    fine_tuning_trainer(push_to_hub=True)
    hub.repositories["user/run"].commit("main", {"pytorch_model.bin": b"else"}, "other")
    with pytest.raises(UsageError, match="user/run exists"):
        fine_tuning_trainer(push_to_hub=True)
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(UsageError, match="needs a token"):
        fine_tuning_trainer(push_to_hub=True)
    with pytest.raises(ValueError, match="`push_to_hub`.*hf-mwp publish"):
        hf_mwp.RecursiveDistillationConfig("out", push_to_hub=True)


def test_a_later_strategy_does_not_upload_checkpoints(hub, fine_tuning_trainer):
    trainer = fine_tuning_trainer(save_strategy="epoch")
    message = "`hub_strategy='end'`, got 'checkpoint'"
    with pytest.raises(ValueError, match=message):
        trainer.args.set_push_to_hub("user/run", strategy="checkpoint")
    with pytest.raises(ValueError, match=message):
        trainer.train()
    assert trainer.args.set_push_to_hub("user/run", token="hf_user") is trainer.args
    assert trainer.args.push_to_hub
    assert trainer.args.hub_strategy == "end"

    class ChangeStrategy(TrainerCallback):
        def on_step_end(self, args, state, control, **kwargs):
            args.hub_strategy = "checkpoint"

    trainer.add_callback(ChangeStrategy())
    trainer.init_hf_repo()
    names = hub.repositories["user/run"].files().keys()
    with pytest.raises(ValueError, match=message):
        trainer.train()
    assert hub.repositories["user/run"].files().keys() == names


def test_the_token_is_in_no_file(hub, fine_tuning_trainer, tmp_path):
    fields = {"push_to_hub": True, "hub_token": "hf_user", "hub_model_id": "user/run"}
    trainer = fine_tuning_trainer(save_strategy="epoch", **fields)
    trainer.train()
    trainer.save_model()
    assert len(list(tmp_path.rglob("training_args.bin"))) == 2
    for path in tmp_path.rglob("*"):
        assert path.is_dir() or b"hf_user" not in path.read_bytes(), path
    assert trainer.args.hub_token == "hf_user"
    assert trainer.push_to_hub().repo_id == "user/run"
    files = [*tmp_path.rglob("config.json"), *tmp_path.rglob("model.safetensors")]
    assert len({path.stat().st_mode for path in files}) == 1


@pytest.mark.slow
def test_the_card_has_arguments_of_example_scripts_of_transformers(hub, fine_tuning_trainer, encoder):
    trainer = fine_tuning_trainer(max_steps=1)
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
    card = card_of(hub)
    assert (card.data.base_model, card.data.datasets) == ("google-bert/bert-base-chinese", ["glue"])
    assert (card.data.language, card.data.license) == ("en", "mit")
    assert card.data.pipeline_tag == "text-classification"
    assert {"example", "hf_mwp"} <= {*card.data.tags}
    assert "# A classifier" in card.text
    assert "| this model | GLUE MRPC, evaluation split |" in card.text
    options = json.loads(uploaded(hub)["record.json"])["stages"][0]["options"]
    assert (options["dataset"], options["dataset_args"]) == ("GLUE MRPC", "mrpc")
    # A local folder is no model of the Hub.
    trainer.push_to_hub(finetuned_from=str(encoder), dataset=[str(encoder)])
    assert_not_uploaded(uploaded(hub), encoder)
    with pytest.raises(TypeError, match="base"):
        trainer.push_to_hub(base="google-bert/bert-base-chinese")
    # Example scripts call this method without `push_to_hub`.
    trainer.create_model_card(finetuned_from="google-bert/bert-base-chinese", tasks="text-classification")


@pytest.mark.slow
def test_a_classifier_has_the_figures_of_its_evaluation_split(hub, classifier_trainer):
    fields = {"eval_strategy": "steps", "metric_for_best_model": "accuracy"}
    trainer = classifier_trainer(compute_metrics=lambda prediction: {"accuracy": 0.5}, **fields)
    trainer.train()
    # Evaluations of other rows are no figures of the evaluation split.
    trainer.compute_metrics = lambda prediction: {"accuracy": 1.0}
    trainer.evaluate(tiny_classifier_rows(3))
    trainer.push_to_hub()
    text = card_of(hub, "user/classifier").text
    assert 'BertForSequenceClassification.from_pretrained("user/classifier")' in text
    assert "| this model | evaluation data, evaluation split | - | 8 | 50.0 |" in text


@pytest.mark.slow
def test_a_translator_is_uploaded_with_its_generation_config(hub, tmp_path):
    trainer = Seq2SeqFineTuningTrainer(
        tiny_seq2seq(),
        args=Seq2SeqFineTuningConfig(str(tmp_path / "translator"), **ARGUMENTS, max_steps=1),
        train_dataset=tiny_pairs(4),
        processing_class=tiny_tokenizer(),
    )
    trainer.train()
    trainer.push_to_hub()
    text = card_of(hub, "user/translator").text
    assert 'BartForConditionalGeneration.from_pretrained("user/translator")' in text
    assert "2 encoder and 2 decoder layers" in text
    assert {"model.safetensors", "generation_config.json"} <= uploaded(hub, "user/translator").keys()


@pytest.mark.slow
def test_evaluations_of_other_rows_are_no_figures(hub, fine_tuning_trainer):
    trainer = fine_tuning_trainer(max_steps=1, eval_strategy="epoch")
    trainer.train()
    trainer.evaluate(tiny_rows(6, seed=2))
    (figures,) = evaluated_figures(trainer)
    assert figures.reports["all"]["num_problems"] == 12
    trainer.eval_dataset = None
    assert trainer.push_to_hub().figures == 0
    # Rows that are streamed have no number.
    trainer.eval_dataset = iter(tiny_rows(6, seed=2))
    assert evaluated_figures(trainer) == []


@pytest.mark.slow
def test_evaluations_before_the_weights_are_mixed_are_no_figures(processor, fine_tuning_trainer):
    fields = {"save_strategy": "epoch", "eval_strategy": "epoch", "load_best_model_at_end": True}
    trainer = fine_tuning_trainer(max_steps=1, **fields)
    trainer.add_callback(ParameterMixingCallback(tiny_solver(processor), pretrained_weight=0.5))
    trainer.train()
    assert evaluated_figures(trainer) == []
    accuracy = trainer.evaluate()["eval_answer_accuracy"]
    (figures,) = evaluated_figures(trainer)
    assert figures.reports["all"]["answer_accuracy"] == accuracy


@pytest.mark.slow
def test_a_pruned_model_has_the_card_of_the_saved_one(hub, classifier_trainer, tmp_path):
    trainer = classifier_trainer([hf_mwp.HeadPruningCallback(max_ratio=0.5, num_pruning_steps=1)])
    trainer.train()
    trainer.push_to_hub()
    saved = hf_mwp.MwpStudentForSequenceClassification.from_pretrained(tmp_path / "classifier")
    text = card_of(hub, "user/classifier").text
    assert "MwpStudentForSequenceClassification" in text
    assert "BertForSequenceClassification" not in text
    assert f"{saved.num_parameters():,} parameters" in text


@pytest.mark.slow
def test_a_model_with_adapters_has_the_card_of_the_merged_one(hub, fine_tuning_trainer, tmp_path):
    pytest.importorskip("peft")
    trainer = fine_tuning_trainer(max_steps=1)
    num_parameters = trainer.model.num_parameters()
    hf_mwp.add_lora(trainer.model, rank=2)
    trainer.train()
    trainer.push_to_hub()
    assert f"{num_parameters:,} parameters" in card_of(hub).text
    assert hf_mwp.MwpSolver.from_pretrained(tmp_path / "run").num_parameters() == num_parameters
    assert trainer.model.num_parameters() > num_parameters


@pytest.mark.slow
def test_a_run_of_the_command_has_its_figures_and_no_local_path(hub, problems, encoder, tmp_path, capsys):
    argv = ["train", "--encoder", str(encoder), "--dataset", str(problems), "--output_dir", str(tmp_path / "run")]
    argv += ["--use_cpu", "--max_steps=1", "--push_to_hub", "--hub_model_id=user/trained", "--hub_token=hf_user"]
    assert main(argv) == 0
    assert f"{hub.url}/user/trained/commit/" in capsys.readouterr().out
    files = uploaded(hub, "user/trained")
    assert files.keys() == SOLVER_FILES
    assert_not_uploaded(files, tmp_path, problems, encoder, "hf_user")
    record = json.loads(files["record.json"])
    validation, test = record["figures"]
    assert validation["part"].startswith("validation")
    assert test["part"].startswith("test")
    assert record["stages"][0]["command"] == "hf-mwp train"
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert test["reports"] == metrics["test"]["reports"]
    assert len(hub.repositories["user/trained"].messages) == 2, "one commit beside the first"
    # Nor does the run's own record keep the token.
    records = [path for path in (tmp_path / "run").iterdir() if path.suffix in (".json", ".yaml", ".log")]
    assert len(records) > 5
    for path in records:
        assert "hf_user" not in path.read_text("utf-8"), path
