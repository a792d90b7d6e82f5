"""
Distil one or more frozen teachers into a student solver or, with --task, into a different model such as a text
classifier, using predictions, hidden states and embeddings. --hidden_loss, --prediction_loss, --temperature and
--layer_mapping choose what the student learns, --cache_teacher_outputs runs the teacher once.
"""

from . import training
from .terminal.console import CommandConsole, make_table, print_result


def run(console: CommandConsole, *options) -> None:
    data_args, teacher_args, student_args, run_args, config = options
    if not run_args.estimate:
        print_result(console, training.distill(*options, reporter=console), "student")
        return
    from .estimating import estimate_distillation

    estimate = estimate_distillation(data_args, teacher_args, student_args, config, console)
    rows = []
    for times in (1, 100):
        costs = estimate.of_corpus(times)
        gigabytes = (f"{costs[name] / 1e9:,.2f}" for name in ("peak_bytes", "cache_bytes"))
        hours = (f"{costs[name]:,.2f}" for name in ("hours", "cache_hours"))
        rows.append((f"{costs['rows']:,}", f"{costs['steps']:,}", *hours, *gigabytes))
    headings = ("rows", "steps", "hours", "of these cache", "peak memory, GB", "cache, GB")
    title = f"{estimate.step_seconds:.3f} s per step of {estimate.rows_per_step} rows; without the final test"
    console.print(make_table(title, headings, rows, right=headings))
