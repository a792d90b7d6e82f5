"""Private methods of `Trainer` that this package overrides: few, and as they are in the installed Transformers."""

import importlib
import inspect
import pkgutil

import pytest
from transformers import Seq2SeqTrainer, Trainer

from hf_mwp.compress import trainers
from hf_mwp.solver import training


# Parameters of each overridden private method after `self`, and why no public method or callback can replace it.
OVERRIDDEN = {
    # Public methods create the loader, but only this one chooses the order of its rows.
    "_get_train_sampler": ["train_dataset"],
    # Adapters and projections must be loaded before the optimizer's state is.
    "_load_from_checkpoint": ["resume_from_checkpoint", "model"],
    # No callback can keep a resumed run that has ended from another step; parameters are passed on unread.
    "_run_epoch": None,
    # The only place where all ways of saving a model (DDP, FSDP, DeepSpeed) come together.
    "_save": ["output_dir", "state_dict"],
    # A checkpoint must count as incomplete before its first file is replaced; `on_save` comes after the last one.
    "_save_checkpoint": ["model", "trial"],
}


def our_classes():
    for package in (trainers, training):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    classes = set()
    unvisited = [Trainer]
    while unvisited:
        subclasses = unvisited.pop().__subclasses__()
        unvisited += subclasses
        for trainer_class in subclasses:
            if trainer_class.__module__.startswith("hf_mwp."):
                classes.update(trainer_class.__mro__)
    return [our_class for our_class in classes if our_class.__module__.startswith("hf_mwp.")]


def test_no_other_private_methods_are_overridden():
    names = set()
    for trainer_class in our_classes():
        for name in vars(trainer_class):
            is_private = name.startswith("_") and not name.startswith("__")
            if is_private and callable(getattr(Seq2SeqTrainer, name, None)):
                names.add(name)
    assert names == {*OVERRIDDEN}
    assert len(names) <= 5


@pytest.mark.parametrize("name", OVERRIDDEN)
def test_transformers_has_the_method_with_these_parameters(name):
    assert hasattr(Trainer, name), f"Transformers has no `Trainer.{name}` any more; this package overrides it."
    parameters = list(inspect.signature(getattr(Trainer, name)).parameters)[1:]
    expected = OVERRIDDEN[name]
    if expected is not None:
        assert parameters == expected, f"Transformers has changed the parameters of `Trainer.{name}`."


@pytest.mark.parametrize("name", OVERRIDDEN)
def test_overriding_methods_have_the_parameters_of_transformers(name):
    for trainer_class in our_classes():
        if name in vars(trainer_class) and OVERRIDDEN[name] is not None:
            parameters = list(inspect.signature(vars(trainer_class)[name]).parameters)[1:]
            assert parameters == OVERRIDDEN[name], f"`{trainer_class.__name__}.{name}` has other parameters."
