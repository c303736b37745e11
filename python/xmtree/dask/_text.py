"""Text classification on a cluster: features on one worker, the learner on all."""

from collections.abc import Callable
from functools import partial
from operator import itemgetter
from typing import Any, Self

from distributed import Future

from xmtree._ldsm import LdSMClassifier
from xmtree._oaa import OAAClassifier
from xmtree._text.classifier import TextClassifier
from xmtree.dask._base import DaskEstimator, snapshot
from xmtree.dask._cluster import Tasks, Workers
from xmtree.dask._ldsm import ldsm_tasks
from xmtree.dask._oaa import oaa_tasks
from xmtree.dask._partitions import Read, ReadData

#: Learners that can be trained on a cluster, with their tasks.
_TASKS: dict[type[Any], Callable[..., Future]] = {
    LdSMClassifier: ldsm_tasks,
    OAAClassifier: oaa_tasks,
}


def text_tasks(
    tasks: Tasks, local: TextClassifier, read_data: ReadData, classes: Any, workers: Workers
) -> Future:
    """Submit the tasks of a training, and return the one of the fitted classifier."""
    begun = read_data(partial(_begun, local))
    learner = tasks.result(tasks.submit("learner", itemgetter(0), begun))

    def read_rows(read: Read) -> Future:
        return tasks.submit("read", _read_rows, read, begun)

    trained = _TASKS[type(learner)](tasks, learner, read_rows, classes, workers)
    return tasks.submit("classifier", _fitted, local, begun, trained)


def _begun(local: TextClassifier, texts: Any, labels: Any, sample_weight: Any) -> Any:
    """Return the learner, the features, their rows, the labels and the weights."""
    learner, features, rows = snapshot(local)._begin(texts, labels)
    return learner, features, rows, labels, sample_weight


def _read_rows(read: Read, begun: Any) -> Any:
    return read(*begun[2:])


def _fitted(local: TextClassifier, begun: Any, learner: Any) -> TextClassifier:
    fitted: TextClassifier = snapshot(local)
    fitted.learner_, fitted._features = learner, begun[1]
    return fitted


class DaskTextClassifier(DaskEstimator):
    """Classifier of texts on a cluster.

    The model is bit-identical to :class:`xmtree.TextClassifier` with the same parameters and data,
    except with one-against-all on 8,000 rows or more; see :class:`DaskOAAClassifier`. One worker,
    which sees all words, extracts the features of all texts and sends their rows to the others. The
    learner is trained there as by :class:`DaskLdSMClassifier` or :class:`DaskOAAClassifier`.

    Parameters
    ----------
    client : as for :class:`DaskLdSMClassifier`
    **params
        Parameters of :class:`xmtree.TextClassifier` except ``n_jobs``. The learner must be
        "auto", an :class:`xmtree.LdSMClassifier` or an :class:`xmtree.OAAClassifier`.
        ``verbose=1`` shows a progress bar of the tasks.

    Attributes
    ----------
    classes_ : array of shape (n_classes,)
    """

    _local_class = TextClassifier
    _prefix = "text"
    _tasks = staticmethod(text_tasks)
    learner: Any

    def fit(  # type: ignore[override]
        self, texts: Any, labels: Any, sample_weight: Any = None
    ) -> Self:
        """Train from scratch.

        Parameters
        ----------
        texts : list of partitions, Dask array, data frame column (Dask) of strings, or local texts
            Partitions (``Delayed`` or ``Future``) must be lists, arrays or columns of strings.
        labels : as ``texts``, in the same partitions
            One label per text, or label sets: lists of lists, or indicators.
        sample_weight : as ``texts``, optional
            Importance weights, not negative; 1 by default.

        Returns
        -------
        self
        """
        learner = self.learner
        if not isinstance(learner, str) and type(learner) not in _TASKS:
            raise TypeError(
                'learner must be "auto", an LdSMClassifier or an OAAClassifier, '
                f"got {type(learner).__name__}"
            )
        return self._fit(texts, labels, sample_weight, None)
