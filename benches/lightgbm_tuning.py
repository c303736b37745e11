"""LightGBM's settings, by cross-validation: one after another from the defaults, best kept.

A full grid would take half an hour. Rounds are chosen anew with every setting, as they are for
free: a prediction may stop at any.
"""

import numpy as np
from gamble_tables import boosting
from sklearn.model_selection import GroupKFold, RepeatedStratifiedKFold

ROUNDS = (25, 50, 100, 200, 300)
#: What is tried step by step, beside the best so far. A tree of few rows is kept small by the
#: rows that a leaf must have, 20 unless told, not by its leaves.
STEPS = (
    [{"num_leaves": n} for n in (7, 31, 63)],
    [{"learning_rate": rate} for rate in (0.05, 0.2)],
    [{"min_child_samples": 5}],
)
#: As GAMBLE does, features per split and rows per round are drawn; after the steps above.
SAMPLED_STEPS = (
    [
        {"feature_fraction_bynode": 0.3},
        {"subsample": 0.7, "subsample_freq": 1},
        {"feature_fraction_bynode": 0.3, "subsample": 0.7, "subsample_freq": 1},
    ],
    [{"num_leaves": n} for n in (15, 63)],
)
#: Rows of vowel by one speaker, who says nothing in the test part: nor in a fold's.
SPEAKER = 66


def folds(name, y):
    """Pairs of rows to learn and rows to judge by: fewer where rows are many, to save time."""
    if name == "vowel":
        speakers = np.arange(len(y)) // SPEAKER
        return list(GroupKFold(4).split(y, y, speakers))
    n, times = (5, 2) if len(y) < 400 else (5, 1) if len(y) < 1000 else (3, 1)
    drawn = RepeatedStratifiedKFold(n_splits=n, n_repeats=times, random_state=0)
    return list(drawn.split(y, y))


def staged_labels(model, X):
    """The predictions after each of ``ROUNDS``."""
    scores, begin = 0, 0
    for end in ROUNDS:
        step = {"start_iteration": begin, "num_iteration": end - begin}
        scores, begin = scores + model.predict(X, raw_score=True, **step), end
        yield model.classes_[scores.argmax(axis=1)]


def tuned(name, X, y):
    """The best settings without sampling, and the best with it, each with its rounds."""
    parts = folds(name, y)
    known = {}

    def best_of(settings):
        """The fewest errors, held out, of some number of rounds, and that number."""
        key = tuple(sorted(settings.items()))
        if key not in known:
            wrong = np.zeros(len(ROUNDS))
            for train, held_out in parts:
                model = boosting(max(ROUNDS), random_state=0, **settings).fit(X[train], y[train])
                wrong += [
                    np.sum(found != y[held_out]) for found in staged_labels(model, X[held_out])
                ]
            known[key] = wrong.min(), ROUNDS[wrong.argmin()]
        return known[key]

    def improved(settings, steps):
        for step in steps:
            # Of equals the first: what was there before, or what is tried first.
            options = [settings, *(settings | change for change in step)]
            settings = min(options, key=lambda option: best_of(option)[0])
        return settings

    def with_rounds(settings):
        return settings | {"rounds": best_of(settings)[1]}

    plain = improved({"num_leaves": 15}, STEPS)
    sampled = improved(plain, SAMPLED_STEPS)
    return with_rounds(plain), with_rounds(sampled)
