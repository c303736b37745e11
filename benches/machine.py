"""What figures depend on beside the code: the machine, its load, the commit."""

import os
import platform
import re
import subprocess
from pathlib import Path


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
    """The commit of the sources, marked where they have been changed since."""
    command = ["git", "-C", Path(__file__).parent, "describe", "--always", "--dirty"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def load():
    """Of the last minute; where others compete for the cores, times are distorted."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
