"""Statements of the GAMBLE paper, on the package's committees.

J. Huang, S. Ertekin, Y. Song, H. Zha, C. L. Giles, "Efficient Multiclass Boosting Classification
with Active Learning", SDM 2007. docs/theory.md has the verdicts. Theorem 3.2 and Corollary 3.1
are in ``reference/gamble.py``, which ``test_gamble.py`` compares with the package.
"""

import numpy as np
import pytest
from scipy.special import softmax
from xmtree import GambleClassifier

PAPER = GambleClassifier.PAPER


def cells(n_classes, weighted, seed=0):
    """Return four values of x, the examples of each class at them, and the true p(class | x)."""
    random = np.random.default_rng(seed)
    # All different, so that no two classes are equally likely.
    counts = random.permutation(np.arange(2, 30))[: 4 * n_classes].reshape(4, n_classes)
    x, y = np.repeat(np.argwhere(counts >= 0), counts.ravel(), axis=0).T
    weights = random.uniform(0.2, 2.0, len(y)) if weighted else np.ones(len(y))
    mass = np.zeros(counts.shape)
    np.add.at(mass, (x, y), weights)
    return x[:, np.newaxis].astype(float), y, weights, mass / mass.sum(axis=1, keepdims=True)


def minimiser(p):
    """Return the scores that Theorem 3.1 gives for the class probabilities p."""
    log = np.log(p)
    return (p.shape[-1] - 1) * (log - log.mean(axis=-1, keepdims=True))


def loss(p, scores):
    """Return the expected loss; exp(-y f / K) = exp(-f_c / (K - 1)) for class c, as f sums to 0."""
    return (p * np.exp(-scores / (p.shape[-1] - 1))).sum(axis=-1)


SETTINGS = {
    "paper": PAPER | {"n_estimators": 60},
    "default": {"n_estimators": 120, "max_features": 1.0, "subsample": 1.0, "trim": 0.0},
}


@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 3, 6])
def test_theorem_3_1_boosting_ends_at_the_minimiser(n_classes, weighted, settings):
    """Section 3.1, Theorem 3.1: the loss is least at f_k = (K - 1) (ln p_k - mean of ln p).

    So softmax(F / (K - 1)) are the class probabilities, which is what ``predict_proba`` returns.
    Checked on the package: trees that separate all values of x are boosted until scores converge.
    The committee's scores are then the theorem's, and ``predict_proba`` returns the classes' shares
    of the weight at x.
    """
    X, y, weights, p = cells(n_classes, weighted)
    if n_classes == 2:
        # See test_two_classes_do_not_settle_with_the_papers_steps.
        settings = settings | {"learning_rate": 0.5}
    model = GambleClassifier(**settings, random_state=0).fit(X, y, sample_weight=weights)
    values = np.arange(4.0)[:, np.newaxis]
    np.testing.assert_allclose(model.predict_proba(values), p, atol=1e-3)
    scores = model.decision_function(values)
    expected = minimiser(p)
    expected = expected[:, 1] - expected[:, 0] if n_classes == 2 else expected
    np.testing.assert_allclose(scores, expected, atol=0.01 * n_classes)
    np.testing.assert_array_equal(model.predict(values), p.argmax(axis=1))


@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_theorem_3_1_no_other_scores_have_less_loss(n_classes):
    """Section 3.1, Theorem 3.1: Lagrange's condition of the minimum, which the paper omits.

    The loss is convex, so a point without a descent direction of sum 0 is the unique minimum.
    Mathematics on which ``predict_proba`` is based.
    """
    random = np.random.default_rng(0)
    p = random.dirichlet(np.ones(n_classes))
    best = minimiser(p)
    assert abs(best.sum()) < 1e-9
    np.testing.assert_allclose(softmax(best / (n_classes - 1)), p)
    slope = p * np.exp(-best / (n_classes - 1))
    np.testing.assert_allclose(slope, slope.mean())
    for _ in range(200):
        step = random.normal(size=n_classes) * 10 ** random.uniform(-3, 1)
        assert loss(p, best + step - step.mean()) > loss(p, best)


def test_two_classes_do_not_settle_with_the_papers_steps():
    """Section 3.3: with two classes GAMBLE is Gentle AdaBoost up to a factor of 2.

    The factor is that of the step: because of the diagonal Hessian, it is K / (K - 1) times
    Newton's near the minimum. With a learning rate of 1/2 the two agree (a test of the core). With
    the paper's rate, the package's scores oscillate around the minimum and do not converge as in
    Theorem 3.1.
    """
    X, y, _, p = cells(2, weighted=False)
    model = GambleClassifier(**PAPER | {"n_estimators": 40}).fit(X, y)
    staged = model.staged_predict_proba(np.arange(4.0)[:, np.newaxis])
    wrong = np.array([probabilities[:, 1] - p[:, 1] for probabilities in staged])
    assert (wrong[-1] * wrong[-2] < 0).all()
    assert (abs(wrong[-2:]) > 0.005).all()


def votes(tree, leaf, n_classes):
    part = slice(*tree.vote_starts[leaf : leaf + 2])
    found = np.full(n_classes, tree.other_votes[leaf], np.float64)
    found[tree.vote_classes[part]] = tree.votes[part]
    return found


def test_theorem_3_1_a_single_round_need_not_prefer_the_likeliest_class():
    """Section 3.1, Theorem 3.1: argmax r = argmax f = argmax p, r and f one round's functions.

    The proof is about the population minimizer. For a single round it holds if weights are equal:
    the first tree of the package votes for the most likely class of every leaf. It is false for
    later rounds, which see the weights after the first: the second tree votes against.
    """
    X, y, weights, p = cells(4, weighted=False)
    model = GambleClassifier(**PAPER | {"n_estimators": 2}).fit(X, y, sample_weight=weights)
    best = []
    for tree in model.trees_:
        leaf_of = [leaf_at(tree, value) for value in range(4)]
        best.append([votes(tree, leaf, 4).argmax() for leaf in leaf_of])
    np.testing.assert_array_equal(best[0], p.argmax(axis=1))
    assert (np.array(best[1]) != p.argmax(axis=1)).any()
    np.testing.assert_array_equal(model.predict(np.arange(4.0)[:, np.newaxis]), p.argmax(axis=1))


def leaf_at(tree, value):
    node = 0
    while tree.feature[node] >= 0:
        node = tree.children[node, int(value > tree.threshold[node])]
    return tree.leaf[node]
