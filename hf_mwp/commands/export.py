"""Export a solver with small weights for the runtime, which uses NumPy or onnxruntime instead of PyTorch."""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.solver.data.file_format import FileArguments
from hf_mwp.solver.solving.kept_records import ProgressBar
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_at_least_one
from hf_mwp.utils.downloads import LICENCES, read_beside
from hf_mwp.utils.files import shorten_paths, write_atomically, write_json, writing_weights
from hf_mwp.utils.option import option, options_in
from hf_mwp.utils.run_folder import MODEL_FILES, OLD_MODEL, RunFolder
from hf_mwp.utils.usage_error import UsageError

from .building.model_sources import locate_solver
from .building.solver import decoder_classes, load_solver
from .options.locating import locate_problems
from .terminal.console import CommandConsole


if TYPE_CHECKING:
    from hf_mwp.solver.batches.mwp_processor import MwpProcessor
    from hf_mwp.solver.models import MwpSolver


# Files that are copied unchanged.
COPIED = (
    *("tokenizer.json", "mwp_processor.json", "plausibility.json", DefaultSearch.file_name),
    *("README.md", "record.json", *LICENCES),
)


@dataclass
class ExportArguments(FileArguments):
    """Options of `hf-mwp export`."""

    model: str | None = option(None, "Folder or Hub id of a solver.", required=True, locate=locate_solver)
    output_dir: str | None = option(None, "Folder for the exported solver.", required=True, affects_result=False)
    format: str = option(
        "numpy",
        "Library that computes the encoder: NumPy (only students), or onnxruntime with an ONNX graph (all encoders).",
        choices=("numpy", "onnx"),
    )
    quantize: str | None = option(None, "Type of the weights: int8; half precision if not given.", choices=("int8",))
    dataset: str | None = option(None, "Dataset to compare the answers on, before and after.", locate=locate_problems)
    data_dir: str | None = option(None, "Folder of the datasets.")
    max_samples: int | None = option(None, "Maximum number of problems to compare.")
    overwrite: bool = option(False, "Replace the model that is in the folder.", affects_result=False)

    def __post_init__(self):
        super().__post_init__()
        check_at_least_one(self, "max_samples")
        if self.dataset is None and (self.max_samples or self.data_dir):
            raise ValueError("`max_samples` and `data_dir` apply only with a `dataset`. Name one, or omit them.")


@checked
@dataclass(frozen=True)
class ExportReport:
    """
    Size of an exported folder, and comparison of its answers with those of the original solver.

    Args:
        megabytes (`float`): Size of the folder, in millions of bytes.
        problems, equal (`int`, *optional*): Number of compared problems, and of those with the same answer.
        right_before, right_after (`int`, *optional*): Number of correct answers in PyTorch and in the runtime.
        milliseconds (`float`, *optional*): Median CPU time per problem in the runtime.
    """

    megabytes: float
    problems: int = 0
    equal: int = 0
    right_before: int = 0
    right_after: int = 0
    milliseconds: float = 0.0


OPTIONS = (ExportArguments,)
EXAMPLES = (
    "hf-mwp export --model runs/student --output_dir runs/exported --quantize int8",
    "hf-mwp export --model runs/student --output_dir runs/graph --format onnx",
)


def run(console: CommandConsole, args: ExportArguments) -> None:
    report = export_solver(args, console.progress("Comparing answers"))
    console.print(f"{args.output_dir} contains the solver, {report.megabytes:.1f} MB.")
    if report.problems:
        console.print(
            f"Of {report.problems} test problems {report.equal} have the same answer as before; "
            f"{report.right_after} are right, {report.right_before} before. "
            f"A problem takes {report.milliseconds:.1f} ms of CPU time."
        )


