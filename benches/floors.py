"""Time each hot loop of the core and compare it with what the machine allows at best.

    make floors

runs ``rust/benches/floors.rs``, which says what is counted, and writes its table, with the machine,
the commit and the load, to a file.
"""

import datetime
import subprocess
import sys
from pathlib import Path

from machine import commit, described, load


def main():
    """Writes the table to the file that the first argument names."""
    before = load()
    command = ["cargo", "bench", "--locked", "--quiet", "--bench", "floors"]
    run = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    rustc = subprocess.run(["rustc", "--version"], check=True, stdout=subprocess.PIPE, text=True)
    head = [
        "Written by make floors, not by hand.",
        f"date: {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M} UTC",
        f"machine: {described()}",
        f"commit: {commit()}",
        f"versions: {rustc.stdout.strip()}",
        f"load average: {before} before, {load()} after (1 is this run itself)",
        "",
    ]
    text = "\n".join(head) + "\n" + run.stdout
    Path(sys.argv[1]).write_text(text, encoding="utf-8")
    print(text, end="")


if __name__ == "__main__":
    main()
