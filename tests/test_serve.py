"""``xmtree serve``: answers of real requests, hostile bodies, limits, reloads and stops."""

import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import cli_files as files
import estimators
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xmtree
from cli_files import LABELS, SETS, TEXTS, run

pytest.importorskip("httpx")
pytest.importorskip("uvicorn")

import httpx
from xmtree.cli.serving.app import Limits, Service
from xmtree.cli.serving.pages import openapi
from xmtree.cli.serving.served import Served
from xmtree.cli.trained import Model

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
SECONDS = 120


@contextlib.contextmanager
def serving(model, *options):
    """Start a server and yield its process and a client."""
    command = [sys.executable, "-m", "xmtree", "serve", model, "--port", 0, *options]
    with subprocess.Popen(
        list(map(str, command)), stderr=subprocess.PIPE, text=True, bufsize=1
    ) as process:
        try:
            found = re.search(r"serving on (http://\S+)$", process.stderr.readline().strip())
            assert found, process.stderr.read()
            with httpx.Client(base_url=found[1], timeout=SECONDS) as client:
                yield process, client
        finally:
            process.kill()


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    path = tmp_path_factory.mktemp("texts") / "texts.xmtree"
    xmtree.TextClassifier(random_state=0).fit(TEXTS, LABELS).save(path)
    return path


@pytest.fixture(scope="module")
def server(texts):
    with serving(texts, "--max-rows", 50, "--max-body", 1) as found:
        yield found


@pytest.fixture(scope="module")
def client(server):
    return server[1]


def test_texts(client, texts):
    model = xmtree.load(texts)
    found = client.post("/predict", json={"texts": TEXTS[:40]})
    assert found.status_code == 200
    assert found.json() == {"labels": model.predict(TEXTS[:40]).tolist()}
    for scores in ("raw", "probability"):
        asked = {"texts": TEXTS[:40], "k": 3, "scores": scores}
        found = client.post("/predict_topk", json=asked).json()
        labels, values = model.predict_topk(TEXTS[:40], 3, scores=scores)
        assert found["labels"] == labels.tolist()
        np.testing.assert_allclose(found["scores"], values, 1e-5)
    # By default five, but no more than there are.
    assert len(client.post("/predict_topk", json={"texts": ["card"]}).json()["labels"][0]) == 4
    assert (
        len(client.post("/predict_topk", json={"texts": ["a"], "k": 99}).json()["labels"][0]) == 4
    )


