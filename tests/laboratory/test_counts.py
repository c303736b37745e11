"""Counts of instructions and locks: tools/counts.py and tools/atomics.py."""

import importlib
import json
import re
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]
PROFILE = """\
ob=/bin/program
fn=xmtree::learn
0x10 3 40
0x14 3 7
cfn=syscall
calls=5 0x99
0x14 3 900
fn=crossbeam_epoch::default::with_handle
0x14 3 20
ob=/lib/libc.so
fn=malloc
0x14 3 300
0x18 3 1
"""


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "tools")
    return importlib.import_module("counts")


@pytest.fixture
def atomics(counts: ModuleType) -> ModuleType:
    return importlib.import_module("atomics")


@pytest.mark.parametrize(
    ("recorded", "now", "passes", "line"),
    [
        (1000, 1000, True, "a/learn 1,000 1,000 +0.00"),
        (1000, 1020, True, "a/learn 1,000 1,020 +2.00"),
        (1000, 1021, False, "a/learn 1,000 1,021 +2.10 MORE"),
        (1000, 980, True, "a/learn 1,000 980 -2.00"),
        (1000, 979, True, "a/learn 1,000 979 -2.10 fewer"),
        (None, 1000, False, "a/learn - 1,000 NOT RECORDED"),
        (1000, None, False, "a/learn 1,000 - GONE"),
    ],
)
def test_comparison(
    counts: ModuleType, recorded: int | None, now: int | None, passes: bool, line: str
) -> None:
    before, after = ({"a/learn": n} if n else {} for n in (recorded, now))
    lines, passed = counts.compare(before | {"b/learn": 7}, after | {"b/learn": 7})
    assert passed == passes
    assert sorted(" ".join(each.split()) for each in lines[1:])[0] == line


def test_total(counts: ModuleType) -> None:
    profile = "version: 1\nevents: Ir\nsummary: 4711\n\nfn=(1) f\n0 4711\n"
    assert counts.total(profile) == 4711
    with pytest.raises(ValueError, match="totals"):
        counts.total("version: 1\n")


def test_every_loop_is_recorded(counts: ModuleType) -> None:
    """The record has every loop, and the counted function has the name given to callgrind."""
    source = (ROOT / "rust/benches/instructions.rs").read_text(encoding="utf-8")
    listed = re.search(r"const LOOPS: &\[&str\] = &\[(.*?)\];", source, re.DOTALL)
    assert listed is not None
    recorded = json.loads((ROOT / counts.RECORD).read_text(encoding="utf-8"))
    assert set(re.findall(r'"(.+?)"', listed[1])) == set(recorded["instructions"])
    assert f"fn {counts.MEASURED.strip('*')}(" in source


def test_locks_are_counted_where_they_belong(
    atomics: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Both files have a locking instruction at this address. Costs of called functions do not count.
    monkeypatch.setattr(atomics, "locking_addresses", lambda program: {0x14})
    found = atomics.read_profile(PROFILE, "/bin/program")
    assert found == {
        ("locking", "xmtree::learn"): 7,
        ("idle", "crossbeam_epoch::default::with_handle"): 20,
        ("allocator", "malloc"): 300,
        ("waits", "syscall"): 5,
    }
