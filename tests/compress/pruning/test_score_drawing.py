import math

import torch

from hf_mwp.compress.pruning import ScoreDensity, draw_densities, draw_importance, rows_of, scores_of
from tests.compress.pruning.encoders import normal_quantiles


SCORES = torch.tensor([[0.5, 0.25, math.nan], [1.0, math.nan, 0.125]], dtype=torch.float64)


def test_scores_become_json_rows_and_back():
    rows = rows_of(SCORES)
    assert rows == [[0.5, 0.25, None], [1.0, None, 0.125]]
    torch.testing.assert_close(scores_of(rows), SCORES, rtol=0, atol=0, equal_nan=True)
    assert scores_of([[0.5], [None, 2.0]]).isnan().tolist() == [[False, True], [True, False]]


def test_cells_of_pruned_heads_are_empty(tmp_path):
    figure = draw_importance(SCORES, tmp_path / "heads.png", title="Heads")
    drawing = (tmp_path / "heads.png").read_bytes()
    assert drawing.startswith(b"\x89PNG")
    panel = figure.axes[0]
    # Position (head, layer) and text of each cell.
    cells = {text.get_position(): text.get_text() for text in panel.texts}
    assert cells == {(0, 0): "0.5", (1, 0): "0.25", (0, 1): "1", (2, 1): "0.12"}
    assert panel.images[0].get_array().mask.tolist() == [[False, False, True], [False, True, False]]
    draw_importance(SCORES, tmp_path / "heads.png", title="Heads")
    assert (tmp_path / "heads.png").read_bytes() == drawing


def test_densities_are_drawn(tmp_path):
    path = tmp_path / "density.png"
    first = ScoreDensity.of(normal_quantiles(0.2, 0.05, 50))
    second = ScoreDensity.of(normal_quantiles(0.5, 0.1, 50))
    legend = draw_densities({"P": first, "Q": second}, path).axes[0].get_legend()
    assert path.read_bytes().startswith(b"\x89PNG")
    assert [text.get_text() for text in legend.get_texts()] == ["P", "Q"]
    panel, shares = draw_densities({"I": first}, path).axes
    assert panel.lines[0].get_ydata().tolist() == first.density.tolist()
    assert shares.lines[0].get_ydata().tolist() == first.cumulative.tolist()
