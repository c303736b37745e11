"""The harness of ``make measure``: small runs, records and pages."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from xmtree.datasets import make_xmc

ROOT = Path(__file__).parents[2]
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").is_file(), reason="memory is measured on Linux alone"
)
OAA = {"estimator": "OAA", "calibrate": False}


@pytest.fixture
def harness(monkeypatch):
    """Return the modules of the harness, with a fixed commit."""
    monkeypatch.syspath_prepend(ROOT / "benches")
    from harness import case, data, plot, record, run

    monkeypatch.setattr(run, "source", lambda: "0123abc")
    return SimpleNamespace(case=case, data=data, plot=plot, record=record, run=run)


@pytest.fixture
def small(harness, monkeypatch):
    """Replace every data set by a small task."""

    def load(name, rows=None):
        X, y = make_xmc(500, 60, 6, multilabel=name == "sets", random_state=0)
        return harness.data.Task(X[:400], y[:400], X[400:], y[400:])

    monkeypatch.setattr(harness.data, "load", load)


def case_of(harness, task="classes", settings=OAA, adapter="estimators.XMTree", package="", **more):
    return harness.case.Case(
        "peers", task, f"{package or 'xmtree'} program", settings, 0, adapter, package, **more
    )


@needs_proc
@pytest.mark.parametrize("task", ["classes", "sets"])
def test_programs_run_in_processes_of_their_own(harness, small, tmp_path, task):
    other = "OneVsRestClassifier(LinearSVC)" if task == "sets" else "SGDClassifier"
    cases = [
        case_of(harness, task, {"estimator": "OAA"}),
        case_of(harness, task, {"estimator": other}, "estimators.ScikitLearn", "scikit-learn"),
    ]
    log = harness.run.Log(tmp_path / "log.jsonl")
    environments, said = harness.run.Environments(), []
    runs = harness.run.run_all(cases, log, environments, say=said.append)
    assert len(runs) == len(said) == 2
    for row in harness.record.summarized(runs, harness.case.medians):
        assert "note" not in row, row
        assert row["P@1"] > 80 if task == "sets" else row["error"] < 20
        assert row["shape"] == [400, 60, 6]
        for name in ("train_s", "train_mb", "peak_mb", "file_mb", "load_ms", "batch_us", "one_us"):
            assert np.isfinite(row[name])
    # Known cases are not measured again.
    again = harness.run.Log(log.path)
    assert harness.run.run_all(cases, again, environments, say=said.append) == runs
    assert len(said) == 2


@needs_proc
def test_what_fails_or_takes_too_long_is_noted(harness, small, tmp_path):
    log, environments = harness.run.Log(tmp_path / "log.jsonl"), harness.run.Environments()
    wrong = case_of(harness, settings=OAA | {"n_passes": 0})
    (run,) = harness.run.run_all([wrong], log, environments)
    assert "n_passes" in run["failed"]
    (run,) = harness.run.run_all([case_of(harness)], log, environments, limit=1e-3)
    assert run["over_s"] == 1e-3
    rows = harness.record.summarized(log.runs, harness.case.medians)
    assert [row["note"][:5] for row in rows] == ["over "]


@pytest.fixture
def asked(harness, small, monkeypatch):
    """Collect the cases, without measuring them."""
    found = []

    def measured(case, source, python, limit, task, path):
        found.append(case)
        where = {"source": source, "machine": harness.run.described(), "date": "2026-01-01"}
        values = {"error": 10.0 + case.seed}
        return case.key() | where | {"load": 1.0, "values": values, "seconds": found.seconds}

    class Asked(list):
        seconds = 1.0

    found = Asked()
    monkeypatch.setattr(harness.run, "measured", measured)
    return found


def test_what_was_run_is_not_run_again(harness, asked, tmp_path, monkeypatch):
    cases = [replace(case_of(harness), seed=seed) for seed in range(2)]
    environments = harness.run.Environments()

    def ran(cases=cases, **how):
        asked.clear()
        log = harness.run.Log(tmp_path / "log.jsonl")
        harness.run.run_all(cases, log, environments, **how, say=lambda line: None)
        return [case.seed for case in asked]

    assert ran() == [0, 1]
    assert ran() == []
    assert ran([*cases, replace(case_of(harness), seed=2)]) == [2]
    assert ran(again=True) == sorted(ran(again=True, jobs=2)) == [0, 1]
    monkeypatch.setattr(harness.run, "source", lambda: "fedcba9")
    assert ran() == [0, 1]
    # Uncommitted sources are measured each time.
    monkeypatch.setattr(harness.run, "source", lambda: "fedcba9-dirty")
    assert ran(cases[:1]) == ran(cases[:1]) == [0]


def test_slow_programs_run_once(harness, asked, tmp_path):
    def ran(case, **how):
        asked.clear()
        cases = [replace(case, seed=seed) for seed in range(3)]
        log = harness.run.Log(tmp_path / f"{case.adapter}.jsonl")
        harness.run.run_all(cases, log, harness.run.Environments(), **how)
        return [case.seed for case in asked]

    asked.seconds = harness.run.SLOW[0] + 1
    assert ran(case_of(harness)) == [0]
    measured = replace(case_of(harness), adapter="")
    assert ran(measured, slow=(60, 2)) == [0, 1]
    assert ran(replace(measured, task="other")) == [0, 1, 2]


def test_a_torn_line_is_dropped_and_an_earlier_end_is_run_again(harness, tmp_path):
    log = harness.run.Log(tmp_path / "log.jsonl")
    case = case_of(harness)
    log.add(
        case.key()
        | {"source": "0123abc", "machine": harness.run.described(), "over_s": 100, "date": ""}
    )
    with log.path.open("a") as file:
        file.write('{"torn')
    log = harness.run.Log(log.path)
    assert len(log.runs) == 1
    assert log.find(case, "0123abc", 50)["over_s"] == 100
    assert log.find(case, "0123abc", 200) is None


def run_of(task, program, seed=0, source="0123abc", **values):
    found = {"task": task, "program": program, "seed": seed, "source": source, "load": 1.0}
    where = {"machine": "a machine", "settings": {}, "threads": 2, "date": f"2026-01-0{1 + seed}"}
    return found | where | {"values": values, "versions": "Python 3.11"}


def test_a_record_is_read_as_it_was_written(harness, tmp_path):
    runs = [
        *(run_of("a", "one", seed, error=30.0 + seed, curve=[1.0, 2.0 * seed]) for seed in (0, 1)),
        run_of("a", "two", error=123_456.7, shape=[10, 20, 3]),
    ]
    record = harness.record.Record("made", "Made up", tmp_path)
    record.update(harness.record.summarized(runs, harness.case.medians))
    record.write()
    text = record.path.read_text()
    assert "# a: a machine; xmtree 0123abc; 2026-01-02; Python 3.11\n" in text
    found = harness.record.Record("made", "Made up", tmp_path)
    assert found.rows == [
        {"task": "a", "program": "one", "runs": 2, "error": 30.5, "curve": [1, 1], "load": 1}
        | {"at": "a machine; xmtree 0123abc; 2026-01-02; Python 3.11"},
        {"task": "a", "program": "two", "runs": 1, "error": 123457, "shape": [10, 20, 3], "load": 1}
        | {"at": "a machine; xmtree 0123abc; 2026-01-01; Python 3.11"},
    ]
    assert found.circumstances() == "a machine; xmtree 0123abc; 2026-01-01 to 2026-01-02."
    # A new measurement replaces a row. Runs of different sources are not mixed.
    again = [*runs, run_of("a", "one", 0, "fedcba9", error=20.0)]
    found.update(harness.record.summarized(again, harness.case.medians), [("a", "two")])
    assert [(row["program"], row["error"], row["runs"]) for row in found.rows] == [
        ("two", 123_456.7, 1),
        ("one", 20.0, 1),
    ]
    found.write()
    assert found.path.read_text().count("\n# ") == 3


def test_every_subject_has_distinct_cases_and_a_record_of_them(harness):
    for name in harness.case.SUBJECTS:
        module = harness.case.subject(name)
        cases = [json.dumps(case.key()) for case in module.cases()]
        assert len(set(cases)) == len(cases) > 0
        for adapter in {case.adapter for case in module.cases()} - {""}:
            file, program = adapter.split(".")
            assert f"class {program}(" in (ROOT / f"benches/programs/{file}.py").read_text()
        assert harness.record.Record(name).rows
        assert all(hasattr(module, each) for each in ("TITLE", "cases"))


def test_programs_that_would_not_fit_are_left_out(harness):
    from subjects import peers

    on = {
        program.name: [t for t in peers.TASKS if program.runs_on(t)] for program in peers.PROGRAMS
    }
    assert "made-1000" in on["xmtree OAA"]
    assert "made-100000" not in on["xmtree OAA"]
    assert "made-10000" not in on["VW --oaa"]
    assert "omniglot" not in on["fastText"]
    assert all(on.values())


def test_pictures_are_small(harness, tmp_path):
    for name in harness.case.SUBJECTS:
        module = harness.case.subject(name)
        if hasattr(module, "pictures"):
            record = harness.record.Record(name)
            harness.plot.save(lambda m=module, r=record: m.pictures(r), tmp_path)
    pictures = [*tmp_path.iterdir(), *(ROOT / "docs" / "pictures").glob("*.svg")]
    sizes = {path.name: path.stat().st_size for path in pictures}
    assert len(sizes) >= 14
    assert max(sizes.values()) < 40_000, sizes
    peers = (tmp_path / "peers.svg").read_text()
    assert peers.count(">LdSM<") == peers.count(">omikuji<") > 3


def test_floors_are_read_from_what_the_program_prints(harness):
    from subjects.floors import parsed

    line = (
        "oaa, one by one, sparse              30000    120000    16668      5556              3.0"
    )
    (row,) = parsed(f"loop  products\n{line}\n").items()
    assert row[0] == "oaa, sparse: one by one"
    assert row[1] == {"products": 30000, "bytes": 120000, "ns": 16668, "floor_ns": 5556, "times": 3}


def test_rows_get_their_rarest_label(harness):
    y = sp.csr_matrix(np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]]))
    X = sp.csr_matrix(np.arange(1, 5)[:, None])
    task = harness.data.rarest(harness.data.Task(X, y, X, y[:2]))
    assert task.X.toarray().ravel().tolist() == [1, 2, 4]
    assert task.y.tolist() == [1, 0, 2]
    assert task.y_test.tolist() == [1, 0]


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_install_peers(tmp_path):
    """The first choice that installs is taken, and a missing package is noted with the reason."""
    (tmp_path / "bin").mkdir()
    pip = tmp_path / "bin" / "python"
    pip.write_text(
        '#!/bin/sh\ncase "$*" in *absent*) echo "ERROR: No wheel" >&2; exit 1;; esac\n'
        f'echo "$*" >>{tmp_path}/log.txt\n'
    )
    pip.chmod(0o755)
    wanted = tmp_path / "peers.txt"
    wanted.write_text("# a comment\none: absent==1 or second\ntwo: absent\nthree: --no-deps x==1\n")
    subprocess.run([ROOT / "tools/install-peers", tmp_path, wanted], check=True)
    assert (tmp_path / "missing.txt").read_text() == "two: ERROR: No wheel\n"
    installed = (tmp_path / "log.txt").read_text().splitlines()
    assert [line.split(":all: ")[1] for line in installed] == ["second", "--no-deps x==1"]
