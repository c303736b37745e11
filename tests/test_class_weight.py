"""``class_weight`` multiplies ``sample_weight`` in all learners, for labels and label sets."""

import copy
import pickle

import estimators
import numpy as np
import pytest
import scipy.sparse as sp
import xmtree
from sklearn.base import clone
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV
from sklearn.utils.class_weight import compute_class_weight
from xmtree.cli import main
from xmtree.datasets import save_xmc

NAMES = list(estimators.ALL)
SHARES = np.array([0.6, 0.2, 0.1, 0.05, 0.03, 0.02])
WEIGHTS = {0: 1, 1: 2.5, 3: 7, 4: 0.5}
CENTRES = np.random.default_rng(1).normal(size=(len(SHARES), 8)) * 0.9


def imbalanced(n, seed):
    """Return overlapping classes, the rarest with one row in fifty."""
    random = np.random.default_rng(seed)
    y = random.choice(len(SHARES), n, p=SHARES)
    return CENTRES[y] + random.normal(size=(n, CENTRES.shape[1])), y


X, y = imbalanced(900, 0)


def row_weights(weights, labels):
    return np.array([weights.get(label, 1.0) for label in labels])


#: Three nodes, or a paper's weights, which concentrate on few rows, do not learn rare classes.
TOO_SMALL = ("lomtree-swapping", "gamble-paper", "samme-real")


@pytest.mark.parametrize("name", [name for name in NAMES if name not in TOO_SMALL])
def test_the_balanced_error_falls(name):
    rows, labels = imbalanced(3000, 5)

    def error(**more):
        found = estimators.ALL[name](**more).fit(X, y).predict(rows)
        return 1 - balanced_accuracy_score(labels, found)

    assert error(class_weight="balanced") < error() - 0.01


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", estimators.PYTHON)
@pytest.mark.parametrize("more", [None, np.random.default_rng(2).integers(0, 4, len(y))])
def test_class_weight_multiplies_row_weights(name, more):
    own = np.ones(len(y)) if more is None else more
    expected = estimators.ALL[name]().fit(X, y, own * row_weights(WEIGHTS, y))
    found = estimators.ALL[name](class_weight=WEIGHTS).fit(X, y, more)
    estimators.same_predictions(found, expected, X)
    # The definition of scikit-learn, with counts weighted by sample_weight.
    totals = compute_class_weight("balanced", classes=np.unique(y), y=y, sample_weight=own)
    expected = estimators.ALL[name]().fit(X, y, own * totals[y])
    found = estimators.ALL[name](class_weight="balanced").fit(X, y, more)
    estimators.same_predictions(found, expected, X)


def test_progressive_error_and_early_stopping_use_class_weight():
    settings = {"scale_weights": False, "early_stopping": True, "random_state": 0}
    found = xmtree.OAAClassifier(class_weight="balanced", **settings).fit(X, y)
    plain = xmtree.OAAClassifier(**settings).fit(X, y)
    weighted = compute_class_weight("balanced", classes=np.unique(y), y=y)[y]
    expected = xmtree.OAAClassifier(**settings).fit(X, y, weighted)
    assert found.progressive_loss_ == expected.progressive_loss_ > plain.progressive_loss_ + 0.05
    assert found.n_examples_seen_ == expected.n_examples_seen_


def test_classes_of_weight_0_do_not_count():
    keep = y != 5
    some = xmtree.OAAClassifier(class_weight="balanced", random_state=0)
    weighted = clone(some).fit(X, y, keep.astype(float)).predict_topk(X, 1)
    np.testing.assert_array_equal(weighted[1], some.fit(X[keep], y[keep]).predict_topk(X, 1)[1])


@pytest.mark.parametrize("name", estimators.ONLINE)
def test_a_stream(name, tmp_path):
    def stream(model, weights=None):
        for part in np.array_split(np.arange(len(y)), 3):
            own = None if weights is None else weights[part]
            model.partial_fit(X[part], y[part], np.unique(y), own)
        return model

    expected = stream(estimators.ALL[name](), row_weights(WEIGHTS, y))
    found = stream(estimators.ALL[name](class_weight=dict(WEIGHTS)))
    estimators.same_predictions(found, expected, X)
    found.save(tmp_path / "model")
    again = xmtree.load(tmp_path / "model")
    assert again.class_weight == WEIGHTS
    for model in (found, again, pickle.loads(pickle.dumps(found))):
        model.partial_fit(X, y)
        estimators.same_predictions(model, copy.deepcopy(found), X)
        # A dictionary that is changed in place is detected too.
        model.class_weight[0] = 50
        with pytest.raises(ValueError, match=r"class_weight .* was \{0: 1, .* is now \{0: 50"):
            model.partial_fit(X, y)


