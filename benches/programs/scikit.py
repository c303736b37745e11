"""scikit-learn's classifiers, files by joblib."""

import joblib
import numpy as np
from programs.base import Adapter
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import SGDClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.svm import LinearSVC


class Program(Adapter):
    """``options``: ``estimator``, a name of ``ESTIMATORS``, and its parameters."""

    def fit(self, data):
        options = dict(self.options)
        self.model = ESTIMATORS[options.pop("estimator")](self, options)
        # In threads of this process, so that their memory is seen.
        with joblib.parallel_config(backend="threading"):
            self.model.fit(*data)

    def save(self, path):
        joblib.dump(self.model, path)

    def load(self, path):
        self.model = joblib.load(path)

    def predict(self, rows):
        if self.k == 1:
            return self.model.predict(rows)
        scores = self.model.decision_function(rows)
        k = min(self.k, scores.shape[1])
        best = np.argpartition(-scores, k - 1, axis=1)[:, :k]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
        return np.take_along_axis(best, order, axis=1)


def sgd(self, options):
    return SGDClassifier(**options, random_state=self.seed, n_jobs=self.threads)


def svm(self, options):
    return LinearSVC(**options, random_state=self.seed)


def svm_of_sets(self, options):
    return OneVsRestClassifier(svm(self, options), n_jobs=self.threads)


def boosting(self, options):
    # Takes the threads that OMP_NUM_THREADS allows.
    return HistGradientBoostingClassifier(**options, random_state=self.seed)


def forest(self, options):
    return RandomForestClassifier(**options, random_state=self.seed, n_jobs=self.threads)


ESTIMATORS = {
    "SGDClassifier": sgd,
    "LinearSVC": svm,
    "OneVsRestClassifier(LinearSVC)": svm_of_sets,
    "HistGradientBoostingClassifier": boosting,
    "RandomForestClassifier": forest,
}
