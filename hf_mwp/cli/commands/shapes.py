"""
Compare the possible sizes of a student, without training: time per problem in the NumPy runtime on this machine,
megabytes in int8, parameters. With --target_ms or --target_mb, also show the student that `hf-mwp pretrain`, `hf-mwp
distill` and `hf-mwp stark` create for the target.
"""

from ...building.student_shape import ShapeArguments, measure_shapes
from ..terminal.console import CommandConsole, make_table


TYPES = [ShapeArguments]
COLUMNS = {
    "layers": lambda shape: str(shape.num_hidden_layers),
    "width": lambda shape: str(shape.hidden_size),
    "heads": lambda shape: str(shape.num_attention_heads),
    "neurons": lambda shape: str(shape.intermediate_size),
    "M parameters": lambda shape: f"{shape.parameters / 1e6:.2f}",
    "MB": lambda shape: f"{shape.megabytes:.2f}",
    "ms": lambda shape: f"{shape.milliseconds:.2f}",
}


def run(console: CommandConsole, args: ShapeArguments) -> None:
    """Measure the students and print them, the fastest first."""
    chosen, shapes = measure_shapes(args, console.progress("Measuring students"))
    rows = (
        (*(column(shape) for column in COLUMNS.values()), "chosen" if shape == chosen else "")
        for shape in sorted(shapes, key=lambda shape: shape.milliseconds)
    )
    title = f"students, measured with {args.num_beams} beam(s) in the NumPy runtime"
    console.print(make_table(title, [*COLUMNS, ""], rows, right=COLUMNS))
