"""Count the instructions of the hot loops under valgrind and compare them with what is recorded.

``rust/benches/instructions.rs`` has the loops, ``instructions.json`` beside it the counts and with
what they were recorded. A loop that takes over 2 % more than recorded fails the check. Counts
depend on the compiler, on the C library (memory is allocated and copied by it) and on the
instruction set that valgrind emulates, not on the load or the clock of the machine. Where one of
these differs from what was recorded, the table is printed and nothing is judged.
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
# In percent. The same program differs from run to run by far less.
TOLERANCE = 2.0
# Where counting begins and ends, in rust/benches/instructions.rs.
MEASURED = "*measured_loop*"


def can_count(*tools: str) -> bool:
    """Whether this machine has the architecture and the tools; says what is missing."""
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if platform.machine() not in ("x86_64", "AMD64"):
        missing = ["an x86-64 machine", *missing]
    if missing:
        print(f"skipped: it needs {', '.join(missing)}")
    return not missing


def output(*command: str) -> str:
    """What a command prints."""
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def build(bench: str, only: str) -> tuple[str, list[str]]:
    """Builds the program with the loops as `cargo bench` would; its path, and the loops whose name
    contains a text."""
    command = ["cargo", "bench", "--locked", "--bench", bench, "--no-run", "--quiet"]
    messages = output(*command, "--message-format=json-render-diagnostics")
    built = [json.loads(line) for line in messages.splitlines()]
    program = [message["executable"] for message in built if message.get("executable")][-1]
    loops = [loop for loop in output(program).split() if only in loop]
    if not loops:
        raise SystemExit(f"--only: no loop's name contains {only!r}")
    return program, loops


def total(profile: str) -> int:
    """The instructions that a file of callgrind counts in all."""
    found = re.search(r"^(?:totals|summary): (\d+)", profile, re.MULTILINE)
    if found is None:
        raise ValueError("callgrind's file has no line of totals")
    return int(found[1])


def callgrind(options: list[str], program: str, *arguments: str) -> tuple[str, str]:
    """What a program prints under callgrind, and the file of counts."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "callgrind.out"
        valgrind = ["valgrind", "--tool=callgrind", "--quiet", f"--callgrind-out-file={file}"]
        run = subprocess.run(
            [*valgrind, *options, program, *arguments],
            capture_output=True,
            text=True,
            # The size of the environment moves the stack.
            env={"PATH": os.environ["PATH"], "LC_ALL": "C", "TMPDIR": folder},
        )
        if run.returncode != 0:
            what = " ".join(arguments)
            raise RuntimeError(f"valgrind failed on {what}:\n{run.stdout}{run.stderr}")
        return run.stdout.strip(), file.read_text(encoding="utf-8")


def count(program: str, loop: str) -> tuple[int, str]:
    """The instructions of a loop and the instruction set that it used."""
    printed, profile = callgrind([f"--toggle-collect={MEASURED}"], program, loop)
    return total(profile), printed


def verdict(recorded: int | None, now: int | None) -> tuple[str, str]:
    """The change in percent, and what it means: "", "fewer", or a word that fails the check."""
    if recorded is None:
        return "", "NOT RECORDED"
    if now is None:
        return "", "GONE"
    change = 100.0 * (now - recorded) / recorded
    word = "MORE" if change > TOLERANCE else "fewer" if change < -TOLERANCE else ""
    return f"{change:+z.2f}", word


def compare(recorded: dict[str, int], now: dict[str, int]) -> tuple[list[str], set[str]]:
    """The lines of a table, and the words of `verdict` that occur in it."""
    lines = [f"{'loop':<28} {'recorded':>14} {'now':>14} {'change in %':>12}"]
    words = set()
    for loop in dict.fromkeys([*recorded, *now]):
        before, after = recorded.get(loop), now.get(loop)
        change, word = verdict(before, after)
        words.add(word)
        numbers = [f"{n:,}" if n is not None else "-" for n in (before, after)]
        lines.append(f"{loop:<28} {numbers[0]:>14} {numbers[1]:>14} {change:>12} {word}".rstrip())
    return lines, words - {""}


def main() -> int:
    """Counts, then records or compares; 1 if a loop takes more instructions or is not recorded."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--record", action="store_true", help="write the counts, compare nothing")
    parser.add_argument("--only", default="", metavar="TEXT", help="loops whose name contains TEXT")
    options = parser.parse_args()
    if not can_count("valgrind"):
        return 0
    if not (RECORD.exists() or options.record):
        parser.error(f"there is no {RECORD}; write it with: make check SELECT=record")
    program, loops = build("instructions", options.only)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        counted = list(pool.map(lambda loop: count(program, loop), loops))
    now = {loop: instructions for loop, (instructions, _) in zip(loops, counted, strict=True)}
    made_with = {
        "compiler": output("rustc", "--version"),
        "instruction set": counted[0][1],
        "C library": " ".join(platform.libc_ver()),
    }
    record_of, everything = {}, {}
    if RECORD.exists():
        record = json.loads(RECORD.read_text(encoding="utf-8"))
        record_of, everything = record["made with"], record["instructions"]
    recorded = {loop: n for loop, n in everything.items() if options.only in loop}
    if options.record:
        if options.only and record_of not in ({}, made_with):
            recorded_with = ", ".join(record_of.values())
            parser.error(f"--only: the other loops were recorded with {recorded_with}")
        kept = {loop: n for loop, n in everything.items() if loop not in recorded}
        record = {"made with": made_with, "instructions": dict(sorted((kept | now).items()))}
        RECORD.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    lines, words = compare(recorded, now)
    print("\n".join(lines))
    if options.record:
        print(f"recorded in {RECORD}")
        return 0
    if record_of != made_with:
        recorded_with, this_is = (", ".join(of.values()) for of in (record_of, made_with))
        print(f"not judged: recorded with {recorded_with}; this is {this_is}")
        print("record on the commit before the change (make check SELECT=record), then check again")
        return 0
    if words:
        print(f"Tolerance: {TOLERANCE:g} %. What is meant is recorded by: make check SELECT=record")
    return 1 if words - {"fewer"} else 0


if __name__ == "__main__":
    sys.exit(main())
