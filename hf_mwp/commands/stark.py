"""Find the sparsity of the teacher at which its student is best (STARK). A trial student learns from the whole
teacher. Then the teacher's heads and neurons are scored, the lowest are removed at each sparsity, and a student with
the same initial weights learns from each. The best on the validation split is kept. A killed run resumes."""

from pathlib import Path

from hf_mwp.utils.run_folder import describe_contents

from .terminal.console import CommandConsole, model_table


COLUMNS = {
    "": lambda model: model["name"],
    "sparsity": lambda model: f"{model['sparsity']:.0%}",
    "heads": lambda model: " ".join(map(str, model["heads"])),
    "M parameters": lambda model: f"{model['teacher_parameters'] / 1e6:.2f}",
}


def run(console: CommandConsole, *options) -> None:
    from .sparse_teachers import PICTURES, find_sparse_teacher

    result = find_sparse_teacher(*options, reporter=console)
    if metrics := result.metrics:
        metric = metrics["chosen_by"].removeprefix("eval_").replace("_", " ")
        title = f"{Path(options[1].teacher).name} on {result.task.name}\nsparsity, heads by layer and parameters are "
        title += f"the teacher's; chosen by {metric} on the validation split"
        models = [{**metrics["trial"], **metrics["teacher"], "name": "teacher"}]
        for model in metrics["models"]:
            chosen = ", chosen" if model["sparsity"] == metrics["chosen_sparsity"] else ""
            models.append(model | {"name": f"{'student' if model['sparsity'] else 'trial student'}{chosen}"})
        console.print(model_table(title, models, COLUMNS, result.task.metric))
    pictures = (name for name in PICTURES if (result.folder / name).is_file())
    console.print(describe_contents(result.folder, "model", "processor", *pictures))
