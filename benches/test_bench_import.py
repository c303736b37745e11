"""What a user waits for before anything happens."""

import subprocess
import sys


def test_import(benchmark):
    benchmark.pedantic(
        subprocess.run,
        args=([sys.executable, "-c", "import xmtree"],),
        kwargs={"check": True},
        rounds=5,
        warmup_rounds=1,
    )
