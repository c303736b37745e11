"""GAMBLE: Huang, Ertekin, Song, Zha, Giles, SDM 2007, with Active GAMBLE (section 5.2)."""

import numpy as np
from harness import data
from harness.measuring import cpu_seconds
from papers.statements import DEFAULT, PAPER, Item
from scipy.special import softmax
from scipy.stats import binomtest, chi2
from xmtree import ActiveGamble, GambleClassifier, SAMMEClassifier

#: Training and test rows in the paper, for sets without an official split.
SIZES = {"glass": (113, 101), "vehicle": (422, 422), "splice": (2860, 316)}
#: Lowest error in % within 1000 rounds (Table 2, "target error rate").
LOWEST = {"glass": 27.5, "vehicle": 27.3, "vowel": 47.0, "segment": 4.62}
LOWEST |= {"soybean-large": 5.65, "splice": 4.48, "satimage": 12.6, "pendigits": 4.71}
ALONE = {PAPER: GambleClassifier.PAPER}
BOTH = ALONE | {DEFAULT: {}}
SPHERE_ROUNDS = (1, 10, 20, 50, 120, 300, 1000)
#: Rounds after which margins are compared, numbers of classes of the weights, and rounds of these.
MARGIN_ROUNDS, WEIGHT_CLASSES, WEIGHT_ROUNDS = (20, 100, 1000), (3, 5, 10, 20), 100
#: Shares of training labels that are replaced by others.
FLIPPED = (0.0, 0.1, 0.2)


def gamble(settings, seed, **more):
    return GambleClassifier(**settings | more, random_state=seed, n_jobs=1)


def samme(**more):
    return SAMMEClassifier(n_estimators=1000, **more)


def staged_errors(model, X, y):
    """Return test errors in % after each round."""
    return np.array([100 * np.mean(labels != y) for labels in model.staged_predict(X)])


def after(errors, rounds):
    """Return the errors after each number of rounds, or the last if there are fewer."""
    return [float(errors[min(n, len(errors)) - 1]) for n in rounds]


def split(name, seed, rows):
    """Return the official split, or a random one with the paper's sizes."""
    if name not in SIZES:
        return data.table(name, rows)
    return data.splits(name, seed + 1, None if rows else SIZES[name], rows)[seed]


def sizes(settings, seed, rows, name):
    """Return the size of a data set."""
    task = split(name, seed, rows)
    n, columns, classes = task.shape
    return {"train": n, "test": len(task.y_test), "features": columns, "classes": classes}


def table(settings, seed, rows, name):
    """Return the lowest error of all rounds."""
    task = split(name, seed, rows)
    model = gamble(settings, seed).fit(task.X, task.y)
    return {"lowest": float(staged_errors(model, task.X_test, task.y_test).min())}


def against_samme(settings, seed, rows):
    """Return errors of GAMBLE and SAMME on the eight sets after 10, 100 and 1000 rounds.

    Also p of the sign test, or 1 if SAMME won more often, and the lead in comparisons.
    """
    found = {}
    for name in LOWEST:
        task = split(name, seed, rows)
        for key, model in ((name, gamble(settings, seed)), (f"SAMME {name}", samme())):
            model.fit(task.X, task.y)
            found[key] = after(staged_errors(model, task.X_test, task.y_test), (10, 100, 1000))
    ours, theirs = (np.array([found[f"{key}{name}"] for name in LOWEST]) for key in ("", "SAMME "))
    wins, losses = int(np.sum(ours < theirs)), int(np.sum(ours > theirs))
    p = float(binomtest(wins, wins + losses).pvalue) if wins > losses else 1.0
    return found | {"p": p, "lead": wins - losses}


