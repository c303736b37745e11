"""xmtree's classifiers."""

import xmtree
from programs.base import Adapter


class Program(Adapter):
    """``options``: ``estimator``, the class without "Classifier", and its parameters."""

    def fit(self, data):
        options = dict(self.options)
        make = getattr(xmtree, f"{options.pop('estimator')}Classifier")
        self.model = make(**options, random_state=self.seed, n_jobs=self.threads)
        self.model.fit(*data)

    def save(self, path):
        self.model.save(path)

    def load(self, path):
        self.model = xmtree.load(path)
        self.model.set_params(n_jobs=self.threads)

    def predict(self, rows):
        return self.model.predict(rows) if self.k == 1 else self.model.predict_topk(rows, self.k)[0]
