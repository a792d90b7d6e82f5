"""Choice of a student's layers, width, heads and neurons by measured latency (NumPy runtime) and size on disk."""

from __future__ import annotations

import copy
import math
import statistics
import time
import timeit
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from hf_mwp.utils.checked_types import checked
from hf_mwp.utils.checks import check_options, check_positive
from hf_mwp.utils.files import read_json, write_json
from hf_mwp.utils.option import option
from hf_mwp.utils.usage_error import UsageError


if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel, TrainingArguments

    from hf_mwp.solver.batches.mwp_processor import MwpProcessor

FILE_NAME = "shape.json"
SIZES = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size")
LAYERS = (1, 2, 3, 4, 6)
# Width -> feed-forward neurons, which are also halved, and attention heads.
WIDTHS = {128: (512, 4), 192: (768, 6), 256: (1024, 8), 312: (1200, 12), 384: (1536, 12)}
# Each problem is solved with two operators and three operands, about the mean of Math23k.
TREE_LENGTH = 5
ROUNDS = 3
PROBLEMS = {
    "zh": (
        "甲乙两地相距360千米，一辆汽车4.5小时行完全程，平均每小时行多少千米？",
        "学校买来15箱苹果，每箱20千克，吃了120千克，还剩多少千克？",
        "一个长方形的长是12厘米，宽是8厘米，它的周长是多少厘米？",
    ),
    "en": (
        "A shop had 48 apples in the morning. It sold 15 of them and bought 20 more. How many apples has it now?",
        "A car needs 4.5 hours for 360 miles. How many miles does it drive in an hour?",
        "Ann has 3 boxes with 12 pencils each. She gives 7 pencils to Tom. How many pencils are left?",
    ),
}


@dataclass
class ShapeTargets:
    """Targets for a new student: its sizes are the largest whose measured latency or size on disk meets the target."""

    target_ms: float | None = option(
        None,
        "Choose layers, width, heads and neurons of the new student by measurement: the largest student that solves a "
        "problem in this many milliseconds of CPU time (NumPy runtime, greedy search, this machine).",
        common=True,
    )
    target_mb: float | None = option(
        None,
        "Choose them by size: maximum megabytes of the student's folder in int8, with the tokenizer.",
        common=True,
    )

    def use_shape(self, shape: StudentShape, encoder: PreTrainedConfig | None) -> None:
        """Set the size options to `shape`; `encoder` is the configuration of the source encoder, if there is one."""
        raise NotImplementedError

    def __post_init__(self):
        check_options(self)
        check_positive(self, "target_ms", "target_mb")

    @property
    def targets(self) -> dict[str, float]:
        """Given targets by field name of [`StudentShape`]."""
        targets = {}
        if self.target_ms is not None:
            targets["milliseconds"] = self.target_ms
        if self.target_mb is not None:
            targets["megabytes"] = self.target_mb
        return targets


@checked
@dataclass(frozen=True)
class StudentShape:
    """Sizes of a student (fields of [`MwpStudentConfig`]) and its costs."""

    num_hidden_layers: int
    hidden_size: int
    num_attention_heads: int
    intermediate_size: int
    parameters: int  # of encoder and decoder
    milliseconds: float  # CPU time of a problem in the NumPy runtime, from its text to its answer
    megabytes: float  # size of the solver's folder in int8, in millions of bytes

    @property
    def sizes(self) -> dict[str, int]:
        """Fields of [`MwpStudentConfig`]."""
        return {name: getattr(self, name) for name in SIZES}

    @property
    def layer_weights(self) -> int:
        """Number of weights in the matrices of the encoder's layers."""
        width = self.hidden_size
        return self.num_hidden_layers * (4 * width * width + 2 * width * self.intermediate_size)

    def __str__(self) -> str:
        return (
            f"{self.num_hidden_layers} x {self.hidden_size}, {self.num_attention_heads} heads, "
            f"{self.intermediate_size} neurons: {self.milliseconds:.2f} ms, {self.megabytes:.2f} MB"
        )