def resampled(X, y, X_test, y_test, seed):
    """Return test errors of rounds of SAMME whose trees learn rows drawn by weight."""
    random, k = np.random.default_rng(seed), int(y.max()) + 1
    exponents, votes, wrong = np.zeros(len(y)), np.zeros((len(y_test), k)), []
    for _ in range(max(SPHERE_ROUNDS)):
        weights = softmax(exponents)
        drawn = random.choice(len(y), len(y), p=weights)
        tree = SAMMEClassifier(n_estimators=1).fit(X[drawn], y[drawn])
        is_wrong = tree.predict(X) != y
        share = max(float(weights[is_wrong].sum()), 1e-10)
        vote = np.log((k - 1) * (1 - share) / share)
        # Weights start again if a tree is no better than guessing.
        exponents = exponents + vote * is_wrong if vote > 0 else np.zeros(len(y))
        votes[np.arange(len(y_test)), tree.predict(X_test)] += max(0, vote)
        wrong.append(100 * float(np.mean(votes.argmax(axis=1) != y_test)))
    return after(np.array(wrong), SPHERE_ROUNDS)


def leaves(settings, seed, rows):
    """Return errors of trees of several sizes on pendigits."""
    task = split("pendigits", seed, rows)
    found = {}
    for n in (2, 10, 12, 14):
        model = gamble(settings, seed, max_leaves=n).fit(task.X, task.y)
        errors = staged_errors(model, task.X_test, task.y_test)
        found[str(n)] = after(errors, (10, 100, 600, 1000))
    late = [found[n][2] for n in ("10", "12", "14")]
    return found | {"spread": max(late) - min(late)}


def spheres(n, n_classes, seed):
    """Return shells of a ten-dimensional Gaussian with equal mass (section 5.3 of the paper)."""
    X = np.random.default_rng(seed).normal(size=(n, 10))
    bounds = chi2.ppf(np.arange(1, n_classes) / n_classes, 10)
    return X, np.searchsorted(bounds, (X**2).sum(axis=1))


def concentric(settings, seed, rows):
    """Return errors on the spheres of two and of five classes."""
    found = {}
    for k in (2, 5):
        X, y = spheres(min(1000 * k, rows or 1000 * k), k, 2 * seed)
        X_test, y_test = spheres(rows or 10_000, k, 2 * seed + 1)
        for name, model in (("", gamble(settings, seed)), ("SAMME ", samme())):
            model.fit(X, y)
            train, test = staged_errors(model, X, y), staged_errors(model, X_test, y_test)
            wrong = np.flatnonzero(train > 0)
            zero = int(wrong[-1]) + 2 if len(wrong) else 1
            at = min(zero, len(test)) - 1
            found[f"{name}train {k}"] = after(train, SPHERE_ROUNDS)
            found[f"{name}test {k}"] = after(test, SPHERE_ROUNDS)
            found |= {f"{name}zero {k}": zero, f"{name}later {k}": float(test[at] - test[-1])}
        found[f"drawn test {k}"] = resampled(X, y, X_test, y_test, seed)
    return found


def margins(settings, seed, rows):
    """Return the smallest and the mean margin of two spheres' training rows, at most 1."""
    X, y = spheres(min(2000, rows or 2000), 2, 2 * seed)
    model = gamble(settings, seed).fit(X, y)
    scores = dict(enumerate(model.staged_decision_function(X), 1))
    # Scores are F_1 - F_0, and votes are from -2 to 2 (Result 3).
    each = [scores[stage] * (2 * y - 1) / (4 * stage) for stage in MARGIN_ROUNDS]
    return {"smallest": [float(m.min()) for m in each], "mean": [float(m.mean()) for m in each]}


def weights(settings, seed, rows):
    """Return over how many powers of ten the weights of the rows of spheres range, by classes."""
    found = {"GAMBLE": [], "SAMME.R": []}
    for k in WEIGHT_CLASSES:
        X, y = spheres(rows or 2000, k, seed)
        for name, model in zip(found, (gamble(settings, seed), samme(votes="real")), strict=True):
            scores = model.set_params(n_estimators=WEIGHT_ROUNDS).fit(X, y).decision_function(X)
            found[name].append(float(np.ptp(exponent(scores, y)) / np.log(10)))
    return found


