"""napkinXC, which writes its model as it trains."""

import shutil

import scipy.sparse as sp
from napkinxc import models
from programs.base import Adapter, labelled


class Program(Adapter):
    """``options``: ``model``, a class of ``napkinxc.models``, and its parameters."""

    def made(self, path, **more):
        return getattr(models, self.options["model"])(str(path), threads=self.threads, **more)

    def prepare(self, X, y):
        if self.k == 1:
            return sp.csr_matrix(X), y.tolist()
        return labelled(X, y, self.n_classes)

    def fit(self, data):
        options = {name: value for name, value in self.options.items() if name != "model"}
        self.model = self.made(self.folder / "napkinxc", seed=self.seed, **options)
        self.model.fit(*data)

    def save(self, path):
        shutil.copytree(self.folder / "napkinxc", path)

    def load(self, path):
        self.model = self.made(path)
        self.model.load()

    def rows(self, X):
        return sp.csr_matrix(X)

    def predict(self, rows):
        return self.model.predict(rows, top_k=self.k)

    def labels(self, answers):
        return self.padded(answers)
