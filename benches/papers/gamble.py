"""GAMBLE: Huang, Ertekin, Song, Zha, Giles, SDM 2007, with Active GAMBLE (section 5.2)."""

import numpy as np
from harness import data
from harness.measuring import cpu_seconds
from papers.statements import DEFAULT, PAPER, AtMost, Claim, Item, Line
from scipy.stats import binomtest, chi2
from xmtree import ActiveGamble, GambleClassifier, SAMMEClassifier

SLOW = "rate 0.1 (a variation)"
#: Training and test rows in the paper, for sets without an official split.
SIZES = {"glass": (113, 101), "vehicle": (422, 422), "splice": (2860, 316)}
#: Lowest error in % within 1000 rounds (Table 2, "target error rate").
LOWEST = {
    "glass": 27.5,
    "vehicle": 27.3,
    "vowel": 47.0,
    "segment": 4.62,
    "soybean-large": 5.65,
    "splice": 4.48,
    "satimage": 12.6,
    "pendigits": 4.71,
}
CAUSES = {
    "satimage": "It is reached at rate 0.1, a variation that the paper does not have.",
    "soybean-large": "The rows are one-hot encoded here and missing values are zeros. With "
    "categories and missing values, rate 0.1 reached 5.3 (docs/experiments/gamble.md). The paper "
    "does not give its encoding.",
}
MODES = {
    PAPER: GambleClassifier.PAPER,
    DEFAULT: {},
    SLOW: GambleClassifier.PAPER | {"learning_rate": 0.1},
}
DEEP = MODES | {DEFAULT: {"n_estimators": 1000}}
SPHERE_ROUNDS = (120, 300, 1000)


def gamble(settings, seed, **more):
    return GambleClassifier(**settings | more, random_state=seed, n_jobs=1)


def samme():
    return SAMMEClassifier(n_estimators=1000)


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


def table(settings, seed, rows, name):
    """Return the lowest error of all rounds."""
    task = split(name, seed, rows)
    model = gamble(settings, seed).fit(task.X, task.y)
    return {"lowest": float(staged_errors(model, task.X_test, task.y_test).min())}


def of_table(name):
    data_set = "{}, {} + {} rows".format(name, *SIZES[name]) if name in SIZES else ""
    line = "Table 2", "lowest error %", "lowest", LOWEST[name], CAUSES.get(name, "")
    return Item(
        f"gamble-{name}",
        "Lowest error within 1000 rounds (default: within its 200)",
        table,
        MODES,
        (AtMost(*line, data=data_set),),
        seeds=10 if name in SIZES else 3,
        note="The lowest error is that of the best round on the test rows, as in the paper.",
        data=name,
    )


def against_samme(settings, seed, rows):
    """Return wins over SAMME after 10, 100 and 1000 rounds on the eight sets."""
    wins = losses = 0
    for name in LOWEST:
        task = split(name, seed, rows)
        ours, theirs = (
            np.array(
                after(
                    staged_errors(model.fit(task.X, task.y), task.X_test, task.y_test),
                    (10, 100, 1000),
                )
            )
            for model in (gamble(settings, seed), samme())
        )
        wins, losses = wins + int(np.sum(ours < theirs)), losses + int(np.sum(ours > theirs))
    p = binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    return {"wins": wins, "losses": losses, "p": float(p)}


def leaves(settings, seed, rows):
    """Return errors of trees of several sizes on pendigits."""
    task = split("pendigits", seed, rows)
    found = {}
    for n in (2, 10, 12, 14):
        model = gamble(settings, seed, max_leaves=n).fit(task.X, task.y)
        errors = staged_errors(model, task.X_test, task.y_test)
        found[str(n)] = after(errors, (10, 100, 600, 1000))
    late = [found[str(n)][2] for n in (10, 12, 14)]
    return found | {"spread": max(late) - min(late), "gain": found["2"][3] - found["14"][3]}


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
    return found


def lead(key, rounds):
    """Return the function for SAMME's error minus ours."""
    at = SPHERE_ROUNDS.index(rounds)
    return lambda values: values[f"SAMME {key}"][at] - values[key][at]