def test_balanced_is_refused_by_partial_fit():
    model = xmtree.LOMTreeClassifier(class_weight="balanced", random_state=0)
    with pytest.raises(ValueError, match="is not allowed for partial_fit"):
        model.partial_fit(X, y, classes=np.unique(y))
    assert not model.__sklearn_is_fitted__()
    model.fit(X, y)
    with pytest.raises(ValueError, match="is not allowed for partial_fit"):
        model.partial_fit(X, y)
    before = model.n_examples_seen_
    model.set_params(class_weight={0: 0.5}).partial_fit(X, y)
    assert model.n_examples_seen_ == before + len(y)


CLASSES = {
    "integers": (np.arange(6) * 3, 9),
    "strings": (np.array(["a", "b", "c", "d", "e", "f"]), "d"),
    "objects": (np.array(["a", "b", "c", "d", "e", "f"], object), np.str_("d")),
    "floats": (np.arange(6.0), np.float32(3)),
}


@pytest.mark.parametrize("kind", CLASSES)
def test_labels_of_any_type(kind, tmp_path):
    classes, label = CLASSES[kind]
    weights = {label: np.float32(8)}
    model = xmtree.GambleClassifier(n_estimators=5, class_weight=weights, random_state=0)
    expected = clone(model).set_params(class_weight=None)
    model.fit(X, classes[y]).save(tmp_path / "model")
    expected.fit(X, classes[y], row_weights({3: 8.0}, y))
    for found in (model, xmtree.load(tmp_path / "model")):
        estimators.same_predictions(found, expected, X)
        assert found.class_weight == weights


WRONG = [
    ({7: 2}, "labels that are not in y: 7; the classes are 0, 1, 2, 3, 4 and 1 more"),
    ({"0": 2}, "not in y: '0';"),
    ({None: 2}, "None, which is not a label"),
    ({(0, 1): 2}, r"not in y: \(0, 1\);"),
    ({np.datetime64("2020-01-01"): 2}, "labels that are not in y"),
    (dict.fromkeys(range(10, 18), 1), "not in y: 10, 11, 12, 13, 14 and 3 more;"),
    ({0: -1}, "finite and not negative, got -1 for 0"),
    ({0: np.nan}, "finite and not negative, got nan for 0"),
    ({0: np.inf}, "finite and not negative, got inf for 0"),
    ({0: "two"}, "finite and not negative, got 'two' for 0"),
    ({0: 1, "a": 1}, "class_weight mixes labels of different types"),
    ("uneven", "class_weight"),
    ([1, 2], "class_weight"),
]


@pytest.mark.parametrize(("weights", "message"), WRONG, ids=[repr(case[0]) for case in WRONG])
def test_invalid_class_weights_are_refused(weights, message):
    for make in (estimators.ALL["lomtree"], estimators.ALL["gamble"]):
        with pytest.raises(ValueError, match=message):
            make(class_weight=weights).fit(X, y)
    with pytest.raises(ValueError, match=message):
        estimators.ALL["oaa"](class_weight=weights).partial_fit(X, y, classes=np.unique(y))


def test_unknown_labels_are_allowed_if_each_class_has_a_weight():
    weights = dict.fromkeys(range(9), 2.0) | {0: 1.0}
    found = estimators.ALL["gamble"](class_weight=weights).fit(X, y)
    expected = estimators.ALL["gamble"]().fit(X, y, row_weights(weights, y))
    estimators.same_predictions(found, expected, X)
    assert xmtree.OAAClassifier(class_weight={}).fit(X, y).classes_.tolist() == list(range(6))


SETS = np.zeros((len(y), 6), int)
SETS[np.arange(len(y)), y] = 1
SETS[::3, 2] = 1
SETS[::5] = 0
FORMS = {
    "dense": SETS,
    "sparse": sp.csr_matrix(SETS),
    "lists": [np.flatnonzero(row).tolist() for row in SETS],
}


@pytest.mark.parametrize(
    ("name", "form"),
    [("oaa", form) for form in FORMS] + [(name, "sparse") for name in estimators.MULTILABEL[1:]],
)
@pytest.mark.parametrize("weights", ["balanced", WEIGHTS], ids=["balanced", "dict"])
@pytest.mark.parametrize("more", [None, np.random.default_rng(2).integers(0, 4, len(y))])
def test_a_label_set_has_the_mean_weight_of_its_labels(name, form, weights, more):
    own = np.ones(len(y)) if more is None else more
    of_label = np.array([WEIGHTS.get(label, 1.0) for label in range(6)])
    if weights == "balanced":
        counts = own @ SETS
        of_label = counts.sum() / 6 / counts
    of_row = np.array([of_label[row > 0].mean() if row.any() else 1.0 for row in SETS])
    expected = estimators.ALL[name]().fit(X, FORMS[form], own * of_row)
    found = estimators.ALL[name](class_weight=weights).fit(X, FORMS[form], more)
    estimators.same_predictions(found, expected, X)
    if isinstance(weights, dict):  # balanced, a second model for the calibration has its own
        assert found.score(X, expected.predict(X)) == 1


