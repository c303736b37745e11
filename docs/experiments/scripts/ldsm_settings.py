"""Tries settings of LdSM on label sets: held out, or on the test part.

    cd docs/experiments/scripts
    python ldsm_settings.py default loss=logistic,scaling=none --sets delicious
    python ldsm_settings.py max_nodes=4000 --trees 10 50
    python ldsm_settings.py --ablation --seeds 0 1

A setting is ``default``, ``authors`` or ``paper`` (``LdSMClassifier.AUTHORS``, ``.PAPER``), or
options that are changed, separated by commas; ``paper,loss=centred`` changes the paper's. Held out
is a fifth of the train part, the same for all settings, or ``--folds`` of them in turn; choose
there, and use ``--on test`` to report. Rows without labels are left out of the measures, which are
means over seeds and folds, in per cent: P@1, 3, 5, nDCG@3, 5 and PSP@1, 3, 5. Depth and nodes are
the largest of all trees.
"""

import argparse
import ast
import itertools
import statistics
import sys
from pathlib import Path

import numpy as np
from xmtree import LdSMClassifier

sys.path.insert(0, str(Path(__file__).parents[3] / "benches"))

from data_sets import ROOT
from ldsm_tasks import SETS, deepest, formed, grown, load

#: One thing at a time that makes the default what it is, and then several.
ABLATION = (
    "default",
    "scorers='none'",
    "loss='logistic'",
    "scaling='none'",
    "scaling='row'",
    "max_nodes=1000",
    "n_epochs=20",
    "arity=4",
    "scorers='none',loss='logistic'",
    "scorers='none',scaling='none'",
    "scorers='none',max_nodes=1000",
    "authors",
    "authors,max_nodes=8000",
)


def setting(text):
    """``"default"``, ``"authors"``, ``"paper"`` or ``"a=1,b='c'"`` as options, quotes optional."""
    options = {}
    for part in text.split(","):
        if part in {"authors", "paper"}:
            options |= getattr(LdSMClassifier, part.upper())
        elif part != "default":
            name, equals, value = part.partition("=")
            if not equals:
                raise ValueError(f"not default, authors, paper or NAME=VALUE: {part!r}")
            try:
                options[name] = ast.literal_eval(value)
            except (ValueError, SyntaxError):
                options[name] = value
    return options


def rows(tasks, text, arguments):
    """A line per number of trees."""
    options = setting(text)
    counts = arguments.trees or [options.pop("n_estimators", LdSMClassifier().n_estimators)]
    found: dict[int, list] = {}
    for seed, task in itertools.product(arguments.seeds, tasks):
        seeded = {**options, "random_state": seed}
        for count, model, seconds in grown(task, seeded, counts, arguments.jobs):
            found.setdefault(count, []).append((task.measure(model), *deepest(model), seconds))
    for count, lines in found.items():
        measures, depths, nodes, seconds = zip(*lines, strict=True)
        spread = np.std([one[0] for one in measures]) if len(lines) > 1 else 0.0
        yield [
            tasks[0].name,
            text,
            str(count),
            *formed(np.mean(measures, axis=0)),
            f"{spread:.1f}",
            str(max(depths)),
            str(max(nodes)),
            f"{statistics.mean(seconds):.1f}",
        ]


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("settings", nargs="*", help="default, authors, paper, or NAME=VALUE,...")
    parser.add_argument("--ablation", action="store_true", help="the settings of the ablation")
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--on", choices=("held-out", "test"), default="held-out")
    parser.add_argument("--seeds", nargs="+", type=int, default=[0])
    parser.add_argument("--folds", type=int, default=1, help="fifths held out in turn, at most 5")
    parser.add_argument("--trees", nargs="+", type=int, help="numbers of trees, rising")
    parser.add_argument("--jobs", type=int, default=-1)
    arguments = parser.parse_args()
    settings = [*arguments.settings, *(ABLATION if arguments.ablation else ())] or ["default"]
    for text in settings:
        LdSMClassifier(**setting(text))
    missing = [name for name in arguments.sets if not (ROOT / name).is_dir()]
    if missing:
        sys.exit(f"{', '.join(missing)}: not below {ROOT}; XMTREE_DATA says where the sets are")
    folds = f", {arguments.folds} folds" if arguments.on == "held-out" else ""
    print(f"# {arguments.on}{folds}, mean over seeds {arguments.seeds}, no rows without labels")
    print("set | setting | trees | P@1/3/5 | nDCG@3/5 | PSP@1/3/5 | sd P@1 | depth | nodes | s")
    for name in arguments.sets:
        folds = range(arguments.folds if arguments.on == "held-out" else 1)
        tasks = [load(name, arguments.on, fold) for fold in folds]
        for text in settings:
            for cells in rows(tasks, text, arguments):
                print(" | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
