import math

import pytest
import torch

from hf_mwp.compress.pruning import ScoreDensity, draw_densities, draw_importance, rows_of, scores_of


SCORES = torch.tensor([[0.5, 0.25, math.nan], [1.0, math.nan, 0.125]], dtype=torch.float64)


def test_as_json_has_them():
    rows = rows_of(SCORES)
    assert rows == [[0.5, 0.25, None], [1.0, None, 0.125]]
    again = scores_of(rows)
    assert torch.equal(again.isnan(), SCORES.isnan()) and torch.equal(again.nan_to_num(), SCORES.nan_to_num())
    assert scores_of([[0.5], [None, 2.0]]).isnan().tolist() == [[False, True], [True, False]]


def test_cells_of_pruned_heads_are_empty(tmp_path):
    figure = draw_importance(SCORES, tmp_path / "heads.png", title="Heads")
    assert (tmp_path / "heads.png").read_bytes().startswith(b"\x89PNG")
    panel = figure.axes[0]
    # Place (head, layer) and text of each cell.
    cells = {text.get_position(): text.get_text() for text in panel.texts}
    assert cells == {(0, 0): "0.5", (1, 0): "0.25", (0, 1): "1", (2, 1): "0.12"}
    assert panel.images[0].get_array().mask.tolist() == [[False, False, True], [False, True, False]]
    again = tmp_path / "again.png"
    draw_importance(SCORES, again, title="Heads")
    assert again.read_bytes() == (tmp_path / "heads.png").read_bytes()


def normal(mean, deviation, count):
    """Quantiles of a normal distribution."""
    shares = (torch.arange(count, dtype=torch.float64) + 0.5) / count
    return mean + deviation * torch.special.ndtri(shares)


def test_densities_are_drawn(tmp_path):
    first = ScoreDensity.of(normal(0.2, 0.05, 50))
    second = ScoreDensity.of(normal(0.5, 0.1, 50))
    assert len(first.points) == len(first.density) == len(first.cumulative) == 512
    assert first.points[first.peak].item() == pytest.approx(0.2, abs=0.01)
    path = tmp_path / "density.png"
    figure = draw_densities({"P": first, "Q": second}, path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [each.get_text() for each in figure.axes[0].get_legend().get_texts()] == ["P", "Q"]
    figure = draw_densities({"I": first}, path)
    panel, shares = figure.axes
    assert panel.lines[0].get_ydata().tolist() == first.density.tolist()
    assert shares.lines[0].get_ydata().tolist() == first.cumulative.tolist()
