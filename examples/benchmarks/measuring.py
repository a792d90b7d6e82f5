"""Clocks and counters of the benchmarks, and the file that holds their results."""

import os
import platform
import re
import subprocess
import sys
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


RESULTS = Path(__file__).parent / "RESULTS.md"


def restart_with_threads(threads: int) -> None:
    """
    Restart the program with a number of threads that sleep while they wait: spinning counts as CPU time, and is slow
    on shared cores. Then make this repository's package importable.
    """
    required = {"OMP_NUM_THREADS": str(threads), "OMP_WAIT_POLICY": "PASSIVE"}
    if any(os.environ.get(name) != value for name, value in required.items()):
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **required})
    sys.path.insert(0, str(RESULTS.parents[2]))


@dataclass
class Clock:
    """Sum of CPU and wall seconds over `with` blocks.

    CPU seconds include all threads of the process; unlike wall time, they are meaningful on a shared machine.
    """

    cpu: float = 0.0
    wall: float = 0.0
    laps: int = 0

    def __enter__(self) -> "Clock":
        self._cpu = time.process_time()
        self._wall = time.perf_counter()
        return self

    def __exit__(self, *error) -> None:
        self.cpu += time.process_time() - self._cpu
        self.wall += time.perf_counter() - self._wall
        self.laps += 1


def clock(function: Callable, arguments: Iterable, warmup: int = 1) -> Clock:
    """Time `function` on each of the arguments, after a warm-up run on the first `warmup` of them."""
    arguments = list(arguments)
    for argument in arguments[:warmup]:
        function(argument)
    total = Clock()
    for argument in arguments:
        with total:
            function(argument)
    return total


class OperatorCounter(TorchDispatchMode):
    """Counter of operator calls in a block, forward and backward, without views, which move no data."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        alias_infos = [returned.alias_info for returned in operator._schema.returns]
        is_view = any(alias_info is not None and not alias_info.is_write for alias_info in alias_infos)
        self.calls += not is_view
        return operator(*args, **(kwargs or {}))


class GpuOperators(TorchFunctionMode):
    """
    Runs a block on the meta device with the operators of a GPU: dropout and attention are one call each there, and
    several calls on a CPU. For models with dropout and with a mask for attention.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is F.dropout:
            return _gpu_dropout(*args, **kwargs)
        if function is F.scaled_dot_product_attention:
            return _gpu_attention(*args, **kwargs)
        return function(*args, **kwargs)


def _gpu_dropout(states: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> torch.Tensor:
    """Call the operator to which PyTorch's dropout is dispatched on a GPU."""
    if training and p > 0:
        states, _ = torch.native_dropout(states, p, training)
    return states


def _gpu_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attn_mask: torch.Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    **other: Any,
) -> torch.Tensor:
    """Call the operator to which PyTorch's attention with a mask is dispatched on a GPU."""
    bias = query.new_zeros(attn_mask.shape).masked_fill(~attn_mask, -torch.inf)
    bias = bias.expand(*query.shape[:3], key.shape[2])
    attention = torch.ops.aten._scaled_dot_product_efficient_attention
    states, *_ = attention(query, key, value, bias, True, dropout_p, is_causal)
    return states


class PeakMemory(TorchDispatchMode):
    """Maximum number of bytes in tensors created inside a block."""

    def __init__(self):
        super().__init__()
        self.peak = 0
        self._alive: dict[int, int] = {}

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        input_storages = set()
        for leaf in tree_leaves((args, kwargs)):
            if isinstance(leaf, torch.Tensor):
                input_storages.add(id(leaf.untyped_storage()))
        result = operator(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()
                if id(storage) not in input_storages and id(storage) not in self._alive:
                    self._alive[id(storage)] = storage.nbytes()
                    weakref.finalize(storage, self._alive.pop, id(storage), None)
        self.peak = max(self.peak, sum(self._alive.values()))
        return result


def first_batch_step(trainer: Any) -> Callable[[], None]:
    """Return a function that trains a trainer's model for one step, always on the first batch."""
    batch = next(iter(trainer.get_train_dataloader()))
    trainer.create_optimizer()
    trainer.current_gradient_accumulation_steps = 1

    def step() -> None:
        trainer.training_step(trainer.model, dict(batch))
        trainer.optimizer.step()
        trainer.optimizer.zero_grad()

    return step


def machine() -> str:
    """Return processor, cores and library versions for the head of a table."""
    import transformers

    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        match = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
        if match:
            model = match.group(1)
    gpu = ""
    if torch.cuda.is_available():
        gpu = f", {torch.cuda.get_device_name()}"
    return (
        f"{model}, {os.cpu_count()} cores{gpu}; Python {platform.python_version()}, torch {torch.__version__}, "
        f"transformers {transformers.__version__}"
    )


def table(head: list[str], rows: list[list]) -> str:
    """Return a Markdown table with text in the first column and numbers in the others."""
    texts = []
    for row in [head, *rows]:
        texts.append([str(cell) for cell in row])
    widths = []
    for column in zip(*texts, strict=True):
        widths.append(max(2, *map(len, column)))

    lines = []
    for row_texts in texts:
        cells = [row_texts[0].ljust(widths[0])]
        for text, width in zip(row_texts[1:], widths[1:], strict=True):
            cells.append(text.rjust(width))
        lines.append(f"| {' | '.join(cells)} |")
    rules = ["-" * widths[0]]
    for width in widths[1:]:
        rules.append("-" * (width - 1) + ":")
    lines.insert(1, f"| {' | '.join(rules)} |")
    return "\n".join(lines)


def revision() -> str:
    """Return the short git revision, with a plus sign if programs are modified."""

    def git(*command: str) -> str:
        return subprocess.run(["git", *command], capture_output=True, text=True, cwd=RESULTS.parent).stdout.strip()

    changed = git("status", "--porcelain", "--untracked-files=no", "--", "../../hf_mwp", "*.py")
    commit = git("rev-parse", "--short", "HEAD")
    return f"{commit}+" if changed else commit


def show_report(title: str, body: str, write: bool) -> None:
    """Print a report and, with `write`, store it as a section of the results file."""
    print(body)
    if write:
        write_section(title, body)


def write_section(title: str, body: str, path: Path = RESULTS) -> None:
    """Write a section to the results file, and replace the section with the same title."""
    command = " ".join(["python", os.path.relpath(sys.argv[0], Path(__file__).parents[2]), *sys.argv[1:]])
    section = f"## {title}\n\n`{command}` at revision {revision()}, on {machine()}.\n\n{body.strip()}\n"
    text = "# Results of the benchmarks\n"
    if path.exists():
        text = path.read_text(encoding="utf-8")
    pattern = re.compile(rf"^## {re.escape(title)}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
    if pattern.search(text):
        text = pattern.sub(lambda _: section + "\n", text)
    else:
        text = f"{text.rstrip()}\n\n{section}"
    path.write_text(text.rstrip() + "\n", encoding="utf-8")
