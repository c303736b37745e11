"""Failing allocations, threads, reads, writes and syncs, one at a time, in every scenario.

A sample of the calls fails here; ``make check SELECT="fuzz properties"`` tries all of them. The
calls fail in a small C library that the loader puts before the C library; see ``tests/faults``. If
an allocation fails, the process may abort, as Rust's collections do. Files are complete even then.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FAULTS = Path(__file__).parent / "faults"
COMPILER = shutil.which("cc")

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or COMPILER is None,
        reason="the shim is for Linux, and needs a C compiler",
    ),
]


KINDS = ["memory", "thread", "read", "write", "sync"]


@pytest.fixture
def shim(tmp_path):
    library = tmp_path / "shim.so"
    command = [COMPILER, "-shared", "-fPIC", "-O1", "-o", library, FAULTS / "shim.c", "-ldl"]
    subprocess.run(command, check=True)
    return library


def test_failures_raise_errors_and_leave_complete_files(shim):
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, FAULTS / "scenarios.py", *KINDS],
        env={
            **os.environ,
            "LD_PRELOAD": str(shim),
            "PYTHONPATH": path,
            "RUST_BACKTRACE": "0",
        },
        capture_output=True,
        text=True,
        timeout=1800,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(f"{kind}, " in done.stdout for kind in KINDS)
