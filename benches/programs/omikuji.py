"""omikuji: a batch row after row through its C interface, which has nothing for batches, so that
Python's lists do not count; a single row through its Python class."""

import itertools

import numpy as np
from omikuji import Model
from omikuji._libomikuji import ffi, lib
from programs.base import Adapter, labelled
from sklearn.datasets import dump_svmlight_file

#: Branches that a search keeps: the default.
BEAM = 10


class Program(Adapter):
    """``options``: fields of its hyper-parameters."""

    def prepare(self, X, y):
        X, y = labelled(X, y, self.n_classes)
        # A line without features is none to omikuji.
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
        settings = Model.default_hyper_param()
        for name, value in self.options.items():
            setattr(settings, name, value)
        self.use(Model(checked(lib.train_omikuji_model(data, settings, self.pool))))

    def use(self, model):
        """Predicts with this model from now on."""
        self.model = model
        model.init_prediction_thread_pool(self.threads)

    def save(self, path):
        self.model.save(str(path))

    def load(self, path):
        self.use(Model.load(str(path)))

    def rows(self, X):
        return X.indptr, X.indices.astype(np.uint32), X.data.astype(np.float32)

    def predict(self, rows):
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
    if pointer == ffi.NULL:
        raise RuntimeError("omikuji failed")
    return pointer
