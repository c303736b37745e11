"""On a cluster: the same model to the bit, whatever happens to workers; clear errors."""

import os
import pickle
import signal
import threading
import time

import dask
import dask.array as da
import numpy as np
import pytest
from dask.delayed import delayed
from distributed import Client, LocalCluster
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from test_ldsm import FEW, X_NEW, X, Y
from xmtree import LdSMClassifier, LOMTreeClassifier
from xmtree.dask import DaskLdSMClassifier, DaskLOMTreeClassifier

#: Rows and labels in three partitions.
CUTS = [slice(0, 400), slice(400, 650), slice(650, None)]
#: A free one: nothing else can be told to have no dashboard.
NO_PORT = ":0"
# Sockets and loops of a cluster that is closed.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def client():
    """Workers that are threads of this process."""
    with (
        dask.config.set({"distributed.diagnostics.nvml": False}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=NO_PORT
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture
def current(client):
    """The same workers where no client is given."""
    with client.as_current():
        yield


@pytest.fixture(scope="module")
def local():
    return LdSMClassifier(**FEW).fit(X, Y)


def file_of(model, folder):
    model.save(folder / "model")
    return (folder / "model").read_bytes()


def blocks(rows):
    """A Dask array of CSR blocks."""
    parts = [
        da.from_delayed(delayed(rows[cut]), (rows[cut].shape[0], rows.shape[1]), meta=rows[:0])
        for cut in CUTS
    ]
    return da.concatenate(parts)


def parts(rows):
    return [delayed(rows[cut]) for cut in CUTS]


ONE_LABEL = np.asarray(Y.argmax(axis=1)).ravel()
WEIGHTS = np.linspace(0.5, 2, X.shape[0])


@pytest.mark.parametrize(
    "case",
    ["local", "blocks", "partitions", "futures", "dense", "labels", "weights", "lists"],
)
def test_the_model_is_the_same_to_the_bit(client, tmp_path, case):
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
    elif case == "futures":
        data = ([client.submit(X.__getitem__, cut) for cut in CUTS], parts(Y), None)
    elif case in ("dense", "labels"):
        ones = da.from_array(labels, 300) if case == "labels" else da.from_array(Y.toarray(), 400)
        data = (da.from_array(rows, (300, 10)), ones, None)
    elif case == "weights":
        data = (parts(X), parts(Y), parts(WEIGHTS))
    else:
        data = (parts(rows), parts(labels), None)
    if case == "dense":
        labels = Y.toarray()
    alone = LdSMClassifier(**FEW).fit(rows, labels, weights)
    model = DaskLdSMClassifier(**FEW, client=client).fit(*data)
    assert file_of(model, tmp_path) == file_of(alone, tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {"scorers": "none"},
        {"scorers": "none", "beta": 0.5, "n_bits": 6},
        {"idf_power": 1.0, "cost": 0.5},
        {"idf_power": 0.0},
        {"optimizer": "sgd", "scaling": "standard", "arity": 3},
        {"keep_statistics": True, "n_estimators": 9, "random_state": 7},
    ],
    ids=str,
)
def test_every_way_to_train_gives_the_same_model(client, tmp_path, options):
    params = FEW | options
    alone = LdSMClassifier(**params).fit(X, Y)
    model = DaskLdSMClassifier(**params, client=client).fit(X, Y)
    assert file_of(model, tmp_path) == file_of(alone, tmp_path)


def test_predictions_are_lazy_and_those_of_the_local_model(current, local):
    model = DaskLdSMClassifier(**FEW).fit(X, Y)
    labels, found = local.predict_topk(X_NEW, 3)
    cuts = [X_NEW[:100], X_NEW[100:]]
    rows = da.concatenate(
        [da.from_delayed(delayed(cut), cut.shape, meta=X_NEW[:0]) for cut in cuts]
    )
    lazy = model.predict_topk(rows, 3)
    assert [part.shape for part in lazy] == [(300, 3)] * 2
    assert lazy[0].chunks[0] == (100, 200)
    assert np.array_equal(lazy[0].compute(), labels)
    assert np.array_equal(lazy[1].compute(), found)
    assert np.array_equal(model.predict_topk(X_NEW, 3)[0], labels)
    of_parts = dask.compute(model.predict_topk([delayed(cut) for cut in cuts], 3))[0]
    assert np.array_equal(np.vstack([labels for labels, _ in of_parts]), labels)
    sets = model.predict(rows)
    assert sets.shape == (300, 30)
    assert (sets.compute() != local.predict(X_NEW)).nnz == 0
    chances = model.predict_topk(da.from_array(X_NEW.toarray(), 100), 2, scores="probability")
    wanted = local.predict_topk(X_NEW, 2, scores="probability")[1]
    assert np.array_equal(chances[1].compute(), wanted)


def test_predictions_have_the_form_of_y(current):
    for y, kind in [(ONE_LABEL, "i"), ([[label] for label in ONE_LABEL], "O")]:
        model = DaskLdSMClassifier(**FEW).fit(X, y)
        found = model.predict(blocks(X))
        assert (found.shape, found.dtype.kind) == ((900,), kind)
        assert found.compute().tolist() == list(LdSMClassifier(**FEW).fit(X, y).predict(X))


def test_it_behaves_as_an_estimator(client, local, tmp_path):
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


def test_parameters_that_mean_nothing_are_refused():
    with pytest.raises(TypeError, match=r"no parameter 'n_jobs': a worker's own threads"):
        DaskLdSMClassifier(n_jobs=2)
    with pytest.raises(TypeError, match=r"no parameter 'warm_start'"):
        DaskLdSMClassifier(warm_start=True)
    with pytest.raises(TypeError, match="n_trees"):
        DaskLdSMClassifier(n_trees=2)


def test_bad_input_is_an_error_that_names_it(client):
    model = DaskLdSMClassifier(**FEW, client=client)
    with pytest.raises(ValueError, match="X has 3 partitions, y has 2"):
        model.fit(parts(X), parts(Y)[:2])
    with pytest.raises(TypeError, match="y must be a Dask collection"):
        model.fit(parts(X), Y)
    with pytest.raises(ValueError, match="X has 900 rows, y has 899"):
        model.fit(da.from_array(X.toarray(), 300), da.from_array(ONE_LABEL[1:], 300))
    with pytest.raises(ValueError, match="n_estimators"):
        DaskLdSMClassifier(n_estimators=0, client=client).fit(X, Y)
    # What a worker finds is as it would be here.
    bad = X.copy()
    bad.data[0] = np.nan
    with pytest.raises(ValueError, match="row 0"):
        model.fit(parts(bad), parts(Y))
    with pytest.raises(TypeError, match=r"client must be a distributed\.Client, got int"):
        DaskLdSMClassifier(client=3).fit(X, Y)
    assert not hasattr(model, "classes_")


def test_without_a_client_it_says_so():
    with pytest.raises(ValueError, match="there is no Dask client"):
        DaskLdSMClassifier(**FEW).fit(X, Y)


def test_examples_that_do_not_fit_a_worker_are_refused():
    with (
        LocalCluster(
            n_workers=1, processes=False, dashboard_address=NO_PORT, memory_limit="50kB"
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
        pytest.raises(MemoryError, match=r"memory_limit.*Give workers more memory or fewer"),
    ):
        DaskLdSMClassifier(**FEW, client=client).fit(X, Y)


def test_bagged_trees_average(current):
    rows = X.toarray()
    y = np.array([f"label {label}" for label in ONE_LABEL])
    data = da.from_array(rows, 300), da.from_array(y, 300)
    model = DaskLOMTreeClassifier(random_state=3).fit(*data)
    ensemble = model.to_local()
    assert len(ensemble.estimators_) == 3
    for number, (member, start) in enumerate(zip(ensemble.estimators_, (0, 300, 600), strict=True)):
        alone = LOMTreeClassifier(random_state=3 + number)
        alone.fit(rows[start : start + 300], y[start : start + 300], classes=np.unique(y))
        assert np.array_equal(member.predict_proba(rows), alone.predict_proba(rows))
    mean = np.mean([member.predict_proba(rows) for member in ensemble.estimators_], axis=0)
    labels, chances = model.predict_topk(rows, 3)
    assert np.allclose(chances[:, 0], mean.max(axis=1), atol=1e-6)
    assert (model.predict(data[0]).compute() == labels[:, 0]).all()
    assert np.array_equal(model.predict_topk(data[0], 3)[1].compute(), chances)
    with pytest.raises(TypeError, match="train LOMTreeClassifier on local rows"):
        model.fit(rows, y)


def fit_and_kill(client, cluster, n_kills, params=FEW, between=1.0):
    """Trains while workers are killed, one after the other; returns the model and the kills."""
    killed = []

    def kill():
        while len(killed) < n_kills and not done.wait(between):
            workers = [nanny for nanny in cluster.workers.values() if nanny.pid]
            if workers:
                pid = workers[len(killed) % len(workers)].pid
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    done = threading.Event()
    killer = threading.Thread(target=kill)
    killer.start()
    try:
        model = DaskLdSMClassifier(**params, client=client).fit(X, Y)
    finally:
        done.set()
        killer.join()
    return model, killed


@pytest.fixture
def processes():
    """Two workers that are processes."""
    config = {
        "distributed.scheduler.allowed-failures": 100,
    }
    with (
        dask.config.set(config),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=NO_PORT) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client, cluster


def test_a_worker_that_is_killed_costs_its_tasks_alone(processes, local, tmp_path):
    client, cluster = processes
    model, killed = fit_and_kill(client, cluster, 1, between=0.3)
    assert killed
    assert file_of(model, tmp_path) == file_of(local, tmp_path)


MANY = FEW | {"n_estimators": 500}


def test_a_scheduler_that_goes_is_an_error_that_says_so():
    with (
        # How long the client waits for it to come back.
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=NO_PORT
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        closer = threading.Timer(0.5, cluster.sync, [cluster.scheduler.close])
        closer.start()
        with pytest.raises(RuntimeError, match="connection to the scheduler was lost"):
            DaskLdSMClassifier(**MANY, client=client).fit(X, Y)
        closer.join()


def test_ctrl_c_cancels_what_was_sent(client):
    timer = threading.Timer(0.5, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        DaskLdSMClassifier(**MANY, client=client).fit(X, Y)
    timer.join()
    for _ in range(100):
        if not client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)):
            return
        time.sleep(0.1)
    raise AssertionError("tasks were left")
