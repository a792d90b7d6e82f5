"""Solve math word problems given as arguments, in a file, or on standard input (one per line, answered immediately). A
problem without an answer is listed with its error and does not change the exit status 0."""

import copy
import json
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from hf_mwp.solver.data.file_format import FileArguments
from hf_mwp.solver.data.problem_lines import problem_batches
from hf_mwp.solver.solving.kept_records import solve_to_file
from hf_mwp.utils.checks import check_at_least_one
from hf_mwp.utils.control_characters import show_controls
from hf_mwp.utils.length_batches import BATCHES_PER_BLOCK
from hf_mwp.utils.main_process import check_one_process
from hf_mwp.utils.option import option
from hf_mwp.utils.usage_error import UsageError
from hf_mwp.utils.worker_processes import in_order, map_in_processes

from .options.search_options import RankedSearchOptions, find_device, has_gpu
from .tasks.reporter import SILENT, Reporter
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
    batch_size: int = option(
        32, "Number of problems in a batch, with PyTorch. Eight batches are sorted by length.", affects_result=False
    )
    processes: int = option(
        1,
        "Number of processes that solve --file at the same time, each with a solver of its own and its share of the "
        "cores.",
        affects_result=False,
    )
    runtime: str = option(
        "auto",
        "Library that runs the model: torch, or numpy, which starts faster and solves one problem at a time; auto: "
        "without a device, numpy for exports and, if it supports the model, for problems that are not from a file and "
        "for several processes without a GPU.",
        choices=("auto", "numpy", "torch"),
    )

    def __post_init__(self):
        super().__post_init__()
        FileArguments.__post_init__(self)
        check_at_least_one(self, "top_k", "processes")
        if self.processes > 1:
            self._check_processes()

    def _check_processes(self) -> None:
        check_one_process("solve --processes", launches=False)
        if self.file == "-" or (self.file is None and self.problems in ([], ["-"])):
            raise UsageError("`processes` applies to a --file. Standard input is solved by one process; remove it.")


OPTIONS = (SolveArguments,)
NEEDS_TORCH = False
EXAMPLES = (
    'hf-mwp solve --model runs/student "Ann has 9 books. She reads 4 of them. How many are left?"',
    "hf-mwp solve --model runs/student --file problems.jsonl --output answers.jsonl",
)


def run(console: CommandConsole, args: SolveArguments) -> None:
    if args.output is not None:
        num_problems = solve_to_output(args, console)
        console.print(f"{args.output} contains the answers to {num_problems:,} problems.")
        return
    for problem, results in solve(args):
        if args.json:
            for result in results:
                # JSON itself escapes only the control characters below U+0020.
                line = json.dumps(problem | result, ensure_ascii=sys.stdout.encoding.lower() != "utf-8")
                print(show_controls(line, "\\u{:04x}"), flush=True)
        else:
            print_solution(console, problem["text"], [problem | result for result in results], tree=args.tree)


def solve(args: SolveArguments) -> Iterator[tuple[dict[str, Any], list[Mapping[str, Any]]]]:
    """
    Solve the problems of the arguments: `hf-mwp solve`. Yields each problem, a dictionary with `text` and, if it has
    one, `id`, with its results ([`MathWordProblemPipeline`]), in the order of the problems.

    Raises:
        UsageError: There is no problem, or a file, the model or an option is invalid.
        DataError: A line of the file is damaged.
    """
    check_one_process("solve (without --output)", launches=False)
    pending: deque[list[dict[str, Any]]] = deque()

    def remembered(blocks: Iterable[list[dict[str, Any]]]) -> Iterator[list[dict[str, Any]]]:
        for block in blocks:
            pending.append(block)
            yield block

    # The runtime solves one problem at a time, and needs no block to sort.
    size = 1
    if _runtime(args) == "torch":
        size = args.batch_size * BATCHES_PER_BLOCK
    blocks = remembered(_read_blocks(args, size))
    for answers in in_order(_answer_blocks(args, blocks)):
        yield from zip(pending.popleft(), answers, strict=True)


def solve_to_output(args: SolveArguments, reporter: Reporter = SILENT) -> int:
    """Solve the problems of the arguments, and write the results of [`solve`] to `args.output`: `hf-mwp solve
    --output`. A killed run resumes. Returns the number of problems. Raises also `UsageError` if the file exists."""
    problems = list(chain.from_iterable(_read_blocks(args, args.batch_size)))
    options = {name: getattr(args, name) for name in SEARCH_OPTIONS}
    solve_to_file(problems, partial(_answer_blocks, args), args.model, options, args.output, reporter.progress())
    return len(problems)


def _read_blocks(args: SolveArguments, size: int) -> Iterator[list[dict[str, Any]]]:
    """Return blocks of problems, at least one."""
    blocks = problem_batches(args.problems, args.file, size, args.file_format)
    first = next(blocks, None)
    if first is None:
        raise UsageError("The input contains no problem. Pass at least one.")
    return chain([first], blocks)


def _answer_blocks(
    args: SolveArguments, blocks: Iterable[Sequence[Mapping[str, Any]]]
) -> Iterable[tuple[int, list[list[Mapping[str, Any]]]]]:
    """Solve blocks in this process or in `args.processes`. Yields the index of a block and the results of its
    problems."""
    if args.processes == 1:
        return enumerate(map(_load_answers(args), blocks))
    args = copy.copy(args)
    args.runtime = _runtime(args)
    return map_in_processes(partial(_load_answers, args), blocks, args.processes)


def _load_answers(args: SolveArguments) -> Callable[[Sequence[Mapping[str, Any]]], list[list[Mapping[str, Any]]]]:
    """Load the solver, and return the function that answers a block of problems."""
    solve_texts = _load_solver(args)

    def answer(problems: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
        texts = [problem["text"] for problem in problems if "error" not in problem]
        solved = iter(solve_texts(texts))
        return [[_NO_ANSWER] if "error" in problem else next(solved) for problem in problems]

    return answer


def _runtime(args: SolveArguments) -> str:
    """Return the library that runs the model."""
    if args.runtime != "auto":
        return args.runtime
    if args.device:
        return "torch"
    from hf_mwp.runtime.solver import EXPORT_RECORD, can_load

    if (Path(args.model) / EXPORT_RECORD).is_file():
        return "numpy"
    # One process of PyTorch uses all cores, and a GPU; several processes of NumPy use all cores, too.
    if args.file and (args.processes == 1 or has_gpu()):
        return "torch"
    # Without PyTorch, the runtime says why it cannot load a model.
    if can_load(args.model) or not find_spec("torch"):
        return "numpy"
    return "torch"


def _load_solver(args: SolveArguments) -> Callable[[list[str]], list[Any]]:
    """Return the function that solves a list of texts, with NumPy or with PyTorch."""
    options = {"top_k": args.top_k, "confidence_threshold": args.confidence_threshold}
    if _runtime(args) == "numpy":
        from hf_mwp.runtime import load_solver as load_runtime

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
