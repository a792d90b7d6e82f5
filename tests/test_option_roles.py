from dataclasses import dataclass, fields

from transformers import TrainingArguments

from hf_mwp.option_roles import TRAINER_OPTIONS, Role, default_of, option, options_in, role_of
from hf_mwp.trainers import DistillationConfig


@dataclass
class ToyArguments:
    model: str | None = option(None, "A model.", Role.SOLVER | Role.COMMON)
    size: str = option("small", "A size.", choices=("small", "large"))
    files: list[str] = option(["a"], "Files.", Role.SOURCES | Role.TEXTS)


def test_a_field_has_its_help_and_role():
    model, size, files = fields(ToyArguments)
    assert model.metadata == {"help": "A model.", "role": Role.SOLVER | Role.COMMON}
    assert size.metadata["choices"] == ["small", "large"] and role_of(size) is Role.NONE
    assert (default_of(model), default_of(size), default_of(files)) == (None, "small", ["a"])
    assert role_of(model) & Role.COMMON and not role_of(model) & (Role.ENCODER | Role.PLACE)


def test_each_instance_has_a_list_of_its_own():
    ToyArguments().files.append("b")
    assert ToyArguments().files == ["a"]


def test_options_of_the_trainers_have_roles_by_name():
    assert options_in(ToyArguments, TrainingArguments)["hub_token"].role is Role.LAUNCH
    options = options_in(DistillationConfig)
    assert options["teacher_cache_dir"].role is Role.CACHE and options["temperature"].role is Role.NONE
    assert options["temperature"].default == 4.0


def test_no_name_has_two_roles():
    names = [name for each in TRAINER_OPTIONS.values() for name in each]
    assert len(names) == len({*names})
