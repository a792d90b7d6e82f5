"""A small recipe and a table on it, with commands that compute their figures instead of training."""

import json
from pathlib import Path

import yaml

from reproduce.table_result import TableResult


RECIPE = {
    "recipe": "Small",
    "budget": "normal",
    "variables": {"seed": 42, "dataset": "apples", "max_train_samples": None, "layers": 12, "weights": None},
    "stages": {
        "base": {"command": "train", "width": 8, "max_train_samples": "${max_train_samples}", "seed": "${seed}"},
        "teacher": {
            "command": "train",
            "encoder": "${base}",
            "encoder_layers": "${layers}",
            "dataset": "${dataset}",
            "max_train_samples": "${max_train_samples}",
            "max_steps": 9,
            "seed": "${seed}",
        },
        "evaluate": {"command": "evaluate", "model": "${teacher}"},
    },
    "budgets": {"normal": {}, "quick": {"variables": {"max_train_samples": 5}, "teacher": {"max_steps": 2}}},
    "targets": ["evaluate"],
}

TABLE = {
    "table": "Layers",
    "paper": "Table 0 of nobody",
    "about": "one line",
    "note": "What differs.",
    "recipe": "small.yaml",
    "variables": {"extra": None},
    "stages": {"evaluate_extra": {"command": "evaluate", "model": "${teacher}", "data": "${extra}"}},
    "changes": {"teacher": {"dropout": 0.5}},
    "budgets": {"quick": {"teacher": {"warm_up": 1}}},
    "columns": {
        "answer": {"title": "Answer", "stage": "evaluate", "figure": "test/accuracy", "count": "test/number"},
        "extra": {"title": "Extra", "stage": "evaluate_extra", "figure": "test/accuracy", "needs": "extra"},
        "share": {"title": "Share", "share_of": {"column": "answer", "arm": "all"}},
        "average": {"title": "Average", "mean_of": ["answer", "share"]},
    },
    "arms": {
        "one": {"title": "first layer", "changes": {"layers": 1}, "paper": {"answer": 60.5}},
        "three": {"changes": {"layers": 3}, "budgets": {"quick": {"teacher.warm_up": 7}}, "paper": {"answer": 71.0}},
        "all": {"paper": {"answer": 84.25}},
    },
}


def write_table(folder: Path, **changes) -> Path:
    """Write the recipe and the table with some fields replaced, and return the path of the table."""
    (folder / "small.yaml").write_text(yaml.safe_dump(RECIPE))
    path = folder / "small_table.yaml"
    path.write_text(yaml.safe_dump({**TABLE, **changes}, sort_keys=False))
    return path


def states(result: TableResult) -> list[str]:
    """Return the state of each arm's first run."""
    return [arm.runs[0].state for arm in result.arms]


class Commands(dict):
    """Counts what is run; an evaluation gives layers / 16 plus the seed in hundredths."""

    def __init__(self, broken: str = ""):
        self.ran: list[str] = []
        self.broken = broken
        super().__init__(train=self.train, evaluate=self.evaluate)

    def train(self, argv):
        options, folder = self.options(argv)
        if self.broken and self.broken in folder.name and str(options.get("encoder_layers")) == "3":
            raise RuntimeError("no memory")

    def evaluate(self, argv):
        options, folder = self.options(argv)
        teacher = yaml.safe_load((Path(options["model"]) / "stage.yaml").read_text())
        accuracy = teacher["encoder_layers"] / 16 + (teacher["seed"] - 42) / 100
        (folder / "metrics.json").write_text(json.dumps({"test": {"accuracy": accuracy, "number": 40}}))

    def options(self, argv):
        options = yaml.safe_load(Path(argv[1]).read_text())
        folder = Path(options["output_dir"])
        self.ran.append(folder.name.partition("-")[0])
        return options, folder
