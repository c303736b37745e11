"""LdSM on a cluster: trees on samples of the rows, scorers by groups of labels.

A group gets the rows that have one of its labels, or for which the trees find one likely, and some
at random. Groups are cut from the leaves of the first tree in their order, so labels that compete
are mostly together. The join is fitted on rows that no tree learns.
"""

import json
from dataclasses import dataclass
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

#: Dask's option for the number of rows that a tree is grown on, and how many values these have by
#: default. A worker needs at least 12 bytes for each of them.
_SAMPLE, _VALUES = "xmtree.tree-rows", 1 << 26
#: Least numbers of labels of a group, of groups if there are so many labels, and of rows of which
#: trees leave some out.
_LABELS, _GROUPS, _ROWS = 64, 8, 100
#: Numbers, beside those of trees, of the rows that the join is fitted on and of the others.
_FIT, _OTHERS = -1, -2


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
    n_sampled = max(_ROWS, dask.config.get(_SAMPLE, n_rows * _VALUES // n_values))
    share = min(1.0, n_sampled / n_rows)
    n_bytes, n_own = 8 * int(share * n_values), sum(f.n_bytes for f in plan.facts) // len(workers)
    what = "each worker holds its partitions and the rows that a tree is grown on"
    # Per thread a copy of a node's rows, at the root at least half of them.
    refuse(lambda n: n_own + n_bytes * (3 + n) // 2, what, workers)
    threads = [int(worker["nthreads"]) for worker in workers.values()]
    n_threads = max(1, min(min(threads), sum(threads) // n_trees))
    n_parts = max(1, sum(found.n_rows > 0 for found in plan.facts))
    n_groups = max(1, min(max(_GROUPS, n_parts), n_classes // _LABELS)) if n_parts > 1 else 1
    has_fit = params["scorers"] != "none" and n_rows >= _ROWS
    out, left_out = _core.ldsm_left_out(n_rows) if has_fit else (0.0, 0.0)
    draw = _Draw(rows, seed, n_trees, min(share / (1 - out), 1 - left_out), out)

    def drawn(which: int | None) -> list[Any]:
        return [tasks.submit("sampled", draw, which, *one) for one in enumerate(parts)]

    is_local = share == 1 and (n_groups == 1 or not has_fit)
    make = partial(_core.LdsmTraining, params_json, n_classes)
    first = drawn(None if is_local else 0)
    sample, trees = tasks.submit("examples", _read, make, first), []
    # Rows of all trees are prepared as those of the first.
    base = sample if is_local else tasks.submit("base", _core.LdsmTraining.first_row, sample)
    for turn in range(n_trees):
        own = None if is_local else (drawn(turn) if turn else first)
        trees.append(tasks.submit("tree", _tree, base, turn, n_threads, own, turn=turn))
    if is_local or not has_fit:
        return tasks.submit("scorers", _core.LdsmTraining.model, sample, trees, min(threads))
    tally = _tally, draw, n_classes, trees[0]
    tallies = [tasks.submit("tally", *tally, *one) for one in enumerate(parts)]
    groups = tasks.submit("groups", _grouped, tallies, n_groups, sample)
    # Pieces with rows of the fit come first.
    divided = [tasks.submit("divide", _divided, trees, groups, 0, drawn(_FIT))]
    others = _others_divided, draw, n_groups, trees, groups
    divided += [tasks.submit("divide", *others, *one) for one in enumerate(parts)]
    mined = []
    for group in range(n_groups):
        pieces = [tasks.submit("piece", itemgetter(group), one) for one in divided]
        mined.append(tasks.submit("mine", _core.ldsm_mine, groups, group, pieces, turn=group))
    gains = [tasks.submit("gains", itemgetter(1), one) for one in mined]
    settings = tasks.submit("choose", _core.ldsm_choose, groups, gains)
    fit = tasks.submit("fit-rows", itemgetter(n_groups), divided[0])
    train = partial(tasks.submit, "scorers", _core.ldsm_scorers, groups)
    trained = [train(i, one, settings, fit, turn=i) for i, one in enumerate(mined)]
    counts = [tasks.submit("counts", itemgetter(1), one) for one in trained]
    layout = tasks.submit("layout", _core.ldsm_layout, groups, fit, counts)
    name = uuid4().hex
    files = [None] * n_groups if folder is None else part_files(folder, name, n_groups)
    measure = partial(tasks.submit, "margins", _core.ldsm_margins, groups, fit, layout, name)
    found = [measure(i, file, trained[i], turn=i) for i, file in enumerate(files)]
    margins = [tasks.submit("part", itemgetter(1), one) for one in found]
    fitted = tasks.submit("join", _core.ldsm_join, groups, fit, settings, margins)
    here = [] if folder else [tasks.submit("part", itemgetter(0), one) for one in found]
    whole = join("whole", _core.ldsm_model, trees, fitted, here)
    return join("parts", Parts, whole, name, files) if folder else whole


@dataclass(frozen=True)
class _Draw:
    """Draws the rows of the fit, and of the others those that each tree learns.

    A row has a random place on a circle of length 1. Each tree learns the rows of an ``arc``, which
    begins where that of the tree before ends, so all rows are learned by about as many trees.
    """

    rows: str
    seed: int
    n_trees: int
    arc: float
    #: Share of the rows of the fit.
    fit: float

    def __call__(self, which: int | None, number: int, data: Part | None) -> Any:
        """Return rows, codes and weights of a tree, of the fit, of others, or of all (None).

        For others also return whether each tree learns each row.
        """
        if data is None:
            return None
        weights = data.weights_of(self.rows)
        kept = weights > 0
        places = np.random.default_rng([self.seed, number, 1]).random(len(weights)) - self.fit

        def learns(turn: int) -> Any:
            return (places >= 0) & ((places / (1 - self.fit) - turn * self.arc) % 1 < self.arc)

        if which is not None:
            kept &= learns(which) if which >= 0 else (places < 0) == (which == _FIT)
        found: Any = (data.X[kept], data.target.codes[kept], weights[kept])
        if which == _OTHERS:
            found += (np.column_stack([learns(turn)[kept] for turn in range(self.n_trees)]),)
        return found if kept.any() else None


def _read(make: Any, drawn: list[Any]) -> Any:
    """Return what ``make`` makes of rows, codes and weights of all partitions."""
    found = [one for one in drawn if one is not None]
    if not found:
        raise ValueError("no or too few examples have a label and a weight above 0")
    X, *others = map(stacked, zip(*found, strict=True))
    return _validation.canonical(X, lambda X: make(X, *others))


def _tree(base: _core.LdsmTraining, turn: int, n_threads: int, drawn: Any) -> _core.Classifier:
    """Grow a tree on all rows ``drawn`` for it, or on most of ``base``."""
    sample = base if drawn is None else _read(base.with_rows, drawn)
    return sample.trees([turn], drawn is not None, n_threads)


def _tally(draw: _Draw, n_classes: int, tree: _core.Classifier, number: int, data: Any) -> Any:
    """Return number and weight of the rows; by label, their number and the sum of their places."""
    found = draw(None, number, data)
    if found is None:
        return 0, 0.0, np.zeros(n_classes, np.int64), np.zeros(n_classes)
    X, codes, weights = found
    starts, _, nodes = _validation.canonical(X, tree.leaves)
    of_nodes = _places(tree.trees()[0]["children"])
    places = np.add.reduceat(of_nodes[nodes], starts[:-1]) / np.diff(starts)
    if hasattr(codes, "tocsr"):
        codes, places = codes.indices, places.repeat(np.diff(codes.indptr))
    counts = np.bincount(codes, minlength=n_classes)
    return len(weights), weights.sum(), counts, np.bincount(codes, places, n_classes)


def _places(children: NDArray[np.int32]) -> NDArray[np.intp]:
    """Return the place of each node in a walk from left to right."""
    walk, waiting = [], [0]
    while waiting:
        walk.append(waiting.pop())
        waiting += [child for child in children[walk[-1]].tolist()[::-1] if child >= 0]
    return np.argsort(walk)


def _grouped(tallies: list[Any], n_groups: int, sample: _core.LdsmTraining) -> bytes:
    """Return groups of labels with about as many examples each."""
    n_rows, weight, counts, places = (sum(column) for column in zip(*tallies, strict=True))
    order = np.argsort(places / np.maximum(counts, 1), kind="stable")
    ends, groups = np.cumsum(counts[order]), np.empty(len(counts), np.uint32)
    middles = np.minimum(2 * ends - counts[order], 2 * ends[-1] - 1)
    groups[order] = middles * n_groups // (2 * ends[-1])
    mean_weight = float(weight / n_rows)
    return sample.groups(groups, n_groups, counts.astype(np.uint32), int(n_rows), mean_weight)


def _divided(trees: Any, groups: Any, number: int, drawn: list[Any]) -> Any:
    """Return the rows of each group; those of the fit come once more at the end."""
    return _read(partial(_core.ldsm_divide, trees, groups, number), drawn)


def _others_divided(draw: _Draw, n_groups: int, trees: Any, groups: Any, *part: Any) -> Any:
    found = draw(_OTHERS, *part)
    return _divided(trees, groups, 1 + part[0], [found]) if found else [b""] * n_groups


def _thresholds(plan: Plan, model: _core.Classifier, found: list[Any]) -> Any:
    return _fitted(plan, model, None)._best_thresholds(HeldOut.join(found))


def _fitted(plan: Plan, model: Any, thresholds: Any) -> Any:
    """Return the estimator with its model."""
    fitted, model = copied(plan.local), model.with_labels(plan.labels)
    fitted._model, fitted._thresholds = model, thresholds
    return LdSMInParts.of(fitted, model) if isinstance(model, Parts) else fitted


class DaskLdSMClassifier(DaskEstimator):
    """LdSM on a cluster: trees on samples of the rows, scorers by groups of labels.

    Each tree has a sample of its own, of about ``xmtree.tree-rows`` rows (Dask's configuration), by
    default as many as have 2**26 values. The accuracy is nearly that of one machine. The model
    depends on the partitions and ``random_state``, not on the workers. With one partition, or less
    than 128 labels, it is that of :class:`xmtree.LdSMClassifier` if the option allows all rows.

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