@checked
def export_solver(args: ExportArguments, progress: ProgressBar = None) -> ExportReport:
    """
    Export a solver for [`runtime.load_solver`] in half precision or int8, with the encoder optionally as ONNX graph.

    Args:
        args ([`ExportArguments`]): Options of `hf-mwp export`.
        progress (`Callable`, *optional*): Progress bar, such as `tqdm.tqdm`, for the comparison of answers.

    Returns:
        [`ExportReport`]: Size of the folder and, with `args.dataset`, the comparison of answers, which is also written
        to `export.json` and to the card.

    Raises:
        UsageError: The solver has no tree decoder, its encoder needs `format="onnx"`, ONNX is missing, the dataset
            has no test problems in its language, or the output folder contains a model and `overwrite` is not set.

    Example:

    ```python
    >>> report = export_solver(ExportArguments("runs/student", "exported", quantize="int8", dataset="math23k"))
    >>> report.megabytes, report.right_before, report.right_after
    ```
    """
    from hf_mwp.runtime.solver import EXPORT_RECORD, EXPORT_VERSION
    from hf_mwp.solver.models.mwp_solver.configuration_mwp_solver import save_solver_code

    from .hub.finite_weights import check_finite

    model, processor = load_solver(str(args.model))
    _check_support(model, args)
    model.float()
    check_finite(model.state_dict(), args.model)
    folder = Path(args.output_dir)
    problems = [] if args.dataset is None else _test_problems(args, processor)
    record = {"version": EXPORT_VERSION, "format": args.format, "quantize": args.quantize}
    with RunFolder(folder, for_model=True) as run_folder:
        run_folder.check_unused(args.overwrite, (*MODEL_FILES, *COPIED))
        # The model may be in the output folder itself.
        outdated = (*OLD_MODEL, "tokenizer_config.json", *COPIED)
        with run_folder.replacing_model(outdated) as unfinished, writing_weights(unfinished):
            processor.save_pretrained(unfinished)
            (unfinished / "tokenizer_config.json").unlink(missing_ok=True)
            for name, content in read_beside(args.model, COPIED).items():
                (unfinished / name).write_bytes(content)
            _write_weights(model, unfinished, processor.max_length, args)
            write_json(unfinished / EXPORT_RECORD, record)
            model.config.to_json_file(unfinished / "config.json", use_diff=False)
            save_solver_code(unfinished)
    card = folder / "README.md"
    if (args.format == "onnx" or args.quantize) and card.is_file():
        _show_runtime(card, processor.language)
    if args.dataset is None:
        return ExportReport(_megabytes(folder))
    report = _compare_answers(model, processor, folder, problems, progress)
    write_json(folder / EXPORT_RECORD, record | asdict(report))
    _note_in_card(card, args, report)
    return report


def _check_support(model: MwpSolver, args: ExportArguments) -> None:
    """Raise `UsageError` if the runtime does not support the model, or a package for the export is missing."""
    from hf_mwp.runtime.encoder import check_encoder

    if not model.runs_in_numpy:
        flags = []
        for name, decoder_class in decoder_classes().items():
            if decoder_class.runs_in_numpy:
                flags.append(f"`--decoder {name}`")
        raise UsageError(f"The runtime does not support a {model.decoder_title}. Train with {' or '.join(flags)}.")
    if args.format == "numpy":
        check_encoder(model.encoder.config.to_dict())
        return
    missing = [name for name in ("onnx", "onnxruntime", "onnxscript") if find_spec(name) is None]
    if missing:
        raise UsageError(f"--format onnx needs {', '.join(missing)}. Install with `pip install 'hf-mwp[onnx]'`.")


def _test_problems(args: ExportArguments, processor: MwpProcessor) -> list[MathWordProblem]:
    from hf_mwp.solver.data.loading import load_mwp_dataset

    file_options = {name: getattr(args, name) for name in options_in(FileArguments)}
    rows = load_mwp_dataset(args.dataset, args.data_dir, **file_options).get("test", ())
    if not len(rows):
        raise UsageError(f"{args.dataset} has no test problems to compare answers on. Choose another --dataset.")
    processor.check_language(rows["language"], args.model, args.dataset)
    return processor.problems(rows)[: args.max_samples]


