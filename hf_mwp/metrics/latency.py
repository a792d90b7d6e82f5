"""Latency of calls, compared within one run."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Latency:
    """
    Wall-clock seconds of repeated calls.

    Attributes:
        times (`tuple[float, ...]`): Seconds of each call, in order, warm-up calls left out.
    """

    times: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median seconds of a call."""
        return statistics.median(self.times)

    @property
    def p90(self) -> float:
        """The smallest measured time that at least 90 % of the calls do not exceed."""
        return sorted(self.times)[-(-9 * len(self.times) // 10) - 1]


def measure_latency(function: Callable[[], object], repeats: int = 20, warmup: int = 3) -> Latency:
    """Times a call without arguments as [`compare_latency`] times several."""
    return compare_latency({"function": function}, repeats=repeats, warmup=warmup)["function"]


def compare_latency(
    functions: Mapping[str, Callable[[], object]], repeats: int = 20, warmup: int = 3
) -> dict[str, Latency]:
    """
    Times several calls in turns, so that a change of the machine's load meets all of them alike.

    Only ratios within one such run mean anything: medians of two runs on a shared machine easily differ by a factor.

    Args:
        functions (`Mapping[str, Callable]`): What to time, by name; each is called without arguments.
        repeats (`int`, *optional*, defaults to 20), warmup (`int`, *optional*, defaults to 3): As in
            [`measure_latency`], for each function.

    Raises:
        ValueError: if `repeats` is not positive.
    """
    if repeats < 1:
        raise ValueError(f"`repeats` must be at least 1, not {repeats}.")
    times: dict[str, list[float]] = {name: [] for name in functions}
    for turn in range(warmup + repeats):
        for name, function in functions.items():
            _synchronize()
            start = time.perf_counter()
            function()
            _synchronize()
            if turn >= warmup:
                times[name].append(time.perf_counter() - start)
    return {name: Latency(tuple(seconds)) for name, seconds in times.items()}


def _synchronize() -> None:
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        torch.cuda.synchronize()
