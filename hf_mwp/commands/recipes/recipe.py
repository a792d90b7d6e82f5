"""Recipes: YAML files of stages that use each other's results, and functions that run them."""

import difflib
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from hf_mwp.commands.options.stages import STAGES, options_of, trains
from hf_mwp.utils.finished_folder import FinishedFolder
from hf_mwp.utils.option import affects_result
from hf_mwp.utils.run_folder import check_output_folder
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.yaml_values import check_no_resolvers, read_yaml

from .stage import Commands, Stage, StageResult, fingerprint


KEYS = ("recipe", "budget", "variables", "stages", "budgets", "targets", "search")
# Placeholder for a stage's folder in an option, until the folder is known.
MARK = re.compile("\0(.+?)\0")
# A stage's name begins the name of its folder and its flags (`--stage.option`): at most 240 bytes in UTF-8.
STAGE_NAME = re.compile(r"\w[\w-]{0,59}")


class RecipeError(UsageError):
    """Error in a recipe. The message contains the file and the key."""


def unknown_name(name: object, known: Iterable[object], kind: str) -> str | None:
    """Return the error message for an unknown name, with a similar name, or `None` if the name is known."""
    names = [str(each) for each in known]
    if str(name) in names:
        return None
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(names) or 'none'}."
    return f"unknown {kind} {str(name)!r}. {hint}"


def read_recipe(path: str | Path, base: str | Path | None = None, _above: tuple[Path, ...] = ()) -> Any:
    """Read a recipe, merged into its base or into `base`. Raises `RecipeError` if a file is wrong."""
    from omegaconf import OmegaConf

    path = Path(path)
    try:
        content = read_yaml(path)
    except UsageError as error:
        raise RecipeError(str(error)) from error
    if not isinstance(content, Mapping) or content.get("base") is None:
        if base is not None:
            raise RecipeError(f"{path} has no `base`, so {base} cannot replace it.")
        return content
    if path.resolve() in _above:
        raise RecipeError(f"{_above[0]}: its `base` is circular, it leads back to {path}.")
    place = path.parent / str(content["base"]) if base is None else Path(base).resolve()
    below = read_recipe(place, None, (*_above, path.resolve()))
    if not isinstance(below, Mapping) or not below.keys() & set(KEYS):
        raise RecipeError(f"{path}: its `base` {place} is not a valid recipe.")
    own = {key: value for key, value in content.items() if key != "base"}
    try:
        merged = OmegaConf.to_container(OmegaConf.merge(below, own))
    except TypeError as error:
        fault = f"{path}: a list and a mapping cannot be merged ({error}). Compare the file with its base."
        raise RecipeError(fault) from error
    if isinstance(variables := merged.get("variables"), dict):  # OmegaConf keeps a base's value for `???`.
        variables |= {name: value for name, value in (own.get("variables") or {}).items() if value == "???"}
    return merged


