"""Training on a cluster on this machine: times and memory of workers, processor seconds and bytes
of steps in one process, and the accuracy of learners by partitions."""

import pickle
import tempfile
import time
from collections import defaultdict

import dask
import numpy as np
import scipy.sparse as sp
from harness import data
from harness.case import ONLINE, Case, make
from harness.measuring import resident
from harness.pages import fill, markdown

TITLE = "Training on a cluster: times, memory, bytes that are sent, accuracy by partitions"
LIMIT = 3 * 3600
#: Times: rows of made sets, GiB of a worker (0: no limit), numbers of workers (0: no cluster).
TIMES = {
    "wordnet-hypernyms": (None, 0, (0, 1, 2)),
    "scaling-50000": (200_000, 0, (0, 1, 2)),
    data.AMAZON: (600_000, 3, (0, 1, 4)),
}
N_SAMPLED = 100_000
#: Data sets for the accuracy of single labels and of label sets, the last for steps, too.
CLASSES, SETS = "naics2017-index", ("onet-titles", "makupalat", "wordnet-hypernyms")
PARTITIONS = (None, 8)  # None is one machine.
LDSM = {"estimator": "LdSM", "random_state": 0}
LEARNERS = {name: ONLINE[name] for name in ("OAA", "LOMtree", "10 LOMtrees", "Recall Tree")}
LEARNERS["LdSM"] = {"estimator": "LdSM"}
#: Results of tasks that are sent to other workers, and all that take long.
SENT = ("examples", "tree", "piece")
STEPS = ("tree", "divide", "mine", "scorers", "join")
WORKERS_HERE = {"here": {"nthreads": 1, "memory_limit": 0}}
#: Without these, Dask's samples of stacks and ticks take a tenth of two cores.
QUIET = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "500ms"}


def cases(seeds=3):
    for name, (rows, limit, numbers) in TIMES.items():
        for n in numbers:
            settings = {"n_workers": n, "limit": limit, "rows": rows}
            for seed in range(1 if rows else seeds):
                yield Case("dask", name, f"workers: {n}", settings, seed)
    yield Case("dask", SETS[-1], "steps")
    for name in (CLASSES, *SETS):
        for learner in LEARNERS:
            for n in PARTITIONS if (name == CLASSES) != (learner == "LdSM") else ():
                for seed in range(1 if name == SETS[-1] else seeds):
                    settings = {"learner": learner, "n": n}
                    yield Case("dask", name, f"{learner}, {n or 'no'} partitions", settings, seed)


def measure(case):
    task = data.load(case.task, case.rows or case.settings.get("rows"))
    if "n_workers" in case.settings:
        return training(task, **case.settings)
    if "learner" in case.settings:
        return accuracy(task, case.seed, **case.settings)
    recorder = trained(task, LDSM, task.X.shape[0] // 2)[1]
    found = {f"processor: {name}": {"train_s": recorder.seconds[name]} for name in STEPS}
    sent = {f"sent: {name}": {"bytes": recorder.bytes[name]} for name in SENT}
    return {"rows": found | sent}


def parts(task):
    """Return rows, labels and no weights of each partition: 8, or more of about 20,000 rows."""
    n = task.X.shape[0]
    cuts = np.array_split(np.arange(n), max(PARTITIONS[1], n // 20_000))
    return [(task.X[cut], task.y[cut], None) for cut in cuts]


class Recorder:
    """Runs tasks immediately, and records seconds and bytes of each kind of task."""

    def __init__(self):
        self.seconds, self.bytes = defaultdict(float), defaultdict(float)

    def result(self, future):
        return future

    def submit(self, name, function, *arguments, turn=None):
        start = time.process_time()
        made = function(*arguments)
        self.seconds[name] += time.process_time() - start
        self.bytes[name] += len(pickle.dumps(made)) if name in SENT else 0
        return made

    together = submit


def trained(task, settings, n_sampled=1 << 60):
    """Return a model that one worker has trained in partitions, and a recorder of its tasks."""
    from xmtree import dask as on_cluster

    recorder, local = Recorder(), make(settings)
    train = getattr(on_cluster, f"Dask{type(local).__name__}")._tasks
    with dask.config.set({"xmtree.tree-rows": n_sampled}):
        return train(recorder, local, parts(task), None, WORKERS_HERE), recorder


def training(task, n_workers, limit, **_):
    """Return seconds of a training and the most megabytes of a worker with one thread."""
    if not n_workers:
        start = time.perf_counter()
        make(LDSM).fit(task.X, task.y)
        return {"train_s": time.perf_counter() - start, "mb": resident("VmHWM")}
    from distributed import Client, LocalCluster
    from xmtree.dask import DaskLdSMClassifier

    options = {"memory_limit": f"{limit}GiB", "threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        tempfile.TemporaryDirectory() as folder,
        dask.config.set(QUIET | {"xmtree.tree-rows": N_SAMPLED}),
        LocalCluster(n_workers=n_workers, **options) as cluster,
        Client(cluster) as client,
    ):
        # A small training first, so that the workers have imported everything.
        DaskLdSMClassifier(n_estimators=1, max_nodes=9, client=client).fit(task.X[:99], task.y[:99])
        source = [[], []]
        for number, part in enumerate(parts(task)):
            for which, rows in zip(source, part, strict=False):
                path = f"{folder}/{number}-{len(which)}-{rows.shape[1]}.npz"
                sp.save_npz(path, rows, compressed=False)
                which.append(dask.delayed(sp.load_npz)(path))
        start = time.perf_counter()
        DaskLdSMClassifier(random_state=0, client=client).fit(*source)
        found = {"train_s": time.perf_counter() - start}
        return found | {"mb": max(client.run(resident, "VmHWM").values())}


def accuracy(task, seed, learner, n):
    """Return the accuracy of a learner of ``n`` partitions in one process, in percent."""
    task, settings = task.shuffled(), LEARNERS[learner] | {"random_state": seed}
    whole = n is None
    model = make(settings).fit(task.X, task.y) if whole else trained(task, settings)[0]
    return task.accuracy(model.predict_topk(task.X_test, 5)[0])


def table(record, argument):
    """Return ``error`` or precision ``P@1`` by partitions, or times and bytes for ``measured``."""
    if argument != "measured":
        rows = [row for row in record.rows if argument in row]
        names = [name for name in rows[0] if name in ("error", "P@1", "P@3", "P@5")]
        cells = [[row["task"], row["program"], *(row[name] for name in names)] for row in rows]
        return markdown(["test rows (%)", "training", *names], cells)
    rows = [row for row in record.rows if "train_s" in row or "bytes" in row]
    names = ("train_s", "mb", "bytes")
    cells = [[r["task"], r["program"], *(r.get(name, "") for name in names)] for r in rows]
    head = ["data", "training", "seconds", "MB of a worker", "bytes"]
    return f"{markdown(head, cells)}\n{fill(record.circumstances(rows))}\n"
