"""After ``fit``, changed constructor parameters have no effect."""

import copy

import estimators
import numpy as np
import pytest
import xmtree
from scipy import sparse
from xmtree._sklearn import Interval, StrOptions
from xmtree.cli import main

X, Y = estimators.sparse(n=60)
SETS_X, SETS_Y = estimators.label_sets(n=60)

#: Parameters that predictions read, and that may change after ``fit``.
OF_PREDICTION = {
    "n_jobs": "threads, of which answers do not depend",
    "verbose": "a progress bar",
    "beam_size": "how many paths of the Recall Tree a prediction follows",
    "path_weight": "what those paths' probabilities count",
    "threshold": "the score above which LdSM's predict returns a label",
    "n_labels": "the number of labels that LdSM's predict returns",
}

METHODS = ["predict", "predict_proba", "decision_function", "predict_scores", "staged_predict"]
ATTRIBUTES = [
    *("classes_", "n_features_in_", "trees_", "n_estimators_", "feature_importances_"),
    *("progressive_loss_", "progressive_recall_", "n_examples_seen_"),
    *("max_candidates_", "max_depth_"),
]


def others(model, name):
    """Return other valid values of the parameter, and an invalid one."""
    now = getattr(model, name)
    values = ["nonsense"]
    for allowed in model._parameter_constraints[name]:
        if allowed is None:
            values.append(None)
        elif isinstance(allowed, StrOptions):
            values += sorted(allowed.options)
        elif isinstance(allowed, Interval):
            one = now if isinstance(now, int | float) else 1
            tried = [one + 1, one - 1, one / 2, one + 0.1]
            values += [value for value in tried if allowed.is_satisfied_by(value)]
        elif allowed == "boolean":
            values += [False, True]
        elif allowed == "random_state":
            values.append(77)
        elif allowed == "array-like":
            values.append([0, 1])
        elif allowed is dict:
            values.append({0: 5.0})
        else:
            raise AssertionError(f"{name}: {allowed}")
    found = [value for value in values if value is not now and value != now]
    assert len(found) >= 2, name
    return found if estimators.EXHAUSTIVE else found[:2]


def plain(answer):
    """Return a result in a form that can be compared."""
    if sparse.issparse(answer):
        return answer.toarray()
    return list(answer) if hasattr(answer, "__next__") else answer


def state(model, rows, labels):
    """Return all predictions and attributes of a fitted estimator."""
    said = {name: plain(getattr(model, name)(rows)) for name in METHODS if hasattr(model, name)}
    said |= {name: getattr(model, name) for name in ATTRIBUTES if hasattr(model, name)}
    said["labels"], said["scores"] = model.predict_topk(rows, 4)
    said["score"] = model.score(rows, labels)
    return said


def after_partial_fit(model, rows, labels):
    """Return the state after partial_fit, or the error."""
    try:
        model.partial_fit(rows, labels)
    except ValueError as error:
        return str(error)
    return state(model, rows, labels)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", estimators.PYTHON)
@pytest.mark.parametrize("sets", [False, True])
def test_parameters_changed_after_fit_have_no_effect(name, sets, tmp_path):
    if sets and name not in estimators.MULTILABEL:
        pytest.skip("learns one label per row")
    rows, labels = (SETS_X, SETS_Y.toarray()) if sets else (X, Y)
    few = {"n_estimators": 6} if name.startswith(("gamble", "samme")) else {}
    model = estimators.ALL[name](**few).fit(rows, labels)
    expected, went_on = state(model, rows, labels), None
    if name in estimators.ONLINE:
        went_on = after_partial_fit(copy.deepcopy(model), rows, labels)
        assert not isinstance(went_on, str)
    for parameter, before in model.get_params(deep=False).items():
        if parameter in OF_PREDICTION:
            continue
        for value in others(model, parameter):
            model.set_params(**{parameter: value})
            np.testing.assert_equal(state(model, rows, labels), expected, f"{parameter}={value}")
            if value == "nonsense" and not estimators.EXHAUSTIVE:
                continue
            model.save(tmp_path / "model")
            again = xmtree.load(tmp_path / "model")
            np.testing.assert_equal(state(again, rows, labels), expected, f"{parameter}={value}")
            if went_on is None:
                continue
            for learner in (copy.deepcopy(model), again):
                found = after_partial_fit(learner, rows, labels)
                if isinstance(found, str):
                    assert parameter in found
                else:
                    np.testing.assert_equal(found, went_on, parameter)
        model.set_params(**{parameter: before})


@pytest.mark.parametrize("cls", [xmtree.ActiveGamble, xmtree.ActiveLearner])
def test_parameters_changed_after_fit_do_not_affect_active_learners(cls):
    rows, labels = estimators.dense(n=120)
    template = xmtree.GambleClassifier(n_estimators=5, categorical_features=None)
    model = cls(estimator=template, n_rounds=3, random_state=0).fit(rows, labels)
    facts = ("selected_", "utilities_", "learning_curve_", "best_round_", "stop_reason_")

    def said():
        return state(model, rows, labels) | {name: getattr(model, name) for name in facts}

    expected = said()
    for parameter, before in model.get_params(deep=False).items():
        if parameter == "estimator":
            model.set_params(estimator__max_leaves=2, estimator__categorical_features=[0])
            np.testing.assert_equal(said(), expected)
            model.set_params(estimator=xmtree.SAMMEClassifier())
            np.testing.assert_equal(said(), expected)
        elif parameter not in OF_PREDICTION:
            for value in others(model, parameter):
                model.set_params(**{parameter: value})
                np.testing.assert_equal(said(), expected, f"{parameter}={value}")
        model.set_params(**{parameter: before})


def test_inspect_prints_the_parameters_of_the_training(tmp_path, capsys):
    model = xmtree.RecallTreeClassifier(bern_hyper=3.0, beam_size=2, random_state=0).fit(X, Y)
    model.set_params(bern_hyper=9.0, beam_size=7, loss="margin").save(tmp_path / "model")
    assert main(["inspect", str(tmp_path / "model")]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    shown = dict(line for line in lines if len(line) == 2)
    assert shown["bern_hyper"] == "3.0"
    assert shown["loss"] == "'softmax'"
    # Parameters of predictions are those of the file.
    assert shown["beam_size"] == "7"


@pytest.mark.parametrize(
    "changed", [{"scorers": "none"}, {"n_negatives": 5}, {"beta": 0.5}, {"arity": 3}]
)
def test_trees_are_not_added_after_changed_parameters(changed):
    settings = {"n_estimators": 2, "max_nodes": 20, "warm_start": True, "random_state": 0}
    model = xmtree.LdSMClassifier(**settings).fit(SETS_X, SETS_Y)
    before = state(model, SETS_X, SETS_Y.toarray())
    with pytest.raises(ValueError, match="must stay as they are when trees are added"):
        model.set_params(n_estimators=3, **changed).fit(SETS_X, SETS_Y)
    np.testing.assert_equal(state(model, SETS_X, SETS_Y.toarray()), before)
