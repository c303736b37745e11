"""How much memory this process holds, on Linux."""

from pathlib import Path

STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def resident(field):
    """Megabytes: VmRSS are those now, VmHWM the most since the last reset."""
    lines = STATUS.read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def reset_peak():
    """From now on VmHWM counts anew."""
    RESET.write_text("5")
