"""Online learners on a cluster: models travel from partition to partition.

A model learns the rows of one partition after the other, each pass in the same order. Members of
an ensemble, and blocks of classes of one-against-all, travel separately, one behind the other.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from distributed import Future

from xmtree import _calibration, _core, _validation
from xmtree._calibration import Calibration, HeldOut
from xmtree._labels import Target
from xmtree._labels.forms import row_sets
from xmtree._lomtree import LOMTreeClassifier
from xmtree._oaa import OAAClassifier
from xmtree._online import _NONE_YET
from xmtree._recall_tree import RecallTreeClassifier
from xmtree._sharing import copied
from xmtree.dask._base import DaskEstimator
from xmtree.dask._cluster import Tasks, Workers, refuse
from xmtree.dask._plan import Part, Plan, planned, training_parts

#: Classes of a tile of one-against-all, and the least number of blocks if there are so many tiles.
_TILE, _LEAST_BLOCKS = 64, 8


@dataclass(frozen=True)
class Traveler:
    """A model that travels by itself."""

    learner: str
    number: int
    params: dict[str, Any]
    n_classes: int
    #: The classes, from the first to the one after the last; None for all.
    block: tuple[int, int] | None = None

    def codes(self, target: Any) -> Any:
        """Return the labels of a partition as this model learns them."""
        if self.block is None:
            return target.codes
        first, last = self.block
        if target.multilabel:
            return target.codes[:, first:last]
        is_in = (target.codes >= first) & (target.codes < last)
        columns = target.codes[is_in].astype(np.int64) - first
        return row_sets(columns, is_in.astype(np.int64), last - first)


def travelers(learner: str, params: dict[str, Any], plan: Plan) -> list[Traveler]:
    """Return the models that are trained separately."""
    n_classes, n_members = len(plan.labels.classes), params.get("n_estimators", 1)
    if learner != "oaa":
        one = {**params, "n_estimators": 1} if "n_estimators" in params else params
        return [Traveler(learner, number, one, n_classes) for number in range(n_members)]
    params = {**params, "prune": None}
    n_tiles = -(-n_classes // _TILE)
    n_blocks = min(n_tiles, max(_LEAST_BLOCKS, len(plan.facts)))
    if n_blocks < 2 or params["loss"] == "softmax":  # the softmax couples the classes
        return [Traveler(learner, 0, params, n_classes)]
    bounds = [min(_TILE * (n_tiles * i // n_blocks), n_classes) for i in range(n_blocks + 1)]
    found = []
    for number, (first, last) in enumerate(pairwise(bounds)):
        own = dict(params)
        if own["n_negatives"] is not None:
            own["n_negatives"] = -(-own["n_negatives"] * (last - first) // n_classes)
        found.append(Traveler(learner, number, own, last - first, (first, last)))
    return found


def step(traveler: Traveler, model: Any, data: Part | None, rows: str, learn: Any) -> Any:
    """Return the model after it has learned ``rows`` of a partition, or observed it."""
    if data is None:
        return model
    if model is None:
        is_set, params = traveler.block is not None or data.target.multilabel, traveler.params
        model = _core.Classifier(traveler.learner, json.dumps(params), traveler.n_classes, is_set)
    # Others may use the model as it was.
    model = model.snapshot()
    codes, weights = traveler.codes(data.target), data.weights_of(rows)
    if learn is None or weights.any():
        _validation.canonical(data.X, lambda X: model.learn_part(X, codes, weights, learn))
    return model


def relay_tasks(tasks: Tasks, local: Any, data: Any, classes: Any, workers: Workers) -> Future:
    """Submit the tasks of a training, and return the one of the fitted estimator."""
    plan_future, plan = planned(tasks, local, data, classes)
    # Parameters may not fit the labels.
    local._uncalibrated(Target(None, plan.labels))
    params = {**local._core_params(), "seed": _validation.seed(local.random_state)}
    everyone = travelers(local._short_name, params, plan)
    _check_memory(plan, params, everyone, workers)
    n_passes, n_rows = params["n_passes"], plan.n_rows
    n_held_out, n_first, n_last = _calibration.schedule(n_rows, n_passes)
    calibrates = local.calibrate and n_held_out > 0 and len(plan.labels.classes) > 1
    if not calibrates:
        n_held_out, n_first, n_last = 0, 0, n_passes
    parts = training_parts(tasks, plan_future, local, data, n_held_out, labeled=False)
    seed = params["seed"]

    def travel(models: list[Any], rows: str, passes: Iterable[int], n: int) -> list[Any]:
        """Let each model learn ``rows``, of which there are ``n``."""
        moved = []
        for traveler, model in zip(everyone, models, strict=True):
            # Blocks of classes must number the columns alike.
            member = 0 if traveler.block else traveler.number
            # With another order in each pass, Recall Trees are worse: rows may soon come again.
            order = np.random.default_rng([seed, member]).permutation(len(parts))
            for number in passes:
                for at in order.tolist():
                    own = np.random.default_rng([seed, member, number, at]).integers(2**63)
                    learn = max(n, 1), int(own), number > 0
                    model = tasks.submit("learn", step, traveler, model, parts[at], rows, learn)
            moved.append(model)
        return moved

    # Untrained models have observed all parts. Members of an ensemble start alike.
    models: list[Any] = [None] * (len(everyone) if everyone[0].block else 1)
    for one in parts:
        each = enumerate(models)
        models = [tasks.submit("observe", step, everyone[i], m, one, "all", None) for i, m in each]
    models *= len(everyone) // len(models)
    calibration: Any = None
    if calibrates:
        models = travel(models, "others", range(n_first), n_rows - n_held_out)
        rows_out = [tasks.submit("held-out", held_out, one) for one in parts]
        first = _joined(tasks, everyone, models, params, plan)
        calibration = tasks.submit("calibrate", _calibrated, plan_future, first, rows_out)
    rows, n = ("all", n_rows) if n_last else ("held out", n_held_out)
    models = travel(models, rows, range(n_first, n_first + max(1, n_last)), n)
    model = _joined(tasks, everyone, models, params, plan)
    return tasks.submit("model", _fitted, plan_future, calibration, model)


def _joined(tasks: Tasks, everyone: list[Traveler], models: Any, params: Any, plan: Plan) -> Future:
    """Return the model of all travelers. Blocks are pruned first, so that they take less room."""
    if params.get("prune") is not None:
        models = [
            tasks.submit("prune", _join, one, {**one.params, "prune": params["prune"]}, True, model)
            for one, model in zip(everyone, models, strict=True)
        ]
    whole = Traveler(everyone[0].learner, 0, params, len(plan.labels.classes))
    is_set = plan.labels.form != "labels"
    return tasks.submit("join", _join, whole, params, is_set, *models)


def _join(traveler: Traveler, params: Any, is_set: bool, *models: Any) -> _core.Classifier:
    arguments = json.dumps(params), traveler.n_classes, is_set, models
    return _core.Classifier.join(traveler.learner, *arguments)


def held_out(data: Part | None) -> HeldOut | None:
    """Return the rows of a partition to calibrate on."""
    if data is None:
        return None
    target, learned = data.target, data.weights_of("others")
    weights = data.weights, learned, data.held_out
    return HeldOut.of(data.X, target.codes, len(target.classes), *weights)


def _calibrated(plan: Plan, model: _core.Classifier, found: list[HeldOut | None]) -> Any:
    """Return the calibration of a model by the rows of all partitions that it has not learned."""
    local = _fitted(plan, None, model)
    local._calibrate_with(HeldOut.join(found))
    return local._calibration


def _fitted(plan: Plan, calibration: Calibration | None, model: _core.Classifier) -> Any:
    """Return the estimator with its model."""
    fitted = copied(plan.local)
    fitted._model = model.with_labels(plan.labels)
    fitted._started_with, fitted._marks = fitted._learning_params(), (_NONE_YET,)
    fitted._calibration = calibration or fitted._uncalibrated(Target(None, plan.labels))
    return fitted


def _check_memory(plan: Plan, params: Any, everyone: list[Traveler], workers: Workers) -> None:
    """Compare the memory of each worker with its share of the rows and the models on it."""
    rows, model = sum(found.n_bytes for found in plan.facts) / len(workers), 0
    if everyone[0].learner == "oaa":
        n_columns = plan.local.n_features_in_ if params["n_bits"] is None else 1 << params["n_bits"]
        n_columns = min(n_columns, sum(found.n_values for found in plan.facts)) + 1
        # Weights and their running sums, or weights with the squares and scales of "nag".
        n_planes = 2 if params["optimizer"] == "pn" else 3
        model = 4 * n_planes * n_columns * max(one.n_classes for one in everyone)
    what = "each worker holds its partitions and the weights of some classes"
    refuse(lambda threads: int(rows + threads * model), what, workers)


class DaskRelay(DaskEstimator):
    """Base of online learners on a cluster."""

    _left_out: ClassVar[dict[str, str]] = DaskEstimator._left_out | {
        "early_stopping": "it compares the models of all passes"
    }
    _tasks = staticmethod(relay_tasks)


class DaskOAAClassifier(DaskRelay):
    """One-against-all on a cluster: blocks of classes travel from partition to partition.

    Each class learns all rows in each pass, as by :class:`xmtree.OAAClassifier`, but partition
    after partition. The model depends on these, their order and ``random_state``, not on the
    workers. ``progressive_loss_`` is NaN if there are several blocks: none knows all scores.

    Parameters
    ----------
    client : as for :class:`DaskLdSMClassifier`
    **params
        Parameters of :class:`xmtree.OAAClassifier` except ``n_jobs`` and ``early_stopping``.
        ``n_negatives`` are drawn block by block, rounded up.
    """

    _local_class = OAAClassifier


class DaskLOMTreeClassifier(DaskRelay):
    """LOMtrees on a cluster, which travel from partition to partition.

    Each tree (``n_estimators``) learns all rows, as by :class:`xmtree.LOMTreeClassifier`, in an
    order of partitions of its own. As many workers learn at the same time as there are trees.

    Parameters
    ----------
    client, **params : as for :class:`DaskOAAClassifier`, of :class:`xmtree.LOMTreeClassifier`
    """

    _local_class = LOMTreeClassifier


class DaskRecallTreeClassifier(DaskRelay):
    """A Recall Tree on a cluster, which travels from partition to partition.

    It learns all rows, as :class:`xmtree.RecallTreeClassifier` does, in no less time.

    Parameters
    ----------
    client, **params : as for :class:`DaskOAAClassifier`, of :class:`xmtree.RecallTreeClassifier`
    """

    _local_class = RecallTreeClassifier
