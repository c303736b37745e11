"""Vowpal Wabbit through its Python class: batches are read from a binary cache that is not timed,
single rows are passed as text."""

import itertools
import re
import tempfile
from math import ceil, log2
from pathlib import Path

import numpy as np
import pylibvw
import scipy.sparse as sp
from programs.base import Adapter, label_lists, labeled
from vowpalwabbit import Workspace

#: Limits of the logarithm of the number of weights.
FEWEST_BITS, MOST_BITS = 18, 24


class VowpalWabbit(Adapter):
    """``options``: ``learner``, the name of its option, and further options."""

    @property
    def loss(self):
        """Return the loss of the tree of label sets, which loading a model needs too."""
        return ["--loss_function", "logistic"] if self.k > 1 else []

    def prepare(self, X, y):
        if self.k == 1:
            return self.cached(sp.csr_matrix(X), y + 1)
        X, y = labeled(X, y, self.n_classes)
        return self.cached(X, [",".join(map(str, labels)) for labels in label_lists(y)])

    def cached(self, X, labels):
        """Return options that read a binary cache, written by a pass of a fast learner."""
        weights = X.shape[1] * self.n_classes
        self.bits = int(np.clip(ceil(log2(weights)), FEWEST_BITS, MOST_BITS))
        text = Path(tempfile.mkdtemp(dir=self.folder)) / "examples.txt"
        write(text, X, labels)
        source = ["-d", text, "--cache_file", text.with_suffix(".cache")]
        quick = ["--log_multi" if self.k == 1 else "--plt", self.n_classes, "-b", self.bits]
        opened(*quick, *self.loss, *source, "-k").finish()
        return source

    def fit(self, data):
        options = {name: value for name, value in self.options.items() if name != "learner"}
        more = itertools.chain.from_iterable((f"--{key}", value) for key, value in options.items())
        size = [f"--{self.options['learner']}", self.n_classes, "-b", self.bits]
        seed = ["--random_seed", self.seed, "--holdout_off"]
        self.model = opened(*size, *self.loss, *seed, *more, *data)

    def save(self, path):
        self.model.save(path)
        self.model.finish()

    def load(self, path):
        top = [] if self.k == 1 else ["--top_k", self.k]
        self.loaded = ["-t", "-i", path, *self.loss, *top]
        self.model = opened(*self.loaded)

    def rows(self, X):
        return self.cached(sp.csr_matrix(X), ["1"] * X.shape[0])

    def ready(self, rows):
        self.answers = rows[1].with_suffix(".answers")
        # This constructor does not read the examples; run_parser does.
        return pylibvw.vw(arguments(*self.loaded, *rows, "-p", self.answers))

    def predict(self, rows):
        pylibvw.vw.run_parser(rows)
        pylibvw.vw.finish(rows)

    def labels(self, answers):
        lines = self.answers.read_text().splitlines()
        if self.k == 1:
            return np.array(lines, dtype=np.int64)[:, None] - 1
        return self.padded([[int(label) for label in re.findall(r"\d+", line)] for line in lines])

    def one(self, X, i):
        row = sp.csr_matrix(X[i : i + 1])
        return "|" + "".join(f" {c}:{v:g}" for c, v in zip(row.indices, row.data, strict=True))

    def predict_one(self, row):
        return self.model.predict(row)


def opened(*options):
    return Workspace(arg_list=arguments(*options))


def arguments(*options):
    return ["--quiet", *map(str, options)]


def write(path, X, labels):
    """Write examples in Vowpal Wabbit's text format."""
    with open(path, "w") as file:
        for i, label in enumerate(labels):
            span = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[span], X.data[span], strict=True)
            file.write(f"{label} |" + "".join(f" {c}:{v:g}" for c, v in pairs) + "\n")
