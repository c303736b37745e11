"""tools/build_times.py measures each call of rustc and adds up what it has measured."""

import importlib.util
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
pytest.importorskip("resource")


@pytest.fixture
def build_times(monkeypatch):
    if not (ROOT / "tools").is_dir():
        pytest.skip("not a checkout")
    monkeypatch.setattr(sys, "path", list(sys.path))
    spec = importlib.util.spec_from_file_location("build_times", ROOT / "tools/build_times.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_call_is_run_and_its_time_written(build_times, tmp_path):
    times = tmp_path / "times"
    compiler = [sys.executable, "-c", "import sys; sys.exit(3)"]
    assert build_times.call_rustc([*compiler, "--crate-name", "rand"], str(times)) == 3
    assert build_times.call_rustc([*compiler, "-vV"], str(times)) == 3
    (line,) = times.read_text("utf-8").splitlines()
    seconds, own, name = line.split()
    assert float(seconds) > 0
    assert float(own) > 0
    assert name == "rand"


def test_the_report_adds_up(build_times):
    seconds = Counter({"xmtree": 100.0, "pyo3": 20.0, "rand": 0.5, "half": 0.5})
    text = build_times.report(seconds, 90.0, "rustc 1.88.0")
    rows = [line.split(maxsplit=1) for line in text.splitlines() if line.startswith("  ")]
    assert rows == [
        ["100.0", "xmtree"],
        ["20.0", "pyo3"],
        ["1.0", "the other crates"],
        ["121.0", "total"],
        ["110.5", "least by the clock on two cores"],
    ]
