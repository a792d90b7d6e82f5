from dataclasses import dataclass, fields

import pytest
from transformers import TrainingArguments

from hf_mwp.compress.trainers import DistillationConfig
from hf_mwp.utils.option import affects_result, default_of, given_options, option, options_in


@dataclass
class ToyArguments:
    model: str | None = option(None, "A model.", common=True)
    size: str = option("small", "A size.", choices=("small", "large"))
    files: list[str] = option(["a"], "Files.", affects_result=False)


def test_fields_have_their_metadata_and_defaults():
    model, size, files = fields(ToyArguments)
    assert model.metadata["help"] == "A model." and model.metadata["common"] and not size.metadata["common"]
    assert size.metadata["choices"] == ["small", "large"] and "choices" not in model.metadata
    assert default_of(model) is None and default_of(size) == "small" and default_of(files) == ["a"]
    assert affects_result(model) and not affects_result(files)


def test_instances_do_not_share_a_list():
    ToyArguments().files.append("b")
    assert ToyArguments().files == ["a"]


def test_given_options_differ_from_their_defaults():
    assert given_options(ToyArguments()) == []
    assert given_options(ToyArguments(size="large", files=["a"])) == ["size"]


OPTIONS = options_in(ToyArguments, TrainingArguments, DistillationConfig)


# With `load_best_model_at_end`, the steps that are saved and evaluated decide which weights are kept.
@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ("hub_token teacher_cache_dir save_total_limit files", False),
        ("temperature learning_rate early_stopping_patience num_train_epochs model save_steps logging_steps", True),
    ],
)
def test_effect_of_options_of_trainers(names, expected):
    for name in names.split():
        assert affects_result(OPTIONS[name]) == expected
