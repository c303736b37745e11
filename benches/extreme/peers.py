"""omikuji and PECOS, measured; run by ``runs.py`` in their own environment.

What they read is prepared outside of what is timed: omikuji has its data set in memory, PECOS its
rows at length 1. How they are called: ``peers/adapters``.
"""

import json
import sys
from importlib import metadata

from extreme.measuring import K, main, measured, megabytes, predicted

NAMES = ("omikuji", "libpecos")


def omikuji(run):
    from peers.adapters.omikuji import Program

    model = Program(run.folder, run.options, run.seed, run.threads, K)
    data = model.read(run.folder / "train.txt")
    _, training = measured(lambda: model.fit(data))
    model.save(run.model)
    # It predicts on one thread.
    model.threads = 1
    model.use(model.model)
    X = run.rows("test")
    rows = model.rows(X)
    found = {"training": training, "file_mb": megabytes(run.model)}
    answers, found["us"] = predicted(lambda: model.predict(rows), X.shape[0])
    model.densify()
    _, found["us_dense"] = predicted(lambda: model.predict(rows), X.shape[0])
    return answers, found


def pecos(run):
    from peers.adapters.pecos import Program

    model = Program(run.folder, run.options, run.seed, run.threads, K, run.n_classes())
    data = model.prepare(run.rows("train"), run.labels())
    _, training = measured(lambda: model.fit(data))
    model.save(run.model)
    found = {"training": training, "file_mb": megabytes(run.model)}
    model.load(run.model)
    model.threads = 1
    rows = model.rows(run.rows("test"))
    scores, found["us"] = predicted(lambda: model.predict(rows), rows.shape[0])
    return model.labels(scores), found


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
