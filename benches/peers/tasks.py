"""The problems: data sets where they are, those inside the package otherwise, and made ones."""

from dataclasses import dataclass

import numpy as np
from data_sets import ROOT
from extreme import tasks as files
from ldsm_tasks import load as load_sets
from xmtree.datasets import load_demo, load_xmc, make_xmc

from peers.programs import CLASSES, SETS, TABLE

#: The made problems have equal rows and columns for each number of classes.
SHAPE = {"n_features": 2**14, "nnz": 30, "exponent": 0.5}
N_TRAIN, N_TEST = 100_000, 10_000
DEMOS = ("naics2017-index", "onet-titles", "letter")


@dataclass(frozen=True)
class Task:
    """A problem.

    Attributes
    ----------
    name : of the data set
    kind : what its labels and rows are
    words : whether features are words
    n_classes : of a made problem
    """

    name: str
    kind: str
    words: bool = False
    n_classes: int | None = None

    def present(self):
        """Whether the rows are here or can be made."""
        return bool(self.n_classes) or self.name in DEMOS or (ROOT / self.name).is_dir()

    def parts(self):
        """Rows and labels to train on and to test; FileNotFoundError where they are not here."""
        if self.n_classes:
            shape = SHAPE | {"n_classes": self.n_classes}
            made = make_xmc(N_TRAIN + N_TEST, **shape, random_state=0)
            return files.split(made, N_TRAIN)
        folder = ROOT / self.name
        if folder.is_dir() and self.kind == SETS:
            task = load_sets(self.name)
            return task.X, task.y, task.X_test, task.y_test
        if folder.is_dir():
            paths = (folder / f"{part}.txt.xz" for part in ("train", "test"))
            return [array for path in paths for array in load_xmc(path, multilabel=False)]
        if self.name in DEMOS:
            data = load_demo(self.name)
            return data.X_train, data.y_train, data.X_test, data.y_test
        raise FileNotFoundError(f"{self.name} is not below {ROOT} (XMTREE_DATA)")

    def write(self, folder):
        """The files that every program's process reads."""
        X, y, X_test, y_test = self.parts()
        if self.n_classes:
            # With fewer rows than classes some do not occur: labels are counted as they come.
            y = np.unique(np.concatenate([y, y_test]), return_inverse=True)[1]
            y, y_test = y[: X.shape[0]], y[X.shape[0] :]
        # In no order: Vowpal Wabbit and fastText learn rows as they come, classes one by one else.
        order = np.random.default_rng(0).permutation(X.shape[0])
        return files.save(self.name, folder, X[order], y[order], X_test, y_test)


TASKS = (
    Task("naics2017-index", CLASSES, words=True),
    Task("news20-bydate", CLASSES, words=True),
    Task("omniglot", CLASSES),
    Task("bibtex", SETS, words=True),
    Task("onet-titles", SETS, words=True),
    Task("stackex-cooking", SETS, words=True),
    Task("letter", TABLE),
    Task("satimage", TABLE),
    Task("made-1000", CLASSES, words=True, n_classes=1_000),
    Task("made-10000", CLASSES, words=True, n_classes=10_000),
    Task("made-100000", CLASSES, words=True, n_classes=100_000),
)
