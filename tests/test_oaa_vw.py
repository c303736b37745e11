"""The optimizer "nag" equals Vowpal Wabbit's --oaa on every example."""

import json
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from xmtree import _core

GOLDEN = Path(__file__).parent / "golden"
STREAMS = ("sparse", "scales", "weighted", "many")


def cases():
    for stream in STREAMS:
        with np.load(GOLDEN / f"vw_{stream}.npz") as golden:
            for run, options in json.loads(str(golden["meta"]))["options"].items():
                # xmtree supports only the median, not other quantiles.
                if run.startswith("oaa") and "--quantile_tau" not in options:
                    yield pytest.param(stream, run, options, id=f"{stream}-{run}")


def params_of(options):
    words = options.split()

    def value(name, default):
        return words[words.index(name) + 1] if name in words else default

    return {
        "loss": value("--loss_function", "squared"),
        "learning_rate": float(value("--learning_rate", 0.5)),
        "optimizer": "nag",
        "scaling": "none",
        "scale_weights": False,
    }


@pytest.mark.parametrize(("stream", "run", "options"), list(cases()))
def test_every_prediction_equals_vw(stream, run, options):
    with np.load(GOLDEN / f"vw_{stream}.npz") as golden:
        meta = json.loads(str(golden["meta"]))
        d = meta["n_features"]

        def rows(part):
            csr = tuple(golden[f"{part}_{name}"] for name in ("data", "indices", "indptr"))
            return sp.csr_array(csr, shape=(len(csr[2]) - 1, d))

        model = _core.Classifier("oaa", json.dumps(params_of(options)), meta["n_classes"])
        X, y = rows("train"), golden["train_y"].astype(np.uint32)
        weight = golden["train_weight"].astype(np.float64)
        for number in (1, 2):
            expected = golden[f"{run}.pass{number}"]
            # Without training, there is no prediction.
            learned = np.flatnonzero(weight > 0)[2 - number :]
            predicted = []
            for i in range(len(y)):
                if i in learned:
                    predicted.append(model.predict(X[[i]])[0])
                model.partial_fit(X[[i]], y[[i]], weight[[i]])
            np.testing.assert_array_equal(predicted, expected[learned])
        scores = model.predict_scores(rows("test"))
        np.testing.assert_allclose(scores, golden[f"{run}.scores_test"], rtol=0, atol=1e-3)
        labels, _ = model.predict_topk(rows("test"), 1)
        np.testing.assert_array_equal(labels[:, 0], golden[f"{run}.test"])
