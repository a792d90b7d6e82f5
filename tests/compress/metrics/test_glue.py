"""The metrics of GLUE against values worked out by hand, their limits, and scikit-learn and SciPy."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sklearn

from hf_mwp.compress.metrics.glue import f1_of_positive, matthews_correlation, share_right, spearman_correlation


@pytest.mark.parametrize(
    ("metric", "predictions", "labels", "expected"),
    [
        (share_right, [1, 1, 1, 0, 0, 0], [1, 1, 0, 1, 0, 0], 4 / 6),
        (spearman_correlation, [3, 2, 1], [10.0, 20.0, 1000.0], -1),
        (f1_of_positive, [0, 0], [0, 0], 0),
        (matthews_correlation, [1, 1], [0, 1], 0),
        (spearman_correlation, [2.0, 2.0], [1.0, 3.0], 0),
        (matthews_correlation, [0, 1, 2], [0, 1, 2], 1),
        (f1_of_positive, [1], [1], 1),
    ],
)
def test_value_by_hand(metric, predictions, labels, expected):
    assert metric(predictions, labels) == pytest.approx(expected)


@pytest.mark.parametrize("metric", [share_right, f1_of_positive, matthews_correlation, spearman_correlation])
def test_shapes_that_do_not_fit_raise(metric):
    with pytest.raises(ValueError, match=r"label.*\(1,\).*\(2,\)"):
        metric([1], [1, 0])
    with pytest.raises(ValueError, match=r"label.*\(0,\).*\(0,\)"):
        metric([], [])
    # A column would be compared with each label.
    with pytest.raises(ValueError, match=r"label.*\(2, 1\).*\(2,\)"):
        metric(np.array([[1], [0]]), np.array([1, 0]))


@pytest.mark.parametrize("num_classes", [2, 3])
def test_metrics_of_classes_equal_scikit_learn(num_classes):
    predictions, labels = np.random.default_rng(num_classes).integers(0, num_classes, (2, 200))
    expected_f1 = sklearn.f1_score(labels, predictions, labels=[1], average="macro")
    assert f1_of_positive(predictions, labels) == pytest.approx(expected_f1)
    assert matthews_correlation(predictions, labels) == pytest.approx(sklearn.matthews_corrcoef(labels, predictions))


def test_spearman_correlation_equals_scipy():
    chooser = np.random.default_rng(0)
    predictions = chooser.integers(0, 6, 100) / 5
    labels = chooser.normal(size=100).round(1)
    expected = stats.spearmanr(predictions, labels).statistic
    assert spearman_correlation(predictions, labels) == pytest.approx(expected)