def test_rare_labels_are_found_more_often_in_label_sets():
    rows, labels = imbalanced(3000, 5)
    found = []
    for weights in (None, "balanced"):
        model = xmtree.LdSMClassifier(class_weight=weights, max_nodes=60, random_state=0)
        sets = model.fit(X, np.eye(6, dtype=int)[y]).predict(rows)
        found.append(sets[labels >= 4][:, 4:].sum())
    assert found[1] > 1.3 * found[0]


TEXTS = [f"word{label} word{label + 1} other{row % 7}" for row, label in enumerate(y)]


@pytest.mark.parametrize("labels", [y, SETS], ids=["labels", "sets"])
def test_texts(labels, tmp_path):
    learner = xmtree.OAAClassifier(class_weight=WEIGHTS)
    expected = xmtree.TextClassifier(learner, random_state=0).fit(TEXTS, labels)
    found = xmtree.TextClassifier(xmtree.OAAClassifier(), class_weight=WEIGHTS, random_state=0).fit(
        TEXTS, labels
    )
    estimators.same_predictions(found, expected, TEXTS)
    # The learner's own comes first.
    both = xmtree.TextClassifier(learner, class_weight="balanced", random_state=0)
    estimators.same_predictions(both.fit(TEXTS, labels), expected, TEXTS)
    plain = xmtree.TextClassifier(xmtree.OAAClassifier(), random_state=0).fit(TEXTS, labels)
    assert not np.array_equal(plain.predict_topk(TEXTS)[1], expected.predict_topk(TEXTS)[1])
    found.save(tmp_path / "model")
    again = xmtree.load(tmp_path / "model")
    assert again.class_weight == WEIGHTS
    estimators.same_predictions(again, found, TEXTS)
    for wrong, message in [("uneven", "class_weight"), ({0: -1}, "finite and not negative")]:
        with pytest.raises(ValueError, match=message):
            xmtree.TextClassifier(class_weight=wrong).fit(TEXTS, labels)
    automatic = xmtree.TextClassifier(class_weight="balanced").fit(TEXTS, labels)
    assert automatic.learner_.class_weight == "balanced"


def test_a_stream_of_texts():
    model = xmtree.TextClassifier(n_bits=12, class_weight=WEIGHTS, random_state=0)
    model.partial_fit(TEXTS, y, classes=np.unique(y)).partial_fit(TEXTS, y)
    learner = xmtree.OAAClassifier(class_weight=WEIGHTS, random_state=0)
    expected = xmtree.TextClassifier(learner, n_bits=12)
    expected.partial_fit(TEXTS, y, classes=np.unique(y)).partial_fit(TEXTS, y)
    estimators.same_predictions(model, expected, TEXTS)
    with pytest.raises(ValueError, match="class_weight must not change during training"):
        model.set_params(class_weight={0: 5.0}).partial_fit(TEXTS, y)


def test_different_numbers_of_rows_and_weights():
    for weights in ("balanced", {0: 2.0}):
        model = xmtree.OAAClassifier(class_weight=weights)
        with pytest.raises(ValueError, match=r"900 rows, y has 800"):
            model.fit(X, y[:800])
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(X, y[:800], np.ones(900))


def test_grid_search_over_class_weight():
    grid = {"class_weight": [None, "balanced", {0: 0.1}]}
    model = xmtree.OAAClassifier(loss="softmax", random_state=0)
    search = GridSearchCV(model, grid, scoring="balanced_accuracy", cv=3).fit(X, y)
    assert search.best_params_["class_weight"] is not None


def test_the_command_line(tmp_path, capsys):
    train, model = tmp_path / "train", tmp_path / "model"
    save_xmc(train, sp.csr_matrix(X), y)
    fit = ["fit", str(train), "--learner", "oaa", "-o", str(model), "--set"]
    assert main([*fit, "class_weight=balanced"]) == 0
    assert xmtree.load(model).class_weight == "balanced"
    for passes in ("1", "3"):
        assert main([*fit, 'class_weight={"3": 10}', "--passes", passes]) == 0
        assert xmtree.load(model).class_weight == {3: 10}
    capsys.readouterr()
    assert main(["inspect", str(model)]) == 0
    assert "{3: 10}" in capsys.readouterr().out
    assert main([*fit, "class_weight=balanced", "--passes", "1"]) == 2
    assert "label counts before training" in capsys.readouterr().err
    assert main([*fit, "class_weight=uneven"]) == 2
