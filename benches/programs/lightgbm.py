"""LightGBM, files as its own text."""

from lightgbm import Booster, LGBMClassifier
from programs.base import Adapter


class Program(Adapter):
    """``options``: parameters of ``LGBMClassifier``."""

    def fit(self, data):
        model = LGBMClassifier(
            **self.options, random_state=self.seed, n_jobs=self.threads, verbose=-1
        )
        self.booster = model.fit(*data).booster_

    def save(self, path):
        self.booster.save_model(str(path))

    def load(self, path):
        self.booster = Booster(model_file=str(path))

    def predict(self, rows):
        # Columns are the labels: all of them occur.
        return self.booster.predict(rows, num_threads=self.threads).argmax(axis=1)
