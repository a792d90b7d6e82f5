"""Recipes: YAML files of stages that use each other's results, and functions that run them."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, Self

from hf_mwp.commands.options.stages import options_of
from hf_mwp.utils.job import Job
from hf_mwp.utils.option import affects_result
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.yaml_values import check_no_resolvers, read_yaml

from .stage import Commands, Stage, StageResult, stage_inputs


KEYS = ("recipe", "budget", "variables", "stages", "budgets", "targets", "search")
# Placeholder for a stage's folder in an option, until the folder is known.
MARK = re.compile("\0(.+?)\0")
# A stage's name begins the name of its folder and its flags (`--stage.option`): at most 240 bytes in UTF-8.
STAGE_NAME = re.compile(r"\w[\w-]{0,59}")


class RecipeError(UsageError):
    """Error in a recipe. The message contains the file and the key."""


def unknown_name(name: object, known: Iterable[object], noun: str) -> str | None:
    """Return the error message for an unknown name, with a similar name, or `None` if the name is known."""
    names = list(map(str, known))
    if str(name) in names:
        return None
    similar = difflib.get_close_matches(str(name), names, n=1)
    if similar:
        hint = f"Did you mean {similar[0]!r}?"
    else:
        hint = f"Known: {', '.join(names) or 'none'}."
    return f"unknown {noun} {str(name)!r}. {hint}"


def read_recipe(path: str | Path, base: str | Path | None = None, _above: tuple[Path, ...] = ()) -> Any:
    """Read a recipe, merged into its base or into `base`. Raises `RecipeError` if a file is wrong."""
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
    base_path = path.parent / str(content["base"])
    if base is not None:
        base_path = Path(base).resolve()
    base_content = read_recipe(base_path, None, (*_above, path.resolve()))
    if not isinstance(base_content, Mapping) or not base_content.keys() & set(KEYS):
        raise RecipeError(f"{path}: its `base` {base_path} is not a valid recipe.")
    from omegaconf import OmegaConf

    changes = dict(content)
    del changes["base"]
    try:
        merged = OmegaConf.to_container(OmegaConf.merge(base_content, changes))
    except TypeError as error:
        fault = f"{path}: a list and a mapping cannot be merged ({error}). Compare the file with its base."
        raise RecipeError(fault) from error
    if isinstance(merged.get("variables"), dict):
        for name, value in (changes.get("variables") or {}).items():
            # OmegaConf keeps a base's value for `???`.
            if value == "???":
                merged["variables"][name] = value
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
        self.source = source
        self.output_dir = Path(output_dir).expanduser()
        self.launch = launch
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
        self._options: dict[str, dict[str, Any]] = {}
        for name, options in stages.items():
            self._options[name] = self._mapping(options, f"stages.{name}")
        self._use_budget(budget or content.get("budget"), content.get("budgets"))
        if isinstance(changes, Mapping | None):
            changes = [changes or {}]
        for mapping in changes:
            self._change(mapping)
        self.targets = content.get("targets") or list(self._options)
        is_list = isinstance(self.targets, list) and all(isinstance(target, str) for target in self.targets)
        self._need(is_list, "targets", f"must be a list of stage names, not {self.targets!r}.")
        self.search = self._mapping(content.get("search") or {}, "search")
        if self.search:
            self._check_search()
        self.stages: dict[str, Stage] = {}
        self._unset: dict[str, str] = {}  # errors of stages with a variable that must be set
        filled = self._filled()
        for name in filled:
            self._add_stage(name, filled, ())

    @classmethod
    def from_file(cls, path: str | Path, output_dir: str | Path, base: str | Path | None = None, **kwargs) -> Self:
        """Create a recipe from a file, see [`read_recipe`]; `kwargs` are passed to the class."""
        return cls(read_recipe(path, base), output_dir, source=str(path), **kwargs)

    def wanted(self, targets: Iterable[str] | None = None) -> list[Stage]:
        """Return the target stages and the stages they need, in running order; `targets` default to the file's."""
        names = set()
        waiting = list(self.targets if targets is None else targets)
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
        stages = self.wanted(targets)
        results = []
        for number, stage in enumerate(stages, start=1):
            on_stage(stage, number, len(stages))
            results.append(stage.run(commands))
        return results

    def _use_budget(self, budget: Any, budgets: Any) -> None:
        """Apply the changes of the budget that was chosen."""
        self.budget = budget
        budgets = self._mapping(budgets or {}, "budgets")
        if budget is not None:
            self.budget = str(budget)
            self._check(self.budget, budgets, "budget")
            key = f"budgets.{self.budget}"
            changes = self._mapping(budgets[self.budget] or {}, key)
            self._change(changes, f"{key}.")

    def _check_search(self) -> None:
        values = self.search.get("values")
        has_values = isinstance(values, list) and values
        fault = "must have the keys `variable`, `values` (a list of at least one) and `stage`."
        self._need(has_values and self.search.keys() == {"variable", "values", "stage"}, "search", fault)
        self._check(self.search["variable"], self.variables, "variable", "search")
        self._check(self.search["stage"], self._options, "stage", "search")

    def _change(self, changes: Mapping[str, Any], prefix: str = "") -> None:
        section = prefix.removesuffix(".")
        # Flags have `_` instead of `-`.
        names = {name.replace("-", "_"): name for name in (*self._options, *self.variables)}
        for key, value in changes.items():
            name, dot, option = key.partition(".")
            name = names.get(name.replace("-", "_"), name)
            is_stage = name in self._options and (isinstance(value, Mapping) or name not in self.variables)
            if dot:
                self._check(name, self._options, "stage", section)
                self._options[name][option] = value
            elif name == "variables":
                variables = self._mapping(value or {}, f"{prefix}{name}")
                for variable in variables:
                    self._check(variable, self.variables, "variable", section)
                self.variables.update(variables)
            elif is_stage:
                self._options[name].update(self._mapping(value, f"{prefix}{name}"))
            else:
                self._check(name, [*self._options, *self.variables], "variable or stage", section)
                self.variables[name] = value

    def _filled(self) -> dict[str, dict[str, Any]]:
        """Return the options of all stages, with values in place of variables and placeholders in place of stages."""
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException

        self._check_no_resolvers(self.variables, "variables")
        placeholders = {name: f"\0{name}\0" for name in self._options}
        try:
            root = OmegaConf.create(placeholders | self.variables)
        except OmegaConfBaseException as error:
            raise RecipeError(f"{self.source}, variables: {error}") from None
        filled: dict[str, dict[str, Any]] = {}
        resolved: dict[str, Any] = {}
        for stage, options in self._options.items():
            filled[stage] = {}
            for name, value in options.items():
                # Many options have the same value, such as `${dataset}`, and OmegaConf is slow.
                written = repr(value)
                if written in resolved:
                    filled[stage][name] = deepcopy(resolved[written])
                    continue
                filled[stage][name] = self._fill(stage, name, value, root)
                # Each stage with an unset variable gets an error of its own.
                if stage not in self._unset:
                    resolved[written] = filled[stage][name]
        return filled

    def _fill(self, stage: str, name: str, value: Any, root: Any) -> Any:
        """Return the value of a stage's option, with the values in `root` in place of variables."""
        from omegaconf import OmegaConf
        from omegaconf.errors import InterpolationKeyError, InterpolationToMissingValueError, OmegaConfBaseException

        if "${" not in str(value):
            return value
        key = f"{stage}.{name}"
        self._check_no_resolvers(value, key)
        try:
            config = OmegaConf.create({"value": value}, parent=root)
            filled = OmegaConf.to_container(config, resolve=True)["value"]
        except InterpolationToMissingValueError as error:
            variable = re.search(r"value: (\S+)", error.msg)[1]
            options = self._options[stage]
            option = options_of(str(options.get("command")), options.get("task")).get(name)
            description = ""
            if option:
                description = option.metadata["help"]
            self._unset[stage] = f"key {name!r} needs a value for --{variable}. {description}"
            return None
        except OmegaConfBaseException as error:
            if isinstance(error, InterpolationKeyError):
                missing = re.search("'(.*)'", error.msg)[1]
                self._check(missing, [*self._options, *self.variables], "variable or stage", key)
            fault = f"{value!r:.200} cannot be resolved: {str(error).splitlines()[0]}."
            raise RecipeError(f"{self.source}, {key}: {fault}") from None
        # The command reads the value from a file of options, which may not contain a resolver either.
        self._check_no_resolvers(filled, key)
        return filled

    def _add_stage(self, name: str, stages: Mapping[str, Mapping[str, Any]], parents: tuple[str, ...]) -> Stage:
        """Create a stage after the stages that it needs; `stages` has the options of all stages."""
        if name in self.stages:
            return self.stages[name]
        self._need(name not in parents, "", f"the stages {' -> '.join([*parents, name])} depend on each other.")
        options = {key.replace("-", "_"): value for key, value in stages[name].items()}
        options = {key: value for key, value in options.items() if value is not None}
        command = options.pop("command", None)
        self._need(isinstance(command, str), "", f"stage {name!r} has no `command`.")
        fault = "key 'output_dir': stages have no own output folder. Pass --output_dir for the folder of all stages."
        self._need("output_dir" not in options, f"stage {name}", fault)
        needs: dict[str, Stage] = {}

        def with_folders(value: Any, used: dict[str, Stage]) -> Any:
            """Replace placeholders by the folders of the stages, which are added to `used`."""
            if isinstance(value, Mapping):
                return {key: with_folders(item, used) for key, item in value.items()}
            if isinstance(value, (list, tuple)):
                return [with_folders(item, used) for item in value]
            if not isinstance(value, str):
                return value
            for stage in MARK.findall(value):
                used[stage] = self._add_stage(stage, stages, (*parents, name))
            return MARK.sub(lambda mark: str(self.stages[mark[1]].folder), value)

        for key, value in options.items():
            option = options_of(command, options.get("task")).get(key)
            needs_of_option: dict[str, Stage] = {}
            options[key] = with_folders(value, needs_of_option)
            # A cache in the folder of a stage does not make that stage necessary.
            if option is None or affects_result(option):
                needs |= needs_of_option
        inputs = {str(stage.folder): stage.fingerprint for stage in needs.values()}
        job = Job.named(self.output_dir, name, stage_inputs(command, options, inputs, self.launch))
        self.stages[name] = Stage(name, command, options, tuple(needs.values()), job)
        return self.stages[name]

    def _mapping(self, value: Any, key: str) -> dict[str, Any]:
        self._need(isinstance(value, Mapping), key, f"must be a mapping (`name: value` lines), not {value!r}.")
        for name in value:
            self._need(isinstance(name, str), key, f"the name {name!r} is not a string. Put it in quotes.")
        return dict(value)

    def _check_no_resolvers(self, value: Any, key: str) -> None:
        try:
            check_no_resolvers(value, self.source, key)
        except UsageError as error:
            raise RecipeError(str(error)) from None

    def _check(self, name: str, names: Iterable[str], noun: str, key: str = "") -> None:
        fault = unknown_name(name, names, noun)
        self._need(fault is None, key, fault)

    def _need(self, condition: Any, key: str, fault: str | None) -> None:
        if not condition:
            source = f"{self.source}, {key}" if key else self.source
            raise RecipeError(f"{source}: {fault}")
