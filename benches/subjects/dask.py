"""Training on a cluster on this machine: the time of a training, processor seconds and bytes of its
steps in one process, and the errors of online learners that travel from partition to partition."""

import pickle
import time
from collections import defaultdict

import numpy as np
import xmtree
from harness import data
from harness.case import Case
from harness.pages import fill, markdown

TITLE = "LdSM on a cluster of two processes, bytes that are sent, errors by partitions"
#: Data set of label sets for LdSM, and of single labels for online learners.
SETS, CLASSES = "onet-titles", "naics2017-index"
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
NOT_SENT = ("examples", "model")
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


def measure(case):
    task = data.load(case.task, case.rows)
    if "workers" in case.settings:
        return {"train_s": training(task, case.settings["workers"])}
    if "learner" in case.settings:
        return {"error": error(task, case.seed, **case.settings)}
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
        if options.get("n_threads", 1) is None:
            options["n_threads"] = 1
        start = time.process_time()
        made = function(*arguments, **options)
        self.seconds[name] += time.process_time() - start
        if name not in NOT_SENT:
            self.bytes[name] += len(pickle.dumps(made))
        return made


def steps(task):
    """Return the measures of the steps of a training with one worker of one thread."""
    from xmtree.dask._ldsm import ldsm_tasks

    recorder, found = Recorder(), []

    def read_data(read):
        found.append(read(task.X, task.y, None))
        return found[0]

    ldsm_tasks(recorder, xmtree.LdSMClassifier(**LDSM), read_data, None, WORKERS_HERE)
    n_trees, n_rows = LDSM["n_estimators"], task.X.shape[0]
    return {
        "a tree": {"bytes": recorder.bytes["tree"] / n_trees},
        "a row, to each worker": {"bytes": len(pickle.dumps(found[0][0])) / n_rows},
        "processor: trees": {"train_s": recorder.seconds["tree"]},
        "processor: model": {"train_s": recorder.seconds["model"]},
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


def error(task, seed, learner, n):
    """Return the test error in percent of a learner of ``n`` partitions in one process."""
    from xmtree import dask
    from xmtree.dask._partitions import Source

    task, (name, params) = task.shuffled(), ONLINE[learner]
    model = getattr(xmtree, f"{name}Classifier")(random_state=seed, **params)
    if n is None:
        model.fit(task.X, task.y)
    else:
        tasks = Immediate()
        cuts = np.array_split(np.arange(len(task.y)), n)
        source = Source(tasks, [(task.X[cut], task.y[cut], None) for cut in cuts])
        train = getattr(dask, f"Dask{name}Classifier")._tasks
        model = train(tasks, model, source, None, WORKERS_HERE)
    return 100 * float(np.mean(model.predict(task.X_test) != task.y_test))


def table(record, argument):
    """Return ``errors`` by partitions, or times and bytes of training for ``measured``."""
    if argument == "errors":
        cells = []
        for name in ONLINE:
            rows = [record.of(CLASSES, f"{name}, {n} partitions")[0] for n in PARTITIONS]
            cells.append([f"`{name}`", *(row["error"] for row in rows)])
        return markdown([f"{CLASSES}, test error (%)", "one machine", "8 partitions"], cells)
    rows = record.of(SETS)
    seconds = [[row["program"], row["train_s"]] for row in rows if "train_s" in row]
    sent = [[row["program"], row["bytes"]] for row in rows if "bytes" in row]
    tables = markdown(["training", "seconds"], seconds), markdown(["sent for", "bytes"], sent)
    return "\n".join([*tables, f"{fill(f'{SETS}; {record.circumstances(rows)}')}\n"])
