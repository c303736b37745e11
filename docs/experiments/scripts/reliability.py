"""Draw the reliability of learners on test rows.

    python docs/experiments/scripts/reliability.py DATA

DATA is the folder of the data sets. Writes docs/figures/reliability-letter.svg (26 labels) and
docs/figures/reliability-naics.svg (1,055 labels).
"""

import io
import re
import sys
from pathlib import Path

import matplotlib as mpl
import xmtree
from xmtree.datasets import load_xmc
from xmtree.plotting import plot_reliability

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
    # Without a date, which would change with each run.
    text = io.StringIO()
    axes.figure.savefig(text, format="svg", metadata={"Date": None})
    # Coordinates are rounded to a tenth of a point, to save space.
    short = re.sub(r"\n\s+", "\n", re.sub(r"(\d\.\d)\d+", r"\1", text.getvalue()))
    Path(f"docs/figures/reliability-{name}.svg").write_text(short)


mpl.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "xmtree"})
for data, name in SETS.items():
    draw(Path(sys.argv[1]) / data, name)
