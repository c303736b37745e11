"""Times, memory and sizes, measured in this process. Needs the standard library alone: every
program runs in an environment that has it."""

import os
import statistics
import time
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(field):
    """Megabytes on Linux: VmRSS are those now, VmHWM the most since the last reset."""
    if not STATUS.is_file():
        return float("nan")
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def measured(function):
    """The result, and what it took: seconds by the clock and of the processor, megabytes."""
    if RESET.is_file():
        RESET.write_text("5")
    before = resident("VmRSS")
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    cost = {"s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    return result, cost | {"mb": resident("VmHWM") - before}


def cpu_seconds(function, *arguments):
    """The result, and the processor's seconds, which others on the machine disturb less."""
    start = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - start


def median_us(call, *arguments):
    """Microseconds of ``call`` for one after the other of the arguments, the median."""
    seconds = []
    for each in zip(*arguments, strict=True):
        start = time.perf_counter()
        call(*each)
        seconds.append(time.perf_counter() - start)
    return 1e6 * statistics.median(seconds)


def in_turns(work, choices, rounds):
    """Median seconds of ``work(choice)``. The choices take turns, so that a machine that changes
    its pace does the same to all."""
    seconds = {choice: [] for choice in choices}
    for _ in range(rounds):
        for choice, taken in seconds.items():
            start = time.perf_counter()
            work(choice)
            taken.append(time.perf_counter() - start)
    return {choice: statistics.median(taken) for choice, taken in seconds.items()}


def megabytes(path):
    """Of a file, or of all files of a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def all_cpu_seconds():
    """The processor's seconds of this process and of those that it has started."""
    return sum(os.times()[:4])
