"""The figures of GLUE against values worked out by hand, their limits, and scikit-learn and SciPy."""

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics as sklearn

from hf_mwp.compress.metrics.glue import f1_of_positive, matthews_correlation, share_right, spearman_correlation


def test_literals():
    predictions = [1, 1, 1, 0, 0, 0]
    labels = [1, 1, 0, 1, 0, 0]
    # Two of three found are right, two of three true are found: TP 2, FP 1, FN 1, TN 2.
    assert share_right(predictions, labels) == pytest.approx(4 / 6)
    assert f1_of_positive(predictions, labels) == pytest.approx(2 / 3)
    assert matthews_correlation(predictions, labels) == pytest.approx((2 * 2 - 1 * 1) / 9)
    # Ranks 1, 2.5, 2.5, 4 and 1, 2, 3, 4: covariance 4.5, squares 4.5 and 5.
    assert spearman_correlation([0.1, 0.5, 0.5, 9.0], [1, 2, 3, 4]) == pytest.approx(4.5 / (4.5 * 5) ** 0.5)
    assert spearman_correlation([3, 2, 1], [10.0, 20.0, 1000.0]) == pytest.approx(-1)


def test_limits():
    assert f1_of_positive([0, 0], [0, 0]) == matthews_correlation([1, 1], [0, 1]) == 0
    assert spearman_correlation([2.0, 2.0], [1.0, 3.0]) == 0
    assert matthews_correlation([0, 1, 2], [0, 1, 2]) == pytest.approx(1)
    assert share_right([1], [1]) == f1_of_positive([1], [1]) == 1
    for figure in (share_right, f1_of_positive, matthews_correlation, spearman_correlation):
        with pytest.raises(ValueError, match=r"label.*\(1,\).*\(2,\)"):
            figure([1], [1, 0])
        with pytest.raises(ValueError, match=r"label.*\(0,\).*\(0,\)"):
            figure([], [])
        # A column would be compared with each label.
        with pytest.raises(ValueError, match=r"label.*\(2, 1\).*\(2,\)"):
            figure(np.array([[1], [0]]), np.array([1, 0]))


@pytest.mark.parametrize("classes", [2, 3])
def test_classes_as_in_scikit_learn(classes):
    chooser = np.random.default_rng(classes)
    predictions, labels = chooser.integers(0, classes, (2, 200))
    assert share_right(predictions, labels) == pytest.approx(sklearn.accuracy_score(labels, predictions))
    expected = sklearn.f1_score(labels, predictions, labels=[1], average="macro")
    assert f1_of_positive(predictions, labels) == pytest.approx(expected)
    expected = sklearn.matthews_corrcoef(labels, predictions)
    assert matthews_correlation(predictions, labels) == pytest.approx(expected)


def test_ranks_as_in_scipy():
    chooser = np.random.default_rng(0)
    ours = chooser.integers(0, 6, 100) / 5
    theirs = chooser.normal(size=100).round(1)
    assert spearman_correlation(ours, theirs) == pytest.approx(stats.spearmanr(ours, theirs).statistic)
