"""Tuning: the search finds better parameters, repeats by seed and keeps its budget."""

import itertools
from types import SimpleNamespace

import cli_files as files
import estimators
import numpy as np
import pandas as pd
import pytest
import xmtree
from cli_files import LABELS, SETS, TEXTS, run
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler
from xmtree import _tune, metrics
from xmtree.cli import fit as cli_fit

X, Y = estimators.sparse(n=300)
ROWS, INDICATOR = estimators.label_sets(n=300)
WORDS = [[f"w{at}" for at in np.flatnonzero(row)] for row in INDICATOR.toarray()]
SMALL = {"GambleClassifier": {"n_estimators": 5}, "SAMMEClassifier": {"n_estimators": 5}}
NAMES = [name for name in _tune.SPACES if name != "TextClassifier"]


def learner(name, **params):
    return getattr(xmtree, name)(**SMALL.get(name, {}), **params)


def without_times(search):
    return [{k: v for k, v in row.items() if k != "seconds"} for row in search.tried_]


@pytest.mark.parametrize(
    ("name", "data"),
    [*((name, estimators.dense) for name in NAMES), ("OAAClassifier", estimators.sparse)],
)
def test_a_seed_repeats_the_search_and_the_model(name, data):
    rows, labels = data(n=300)
    model = learner(name)
    before = dict(vars(model))
    one, two = (xmtree.tune(model, rows, labels, n_candidates=9) for _ in range(2))
    assert vars(model) == before
    assert without_times(one) == without_times(two)
    assert [row["rows"] for row in one.tried_] == [100] * 9 + [300] * 3
    own = {key: getattr(model, key) for key in _tune.SPACES[name]}
    assert {key: one.tried_[0][key] for key in own} == own
    last = max(row["score"] for row in one.tried_[9:])
    assert one.best_score_ == last
    expected = learner(name, random_state=0).set_params(**one.best_params_).fit(rows, labels)
    estimators.same_predictions(one.best_estimator_, expected, rows)
    other = xmtree.tune(model, rows, labels, n_candidates=9, random_state=1, refit=False)
    assert without_times(other) != without_times(one)


@pytest.mark.parametrize("name", NAMES)
def test_all_values_of_a_space_can_be_trained(name):
    rows, labels = estimators.dense(n=60)
    for key, values in _tune.SPACES[name].items():
        for value in values:
            learner(name, random_state=0, **{key: value}).fit(rows, labels)


# So few rows hardly split the trees of LdSM.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize(
    ("name", "metric", "y"),
    [
        *(("OAAClassifier", name, INDICATOR) for name in ("p@1", "nDCG@3", "PSP@3", "recall_row")),
        ("OAAClassifier", "f1_micro", INDICATOR.toarray()),
        ("LdSMClassifier", "f1_micro", INDICATOR),
        ("LdSMClassifier", "p@1", WORDS),
        ("RandomTreeClassifier", "f1_micro", WORDS),
    ],
)
def test_label_sets(name, metric, y):
    search = xmtree.tune(learner(name), ROWS, y, n_candidates=2, metric=metric)
    assert len(search.tried_) == 2
    assert 0 < search.best_score_ <= 1
    fresh = learner(name, random_state=0).set_params(**search.best_params_).fit(ROWS, y)
    found, expected = search.best_estimator_.predict(ROWS), fresh.predict(ROWS)
    assert type(found) is type(expected)
    assert len(found) == 300 if isinstance(found, list) else found.shape == expected.shape


def test_a_part_of_label_lists_is_never_an_indicator():
    lists = [[0, 1]] * 150 + [[1, 0]] * 149 + [[2]]
    search = xmtree.tune(learner("OAAClassifier"), ROWS, lists, n_candidates=2)
    assert search.best_score_ > 0.95
    assert search.best_estimator_.classes_.tolist() == [0, 1, 2]


def test_the_score_is_that_of_held_out_rows():
    space = {"n_passes": [1, 8]}
    model = xmtree.OAAClassifier(random_state=3)
    search = xmtree.tune(model, X, Y, n_candidates=2, space=space, metric="ndcg@2")
    (train, test), *_ = search.cv.split(X)
    for row in search.tried_:
        assert row["rows"] == 300
        part = xmtree.OAAClassifier(random_state=3, n_passes=row["n_passes"]).fit(
            X[train], Y[train]
        )
        ranking, _ = part.predict_topk(X[test], 2)
        assert row["score"] == pytest.approx(metrics.ndcg_at_k(Y[test], ranking, 2), abs=0.02)
    given, other = (row["n_passes"] for row in search.tried_)
    assert given == 5
    assert other in (1, 8)
    assert search.best_estimator_.random_state == 3