class Recipe:
    """
    Stages, each a command of `hf-mwp` with its options, from a YAML file:

    ```yaml
    recipe: A compact model for Math23k      # title
    budget: cpu                              # the default budget
    variables: {dataset: math23k, seed: 42}
    stages:
      teacher: {command: train, dataset: "${dataset}", seed: "${seed}", num_train_epochs: 10}
      distill: {command: distill, teacher: "${teacher}", dataset: "${dataset}", seed: "${seed}"}
    budgets: {quick: {variables: {}, teacher: {max_steps: 20}}, cpu: {}}  # changes to variables and options
    targets: [distill]                       # stages to complete; all by default
    # Values of a variable, smallest model first, that [`run_recipe`] tries in order if `min_accuracy` is set.
    search: {variable: student, values: [small, base], stage: distill}
    ```

    A file with `base: other.yaml`, a path from its own folder, contains only the changes to that file. OmegaConf
    replaces `${name}` by the value of a variable or by the folder of a stage, which then runs first; a backslash
    before it prevents this. Resolvers of OmegaConf, such as `${oc.env:NAME}`, are refused. A stage's folder is named
    after the fingerprint of its options and inputs, so recipes with the same `output_dir` reuse it until an option
    changes. A variable `???` must be set to run the stages that use it.

    `changes`, a mapping or several (later ones win), override the file: `{"seed": 1}` sets a variable,
    `{"teacher.max_steps": 5}` or `{"teacher": {"max_steps": 5}}` options of a stage; `None` removes an option.
    `launch` starts the training stages (`torchrun`). Raises `RecipeError` for wrong names, values and references.
    """

    def __init__(
        self,
        content: Mapping[str, Any],
        output_dir: str | Path,
        budget: str | None = None,
        changes: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        source: str = "the recipe",
        launch: str | None = None,
    ) -> None:
        self.source, self.output_dir, self.launch = source, Path(output_dir).expanduser(), launch
        is_recipe = isinstance(content, Mapping) and isinstance(content.get("stages"), Mapping)
        fault = "not a recipe (no mapping `stages`). For a file of options, use `hf-mwp COMMAND --config FILE`."
        self._need(is_recipe, "", fault)
        for key in content:
            self._check(key, KEYS, "key")
        self.title = str(content.get("recipe", source))
        self.variables = self._mapping(content.get("variables") or {}, "variables")
        stages = self._mapping(content["stages"], "stages")
        for name in stages:
            fault = f"{name!r:.80} is not a valid name of a stage. Use up to 60 letters, digits, - and _."
            self._need(STAGE_NAME.fullmatch(name), "stages", fault)
        self._options = {name: self._mapping(options, f"stages.{name}") for name, options in stages.items()}
        budgets = self._mapping(content.get("budgets") or {}, "budgets")
        self.budget = budget or content.get("budget")
        if self.budget is not None:
            self.budget = str(self.budget)
            self._check(self.budget, budgets, "budget")
            place = f"budgets.{self.budget}"
            self._change(self._mapping(budgets[self.budget] or {}, place), f"{place}.")
        for each in [changes or {}] if isinstance(changes, Mapping | None) else changes:
            self._change(each)
        self.targets = content.get("targets") or list(self._options)
        is_list = isinstance(self.targets, list) and all(isinstance(target, str) for target in self.targets)
        self._need(is_list, "targets", f"must be a list of stage names, not {self.targets!r}.")
        self.search = self._mapping(content.get("search") or {}, "search")
        if self.search:
            known = self.search.keys() == {"variable", "values", "stage"} and isinstance(self.search["values"], list)
            fault = "must have the keys `variable`, `values` (a list of at least one) and `stage`."
            self._need(known and self.search["values"], "search", fault)
            self._check(self.search["variable"], self.variables, "variable", "search")
            self._check(self.search["stage"], self._options, "stage", "search")
        self.stages: dict[str, Stage] = {}
        self._unset: dict[str, str] = {}  # errors of stages with a variable that must be set
        options = self._filled()
        for name in options:
            self._add_stage(name, options, ())

    @classmethod
    def from_file(cls, path: str | Path, output_dir: str | Path, base: str | Path | None = None, **kwargs) -> Self:
        """Create a recipe from a file, see [`read_recipe`]; `kwargs` are passed to the class."""
        return cls(read_recipe(path, base), output_dir, source=str(path), **kwargs)

    def wanted(self, targets: Iterable[str] | None = None) -> list[Stage]:
        """Return the target stages and the stages they need, in running order; `targets` default to the file's."""
        names, waiting = set(), list(self.targets if targets is None else targets)
        while waiting:
            name = waiting.pop()
            self._check(name, self.stages, "stage")
            self._need(name not in self._unset, f"stage {name}", self._unset.get(name))
            names.add(name)
            waiting += self.stages[name].needs
        # Stages follow those that they need.
        return [stage for name, stage in self.stages.items() if name in names]

    def run(
        self,
        commands: Commands,
        targets: Iterable[str] | None = None,
        on_stage: Callable[[Stage, int, int], None] = lambda *_: None,
    ) -> list[StageResult]:
        """Run the stages of [`~Recipe.wanted`]; `on_stage` receives each, its number from 1, and their number."""
        stages, results = self.wanted(targets), []
        for number, stage in enumerate(stages, start=1):
            on_stage(stage, number, len(stages))
            results.append(stage.run(commands))
        return results

    def _change(self, changes: Mapping[str, Any], place: str = "") -> None:
        # Flags have `_` instead of `-`.
        names = {name.replace("-", "_"): name for name in (*self._options, *self.variables)}
        for key, value in changes.items():
            stage, dot, option = key.partition(".")
            stage = names.get(stage.replace("-", "_"), stage)
            key = stage + dot + option
            if key == "variables":
                variables = self._mapping(value or {}, f"{place}{key}")
                for name in variables:
                    self._check(name, self.variables, "variable", place[:-1])
                self.variables.update(variables)
            elif dot or (key in self._options and (isinstance(value, Mapping) or key not in self.variables)):
                self._check(stage, self._options, "stage", place[:-1])
                self._options[stage].update({option: value} if dot else self._mapping(value, f"{place}{key}"))
            else:
                self._check(key, [*self._options, *self.variables], "variable or stage", place[:-1])
                self.variables[key] = value

    def _filled(self) -> dict[str, dict[str, Any]]:
        """Return the options of all stages, with values in place of variables and placeholders in place of stages."""
        from omegaconf import OmegaConf
        from omegaconf.errors import InterpolationKeyError, InterpolationToMissingValueError, OmegaConfBaseException

        def option(place: str, value: Any) -> Any:
            if "${" not in str(value):
                return value
            self._check_no_resolvers(value, place)
            try:
                config = OmegaConf.create({"value": value}, parent=root)
                filled = OmegaConf.to_container(config, resolve=True)["value"]
            except InterpolationToMissingValueError as error:
                variable = re.search(r"value: (\S+)", error.msg)[1]
                stage, _, name = place.partition(".")
                known = options_of(str(self._options[stage].get("command"))).get(name)
                told = known.metadata["help"] if known else ""
                self._unset[stage] = f"key {name!r} needs a value for --{variable}. {told}"
                return None
            except OmegaConfBaseException as error:
                if isinstance(error, InterpolationKeyError):
                    missing = re.search("'(.*)'", error.msg)[1]
                    self._check(missing, [*self._options, *self.variables], "variable or stage", place)
                fault = f"{value!r:.200} cannot be resolved: {str(error).splitlines()[0]}."
                raise RecipeError(f"{self.source}, {place}: {fault}") from None
            # The command reads the value from a file of options, which may not contain a resolver either.
            self._check_no_resolvers(filled, place)
            return filled

        self._check_no_resolvers(self.variables, "variables")
        try:
            root = OmegaConf.create({name: f"\0{name}\0" for name in self._options} | self.variables)
        except OmegaConfBaseException as error:
            raise RecipeError(f"{self.source}, variables: {error}") from None

        return {
            stage: {name: option(f"{stage}.{name}", value) for name, value in options.items()}
            for stage, options in self._options.items()
        }

    def _add_stage(self, name: str, every: Mapping[str, Mapping[str, Any]], parents: tuple[str, ...]) -> Stage:
        """Create a stage after the stages that it needs."""
        if name in self.stages:
            return self.stages[name]
        self._need(name not in parents, "", f"the stages {' -> '.join([*parents, name])} depend on each other.")
        options = {key.replace("-", "_"): value for key, value in every[name].items()}
        options = {key: value for key, value in options.items() if value is not None}
        command = options.pop("command", None)
        self._need(isinstance(command, str), "", f"stage {name!r} has no `command`.")
        fault = "key 'output_dir': stages have no own output folder. Pass --output_dir for the folder of all stages."
        self._need("output_dir" not in options, f"stage {name}", fault)
        needs: dict[str, Stage] = {}

        def with_folders(value: Any, needs: dict[str, Stage]) -> Any:
            if isinstance(value, Mapping):
                return {key: with_folders(item, needs) for key, item in value.items()}
            if isinstance(value, (list, tuple)):
                return [with_folders(item, needs) for item in value]
            if not isinstance(value, str):
                return value
            needs |= {each: self._add_stage(each, every, (*parents, name)) for each in MARK.findall(value)}
            return MARK.sub(lambda mark: str(self.stages[mark[1]].folder), value)

        for key, value in options.items():
            option = options_of(command).get(key)
            # A cache in the folder of a stage does not make that stage necessary.
            options[key] = with_folders(value, needs if option is None or affects_result(option) else {})
        inputs = {str(stage.folder): stage.fingerprint for stage in needs.values()}
        digest = fingerprint(command, options, inputs, self.launch)
        folder = FinishedFolder.named(self.output_dir, name, digest).path
        self.stages[name] = Stage(name, command, options, tuple(needs.values()), digest, folder)
        return self.stages[name]

    def _mapping(self, value: Any, place: str) -> dict[str, Any]:
        self._need(isinstance(value, Mapping), place, f"must be a mapping (`name: value` lines), not {value!r}.")
        for name in value:
            self._need(isinstance(name, str), place, f"the name {name!r} is not a string. Put it in quotes.")
        return dict(value)

    def _check_no_resolvers(self, value: Any, place: str) -> None:
        try:
            check_no_resolvers(value, self.source, place)
        except UsageError as error:
            raise RecipeError(str(error)) from None

    def _check(self, name: str, known: Iterable[str], kind: str, place: str = "") -> None:
        fault = unknown_name(name, known, kind)
        self._need(fault is None, place, fault)

    def _need(self, condition: Any, place: str, fault: str | None) -> None:
        if not condition:
            raise RecipeError(f"{self.source}{place and ', '}{place}: {fault}")


