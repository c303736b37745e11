"""fastText, which takes each feature of a row as a word and ignores its value."""

import os

import fasttext
from programs.base import Adapter, label_lists, labeled

MARK = "__label__"
#: Fewest threads, even on fewer cores. With fewer threads fastText does not initialize most
#: weights (its issue 1061) and ends with "Encountered NaN" or high errors.
FEWEST = 10


class FastText(Adapter):
    """``options``: arguments of ``train_supervised``."""

    def prepare(self, X, y):
        path = self.folder / "train.fasttext"
        X, y = labeled(X, y, self.n_classes)
        lines = zip(label_lists(y), self.rows(X), strict=True)
        with path.open("w") as file:
            for labels, words in lines:
                file.write(" ".join(f"{MARK}{label}" for label in labels) + f" {words}\n")
        return str(path)

    def fit(self, data):
        cores = sorted(os.sched_getaffinity(0))[: self.threads]
        os.sched_setaffinity(0, cores)
        how = {**self.options, "seed": self.seed, "verbose": 0}
        self.model = fasttext.train_supervised(data, thread=max(len(cores), FEWEST), **how)

    def save(self, path):
        self.model.save_model(str(path))

    def load(self, path):
        self.model = fasttext.load_model(str(path))

    def rows(self, X):
        return [" ".join(f"f{column}" for column in words) for words in label_lists(X)]

    def predict(self, rows):
        return self.model.predict(rows, k=self.k)[0]

    def labels(self, answers):
        cut = len(MARK)
        return self.padded([[int(label[cut:]) for label in labels] for labels in answers])

    def one(self, X, i):
        return self.rows(X[i : i + 1])[0]
