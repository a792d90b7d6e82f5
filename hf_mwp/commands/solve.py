"""Solve math word problems given as arguments, in a file, or on standard input (one per line, answered immediately). A
problem without an answer is listed with its error and does not change the exit status 0."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from hf_mwp.solver.data.file_format import FileArguments
from hf_mwp.solver.data.problem_lines import problem_batches
from hf_mwp.utils.checks import check_at_least_one
from hf_mwp.utils.control_characters import show_controls
from hf_mwp.utils.main_process import check_one_process
from hf_mwp.utils.option import option
from hf_mwp.utils.usage_error import UsageError

from .options.search_options import RankedSearchOptions, find_device
from .terminal.console import CommandConsole, print_solution, quiet_libraries


# Options on which the answers in a file depend.
SEARCH_OPTIONS = ("num_beams", "rerank", "reranker", "top_k", "confidence_threshold", "score_margin")
_NO_ANSWER = dict.fromkeys(("answer", "value", "equation", "prefix")) | {"numbers": [], "score": 0.0}


@dataclass
class SolveArguments(RankedSearchOptions, FileArguments):
    """Options of `hf-mwp solve`."""

    problems: list[str] = option([], "One or more problems.", positional=True)
    file: str | None = option(None, "File of problems: lines, or .jsonl, .json, .csv, .tsv with `text`; - is stdin.")
    output: str | None = option(None, "File for the answers (JSON lines, in the same order); a killed run resumes.")
    json: bool = option(False, "Print JSON lines instead of text.", affects_result=False)
    tree: bool = option(True, "Draw the expression tree.")
    top_k: int = option(1, "Number of equations to show for each problem.")
    confidence_threshold: float | None = option(
        None, 'Probability, with re-ranking plausibility, below which an answer is "unsure" and all beams are listed.'
    )
    batch_size: int = option(16, "Number of problems in a batch, with PyTorch.")
    runtime: str = option(
        "auto",
        "Library that runs the model: torch, or numpy, which starts faster and solves one problem at a time; auto: "
        "without a device, numpy for exports and, if it supports the model, for problems that are not from a file.",
        choices=("auto", "numpy", "torch"),
    )

    def __post_init__(self):
        super().__post_init__()
        FileArguments.__post_init__(self)
        check_at_least_one(self, "top_k")


OPTIONS = (SolveArguments,)
NEEDS_TORCH = False


def run(console: CommandConsole, args: SolveArguments) -> None:
    if args.output is None:
        check_one_process("solve ... --output FILE", launches=False)
    batches = problem_batches(args.problems, args.file, args.batch_size, args.file_format)
    first = next(batches, None)
    if first is None:
        raise UsageError("The input contains no problem. Pass at least one.")
    solve = _load_solver(args)

    def answer(batch: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
        solved = iter(solve([problem["text"] for problem in batch if "error" not in problem]))
        return [[_NO_ANSWER] if "error" in problem else next(solved) for problem in batch]

    if args.output is not None:
        from hf_mwp.solver.solving.kept_records import solve_to_file

        problems = list(chain(first, chain.from_iterable(batches)))
        options = {name: getattr(args, name) for name in SEARCH_OPTIONS}
        solve_to_file(problems, answer, args.model, options, args.output, console.progress())
        console.print(f"{args.output} contains the answers to {len(problems):,} problems.")
        return
    for batch in chain([first], batches):
        for problem, results in zip(batch, answer(batch), strict=True):
            if args.json:
                for result in results:
                    # JSON itself escapes only the control characters below U+0020.
                    line = json.dumps(problem | result, ensure_ascii=sys.stdout.encoding.lower() != "utf-8")
                    print(show_controls(line, "\\u{:04x}"), flush=True)
            else:
                print_solution(console, problem["text"], [problem | result for result in results], tree=args.tree)


def _load_solver(args: SolveArguments) -> Callable[[list[str]], list[Any]]:
    """Return the function that solves a list of texts, with NumPy or with PyTorch."""
    from hf_mwp.runtime import load_solver as load_runtime
    from hf_mwp.runtime.solver import EXPORT_RECORD, can_load

    options = {"top_k": args.top_k, "confidence_threshold": args.confidence_threshold}
    runtime = args.runtime
    if runtime == "auto" and not args.device:
        is_export = (Path(args.model) / EXPORT_RECORD).is_file()
        # Without PyTorch, the runtime says why it cannot load a model.
        if is_export or (not args.file and (can_load(args.model) or not find_spec("torch"))):
            runtime = "numpy"
    if runtime == "numpy":
        if args.device is not None:
            raise UsageError("--runtime numpy computes on the CPU. Remove --device.")
        search = {"num_beams": args.num_beams, "rerank": args.rerank_with, "score_margin": args.score_margin}
        return partial(load_runtime(args.model), **search, **options)
    quiet_libraries()
    device = find_device(args.device)
    from hf_mwp.solver.pipelines import MathWordProblemPipeline

    from .building.solver import load_solver

    model, processor = load_solver(args.model)
    solver = MathWordProblemPipeline(model=model, processor=processor, device=device, batch_size=args.batch_size)
    reranker, num_beams, score_margin = args.search_settings(processor)
    search = {"num_beams": num_beams, "rerank": reranker or False, "score_margin": score_margin}
    return partial(solver, **search, **options)
