"""``make peers``: runs of small problems, and the page of made-up results."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from xmtree.datasets import make_xmc

ROOT = Path(__file__).parents[2]
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").is_file(), reason="memory is measured on Linux alone"
)


@pytest.fixture
def package(monkeypatch):
    """The package of the benches, with clean sources of a fixed commit."""
    monkeypatch.syspath_prepend(ROOT / "benches")
    from peers import page, plots, programs, report, runs, tasks

    monkeypatch.setattr(runs, "source", lambda package: "0123abc")

    class Package:
        Task, Results, Environments, Case = tasks.Task, runs.Results, runs.Environments, runs.Case
        TASKS, PROGRAMS = tasks.TASKS, {each.name: each for each in programs.PROGRAMS}

    Package.page, Package.plots, Package.programs = page, plots, programs
    Package.report, Package.runs, Package.tasks = report, runs, tasks
    return Package


@pytest.fixture
def two(package):
    """One-against-all of both, which need nothing but what tests need."""
    return [package.PROGRAMS[name] for name in ("xmtree OAA", "scikit-learn SGDClassifier")]


def record(case, **measures):
    """A made-up run."""
    common = {"date": f"2026-01-0{1 + case.run} 10:00", "machine": "a machine", "load": "1.0"}
    return case.key() | common | {"commit": "0123abc", "shape": [160, 30, 7]} | measures


def done(run, **accuracy):
    """Made-up measures."""
    times = {"batch_us": [9.0, 5.0 + run, 1.0], "one_us": 250.0, "load_ms": [3.0, 1.0, 2.0]}
    sizes = {"peak_mb": 120.0, "file_mb": 0.5}
    training = {"s": 1.0 + run, "cpu_s": 2.0, "mb": 20.0}
    return {"training": training, "seconds": 4.0} | times | sizes | accuracy


@needs_proc
@pytest.mark.parametrize("kind", ["CLASSES", "SETS"])
def test_measured_in_processes_of_their_own(package, tmp_path, monkeypatch, kind):
    sets = kind == "SETS"
    X, y = make_xmc(500, 60, 6, multilabel=sets, random_state=0)
    parts = X[:400], y[:400], X[400:], y[400:]
    monkeypatch.setattr(package.Task, "parts", lambda self: parts)
    task = package.Task("small", getattr(package.programs, kind))
    other = "OneVsRestClassifier(LinearSVC)" if sets else "SGDClassifier"
    chosen = [(task, package.PROGRAMS[name]) for name in ("xmtree OAA", f"scikit-learn {other}")]
    results = package.Results(tmp_path / "results.jsonl")
    said = []
    how = package.Environments(), 1, 2, 100
    package.runs.run_all(chosen, results, *how, say=said.append)
    assert len(results.records) == 2, said
    for found in results.records:
        assert "failed" not in found
        values = package.report.values(found)
        assert all(np.isfinite(value) for value in values.values())
        assert values["P@1"] > 80 if sets else values["error"] < 20
        assert found["training"]["s"] > 0
        assert found["peak_mb"] > 10
        assert found["file_mb"] > 0
        assert len(found["load_ms"]) == 3
        assert found["shape"] == [400, 60, 6]
    # Another run of the same is not measured.
    package.runs.run_all(chosen, package.Results(results.path), *how, say=said.append)
    assert len(said) == 2


@needs_proc
def test_what_fails_or_takes_too_long_is_told(package, tmp_path, monkeypatch, two):
    X, y = make_xmc(60, 10, 3, random_state=0)
    monkeypatch.setattr(package.Task, "parts", lambda self: (X, y, X, y))
    task = package.Task("small", package.programs.CLASSES)
    results = package.Results(tmp_path / "results.jsonl")
    wrong = package.programs.Program(
        "wrong", None, "ours", {task.kind: {"estimator": "OAA", "n_passes": 0}}
    )
    package.runs.run_all([(task, wrong)], results, package.Environments(), 2, 2, 100)
    assert "n_passes" in results.records[0]["failed"]
    package.runs.run_all([(task, two[0])], results, package.Environments(), 1, 2, 1e-3)
    assert results.records[-1]["over_s"] == 1e-3


def measured_by(package, monkeypatch, seconds=4.0):
    """Takes what ``measured`` is asked for, and answers without measuring."""
    asked = []

    def measured(case, folder, python, limit):
        asked.append((case.program.name, case.run))
        return record(case, **done(case.run, error=10.0) | {"seconds": seconds})

    monkeypatch.setattr(package.runs, "measured", measured)
    X, y = make_xmc(20, 10, 3, random_state=0)
    monkeypatch.setattr(package.Task, "parts", lambda self: (X, y, X, y))
    return asked


def test_what_was_run_is_not_run_again(package, tmp_path, monkeypatch, two):
    asked = measured_by(package, monkeypatch)
    task, names = package.Task("small", package.programs.CLASSES), [each.name for each in two]
    chosen = [(task, program) for program in two]
    path = tmp_path / "results.jsonl"

    def ran(n_runs=2, limit=100, **how):
        before = len(asked)
        results = package.Results(path)
        package.runs.run_all(chosen, results, package.Environments(), n_runs, 2, limit, **how)
        return asked[before:]

    # The first runs of all come first.
    assert ran() == [(name, run) for run in (0, 1) for name in names]
    assert ran() == []
    assert ran(n_runs=3) == [(name, 2) for name in names]
    assert len(ran(again=True)) == 4
    monkeypatch.setattr(package.runs, "source", lambda package: "fedcba9")
    assert ran() == [(names[0], run) for run in (0, 1)]
    # Sources that are not committed are measured each time.
    monkeypatch.setattr(package.runs, "source", lambda package: "fedcba9-dirty")
    assert len(ran()) == len(ran()) > 0


def test_a_run_ended_before_the_limit_is_run_again(package, tmp_path, two):
    results = package.Results(tmp_path / "results.jsonl")
    case = package.Case(package.TASKS[0], two[0], 0, 2, "0123abc")
    results.add(record(case, over_s=100))
    assert results.find(case, 50)["over_s"] == 100
    assert results.find(case, 200) is None
    results.add(record(case, failed="out of memory"))
    assert results.find(case, 50) is None


def test_slow_programs_run_once(package, tmp_path, monkeypatch, two):
    asked = measured_by(package, monkeypatch, seconds=package.runs.SLOW + 1)
    task = package.Task("small", package.programs.CLASSES)
    results = package.Results(tmp_path / "results.jsonl")
    package.runs.run_all([(task, two[0])], results, package.Environments(), 3, 2, 1000)
    assert asked == [(two[0].name, 0)]


@pytest.fixture
def results(package, tmp_path, two):
    """Two runs of ours, one of a peer, one that took too long, one that failed."""
    found = package.Results(tmp_path / "results.jsonl")
    naics, *_ = package.TASKS
    bibtex = next(task for task in package.TASKS if task.name == "bibtex")
    measures = {
        (naics, "xmtree OAA", 0): done(0, error=30.0),
        (naics, "xmtree OAA", 1): done(1, error=31.0),
        (naics, "scikit-learn SGDClassifier", 0): done(0, error=29.0),
        (naics, "VW --oaa", 0): {"over_s": 900.0},
        (bibtex, "omikuji", 0): {"failed": "RuntimeError: a | b"},
        (bibtex, "xmtree LdSM", 0): done(0, p=[60.0, 40.0, 30.0], psp=[50.0, 51.0, 52.0]),
    }
    for (task, name, run), each in measures.items():
        program = package.PROGRAMS[name]
        source = "0123abc" if program.package is None else f"{program.package} 1.0"
        found.add(record(package.Case(task, program, run, 2, source), **each))
    return found


def test_page(package, results):
    rows = package.report.table(results)
    sources = dict.fromkeys(package.PROGRAMS, "here")
    missing = {"napkinxc": "no wheel"}
    text = package.page.written(rows, sources | {"napkinXC PLT": None}, missing, "figures")
    lines = text.splitlines()
    prose = " ".join(text.split())
    assert "Measured on a machine, 2 threads each, 2026-01-01 10:00 to 2026-01-02 10:00" in prose
    assert "xmtree: sources of 0123abc" in prose
    assert "others: omikuji 1.0, scikit-learn 1.0, vowpalwabbit 1.0." in prose
    assert "most accurate one on 1 of 2 tasks" in prose
    assert "others are on naics2017-index (scikit-learn SGDClassifier)." in prose
    first = lines.index("## naics2017-index")
    table = [line for line in lines[first : first + 9] if line.startswith("|")]
    assert table[0] == "| program | error % | train s | batch µs a row | one row µs | file MB |"
    # The most accurate first; cells are medians.
    assert table[2:] == [
        "| scikit-learn SGDClassifier | 29.0 | 1.00 | 5.00 | 250 | 0.50 |",
        "| **xmtree OAA** | 30.5 | 1.50 | 5.50 | 250 | 0.50 |",
    ]
    assert "Not done within 900 s: VW --oaa." in lines
    assert "| **xmtree LdSM** | 60.0 | 30.0 | 1.00 | 5.00 | 250 | 0.50 |" in lines
    assert "Failed (RuntimeError: a | b): omikuji." in lines
    assert "Not installed: napkinXC PLT (no wheel)." in lines
    assert "(figures/peers-prediction.svg)" in text
    assert "- vowpalwabbit: passes=5; " in text


def test_a_table_has_one_program_of_each_other_package(package):
    names = "VW --ect", "xmtree OAA", "VW --oaa", "omikuji", "xmtree LdSM"
    rows = [{"program": name, "xmtree": name.startswith("xmtree")} for name in names]
    kept = [row["program"] for row in package.page.first_of_each(rows)]
    assert kept == ["VW --ect", "xmtree OAA", "omikuji", "xmtree LdSM"]


def test_newest_sources_alone(package, results, two):
    naics = package.TASKS[0]
    results.add(record(package.Case(naics, two[0], 0, 2, "fedcba9"), **done(0, error=20.0)))
    rows = package.report.table(results)
    ours = next(row for row in rows if (row["task"], row["program"]) == (naics.name, two[0].name))
    assert (ours["runs"], ours["source"]) == (1, "fedcba9")
    assert ours["error"] == {"median": 20.0, "least": 20.0, "most": 20.0}


def test_json_and_plots(package, results, tmp_path):
    rows = package.report.table(results)
    found = json.loads(package.report.as_json(rows))
    assert found["head"]["machine"] == ["a machine"]
    assert found["head"]["load"]["median"] == 1.0
    assert [row["program"] for row in found["table"]] == [row["program"] for row in rows]
    package.plots.write(rows, tmp_path / "figures")
    for name in package.page.FIGURES:
        svg = (tmp_path / "figures" / name).read_text()
        assert "xmtree OAA" in svg or name == "peers-scaling.svg"


def test_programs_say_why_they_are_not_run(package):
    """Every pair of a task and a program has settings or a reason, and names are distinct."""
    assert len(package.PROGRAMS) == len(package.programs.PROGRAMS)
    for program in package.PROGRAMS.values():
        for task in package.TASKS:
            assert (task.kind in program.settings) != (task.kind in program.why_not), program.name
        json.dumps(program.settings)
        assert (ROOT / f"benches/peers/adapters/{program.adapter}.py").is_file()
    task = package.TASKS[-1]
    assert "GB" in package.PROGRAMS["xmtree OAA"].refusal(task, [10, 2**14, 100_000])
    assert package.PROGRAMS["xmtree OAA"].refusal(task, [10, 2**14, 1000]) is None
    assert "linear" in package.PROGRAMS["VW --oaa"].refusal(task, [10, 10, 100_000])


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_install_peers(tmp_path):
    """The first choice that installs is taken; what has none is noted with the reason."""
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
