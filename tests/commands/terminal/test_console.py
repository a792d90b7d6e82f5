"""Tables that the commands print."""

import pytest

from hf_mwp.commands.terminal.console import model_table


@pytest.mark.parametrize(
    ("metric", "value", "heading", "cell"),
    [("bleu", 34.557, "test, bleu", "34.557"), ("answer_accuracy", 0.25, "test, answer accuracy %", "25.0")],
)
def test_a_metric_is_in_percent_if_it_is_a_share(metric, value, heading, cell):
    models = [{"ratio": 0.0, "test": {"reports": {"all problems": {metric: value}}}}]
    table = model_table("pruned", models, {"ratio": lambda model: str(model["ratio"])}, metric)
    assert [(column.header, *column.cells) for column in table.columns] == [("ratio", "0.0"), (heading, cell)]