def test_health_card_and_openapi(client):
    assert client.get("/health").json()["status"] == "ok"
    card = client.get("/").json()
    assert card["model"] == "texts.xmtree"
    assert card["n_labels"] == 4
    assert card["takes"] == "texts"
    page = client.get("/", headers={"accept": "text/html"})
    assert page.headers["content-type"].startswith("text/html")
    assert "exchange rate" in page.text
    described = client.get("/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    assert sorted(described["paths"]) == ["/", "/health", "/predict", "/predict_topk"]
    for path, methods in described["paths"].items():
        for method in methods:
            given = {"json": {"texts": ["card"]}} if method == "post" else {}
            answer = client.request(method, path, **given)
            assert answer.status_code == 200
            assert answer.headers["content-type"] == "application/json"
    body = described["paths"]["/predict"]["post"]["requestBody"]["content"]["application/json"]
    assert body["schema"]["properties"]["texts"]["maxItems"] == 50


BODIES = {
    "empty": (b"", "not JSON"),
    "cut": (b'{"texts": ["a', "not JSON"),
    "bytes": (b"\xff\xfe\x00", "not JSON"),
    "deep": (b"[" * 200_000, "nested too deeply"),
    "deep objects": (b'{"a":' * 150_000, "nested too deeply"),
    "digits": (b'{"texts": ["a"], "k": ' + b"9" * 5000 + b"}", "not JSON"),
    "nan": (b'{"texts": ["a"], "k": NaN}', "NaN is not a number of JSON"),
    "infinity": (b"-Infinity", "-Infinity is not a number of JSON"),
    "list": (b"[1]", "must be an object, got a list"),
    "null": (b"null", "must be an object, got a NoneType"),
    "no texts": (b"{}", "'texts' must be a list with at least one entry"),
    "no text": (b'{"texts": []}', "'texts' must be a list with at least one entry"),
    "one text": (b'{"texts": "a"}', "'texts' must be a list"),
    "number": (b'{"texts": ["a", 3]}', r"texts\[1\] must be a string, got 3"),
    "null text": (b'{"texts": [null]}', r"texts\[0\] must be a string, got None"),
    "rows": (b'{"rows": [[1]]}', "unknown key 'rows'; allowed are texts, k, scores"),
    "long key": (b'{"' + b"x" * 10_000 + b'": 1}', "unknown key 'x{59}; allowed"),
    "many": (json.dumps({"texts": ["a"] * 51}).encode(), "51 texts, at most 50 are allowed"),
    "k": (b'{"texts": ["a"], "k": 0}', "k must be an integer of at least 1, got 0"),
    "true k": (b'{"texts": ["a"], "k": true}', "k must be an integer of at least 1, got True"),
    "float k": (b'{"texts": ["a"], "k": 1.5}', "k must be an integer of at least 1, got 1.5"),
    "scores": (b'{"texts": ["a"], "scores": "x"}', 'scores must be "raw" or "probability"'),
    "scores list": (b'{"texts": ["a"], "scores": [1]}', 'scores must be "raw" or "probability"'),
}


@pytest.mark.parametrize("name", BODIES)
def test_hostile_bodies(client, name):
    body, message = BODIES[name]
    found = client.post("/predict_topk", content=body)
    assert found.status_code == 400
    assert re.search(message, found.json()["error"])
    assert len(found.content) < 1000


def test_texts_may_hold_anything(client):
    strange = ["", "\0", "\ud800 card", "card " * 10_000, "a\u0301" * 100, "🏦" * 999]
    body = json.dumps({"texts": strange}).encode()
    assert client.post("/predict_topk", content=body).status_code == 200


def test_other_routes_and_methods(client):
    assert client.get("/predict").status_code == 405
    assert client.post("/").json() == {"error": "Method Not Allowed"}
    assert client.get("/../etc/passwd").status_code == 404
    assert client.get("/nothing").json() == {"error": "Not Found"}
    packed = {"content-encoding": "gzip"}
    assert client.post("/predict", content=b"x", headers=packed).status_code == 415


def test_large_bodies(client):
    found = client.post("/predict", content=b" " * 1_000_001)
    assert found.status_code == 413
    assert found.json() == {"error": "a body may have at most 1000000 bytes"}
    # Chunks, whose size is not announced.
    found = client.post("/predict", content=(b" " * 100_000 for _ in range(30)))
    assert found.status_code == 413
    assert client.post("/predict", json={"texts": ["a " * 490_000]}).status_code == 200


def exchange(client, content):
    """Send bytes over a socket and return the first line of the answer, if there is any."""
    address = client.base_url.host, client.base_url.port
    # A server that refuses a request may close the connection before it has read all of it.
    with socket.create_connection(address, SECONDS) as link, contextlib.suppress(OSError):
        link.sendall(content)
        link.shutdown(socket.SHUT_WR)
        return link.makefile("rb").readline()
    return b""


def test_broken_http(client):
    head = b"POST /predict HTTP/1.1\r\nhost: x\r\n"
    for content in (
        b"\0" * 100,
        b"GET / HTTP/x\r\n\r\n",
        head + b"content-length: -5\r\n\r\n",
        head + b"content-length: ten\r\n\r\n",
        head + b"content-length: 5\r\ncontent-length: 6\r\n\r\nabcdef",
        head + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
    ):
        assert b" 4" in exchange(client, content)[:13]
    # The answer can be lost if the client is still sending.
    answer = exchange(client, head + b"x: " + b"y" * 200_000 + b"\r\n\r\n")
    assert not answer or b" 4" in answer[:13]
    # Clients that close the connection within head and body.
    for content in (b"", head, head + b"content-length: 500\r\n\r\n{"):
        exchange(client, content)
    assert client.get("/health").status_code == 200


def test_it_listens_on_this_machine_only(server):
    process, client = server
    assert client.base_url.host == "127.0.0.1"
    assert process.poll() is None


# Rows of numbers, in this process.


def served(estimator, tmp_path, ignores_unknown=False):
    estimator.save(tmp_path / "model")
    return Served(Model.load(str(tmp_path / "model"), ignores_unknown), 1000)


def asked(found, method="predict_topk", **document):
    return json.loads(getattr(found, method)(json.dumps(document).encode()))


def same(found, labels, scores):
    assert found["labels"] == labels.tolist()
    np.testing.assert_allclose(found["scores"], scores, 1e-5)


@pytest.mark.parametrize("name", ["oaa", "lomtree", "gamble", "ldsm"])
def test_rows_of_numbers(name, tmp_path):
    X, y = estimators.dense()
    model = estimators.ALL[name]().fit(X, y)
    found = served(model, tmp_path)
    same(asked(found, rows=X[:9].tolist(), k=3), *model.predict_topk(X[:9], 3))
    assert asked(found, "predict", rows=X.tolist())["labels"] == model.predict(X).tolist()
    objects = [{str(at): value for at, value in enumerate(row) if at != 2} for row in X.tolist()]
    without = X * (np.arange(6) != 2)
    same(asked(found, rows=objects, k=3), *model.predict_topk(sp.csr_matrix(without), 3))
    for rows, message in [
        ([[1.0] * 5], r"rows\[0\] has 5 numbers, expected 6"),
        ([X[0].tolist(), [1.0] * 7], r"rows\[1\] has 7 numbers, expected 6"),
        ([["1"] * 6], r"rows\[0\]\[0\] must be a number, got '1'"),
        ([[True] * 6], r"rows\[0\]\[0\] must be a number, got True"),
        ([X[0].tolist(), {}], r"rows\[1\] must be a list of numbers or an object, got {}"),
        ([{}, X[0].tolist()], r"rows\[1\] must be an object like rows\[0\]"),
        ([3], r"rows\[0\] must be a list of numbers or an object, got 3"),
        ([{"6": 1.0}], r"rows\[0\]: column 6, the model has 0 to 5"),
        ([{"x": 1.0}], "'x' is not the number of a column, from 0"),
        ([{"01": 1.0}], "'01' is not the number of a column"),
        ([{"-1": 1.0}], "'-1' is not the number of a column"),
        ([{"9" * 4400: 1.0}], "is not the number of a column"),
        ([{"²": 1.0}], "is not the number of a column"),
        ([{"0": "1"}], r"rows\[0\]: value 0 must be a number, got '1'"),
        ([{"0": None}], r"rows\[0\]: value 0 must be a number, got None"),
        ([[10**400] * 6], "an integer is too large"),
        ([[1e308, *[0.0] * 5]], "" if name == "gamble" else "row 0, column 0"),
    ]:
        if message:
            with pytest.raises(ValueError, match=message):
                asked(found, rows=rows)
    with pytest.raises(ValueError, match="row 0, column 0"):
        getattr(found, "predict")(b'{"rows": [[1e999, 0, 0, 0, 0, 0]]}')  # noqa: B009


def test_missing_values(tmp_path):
    X, y = estimators.dense()
    X[::5, 1] = np.nan
    model = estimators.ALL["gamble"]().fit(X, y)
    rows = [[None if np.isnan(value) else value for value in row] for row in X.tolist()]
    same(asked(served(model, tmp_path), rows=rows, k=2), *model.predict_topk(X, 2))
    X, y = estimators.dense()
    with pytest.raises(ValueError, match="row 0, column 1"):
        asked(served(estimators.ALL["oaa"]().fit(X, y), tmp_path), rows=[[1, None, 1, 1, 1, 1]])


def test_names_of_columns(tmp_path):
    files.write_csv(
        tmp_path / "n.csv", {"a": [1.0, 2, 3, 4] * 9, "b c": [0, 1] * 18, "label": [0, 1] * 18}
    )
    assert run("fit", tmp_path / "n.csv", "--learner", "oaa", "-o", tmp_path / "m") == 0
    found = Served(Model.load(str(tmp_path / "m")), 1000)
    assert found.card()["features"] == ["a", "b c"]
    by_name = asked(found, rows=[{"b c": 1, "a": 2}, {"a": 1}])
    assert by_name == asked(found, rows=[[2, 1], [1, 0]])
    with pytest.raises(
        ValueError, match=r"rows\[1\]: the model has no feature 'c'; xmtree serve --unk"
    ):
        asked(found, rows=[{"a": 1}, {"c": 1}])
    lenient = Served(Model.load(str(tmp_path / "m"), True), 1000)
    assert asked(lenient, rows=[{"a": 1, "c": 5}]) == asked(found, rows=[{"a": 1}])


@pytest.mark.parametrize("named", [True, False])
def test_categories(named, tmp_path):
    names = ["size", "color"] if named else [0, 1]
    colors = ["red", "green", "blue", None] * 30
    frame = pd.DataFrame({"size": np.arange(120) % 7 - 3.0, "color": colors}).set_axis(
        names, axis=1
    )
    y = frame[names[1]].isin(["red", "blue"]) + 2 * (frame[names[0]] > 0)
    model = xmtree.GambleClassifier(n_estimators=5, random_state=0).fit(frame, y)
    found = served(model, tmp_path)
    assert found.card()["categories"] == [str(names[1])]
    new = pd.DataFrame({names[0]: [1.0, 0, -2, 3], names[1]: ["blue", "pink", None, "green"]})
    rows = new.astype(object).where(new.notna(), None).to_numpy().tolist()
    expected = model.predict_topk(new, 4)
    same(asked(found, rows=rows, k=4), *expected)
    # Objects may lack what is 0 or missing.
    size, color = map(str, names)
    objects = [{size: 1, color: "blue"}, {color: "pink"}, {size: -2}, {color: "green", size: 3.0}]
    same(asked(found, rows=objects, k=4), *expected)
    found_again = asked(found, rows=[{size: 1, color: ""}, {size: 1, color: None}], k=4)
    new = pd.DataFrame({names[0]: [1.0, 1.0], names[1]: [None, None]})
    same(found_again, *model.predict_topk(new, 4))
    for rows, message in [
        ([[1, "red"], [1, 5]], f"rows.1.: column '{color}' holds 5, which is not text"),
        ([{color: ["red"]}], f"rows.0.: column '{color}' holds .'red'., which is not text"),
        ([["red", "red"]], r"rows\[0\]\[0\] must be a number, got 'red'"),
        ([{size: "red"}], f"rows.0.: value {names.index(names[0])} must be a number, got 'red'"),
        ([["red"]], r"rows\[0\] has 1 numbers, expected 2"),
    ]:
        with pytest.raises(ValueError, match=message):
            asked(found, rows=rows)
    types = openapi(found.card())["paths"]["/predict"]["post"]["requestBody"]["content"]
    assert "string" in str(types)


def test_hashed_features(tmp_path):
    (tmp_path / "ads.vw").write_text("1 |site a b\n2 |site b c:0.5\n" * 20)
    hashed = ["--passes", "1", "--set", "n_bits=10"]
    assert run("fit", tmp_path / "ads.vw", "--learner", "oaa", *hashed, "-o", tmp_path / "m") == 0
    found = Served(Model.load(str(tmp_path / "m")), 1000)
    assert asked(found, "predict", rows=[{"site^a": 1, "site^b": 1}, {"site^c": 0.5}]) == {
        "labels": [1, 2]
    }
    model = xmtree.OAAClassifier(n_bits=8, random_state=0).fit(*estimators.sparse())
    X = sp.csr_matrix(([1.0, 2.0], ([0, 0], [3, 900_000])), (1, 900_001))
    same(asked(served(model, tmp_path), rows=[{"900000": 2, "3": 1}]), *model.predict_topk(X, 5))


@pytest.mark.parametrize("form", ["dense", "sparse", "lists"])
@pytest.mark.parametrize("name", ["oaa", "ldsm"])
def test_label_sets(form, name, tmp_path):
    X, Y = estimators.label_sets()
    names = np.array([f"label {at}" for at in range(8)])
    y = {
        "dense": Y.toarray(),
        "sparse": Y,
        "lists": [names[np.flatnonzero(r)].tolist() for r in Y.toarray()],
    }
    model = estimators.ALL[name]().fit(X, y[form])
    found = asked(served(model, tmp_path), "predict", rows=X.toarray().tolist())["labels"]
    expected = model.predict(X)
    if form != "lists":
        expected = [np.flatnonzero(row).tolist() for row in sp.csr_array(expected).toarray()]
    assert found == expected


def test_label_sets_of_texts_and_dates(tmp_path):
    model = xmtree.TextClassifier(random_state=0).fit(TEXTS, SETS)
    assert asked(served(model, tmp_path), "predict", texts=TEXTS)["labels"] == model.predict(TEXTS)
    X, y = estimators.dense()
    dates = np.array(["2020-01-01"], "M8[D]") + y
    model = estimators.ALL["oaa"]().fit(X, dates)
    found = asked(served(model, tmp_path), rows=X[:3].tolist(), k=2)
    assert found["labels"] == model.predict_topk(X[:3], 2)[0].astype(str).tolist()


def test_answers_are_limited(tmp_path, monkeypatch):
    found = served(estimators.ALL["oaa"]().fit(*estimators.dense()), tmp_path)
    monkeypatch.setattr("xmtree.cli.serving.served._MOST_LABELS", 10)
    with pytest.raises(ValueError, match="6 rows x k = 2 is more than 10 labels"):
        asked(found, rows=[[0.0] * 6] * 6, k=2)


# Limits of time, and errors of the server itself.


class Slow:
    """A model that answers when it is told to."""

    loaded_at = ""

    def __init__(self, error=None):
        self.go, self.error, self.calls = threading.Event(), error, 0

    def predict(self, body):
        self.calls += 1
        if self.error:
            raise self.error
        self.go.wait(SECONDS)
        return body


def talk(service, work):
    """Run ``work`` with a client of the service."""

    async def main():
        transport = httpx.ASGITransport(service.app(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await work(client)

    return asyncio.run(main())


@pytest.fixture
def slow(monkeypatch):
    model = Slow()
    monkeypatch.setattr(Served, "predict", lambda served, body: served.predict(body))
    yield model
    model.go.set()


def test_slow_predictions_are_answered_in_time(slow):
    async def work(client):
        found = [await client.post("/predict", content=b"1") for _ in range(2)]
        slow.go.set()
        return [*found, await client.post("/predict", content=b"2")]

    first, second, third = talk(Service(lambda: slow, Limits(100, 0.05)), work)
    assert first.status_code == second.status_code == 503
    assert "the prediction took more than 0.05 s" in first.json()["error"]
    assert first.headers["retry-after"] == "1"
    # Threads are free again.
    assert third.content == b"2"


def test_predictions_that_nobody_waits_for_are_not_begun(slow, monkeypatch):
    monkeypatch.setattr("os.cpu_count", lambda: 1)
    service = Service(lambda: slow, Limits(100, 0.05))

    async def work(client):
        return await asyncio.gather(*(client.post("/predict", content=b"1") for _ in range(20)))

    assert {found.status_code for found in talk(service, work)} == {503}
    assert slow.calls == 1


def test_slow_bodies_are_refused(slow):
    async def body():
        yield b"1"
        await asyncio.sleep(SECONDS)

    async def work(client):
        return await client.post("/predict", content=body())

    found = talk(Service(lambda: slow, Limits(100, 0.05)), work)
    assert found.status_code == 408
    assert "did not arrive within 0.05 s" in found.json()["error"]


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ValueError("row 3"), 400, "row 3"),
        (MemoryError(), 503, "out of memory"),
        (KeyError("secret"), 500, "internal error; see the log of the server"),
    ],
)
def test_errors(slow, error, status, message):
    slow.error = error

    async def work(client):
        return await client.post("/predict", content=b"1")

    found = talk(Service(lambda: slow, Limits(100, 5)), work)
    assert found.status_code == status
    assert message in found.json()["error"]
    assert "secret" not in found.text


