"""Count the instructions that lock a cache line, in work shared out over sixteen threads.

Every lock that is taken and every counter that threads share begins with such an instruction
(x86: a ``lock`` prefix, or ``xchg`` with memory), every wait for another thread with a system call.
``rust/benches/atomics.rs`` has the work; valgrind counts each instruction of it, whatever the
machine has of cores, and objdump tells which of them lock. Each loop is run once and twice, the
difference is what it takes: preparing it is in both. Where rows are many there must be next to none
for each: threads that share nothing do not wait for one another, however many they are.

    make check SELECT='atomics --only lomtree'

For each example or call of a single row (rows): locking instructions of xmtree, those of rayon's
threads that look for work, those of the allocator, each on the arena of its own thread, and system
calls that wait; then where most of the first are.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from pathlib import Path

from counts import build, callgrind, can_count

KINDS = ("locking", "idle", "allocator", "waits")
#: Such instructions for each example, at most.
MOST = 0.5
#: Functions of rayon's that threads without work look for some in.
IDLE = re.compile(r"crossbeam_|rayon_core::(registry::WorkerThread|sleep)")
#: And for each call that predicts a single row: it borrows its memory from a list under a lock.
MOST_OF_CALLS = 8.0


@cache
def locking_addresses(program: str) -> frozenset[int]:
    """Addresses of the instructions of a program or library that lock a cache line."""
    if not Path(program).is_file():
        return frozenset()
    listing = subprocess.run(
        ["objdump", "--disassemble", "--no-show-raw-insn", program],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    locks = re.finditer(r"^ *([0-9a-f]+):\s+(?:lock\b|xchg\b.*\()", listing, re.MULTILINE)
    return frozenset(int(found[1], 16) for found in locks)


def read_profile(profile: str, program: str) -> Counter[tuple[str, str]]:
    """The counts of callgrind's file by kind and function: locking instructions of the program, of
    its threads that look for work, of libraries (of the allocator, nearly all), and waits, which
    are system calls by the function that Rust waits for other threads with."""
    counts: Counter[tuple[str, str]] = Counter()
    file, function, called = "", "", ""
    for line in profile.splitlines():
        if line.startswith("ob="):
            file = line[3:]
        elif line.startswith("fn="):
            function = line[3:]
        elif line.startswith("cfn="):
            called = line[4:]
        elif line.startswith("calls="):
            if re.match(r"syscall\b|__lll_lock_wait", called):
                counts["waits", called] += int(line[6:].split()[0])
        elif line.startswith("0x"):
            # The line after that of a call has what the called function took.
            address, *_, n = line.split()
            if not called and int(address, 16) in locking_addresses(file):
                is_own = os.path.realpath(file) == os.path.realpath(program)
                kind = "idle" if IDLE.search(function) else "locking"
                counts[kind if is_own else "allocator", function] += int(n)
            called = ""
    return counts


def count(program: str, loop: str, n_times: int) -> tuple[int, Counter[tuple[str, str]]]:
    """The examples of a loop, and the counts of a run that does it so many times."""
    how = ["--dump-instr=yes", "--compress-strings=no", "--compress-pos=no", "--fair-sched=yes"]
    printed, profile = callgrind(how, program, loop, str(n_times))
    return int(printed), read_profile(profile, program)


def short(function: str) -> str:
    """A name without the crate's own path, generics and hashes."""
    return re.sub(r"<.*?>|::\{\{closure\}\}|::h[0-9a-f]{16}|'\d+", "", function)[-60:]


def main() -> int:
    """Prints the table; 1 if a loop locks more lines than it may."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="loops whose name contains TEXT")
    if not can_count("valgrind", "objdump"):
        return 0
    program, loops = build("atomics", parser.parse_args().only)
    is_sound = True
    print(f"{'loop':<24}" + "".join(f"{kind:>11}" for kind in KINDS))
    for loop in loops:
        n_examples, once = count(program, loop, 1)
        _, counts = count(program, loop, 2)
        counts.subtract(once)
        each = dict.fromkeys(KINDS, 0.0)
        for (kind, _), n in counts.items():
            each[kind] += n / n_examples
        is_sound &= each["locking"] <= (MOST_OF_CALLS if loop.endswith("/rows") else MOST)
        own = [(short(name), n) for (kind, name), n in counts.most_common() if kind == "locking"]
        most = "; ".join(f"{name} {n}" for name, n in own[:2])
        print(f"{loop:<24}" + "".join(f"{n:>11.4f}" for n in each.values()), most, flush=True)
    return 0 if is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
