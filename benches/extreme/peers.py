"""omikuji and PECOS, measured; run by ``runs.py`` in their own environment.

What they read is prepared outside of what is timed: omikuji has its data set in memory, PECOS its
rows at length 1. Rows without labels are left out. omikuji takes one row at a time; it is
called through its C interface, so that Python's lists do not count.
"""

import itertools
import json
import sys
from importlib import metadata

import numpy as np

from extreme.measuring import K, main, measured, megabytes, predicted

#: Branches that a search keeps: the default of both.
BEAM = 10
NAMES = ("omikuji", "libpecos")


def omikuji(run):
    from omikuji import Model
    from omikuji._libomikuji import ffi, lib

    def checked(pointer):
        if pointer == ffi.NULL:
            raise RuntimeError("omikuji failed")
        return pointer

    settings = Model.default_hyper_param()
    for name, value in run.options.items():
        setattr(settings, name, value)
    threads = lib.init_omikuji_thread_pool(run.threads)
    path = ffi.new("char[]", str(run.folder / "train.txt").encode())
    data = checked(lib.load_omikuji_data_set(path, threads))
    trained, training = measured(lambda: checked(lib.train_omikuji_model(data, settings, threads)))
    lib.free_omikuji_data_set(data)
    lib.save_omikuji_model(trained, ffi.new("char[]", str(run.model).encode()))
    found = {"training": training, "file_mb": megabytes(run.model)}

    one_thread = lib.init_omikuji_thread_pool(1)
    X = run.rows("test")
    columns, values = X.indices.astype(np.uint32), X.data.astype(np.float32)
    answers = np.full((X.shape[0], K), -1)
    labels, scores = np.zeros(K, np.uint32), np.zeros(K, np.float32)
    into = ffi.from_buffer("uint32_t[]", labels), ffi.from_buffer("float[]", scores)

    def predict():
        for i, (start, end) in enumerate(itertools.pairwise(X.indptr)):
            row = (
                ffi.from_buffer("uint32_t[]", columns[start:end]),
                ffi.from_buffer("float[]", values[start:end]),
            )
            n = lib.omikuji_predict(trained, BEAM, end - start, *row, K, *into, one_thread)
            answers[i, :n] = labels[:n]
        return answers

    answers, found["us"] = predicted(predict, X.shape[0])
    # What its command line does before it predicts: weights of some density become dense.
    lib.densify_omikuji_model(trained, 0.1, one_thread)
    _, found["us_dense"] = predicted(predict, X.shape[0])
    return answers, found


def pecos(run):
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel
    from sklearn.preprocessing import normalize

    X = normalize(run.rows("train").astype(np.float32))
    y, labelled = run.indicator()
    X, y = X[labelled], y[labelled].astype(np.float32).tocsc()
    n_threads = {"threads": run.threads}
    tree = {"indexer_type": "hierarchicalkmeans", "seed": run.seed, **n_threads}

    def train():
        embeddings = LabelEmbeddingFactory.create(y, X, method="pifa", **n_threads)
        chain = Indexer.gen(embeddings, **tree)
        return XLinearModel.train(X, y, C=chain, **n_threads)

    model, training = measured(train)
    model.save(str(run.model))
    found = {"training": training, "file_mb": megabytes(run.model)}

    model = XLinearModel.load(str(run.model), is_predict_only=True)
    X = normalize(run.rows("test").astype(np.float32))
    predict = lambda: model.predict(X, beam_size=BEAM, only_topk=K, threads=1)  # noqa: E731
    scores, found["us"] = predicted(predict, X.shape[0])
    answers = np.full((X.shape[0], K), -1)
    for i, (start, end) in enumerate(itertools.pairwise(scores.indptr)):
        best = np.argsort(-scores.data[start:end], kind="stable")[:K]
        answers[i, : len(best)] = scores.indices[start:end][best]
    return answers, found


PROGRAMS = {"omikuji": omikuji, "pecos": pecos}


def versions():
    """Of the peers that are installed here."""
    for name in NAMES:
        try:
            yield name, metadata.version(name)
        except metadata.PackageNotFoundError:
            continue


if __name__ == "__main__":
    if sys.argv[1:] == ["versions"]:
        print(json.dumps(dict(versions())))
    else:
        main(PROGRAMS)
