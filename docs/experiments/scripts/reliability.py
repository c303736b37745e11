"""Draw the reliability of learners on test rows.

    python docs/experiments/scripts/reliability.py DATA

DATA is the folder of the data sets. Writes docs/figures/reliability-letter.svg (26 labels) and
docs/figures/reliability-naics.svg (1,055 labels).
"""

import re
import sys
from pathlib import Path

import matplotlib as mpl
import xmtree
from matplotlib import cycler
from xmtree.datasets import load_xmc
from xmtree.plotting import plot_reliability
from xmtree.plotting._figures import COLORS, house_style, write

SETS = {"letter": "letter", "naics2017-index": "naics"}
LEARNERS = {
    "OAA": xmtree.OAAClassifier,
    "LOMtree": xmtree.LOMTreeClassifier,
    "LdSM": xmtree.LdSMClassifier,
}


def draw(folder, name):
    X, y = load_xmc(folder / "train.txt.xz", multilabel=False)
    X_test, y_test = load_xmc(folder / "test.txt.xz", multilabel=False)
    axes = None
    for title, new in LEARNERS.items():
        model = new(random_state=0).fit(X, y)
        found = model.predict_topk(X_test, 1, scores="probability")
        axes = plot_reliability(y_test, *found, n_bins=15, label=title, ax=axes)
    axes.figure.set_size_inches(5, 5)
    path = Path(f"docs/figures/reliability-{name}.svg")
    write(axes.figure, path, "")
    # Coordinates are rounded to a tenth of a point, to save space.
    path.write_text(
        re.sub(r"\n\s+", "\n", re.sub(r"(?<!error )(\d\.\d)\d+", r"\1", path.read_text()))
    )


with house_style():
    mpl.rcParams["axes.prop_cycle"] = cycler(color=[COLORS[name] for name in LEARNERS])
    for data, name in SETS.items():
        draw(Path(sys.argv[1]) / data, name)
