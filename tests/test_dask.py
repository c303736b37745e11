"""Training on a cluster: the same model on any worker, lost workers, and clear errors.

XMTREE_KILLS=10 kills a worker ten times instead of once.
"""

import gc
import logging
import os
import pickle
import re
import signal
import threading
import time
from contextlib import suppress
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from forked_workers import METHOD
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

pytest.importorskip("distributed")

import dask
import dask.array as da
import dask.dataframe as dd
import pandas as pd
from dask.delayed import delayed
from distributed import Client, LocalCluster, get_task_stream
from serial_tasks import fitted
from test_ldsm import FEW, X_NEW, Y_NEW, X, Y
from xmtree import (
    LdSMClassifier,
    LOMTreeClassifier,
    OAAClassifier,
    TextClassifier,
    load,
)
from xmtree.dask import (
    DaskLdSMClassifier,
    DaskLOMTreeClassifier,
    DaskOAAClassifier,
    DaskRecallTreeClassifier,
    DaskTextClassifier,
)
from xmtree.dask._cluster import Tasks

#: A fixed cost skips most of the tasks, in tests of something else.
QUICK = FEW | {"cost": 0.5}
#: Rows and labels in three partitions.
CUTS = [slice(0, 400), slice(400, 650), slice(650, None)]
#: A free port, as the dashboard cannot be disabled.
NO_PORT = ":0"
# Sockets and loops of a cluster that is closed.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def cluster():
    """Start a cluster of two worker processes."""
    config = {
        "distributed.diagnostics.nvml": False,
        "distributed.worker.profile.enabled": False,
        # Tests kill workers on purpose.
        "distributed.scheduler.allowed-failures": 100,
        # A busy machine starts workers slowly.
        "distributed.comm.timeouts.connect": "60s",
        "distributed.comm.timeouts.tcp": "600s",
        "distributed.worker.multiprocessing-method": METHOD,
    }
    with (
        dask.config.set(config),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=NO_PORT) as cluster,
    ):
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster, set_as_default=False) as client:
        yield client


@pytest.fixture
def current(client):
    """Make the client of these workers the current one."""
    with client.as_current():
        yield


def in_threads(n_threads=1, **options):
    """Start a cluster with a worker in this process, with one or more threads."""
    return LocalCluster(
        n_workers=1,
        threads_per_worker=n_threads,
        processes=False,
        dashboard_address=NO_PORT,
        **options,
    )


@pytest.fixture(scope="module")
def local():
    return LdSMClassifier(**FEW).fit(X, Y)


def file_of(model, folder):
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def blocks(rows, cuts=(slice(0, 400), slice(400, None))):
    """Return a Dask array of CSR blocks."""
    parts = [
        da.from_delayed(delayed(rows[cut]), (rows[cut].shape[0], rows.shape[1]), meta=rows[:0])
        for cut in cuts
    ]
    return da.concatenate(parts)


def parts(rows, cuts=CUTS):
    return [delayed(rows[cut]) for cut in cuts]


ONE_LABEL = np.asarray(Y.argmax(axis=1)).ravel()
WEIGHTS = np.linspace(0.5, 2, X.shape[0])


@pytest.mark.parametrize(
    "case",
    ["local", "blocks", "dense", "labels", "weights", "lists"],
)
def test_the_model_is_bit_identical(client, tmp_path, case):
    params = FEW if case == "local" else QUICK
    if case == "weights":
        params = params | {"class_weight": "balanced"}
    weights = WEIGHTS if case == "weights" else None
    rows, labels = X, Y
    if case in ("dense", "labels"):
        rows = X.toarray()
    if case == "labels":
        labels = np.array([f"label {label}" for label in ONE_LABEL])
    if case == "lists":
        labels = [row.indices.tolist() for row in Y]
    if case == "local":
        data = (rows, labels, None)
    elif case == "blocks":
        data = (blocks(X), blocks(Y), None)
    elif case in ("dense", "labels"):
        ones = da.from_array(labels, 300) if case == "labels" else da.from_array(Y.toarray(), 400)
        data = (da.from_array(rows, (300, 10)), ones, None)
    elif case == "weights":
        data = (parts(X), parts(Y), parts(WEIGHTS))
    else:
        futures = [client.submit(X.__getitem__, cut) for cut in CUTS]
        data = (futures, parts(labels), None)
    if case == "dense":
        labels = Y.toarray()
    alone = LdSMClassifier(**params).fit(rows, labels, weights)
    model = DaskLdSMClassifier(**params, client=client).fit(*data)
    assert file_of(model, tmp_path) == file_of(alone, tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {"scorers": "none", "beta": 0.5, "n_bits": 6},
        {"scaling": "standard", "arity": 3},
        {"keep_statistics": True, "n_estimators": 9, "random_state": 7},
    ],
    ids=str,
)
def test_all_forms_of_data_give_the_same_model(client, tmp_path, options):
    params = FEW | options
    alone = LdSMClassifier(**params).fit(X, Y)
    model = DaskLdSMClassifier(**params, client=client).fit(X, Y)
    assert file_of(model, tmp_path) == file_of(alone, tmp_path)


