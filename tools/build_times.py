#!/usr/bin/env python3
"""Build the extension from nothing, as `make` does, and report the processor time of each crate.

    python tools/build_times.py [OUT]

Processor time depends little on other work on the machine, unlike the time by the clock; from it
the report also gives a least time by the clock on two cores: dependencies side by side, then this
crate, whose code is made on one core (one codegen unit, link-time optimisation over all crates).
With CARGO_PROFILE_RELEASE_LTO=thin or CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 other settings are
tried. Cargo calls this file in the place of rustc (RUSTC_WRAPPER) to measure each call.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "benches"))

import machine

ROOT = Path(__file__).resolve().parent.parent
#: Where a call of rustc writes its time.
TIMES = "XMTREE_BUILD_TIMES"
#: Crates of fewer seconds are added up.
LEAST = 1.0
C_LIBRARIES = "build scripts, with the C libraries of .xz and .zst"
SETTINGS = ("CARGO_PROFILE_RELEASE_LTO", "CARGO_PROFILE_RELEASE_CODEGEN_UNITS")


def processor_time(whose: int = resource.RUSAGE_CHILDREN) -> float:
    """Of all processes that this one has started and that have ended, or of this one."""
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def call_rustc(command: list[str], times: str) -> int:
    """Runs rustc and adds a line of its crate and time to the file ``times``."""
    # Cargo hands its jobs out by pipes that rustc inherits.
    status = subprocess.run(command, close_fds=False).returncode
    if "--crate-name" in command:
        name = command[command.index("--crate-name") + 1]
        own = processor_time(resource.RUSAGE_SELF)
        with open(times, "a", encoding="utf-8") as file:
            file.write(f"{processor_time()} {own} {name}\n")
    return status


def build() -> tuple[Counter[str], float]:
    """Seconds of each crate, and by the clock."""
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder, "times")
        environment = os.environ | {
            TIMES: str(times),
            "RUSTC_WRAPPER": str(Path(__file__).resolve()),
            "CARGO_TARGET_DIR": str(Path(folder, "target")),
            "PYO3_PYTHON": sys.executable,
            "PYO3_BUILD_EXTENSION_MODULE": "1",
        }
        command = ["cargo", "rustc", "--quiet", "--locked", "--release", "--lib"]
        command += ["--features", "python", "--crate-type", "cdylib"]
        began = time.perf_counter()
        subprocess.run(command, check=True, cwd=ROOT, env=environment)
        elapsed = time.perf_counter() - began
        seconds: Counter[str] = Counter()
        measuring = 0.0
        for line in times.read_text(encoding="utf-8").splitlines():
            used, own, name = line.split()
            measuring += float(own)
            is_script = name.startswith("build_script")
            seconds[C_LIBRARIES if is_script else name] += float(used)
        # Cargo itself hardly counts; what is left over are the scripts as they run.
        seconds[C_LIBRARIES] += processor_time() - measuring - seconds.total()
        return seconds, elapsed


def compiler() -> str:
    """The version of rustc."""
    ran = subprocess.run(["rustc", "--version"], check=True, capture_output=True, text=True)
    return ran.stdout.strip()


def report(seconds: Counter[str], elapsed: float, compiler: str) -> str:
    """The table, with what it depends on."""
    settings = ", ".join(f"{name}={os.environ[name]}" for name in SETTINGS if name in os.environ)
    total, own = seconds.total(), seconds["xmtree"]
    large = [(name, used) for name, used in seconds.most_common() if used >= LEAST]
    lines = [
        "Written by tools/build_times.py, not by hand.",
        f"date: {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}",
        f"machine: {machine.described()}",
        f"commit: {machine.commit()}",
        f"compiler: {compiler}",
        f"settings: {settings or 'those of Cargo.toml'}",
        f"by the clock: {elapsed:.0f} s, load average {machine.load()} after",
        "",
        "processor time in seconds",
        *(f"{used:8.1f}  {name}" for name, used in large),
        f"{total - sum(used for _, used in large):8.1f}  the other crates",
        f"{total:8.1f}  total",
        f"{(total - own) / 2 + own:8.1f}  least by the clock on two cores",
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    if TIMES in os.environ:
        return call_rustc(sys.argv[1:], os.environ[TIMES])
    text = report(*build(), compiler())
    print(text, end="")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
