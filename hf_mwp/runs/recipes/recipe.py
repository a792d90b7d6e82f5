"""A YAML file of stages that build on each other."""

from __future__ import annotations

import copy
import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from .stage import PLACES, Stage, StageResult, fingerprint


REFERENCE = re.compile(r"\$\{(\w+)\}")
KEYS = ("recipe", "base", "budget", "variables", "stages", "budgets", "targets")
# How deep mappings are merged into those of the base: variables; options of stages; options of a budget's stages.
MERGED = {"variables": 1, "stages": 2, "budgets": 3}


class RecipeError(ValueError):
    """A recipe that cannot be run as it is written; the message names the file and the place."""


class Recipe:
    """
    Stages, each a command of `hf-mwp` with its options, read from a YAML file:

    ```yaml
    recipe: A compact model for Math23k      # title
    budget: cpu                              # the budget if none is chosen
    variables: {dataset: math23k, seed: 42}
    stages:
      teacher: {command: train, dataset: "${dataset}", seed: "${seed}", num_train_epochs: 10}
      distill: {command: distill, teacher: "${teacher}", dataset: "${dataset}", seed: "${seed}"}
    budgets:                                 # what differs from the above
      quick: {variables: {}, teacher: {max_steps: 20}}
      cpu: {}
    targets: [distill]                       # what is wanted; all stages by default
    ```

    A file with `base: other.yaml` holds only what differs from that file, whose path is seen from its own.

    `${name}` stands for a variable, or for the folder of a stage, which is then run before. The folder of a stage is
    named after its fingerprint, so that what is there already is used again, by this recipe and by others in the same
    folder, and a changed option never meets an old result.

    Args:
        content (`dict`): What the file holds, as [`read_recipe`] gives it.
        output_dir (`str` or `Path`): Folder for the folders of the stages.
        budget (`str`, *optional*): One of the file's budgets; by default the one that it names.
        changes (`Mapping[str, Any]`, *optional*):
            Values that win over the file: `{"seed": 1}` sets a variable, `{"teacher.max_steps": 5}` an option of a
            stage, `{"teacher": {"max_steps": 5}}` several; `None` takes an option away.
        source (`str`, *optional*): Name of the file, for messages.
        launch (`str`, *optional*): The program that starts stages which train, if they are not just called.

    Raises:
        RecipeError: unknown keys, variables, stages or budgets, values of the wrong kind, stages or variables that
            need each other, or a base that was not read.
    """

    def __init__(
        self,
        content: Mapping[str, Any],
        output_dir: str | Path,
        budget: str | None = None,
        changes: Mapping[str, Any] | None = None,
        source: str = "the recipe",
        launch: str | None = None,
    ) -> None:
        self.source, self.output_dir, self.launch = source, Path(output_dir), launch
        if isinstance(content, Mapping) and content.get("base") is not None:
            raise RecipeError(f"{source} has a `base`, {content['base']}, which is not read yet: see `read_recipe`.")
        if not isinstance(content, Mapping) or not isinstance(content.get("stages"), Mapping):
            raise RecipeError(f"{source} has no mapping `stages`, so it is no recipe.")
        for key in content:
            self._check(key, KEYS, "key")
        self.title = str(content.get("recipe", source))
        self.variables = self._mapping(content.get("variables") or {}, "variables")
        stages = self._mapping(copy.deepcopy(content["stages"]), "stages")
        self._options = {name: self._mapping(options, f"stages.{name}") for name, options in stages.items()}
        budgets = self._mapping(content.get("budgets") or {}, "budgets")
        self.budget = budget or content.get("budget")
        if self.budget is not None:
            self._check(self.budget, budgets, "budget")
            place = f"budgets.{self.budget}"
            self._change(self._mapping(budgets[self.budget] or {}, place), f"{place}.")
        self._change(changes or {})
        targets = content.get("targets") or list(self._options)
        if not isinstance(targets, (list, tuple)) or not all(isinstance(target, str) for target in targets):
            example = next(iter(self._options), "stage")
            raise RecipeError(f"{source}, targets: needs a list of names ([{example}]), not {targets!r}.")
        self.targets = list(targets)
        self.stages: dict[str, Stage] = {}
        for name in self._options:
            self._resolve(name, ())

    @classmethod
    def from_file(cls, path: str | Path, output_dir: str | Path, **kwargs) -> Recipe:
        """Reads a recipe; `kwargs` are those of the class. `RecipeError` if there is no such file or it is no YAML."""
        return cls(read_recipe(path), output_dir, source=str(path), **kwargs)

    def wanted(self, targets: Iterable[str] | None = None) -> list[Stage]:
        """The stages that the targets (by default those of the file) need, in the order in which they are run."""
        needed: dict[str, Stage] = {}

        def add(name: str) -> None:
            self._check(name, self.stages, "stage")
            for other in self.stages[name].needs:
                add(other)
            needed.setdefault(name, self.stages[name])

        for target in self.targets if targets is None else targets:
            add(target)
        return list(needed.values())

    def run(
        self,
        commands: Mapping[str, Callable[[list[str]], int]],
        targets: Iterable[str] | None = None,
        on_stage: Callable[[Stage, int, int], None] | None = None,
    ) -> list[StageResult]:
        """
        Runs what the targets need and what is not there yet.

        Args:
            commands (`Mapping[str, Callable]`): By name, functions that take arguments as the command line gives them.
            targets (`Iterable[str]`, *optional*): Names of stages; those of the file by default.
            on_stage (`Callable`, *optional*): Called before each stage with it, its number from 1, and their count.
        """
        stages = self.wanted(targets)
        results = []
        for number, stage in enumerate(stages, start=1):
            if on_stage is not None:
                on_stage(stage, number, len(stages))
            results.append(stage.run(commands))
        return results

    def _change(self, changes: Mapping[str, Any], place: str = "") -> None:
        for key, value in changes.items():
            stage, dot, option = key.partition(".")
            if key == "variables":
                variables = self._mapping(value or {}, f"{place}{key}")
                for name in variables:
                    self._check(name, self.variables, "variable")
                self.variables.update(variables)
            elif dot or (key in self._options and (isinstance(value, Mapping) or key not in self.variables)):
                self._check(stage, self._options, "stage")
                self._options[stage].update({option: value} if dot else self._mapping(value, f"{place}{key}"))
            else:
                self._check(key, self.variables, "variable")
                self.variables[key] = value

    def _resolve(self, name: str, parents: tuple[str, ...]) -> Stage:
        if name in self.stages:
            return self.stages[name]
        if name in parents:
            raise RecipeError(f"{self.source}: the stages {' -> '.join([*parents, name])} need each other.")
        options = {key: value for key, value in self._options[name].items() if value is not None}
        command = options.pop("command", None)
        if not isinstance(command, str):
            raise RecipeError(f"{self.source}: stage {name!r} has no `command`.")
        needs: dict[str, Stage] = {}

        def filled(value: Any, place: str, above: tuple[str, ...] = ()) -> Any:
            if isinstance(value, Mapping):
                return {key: filled(item, f"{place}.{key}", above) for key, item in value.items()}
            if isinstance(value, list):
                return [filled(item, place, above) for item in value]
            if not isinstance(value, str):
                return value

            def one(reference: str) -> Any:
                if reference in above:
                    circle = " -> ".join([*above, reference])
                    raise RecipeError(f"{self.source}, {place}: the variables {circle} refer to each other.")
                if reference in self.variables:
                    return filled(self.variables[reference], place, (*above, reference))
                self._check(reference, [*self._options, *self.variables], "variable or stage", place)
                needs[reference] = self._resolve(reference, (*parents, name))
                return str(needs[reference].folder)

            whole = REFERENCE.fullmatch(value)
            return one(whole[1]) if whole else REFERENCE.sub(lambda match: str(one(match[1])), value)

        for key in [key for key in PLACES if key in options]:
            # A cache may lie in the folder of a stage that is not needed otherwise.
            options[key] = filled(options[key], f"{name}.{key}")
            needs.clear()
        options = {key: filled(value, f"{name}.{key}") for key, value in options.items()}
        options = {key: value for key, value in options.items() if value is not None}
        inputs = {str(stage.folder): stage.fingerprint for stage in needs.values()}
        digest = fingerprint(command, options, inputs, self.launch)
        folder = self.output_dir / f"{name}-{digest[:8]}"
        self.stages[name] = Stage(name, command, options, tuple(needs.values()), digest, folder)
        return self.stages[name]

    def _mapping(self, value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            raise RecipeError(f"{self.source}, {place}: needs a mapping (`name: value` lines), not {value!r}.")
        for name in value:
            if not isinstance(name, str):
                raise RecipeError(f"{self.source}, {place}: {name!r} is no name: put quotes around it.")
        return dict(value)

    def _check(self, name: str, known: Iterable[str], kind: str, place: str | None = None) -> None:
        known = [str(each) for each in known]
        if name not in known:
            close = difflib.get_close_matches(str(name), known, n=1)
            hint = f" Did you mean {close[0]!r}?" if close else f" There are: {', '.join(known) or 'none'}."
            where = f"{self.source}, {place}" if place else self.source
            raise RecipeError(f"{where}: unknown {kind} {name!r}.{hint}")


def caution(budget: str | None) -> str:
    """What a reader of figures has to know of their budget; empty if nothing."""
    return "budget quick: only to see it run, these figures say nothing" if budget == "quick" else ""


def read_recipe(path: str | Path) -> Any:
    """
    What a recipe's file holds, merged into its base if it has one.

    Raises:
        RecipeError: there is no such file, it is no YAML, or its base is no recipe or leads back to it.
    """
    return _read_merged(Path(path), ())


def _read_merged(path: Path, above: tuple[Path, ...]) -> Any:
    content = read_yaml(path)
    if not isinstance(content, Mapping) or content.get("base") is None:
        return content
    if path.resolve() in above:
        raise RecipeError(f"{above[0]}: its `base` leads back to {path}.")
    base = _read_merged(path.parent / str(content["base"]), (*above, path.resolve()))
    if not isinstance(base, Mapping):
        raise RecipeError(f"{path}: its `base` {content['base']} is no recipe.")
    own = {key: value for key, value in content.items() if key != "base"}
    return {**base, **{key: _merged(base.get(key), value, MERGED.get(key, 0)) for key, value in own.items()}}


def _merged(base: Any, value: Any, depth: int) -> Any:
    if depth == 0 or not isinstance(base, Mapping) or not isinstance(value, Mapping):
        return value
    return {**base, **{key: _merged(base.get(key), item, depth - 1) for key, item in value.items()}}


def read_yaml(path: str | Path) -> Any:
    """Parses a YAML file; `RecipeError` if it is missing or no YAML."""
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RecipeError(f"There is no file {path}.") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise RecipeError(f"{path} cannot be read as YAML: {error}") from error
