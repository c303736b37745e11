"""``mypy --strict`` accepts correct calls of a user's program and rejects wrong ones.

A wrong call has a ``type: ignore``; strict checking reports a ``type: ignore`` without an error.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent

PROGRAM = """
from typing import Any, assert_type

import numpy as np
import polars as pl
import scipy.sparse as sp
import xmtree
from numpy.typing import NDArray
from xmtree.datasets import make_xmc
from xmtree.metrics import precision_at_k

X, y = make_xmc(300, 50, 10, random_state=0)
assert_type(X, sp.csr_matrix)
tree = xmtree.LOMTreeClassifier(n_estimators=3, random_state=np.random.RandomState(0)).fit(X, y)
assert_type(tree, xmtree.LOMTreeClassifier)
assert_type(tree.predict(X), NDArray[Any])
assert_type(tree.predict_proba(X), NDArray[np.float32])
assert_type(tree.classes_, NDArray[Any])
labels, scores = tree.predict_topk(X, k=3, scores="probability")
assert_type(scores, NDArray[np.float32])
assert_type(precision_at_k(y, labels, k=1), float)
assert_type(precision_at_k(y, labels, k=[1, 3]), NDArray[np.float64])
assert_type(tree.predictor().predict_topk(X)[0], NDArray[Any])
tree.partial_fit([[0.0] * 50], ["new"], classes="grow", sample_weight=[2.0])

sets = xmtree.OAAClassifier(threshold=0.3).fit([[1.0, 0.0], [0.0, 1.0]], [["a", "b"], ["c"]])
found: list[list[str]] = sets.predict([[1.0, 0.0]])
rows = pl.DataFrame({"size": [1.0, 2.0], "color": ["red", "blue"]})
boosted = xmtree.GambleClassifier(categorical_features=["color"])
boosted.fit(rows, pl.Series(["a", "b"])).score(rows, ["a", "b"])
texts = xmtree.TextClassifier().fit(["a text", "another"], np.array([0, 1]))
active = xmtree.ActiveLearner(xmtree.OAAClassifier()).start(X)
active.teach(active.query(), y[:20])
model: xmtree.RecallTreeClassifier = xmtree.load("model")

tree.fit(X)  # type: ignore[call-arg]
tree.fit(3, y)  # type: ignore[arg-type]
tree.predict("text")  # type: ignore[arg-type]
tree.predict_topk(X, k=1.5)  # type: ignore[arg-type]
tree.predict_topk(X, scores="logit")  # type: ignore[arg-type]
tree.partial_fit(X, y, classes=3)  # type: ignore[arg-type]
texts.predict([1, 2])  # type: ignore[list-item]
xmtree.LOMTreeClassifier(n_estimators="many")  # type: ignore[arg-type]
xmtree.LOMTreeClassifier(depth=3)  # type: ignore[call-arg]
"""


def test_a_users_program_passes_strict_checks(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    # The settings of the package's own check, which is strict and whose cache serves here.
    command = [sys.executable, "-m", "mypy", str(program)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
