"""``sample_weight`` is relative to its mean, so its unit does not matter."""

import estimators
import numpy as np
import pytest
import xmtree
from sklearn.ensemble import AdaBoostClassifier

X, y = estimators.dense()
WEIGHTS = np.random.default_rng(0).integers(1, 9, len(y)).astype(float)
WEIGHTS[::7] = 0
#: Settings that use weights as they are, like Vowpal Wabbit.
AS_THEY_ARE = {"recall-tree-nag"}


def scores_of(model):
    labels, scores = model.predict_topk(X, 3)
    return labels.tolist(), scores


@pytest.mark.parametrize("name", sorted(set(estimators.ALL) - AS_THEY_ARE))
def test_the_unit_of_weights_does_not_matter(name):
    make = estimators.ALL[name]
    labels, scores = scores_of(make().fit(X, y, WEIGHTS))
    plain, plain_scores = scores_of(make().fit(X, y))
    for unit in (10, 1e-6, 1e6):
        again, scores_again = scores_of(make().fit(X, y, WEIGHTS * unit))
        assert again == labels
        np.testing.assert_allclose(scores_again, scores, rtol=1e-3, atol=1e-3)
        same, scores_again = scores_of(make().fit(X, y, np.full(len(y), unit)))
        assert same == plain
        np.testing.assert_array_equal(scores_again, plain_scores)


ONLINE = [
    name
    for name in sorted(set(estimators.ALL) - AS_THEY_ARE)
    if isinstance(
        estimators.ALL[name](),
        xmtree.OAAClassifier
        | xmtree.LOMTreeClassifier
        | xmtree.RecallTreeClassifier
        | xmtree.FilterTreeClassifier
        | xmtree.RandomTreeClassifier,
    )
]


def streamed(name, weights, cuts):
    model = estimators.ALL[name]()
    for part in np.split(np.arange(len(y)), cuts):
        model.partial_fit(
            X[part], y[part], np.unique(y), None if weights is None else weights[part]
        )
    return model


@pytest.mark.parametrize("name", ONLINE)
def test_the_unit_of_a_streams_weights_does_not_matter(name):
    labels, scores = scores_of(streamed(name, WEIGHTS, [100]))
    for unit in (10, 1e-4):
        again, scores_again = scores_of(streamed(name, WEIGHTS * unit, [100]))
        assert again == labels
        np.testing.assert_allclose(scores_again, scores, rtol=1e-3, atol=1e-3)
    plain, scores = scores_of(streamed(name, None, [100]))
    same, scores_again = scores_of(streamed(name, np.full(len(y), 1e-4), [100]))
    assert same == plain
    np.testing.assert_array_equal(scores_again, scores)


@pytest.mark.parametrize("name", [name for name in ONLINE if name != "lomtree-3"])
def test_batch_sizes_of_a_weighted_stream_do_not_matter(name):
    # lomtree-3 is missing, as each member of an ensemble shuffles each batch.
    whole, scores = scores_of(streamed(name, WEIGHTS, []))
    parts, scores_again = scores_of(streamed(name, WEIGHTS, [3, 5, 50, 120]))
    assert parts == whole
    np.testing.assert_array_equal(scores_again, scores)


def test_the_mean_weight_continues_after_fit_and_is_saved(tmp_path):
    model = xmtree.OAAClassifier(random_state=0).fit(X, y, WEIGHTS)
    model.save(tmp_path / "model")
    other = xmtree.OAAClassifier(random_state=0).fit(X, y, WEIGHTS * 1e-3)
    later = [
        (xmtree.load(tmp_path / "model"), 1.0),
        (model, 1.0),
        (other, 1e-3),
    ]
    found = [
        m.partial_fit(X, y, sample_weight=WEIGHTS * unit).decision_function(X) for m, unit in later
    ]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_allclose(found[0], found[2], rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "cls", [xmtree.OAAClassifier, xmtree.LOMTreeClassifier, xmtree.FilterTreeClassifier]
)
def test_weights_can_be_used_unscaled(cls):
    def fit(weight):
        model = cls(scale_weights=False, random_state=0)
        return model.fit(X, y, np.full(len(y), weight)).predict_topk(X, 2)[1]

    assert not np.allclose(fit(1.0), fit(0.01))


def test_boosting_passes_weights_that_sum_to_1():
    booster = AdaBoostClassifier(
        xmtree.LOMTreeClassifier(random_state=0), n_estimators=5, random_state=0
    )
    assert booster.fit(X, y).score(X, y) > 0.95


@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf, 1e300, 1e-300])
def test_weights_out_of_range_are_refused(weight):
    weights = np.ones(len(y))
    weights[3] = weight
    for make in (estimators.ALL["lomtree"], estimators.ALL["gamble"], estimators.ALL["ldsm"]):
        with pytest.raises(ValueError, match=r"sample_weight|[Nn]egative|NaN|infinity"):
            make().fit(X, y, weights)
