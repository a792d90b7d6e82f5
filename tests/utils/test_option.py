from dataclasses import dataclass, fields

from transformers import TrainingArguments

from hf_mwp.compress.trainers import DistillationConfig
from hf_mwp.utils.option import affects_result, default_of, given_options, option, options_in


@dataclass
class ToyArguments:
    model: str | None = option(None, "A model.", common=True)
    size: str = option("small", "A size.", choices=("small", "large"))
    files: list[str] = option(["a"], "Files.", affects_result=False)


def test_a_field_has_its_help_and_properties():
    model, size, files = fields(ToyArguments)
    assert model.metadata["help"] == "A model." and model.metadata["common"] and not size.metadata["common"]
    assert size.metadata["choices"] == ["small", "large"] and "choices" not in model.metadata
    assert (default_of(model), default_of(size), default_of(files)) == (None, "small", ["a"])
    assert [affects_result(each) for each in (model, size, files)] == [True, True, False]


def test_each_instance_has_a_list_of_its_own():
    ToyArguments().files.append("b")
    assert ToyArguments().files == ["a"]


def test_given_options_differ_from_their_defaults():
    assert given_options(ToyArguments()) == [] and given_options(ToyArguments(size="large", files=["a"])) == ["size"]


def test_options_of_trainers_that_change_no_result():
    options = options_in(ToyArguments, TrainingArguments, DistillationConfig)
    free = ("hub_token", "teacher_cache_dir", "save_total_limit", "files")
    assert not any(affects_result(options[name]) for name in free)
    # With `load_best_model_at_end`, the steps that are saved and evaluated decide which weights are kept.
    counted = ("temperature", "learning_rate", "early_stopping_patience", "num_train_epochs", "model")
    counted += ("save_steps", "logging_steps")
    assert all(affects_result(options[name]) for name in counted)
    assert default_of(options["temperature"]) == 4.0
