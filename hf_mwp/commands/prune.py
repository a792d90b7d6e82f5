"""Prune attention heads of a trained solver or, with --task, a text classifier, in rounds of distillation
("generations"): each student has fewer heads and imitates the model of the previous round. --ratios 0.2 0.3 sets the
share of pruned heads after each round, --num_train_epochs the length of a round. A restarted run resumes."""

from hf_mwp.utils.run_folder import describe_contents

from .terminal.console import CommandConsole, model_table


COLUMNS = {
    "heads pruned": lambda model: f"{model['ratio']:.0%}",
    "left, by layer": lambda model: " ".join(map(str, model["heads"])),
    "M parameters": lambda model: f"{model['parameters'] / 1e6:.2f}",
    "M operations": lambda model: f"{model['flops'] / 1e6:.1f}",
    "ms a text": lambda model: f"{1e3 * model['seconds']:.2f}",
}


def run(console: CommandConsole, *options) -> None:
    from .pruning import ACCURACY_LATENCY, prune

    result = prune(*options, reporter=console)
    if result.metrics:
        title = f"{options[1].model} on {result.task.name}"
        title += "\nparameters, operations and time are the encoder's, for one text of 32 tokens"
        console.print(model_table(title, result.metrics["models"], COLUMNS, result.task.metric))
    console.print(describe_contents(result.folder, "model", "processor", ACCURACY_LATENCY, "heads_*.png"))
