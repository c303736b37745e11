"""Count the instructions of the hot loops under valgrind and compare them with the recorded counts.

``rust/benches/instructions.rs`` has the loops. ``instructions.json`` beside it has the recorded
counts and the versions they were recorded with. The check fails if a loop takes over 2 % more than
recorded. Counts depend on the compiler, the C library and the instruction set that valgrind
emulates, not on the load or clock of the machine. If one of the three differs from the record,
counts are printed but not compared.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

RECORD = Path("rust/benches/instructions.json")
# In percent. Runs of the same program differ by far less.
TOLERANCE = 2.0
# The function in rust/benches/instructions.rs whose instructions are counted.
MEASURED = "*measured_loop*"


def can_count(*tools: str) -> bool:
    """Return whether this machine has the architecture and the tools; print what is missing."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if platform.machine() not in ("x86_64", "AMD64"):
        missing = ["an x86-64 machine", *missing]
    if missing:
        print(f"skipped: this check needs {', '.join(missing)}")
    return not missing


def output(*command: str) -> str:
    """Return what a command prints."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def build(bench: str, only: str) -> tuple[str, list[str]]:
    """Build a bench program; return its path and the loops whose names contain ``only``."""
    command = ["cargo", "bench", "--locked", "--bench", bench, "--no-run", "--quiet"]
    messages = output(*command, "--message-format=json-render-diagnostics")
    built = [json.loads(line) for line in messages.splitlines()]
    program = [message["executable"] for message in built if message.get("executable")][-1]
    loops = [loop for loop in output(program).split() if only in loop]
    if not loops:
        raise SystemExit(f"--only: no loop has {only!r} in its name")
    return program, loops


def callgrind(options: list[str], program: str, *arguments: str) -> tuple[str, str]:
    """Return what a program prints under callgrind, and the text of the profile."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "callgrind.out"
        valgrind = ["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={file}"]
        run = subprocess.run(
            [*valgrind, *options, program, *arguments],
            capture_output=True,
            text=True,
            # A fixed environment, because its size shifts the stack and thereby the counts.
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TMPDIR": folder},
        )
        if run.returncode != 0:
            raise RuntimeError(f"valgrind failed on {arguments}:\n{run.stdout}{run.stderr}")
        return run.stdout.strip(), file.read_text(encoding="utf-8")


def total(profile: str) -> int:
    """Return the number of instructions in a profile of callgrind."""
    found = re.search(r"^(?:totals|summary): (\d+)", profile, re.MULTILINE)
    if found is None:
        raise ValueError("the profile of callgrind has no line of totals")
    return int(found[1])


def count(program: str, loop: str) -> tuple[int, str]:
    """Return the instructions of a loop, and the instruction set that it used."""
    printed, profile = callgrind([f"--toggle-collect={MEASURED}"], program, loop)
    return total(profile), printed


def compare(recorded: dict[str, int], now: dict[str, int]) -> tuple[list[str], bool]:
    """Return the lines of a table, and whether all loops are recorded and none takes more."""
    lines = [f"{'loop':<28} {'recorded':>14} {'now':>14} {'change in %':>12}"]
    passed = True
    for loop in dict.fromkeys([*recorded, *now]):
        before, after = recorded.get(loop), now.get(loop)
        change, word = "", "NOT RECORDED" if before is None else "GONE"
        if before is not None and after is not None:
            percent = 100.0 * (after - before) / before
            change = f"{percent:+z.2f}"
            word = "MORE" if percent > TOLERANCE else "fewer" if percent < -TOLERANCE else ""
        passed &= word in ("", "fewer")
        numbers = [f"{n:,}" if n is not None else "-" for n in (before, after)]
        lines.append(f"{loop:<28} {numbers[0]:>14} {numbers[1]:>14} {change:>12} {word}".rstrip())
    return lines, passed


def main() -> int:
    """Record or compare the counts; return 1 if a loop takes more or is not recorded."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", action="store_true", help="write the counts, do not compare")
    parser.add_argument("--only", default="", metavar="TEXT", help="loops whose name contains TEXT")
    options = parser.parse_args()
    if not can_count("valgrind"):
        return 0
    record = {"made with": {}, "instructions": {}}
    if RECORD.exists():
        record = json.loads(RECORD.read_text(encoding="utf-8"))
    program, loops = build("instructions", options.only)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counted = list(pool.map(lambda loop: count(program, loop), loops))
    now = {loop: instructions for loop, (instructions, _) in zip(loops, counted, strict=True)}
    made_with = {
        "compiler": output("rustc", "--version"),
        "instruction set": counted[0][1],
        "C library": " ".join(platform.libc_ver()),
    }
    same = record["made with"] == made_with
    recorded = {loop: n for loop, n in record["instructions"].items() if options.only in loop}
    lines, passed = compare(recorded, now)
    print("\n".join(lines))
    if options.record:
        others = {loop: n for loop, n in record["instructions"].items() if loop not in recorded}
        if others and not same:
            parser.error("--only: other loops were recorded with other versions; record all")
        record = {"made with": made_with, "instructions": dict(sorted((others | now).items()))}
        RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        print(f"recorded in {RECORD}")
        return 0
    if not same:
        recorded_with, this = (", ".join(d.values()) for d in (record["made with"], made_with))
        print(f"not compared: recorded with {recorded_with}; this is {this}")
        print("run make check SELECT=record on the parent commit first")
        return 0
    if not passed:
        print(f"over {TOLERANCE:g} % more; record intended changes with make check SELECT=record")
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