# Signals, under load.


class Load(threading.Thread):
    """Requests one after the other, until it is told to end."""

    def __init__(self, url):
        super().__init__()
        self.url, self.ends, self.answers, self.lost = url, threading.Event(), [], []

    def run(self):
        with httpx.Client(base_url=self.url, timeout=SECONDS) as client:
            while not self.ends.is_set():
                try:
                    found = client.post("/predict", json={"texts": ["card"]})
                    self.answers.append((found.status_code, found.json()["labels"][0]))
                except httpx.HTTPError as error:
                    self.lost.append(error)
                    break


def named(path, label):
    """Save a model that predicts ``label``."""
    xmtree.TextClassifier(random_state=0).fit(["card", "money"] * 9, [label, "z"] * 9).save(path)


def test_a_reload_loses_no_request(tmp_path):
    path = tmp_path / "model"
    named(path, "first")
    with serving(path) as (process, client):
        loads = [Load(client.base_url) for _ in range(4)]
        for load in loads:
            load.start()
        try:
            while not all(load.answers or load.lost for load in loads):
                time.sleep(0.01)
            for number in range(5):
                named(path, f"number {number}")
                process.send_signal(signal.SIGHUP)
                assert "loaded again" in process.stderr.readline()
                found = client.post("/predict", json={"texts": ["card"]}).json()
                assert found == {"labels": [f"number {number}"]}
            path.write_bytes(b"no model")
            process.send_signal(signal.SIGHUP)
            assert "not loaded, the model of before stays" in process.stderr.readline()
            assert client.post("/predict", json={"texts": ["card"]}).json() == found
        finally:
            for load in loads:
                load.ends.set()
            for load in loads:
                load.join()
        assert not any(load.lost for load in loads)
        answers = [answer for load in loads for answer in load.answers]
        assert {status for status, _ in answers} == {200}
        assert {"first", "number 4"} <= {label for _, label in answers}
        stop_answers_the_current_request(process, client, signal.SIGTERM)