def run_recipe(
    path: str | Path,
    output_dir: str | Path | None = None,
    budget: str | None = None,
    changes: Mapping[str, Any] | None = None,
    targets: Sequence[str] | None = None,
    launch: str | None = None,
    commands: Commands | None = None,
    on_plan: Callable[[Recipe, list[Stage]], None] = lambda *_: None,
    on_stage: Callable[[Stage, int, int], None] = lambda *_: None,
    dry_run: bool = False,
    base: str | Path | None = None,
    min_accuracy: float | None = None,
    max_trainings: int | None = None,
) -> list[StageResult]:
    """
    Run the incomplete stages of a recipe file, and return the results in running order (none for a `dry_run`). For
    other arguments, see [`read_recipe`], [`Recipe`] and its `run`. The stages are in `runs/` and the file's name by
    default; without `commands`, each runs as a process. `on_plan` receives the recipe and its stages before they run.
    With a `min_accuracy` on validation problems, the recipe runs for at most `max_trainings` values of its `search`,
    until a model reaches it. Raises `UsageError` for a wrong option or input (before any stage runs), or a failed run.
    """
    folder = Path("runs") / Path(path).stem if output_dir is None else Path(output_dir).expanduser()
    check_output_folder(folder)
    make = partial(Recipe.from_file, path, folder, base, budget=budget, launch=launch)
    recipes = [make(changes=changes)]
    if min_accuracy is not None:
        if not (search := recipes[0].search):
            raise UsageError(f"{path} has no `search`, which --min_accuracy needs. Add one to the recipe.")
        values = search["values"][:max_trainings]
        recipes = [make(changes=[changes or {}, {search["variable"]: value}]) for value in values]
    elif max_trainings is not None:
        raise UsageError("--max_trainings applies only to --min_accuracy. Set it, or omit --max_trainings.")
    searched = [] if min_accuracy is None else [search["stage"]]
    plans = [(each, each.wanted([*(each.targets if targets is None else targets), *searched])) for each in recipes]
    for stage in (stage for _, stages in plans for stage in stages):
        stage.check()
    if dry_run:
        for plan in plans:
            on_plan(*plan)
        return []
    commands, accuracies = with_launcher(commands, launch), []
    # Imports Transformers, which `--help` does not need.
    from hf_mwp.commands.tasks.math_word_problems import keep_loaded

    with keep_loaded():
        for recipe, stages in plans:
            on_plan(recipe, stages)
            if min_accuracy is not None:
                accuracies.append(_accuracy_of_search(recipe, commands, on_stage))
            if min_accuracy is None or accuracies[-1] >= min_accuracy:
                return recipe.run(commands, targets, on_stage)
    listed = ", ".join(f"{value} {accuracy:.1%}" for value, accuracy in zip(values, accuracies, strict=True))
    raise UsageError(f"No model reaches --min_accuracy {min_accuracy:.1%} on the validation problems: {listed}.")


