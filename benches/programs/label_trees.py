"""Label trees of other programs: omikuji, napkinXC and PECOS."""

import itertools
import shutil

import numpy as np
import scipy.sparse as sp
from programs.base import Adapter, labeled

#: Width of the beam in omikuji and PECOS, their default.
BEAM = 10


class Omikuji(Adapter):
    """``options``: fields of its hyper-parameters.

    Batches are predicted row by row through its C interface, which has no call for batches. This
    leaves out the cost of Python lists. Single rows are predicted through its Python class.
    """

    def prepare(self, X, y):
        from omikuji._libomikuji import ffi, lib
        from sklearn.datasets import dump_svmlight_file

        X, y = labeled(X, y, self.n_classes)
        # omikuji refuses lines without features.
        full = np.diff(X.indptr) > 0
        X, y = X[full], y[full]
        path = self.folder / "train.txt"
        with path.open("wb") as file:
            file.write(f"{X.shape[0]} {X.shape[1]} {y.shape[1]}\n".encode())
            dump_svmlight_file(X, y, file, zero_based=True, multilabel=True)
        self.pool = lib.init_omikuji_thread_pool(self.threads)
        data = lib.load_omikuji_data_set(ffi.new("char[]", str(path).encode()), self.pool)
        return ffi.gc(checked(data), lib.free_omikuji_data_set)

    def fit(self, data):
        from omikuji import Model
        from omikuji._libomikuji import lib

        settings = Model.default_hyper_param()
        for name, value in self.options.items():
            setattr(settings, name, value)
        self.use(Model(checked(lib.train_omikuji_model(data, settings, self.pool))))

    def use(self, model):
        self.model = model
        model.init_prediction_thread_pool(self.threads)

    def save(self, path):
        self.model.save(str(path))

    def load(self, path):
        from omikuji import Model

        self.use(Model.load(str(path)))

    def rows(self, X):
        return X.indptr, X.indices.astype(np.uint32), X.data.astype(np.float32)

    def predict(self, rows):
        from omikuji._libomikuji import ffi, lib

        indptr, columns, values = rows
        answers = np.full((len(indptr) - 1, self.k), -1)
        labels, scores = np.zeros(self.k, np.uint32), np.zeros(self.k, np.float32)
        into = ffi.from_buffer("uint32_t[]", labels), ffi.from_buffer("float[]", scores)
        model, pool = self.model._model_ptr, self.model._thread_pool.ptr
        for i, (start, end) in enumerate(itertools.pairwise(indptr)):
            row = (
                ffi.from_buffer("uint32_t[]", columns[start:end]),
                ffi.from_buffer("float[]", values[start:end]),
            )
            n = lib.omikuji_predict(model, BEAM, end - start, *row, self.k, *into, pool)
            answers[i, :n] = labels[:n]
        return answers

    def one(self, X, i):
        row = X[i : i + 1]
        return list(zip(row.indices.tolist(), row.data.tolist(), strict=True))

    def predict_one(self, row):
        return self.model.predict(row, beam_size=BEAM, top_k=self.k)


def checked(pointer):
    if not pointer:
        raise RuntimeError("omikuji failed")
    return pointer


class NapkinXC(Adapter):
    """``options``: ``model``, a class of ``napkinxc.models``, and its parameters.

    napkinXC writes its model while it trains, so the training time includes writing.
    """

    def make(self, path, **parameters):
        from napkinxc import models

        make = getattr(models, self.options["model"])
        return make(str(path), threads=self.threads, **parameters)

    def prepare(self, X, y):
        if self.k == 1:
            return sp.csr_matrix(X), y.tolist()
        return labeled(X, y, self.n_classes)

    def fit(self, data):
        options = {name: value for name, value in self.options.items() if name != "model"}
        self.model = self.make(self.folder / "napkinxc", seed=self.seed, **options)
        self.model.fit(*data)

    def save(self, path):
        shutil.copytree(self.folder / "napkinxc", path)

    def load(self, path):
        self.model = self.make(path)
        self.model.load()

    def rows(self, X):
        return sp.csr_matrix(X)

    def predict(self, rows):
        return self.model.predict(rows, top_k=self.k)

    def labels(self, answers):
        return self.padded(answers)


class Pecos(Adapter):
    """XLinear on rows of length 1, with a tree by hierarchical 2-means over the labels' mean rows,
    as in PECOS's own example."""

    def prepare(self, X, y):
        X, y = labeled(X, y, self.n_classes)
        return self.rows(X), y.tocsc()

    def fit(self, data):
        from pecos.xmc import Indexer, LabelEmbeddingFactory
        from pecos.xmc.xlinear.model import XLinearModel

        X, y = data
        threads = {"threads": self.threads}
        embeddings = LabelEmbeddingFactory.create(y, X, method="pifa", **threads)
        tree = {"indexer_type": "hierarchicalkmeans", "seed": self.seed}
        chain = Indexer.gen(embeddings, **tree, **threads)
        self.model = XLinearModel.train(X, y, C=chain, **threads)

    def save(self, path):
        self.model.save(str(path))

    def load(self, path):
        from pecos.xmc.xlinear.model import XLinearModel

        self.model = XLinearModel.load(str(path), is_predict_only=True)

    def rows(self, X):
        from sklearn.preprocessing import normalize

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
