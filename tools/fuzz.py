"""Runs the fuzz targets with cargo-fuzz, each for some seconds, and counts what was executed.

    python tools/fuzz.py 60 [TARGET...]

What libFuzzer found worth keeping stays in fuzz/corpus, an input that broke something in
fuzz/artifacts. Fails where there was one.
"""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

FUZZ = Path(__file__).parent.parent / "fuzz"
#: Nothing that a small input asks for may take more memory or time than this; that memory could
#: be had is asked by allocating it, which is not counted before it is written to. Inputs are of any
#: length from the start: the edits of a model are 12 bytes each.
LIMITS = ["-rss_limit_mb=3000", "-malloc_limit_mb=1000000", "-timeout=30", "-len_control=0"]


def targets() -> list[str]:
    """Every target, in the order of the manifest."""
    return re.findall(r'\[\[bin\]\]\nname = "(.*)"', (FUZZ / "Cargo.toml").read_text())


def run(target: str, seconds: int) -> tuple[int, int]:
    """Executions of a target, and its exit code."""
    corpus = FUZZ / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    seeds = FUZZ / "seeds" / target
    folders = [str(folder) for folder in (corpus, seeds) if folder.exists()]
    limits = [*LIMITS, f"-max_total_time={seconds}", "-print_final_stats=1"]
    command = ["cargo", "+nightly", "fuzz", "run", "-O", "-a", target, *folders, "--", *limits]
    # Memory that there is not is an error, as without a sanitizer.
    environment = {**os.environ, "ASAN_OPTIONS": "allocator_may_return_null=1"}
    done = subprocess.run(
        command, cwd=FUZZ.parent, text=True, stderr=subprocess.PIPE, env=environment
    )
    if done.returncode:
        print(done.stderr[-6000:], file=sys.stderr)
    counts = re.findall(r"stat::number_of_executed_units: (\d+)", done.stderr)
    # A run that a finding ended prints none: its last line of progress has the number.
    counts = counts or re.findall(r"^#(\d+)\t", done.stderr, re.MULTILINE)
    return int(counts[-1]) if counts else 0, done.returncode


def main() -> None:
    """Run, print a table, and exit with 1 where there was a finding."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("seconds", type=int, help="for each target")
    parser.add_argument("target", nargs="*", default=targets())
    arguments = parser.parse_args()
    total, failed = 0, []
    print(f"{'target':12} {'executions':>12}  outcome")
    for target in arguments.target:
        executions, code = run(target, arguments.seconds)
        total += executions
        if code:
            failed.append(target)
        print(f"{target:12} {executions:12,}  {'FAILED' if code else 'no finding'}", flush=True)
    print(f"{'all':12} {total:12,}")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
