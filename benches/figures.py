"""Take every figure that README and docs show: python benches/figures.py [--only REGEX].

From a clean commit alone, so that the head of a file says what was measured. `make figures` calls
this after the environments of the peers are there. A file that is run alone replaces only itself;
the pages are filled in at the end.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import machine

ROOT = Path(__file__).parents[1]
#: What each file of figures is made by: benchmarks of pytest, by the beginnings of their names.
FILES = {
    "figures.txt": ["vw", "accuracy", "scaling", "memory", "import", "metrics", "datasets"],
    "figures-one-row.txt": ["one_row"],
    "figures-threads.txt": ["threads", "cores"],
    "figures-recall-tree.txt": ["recall_tree", "next_word"],
    "figures-gamble.txt": ["gamble", "active"],
    "figures-ldsm.txt": ["ldsm"],
    "figures-calibration.txt": ["calibration"],
}
#: What has a target of its own in the Makefile: hours, and taken up again where it stopped.
TARGETS = (
    "floors",
    "count-atomics",
    "build-times",
    "frontier",
    "bench-dask",
    "peers",
    "bench-extreme",
    "reproduce",
)


def benchmarks(names):
    folder = ROOT / "benches"
    return [path for name in names for path in sorted(folder.glob(f"test_bench_{name}*.py"))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="REGEX", help="files and targets so named")
    only = re.compile(parser.parse_args().only)
    if machine.commit().endswith("-dirty"):
        return "figures: the tree has changes that are not committed; commit or stash them"
    failed = []
    for file, names in FILES.items():
        if only.search(file):
            output = ROOT / "benches" / file
            command = [sys.executable, "-m", "pytest", *benchmarks(names), "--benchmark-only", "-q"]
            print("==", file, flush=True)
            if subprocess.run([*command, "--figures", output], cwd=ROOT).returncode:
                failed.append(file)
    for target in filter(only.search, TARGETS):
        if subprocess.run([os.environ.get("MAKE", "make"), target], cwd=ROOT).returncode:
            failed.append(target)
    subprocess.run([sys.executable, ROOT / "benches/pages.py"], check=True)
    return f"failed, or missed a required figure: {', '.join(failed)}" if failed else 0


if __name__ == "__main__":
    sys.exit(main())
