"""Count the instructions that lock a cache line while sixteen threads work.

On x86, taking a lock and changing a shared counter need such an instruction (a ``lock`` prefix, or
``xchg`` with memory), and waiting for another thread needs a system call. The loops are in
``rust/benches/atomics.rs``. valgrind counts each instruction, independent of the machine's cores,
and objdump shows which of them lock. Each loop runs once and twice, and the difference is its own
count without the preparation. Threads that share nothing take almost none per example.

    make check SELECT='atomics --only lomtree'

The table has, per example or per call with a single row (loops ``rows``): locking instructions of
xmtree, of rayon's threads looking for work, and of the allocator, then system calls that wait, and
the functions of xmtree with the most. The check fails if the first column is over its limit.
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
#: The most locking instructions per example.
MOST = 0.5
#: The most per call with a single row, which takes its scratch memory from a locked list.
MOST_PER_CALL = 8.0
#: Functions of rayon in which threads without work look for some.
IDLE = re.compile(r"crossbeam_|rayon_core::(registry::WorkerThread|sleep)")


@cache
def locking_addresses(program: str) -> frozenset[int]:
    """Return the addresses of the locking instructions of a program or library."""
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
    """Return the counts of callgrind's profile by kind and function.

    Locking instructions of libraries count for the allocator, which has nearly all of them. Waits
    are calls of the functions with which Rust waits for other threads.
    """
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
            # The line after a call has the cost of the called function, which is counted there.
            address, *_, n = line.split()
            if not called and int(address, 16) in locking_addresses(file):
                is_own = os.path.realpath(file) == os.path.realpath(program)
                kind = "idle" if IDLE.search(function) else "locking"
                counts[kind if is_own else "allocator", function] += int(n)
            called = ""
    return counts


def count(program: str, loop: str, n_times: int) -> tuple[int, Counter[tuple[str, str]]]:
    """Return the examples of a loop, and the counts of running it ``n_times``."""
    how = ["--dump-instr=yes", "--compress-strings=no", "--compress-pos=no", "--fair-sched=yes"]
    printed, profile = callgrind(how, program, loop, str(n_times))
    return int(printed), read_profile(profile, program)


def short(function: str) -> str:
    """Return the end of a function's name, without generics and hashes."""
    return re.sub(r"<.*?>|::\{\{closure\}\}|::h[0-9a-f]{16}|'\d+", "", function)[-60:]


def main() -> int:
    """Print the table; return 1 if a loop locks more than its limit."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="loops whose name contains TEXT")
    options = parser.parse_args()
    if not can_count("valgrind", "objdump"):
        return 0
    program, loops = build("atomics", options.only)
    passed = True
    print(f"{'loop':<24}" + "".join(f"{kind:>11}" for kind in KINDS))
    for loop in loops:
        n_examples, once = count(program, loop, 1)
        _, counts = count(program, loop, 2)
        counts.subtract(once)
        each = dict.fromkeys(KINDS, 0.0)
        for (kind, _), n in counts.items():
            each[kind] += n / n_examples
        passed &= each["locking"] <= (MOST_PER_CALL if loop.endswith("/rows") else MOST)
        own = [(short(name), n) for (kind, name), n in counts.most_common() if kind == "locking"]
        most = "; ".join(f"{name} {n}" for name, n in own[:2])
        print(f"{loop:<24}" + "".join(f"{n:>11.4f}" for n in each.values()), most, flush=True)
    return int(not passed)


if __name__ == "__main__":
    sys.exit(main())
