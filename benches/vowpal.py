"""Vowpal Wabbit, run as its own program and timed.

The examples are read from a binary cache that is made beforehand; what the program
needs to start, and to load its model, is measured by runs on one example and taken off.
"""

import statistics
import subprocess
import sys
import time

import numpy as np
from scipy.sparse import vstack


def run(*arguments):
    """Runs Vowpal Wabbit and returns the seconds it took."""
    command = [sys.executable, "-m", "vowpalwabbit", "--quiet", *map(str, arguments)]
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - start


def per_example(seconds, start, n):
    """Seconds per example of the median run, less those it took to start."""
    median = statistics.median(seconds)
    assert median > 2 * start, f"{median:.2f} s, of which {start:.2f} s to start: too noisy"
    return (median - start) / n


class Task:
    """A data set, in memory for us and as caches for Vowpal Wabbit, shuffled once.

    Vowpal Wabbit has 2**``bits`` weights. Where they are fewer than classes times
    features it is faster, and its errors are higher.
    """

    def __init__(self, data, folder, bits=22):
        X, y, self.X_test, self.y_test = data
        order = np.random.default_rng(0).permutation(len(y))
        self.X, self.y = X[order], y[order]
        self.folder, self.bits = folder, str(bits)
        self.n_classes = int(max(y.max(), self.y_test.max())) + 1

    def _source(self, name, X, y):
        """Options that read these examples; writes them when they are first wanted."""
        text, cache = self.folder / f"{name}.txt", self.folder / f"{name}.cache"
        if not cache.exists():
            write(text, X, y + 1)
            # A pass of a quick learner leaves the examples in binary form for all.
            quick = ["--log_multi", self.n_classes, "-b", self.bits]
            run("-d", text, *quick, "--cache_file", cache)
        return ["-d", text, "--cache_file", cache]

    def _one(self):
        return self._source("one", self.X[:1], self.y[:1])

    def train(self, options, passes, rounds, longer=1):
        """Seconds per example of the median run.

        Timed are ``longer`` times as many passes, where starting takes as long as these.
        """

        def learn(source, passes):
            model = ["-b", self.bits, "-f", self.folder / "vw.model"]
            return run(*source, *options, "--passes", passes, "--holdout_off", *model)

        source = self._source("train", self.X, self.y)
        start = statistics.median(learn(self._one(), 1) for _ in range(5))
        seconds = [learn(source, passes * longer) for _ in range(rounds)]
        if longer > 1:
            learn(source, passes)
        return per_example(seconds, start, len(self.y) * passes * longer)

    def predict(self, repeats):
        """Seconds per example of the median of three runs, and the answers.

        The test examples come ``repeats`` times over, so that it takes much longer
        than starting.
        """

        def ask(source):
            answers = ["-p", self.folder / "answers.txt"]
            return run(*source, "-t", "-i", self.folder / "vw.model", *answers)

        many = vstack([self.X_test] * repeats, "csr"), np.tile(self.y_test, repeats)
        source = self._source(f"test-{repeats}", *many)
        start = statistics.median(ask(self._one()) for _ in range(5))
        seconds = [ask(source) for _ in range(3)]
        answers = np.loadtxt(self.folder / "answers.txt", dtype=int)[: len(self.y_test)] - 1
        return per_example(seconds, start, len(self.y_test) * repeats), answers


def write(path, X, labels):
    """The examples in Vowpal Wabbit's text format, with labels as it counts them."""
    with open(path, "w") as file:
        for i, label in enumerate(labels):
            span = slice(X.indptr[i], X.indptr[i + 1])
            pairs = zip(X.indices[span], X.data[span], strict=True)
            file.write(f"{label} |" + "".join(f" {c}:{v:g}" for c, v in pairs) + "\n")


def compare(say, what, train, predict, train_goal, predict_goal):
    """Says how times compare: ``train`` and ``predict`` are ours and theirs, in seconds."""
    for part, (ours, theirs), (least, aim) in (
        ("training", train, train_goal),
        ("prediction", predict, predict_goal),
    ):
        say(
            f"{what}, {part}: xmtree {1e6 * ours:.2f} us ({1 / ours:,.0f}/s), "
            f"vw {1e6 * theirs:.2f} us ({1 / theirs:,.0f}/s): {theirs / ours:.1f} times as fast "
            f"(required {least}, aim {aim})"
        )
