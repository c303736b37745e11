"""Text classification on a cluster: features are counted and made in the partitions."""

from operator import itemgetter
from typing import Any, Self

import numpy as np

from xmtree._labels import Labels, Target
from xmtree._ldsm import LdSMClassifier
from xmtree._oaa import OAAClassifier
from xmtree._text.classifier import TextClassifier
from xmtree._text.features import Settings, TextCounts, TextFeatures, as_texts, settings_of
from xmtree._text.rules import learner_and_settings
from xmtree.dask._base import DaskEstimator, snapshot
from xmtree.dask._cluster import Here, Tasks, Workers
from xmtree.dask._ldsm import DaskLdSMClassifier
from xmtree.dask._plan import joined_labels, labels_of
from xmtree.dask._relay import DaskOAAClassifier

#: Learners that can be trained on a cluster, and how.
_ON_CLUSTER: dict[type[Any], type[DaskEstimator]] = {
    LdSMClassifier: DaskLdSMClassifier,
    OAAClassifier: DaskOAAClassifier,
}


def text_tasks(tasks: Tasks, local: Any, data: list[Any], classes: Any, workers: Workers) -> Here:
    """Submit the tasks of a training, and return the call that gives the fitted classifier."""
    local._check_params()
    settings = settings_of(local)
    counted = [tasks.submit("counts", _counted, settings, *part[:2]) for part in data]
    begun = tasks.submit("vocabulary", _begun, local, settings, counted)
    learner = tasks.result(tasks.submit("learner", itemgetter(0), begun))
    features = tasks.submit("features", itemgetter(1), begun)
    rows = [tasks.submit("rows", _rows, features, texts) for texts, *_ in data]
    parts = [(rows[i], *part[1:]) for i, part in enumerate(data)]
    trained = _ON_CLUSTER[type(learner)]._tasks(tasks, learner, parts, classes, workers)
    return tasks.together("classifier", _fitted, local, features, trained)


def _counted(settings: Settings, texts: Any, labels: Any) -> tuple[TextCounts, Labels | None]:
    """Return the n-grams and the labels of a partition."""
    counts = TextCounts.of(settings, as_texts(texts))
    return counts, labels_of(labels) if counts.n_texts else None


def _begun(local: Any, settings: Settings, counted: list[Any]) -> tuple[Any, TextFeatures]:
    """Return the learner and the features of all partitions."""
    counts = [one for one, _ in counted]
    n_texts, n_words = sum(one.n_texts for one in counts), sum(one.n_words for one in counts)
    labels = joined_labels([labels for _, labels in counted], None)
    target = Target(np.broadcast_to(np.uint32(0), n_texts), labels)
    learner, settings = learner_and_settings(local, settings, target, lambda: n_words)
    return learner, TextFeatures.of_parts(settings, counts)


def _rows(features: TextFeatures, texts: Any) -> Any:
    return features.transform(as_texts(texts))


def _fitted(local: TextClassifier, features: TextFeatures, learner: Any) -> TextClassifier:
    fitted: TextClassifier = snapshot(local)
    fitted.learner_, fitted._features = learner, features
    return fitted


class DaskTextClassifier(DaskEstimator):
    """Classifier of texts on a cluster.

    Partitions count words and turn texts into the features of :class:`xmtree.TextClassifier`. The
    learner is trained as by :class:`DaskLdSMClassifier` or :class:`DaskOAAClassifier`.

    Parameters
    ----------
    client : as for :class:`DaskLdSMClassifier`
    **params
        Parameters of :class:`xmtree.TextClassifier` except ``n_jobs``. The learner must be
        "auto", or of a class that has an estimator on a cluster, with parameters that this has.
    """

    _local_class = TextClassifier
    _tasks = staticmethod(text_tasks)
    learner: Any

    def fit(  # type: ignore[override]
        self, texts: Any, labels: Any, sample_weight: Any = None
    ) -> Self:
        """Train from scratch, as :meth:`DaskLdSMClassifier.fit` on rows.

        Parameters
        ----------
        texts : list of partitions, Dask array, data frame column (Dask) of strings, or local texts
            Partitions (``Delayed`` or ``Future``) must be lists, arrays or columns of strings.
        labels, sample_weight : as ``texts``, in the same partitions

        Returns
        -------
        self
        """
        learner = self.learner
        if not isinstance(learner, str):
            if type(learner) not in _ON_CLUSTER:
                raise TypeError(
                    'learner must be "auto", an LdSMClassifier or an OAAClassifier, '
                    f"got {type(learner).__name__}"
                )
            on_cluster, default = _ON_CLUSTER[type(learner)], type(learner)()
            names = on_cluster._left_out
            changed = [name for name in names if getattr(learner, name) != getattr(default, name)]
            on_cluster._refuse(changed, f"learner: {type(learner).__name__} on a cluster")
        return self._fit(texts, labels, sample_weight, None)
