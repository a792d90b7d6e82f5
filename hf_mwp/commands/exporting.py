"""Export of a solver to a folder for the runtime."""

import logging
import re
import statistics
import time
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors.numpy import save_file
from torch import Tensor, nn

from hf_mwp.runtime import RuntimeSolver
from hf_mwp.runtime.default_search import DefaultSearch
from hf_mwp.runtime.encoder import GRAPH, check_encoder
from hf_mwp.runtime.problems import MathWordProblem
from hf_mwp.runtime.solver import EXPORT_RECORD, EXPORT_VERSION
from hf_mwp.runtime.weights import FILE_NAME, quantize_int8
from hf_mwp.solver.batches.mwp_processor import MwpProcessor
from hf_mwp.solver.data.file_format import FileArguments
from hf_mwp.solver.data.loading import load_mwp_dataset
from hf_mwp.solver.models import MwpSolver
from hf_mwp.solver.models.mwp_solver.configuration_mwp_solver import save_solver_code
from hf_mwp.solver.solving.kept_records import ProgressBar
from hf_mwp.solver.solving.solve_problems import solve_problems
from hf_mwp.solver.solving.solver_prediction import SolverPrediction
from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.downloads import LICENCES, read_beside
from hf_mwp.utils.files import shorten_paths, write_atomically, write_json, writing_weights
from hf_mwp.utils.option import options_in
from hf_mwp.utils.run_folder import MODEL_FILES, OLD_MODEL, RunFolder
from hf_mwp.utils.usage_error import UsageError

from .building.solver import decoder_classes, load_solver
from .export_arguments import ExportArguments
from .hub.finite_weights import check_finite
from .hub.usage import EXAMPLES, usage_section


OPSET = 20
# Files that are copied unchanged.
COPIED = (
    *("tokenizer.json", "mwp_processor.json", "plausibility.json", DefaultSearch.file_name),
    *("README.md", "record.json", *LICENCES),
)


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
    model, processor = load_solver(str(args.model))
    if not model.runs_in_numpy:
        names = [f"`--decoder {name}`" for name, kind in decoder_classes().items() if kind.runs_in_numpy]
        raise UsageError(f"The runtime does not support a {model.decoder_title}. Train with {' or '.join(names)}.")
    if args.format == "numpy":
        check_encoder(model.encoder.config.to_dict())
    packages = ("onnx", "onnxruntime", "onnxscript") if args.format == "onnx" else ()
    if missing := [name for name in packages if find_spec(name) is None]:
        raise UsageError(f"--format onnx needs {', '.join(missing)}. Install with `pip install 'hf-mwp[onnx]'`.")
    model.float()
    check_finite(model.state_dict(), args.model)
    folder = Path(args.output_dir)
    problems = [] if args.dataset is None else _test_problems(args, processor)
    record = {"version": EXPORT_VERSION, "format": args.format, "quantize": args.quantize}
    with RunFolder(folder, for_model=True) as run:
        run.check_unused(args.overwrite, (*MODEL_FILES, *COPIED))
        # The model may be in the output folder itself.
        outdated = (*OLD_MODEL, "tokenizer_config.json", *COPIED)
        with run.replacing_model(outdated) as unfinished, writing_weights(unfinished):
            processor.save_pretrained(unfinished)
            (unfinished / "tokenizer_config.json").unlink(missing_ok=True)
            for name, content in read_beside(args.model, COPIED).items():
                (unfinished / name).write_bytes(content)
            _write_weights(model, unfinished, processor.max_length, args)
            write_json(unfinished / EXPORT_RECORD, record)
            model.config.to_json_file(unfinished / "config.json", use_diff=False)
            save_solver_code(unfinished)
    if (args.format == "onnx" or args.quantize) and (folder / "README.md").is_file():
        _show_runtime(folder / "README.md", processor.language)
    report = ExportReport(_megabytes(folder))
    if args.dataset is not None:
        report = _compare_answers(model, processor, folder, problems, progress)
        write_json(folder / EXPORT_RECORD, record | asdict(report))
        _note_in_card(folder / "README.md", args, report)
    return report


def _test_problems(args: ExportArguments, processor: MwpProcessor) -> list[MathWordProblem]:
    columns = {name: getattr(args, name) for name in options_in(FileArguments)}
    rows = load_mwp_dataset(args.dataset, args.data_dir, **columns).get("test", ())
    if not len(rows):
        raise UsageError(f"{args.dataset} has no test problems to compare answers on. Choose another --dataset.")
    processor.check_language(rows["language"], args.model, args.dataset)
    return processor.problems(rows)[: args.max_samples]