def test_predictions_are_lazy_and_those_of_the_local_model(current, local):
    model = DaskLdSMClassifier.from_local(local)
    labels, found = local.predict_topk(X_NEW, 3)
    cuts = [X_NEW[:100], X_NEW[100:]]
    rows = da.concatenate(
        [da.from_delayed(delayed(cut), cut.shape, meta=X_NEW[:0]) for cut in cuts]
    )
    sets_of = [Y_NEW[:100], Y_NEW[100:]]
    weights = [np.full(100, 0.5), np.ones(200)]
    lists = [[delayed(part) for part in both] for both in (cuts, sets_of, weights)]
    wanted = local.score(X_NEW, Y_NEW, np.concatenate(weights))
    assert model.score(*lists) == pytest.approx(wanted)
    assert model.score(X_NEW, Y_NEW) == local.score(X_NEW, Y_NEW)
    lazy = model.predict_topk(rows, 3)
    assert [part.shape for part in lazy] == [(300, 3)] * 2
    assert lazy[0].chunks[0] == (100, 200)
    assert np.array_equal(lazy[0].compute(), labels)
    assert np.array_equal(lazy[1].compute(), found)
    assert np.array_equal(model.predict_topk(X_NEW, 3)[0], labels)
    parts = dask.compute(model.predict_topk([delayed(cut) for cut in cuts], 3))[0]
    assert np.array_equal(np.vstack([labels for labels, _ in parts]), labels)
    sets = model.predict(rows)
    assert sets.shape == (300, 30)
    assert (sets.compute() != local.predict(X_NEW)).nnz == 0
    probabilities = model.predict_topk(da.from_array(X_NEW.toarray(), 100), 2, scores="probability")
    wanted = local.predict_topk(X_NEW, 2, scores="probability")[1]
    assert np.array_equal(probabilities[1].compute(), wanted)


def test_predictions_have_the_form_of_y(current):
    for y, kind in [(ONE_LABEL, "i"), ([[label] for label in ONE_LABEL], "O")]:
        local = LdSMClassifier(**QUICK).fit(X, y)
        found = DaskLdSMClassifier.from_local(local).predict(blocks(X))
        assert (found.shape, found.dtype.kind) == ((900,), kind)
        assert found.compute().tolist() == list(local.predict(X))


def test_it_is_an_estimator(client, local, tmp_path):
    model = DaskLdSMClassifier(client=client, **FEW)
    with pytest.raises(NotFittedError):
        model.predict(X)
    copy = clone(model.set_params(n_estimators=2))
    assert copy.get_params() == model.get_params()
    assert set(LdSMClassifier().get_params()) - set(model.get_params()) == {"n_jobs", "warm_start"}
    assert copy.client is None
    model = model.set_params(n_estimators=3).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict_topk(X_NEW)[0], local.predict_topk(X_NEW)[0])
    assert type(model.to_local()) is LdSMClassifier
    assert np.array_equal(model.classes_, local.classes_)


