"""Fit a plausibility re-ranker to a solver's beams on training problems, and save it in the model folder. If it
improves the accuracy on validation problems, the solver re-ranks by default."""

from hf_mwp.runtime.plausibility import FEATURES
from hf_mwp.solver.metrics.accuracy import percent

from . import reranking
from .terminal.console import CommandConsole, make_table


def run(console: CommandConsole, *options) -> None:
    path, reranker = reranking.rerank(*options, reporter=console)
    headings = ("problems", "without", "with", "in the beam")
    rows = (
        (split, f"{each['num_problems']:,}", *(percent(each[name]) for name in ("without", "with", "in_beam")))
        for split, each in reranker.measured.items()
    )
    title = f"Re-ranking {reranker.num_beams} beams: answers that are right, in %"
    console.print(make_table(title, ("", *headings), rows, right=headings))
    heaviest = sorted(FEATURES, key=lambda feature: -abs(reranker.weights[feature.name]))[:12]
    rows = ((f"{reranker.weights[feature.name]:+.2f}", feature.name, feature.meaning) for feature in heaviest)
    console.print(make_table("Heaviest weights", ("weight", "feature", "meaning"), rows, right=["weight"]))
    console.print(f"Re-ranker: {path}")
