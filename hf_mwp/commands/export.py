"""Export a solver with small weights for the runtime, which uses NumPy or onnxruntime instead of PyTorch."""

from . import exporting as export
from .export_arguments import ExportArguments
from .terminal.console import CommandConsole


def run(console: CommandConsole, args: ExportArguments) -> None:
    report = export.export_solver(args, console.progress("Comparing answers"))
    console.print(f"{args.output_dir} contains the solver, {report.megabytes:.1f} MB.")
    if report.problems:
        console.print(
            f"Of {report.problems} test problems {report.equal} have the same answer as before; "
            f"{report.right_after} are right, {report.right_before} before. "
            f"A problem takes {report.milliseconds:.1f} ms of CPU time."
        )