def test_errors_name_bad_input(client):
    model = DaskLdSMClassifier(**FEW, client=client)
    with pytest.raises(ValueError, match="X has 3 partitions, y has 2"):
        model.fit(parts(X), parts(Y)[:2])
    with pytest.raises(TypeError, match="y must be a Dask collection"):
        model.fit(parts(X), Y)
    with pytest.raises(ValueError, match="X has 900 rows, y has 899"):
        model.fit(da.from_array(X.toarray(), 300), da.from_array(ONE_LABEL[1:], 300))
    with pytest.raises(ValueError, match="n_estimators"):
        DaskLdSMClassifier(n_estimators=0, client=client).fit(X, Y)
    # Errors on a worker equal local errors.
    bad = X.copy()
    bad.data[0] = np.nan
    with pytest.raises(ValueError, match="row 0"):
        model.fit(parts(bad), parts(Y))
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client, got int"):
        DaskLdSMClassifier(client=3).fit(X, Y)
    assert not hasattr(model, "classes_")


def test_data_beyond_the_memory_of_a_worker_are_refused():
    rows, labels = (sp.vstack([half] * 5, format="csr") for half in (X, Y))
    # Dask would pause a worker above its limit, which this process exceeds from the start.
    no_pause = {f"distributed.worker.memory.{what}": False for what in ("target", "spill", "pause")}
    with (
        dask.config.set(no_pause),
        in_threads(memory_limit="50kB") as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(MemoryError, match=r"memory_limit.*Give workers more memory or fewer"),
    ):
        DaskLdSMClassifier(client=client).fit(rows, labels)


@pytest.mark.parametrize(
    ("estimator", "options"),
    [
        (DaskOAAClassifier, {"prune": 0.01}),
        (DaskLOMTreeClassifier, {"n_estimators": 2, "n_passes": 2}),
        (DaskRecallTreeClassifier, {"n_passes": 2}),
    ],
    ids=["oaa", "lomtree", "recall tree"],
)
def test_models_travel_to_partitions(current, tmp_path, estimator, options):
    """The model is that of the same partitions without a cluster, whatever worker learns them."""
    labels = np.array([f"label {label}" for label in np.arange(900) % 7 + 10 * ONE_LABEL])
    rows = list(zip([X[cut] for cut in CUTS], [labels[cut] for cut in CUTS], strict=True))
    wanted = fitted(estimator, [(*part, None) for part in rows], random_state=3, **options)
    model = estimator(random_state=3, **options).fit(parts(X), parts(labels))
    assert type(model.to_local()) is estimator._local_class
    assert file_of(model, tmp_path) == file_of(wanted, tmp_path)
    found = model.predict(blocks(X_NEW, [slice(0, 90), slice(90, None)]))
    assert np.array_equal(found.compute(), wanted.predict(X_NEW))
    assert model.score(parts(X), parts(labels)) == pytest.approx(wanted.score(X, labels))


@pytest.mark.parametrize(
    "estimator", [DaskOAAClassifier, DaskLOMTreeClassifier, DaskRecallTreeClassifier]
)
def test_local_rows_are_cut_into_partitions(client, estimator):
    params = {"random_state": 0, "n_passes": 2}
    model = estimator(client=client, **params).fit(X, ONE_LABEL)
    alone = estimator._local_class(**params).fit(X, ONE_LABEL)
    assert model.score(X, ONE_LABEL) > alone.score(X, ONE_LABEL) - 0.1


class WhenTraining(threading.Thread):
    """Run an action as soon as the scheduler knows tasks of a training.

    ``done`` is True if it has run.
    """

    def __init__(self, cluster, act, *arguments, first="ldsm-tree", later=0.0):
        super().__init__(daemon=True)
        self.tasks, self.act, self.later = cluster.scheduler.tasks, partial(act, *arguments), later
        self.earlier, self.first = set(self.tasks), first
        self.is_over, self.done = threading.Event(), False
        self.start()

    def run(self):
        names = self.first, "oaa-learn"
        while not any(str(key).startswith(names) for key in set(self.tasks) - self.earlier):
            if self.is_over.wait(0.001):
                return
        if not self.is_over.wait(self.later):
            self.act()
            self.done = True

    def end(self):
        self.is_over.set()
        self.join()


@pytest.fixture
def gate(tmp_path):
    """Return a file whose existence ends the tasks of ``hold``, as does the end of the test."""
    yield tmp_path / "gate"
    (tmp_path / "gate").touch()


def hold(client, gate):
    """Keep all workers busy until the file ``gate`` exists, so that no training ends before."""

    def wait(_number):
        while not gate.exists():
            time.sleep(0.01)

    # Workers get a local function by value. For any other they would import this module.
    return client.map(wait, range(2))


