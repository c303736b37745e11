"""What counts the locks of sixteen threads: tools/count_atomics.py."""

import importlib.util
import sys
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
def count_atomics(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    if not (ROOT / "tools").is_dir():
        pytest.skip("not a checkout")
    monkeypatch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    spec = importlib.util.spec_from_file_location("count_atomics", ROOT / "tools/count_atomics.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "count_atomics", module)
    spec.loader.exec_module(module)
    return module


def test_locks_are_counted_where_they_belong(
    count_atomics: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The same in both files: what a function that is called takes is not counted once more.
    monkeypatch.setattr(count_atomics, "locking_addresses", lambda program: {0x14})
    counts = count_atomics.read_profile(PROFILE, "/bin/program")
    assert dict(counts.own) == {"xmtree::learn": 7}
    assert (counts.idle, counts.of_libraries, counts.calls) == (20, 300, 5)