def stop_answers_the_current_request(process, client, number):
    body = json.dumps({"texts": ["card of mine"] * 5}).encode()
    request = b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n" % len(body)
    address = client.base_url.host, client.base_url.port
    with socket.create_connection(address, SECONDS) as link:
        link.sendall(request + b"expect: 100-continue\r\n\r\n" + body[:10])
        # The server waits for the rest of the body.
        assert link.recv(1000).startswith(b"HTTP/1.1 100 ")
        assert client.get("/health").status_code == 200
        process.send_signal(number)
        # No new connections, but the rest of the request still counts.
        deadline = time.monotonic() + SECONDS
        while time.monotonic() < deadline:
            try:
                socket.create_connection(address, SECONDS).close()
            except ConnectionError:
                break
        link.sendall(body[10:])
        assert link.recv(100).startswith(b"HTTP/1.1 200 OK")
    assert process.wait(SECONDS) == 0
    assert process.stderr.read() == ""


def test_ctrl_c_answers_the_current_requests(texts):
    with serving(texts, "--jobs", 2) as (process, client):
        stop_answers_the_current_request(process, client, signal.SIGINT)


# Wrong usage.


def test_wrong_usage(tmp_path, capsys, texts, monkeypatch):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert run("serve", texts, "--port", port) == 1
        assert f"127.0.0.1:{port}: Address already in use" in capsys.readouterr().err
    for options in (["--port", 70000], ["--port", "x"], ["--max-rows", 0], ["--timeout", 0]):
        assert run("serve", texts, *options) == 2
    assert run("serve", texts, "--host", "not a host") == 1
    (tmp_path / "broken").write_bytes(b"x")
    assert run("serve", tmp_path / "broken") == 1
    assert run("serve", tmp_path / "missing") == 1
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert run("serve", texts) == 1
    assert "pip install 'xmtree[serve]'" in capsys.readouterr().err