def flips(settings, seed, rows, name):
    """Return errors with wrong labels, and the share of these rows in the last weights."""
    task = split(name, seed, rows)
    n, _, k = task.shape
    random = np.random.default_rng(seed)
    other = (task.y + random.integers(1, k, n)) % k
    draws = random.random(n)
    models = {"GAMBLE": gamble(settings, seed), "clipped": gamble(settings, seed, clip=True)}
    models |= {"SAMME": samme(), "SAMME.R": samme(votes="real")}
    found = {}
    for key, model in models.items():
        found[key] = []
        for share in FLIPPED:
            y = np.where(draws < share, other, task.y)
            labels = model.fit(task.X, y).predict(task.X_test)
            found[key].append(100 * float(np.mean(labels != task.y_test)))
        found[f"{key} rise"] = [error - found[key][0] for error in found[key][1:]]
        weights = softmax(-exponent(model.decision_function(task.X), y))
        found[f"{key} weight"] = 100 * float(weights[y != task.y].sum())
    return found


def exponent(scores, y):
    """Return minus the logarithm of the rows' weights: y'F / K = F_c / (K - 1), as F sums to 0."""
    return scores[np.arange(len(y)), y].astype(float) / (scores.shape[1] - 1)


def mh(settings, seed, rows, name):
    """Return time and error of Gentle AdaBoost.MH: GAMBLE with two classes, for each class."""
    task = split(name, seed, rows)
    model = gamble(settings, seed)
    _, seconds = cpu_seconds(model.fit, task.X, task.y)
    models = [gamble(settings, seed) for _ in range(task.shape[2])]
    each = [cpu_seconds(m.fit, task.X, task.y == k)[1] for k, m in enumerate(models)]
    scores = np.stack([m.decision_function(task.X_test) for m in models], axis=1)
    leaves = [np.mean([len(tree.other_votes) for tree in m.trees_]) for m in (model, *models)]
    labels = {"error": scores.argmax(axis=1), "GAMBLE": model.predict(task.X_test)}
    wrong = {key: 100 * float(np.mean(of != task.y_test)) for key, of in labels.items()}
    return wrong | {"ratio": sum(each) / seconds, "leaves": float(np.mean(leaves[1:]) / leaves[0])}


#: Sets with many rows.
LARGE = ("pendigits", "satimage", "splice")
#: Most rows chosen by margin and at random, the same with a best round, and random rows at first.
MOST, MOST_RANDOM, MOST_BEST, N_FIRST = 1500, 2600, 400, 20


