"""The versions of the programs that this environment has, as JSON: ``python -m peers.versions``."""

import json
import sys
from importlib import metadata
from pathlib import Path

#: A package's name in ``programs.py``, and the distributions that may have it.
DISTRIBUTIONS = {
    "vowpalwabbit": ("vowpalwabbit",),
    "omikuji": ("omikuji",),
    "napkinxc": ("napkinxc",),
    "fasttext": ("fasttext-numpy2-wheel", "fasttext-numpy2", "fasttext-wheel", "fasttext"),
    "lightgbm": ("lightgbm",),
    "scikit-learn": ("scikit-learn",),
    "libpecos": ("libpecos",),
}


def found():
    """Package -> distribution and version, of those that are installed."""
    versions = {}
    for package, names in DISTRIBUTIONS.items():
        for name in names:
            try:
                versions.setdefault(package, f"{name} {metadata.version(name)}")
            except metadata.PackageNotFoundError:
                continue
    return versions


def missing():
    """Package -> why tools/install-peers could not install it here."""
    path = Path(sys.prefix) / "missing.txt"
    lines = path.read_text().splitlines() if path.is_file() else []
    return dict(line.split(": ", 1) for line in lines)


if __name__ == "__main__":
    print(json.dumps({"found": found(), "missing": missing()}))