def test_set_parameters_stay_and_weights_are_used():
    model = xmtree.OAAClassifier(loss="logistic", n_passes=2)
    assert list(_tune.space_of(model)) == ["learning_rate"]
    weights = np.where(Y == 0, 0.0, 1.0)
    search = xmtree.tune(model, X, Y, n_candidates=3, sample_weight=weights, classes=range(13))
    assert search.best_estimator_.n_passes == 2
    assert len(search.best_estimator_.classes_) == 13
    assert not np.any(search.best_estimator_.predict(X) == 0)
    frame = pd.DataFrame(X.toarray(), columns=[f"x{i}" for i in range(X.shape[1])])
    named = xmtree.tune(model, frame, pd.Series(Y), n_candidates=2)
    assert named.best_estimator_.feature_names_in_[1] == "x1"


def test_texts_and_pipelines():
    texts = itertools.chain(TEXTS, TEXTS)
    inner = xmtree.TextClassifier(xmtree.OAAClassifier(n_passes=7))
    search = xmtree.tune(inner, texts, LABELS * 2, n_candidates=4)
    assert {"word_ngrams", "learner__loss"} <= set(search.best_params_)
    assert "learner__n_passes" not in search.best_params_
    assert search.best_estimator_.predict(TEXTS[:1]).tolist() == LABELS[:1]
    assert "min_df" not in _tune.space_of(xmtree.TextClassifier(n_bits=10))
    assert "cost" not in _tune.space_of(xmtree.LdSMClassifier(scorers="none"))
    pipe = make_pipeline(MaxAbsScaler(), xmtree.LOMTreeClassifier(random_state=0))
    space = {"lomtreeclassifier__decay": [0.1, 1.0]}
    assert xmtree.tune(pipe, X, Y, n_candidates=2, space=space).best_estimator_.score(X, Y) > 0.9


def test_the_number_of_settings_follows_the_budget(monkeypatch):
    clock = itertools.count()
    monkeypatch.setattr(_tune, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    model = xmtree.OAAClassifier(random_state=0)
    scorer = metrics.make_scorers(1)["P@1"]
    # By this clock a fit on 100 of 300 rows takes one second, and one on all rows three.
    found = [_tune._affordable(model, X, Y, scorer, seconds, 36) for seconds in (0, 10, 40, 200)]
    assert found == [3, 3, 18, 36]


def test_a_search_ends_in_time_with_the_best_of_its_last_round(monkeypatch):
    now = 0.0
    monkeypatch.setattr(_tune, "time", SimpleNamespace(monotonic=lambda: now))

    def report(row):
        nonlocal now
        now += 1
        row["seconds"] = 1.0

    # One more fit on 100 of 300 rows and one on all are expected to take four seconds.
    for seconds, n_tried in ((0.5, 1), (7.5, 4), (36.5, 33)):
        now = 0.0
        model = xmtree.OAAClassifier()
        found = xmtree.tune(model, X, Y, minutes=seconds / 60, report=report)
        tried = found.tried_
        assert len(tried) == n_tried
        assert found.best_score_ == max(
            row["score"] for row in tried if row["rows"] == tried[-1]["rows"]
        )
        assert found.best_estimator_.score(X, Y) > 0.9


def test_a_short_time_is_enough_for_a_model():
    search = xmtree.tune(xmtree.LOMTreeClassifier(), X, Y, minutes=1e-6)
    assert len(search.tried_) == 1
    assert search.best_estimator_.score(X, Y) > 0.9


def test_ctrl_c_leaves_the_model_as_it_was():
    model = xmtree.OAAClassifier(random_state=0).fit(X, Y)
    before, params = model.predict_topk(X, 3)[1], model.get_params()

    def interrupt(row):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        xmtree.tune(model, X, Y, n_candidates=3, report=interrupt)
    assert model.get_params() == params
    np.testing.assert_array_equal(model.predict_topk(X, 3)[1], before)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give either minutes or n_candidates"),
        ({"minutes": 1, "n_candidates": 3}, "give either minutes or n_candidates"),
        ({"minutes": 0}, "minutes must be a finite number above 0, got 0"),
        ({"minutes": float("nan")}, "minutes must be a finite number above 0, got nan"),
        ({"minutes": "10m"}, "minutes must be a finite number above 0, got '10m'"),
        ({"n_candidates": 1}, "n_candidates must be an integer of at least 2, got 1"),
        ({"n_candidates": 2.5}, "n_candidates must be an integer of at least 2, got 2.5"),
        ({"n_candidates": 3, "metric": "accuracy"}, "unknown metric 'accuracy'; known are P@k"),
        ({"n_candidates": 3, "metric": "p@0"}, "unknown metric 'p@0'"),
        ({"n_candidates": 3, "space": {"alpha": [1]}}, "has no parameter 'alpha' of space"),
        ({"n_candidates": 3, "space": {}}, "no values to try"),
        ({"n_candidates": 3, "space": {"n_passes": []}}, "no values to try"),
        ({"n_candidates": 3, "X": X[:99], "y": Y[:99]}, "at least 100 rows, got 99"),
        ({"n_candidates": 3, "y": Y[:99]}, "inconsistent numbers of samples"),
        ({"n_candidates": 3, "model": LogisticRegression()}, "LogisticRegression has no space"),
        (
            {"n_candidates": 3, "model": xmtree.SAMMEClassifier(), "y": INDICATOR},
            "learns one label per row",
        ),
    ],
)
def test_errors(given, message):
    given = {"model": xmtree.OAAClassifier(), "X": X, "y": Y, **given}
    with pytest.raises(ValueError, match=message):
        xmtree.tune(given.pop("model"), given.pop("X"), given.pop("y"), **given)