def committee(estimator, seed, selection, n_per_round, most):
    """Return an active learner that chooses ``most`` rows."""
    return ActiveGamble(
        estimator=estimator,
        n_initial=N_FIRST,
        n_per_round=n_per_round,
        n_rounds=max(1, -(-(most - N_FIRST) // n_per_round)),
        selection=selection,
        random_state=seed,
        n_jobs=1,
    )


def curve(model, task):
    """Return numbers of rows and errors in % of committees with all their trees."""
    found = model.fit(task.X, task.y, X_val=task.X_test, y_val=task.y_test).learning_curve_
    return np.asarray(found.n_samples), 100 * np.asarray(found.validation_error)


def best_rounds(model, settings, seed, task, sizes):
    """Return the errors of the best rounds of committees of the first selected rows."""
    parts = (model.selected_[:n] for n in sizes)
    committees = (gamble(settings, seed).fit(task.X[part], task.y[part]) for part in parts)
    return np.array([staged_errors(m, task.X_test, task.y_test).min() for m in committees])


def reached(sizes, errors, target):
    """Return the rows at which the error first reaches the target, or infinity."""
    at = np.flatnonzero(errors <= target)
    return int(sizes[at[0]]) if len(at) else np.inf


def active(settings, seed, rows, name):
    task = split(name, seed, rows)
    n, target = len(task.y), LOWEST[name]
    estimator = GambleClassifier(**settings)
    learner = committee(estimator, seed, "margin", 10, min(MOST, n))
    chosen = curve(learner, task)
    sizes = np.arange(N_FIRST, min(MOST_BEST, len(learner.selected_)) + 1, 10)
    best = sizes, best_rounds(learner, settings, seed, task, sizes)
    random = committee(estimator, seed, "random", 80 if n > 1000 else 10, min(MOST_RANDOM, n))
    others = curve(random, task)
    needed, batch = reached(*chosen, target), gamble(settings, seed)
    leads = {"lead": min(200, n // 2)} | {f"lead {at}": at for at in (300, 400) if at <= n // 2}
    leads = {key: np.interp(at, *others) - np.interp(at, *chosen) for key, at in leads.items()}
    return leads | {
        "needed": needed,
        "random": reached(*others, target),
        "lowest": float(chosen[1].min()),
        # Beyond ``MOST_BEST`` rows, the last round is an upper limit of the best.
        "needed, best": min(needed, reached(*best, target)),
        "lowest, best": float(min(best[1].min(), chosen[1].min())),
        "ratio": time_to(needed, 10, batch, seed, task),
        "batch": float(staged_errors(batch, task.X_test, task.y_test).min()),
    }


def time_to(needed, n_per_round, batch, seed, task):
    """Return the time of Active without computing errors, over that of training on all rows."""
    _, seconds = cpu_seconds(batch.fit, task.X, task.y)
    again = committee(batch, seed, "margin", n_per_round, min(needed, MOST, len(task.y)))
    return cpu_seconds(again.fit, task.X, task.y)[1] / seconds


def fifty(settings, seed, rows, name):
    """Return rows and time of Active to the target by fifty rows a round."""
    task = split(name, seed, rows)
    batch = gamble(settings, seed)
    learner = committee(batch, seed, "margin", 50, min(MOST, len(task.y)))
    needed = reached(*curve(learner, task), LOWEST[name])
    return {"needed": needed, "ratio": time_to(needed, 50, batch, seed, task)}


def portion(settings, seed, rows, name):
    """Return time and error with the utilities of a tenth of the pool, beside those of all."""
    task = split(name, seed, rows)
    learner = committee(gamble(settings, seed), seed, "margin", 50, 500)
    errors, times = [], []
    for share in (1.0, 0.1):
        times.append(cpu_seconds(learner.set_params(pool_share=share).fit, task.X, task.y)[1])
        errors.append(100 * float(np.mean(learner.predict(task.X_test) != task.y_test)))
    return {"ratio": times[1] / times[0], "error": errors[1] - errors[0]}


def mixed(settings, seed, rows, name):
    """Return Random's error above Active's at 200 rows of a random split of all rows."""
    task, model = data.redrawn(split(name, seed, rows), seed), gamble(settings, seed)
    kinds = (committee(model, seed, kind, 10, 200) for kind in ("random", "margin"))
    others, chosen = (curve(learner, task)[1][-1] for learner in kinds)
    return {"lead": float(others - chosen)}


ITEMS = (
    *(Item(f"gamble-sizes-{name}", sizes, {PAPER: {}}, 1, name) for name in LOWEST),
    *(Item(f"gamble-{n}", table, BOTH, 10 if n in SIZES else 5, n) for n in LOWEST),
    *(Item(f"active-{n}", active, ALONE if n in LARGE else BOTH, data=n) for n in LOWEST),
    *(Item(f"fifty-{n}", fifty, ALONE, data=n) for n in ("vehicle", "vowel")),
    *(Item(f"portion-{n}", portion, ALONE, data=n) for n in LARGE[:2]),
    Item("mixed-vowel", mixed, ALONE, data="vowel"),
    Item("gamble-samme", against_samme, ALONE, needs=tuple(LOWEST)),
    Item("gamble-leaves", leaves, ALONE, needs=("pendigits",)),
    Item("gamble-spheres", concentric, ALONE),
    Item("gamble-margins", margins, ALONE, needs=()),
    Item("gamble-weights", weights, ALONE, needs=()),
    *(Item(f"gamble-flips-{n}", flips, ALONE, data=n) for n in ("vehicle", "segment")),
    *(Item(f"gamble-mh-{n}", mh, ALONE, data=n) for n in ("vowel", "soybean-large", *LARGE[:2])),
)