def candidate_sizes(encoder: PreTrainedConfig | None = None) -> list[dict[str, int]]:
    """Return the sizes to measure, none above the encoder's: all `WIDTHS`, or the encoder's own if all are larger."""
    limits = []
    for name in SIZES:
        limit = getattr(encoder, name, math.inf)
        if isinstance(limit, list):
            # A pruned encoder has a number for each layer.
            limit = min(limit)
        limits.append(limit)
    max_layers, max_width, max_heads, max_neurons = limits
    widths = []
    for width, (neurons, heads) in WIDTHS.items():
        if width <= max_width and heads <= max_heads and neurons <= max_neurons:
            widths.append((width, heads, neurons))
    if not widths:
        widths = [(max_width, max_heads, max_neurons)]
    layers = [num_layers for num_layers in LAYERS if num_layers <= max_layers]
    candidates = []
    for num_layers, (width, heads, neurons), divisor in product(layers, widths, (1, 2)):
        candidates.append(dict(zip(SIZES, (num_layers, width, heads, neurons // divisor), strict=True)))
    return candidates


def measure_shape(processor: MwpProcessor, sizes: dict[str, int]) -> StudentShape:
    """Export a solver of random weights with these sizes in int8, and solve typical problems with it."""
    import torch
    from safetensors.numpy import save_file

    from hf_mwp.compress.models import MwpStudentConfig, MwpStudentModel
    from hf_mwp.runtime import RuntimeSolver
    from hf_mwp.runtime.weights import FILE_NAME as WEIGHTS
    from hf_mwp.runtime.weights import quantize_int8
    from hf_mwp.solver.models import MwpSolver

    processor = copy.deepcopy(processor)
    config = MwpStudentConfig(vocab_size=len(processor.tokenizer), **sizes)
    # Measuring must not change the random state: a resumed run skips it.
    with torch.random.fork_rng(devices=[]):
        encoder = MwpStudentModel(config, add_pooling_layer=False)
        solver = MwpSolver.from_encoder_decoder_pretrained(encoder, processor)
    # Operators always score highest while they fit, so that all trees have the same length.
    torch.nn.init.constant_(solver.decoder.operator_scorer.bias, 1e3)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:  # Windows keeps files that are mapped in memory.
        processor.save_pretrained(folder)
        tensors = {name: value.numpy() for name, value in solver.state_dict().items()}
        save_file(quantize_int8(tensors), Path(folder) / WEIGHTS)
        solver.config.to_json_file(Path(folder) / "config.json", use_diff=False)
        num_bytes = 0
        for path in Path(folder).iterdir():
            # `hf-mwp export` leaves this file out.
            if path.name != "tokenizer_config.json":
                num_bytes += path.stat().st_size
        runtime = RuntimeSolver(folder)
        shortest_seconds = []
        for text in PROBLEMS[runtime.reader.language]:
            problem = runtime.reader.problem(text)
            solve = partial(runtime.answer, problem, max_decode_length=TREE_LENGTH)
            seconds = timeit.repeat(solve, timer=time.process_time, number=1, repeat=1 + ROUNDS)
            # The first round is a warm-up.
            shortest_seconds.append(min(seconds[1:]))
    parameters = sum(value.size for value in tensors.values())
    milliseconds = 1e3 * statistics.median(shortest_seconds)
    megabytes = num_bytes / 1e6
    return StudentShape(**sizes, parameters=parameters, milliseconds=milliseconds, megabytes=megabytes)


@checked
def choose_student_shape(
    processor: MwpProcessor,
    target_ms: float | None = None,
    target_mb: float | None = None,
    encoder: PreTrainedConfig | None = None,
) -> tuple[StudentShape, list[StudentShape]]:
    """
    Choose the largest student for a CPU time per problem in milliseconds, a folder size in int8 in millions of bytes,
    or both (by weights in its layers; of equal ones, the deepest), and return it with all measured shapes. Nothing is
    trained: solvers of random weights are timed on typical problems in the NumPy runtime, with the threads that NumPy
    uses. No size exceeds that of the `encoder`. Raises `UsageError`, with the smallest student's costs, if none fits.
    """
    targets = ShapeTargets(target_ms, target_mb).targets
    shapes = [measure_shape(processor, sizes) for sizes in candidate_sizes(encoder)]
    fitting = [shape for shape in shapes if _meets(shape, targets)]
    if not fitting:
        smallest = min(shapes, key=lambda shape: (shape.megabytes, shape.milliseconds))
        limits = []
        if target_ms is not None:
            limits.append(f"{target_ms:g} ms")
        if target_mb is not None:
            limits.append(f"{target_mb:g} MB")
        raise UsageError(f"No student meets the target of {' and '.join(limits)}. The smallest is {smallest}.")
    return max(fitting, key=lambda shape: (shape.layer_weights, shape.num_hidden_layers)), shapes


def _meets(shape: StudentShape, targets: Mapping[str, float]) -> bool:
    return all(getattr(shape, name) <= limit for name, limit in targets.items())


def apply_size_targets(
    args: ShapeTargets,
    model: PreTrainedModel | None,
    processor: MwpProcessor,
    config: TrainingArguments | None = None,
    report: Callable[[str], None] = lambda text: None,
) -> None:
    """Replace the targets in `args` by the chosen sizes, at most those of `model`. With `config`, the choice is saved
    in its output folder, where a resumed run reads it. Raises `UsageError` if no student meets the targets, or the
    NumPy runtime cannot solve with it."""
    from hf_mwp.compress.models.architecture import find_encoder
    from hf_mwp.solver.batches.mwp_processor import MwpProcessor

    targets = args.targets
    if not targets:
        return
    if not isinstance(processor, MwpProcessor) or not getattr(model, "runs_in_numpy", True):
        raise UsageError("A target is for students that the NumPy runtime solves with. Give their sizes instead.")
    encoder = None
    if model is not None:
        encoder = find_encoder(model).config
    request = targets | {"candidates": candidate_sizes(encoder), "tokens": len(processor.tokenizer)}
    if config is None:
        shape, _ = choose_student_shape(processor, args.target_ms, args.target_mb, encoder)
    else:
        path = Path(config.output_dir) / FILE_NAME
        with config.main_process_first(local=False, desc="measuring students"):
            record = read_json(path)
            if record is None or record["request"] != request:
                shape, shapes = choose_student_shape(processor, args.target_ms, args.target_mb, encoder)
                record = {"request": request, "chosen": asdict(shape), "measured": list(map(asdict, shapes))}
                write_json(path, record)
        shape = StudentShape(**record["chosen"])
    report(f"The student that meets the target: {shape}.")
    args.target_ms = None
    args.target_mb = None
    args.use_shape(shape, encoder)