def _write_weights(model: MwpSolver, folder: Path, max_length: int, args: ExportArguments) -> None:
    kept = ("decoder.", "encoder.", "bottlenecks.")
    if args.format == "onnx":
        _write_graph(model, folder / GRAPH, max_length, quantize=args.quantize == "int8")
        kept = ("decoder.",)
    # A bottleneck network is called by a hook of its layer, and its weights have only one name.
    tensors = {name: value.numpy() for name, value in model.state_dict().items() if name.startswith(kept)}
    if args.quantize == "int8" and args.format == "numpy":
        stored = quantize_int8(tensors)
        check_finite(stored, args.model, "int8 with scales in half precision")
    else:
        stored = {name: torch.from_numpy(value).half().numpy() for name, value in tensors.items()}
        check_finite(stored, args.model, "half precision")
    save_file(stored, folder / FILE_NAME)


class _States(nn.Module):
    """Encoder of a solver with bottleneck networks, for a single text without padding."""

    def __init__(self, solver: MwpSolver) -> None:
        super().__init__()
        self.solver = solver

    def forward(self, input_ids: Tensor) -> Tensor:
        return self.solver.encode(input_ids, torch.ones_like(input_ids)).last_hidden_state


@torch.no_grad()
def _write_graph(solver: MwpSolver, path: Path, max_length: int, quantize: bool) -> None:
    """Write the encoder of a solver as an ONNX graph for texts of at most `max_length` tokens."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    text = torch.arange(min(7, max_length))[None]
    lengths = {"input_ids": {1: torch.export.Dim("length", min=2, max=max_length)}}
    names = {"input_names": ["input_ids"], "output_names": ["states"], "dynamic_shapes": lengths}
    options = {"dynamo": True, "opset_version": OPSET, "external_data": False, "verbose": False}
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with TemporaryDirectory() as temporary, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        single = Path(temporary) / GRAPH if quantize else path
        torch.onnx.export(_States(solver.eval()).eval(), (text,), str(single), **names, **options)
        if quantize:
            # Weights become int8, with one scale per column; inputs of matrix products are quantized at run time.
            # Skip operators with one-dimensional inputs, which onnxruntime cannot run with one scale per column.
            kinds = ["MatMul", "Gemm", "Gather"]
            quantize_dynamic(single, path, per_channel=True, weight_type=QuantType.QInt8, op_types_to_quantize=kinds)


def _compare_answers(
    model: MwpSolver, processor: MwpProcessor, folder: Path, problems: Sequence[MathWordProblem], progress: ProgressBar
) -> ExportReport:
    """Solve problems with PyTorch and with the runtime, using the folder's default search, and compare the answers."""
    solver = RuntimeSolver(folder)
    reranker, num_beams = solver.search(None, None)
    before = solve_problems(model, processor, problems, num_beams=num_beams, reranker=reranker)
    after, seconds = [], []
    for problem in problems if progress is None else progress(problems):
        start = time.process_time()
        found = solver.answer(problem, num_beams, reranker)
        seconds.append(time.process_time() - start)
        after.append(SolverPrediction(found.problem, found.beam, found.ranked))
    values = [[each.score.value for each in predictions] for predictions in (before, after)]
    return ExportReport(
        _megabytes(folder),
        problems=len(problems),
        equal=sum(first == second for first, second in zip(*values, strict=True)),
        right_before=sum(bool(each.is_right) for each in before),
        right_after=sum(bool(each.is_right) for each in after),
        milliseconds=round(1e3 * statistics.median(seconds), 2) if seconds else 0.0,
    )


def _megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir() if path.is_file()) / 1e6


def _show_runtime(path: Path, language: str) -> None:
    """Replace the usage section of a card, because PyTorch cannot load the weights in its folder."""
    output = str(RuntimeSolver(path.parent)(EXAMPLES[language]))
    usage = usage_section("runtime", path.parent.as_posix(), language, indexed_numbers=False, output=output) + "\n\n"
    write_atomically(path, _section("How to use").sub(lambda _: usage, path.read_text("utf-8")))


def _section(title: str) -> re.Pattern:
    return re.compile(rf"^## {title}\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def _note_in_card(path: Path, args: ExportArguments, report: ExportReport) -> None:
    weights = "int8" if args.quantize else "half precision"
    text = path.read_text("utf-8") if path.is_file() else "# Exported solver\n"
    # The card of an exported solver already has such a section.
    text = _section("Exported for the runtime").sub("", text)
    section = (
        f"\n## Exported for the runtime\n\nWeights in {weights}, encoder computed by {args.format}. Of "
        f"{report.problems:,} test problems of {shorten_paths(args.dataset)}, {report.equal:,} have the answer of "
        f"PyTorch in single precision; {report.right_after:,} are right, and {report.right_before:,} in PyTorch. "
        f"A problem took {report.milliseconds:.1f} ms of CPU time (median, on the machine of the export).\n"
    )
    write_atomically(path, text.rstrip("\n") + "\n" + section)
