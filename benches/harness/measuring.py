"""Times, memory and file sizes. Imports only the standard library, for any environment."""

import os
import statistics
import time
from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(field):
    """Return megabytes on Linux: VmRSS of now, or VmHWM, the maximum since the last reset."""
    if not STATUS.is_file():
        return float("nan")
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def measured(function):
    """Return the result, and its wall-clock seconds, processor seconds and megabytes."""
    if RESET.is_file():
        RESET.write_text("5")
    before = resident("VmRSS")
    wall, cpu = time.perf_counter(), time.process_time()
    result = function()
    cost = {"s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    return result, cost | {"mb": resident("VmHWM") - before}


def cpu_seconds(function, *arguments):
    """Return the result and its processor seconds, which other processes disturb little."""
    start = time.process_time()
    result = function(*arguments)
    return result, time.process_time() - start


def median_us(call, *arguments):
    """Return the median microseconds of ``call`` over the arguments."""
    seconds = []
    for each in zip(*arguments, strict=True):
        start = time.perf_counter()
        call(*each)
        seconds.append(time.perf_counter() - start)
    return 1e6 * statistics.median(seconds)


def in_turns(work, choices, rounds):
    """Return the median seconds of ``work(choice)`` for each choice.

    The choices take turns, so a machine that slows down affects all of them.
    """
    seconds = {choice: [] for choice in choices}
    for _ in range(rounds):
        for choice, taken in seconds.items():
            start = time.perf_counter()
            work(choice)
            taken.append(time.perf_counter() - start)
    return {choice: statistics.median(taken) for choice, taken in seconds.items()}


def megabytes(path):
    """Return the size of a file, or of all files in a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 1e6


def all_cpu_seconds():
    """Return the processor seconds of this process and its children."""
    return sum(os.times()[:4])
