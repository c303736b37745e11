"""Run the fuzz targets with cargo-fuzz, each for some seconds, and count the executions.

    python tools/fuzz.py 60 [TARGET...]

The target "properties" runs the property tests of Rust and Python on fresh seeds, as often as
fits into its seconds, at least once; a seed that fails is printed. The first time it also runs the
tests marked "exhaustive" with all of their cases, of which `make test` tries a part.

libFuzzer keeps interesting inputs in fuzz/corpus and inputs that break something in
fuzz/artifacts. Fails where there are any.
"""

import argparse
import os
import re
import secrets
import subprocess
import sys
import time
from pathlib import Path

FUZZ = Path(__file__).parent.parent / "fuzz"
PROPERTIES = "properties"
#: Nothing that a small input asks for may take more memory or time than this; that memory could
#: be had is asked by allocating it, which is not counted before it is written to. Inputs are of any
#: length from the start: the edits of a model are 12 bytes each.
LIMITS = ["-rss_limit_mb=3000", "-malloc_limit_mb=1000000", "-timeout=30", "-len_control=0"]


def targets() -> list[str]:
    """Return every target: the property tests, then those of the manifest in its order."""
    manifest = (FUZZ / "Cargo.toml").read_text()
    return [PROPERTIES, *re.findall(r'\[\[bin\]\]\nname = "(.*)"', manifest)]


def run_properties(seconds: int) -> tuple[int, int]:
    """Return how many seeds the property tests took, and the exit code of the last one."""
    end, n_seeds = time.monotonic() + seconds, 0
    while n_seeds == 0 or time.monotonic() < end:
        seed = str(secrets.randbits(64))
        environment = {
            **os.environ,
            "PROPTEST_RNG_SEED": seed,
            "XMTREE_HYPOTHESIS": "fresh",
            # What does not depend on a seed is tried in full, once.
            "XMTREE_EXHAUSTIVE": str(int(n_seeds == 0)),
        }
        rust = ["cargo", "test", "--quiet", "--locked", "--lib"]
        selected = "hypothesis or exhaustive" if n_seeds == 0 else "hypothesis"
        options = ["-m", "pytest", "-m", selected, f"--hypothesis-seed={seed}"]
        for command in (rust, [sys.executable, *options]):
            done = subprocess.run(
                command, cwd=FUZZ.parent, text=True, capture_output=True, env=environment
            )
            if done.returncode:
                print(f"PROPTEST_RNG_SEED={seed}", done.stdout[-6000:], done.stderr[-2000:])
                return n_seeds, done.returncode
        n_seeds += 1
    return n_seeds, 0


def run(target: str, seconds: int) -> tuple[int, int]:
    """Return the executions of a target, and its exit code."""
    if target == PROPERTIES:
        return run_properties(seconds)
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
