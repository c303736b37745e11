"""Statements of the LOMtree papers, on the package's trees and on exact ones.

A. Choromanska, J. Langford, "Logarithmic Time Online Multiclass prediction": the arXiv version
(Lemma 3 and the proof of Theorem 1 are there) and that of NIPS 2015 (its Lemma 3 is arXiv's
Lemma 4). docs/theory.md has the verdicts. ln is the natural logarithm, k the number of labels.
"""

import model_bytes
import numpy as np
import pytest
from theory import ROUNDING, entropy
from xmtree import LOMTreeClassifier

PAPER = LOMTreeClassifier.PAPER
K = 12


def stream(seed, n=1500, drift=False):
    """Return overlapping clouds; with drift, only a third of the classes occurs at a time."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(K, 5))
    start = np.arange(n) * K * 3 // n if drift else 0
    y = (start + random.integers(0, K // 3 if drift else K, n)) % K
    weights = random.integers(1, 9, n) / 4
    return centres[y] + random.normal(size=(n, 5)), y, weights


def learned(settings, X, y, weights=None, n_classes=K):
    model = LOMTreeClassifier(**{"random_state": 0, **settings})
    return model.partial_fit(X, y, classes=np.arange(n_classes), sample_weight=weights)


def histograms(model, n_classes=K):
    """Return the arrivals of every label at every node of ``tree_`` from the stored model."""
    head, arrays = model_bytes.unpack(model._model.to_bytes())
    arrays = {name.removeprefix("member0/nodes."): array for name, array in arrays.items()}
    starts = np.cumsum([0, *arrays["labels.length"].tolist()])
    arrivals = arrays["labels.before"] + arrays["labels.count"]
    ids = [head["meta"]["member0/"]["meta"]["root"]]
    table = np.zeros((len(model.tree_.parent), n_classes))
    for place, children in enumerate(model.tree_.children):
        part = slice(starts[ids[place]], starts[ids[place] + 1])
        table[place, arrays["labels.key"][part]] = arrivals[part]
        if children[0] >= 0:
            ids += [arrays["left"][ids[place]], arrays["right"][ids[place]]]
    return table


def split(left, right):
    """Return J, beta, alpha and the decrease of the mean entropy from their definitions."""
    both = left + right
    pi, beta = both / both.sum(), right.sum() / both.sum()
    seen = both > 0
    right_share = right[seen] / both[seen]
    objective = 2 * (pi[seen] * abs(right_share - beta)).sum()
    purity = (pi[seen] * np.minimum(right_share, 1 - right_share)).sum()
    gain = entropy(both) - (1 - beta) * entropy(left) - beta * entropy(right)
    return objective, beta, purity, gain


@pytest.fixture(scope="module")
def splits():
    """Return J, beta and alpha from the package, and the entropy decrease from its label tables."""
    found = []
    for seed in range(3):
        X, y, weights = stream(seed)
        for settings, importance in [(PAPER, None), ({}, None), ({}, weights)]:
            model = learned({**settings, "nodes_per_class": 16.0}, X, y, importance)
            tree, table = model.tree_, histograms(model)
            inner = np.flatnonzero(np.isfinite(tree.objective))
            for node in inner:
                left, right = table[tree.children[node]]
                objective, beta, purity, gain = split(left, right)
                reported = (tree.objective[node], tree.balance[node], tree.purity[node])
                np.testing.assert_allclose(reported, (objective, beta, purity), atol=1e-6)
                found.append((*reported, gain))
            at_leaves = table[tree.children[:, 0] < 0]
            expected = sum(leaf.sum() * entropy(leaf) for leaf in at_leaves) / at_leaves.sum()
            assert tree.leaf_entropy == pytest.approx(expected)
    assert len(found) > 200
    return np.array(found).T


def test_lemma_1_purity_against_balance(splits):
    """Section 2.2, Lemma 1: alpha <= min((2 - J) / (4 beta) - beta, 1/2).

    Claim: for a given balance of a split, a large J means that few examples of a class are
    separated from their class. In the proof, beta is the smaller side. With this beta, the bound
    is checked on every split that the package reports, with the package's J, beta and alpha.
    """
    objective, beta, purity, _ = splits
    smaller = np.minimum(beta, 1 - beta)
    with np.errstate(divide="ignore"):
        bound = np.minimum((2 - objective) / (4 * smaller) - smaller, 0.5)
    assert (purity <= bound + ROUNDING).all()
    # For some splits the bound is below 1/2, so the check is not vacuous.
    assert (bound < 0.45).any()


def test_lemma_1_as_printed_is_false_where_most_go_right():
    """Section 2.2, Lemma 1, for any split as printed: false for beta > 1/2.

    If all examples go right, J = 0, alpha = 0 and beta = 1, and the bound is -1/2. The package
    reports these numbers after two examples: the second one splits the root and goes right as a
    tie.
    """
    tree = learned(PAPER, np.eye(2), [0, 1]).tree_
    objective, beta, purity = tree.objective[0], tree.balance[0], tree.purity[0]
    assert (objective, beta, purity) == (0, 1, 0)
    assert purity > (2 - objective) / (4 * beta) - beta


def test_lemma_2_the_objective_is_1_where_a_split_is_pure_and_balanced(splits):
    """Section 2.2, Lemma 2: 0 <= J <= 1, and J = 1 for a pure and balanced split.

    Checked on the package's reports, with a consequence of the proof: J <= 4 beta (1 - beta),
    with equality only at pure splits. So J = 1 nowhere else.
    """
    objective, beta, purity, _ = splits
    most = 4 * beta * (1 - beta)
    assert (objective >= 0).all()
    assert (objective <= most + ROUNDING).all()
    assert (objective <= 1).all()
    is_pure = purity < ROUNDING
    np.testing.assert_allclose(objective[is_pure], most[is_pure], atol=1e-6)
    assert is_pure.any()
    assert (objective[~is_pure] < most[~is_pure] - 1e-6).all()
    tree = two_classes_parted()
    assert (tree.objective[0], tree.balance[0], tree.purity[0]) == (1, 0.5, 0)


def two_classes_parted():
    """Return a root that has sent two classes of twenty examples to different sides."""
    y = np.array([0, 1] * 20 + [0])
    return learned(PAPER, np.eye(2)[y], y, n_classes=2).tree_


def test_definition_3_asks_for_what_j_already_grants(splits):
    """Section 2.3, Definition 3: J / 2 >= gamma at every node, gamma <= min(beta, 1 - beta).

    Two consequences are checked on the package's reports. J implies balance up to a factor of 2:
    min(beta, 1 - beta) >= J / 4. No gamma is valid at a node with a single label, as J = 0
    there: the assumption must be restricted to nodes with at least two labels.
    """
    objective, beta, _, _ = splits
    assert (np.minimum(beta, 1 - beta) >= objective / 4 - ROUNDING).all()
    assert objective.max() > 0.5
    y = [0, 1, 1, 1, 1, 1]
    tree = learned(PAPER, np.eye(2)[y], y).tree_
    assert tree.n_examples[1:].sum() == 5
    assert tree.objective[0] == 0


def test_equation_4_as_printed_is_false():
    """Section 2.3, Eq. 4 (arXiv): a split of weight w gains w J^2 / (4 beta (1 - beta)) in entropy.

    False: two classes, separated without error, have J = 1 and beta = 1/2. The claim is a gain of
    1, but the entropy is only ln 2 = 0.693. The numbers are the package's: the root entropy minus G
    after the split.
    """
    tree = two_classes_parted()
    gain = tree.label_entropy[0] - tree.leaf_entropy
    assert gain == pytest.approx(np.log(2), abs=1e-3)
    beta = tree.balance[0]
    claimed = tree.objective[0] ** 2 / (4 * beta * (1 - beta))
    assert claimed == 1
    assert claimed > gain
    assert claimed / 2 < gain


def test_equation_4_with_half_the_constant(splits):
    """Section 2.3, Eq. 4 corrected: the gain is at least w J^2 / (8 beta (1 - beta)).

    Strong concavity of the entropy (modulus 1 in the l1 norm) gives beta (1 - beta) / 2 times the
    squared distance of the children's label shares; the printed form omits the 1/2. Checked
    on the package's splits (its J and beta, the entropies of its label tables). An exact split
    of two equal classes shows that a larger constant is not possible.
    """
    objective, beta, _, gain = splits
    parted = (beta > 0) & (beta < 1)
    bound = objective[parted] ** 2 / (8 * (beta * (1 - beta))[parted])
    assert (gain[parted] >= bound - 1e-6).all()
    objective, beta, _, gain = split(np.array([0.24, 0.26]), np.array([0.26, 0.24]))
    bound = objective**2 / (8 * beta * (1 - beta))
    assert bound <= gain < 1.001 * bound


def lowest_gain(t, objective, beta, g, k):
    """Return the lower bound of the corrected Lemma 3 for the split after t others."""
    return objective**2 * g / (8 * beta * (1 - beta) * (t + 1) * np.log(k))


def quality(leaves):
    """Return G, the weighted entropy of the leaves; a leaf is given by the masses of its labels."""
    return sum(leaf.sum() * entropy(leaf) for leaf in leaves)


def heaviest_mixed(leaves):
    mixed = [i for i, leaf in enumerate(leaves) if np.count_nonzero(leaf) > 1]
    return max(mixed, key=lambda i: leaves[i].sum(), default=None)


def weak_split(leaf, gamma, random):
    """Return a balanced split with J / 2 = gamma exactly, if a random direction has one."""
    pi = leaf / leaf.sum()
    for _ in range(50):
        lean = random.choice([-1.0, 1.0], len(leaf))
        lean -= (pi * lean).sum()
        size = (pi * abs(lean)).sum()
        if size > ROUNDING and gamma * abs(lean).max() <= size / 2:
            share = 0.5 + lean * gamma / size
            return leaf * (1 - share), leaf * share
    return None


def test_lemma_3_as_printed_is_false():
    """Section 2.3, Lemma 3 (arXiv): the gain is at least J^2 G / (8 beta (1 - beta) t ln k).

    False: take two leaves, each with half of the weight and half of each of two classes (t = 1,
    G = ln 2). Splitting one of them without error (J = 1, beta = 1/2) gains ln 2 / 2 = 0.347, but
    the claim is 1/2. Mathematics only: the package does not choose leaves by weight.
    """
    leaves = [np.array([0.25, 0.25])] * 2
    g = quality(leaves)
    objective, beta, _, gain = split(np.array([0.25, 0.0]), np.array([0.0, 0.25]))
    claimed = objective**2 * g / (8 * beta * (1 - beta) * 1 * np.log(2))
    assert 0.5 * gain == pytest.approx(np.log(2) / 2)
    assert claimed == pytest.approx(0.5)
    assert lowest_gain(1, objective, beta, g, 2) == pytest.approx(0.25)


@pytest.mark.parametrize(("k", "gamma"), [(2, 0.02), (2, 0.1), (3, 0.05), (8, 0.1)])
def test_lemma_3_and_theorem_1_corrected_on_exact_trees(k, gamma):
    """Section 2.3, Lemma 3 and Theorem 1 corrected, on trees of exact weak splits.

    Lemma 3: after t splits there are t + 1 leaves, so the heaviest mixed one holds at least
    G / ((t + 1) ln k), and splitting it gains J^2 G / (8 beta (1 - beta) (t + 1) ln k).
    Theorem 1: with J / 2 >= gamma this gives G_t <= G_0 (t + 1)^(-2 gamma^2 / ln k), so that
    t + 1 >= (G_0 / alpha)^(ln k / (2 gamma^2)) splits suffice for G_t <= alpha. All splits here
    are balanced with J / 2 = gamma, so a larger constant fails at the first one. Mathematics
    only.
    """
    random = np.random.default_rng(k)
    leaves = [np.full(k, 1 / k)]
    start = g = quality(leaves)
    for t in range(40):
        at = heaviest_mixed(leaves)
        parts = weak_split(leaves[at], gamma, random)
        if parts is None:
            break
        objective, beta, _, _ = split(*parts)
        assert objective == pytest.approx(2 * gamma)
        leaves[at : at + 1] = parts
        bound = lowest_gain(t, objective, beta, g, k)
        gain, g = g - quality(leaves), quality(leaves)
        assert gain >= bound - ROUNDING
        assert g <= start * (t + 2) ** (-2 * gamma**2 / np.log(k)) + ROUNDING
        if t == 0 and k == 2:
            assert gain < 1.01 * bound
    assert t > 10


def test_theorem_1_as_printed_is_false():
    """Section 2.3, Theorem 1: t >= (1 / alpha)^(4 (1 - gamma)^2 ln k / gamma^2) splits suffice.

    False: it does not depend on G_0, and for alpha = 1 it claims that a single split suffices.
    Eight equal classes, split perfectly (gamma = 1/2), keep G_1 = ln 4 = 1.39 > 1. With G_0 / alpha
    in place of 1 / alpha it follows from the corrected form. Mathematics only.
    """
    gamma, alpha = 0.5, 1.0
    eighth = np.full(4, 1 / 8)
    left, right = np.r_[eighth, np.zeros(4)], np.r_[np.zeros(4), eighth]
    objective, beta, _, _ = split(left, right)
    assert (objective / 2, beta) == (gamma, 0.5)
    enough = (1 / alpha) ** (4 * (1 - gamma) ** 2 * np.log(8) / gamma**2)
    assert enough == 1
    g = quality([left, right])
    assert g == pytest.approx(np.log(4))
    assert g > alpha
    assert g <= np.log(8) * 2 ** (-2 * gamma**2 / np.log(8))


def test_theorem_1_corrected_with_the_packages_routers_as_weak_learners():
    """Section 2.3, Theorem 1 corrected: G_t <= G_0 (t + 1)^(-2 gamma^2 / ln k).

    Each leaf, the heaviest first, is split by a LOMtree with one router trained on its rows, so
    gamma is that of the package's routers. The label distribution of ``predict_proba`` shows the
    side of a row. Each step is compared with the bound for the smallest gamma so far.
    """
    X, y, _ = stream(3, n=600)
    leaves, start, gammas = [np.arange(len(y))], entropy(np.bincount(y)), []

    def masses(rows):
        return np.bincount(y[rows], minlength=K) / len(y)

    for t in range(15):
        at = heaviest_mixed([masses(rows) for rows in leaves])
        rows = leaves.pop(at)
        parts = [rows[part] for part in sides(X[rows], y[rows])]
        if not parts:
            break
        objective, beta, _, _ = split(*map(masses, parts))
        gammas.append(min(objective / 2, beta, 1 - beta))
        leaves += parts
        g = quality([masses(rows) for rows in leaves])
        assert g <= start * (t + 2) ** (-2 * min(gammas) ** 2 / np.log(K))
    assert len(gammas) > 4
    assert np.mean(gammas) > 0.2


def sides(X, y):
    """Return the rows that a LOMtree of one router, trained on them, sends to each side."""
    one_router = {"nodes_per_class": 1 / max(len(np.unique(y)) - 1, 1), "n_passes": 2}
    for seed in range(20):
        router = LOMTreeClassifier(**one_router, random_state=seed).fit(X, y)
        _, side = np.unique(router.predict_proba(X), axis=0, return_inverse=True)
        if side.any():
            return side == 0, side == 1
    return ()


@pytest.mark.parametrize("weighted", [False, True])
def test_lemma_on_recycling(weighted):
    """Section 3.1, Lemma 4 of arXiv, Lemma 3 of NIPS: no node is recycled over log2 n times.

    n is the length of the sequence, here the total weight; R_S must be at least 4. Checked on
    the package's counters along streams whose labels occur in one segment only, so that leaves
    starve and are recycled repeatedly. With R_S = 1, such a stream exceeds the bound.
    """
    most = 0
    for seed in (0, 2):
        recycled, bound = recycling(seed, 4000, 4.0, weighted)
        assert (recycled <= bound).all()
        most = max(most, recycled[-1])
    assert most >= 2
    recycled, bound = recycling(0, 1500, 1.0, weighted)
    assert (recycled > bound).any()


def recycling(seed, n, resistance, weighted):
    """Yield the largest number of recyclings and the bound after every twenty examples."""
    random = np.random.default_rng(seed)
    y = np.arange(n) // 40 * 3 + random.integers(0, 3, n)
    n_classes = y.max() + 1
    centres = 2 * random.normal(size=(n_classes, 5))
    X = centres[y] + 0.3 * random.normal(size=(n, 5))
    weights = random.integers(1, 9, n) / 4 if weighted else np.ones(n)
    # With the paper's rules, weights would not count.
    settings = {**PAPER, "nodes_per_class": 7 / (n_classes - 1), "paper_tree": False}
    model, found = LOMTreeClassifier(**settings, swap_resistance=resistance), []
    for start in range(0, n, 20):
        part = slice(start, start + 20)
        model.partial_fit(X[part], y[part], range(n_classes), sample_weight=weights[part])
        tree = model.tree_
        assert tree.recycle_bound == pytest.approx(np.log2(weights[: part.stop].sum()))
        found.append((tree.n_recycled.max(), tree.recycle_bound))
    return np.transpose(found)
