"""PECOS's XLinear, on rows of length 1."""

import itertools

import numpy as np
from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from programs.base import Adapter, labelled
from sklearn.preprocessing import normalize

#: Branches that a search keeps: the default.
BEAM = 10


class Program(Adapter):
    """A tree by hierarchical 2-means over labels' mean rows, as PECOS's own example."""

    def prepare(self, X, y):
        X, y = labelled(X, y, self.n_classes)
        return self.rows(X), y.tocsc()

    def fit(self, data):
        X, y = data
        threads = {"threads": self.threads}
        embeddings = LabelEmbeddingFactory.create(y, X, method="pifa", **threads)
        tree = {"indexer_type": "hierarchicalkmeans", "seed": self.seed}
        chain = Indexer.gen(embeddings, **tree, **threads)
        self.model = XLinearModel.train(X, y, C=chain, **threads)

    def save(self, path):
        self.model.save(str(path))

    def load(self, path):
        self.model = XLinearModel.load(str(path), is_predict_only=True)

    def rows(self, X):
        return normalize(X.astype(np.float32))

    def predict(self, rows):
        return self.model.predict(rows, beam_size=BEAM, only_topk=self.k, threads=self.threads)

    def labels(self, answers):
        found = []
        for start, end in itertools.pairwise(answers.indptr):
            best = np.argsort(-answers.data[start:end], kind="stable")
            found.append(answers.indices[start:end][best])
        return self.padded(found)

    def one(self, X, i):
        return self.rows(X[i : i + 1])
