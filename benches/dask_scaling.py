"""LdSM on a cluster, measured here: python benches/dask_scaling.py benches/figures-dask.json.

Processor seconds and bytes of each kind of step in one process, whole trainings here, by a cluster
of one worker and of two, and what bagged online trees lose in accuracy.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import time
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path

import machine
import numpy as np
from distributed import Client, LocalCluster
from xmtree import LdSMClassifier, LOMTreeClassifier, OAAClassifier, RecallTreeClassifier
from xmtree.dask import BaggedModels, DaskLdSMClassifier
from xmtree.dask._ldsm import ReadExamples, _model
from xmtree.dask._oaa import _read, _train
from xmtree.datasets import load_demo

#: Of label sets, for LdSM, and of single labels, for bagged trees.
DATA, BAGGED_DATA = "onet-titles", "naics2017-index"
PARAMS = {"n_estimators": 10, "random_state": 0}
PARTITIONS = (1, 2, 4, 8)
#: What stays where it is made.
NOT_SENT = ("examples", "model")


class Recorder:
    """Runs tasks as they come, and notes what each kind of them takes and makes."""

    def __init__(self):
        self.seconds, self.bytes, self.numbers = (defaultdict(float) for _ in range(3))

    def submit(self, name, function, *arguments, **options):
        if options.get("n_threads", 1) is None:
            options["n_threads"] = 1
        # Of the processor: whatever else the machine does.
        start = time.process_time()
        made = function(*arguments, **options)
        self.seconds[name] += time.process_time() - start
        if name not in NOT_SENT:
            self.bytes[name] += len(pickle.dumps(made))
        self.numbers[name] += 1
        return made


def steps(data):
    """Every step of a training, as for one worker of one thread."""
    X, y = data.X_train, data.y_train
    local = LdSMClassifier(**PARAMS)
    params = {**local._core_params(), "seed": 0}
    prepared = ReadExamples(local, json.dumps(params), None, {})(X, y, None)
    recorder = Recorder()
    _model(recorder.submit, prepared, params, [1])
    return {
        "data": DATA,
        "n_rows": X.shape[0],
        "n_values": int(X.nnz),
        "n_labels": int(y.shape[1]),
        "n_trees": PARAMS["n_estimators"],
        "examples_bytes": len(pickle.dumps(prepared[0])),
        "seconds": dict(recorder.seconds),
        "bytes": dict(recorder.bytes),
        "tasks": dict(recorder.numbers),
    }


def runs(data, n_runs):
    """Median seconds of whole trainings, in turns."""
    X, y = data.X_train, data.y_train
    seconds = defaultdict(list)
    for _ in range(n_runs):
        start = time.perf_counter()
        LdSMClassifier(**PARAMS).fit(X, y)
        seconds["no cluster, 1 thread"].append(time.perf_counter() - start)
        for n_workers in (1, 2):
            with (
                LocalCluster(n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
                Client(cluster) as client,
            ):
                # So that workers have loaded what they need.
                DaskLdSMClassifier(n_estimators=1, max_nodes=9, client=client).fit(X[:99], y[:99])
                start = time.perf_counter()
                DaskLdSMClassifier(**PARAMS, client=client).fit(X, y)
                taken = time.perf_counter() - start
                seconds[f"workers of one thread: {n_workers}"].append(taken)
    return {name: float(np.median(taken)) for name, taken in seconds.items()}


def class_bytes(data):
    """Bytes of a class of one-against-all, with its part of all else that a block sends."""
    found = {}
    for name, prune in (("all weights", None), ("prune=0.03", 0.03)):
        local = OAAClassifier(prune=prune, random_state=0, n_passes=1)
        params = {**local._core_params(), "seed": 0}
        examples = _read(local, params, None, 1, {}, data.X_train, data.y_train, None)
        block = _train(examples, None, (0, 1))
        found[name] = len(pickle.dumps(block)) / data.y_train.shape[1]
    return found


def bagging():
    """Test errors of online trees on parts of the rows, in random order, averaged."""
    data = load_demo(BAGGED_DATA)
    order = np.random.default_rng(0).permutation(data.X_train.shape[0])
    X, y = data.X_train[order], data.y_train[order]
    errors = {}
    for learner in (LOMTreeClassifier, RecallTreeClassifier):
        errors[learner.__name__] = of_learner = {}
        for n in PARTITIONS:
            cuts = np.array_split(np.arange(len(y)), n)
            models = [
                learner(random_state=i).fit(X[cut], y[cut], classes=np.unique(y))
                for i, cut in enumerate(cuts)
            ]
            wrong = BaggedModels(models).predict(data.X_test) != data.y_test
            of_learner[n] = float(np.mean(wrong))
    return {"data": BAGGED_DATA, "errors": errors}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("figures", type=Path)
    parser.add_argument("--runs", type=int, default=3, help="of whole trainings")
    arguments = parser.parse_args()
    data = load_demo(DATA)
    head = {
        "machine": machine.described(),
        "commit": machine.commit(),
        "date": datetime.now(UTC).date().isoformat(),
        "load": os.getloadavg()[0],
    }
    found = {
        **head,
        **steps(data),
        "runs": runs(data, arguments.runs),
        "class_bytes": class_bytes(data),
        "bagging": bagging(),
    }
    arguments.figures.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
