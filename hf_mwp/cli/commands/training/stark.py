"""`hf-mwp stark`: a student of the sparse teacher that teaches best."""

from __future__ import annotations

from pathlib import Path

from ....store.runs.run_folder import describe_contents
from ....tasks.commands import parse_command
from ....tasks.sparse_teachers import PICTURES, find_sparse_teacher
from ...terminal.console import make_console, model_table
from ..recipes.run import is_recipe
from ..recipes.run import run as run_stages


COLUMNS = {
    "": lambda model: model["name"],
    "sparsity": lambda model: f"{model['sparsity']:.0%}",
    "heads": lambda model: " ".join(map(str, model["heads"])),
    "M parameters": lambda model: f"{model['teacher_parameters'] / 1e6:.2f}",
}


def run(argv: list[str]) -> int:
    """
    Find a sparse teacher, or run a recipe if the configuration file has `stages`; see `hf-mwp stark --help`. Also runs
    under `torchrun` and `accelerate launch`.
    """
    if is_recipe(argv):
        return run_stages(argv, "stark")
    options, values = parse_command(
        "stark",
        "Find the sparse teacher that teaches a student best (STARK): a trial student learns from the whole teacher, "
        "the teacher's heads and neurons are scored and removed at each sparsity, and a student learns from each "
        "sparse teacher, from the same start. The best on the validation split is kept. Started again, it goes on "
        "where it was. With a --config that has `stages`, run these one after another (--budget, --dry_run, "
        "--variable, --stage.option).",
        argv,
    )
    console = make_console()
    result = find_sparse_teacher(*options, values=values, reporter=console)
    if metrics := result.metrics:
        metric = metrics["chosen_by"].removeprefix("eval_").replace("_", " ")
        title = f"{Path(values['teacher']).name} on {result.task.name}\nsparsity, heads by layer and parameters are "
        title += f"the teacher's; chosen by {metric} on the validation split"
        models = [{**metrics["trial"], **metrics["teacher"], "name": "teacher"}]
        for model in metrics["models"]:
            chosen = ", chosen" if model["sparsity"] == metrics["chosen_sparsity"] else ""
            models.append(model | {"name": f"{'student' if model['sparsity'] else 'trial student'}{chosen}"})
        console.print(model_table(title, models, COLUMNS, result.task.metric))
    pictures = (name for name in PICTURES if (result.folder / name).is_file())
    console.print(describe_contents(result.folder, "model", "processor", *pictures))
    return 0
