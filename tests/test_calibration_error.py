"""Expected calibration error: known values, a slow reference, forms of labels, errors."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
from xmtree.metrics import calibration_error


def slow(right, probabilities, n_bins):
    """Equation 3 of Guo et al. (2017), bin by bin; 0 is in the first bin."""
    total = 0
    for b in range(n_bins):
        low, high = b / n_bins, (b + 1) / n_bins
        inside = [low < p <= high or (b == 0 and p == 0) for p in probabilities]
        if any(inside):
            total += abs(right[inside].sum() - probabilities[inside].sum())
    return total / len(right)


@pytest.mark.parametrize("n_bins", [1, 2, 10, 15])
def test_equals_a_slow_version(n_bins):
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.random(300), np.linspace(0, 1, 11)])
    y, labels = rng.integers(0, 3, (2, len(p)))
    expected = slow(y == labels, p, n_bins)
    assert calibration_error(y, labels, p, n_bins) == pytest.approx(expected, rel=1e-12)


def test_known_values():
    assert calibration_error([0, 1], [0, 1], [1, 1]) == 0
    assert calibration_error([0, 1], [1, 0], [1, 1]) == 1
    assert calibration_error([0, 1], [0, 0], np.array([0.5, 0.5], np.float32)) == 0
    assert type(calibration_error([0], [0], [0.25])) is float
    assert calibration_error([2**63 + 1, 5], [2**63 + 1, None], [1, 0]) == 0
    # Calibrated by construction: the error falls with the root of the number of rows.
    rng = np.random.default_rng(1)
    p = rng.random(100_000)
    assert calibration_error(rng.random(len(p)) < p, np.ones(len(p), bool), p) < 0.01


@pytest.mark.parametrize(
    ("y_true", "labels", "classes"),
    [
        (["x", "y", "x"], ["x", "x", "y"], None),
        ([1.0, 2.0, 1.0], [1.0, 1.0, 2.0], None),
        ([["x"], ["y", "z"], []], np.array(["x", "x", None], object), None),
        (np.array([[1, 1], [0, 0], [0, 1]]), [1, 1, -1], None),
        (sp.csr_array(np.array([[1, 1], [0, 1], [0, 1]])), ["y", "x", "x"], ["x", "y"]),
    ],
)
def test_labels_in_any_form(y_true, labels, classes):
    # Only the first row is right.
    p = [0.9, 0.5, 0.2]
    expected = (0.1 + 0.5 + 0.2) / 3
    assert calibration_error(y_true, labels, p, classes=classes) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([0, 1], [0, 1], [0.5, 1.5]), "must be from 0 to 1, got 1.5 in row 1"),
        (([0], [0], [math.nan]), "must be from 0 to 1, got nan in row 0"),
        (([0, 1], [0, 1], [0.5]), r"got shapes \(2,\) and \(1,\)"),
        (([0], [[0]], [[0.5]]), r"arrays of shape \(n,\)"),
        (([0, 1, 2], [0, 1], [0.5, 0.5]), "y_true has 3 rows, but labels has 2"),
        (([0], [0], ["a"]), "probabilities must be numbers"),
        (([0], [0], [0.5], 0), "n_bins must be an integer of at least 1, got 0"),
        (([0], [0], [0.5], 2.0), "n_bins must be an integer"),
        (([], [], []), "at least one row, got 0"),
        ((["a"], [0], [0.5]), "labels contains numbers and y_true contains strings"),
    ],
)
def test_errors(arguments, message):
    with pytest.raises(ValueError, match=message):
        calibration_error(*arguments)
