"""Estimators: those of xmtree, LightGBM and scikit-learn."""

import joblib
import numpy as np
from harness.case import make
from programs.base import Adapter


class XMTree(Adapter):
    """``options``: ``estimator``, the class without "Classifier", and its parameters."""

    def fit(self, data):
        self.model = make(self.options, random_state=self.seed, n_jobs=self.threads)
        self.model.fit(*data)

    def save(self, path):
        self.model.save(path)

    def load(self, path):
        import xmtree

        self.model = xmtree.load(path)
        self.model.set_params(n_jobs=self.threads)

    def predict(self, rows):
        return self.model.predict(rows) if self.k == 1 else self.model.predict_topk(rows, self.k)[0]


class LightGBM(Adapter):
    """``options``: parameters of ``LGBMClassifier``. Files have LightGBM's text format."""

    def fit(self, data):
        from lightgbm import LGBMClassifier

        common = {"random_state": self.seed, "n_jobs": self.threads, "verbose": -1}
        self.booster = LGBMClassifier(**self.options, **common).fit(*data).booster_

    def save(self, path):
        self.booster.save_model(str(path))

    def load(self, path):
        from lightgbm import Booster

        self.booster = Booster(model_file=str(path))

    def predict(self, rows):
        # Columns are labels, because every label occurs in training.
        return self.booster.predict(rows, num_threads=self.threads).argmax(axis=1)


class ScikitLearn(Adapter):
    """``options``: ``estimator`` and its parameters. Files are written by joblib."""

    def make(self):
        from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
        from sklearn.linear_model import SGDClassifier
        from sklearn.multiclass import OneVsRestClassifier
        from sklearn.svm import LinearSVC

        options = {"random_state": self.seed} | self.options
        estimator = options.pop("estimator")
        threads = {"n_jobs": self.threads}
        if estimator == "SGDClassifier":
            return SGDClassifier(**options, **threads)
        if estimator == "LinearSVC":
            return LinearSVC(**options)
        if estimator == "OneVsRestClassifier(LinearSVC)":
            return OneVsRestClassifier(LinearSVC(**options), **threads)
        if estimator == "RandomForestClassifier":
            return RandomForestClassifier(**options, **threads)
        # OMP_NUM_THREADS limits the threads of this one.
        return HistGradientBoostingClassifier(**options)

    def fit(self, data):
        self.model = self.make()
        # Threads of this process, because only its memory is measured.
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
