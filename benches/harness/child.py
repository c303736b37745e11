"""Run one case in this process: ``python -m harness.child CASE FOLDER OUT``, started by ``run.py``.

Writes ``measures.json`` into OUT. A case with an adapter reads the files of FOLDER and also writes
``answers.npy``, the labels of the test rows. Without arguments, prints the versions of the programs
that this environment has.
"""

import importlib
import json
import platform
import sys
from importlib import metadata
from pathlib import Path

from harness.case import Case, subject
from harness.measuring import all_cpu_seconds

#: Package name in cases, and distributions that may contain it.
DISTRIBUTIONS = {
    "vowpalwabbit": ("vowpalwabbit",),
    "omikuji": ("omikuji",),
    "napkinxc": ("napkinxc",),
    "fasttext": ("fasttext-numpy2-wheel", "fasttext-numpy2", "fasttext-wheel", "fasttext"),
    "lightgbm": ("lightgbm",),
    "scikit-learn": ("scikit-learn",),
    "libpecos": ("libpecos",),
}


def installed(names):
    """Yield names and versions of the installed distributions."""
    for name in names:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue


def main():
    if len(sys.argv) == 1:
        found = {package: next(installed(names), None) for package, names in DISTRIBUTIONS.items()}
        print(json.dumps({package: version for package, version in found.items() if version}))
        return
    case, folder, out = Case(**json.loads(sys.argv[1])), Path(sys.argv[2]), Path(sys.argv[3])
    if case.adapter:
        values = importlib.import_module("programs.base").run(case, folder, out)
    else:
        values = subject(case.subject).measure(case)
    versions = [f"Python {platform.python_version()}"]
    versions += installed(("numpy", "scipy", "scikit-learn"))
    found = {
        "values": values,
        "versions": ", ".join(versions),
        "seconds": round(all_cpu_seconds(), 2),
    }
    (out / "measures.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
