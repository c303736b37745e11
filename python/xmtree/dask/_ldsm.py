"""LdSM on a cluster: trees on a sample of the rows, scorers by groups of labels.

Each partition sends a group of labels the rows that have one of them or for which the trees find
one likely, and some at random. Groups are cut from the leaves of the first tree in their order, so
labels that compete are mostly together. The join is fitted on rows that no tree learns.
"""

import json
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, ClassVar, Self
from uuid import uuid4

import dask
import numpy as np
from numpy.typing import NDArray

from xmtree import _core, _validation
from xmtree._calibration import HeldOut, stacked
from xmtree._ldsm import LdSMClassifier, n_for_thresholds
from xmtree._ldsm_parts import LdSMInParts, Parts, part_files, publish
from xmtree._set_prediction import checked
from xmtree._sharing import copied
from xmtree._thresholds import unfitted
from xmtree.dask._base import DaskEstimator
from xmtree.dask._cluster import Here, Tasks, Workers, refuse
from xmtree.dask._plan import Part, Plan, planned, training_parts
from xmtree.dask._relay import held_out

#: Dask's option for the number of rows that trees are grown on, and how many values these have by
#: default. A worker that grows a tree needs at least 12 bytes for each of them.
_SAMPLE, _VALUES = "xmtree.tree-rows", 1 << 26
#: Least number of labels of a group, and the least number of groups if there are so many labels.
_LABELS, _GROUPS = 64, 8


def ldsm_tasks(
    tasks: Tasks, local: Any, data: list[Any], classes: Any, workers: Workers, folder: Any = None
) -> Here:
    """Submit the tasks of a training, and return the call that gives the fitted estimator."""
    plan_future, plan = planned(tasks, local, data, classes)
    n_classes, is_set = len(plan.labels.classes), plan.labels.form != "labels"
    fits = is_set and isinstance(local.threshold, str)
    if is_set and local.threshold is not None and not fits:
        checked(local.threshold, n_classes)
    n_held_out = n_for_thresholds(plan.n_rows) if fits else 0
    parts = training_parts(tasks, plan_future, local, data, n_held_out, labeled=True)
    thresholds: Any = unfitted(str(local.threshold), n_classes) if fits else None
    if n_held_out:
        first = _model(tasks, plan, parts, "others", workers, tasks.submit, folder)
        found = [tasks.submit("held-out", held_out, one) for one in parts]
        thresholds = tasks.submit("thresholds", _thresholds, plan_future, first, found)
    model = _model(tasks, plan, parts, "all", workers, tasks.together, folder)
    return tasks.together("model", _fitted, plan, model, thresholds)


