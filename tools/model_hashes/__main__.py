"""Hashes of what every learner learns and predicts, for changes that must change nothing.

Fits all learners, in nearly all of their settings, on small made-up data. Each case prints a line:
its name, the number of threads, and a hash of all predictions, scores, probabilities and trees and
of the progressive loss, to the last bit. Only the public Python API is used, so the script runs on
any two commits whose API agrees:

    python tools/model_hashes > before.txt
    python tools/model_hashes > after.txt     # with the other commit installed
    diff before.txt after.txt

The hashes of one commit depend on the versions of numpy and SciPy and may depend on the machine:
take both files in the same environment. Bytes of model files are not hashed, their format may
change; models that were saved and loaded, or pickled, are hashed by what they predict and learn.

The script fails if a case gives different hashes on 1 and on 2 threads. To see what
differs, ``--parts`` prints a line for every hashed array, and ``--only TEXT`` runs just the cases
whose names contain TEXT.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import warnings

from cases import learners
from kinds import Case, digest
from sklearn.exceptions import ConvergenceWarning

THREADS = (1, 2)


def hash_of(case: Case, n_jobs: int, show_parts: bool) -> str:
    """The hash of all that a case computes."""
    total = hashlib.sha256()
    for name, value in case.run(n_jobs):
        part = hashlib.sha256()
        digest(value, part)
        total.update(name.encode() + part.digest())
        if show_parts:
            print(f"    {name} {part.hexdigest()[:16]}")
    return total.hexdigest()[:16]


def main() -> int:
    """Prints the hashes; 1 if some depend on the number of threads."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name contains TEXT")
    parser.add_argument("--parts", action="store_true", help="a line for every hashed array")
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    names, uneven = set(), []
    for case in learners():
        if case.name in names:
            raise ValueError(f"two cases are called {case.name!r}")
        names.add(case.name)
        if options.only not in case.name:
            continue
        hashes = []
        for n_jobs in THREADS:
            hashes.append(hash_of(case, n_jobs, options.parts))
            print(f"{case.name.replace(' ', '_')} {n_jobs} {hashes[-1]}", flush=True)
        if len(set(hashes)) > 1:
            uneven.append(case.name)
    for name in uneven:
        print(f"{name}: differs between {THREADS} threads", file=sys.stderr)
    return 1 if uneven else 0


if __name__ == "__main__":
    sys.exit(main())
