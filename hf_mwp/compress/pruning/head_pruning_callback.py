"""Callback that prunes attention heads during training."""

import inspect
import json
import math
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate.data_loader import IterableDatasetShard
from accelerate.utils import broadcast_object_list, send_to_device
from torch import Tensor, nn
from transformers import TrainerCallback, TrainingArguments
from transformers.trainer_callback import ExportableState
from transformers.utils import logging

from hf_mwp.compress.models.pruned_form import pruned_class
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.main_process import shards_weights

from .cutting import prune
from .head_bundles import check_unit
from .head_choice import check_ratio, choose_heads, fewest_heads, heads_by_layer, whole_heads
from .head_importance import CombinedImportance, HeadImportance
from .pruned_saving import replace_saving, save_pruned, save_sliced
from .pruning_modes import MODES
from .score_drawing import rows_of


logger = logging.get_logger(__name__)

CALIBRATION_EXAMPLES = 128
CALIBRATION_BATCH_SIZE = 8


class HeadPruningCallback(TrainerCallback, ExportableState):
    """
    Callback for any `Trainer` that prunes attention heads during training. At equally spaced steps, all heads are
    scored, and the heads with the lowest scores are closed by gates, until `max_ratio` of the heads are closed. When
    the training ends, `Trainer.save_model` and `save_pretrained` write the smaller model without these heads, which
    `from_pretrained` loads (see [`prune`]). Checkpoints of `mode="mask"` still contain the closed heads.
    `pruned(model)` returns the smaller model at any time, and `undo()` removes everything that was attached to the
    model.

    A resumed training prunes the same heads as an uninterrupted one. It needs the same options, and the same number of
    examples per step: batch size, gradient accumulation and number of processes may change if their product does not.
    A second `train()` of the same model keeps its heads pruned and ends at the same `max_ratio`. With
    `load_best_model_at_end`, only checkpoints with all heads pruned are candidates. Scoring does not use the random
    numbers of the training.

    Args:
        max_ratio (`float`, *optional*, defaults to 0.3): Share of the heads that is pruned at the end.
        min_ratio (`float`, *optional*, defaults to 0.0): Share of the heads that is pruned before the first step.
        power (`float`, *optional*, defaults to 1.0): `n` of equation 5; above 1, most heads are pruned late.
        alpha (`float`, *optional*, defaults to 0.5): Weight of the norm in [`CombinedImportance`].
        importance ([`HeadImportance`], *optional*): Score to use instead of [`CombinedImportance`]. [`GateGradient`]
            needs batches with labels and kept far more accuracy of small models (`examples/results`).
        num_pruning_steps (`int`, *optional*, defaults to 10): Number of scoring and pruning steps, equally spaced.
        end_fraction (`float`, *optional*, defaults to 1.0): Share of the steps after which `max_ratio` is reached. The
            model recovers in the remaining steps. The paper's schedule ends with the training.
        calibration_examples (`int`, *optional*, defaults to 128):
            Number of training examples for scoring heads, whatever the batch size of the training.
        min_heads_per_layer (`int`, *optional*, defaults to 1): Minimum number of heads that each layer keeps.
        unit (`str`, *optional*, defaults to `"group"`):
            Heads that are pruned together if queries share keys and values, as in most causal language models:
            `"group"` prunes a key-value head with all its queries, `"query"` one query of each key-value head, so that
            all keep equally many (any query if the layer has a single key-value head). See [`choose_heads`].
        uniform (`bool`, *optional*, defaults to `False`):
            Whether each layer loses equally many heads, so that [`export_dense`] can write a causal language model of
            Transformers' own class.
        mode (`str`, *optional*, defaults to `"mask"`):
            `"mask"` closes pruned heads by gates. `"slice"` removes them from the linear layers and the optimiser
            state at once, so that steps become faster; it supports only one process. Losses of both modes are equal up
            to rounding, unless attention has dropout, because `"slice"` then draws fewer random numbers. Checkpoints
            of `"slice"` have different shapes: to resume, pass the callback in the trainer's `callbacks`.

    Raises:
        TypeError: an argument is not a number, or not a whole number.
        ValueError: Ratios or counts are out of range. When the training begins: the checkpoint was pruned with
            different options or another number of examples per step, [`prune`] does not support the model, weights are
            split over processes (FSDP, ZeRO-3), heads cannot be scored, `min_heads_per_layer` prevents `max_ratio`, or
            `max_ratio` is less than the heads that are pruned together.
            With `mode="slice"`: several processes, or an unsupported optimiser.

    References:
        Yu et al., "Efficient Mathematical Reasoning Models via Dynamic Pruning and Knowledge Distillation", equations
        1 to 5 and Algorithm 1.

    Example:
        >>> trainer = Trainer(model, args, train_dataset=data, callbacks=[HeadPruningCallback(max_ratio=0.3)])
        >>> trainer.train()
        >>> trainer.save_model("smaller")
        >>> AutoModelForSequenceClassification.from_pretrained("smaller")
    """

    @checked
    def __init__(
        self,
        max_ratio: float = 0.3,
        min_ratio: float = 0.0,
        power: float = 1.0,
        alpha: float = 0.5,
        importance: HeadImportance | None = None,
        num_pruning_steps: int = 10,
        end_fraction: float = 1.0,
        calibration_examples: int = CALIBRATION_EXAMPLES,
        min_heads_per_layer: int = 1,
        mode: str = "mask",
        calibration_batch_size: int = CALIBRATION_BATCH_SIZE,
        unit: str = "group",
        uniform: bool = False,
    ) -> None:
        check_unit(unit)
        rules = {
            f"0 <= `min_ratio` ({min_ratio}) <= `max_ratio` ({max_ratio}) < 1": 0 <= min_ratio <= max_ratio < 1,
            f"`power` ({power}) > 0": power > 0,
            f"0 < `end_fraction` ({end_fraction}) <= 1": 0 < end_fraction <= 1,
            f"`num_pruning_steps` ({num_pruning_steps}) >= 1": num_pruning_steps >= 1,
            f"`calibration_examples` ({calibration_examples}) >= 1": calibration_examples >= 1,
            f"`calibration_batch_size` ({calibration_batch_size}) >= 1": calibration_batch_size >= 1,
            f"`min_heads_per_layer` ({min_heads_per_layer}) >= 0": min_heads_per_layer >= 0,
            f"`mode` ({mode!r}) in {list(MODES)}": mode in MODES,
        }
        for rule, holds in rules.items():
            if not holds:
                raise ValueError(f"{rule} must hold.")
        self.max_ratio = max_ratio
        self.min_ratio = min_ratio
        self.power = power
        self.end_fraction = end_fraction
        self.importance = CombinedImportance(alpha) if importance is None else importance
        self.num_pruning_steps = num_pruning_steps
        self.calibration_examples = calibration_examples
        self.calibration_batch_size = calibration_batch_size
        self.min_heads_per_layer = min_heads_per_layer
        self.log: list[dict[str, Any]] = []
        """Events: `step`, `ratio`, `heads` (by layer), `scores` as lists, `None` for heads closed before."""
        self.mode = mode
        self.unit = unit
        self.uniform = uniform
        self._mode = MODES[mode]()
        self._total = 0
        self._fewest = 1
        self._examples_per_step: int | None = None

    @property
    def closed(self) -> dict[int, list[int]]:
        """Heads that are pruned so far, by layer."""
        return self._mode.closed

    def ratio_at(self, step: int, max_steps: int) -> float:
        """Return the share of heads that are pruned after `step` steps (equation 5)."""
        progress = min(step / self._last_step(max_steps), 1.0)
        return self.min_ratio + (self.max_ratio - self.min_ratio) * progress**self.power

    def event_steps(self, max_steps: int) -> list[int]:
        """Return the steps after which heads are pruned, including 0 if `min_ratio` is above 0."""
        last_step = self._last_step(max_steps)
        steps = {0} if self.min_ratio else set()
        for event in range(1, self.num_pruning_steps + 1):
            steps.add(math.ceil(last_step * event / self.num_pruning_steps))
        return sorted(steps)

    def _last_step(self, max_steps: int) -> int:
        return max(round(self.end_fraction * max_steps), 1)

    def state(self) -> dict[str, Any]:
        """Return the state for checkpoints, as JSON values."""
        heads = []
        for layer, closed in self.closed.items():
            heads += [[layer, head] for head in closed]
        return {"args": {}, "attributes": {"heads": heads, "log": self.log, "options": self._options}}

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "max_ratio": self.max_ratio,
            "min_ratio": self.min_ratio,
            "power": self.power,
            "end_fraction": self.end_fraction,
            "min_heads_per_layer": self.min_heads_per_layer,
            "mode": self.mode,
            "unit": self.unit,
            "uniform": self.uniform,
            "num_pruning_steps": self.num_pruning_steps,
            "calibration_examples": self.calibration_examples,
            "calibration_batch_size": self.calibration_batch_size,
            "importance": repr(self.importance),
            "examples_per_step": self._examples_per_step,
        }

    def on_init_end(self, args, state, control, model=None, **kwargs):
        if args.restore_callback_states_from_checkpoint:
            name = "restore_callback_states_from_checkpoint"
            raise ValueError(f"`HeadPruningCallback` restores itself when a training resumes. Set `{name}=False`.")
        if model is not None:
            self._mode.prepare_loading(model)

    def on_train_begin(self, args, state, control, model=None, **kwargs):
        if shards_weights(args):
            raise ValueError("Heads cannot be pruned if FSDP or DeepSpeed's ZeRO-3 splits weights. Use DDP.")
        pruned_class(model)
        self._mode.check_training(args, self.min_heads_per_layer, kwargs["optimizer"])
        self._examples_per_step = args.train_batch_size * args.gradient_accumulation_steps * args.world_size
        self.log = []
        closed = {}
        saved = state.stateful_callbacks.get(type(self).__name__)
        if state.global_step and saved:
            self._check_options(saved["attributes"].get("options", {}))
            closed = self._read_state(saved)
        elif self._mode.model is model:
            # Heads pruned by an earlier training of the same model stay pruned.
            closed = self.closed
        self._total = self._mode.begin(model, closed)
        # Checkpoints of this training contain the heads of the model in memory, to be resumed.
        replace_saving(model, save_sliced)
        self._fewest = fewest_heads(self._mode.groups(), self.unit, self.uniform)
        # Run one choice now, so that errors appear before the training.
        scores = self._scores(args, model, kwargs["train_dataloader"], self.calibration_batch_size)
        check_ratio(scores, self.max_ratio, **self._choice())
        if not state.global_step:
            self.on_step_end(args, state, control, model, **kwargs)

    def _check_options(self, saved: Mapping[str, Any]) -> None:
        """Raise `ValueError` if the checkpoint was pruned with other options."""
        changes = []
        for name, value in self._options.items():
            if saved.get(name, value) != value:
                changes.append(f"{name}: {saved[name]!r} -> {value!r}")
        if changes:
            raise ValueError(
                f"The checkpoint was pruned with different options ({', '.join(changes)}). Resume with those. The "
                "number of examples per step is batch size * gradient accumulation * processes."
            )

    def _read_state(self, saved: Mapping[str, Any]) -> dict[int, list[int]]:
        """Read the log from the state of a checkpoint, and return its closed heads."""
        self.log = list(saved["attributes"]["log"])
        return heads_by_layer(saved["attributes"]["heads"])

    def on_step_begin(self, args, state, control, **kwargs):
        # Forget a best checkpoint that has more heads than the target.
        if not self._is_pruned():
            state.best_metric = state.best_global_step = state.best_model_checkpoint = None

    on_save = on_step_begin

    def on_step_end(self, args, state, control, model=None, **kwargs):
        if state.global_step not in self.event_steps(state.max_steps):
            return
        scores = self._scores(args, model, kwargs["train_dataloader"], self.calibration_examples)
        # Scores may differ by rounding between devices, but all must prune the same heads.
        [scores] = broadcast_object_list([scores])
        ratio = self.ratio_at(state.global_step, state.max_steps)
        closed = choose_heads(scores, ratio, **self._choice())
        self._mode.close(closed, kwargs["optimizer"])
        heads = {str(layer): heads for layer, heads in closed.items()}
        self.log.append({"step": state.global_step, "ratio": ratio, "heads": heads, "scores": rows_of(scores)})

    def on_train_end(self, args, state, control, model=None, **kwargs):
        if args.load_best_model_at_end and state.best_model_checkpoint is not None:
            path = Path(state.best_model_checkpoint) / "trainer_state.json"
            saved = json.loads(path.read_text(encoding="utf-8"))["stateful_callbacks"][type(self).__name__]
            self._mode.restore(self._read_state(saved))
        if not self._is_pruned():
            logger.warning(
                f"The training ended after {state.global_step} steps, before `max_ratio` was reached: "
                f"{self._num_closed()} of {self._total} heads are pruned."
            )
        replace_saving(model, save_pruned)

    def undo(self) -> None:
        """Remove everything that the callback attached to the model of the last training: gates, hooks and the
        replacement of `save_pretrained`. In `mode="mask"`, the closed heads open again, with the weights that they
        had when they were closed; in `mode="slice"`, the removed heads stay removed, and only `pruned(model)` can be
        saved. Save the pruned model before."""
        self._mode.undo()

    def pruned(self, model: nn.Module) -> nn.Module:
        """Return a copy of the trained model without its closed heads; see [`prune`]."""
        return prune(model)

    def _num_closed(self) -> int:
        return sum(map(len, self.closed.values()))

    def _choice(self) -> dict[str, Any]:
        """Return the options of [`choose_heads`]."""
        return {
            "min_heads_per_layer": self.min_heads_per_layer,
            "total": self._total,
            "gone": self.closed,
            "groups": self._mode.groups(),
            "unit": self.unit,
            "uniform": self.uniform,
        }

    def _is_pruned(self) -> bool:
        # The share is rounded down to heads that are pruned together.
        num_missing = whole_heads(self.max_ratio, self._total) - self._num_closed()
        return num_missing < self._fewest

    def _scores(self, args: TrainingArguments, model: nn.Module, loader: Any, num_examples: int) -> Tensor:
        """Return the scores of all heads on `num_examples` examples."""
        batches = []
        if self.importance.needs_batches:
            batches = self._calibration(args, model, loader, num_examples)
        return self._mode.all_heads(self.importance.scores(model, batches))

    def _calibration(self, args: TrainingArguments, model: nn.Module, loader: Any, num_examples: int) -> list[Mapping]:
        """Return batches of `num_examples` random training examples. They are the same in each process, at each
        pruning step and for each batch size of the training."""
        data = loader.dataset
        if isinstance(data, IterableDatasetShard):
            data = data.dataset
        device = next(model.parameters()).device
        batches = []
        with _seeded_random_numbers(args.seed, device):
            if hasattr(data, "__len__"):
                order = torch.randperm(len(data), generator=torch.Generator().manual_seed(args.seed))
                examples = [data[index] for index in order[:num_examples].tolist()]
            else:
                examples = list(islice(iter(data), num_examples))
            for start in range(0, len(examples), self.calibration_batch_size):
                batches.append(loader.collate_fn(examples[start : start + self.calibration_batch_size]))
        # Batches may contain further entries for the trainer, such as teacher outputs.
        parameters = inspect.signature(model.forward).parameters
        if not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values()):
            for index, batch in enumerate(batches):
                batches[index] = {name: value for name, value in batch.items() if name in parameters}
        return [send_to_device(batch, device) for batch in batches]


@contextmanager
def _seeded_random_numbers(seed: int, device: torch.device) -> Iterator[None]:
    """Context manager in which datasets and collators draw from `seed`, and which restores all random states."""
    python_state = random.getstate()
    numpy_state = np.random.get_state()
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.default_generator.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed % 2**32)
        try:
            yield
        finally:
            random.setstate(python_state)
            np.random.set_state(numpy_state)