def _write_weights(model: MwpSolver, folder: Path, max_length: int, args: ExportArguments) -> None:
    import torch
    from safetensors.numpy import save_file

    from hf_mwp.runtime.encoder import GRAPH
    from hf_mwp.runtime.weights import FILE_NAME, quantize_int8

    from .hub.finite_weights import check_finite

    prefixes = ("decoder.", "encoder.", "bottlenecks.")
    if args.format == "onnx":
        from .onnx_encoder import write_graph

        write_graph(model, folder / GRAPH, max_length, quantize=args.quantize == "int8")
        prefixes = ("decoder.",)
    # A bottleneck network is called by a hook of its layer, and its weights have only one name.
    weights = {name: value.numpy() for name, value in model.state_dict().items() if name.startswith(prefixes)}
    if args.quantize == "int8" and args.format == "numpy":
        weights = quantize_int8(weights)
        check_finite(weights, args.model, "int8 with scales in half precision")
    else:
        weights = {name: torch.from_numpy(value).half().numpy() for name, value in weights.items()}
        check_finite(weights, args.model, "half precision")
    save_file(weights, folder / FILE_NAME)


def _compare_answers(
    model: MwpSolver, processor: MwpProcessor, folder: Path, problems: Sequence[MathWordProblem], progress: ProgressBar
) -> ExportReport:
    """Solve problems with PyTorch and with the runtime, using the folder's default search, and compare the answers."""
    from hf_mwp.runtime import RuntimeSolver
    from hf_mwp.solver.solving.solve_problems import solve_problems
    from hf_mwp.solver.solving.solver_prediction import SolverPrediction

    solver = RuntimeSolver(folder)
    settings = solver.search()
    torch_predictions = solve_problems(model, processor, problems, **settings._asdict())
    runtime_predictions = []
    seconds = []
    for problem in problems if progress is None else progress(problems):
        start = time.process_time()
        answer = solver.answer(problem, settings.num_beams, settings.reranker, score_margin=settings.score_margin)
        seconds.append(time.process_time() - start)
        runtime_predictions.append(SolverPrediction(answer.problem, answer.beam, answer.ranked))
    num_equal = 0
    for torch_prediction, runtime_prediction in zip(torch_predictions, runtime_predictions, strict=True):
        num_equal += torch_prediction.score.value == runtime_prediction.score.value
    median_seconds = statistics.median(seconds) if seconds else 0.0
    return ExportReport(
        _megabytes(folder),
        problems=len(problems),
        equal=num_equal,
        right_before=sum(bool(prediction.is_right) for prediction in torch_predictions),
        right_after=sum(bool(prediction.is_right) for prediction in runtime_predictions),
        milliseconds=round(1e3 * median_seconds, 2),
    )


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) / 1e6


def _show_runtime(card: Path, language: str) -> None:
    """Replace the usage section of a card, because PyTorch cannot load the weights in its folder."""
    from hf_mwp.runtime import RuntimeSolver

    from .hub.usage import EXAMPLES, usage_section

    folder = card.parent
    output = str(RuntimeSolver(folder)(EXAMPLES[language]))
    usage = usage_section("runtime", folder.as_posix(), language, indexed_numbers=False, output=output) + "\n\n"
    write_atomically(card, _section("How to use").sub(lambda _: usage, card.read_text("utf-8")))


def _section(title: str) -> re.Pattern:
    return re.compile(rf"^## {title}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def _note_in_card(card: Path, args: ExportArguments, report: ExportReport) -> None:
    weights = "int8" if args.quantize else "half precision"
    text = card.read_text("utf-8") if card.is_file() else "# Exported solver\n"
    # The card of an exported solver already has such a section.
    text = _section("Exported for the runtime").sub("", text)
    section = (
        f"\n## Exported for the runtime\n\nWeights in {weights}, encoder computed by {args.format}. Of "
        f"{report.problems:,} test problems of {shorten_paths(args.dataset)}, {report.equal:,} have the answer of "
        f"PyTorch in single precision; {report.right_after:,} are right, and {report.right_before:,} in PyTorch. "
        f"A problem took {report.milliseconds:.1f} ms of CPU time (median, on the machine of the export).\n"
    )
    write_atomically(card, text.rstrip("\n") + "\n" + section)
