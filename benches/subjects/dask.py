"""Training on a cluster on this machine: the time of a training, processor seconds and bytes of its
steps in one process, and the errors of online learners that travel from partition to partition."""

import pickle
import time
from collections import defaultdict

import dask
import numpy as np
import xmtree
from harness import data
from harness.case import Case
from harness.pages import fill, markdown

TITLE = "LdSM on a cluster of two processes, bytes that are sent, errors by partitions"
#: Data sets of label sets for LdSM, the first for times, and of single labels for online learners.
SETS, MORE_SETS, CLASSES = "onet-titles", ("makupalat", "wordnet-hypernyms"), "naics2017-index"
LDSM = {"n_estimators": 10, "random_state": 0}
#: Numbers of partitions; None is one machine.
PARTITIONS = (None, 8)
ONLINE = {
    "OAAClassifier": ("OAA", {}),
    "LOMTreeClassifier": ("LOMTree", {}),
    "LOMTreeClassifier, 10 trees": ("LOMTree", {"n_estimators": 10}),
    "RecallTreeClassifier": ("RecallTree", {}),
}
#: Results that are not sent to other workers.
NOT_SENT = ("model", "divide", "mine")
#: Groups of labels of this data set in eight partitions.
GROUPS = 8
WORKERS_HERE = {"here": {"nthreads": 1, "memory_limit": 0}}
WORKERS = {0: "no cluster, 1 thread", 1: "one worker", 2: "two workers"}


def cases(seeds=3):
    for seed in range(seeds):
        for n, name in WORKERS.items():
            yield Case("dask", SETS, name, {"workers": n}, seed)
    yield Case("dask", SETS, "steps")
    for name in ONLINE:
        for n in PARTITIONS:
            for seed in range(seeds):
                settings = {"learner": name, "n": n}
                yield Case("dask", CLASSES, f"{name}, {n} partitions", settings, seed)
    for name in (SETS, *MORE_SETS):
        for n in PARTITIONS:
            for seed in range(1 if name == MORE_SETS[-1] else seeds):
                yield Case("dask", name, f"LdSM, {n} partitions", {"learner": "LdSM", "n": n}, seed)


def measure(case):
    task = data.load(case.task, case.rows)
    if "workers" in case.settings:
        return {"train_s": training(task, case.settings["workers"])}
    if "learner" in case.settings:
        return accuracy(task, case.seed, **case.settings)
    return {"rows": steps(task)}


class Immediate:
    """Runs tasks immediately."""

    def result(self, future):
        return future

    def submit(self, name, function, *arguments, **options):
        return function(*arguments, **options)


class Recorder(Immediate):
    """Records seconds and bytes of each kind of task."""

    def __init__(self):
        self.seconds, self.bytes = defaultdict(float), defaultdict(float)

    def submit(self, name, function, *arguments, **options):
        start = time.process_time()
        made = function(*arguments, **options)
        self.seconds[name] += time.process_time() - start
        if name not in NOT_SENT:
            self.bytes[name] += len(pickle.dumps(made))
        return made


def steps(task):
    """Return the measures of the steps of a training with one worker of one thread."""
    from xmtree.dask._ldsm import ldsm_tasks

    recorder, n_rows = Recorder(), task.X.shape[0]
    cuts = np.array_split(np.arange(n_rows), PARTITIONS[1])
    source = [(task.X[cut], task.y[cut], None) for cut in cuts]
    with dask.config.set({"xmtree.tree-rows": n_rows // 2}):
        ldsm_tasks(recorder, xmtree.LdSMClassifier(**LDSM), source, None, WORKERS_HERE)
    seconds, sent = recorder.seconds, recorder.bytes
    return {
        "a tree": {"bytes": sent["tree"] / LDSM["n_estimators"]},
        "the sample, to each worker with trees": {"bytes": sent["examples"]},
        "rows of a group": {"bytes": sent["piece"] / GROUPS},
        "processor: trees": {"train_s": seconds["tree"]},
        "processor: rows to groups": {"train_s": seconds["divide"]},
        "processor: mining in all groups": {"train_s": seconds["mine"]},
        "processor: scorers of all groups": {"train_s": seconds["scorers"]},
        "processor: putting together": {"train_s": seconds["join"]},
    }


def training(task, n_workers):
    """Return the seconds of a training, with workers of one thread."""
    if not n_workers:
        start = time.perf_counter()
        xmtree.LdSMClassifier(**LDSM).fit(task.X, task.y)
        return time.perf_counter() - start
    from distributed import Client, LocalCluster
    from xmtree.dask import DaskLdSMClassifier

    with (
        LocalCluster(n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        # A small training first, so that the workers have imported everything.
        small = DaskLdSMClassifier(n_estimators=1, max_nodes=9, client=client)
        small.fit(task.X[:99], task.y[:99])
        start = time.perf_counter()
        DaskLdSMClassifier(**LDSM, client=client).fit(task.X, task.y)
        return time.perf_counter() - start


def accuracy(task, seed, learner, n):
    """Return the accuracy of a learner of ``n`` partitions in one process, in percent."""
    from xmtree import dask

    task, (name, params) = task.shuffled(), ONLINE.get(learner, ("LdSM", {}))
    model = getattr(xmtree, f"{name}Classifier")(random_state=seed, **params)
    if n is None:
        model.fit(task.X, task.y)
    else:
        tasks = Immediate()
        cuts = np.array_split(np.arange(task.X.shape[0]), n)
        source = [(task.X[cut], task.y[cut], None) for cut in cuts]
        train = getattr(dask, f"Dask{name}Classifier")._tasks
        model = train(tasks, model, source, None, WORKERS_HERE)
    return task.accuracy(model.predict_topk(task.X_test, 5)[0])


def table(record, argument):
    """Return ``errors`` by partitions, or times and bytes of training for ``measured``."""
    if argument == "errors":
        cells = []
        for name in ONLINE:
            rows = [record.of(CLASSES, f"{name}, {n} partitions")[0] for n in PARTITIONS]
            cells.append([f"`{name}`", *(row["error"] for row in rows)])
        return markdown([f"{CLASSES}, test error (%)", "one machine", "8 partitions"], cells)
    if argument == "precision":
        cells = []
        for name in (SETS, *MORE_SETS):
            for n in PARTITIONS:
                row = record.of(name, f"LdSM, {n} partitions")[0]
                cells.append([name, n or "one machine", *(row[f"P@{k}"] for k in (1, 3, 5))])
        return markdown(["test rows (%)", "partitions", "P@1", "P@3", "P@5"], cells)
    rows = [row for row in record.of(SETS) if "P@1" not in row]
    seconds = [[row["program"], row["train_s"]] for row in rows if "train_s" in row]
    sent = [[row["program"], row["bytes"]] for row in rows if "bytes" in row]
    tables = markdown(["training", "seconds"], seconds), markdown(["sent for", "bytes"], sent)
    return "\n".join([*tables, f"{fill(f'{SETS}; {record.circumstances(rows)}')}\n"])