@pytest.fixture
def table(tmp_path):
    columns = {"text": TEXTS * 2, "label": LABELS * 2}
    files.write_csv(tmp_path / "texts.csv", columns)
    files.write_csv(tmp_path / "sets.csv", {"text": TEXTS * 2, "labels": SETS * 2})
    rows, labels = estimators.dense(n=200)
    numbers = {f"x{i}": rows[:, i] for i in range(6)} | {"label": labels}
    files.write_csv(tmp_path / "numbers.csv", numbers)
    return tmp_path


@pytest.mark.parametrize("name", ["texts.csv", "sets.csv", "numbers.csv"])
def test_the_command_line_prints_what_it_tries(name, table, capsys):
    options = ["--learner", "oaa", "--set", "loss=logistic", "--tune", 3, "--metric", "nDCG@2"]
    assert run("fit", table / name, *options, "-o", table / "model") == 0
    lines = capsys.readouterr().err.splitlines()
    start = next(i for i, line in enumerate(lines) if line.split()[:2] == ["rows", "nDCG@2"])
    tried = [line.split() for line in lines[start + 1 : start + 4]]
    assert all(float(row[1]) <= 1 and "learning_rate=None" in " ".join(tried[0]) for row in tried)
    best = next(line for line in lines if line.startswith("best: "))
    model = xmtree.load(table / "model")
    inner = getattr(model, "learner_", model)
    assert f"n_passes={inner.n_passes}" in best
    assert inner.loss == "logistic"
    assert run("fit", table / name, *options, "-o", table / "again") == 0
    assert (table / "again").read_bytes() == (table / "model").read_bytes()
    assert run("predict", table / "model", table / name) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tune", "ten"], "a time such as 30s, 10m or 2h, or a number, got ten"),
        (["--tune", "0m"], "minutes must be a finite number above 0"),
        (["--tune", "1"], "n_candidates must be an integer of at least 2"),
        (["--tune", "5", "--metric", "auc"], "unknown metric 'auc'"),
        (["--metric", "p@1"], "--metric needs --tune"),
        (["--tune", "5", "--continue", "model"], "--tune cannot be given with --continue"),
    ],
)
def test_wrong_usage(options, message, table, capsys):
    assert run("fit", table / "texts.csv", *options, "-o", table / "model") == 2
    assert message in capsys.readouterr().err
    assert not (table / "model").exists()


def test_times_on_the_command_line():
    assert cli_fit._budget("90s") == {"minutes": 1.5}
    assert cli_fit._budget("1.5h") == {"minutes": 90}
    assert cli_fit._budget("27") == {"n_candidates": 27}


def test_ctrl_c_writes_no_model(table, monkeypatch, capsys):
    def interrupted(*arguments, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(_tune.Search, "fit", interrupted)
    options = ["--learner", "oaa", "--tune", 3, "-o", table / "model"]
    assert run("fit", table / "numbers.csv", *options) == 1
    assert "interrupted" in capsys.readouterr().err
    assert not (table / "model").exists()