def _model(
    tasks: Tasks, plan: Plan, parts: Any, rows: str, workers: Workers, join: Any, folder: Any = None
) -> Any:
    """Train on "all" rows, or the "others" than those held out; ``join`` submits the last task."""
    seed, n_classes = _validation.seed(plan.local.random_state), len(plan.labels.classes)
    params = {**plan.local._core_params(), "seed": seed}
    params_json, n_trees = json.dumps(params), int(params["n_estimators"])
    n_rows, n_values = max(1, plan.n_rows), max(1, sum(found.n_values for found in plan.facts))
    share = min(1.0, dask.config.get(_SAMPLE, n_rows * _VALUES // n_values) / n_rows)
    n_bytes, n_own = 8 * int(share * n_values), sum(f.n_bytes for f in plan.facts) // len(workers)
    what = "each worker holds its partitions and the rows that trees are grown on"
    # Per thread a copy of a node's rows, at the root at least half of them.
    refuse(lambda n: n_own + n_bytes * (3 + n) // 2, what, workers)
    pick, numbered = partial(_picked, rows, share, seed), list(enumerate(parts))
    sampled = [tasks.submit("sampled", pick, number, True, one) for number, one in numbered]
    sample = tasks.submit("examples", _sample, params_json, n_classes, sampled)
    threads = [int(worker["nthreads"]) for worker in workers.values()]
    n_threads = max(1, min(min(threads), sum(threads) // n_trees))
    train = partial(_core.LdsmTraining.trees, n_threads=n_threads)
    trees = [tasks.submit("tree", train, sample, [turn], turn=turn) for turn in range(n_trees)]

    n_parts = max(1, sum(found.n_rows > 0 for found in plan.facts))
    n_groups = max(1, min(max(_GROUPS, n_parts), n_classes // _LABELS)) if n_parts > 1 else 1
    if params["scorers"] == "none" or (n_groups == 1 and share == 1):
        return tasks.submit("scorers", _core.LdsmTraining.model, sample, trees, min(threads))
    tallies = [tasks.submit("tally", _tally, pick, n_classes, trees[0], *one) for one in numbered]
    groups = tasks.submit("groups", _grouped, tallies, n_groups, sample)
    # Pieces with rows of the fit, which are part 0 of the sample, come first.
    divide = _core.LdsmTraining.divide, sample, trees, groups
    divided = [tasks.submit("divide", *divide, (i, n_parts)) for i in range(n_parts + 1)]
    others = _divided, pick, n_groups, trees, groups
    divided += [tasks.submit("divide", *others, *one) for one in numbered if share < 1]
    mined = []
    for group in range(n_groups):
        pieces = [tasks.submit("piece", itemgetter(group), one) for one in divided]
        mined.append(tasks.submit("mine", _core.ldsm_mine, groups, group, pieces, turn=group))
    gains = [tasks.submit("gains", itemgetter(1), one) for one in mined]
    settings = tasks.submit("choose", _core.ldsm_choose, groups, gains)
    fit = tasks.submit("fit-rows", itemgetter(n_groups), divided[0])
    trained = [
        tasks.submit("scorers", _core.ldsm_scorers, groups, *each, settings, fit, turn=each[0])
        for each in enumerate(mined)
    ]
    counts = [tasks.submit("counts", itemgetter(1), one) for one in trained]
    layout = tasks.submit("layout", _core.ldsm_layout, groups, fit, counts)
    name = uuid4().hex
    files = [None] * n_groups if folder is None else part_files(folder, name, n_groups)
    measure = _core.ldsm_margins, groups, fit, layout, name
    found = [
        tasks.submit("margins", *measure, *each, turn=each[0])
        for each in zip(range(n_groups), files, trained, strict=True)
    ]
    margins = [tasks.submit("part", itemgetter(1), one) for one in found]
    fitted = tasks.submit("join", _core.ldsm_join, groups, fit, settings, margins)
    here = [] if folder else [tasks.submit("part", itemgetter(0), one) for one in found]
    whole = join("whole", _core.ldsm_model, trees, fitted, here)
    return join("parts", Parts, whole, name, files) if folder else whole


def _picked(
    rows: str, share: float, seed: int, number: int, is_sampled: bool | None, data: Part | None
) -> tuple[Any, Any, NDArray[np.float64]] | None:
    """Return rows, codes and weights that trees are grown on, are not, or (None) both."""
    if data is None:
        return None
    weights = data.weights_of(rows)
    which = weights > 0
    if is_sampled is not None:
        drawn = np.random.default_rng([seed, number, 1]).random(len(which)) < share
        which &= drawn == is_sampled
    return (data.X[which], data.target.codes[which], weights[which]) if which.any() else None


def _sample(params_json: str, n_classes: int, picked: list[Any]) -> _core.LdsmTraining:
    found = [one for one in picked if one is not None]
    if not found:
        raise ValueError("no example has a label and a weight above 0")
    X, codes, weights = map(stacked, zip(*found, strict=True))
    return _validation.canonical(
        X, lambda X: _core.LdsmTraining(params_json, n_classes, X, codes, weights)
    )


def _tally(pick: Any, n_classes: int, tree: _core.Classifier, number: int, data: Any) -> Any:
    """Return number and weight of the rows; by label, their number and the sum of their places."""
    found = pick(number, None, data)
    if found is None:
        return 0, 0.0, np.zeros(n_classes, np.int64), np.zeros(n_classes)
    X, codes, weights = found
    starts, _, nodes = _validation.canonical(X, tree.leaves)
    places = np.add.reduceat(_places(tree.trees()[0]["children"])[nodes], starts[:-1])
    places /= np.diff(starts)
    if hasattr(codes, "tocsr"):
        codes = codes.tocsr()
        codes, places = codes.indices, places.repeat(np.diff(codes.indptr))
    counts = np.bincount(codes, minlength=n_classes)
    return len(weights), weights.sum(), counts, np.bincount(codes, places, n_classes)


def _places(children: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the place of each node in a walk from left to right."""
    places, waiting = np.zeros(len(children)), [0]
    for place in range(len(children)):
        node = waiting.pop()
        places[node] = place
        waiting += [child for child in children[node].tolist()[::-1] if child >= 0]
    return places


def _grouped(tallies: list[Any], n_groups: int, sample: _core.LdsmTraining) -> bytes:
    """Return groups of labels with about as many examples each."""
    n_rows, weight, counts, places = (sum(column) for column in zip(*tallies, strict=True))
    order = np.argsort(places / np.maximum(counts, 1), kind="stable")
    ends, groups = np.cumsum(counts[order]), np.empty(len(counts), np.uint32)
    middles = np.minimum(2 * ends - counts[order], 2 * ends[-1] - 1)
    groups[order] = middles * n_groups // (2 * ends[-1])
    sizes = counts.astype(np.uint32), int(n_rows), float(weight / n_rows)
    return sample.groups(groups, n_groups, *sizes)


def _divided(pick: Any, n_groups: int, trees: Any, groups: Any, number: int, data: Any) -> Any:
    """Return the rows of each group that trees were not grown on."""
    found = pick(number, False, data)
    if found is None:
        return [b""] * n_groups
    X, codes, weights = found
    return _validation.canonical(
        X, lambda X: _core.ldsm_divide(trees, groups, number, X, codes, weights)
    )


def _thresholds(plan: Plan, model: _core.Classifier, found: list[Any]) -> Any:
    return _fitted(plan, model, None)._best_thresholds(HeldOut.join(found))


def _fitted(plan: Plan, model: Any, thresholds: Any) -> Any:
    """Return the estimator with its model."""
    fitted, model = copied(plan.local), model.with_labels(plan.labels)
    fitted._model, fitted._thresholds = model, thresholds
    return LdSMInParts.of(fitted, model) if isinstance(model, Parts) else fitted


class DaskLdSMClassifier(DaskEstimator):
    """LdSM on a cluster: trees on a sample of the rows, scorers by groups of labels.

    The sample has at most ``xmtree.tree-rows`` rows, an option of Dask's configuration; by default
    as many as have 2**26 values. Each worker that grows a tree holds it. The accuracy is nearly
    that of :class:`xmtree.LdSMClassifier`. The model depends on the partitions and
    ``random_state``, not on the workers. With one partition, or less than 128 labels, it is that of
    one machine if all rows are sampled.

    Parameters
    ----------
    client : distributed.Client, optional
        The current client by default; ``clone`` and pickle leave it out.
    **params
        Parameters of :class:`xmtree.LdSMClassifier` except ``n_jobs`` (a worker's threads are
        used) and ``warm_start``. ``verbose=1`` shows a progress bar of the tasks.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    n_features_in_ : int
    feature_names_in_ : array of shape (n_features,), if ``X`` was a data frame
    """

    _local_class = LdSMClassifier
    _tasks = staticmethod(ldsm_tasks)
    _left_out: ClassVar[dict[str, str]] = DaskEstimator._left_out | {
        "warm_start": "all trees are trained at once"
    }

    def fit_to_folder(
        self, folder: str | Path, X: Any, y: Any, sample_weight: Any = None, classes: Any = None
    ) -> Self:
        """Train a model that no machine can hold, as :meth:`fit` does.

        Parameters
        ----------
        folder : str or Path
            Shared by this process and all workers, which write a file for each group of labels.
            :func:`xmtree.load` opens its "model.xmtree". Another model there is replaced last. For
            fitted thresholds it holds a second model meanwhile.
        X, y, sample_weight, classes : as for :meth:`fit`

        Returns
        -------
        self

        Raises
        ------
        OSError
            If the folder cannot be written.
        """
        path = Path(folder).absolute()
        path.mkdir(parents=True, exist_ok=True)
        self._fit(X, y, sample_weight, classes, folder=path)
        publish(self._local, path)
        return self

    def _adopt(self, local: Any) -> None:
        local._warn_collapsed(0, stacklevel=5)
        super()._adopt(local)
