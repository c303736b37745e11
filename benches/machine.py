"""What figures depend on beside the code: the machine, its load, the commit."""

import os
import platform
import re
import subprocess
from pathlib import Path

#: What benchmarks write or fill in, left out.
WRITTEN = [
    f":(top,exclude){path}"
    for path in ("benches/figures*", "benches/reproduction.jsonl", "docs", "README.md", "DESIGN.md")
]


def processor():
    """The model as the kernel knows it, where it says so."""
    try:
        found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.M)
    except OSError:
        found = None
    return found[1] if found else platform.processor() or platform.machine()


def described():
    """Processor, cores and system in a line."""
    return f"{processor()}, {os.cpu_count()} cores, {platform.system()}"


def commit():
    """The commit of the repository, marked where files have been changed since that no benchmark
    writes."""
    try:
        changed = git("status", "--porcelain", "--untracked-files=no", "--", ":/", *WRITTEN)
        return git("describe", "--always") + "-dirty" * bool(changed)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def git(*arguments):
    """What git says about this repository."""
    command = ["git", "-C", Path(__file__).parent, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def load():
    """Of the last minute; where others compete for the cores, times are distorted."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
