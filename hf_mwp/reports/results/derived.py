"""Columns that are made of others."""

from .arm_result import ArmRun
from .table_result import TableResult


# Fields of a column that say of which.
DERIVED = ("mean_of", "pooled_of", "share_of")


def derive_columns(result: TableResult) -> None:
    """Fills the columns that are made of others, in each run that has these."""
    by_name = {arm.name: {run.seed: run.figures for run in arm.runs} for arm in result.arms}
    for column in result.columns:
        for arm in result.arms:
            for run in arm.runs:
                if "pooled_of" in column:
                    _pool(column["name"], column["pooled_of"], run)
                elif "mean_of" in column and all(each in run.figures for each in column["mean_of"]):
                    values = [run.figures[each] for each in column["mean_of"]]
                    run.figures[column["name"]] = round(sum(values) / len(values), 4)
                elif "share_of" in column:
                    source = column["share_of"]["column"]
                    whole = by_name[column["share_of"]["arm"]].get(run.seed, {}).get(source)
                    if whole and source in run.figures:
                        run.figures[column["name"]] = round(100 * run.figures[source] / whole, 4)


def _pool(name: str, parts: list[str], run: ArmRun) -> None:
    """The share of the problems of all parts together."""
    if all(run.counts.get(each) and each in run.figures for each in parts):
        run.counts[name] = sum(run.counts[each] for each in parts)
        run.figures[name] = round(sum(run.figures[each] * run.counts[each] for each in parts) / run.counts[name], 4)
        if all(each in run.outcomes for each in parts):
            run.outcomes[name] = "".join(run.outcomes[each] for each in parts)
