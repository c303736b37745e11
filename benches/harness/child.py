"""One case in this process: ``run.py`` starts ``python -m harness.child CASE FOLDER OUT``. Without
arguments it prints the versions of the programs that this environment has.

Leaves ``measures.json`` in OUT; of a program that an adapter runs on the files of FOLDER also
``answers.npy``, the labels of the test rows.
"""

import importlib
import json
import platform
import sys
from importlib import metadata
from pathlib import Path

from harness.case import Case, subject
from harness.measuring import all_cpu_seconds

#: A package's name in cases, and the distributions that may have it.
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
    """The names and versions of those distributions that are installed."""
    for name in names:
        try:
            yield f"{name} {metadata.version(name)}"
        except metadata.PackageNotFoundError:
            continue


def main():
    if len(sys.argv) == 1:
        found = {package: next(installed(of), None) for package, of in DISTRIBUTIONS.items()}
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
