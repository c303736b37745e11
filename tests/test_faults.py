"""One allocation, thread, read, write or sync fails, in every scenario.

A sample of the calls is made to fail, and every one by ``make check SELECT="fuzz properties"``. The
shim that makes them fail is a small C library which the loader puts before the C library; see
``tests/faults``. Where allocations fail the process may abort, as Rust's collections do. Files
are whole then, too.
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


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    command = [COMPILER, "-shared", "-fPIC", "-O1", "-o", library, FAULTS / "shim.c", "-ldl"]
    subprocess.run(command, check=True)
    return library


@pytest.mark.parametrize("kind", ["memory", "thread", "read", "write", "sync"])
def test_whatever_fails_is_an_error_and_files_are_whole(kind, shim):
    path = os.pathsep.join(entry for entry in sys.path if entry)
    done = subprocess.run(
        [sys.executable, FAULTS / "scenarios.py", kind],
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
    assert "done" in done.stdout