def test_the_loss_of_the_scheduler_is_reported(gate):
    with (
        # The client waits this long for the scheduler.
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        in_threads() as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        held = hold(client, gate)
        close = cluster.sync, cluster.scheduler.close
        closer = WhenTraining(cluster, *close, first="ldsm-facts")
        with pytest.raises(RuntimeError, match="connection to the scheduler was lost"):
            DaskLdSMClassifier(**FEW, client=client).fit(X, Y)
        closer.join()
        gate.touch()
        del held


def is_idle(client):
    """Wait briefly, and return whether the scheduler has no tasks."""
    for _ in range(1500):
        gc.collect()
        if not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            return True
        time.sleep(0.02)
    return False


@pytest.fixture
def ctrl_c():
    """Let SIGINT raise KeyboardInterrupt, which background jobs of a shell ignore."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_cancels_the_tasks(client, cluster, gate):
    kept = client.submit(sum, [1, 2])
    held = hold(client, gate)
    presser = WhenTraining(cluster, os.kill, os.getpid(), signal.SIGINT, first="ldsm-facts")
    with pytest.raises(KeyboardInterrupt):
        DaskLdSMClassifier(**FEW, client=client).fit(X, Y)
    presser.join()
    gate.touch()
    # Data of other trainings are kept.
    assert kept.result() == 3
    assert client.gather(held) == [None, None]
    del kept, held
    assert is_idle(client)


@pytest.mark.usefixtures("ctrl_c")
def test_a_lost_ctrl_c_still_counts(client):
    """Python loses exceptions in callbacks of the garbage collector."""

    def go_on(work):
        with Tasks(client, {}, "test", "testing") as tasks:
            future = tasks.submit("first", time.sleep, 0.1)
            with suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            work(tasks, future)

    for work in (
        lambda tasks, _: tasks.submit("next", len, []),
        lambda tasks, future: tasks.result(future),
        lambda *_: None,
    ):
        with pytest.raises(KeyboardInterrupt):
            go_on(work)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_error_keeps_data_of_others(client):
    """Client.cancel of tasks on which others depend would end the connection."""
    kept = client.submit(sum, [1, 2])
    bad = X.copy()
    bad.data[0] = np.nan

    def fail():
        with Tasks(client, {}, "test", "testing") as tasks:
            first = tasks.submit("first", time.sleep, 0.1)
            tasks.submit("last", len, [tasks.submit("second", str, first)])
            raise RuntimeError("stop")

    for _ in range(2):
        with pytest.raises(ValueError, match="row 0"):
            DaskLdSMClassifier(**QUICK, client=client).fit(parts(bad), parts(Y))
        with pytest.raises(RuntimeError, match="stop"):
            fail()
        assert kept.result() == 3
        assert kept.status == "finished"
    del kept
    assert is_idle(client)


def test_options_that_need_all_rows_are_refused(client):
    for estimator in (DaskOAAClassifier, DaskLOMTreeClassifier, DaskRecallTreeClassifier):
        with pytest.raises(TypeError, match=r"no parameter 'early_stopping': it compares the"):
            estimator(early_stopping=True, client=client)
    with pytest.raises(ValueError, match=r"needs calibrate=True"):
        DaskOAAClassifier(threshold="row", calibrate=False, client=client).fit(X, Y)


@pytest.mark.parametrize("average", ["row", "micro", "macro"])
def test_fitted_thresholds_are_those_of_one_machine(average, client, tmp_path):
    weights = 1.0 + np.arange(X.shape[0]) % 3
    settings = QUICK | {"threshold": average, "class_weight": {0: 3.0}}
    expected = LdSMClassifier(**settings).fit(X, Y, weights)
    model = DaskLdSMClassifier(client=client, **settings).fit(X, Y, weights)
    assert np.unique(expected.threshold_).tolist() != [0.5]
    np.testing.assert_array_equal(model.to_local().threshold_, expected.threshold_)
    model.to_local().save(tmp_path / "model")
    for found in (model, load(tmp_path / "model")):
        assert (found.predict(X) != expected.predict(X)).nnz == 0


def test_one_label_per_row_needs_no_thresholds(client):
    model = DaskLdSMClassifier(client=client, **QUICK, threshold="micro").fit(X, ONE_LABEL)
    assert (model.predict(X) == LdSMClassifier(**QUICK).fit(X, ONE_LABEL).predict(X)).all()


WORDS = np.array([f"word{column}" for column in range(X.shape[1])])
TEXTS = [" ".join(WORDS[row.indices]) or "nothing" for row in X]


@pytest.mark.parametrize("learner", ["auto", OAAClassifier(n_passes=2)])
def test_texts(client, tmp_path, learner):
    names = np.array([f"label {label}" for label in ONE_LABEL])
    here = pd.DataFrame({"text": TEXTS, "label": names})
    frame = dd.from_pandas(here, npartitions=3)
    cuts = [(part["text"], part["label"], None) for part in dask.compute(*frame.to_delayed())]
    wanted = fitted(DaskTextClassifier, cuts, learner=learner, random_state=0)
    model = DaskTextClassifier(learner=learner, random_state=0, client=client)
    model.fit(frame["text"], frame["label"])
    assert file_of(model, tmp_path) == file_of(wanted, tmp_path)
    found = client.gather(client.compute(model.predict_topk(frame["text"], 2)))
    labels, scores = wanted.predict_topk(TEXTS, 2)
    assert np.array_equal(np.vstack([labels for labels, _ in found]), labels)
    assert np.array_equal(np.vstack([scores for _, scores in found]), scores)
    assert np.array_equal(model.predict(TEXTS[:5]), wanted.predict(TEXTS[:5]))
    assert type(model.to_local()) is TextClassifier


def test_texts_with_label_sets_in_partitions(client):
    sets = [row.indices.tolist() for row in Y]
    model = DaskTextClassifier(n_bits=10, random_state=0, client=client)
    model.fit(parts(TEXTS), parts(sets))
    found = model.predict(da.from_array(np.array(TEXTS), 300)).compute(scheduler=client)
    assert found.tolist() == model.to_local().predict(TEXTS)
    with pytest.raises(TypeError, match=r"learner must be .*, got LOMTreeClassifier"):
        DaskTextClassifier(learner=LOMTreeClassifier(), client=client).fit(TEXTS, ONE_LABEL)


def test_a_data_frame_has_feature_names(client, tmp_path):
    frame = pd.DataFrame(X.toarray(), columns=WORDS)
    alone = LdSMClassifier(**QUICK).fit(frame, ONE_LABEL)
    model = DaskLdSMClassifier(**QUICK, client=client)
    model.fit(
        dd.from_pandas(frame, npartitions=2), dd.from_pandas(pd.Series(ONE_LABEL), npartitions=2)
    )
    assert model.feature_names_in_.tolist() == WORDS.tolist()
    assert file_of(model, tmp_path) == file_of(alone, tmp_path)


def sent_data(client):
    """Return the keys of sent data, and the number of workers that hold each."""

    def count_tasks(dask_scheduler):
        tasks = dask_scheduler.tasks.items()
        return {
            key: len(ts.who_has or ()) for key, ts in tasks if str(key).startswith("xmtree-data")
        }

    return client.run_on_scheduler(count_tasks)


def test_a_model_is_sent_to_each_worker_once(client, local):
    model = DaskLdSMClassifier.from_local(local, client=client)
    cuts = [slice(at, at + 100) for at in range(0, 300, 100)]
    before = sent_data(client).keys()

    def computed():
        lazy = [model.predict_topk(blocks(X_NEW, cuts), 3)[0] for _ in range(2)]
        return [found.compute(scheduler=client) for found in lazy]

    labels = model.to_local().predict_topk(X_NEW, 3)[0]
    assert all(np.array_equal(found, labels) for found in computed())
    (first,) = sent_data(client).keys() - before
    # The workers that have predicted hold the model.
    assert 1 <= sent_data(client)[first] <= 2
    # Another model is another key.
    model.fit(X, Y)
    assert all(np.array_equal(found, labels) for found in computed())
    assert len(sent_data(client).keys() - before - {first}) == 1


def test_threads_of_one_process_share_a_model():
    """Tasks get the same objects as others if workers are threads."""
    labels, found = LdSMClassifier(**QUICK).fit(X, Y).predict_topk(X_NEW, 3)
    cuts = [slice(at, at + 30) for at in range(0, 300, 30)]
    with in_threads(4) as cluster, Client(cluster, set_as_default=False) as client:
        for options in (QUICK | {"scorers": "none"}, QUICK):
            model = DaskLdSMClassifier(**options, client=client).fit(X, Y)
            lazy = model.predict_topk(blocks(X_NEW, cuts), 3)
            computed = dask.compute(*lazy, *lazy, scheduler=client)
        for number, wanted in enumerate([labels, found] * 2):
            assert np.array_equal(computed[number], wanted)


def test_no_key_is_used_twice(client):
    names = []
    for _ in range(2):
        with Tasks(client, {}, "test", "testing") as tasks:
            names += [tasks.submit("same", len, []).key for _ in range(3)]
    assert len(set(names)) == 6


def test_what_is_put_together_here_leaves_the_workers():
    with (
        in_threads() as cluster,
        Client(cluster, set_as_default=False) as client,
        Tasks(client, {}, "test", "testing") as tasks,
    ):
        parts = [tasks.submit("part", len, [None] * n) for n in range(4)]
        both = tasks.together("sum", sum, parts[1:]), (parts[0], "more")
        assert tasks.result(tasks.together("list", list, both)) == [6, (0, "more")]
        assert is_idle(client)


def test_progress_and_logs(client, capsys, caplog):
    with caplog.at_level(logging.INFO, "distributed.xmtree"):
        DaskLdSMClassifier(**QUICK, verbose=1, client=client).fit(X, Y)
    assert "training LdSMClassifier on 2 workers" in caplog.text
    # The progress bar is that of distributed.
    assert re.search("[#]+", capsys.readouterr().out)


def test_names_of_tasks(client):
    DaskLdSMClassifier(**QUICK, client=client).fit(X, Y)
    DaskOAAClassifier(random_state=0, client=client).fit(X, ONE_LABEL)
    names = client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.task_prefixes))
    assert {"ldsm-tree", "ldsm-scorers", "oaa-learn"} <= set(names)


def test_a_worker_that_is_busy_changes_nothing(client, local, tmp_path):
    """One worker is busy with another task while the other begins."""
    client.wait_for_workers(2, timeout=600)
    busy, other = client.scheduler_info(n_workers=-1)["workers"]
    held = client.submit(time.sleep, 0.3, workers=[busy], pure=False)
    with get_task_stream(client=client) as stream:
        model = DaskLdSMClassifier(**FEW, client=client).fit(X, Y)
    held.result()
    assert file_of(model, tmp_path) == file_of(local, tmp_path)
    assert other in {task["worker"] for task in stream.data if "ldsm" in str(task["key"])}


N_KILLS = int(os.environ.get("XMTREE_KILLS", "1"))


@pytest.mark.parametrize("kind", ["trees", "groups", "travelers"])
def test_a_killed_worker_costs_only_its_tasks(client, cluster, local, tmp_path, kind):
    """Kill a worker by SIGKILL, a little later each time."""
    model, data, killed = DaskLdSMClassifier(**FEW, client=client), (X, Y), 0
    if kind == "groups":
        labels = np.arange(900) % 130
        data = parts(X), parts(labels)
        local = fitted(DaskLdSMClassifier, [(X[cut], labels[cut], None) for cut in CUTS], **FEW)
    if kind == "travelers":
        y = np.arange(900) % 7 + 10 * ONE_LABEL
        model, data = DaskOAAClassifier(random_state=0, n_passes=2, client=client), (X, y)
        # So few local rows are one partition.
        local = fitted(DaskOAAClassifier, [(X, y, None)], random_state=0, n_passes=2)
    wanted = file_of(local, tmp_path)

    def give_up_soon():
        dask.config.set({"distributed.comm.timeouts.connect": "1s"})

    for attempt in range(10 * N_KILLS):
        client.wait_for_workers(2, timeout=600)
        # A worker can miss that another is gone, and tries so long to get data from it.
        client.run(give_up_soon, on_error="ignore")
        pid = list(cluster.workers.values())[attempt % 2].pid
        later = 0.01 * (attempt % 8)
        killer = WhenTraining(cluster, os.kill, pid, signal.SIGKILL, later=later)
        model.fit(*data)
        # A kill after the end does not count.
        killer.end()
        killed += killer.done
        assert file_of(model, tmp_path) == wanted
        if killed >= N_KILLS:
            return
    raise AssertionError(f"{killed} workers were killed in time")