def _accuracy_of_search(recipe: Recipe, commands: Commands, on_stage: Callable[[Stage, int, int], None]) -> float:
    """Run the stage of a recipe's search, and return its answer accuracy on the validation problems."""
    stage = recipe.search["stage"]
    metrics = recipe.run(commands, [stage], on_stage)[-1].metrics
    reports = metrics.get("validation", {}).get("reports", {"all problems": {}})
    accuracy = reports["all problems"].get("answer_accuracy")
    if accuracy is None:
        raise UsageError(f"{recipe.source}, search: stage {stage!r} has no validation answer accuracy.")
    return accuracy


def with_launcher(commands: Commands | None, launch: str | None) -> Commands:
    """Return the commands (by default new processes), with those that train started by `launch` (`torchrun`)."""
    if commands is None:
        commands = {name: partial(start_command, [sys.executable], name) for name in STAGES}
    launched = [] if launch is None else [name for name in STAGES if trains(name)]
    return {**commands, **{name: partial(start_command, shlex.split(launch), name) for name in launched}}


def start_command(launcher: Sequence[str], command: str, argv: Sequence[str]) -> int:
    """Run a command of `hf-mwp` as a subprocess. Raises `UsageError` if it cannot be started or fails."""
    words = [*launcher, "-m", "hf_mwp", command, *argv]
    try:
        status = subprocess.run(words, check=False).returncode
    except OSError as error:
        raise UsageError(f"{words[0]} cannot be started: {error}") from error
    if status:
        raise UsageError(f"`{shlex.join(words)}` failed with exit status {status}.")
    return 0


def caution(budget: str | None) -> str:
    """Return a warning to print below metrics from the recipe budget `quick`, or an empty string."""
    return "budget quick: only to see it run, these figures say nothing" if budget == "quick" else ""