SAMME = Item(
    "gamble-samme",
    "GAMBLE and SAMME on the eight sets after 10, 100 and 1000 rounds: 24 comparisons",
    against_samme,
    DEEP,
    (
        Line("Section 5.1", "sign test, p", "p", "0.0066, in favor of GAMBLE"),
        Claim(
            "Section 5.1",
            "GAMBLE is better than SAMME: comparisons won minus lost",
            lambda values: values["wins"] - values["losses"],
            cause="Trees of 511 leaves win, 22 to 2 in an earlier run, but trees of 15 leaves do "
            "not (docs/experiments/gamble.md). The paper's result is unexplained.",
        ),
    ),
    note="Glass, vehicle and splice have random splits with the paper's sizes.",
    needs=tuple(LOWEST),
)
SIZE_OF_TREES = Item(
    "gamble-leaves",
    "pendigits: trees of several sizes",
    leaves,
    DEEP,
    (
        *(
            Line(
                "Figure 2",
                f"{n} leaves: error % after 10, 100, 600, 1000 rounds",
                str(n),
                "(plot)",
            )
            for n in (2, 14)
        ),
        Claim("Figure 2", "stumps need many more rounds than 14 leaves", "gain"),
        Line(
            "Figure 2",
            "10, 12 and 14 leaves after 600 rounds: largest difference",
            "spread",
            "almost the same",
        ),
    ),
    seeds=1,
    needs=("pendigits",),
)
SPHERES = Item(
    "gamble-spheres",
    "concentric spheres of two and five classes, compared with SAMME",
    concentric,
    DEEP,
    (
        Line("Figure 6(a)", "K = 2: the training error is 0 from round", "zero 2", "about 20"),
        Claim("Figure 6(a)", "K = 2: the test error falls later on, by", "later 2"),
        *(
            Line(
                "Section 5.3",
                f"K = 5: SAMME's test error above GAMBLE's after {rounds} rounds, by",
                lead("test 5", rounds),
                10.0,
            )
            for rounds in (120, 1000)
        ),
        *(
            Claim(
                "Section 5.3",
                f"K = 5: SAMME has the lower training error after {rounds} rounds, by",
                lambda values, rounds=rounds: -lead("train 5", rounds)(values),
            )
            for rounds in (300, 1000)
        ),
    ),
)

#: Lowest error in % and rows of Active GAMBLE, seconds of Active and Batch (Table 2).
ACTIVE = {
    "glass": (27.5, 91, 67, 28),
    "vehicle": (25.1, 115, 127, 310),
    "vowel": (41.8, 155, 136, 367),
    "segment": (4.43, 135, 158, 72),
    "soybean-large": (5.25, 245, 266, 87),
    "splice": (3.42, 430, 320, 470),
    "satimage": (11.3, 220, 362, 6066),
    "pendigits": (3.92, 340, 1698, 10043),
}
#: Sets on which training on all rows in this mode misses the target too.
ACTIVE_CAUSES = dict.fromkeys(
    ("satimage", "soybean-large"),
    "Training on all rows misses the target in this mode too (table above).",
)
#: Sets with many rows.
LARGE = ("pendigits", "satimage", "splice")
#: Most rows chosen by margin, and at random.
MOST, MOST_RANDOM = 400, 2600
#: Rows chosen at random first.
N_FIRST = 20


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
    """Return numbers of rows and errors in %."""
    found = model.fit(task.X, task.y, X_val=task.X_test, y_val=task.y_test).learning_curve_
    return np.asarray(found.n_samples), 100 * np.asarray(found.validation_error)


def reached(sizes, errors, target, n):
    """Return the rows at which the error first reaches the target, or else all ``n`` rows."""
    at = np.flatnonzero(errors <= target)
    return int(sizes[at[0]]) if len(at) else n


def active(settings, seed, rows, name):
    task = split(name, seed, rows)
    n, target = len(task.y), LOWEST[name]
    estimator = GambleClassifier(**settings)
    chosen = curve(committee(estimator, seed, "margin", 10, min(MOST, n)), task)
    step = 40 if n > 1000 else 10
    random = curve(committee(estimator, seed, "random", step, min(MOST_RANDOM, n)), task)
    _, batch_seconds = cpu_seconds(gamble(settings, seed).fit, task.X, task.y)
    needed = reached(*chosen, target, n)
    # Timed without computing the errors of its rounds.
    again = committee(estimator, seed, "margin", 10, min(needed, MOST))
    return {
        "needed": needed,
        "random": reached(*random, target, n),
        "lowest": float(chosen[1].min()),
        "ratio": cpu_seconds(again.fit, task.X, task.y)[1] / batch_seconds,
    }


def of_active(name):
    lowest, needed, *_ = ACTIVE[name]
    ratios = [seconds / batch for *_, seconds, batch in ACTIVE.values()]
    cause = ACTIVE_CAUSES.get(name, "")
    return Item(
        f"active-{name}",
        "Rows that Active GAMBLE takes to the error of Table 2",
        active,
        # The paper trains 1000 trees for every ten rows; here 100, to keep the run short.
        {PAPER: GambleClassifier.PAPER | {"n_estimators": 100}, DEFAULT: {}},
        (
            AtMost("Table 2", "rows to the target, Active", "needed", needed, cause),
            Claim(
                "Table 2",
                "Active needs fewer rows than Random, by",
                lambda values: values["random"] - values["needed"],
            ),
            AtMost("Table 2", "lowest error %, Active", "lowest", lowest, cause),
            Line(
                "Table 2",
                "processor time, Active up to the target over Batch",
                "ratio",
                f"{min(ratios):.2f} to {max(ratios):.2f}",
                "The paper's programs ran on another machine, and the paper does not describe the "
                "training of a round's committee.",
                ranged=True,
            ),
        ),
        seeds=3 if name in LARGE else 5,
        note=f"Each round adds ten rows, up to {MOST} for Active and {MOST_RANDOM} for Random. A "
        "committee has 100 trees in the paper's mode, not 1000, to keep the run short. A seed that "
        "never reaches the target counts with all rows of the set.",
        data=name,
    )


ITEMS = (
    *(of_table(name) for name in LOWEST),
    *(SAMME, SIZE_OF_TREES, SPHERES),
    *(of_active(name) for name in ACTIVE),
)
