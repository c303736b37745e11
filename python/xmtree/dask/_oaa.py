"""One-against-all on a cluster: a task for each block of classes."""

import json
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from distributed import Future
from numpy.typing import NDArray

from xmtree import _class_weight, _core, _validation
from xmtree._calibration import Calibration
from xmtree._labels import Target
from xmtree._oaa import OAAClassifier
from xmtree._online import row_weights
from xmtree.dask._base import DaskEstimator, snapshot
from xmtree.dask._cluster import Tasks, Workers, refuse, threads_of
from xmtree.dask._partitions import ReadData

#: Blocks of classes per thread: more than one, so that idle workers can help slow ones, but few,
#: as each block prepares all examples again.
_BLOCKS_PER_THREAD = 2


@dataclass(frozen=True)
class Examples:
    """Training data on each worker, which no task modifies."""

    #: An untrained estimator that knows the features.
    local: OAAClassifier
    params: dict[str, Any]
    X: Any
    target: Target
    sample_weight: NDArray[np.float64] | None
    n_blocks: int


def oaa_tasks(
    tasks: Tasks, local: OAAClassifier, read_data: ReadData, classes: Any, workers: Workers
) -> Future:
    """Submit the tasks of a training, and return the one of the fitted estimator."""
    params = {**local._core_params(), "seed": _validation.seed(local.random_state)}
    n_wanted = _BLOCKS_PER_THREAD * sum(threads_of(workers))
    examples = read_data(partial(_read, local, params, classes, n_wanted, workers))
    part = tasks.submit("calibration-rows", _held_out_split, examples)
    n_blocks, calibrates = tasks.result(tasks.submit("plan", _plan, examples, part))

    def trained(name: str, what: Any) -> Future:
        blocks = [
            tasks.submit(f"{name}-classes", _train, examples, what, (number, n_blocks))
            for number in range(n_blocks)
        ]
        return tasks.submit(f"{name}-join", _core.OaaClasses.join, blocks)

    calibration: Any = None
    if calibrates:
        calibration = tasks.submit("calibrate", _calibrate, examples, part, trained("part", part))
    return tasks.submit("model", _fitted, examples, calibration, trained("all", None))


def _read(
    local: OAAClassifier,
    params: dict[str, Any],
    classes: Any,
    n_blocks: int,
    workers: Workers,
    X: Any,
    y: Any,
    sample_weight: Any,
) -> Examples:
    """Check data as ``fit`` of a local estimator does."""
    # A task may run again, so its arguments must stay as they were.
    local = snapshot(local)
    X = local._validated(X, reset=True)
    target = local._target(y, classes)
    weights = _validation.weights(sample_weight, X)
    local._started_with = local._learning_params()
    local._calibration = local._uncalibrated(target)
    n_classes = len(target.classes)
    n_blocks = min(n_blocks, int(_core.OaaClasses.most(json.dumps(params), n_classes)))
    is_sparse = hasattr(X, "indptr")
    n_bytes = sum(a.nbytes for a in ((X.data, X.indices, X.indptr) if is_sparse else (X,)))
    n_columns = X.shape[1] if params["n_bits"] is None else 1 << params["n_bits"]
    n_columns = min(n_columns, X.nnz if is_sparse else X.size) + 1
    # Weights and their running sums, or weights with the squares and scales of "nag".
    n_planes = 2 if params["optimizer"] == "pn" else 3
    block_bytes = 4 * n_planes * n_columns * -(-n_classes // n_blocks)
    refuse(
        lambda threads: n_bytes + threads * block_bytes,
        "each worker holds all rows and the weights of some classes",
        workers,
    )
    return Examples(local, params, X, target, weights, n_blocks)


def _plan(examples: Examples, part: Any) -> tuple[int, bool]:
    """Return the number of blocks of classes, and whether rows are held out for calibration."""
    return examples.n_blocks, part is not None


def _held_out_split(examples: Examples) -> Any:
    """Return parameters, row weights and rows of the calibration, or None without one."""
    if not examples.local.calibrate:
        return None
    weights = row_weights(examples.sample_weight, examples.X)
    return examples.local._held_out_split(examples.params, weights, examples.target)


def _train(examples: Examples, part: Any, block: tuple[int, int]) -> _core.OaaClasses:
    """Train a block of classes on all rows, or on those of ``part``."""
    params, weights, target = examples.params, examples.sample_weight, examples.target
    if part is not None:
        params, weights, _ = part
    weights = _class_weight.times(examples.local.class_weight, weights, target)
    if weights is not None:
        # Arrays that were sent may be misaligned.
        weights = np.require(weights, requirements=["C", "A"])
    arguments = json.dumps(params), len(target.classes), target.multilabel
    return _validation.canonical(
        examples.X, lambda X: _core.OaaClasses(*arguments, X, target.codes, weights, block)
    )


def _calibrate(examples: Examples, part: Any, model: _core.Classifier) -> Calibration:
    """Return the calibration by a model of ``part``."""
    _, learned, rows = part
    local = _fitted(examples, None, model)
    weights = row_weights(examples.sample_weight, examples.X)
    weights = local._weighted(weights, examples.target)
    local._calibrate_on(examples.X, examples.target, weights, learned, rows)
    return local._calibration


def _fitted(
    examples: Examples, calibration: Calibration | None, model: _core.Classifier
) -> OAAClassifier:
    fitted: OAAClassifier = snapshot(examples.local)
    fitted._model = model.with_labels(examples.target.labels)
    if calibration is not None:
        fitted._calibration = calibration
    return fitted


class DaskOAAClassifier(DaskEstimator):
    """One-against-all on a cluster, with the classes distributed over the workers.

    Each class is trained separately on all examples. So the model is bit-identical to
    :class:`xmtree.OAAClassifier` with the same parameters, order of the data and ``random_state``
    if ``calibrate`` is off or there are fewer than 8,000 rows. With more rows, the local estimator
    calibrates the model itself, and this one always a second model.
    Every worker holds all rows and the weights of some classes; all weights are joined at the end
    (see ``prune``). Options that couple classes are refused: ``loss="softmax"``, and
    ``early_stopping``, which compares all classes after each pass.

    Parameters
    ----------
    client : as for :class:`DaskLdSMClassifier`
    **params
        Parameters of :class:`xmtree.OAAClassifier` except ``n_jobs``, as for
        :class:`DaskLdSMClassifier`.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,), if ``X`` was a data frame

    See Also
    --------
    DaskLdSMClassifier : Used in the same way; its description has an example.
    """

    _local_class = OAAClassifier
    _prefix = "oaa"
    _tasks = staticmethod(oaa_tasks)
