"""The comparison of instruction counts: tools/bench_check.py."""

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def bench_check() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_check", ROOT / "tools/bench_check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("recorded", "now", "expected"),
    [
        (1000, 1000, ("+0.00", "")),
        (1000, 1020, ("+2.00", "")),
        (1000, 1021, ("+2.10", "MORE")),
        (1000, 980, ("-2.00", "")),
        (1000, 979, ("-2.10", "fewer")),
        (None, 1000, ("", "NOT RECORDED")),
        (1000, None, ("", "GONE")),
    ],
)
def test_verdict(
    bench_check: ModuleType, recorded: int | None, now: int | None, expected: tuple[str, str]
) -> None:
    assert bench_check.verdict(recorded, now) == expected


def test_table(bench_check: ModuleType) -> None:
    recorded = {"a/learn": 2_000_000, "a/predict": 100}
    lines, words = bench_check.compare(recorded, {"a/learn": 1_000_000, "b/learn": 7})
    assert words == {"fewer", "GONE", "NOT RECORDED"}
    assert lines[1].split() == ["a/learn", "2,000,000", "1,000,000", "-50.00", "fewer"]
    assert [line.split()[0] for line in lines] == ["loop", "a/learn", "a/predict", "b/learn"]


def test_total(bench_check: ModuleType) -> None:
    profile = "version: 1\nevents: Ir\nsummary: 4711\n\nfn=(1) f\n0 4711\n"
    assert bench_check.total(profile) == 4711
    with pytest.raises(ValueError, match="totals"):
        bench_check.total("version: 1\n")


def test_every_loop_is_recorded(bench_check: ModuleType) -> None:
    """And the function that is counted has the name that callgrind is told."""
    source = (ROOT / "rust/benches/instructions.rs").read_text(encoding="utf-8")
    listed = re.search(r"const LOOPS: &\[&str\] = &\[(.*?)\];", source, re.DOTALL)
    assert listed is not None
    recorded = json.loads((ROOT / bench_check.RECORD).read_text(encoding="utf-8"))
    assert set(re.findall(r'"(.+?)"', listed[1])) == set(recorded["instructions"])
    assert f"fn {bench_check.MEASURED.strip('*')}(" in source
