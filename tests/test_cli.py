"""The command line: output, exit codes and errors."""

import json
import lzma
import subprocess
import sys

import estimators
import numpy as np
import pytest
import xmtree
from cli_files import piped, run
from xmtree.datasets import load_xmc, save_xmc
from xmtree.metrics import precision_at_k, propensities, psndcg_at_k, recall_at_k

X, Y = estimators.sparse(n=600)
SETS_X, SETS_Y = estimators.label_sets(n=600)


@pytest.fixture
def files(tmp_path):
    """Write single labels and label sets as XMC, and single labels as svmlight."""
    save_xmc(tmp_path / "one.txt", X, Y)
    save_xmc(tmp_path / "sets.txt", SETS_X, SETS_Y)
    (tmp_path / "one.txt.xz").write_bytes(lzma.compress((tmp_path / "one.txt").read_bytes()))
    lines = (tmp_path / "one.txt").read_text().splitlines()[1:]
    (tmp_path / "one.svm").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_compact_models_predict_and_are_described(files, capsys):
    full, small = files / "full", files / "small"
    for path, more in ((full, []), (small, ["--compact"])):
        assert run("fit", files / "one.txt", "--learner", "lomtree", *more, "-o", path) == 0
        assert run("inspect", path) == 0
        assert run("evaluate", path, files / "one.txt") == 0
    assert small.stat().st_size < full.stat().st_size
    capsys.readouterr()


@pytest.mark.parametrize(
    ("model", "data"),
    [(name, "one.txt") for name in ("oaa", "lomtree", "recall-tree", "filter-tree")]
    + [("lomtree", "one.txt.xz"), ("lomtree", "one.svm")],
)
@pytest.mark.parametrize("passes", ["1", "4"])
def test_fit_predict_evaluate(model, data, passes, files, capsys):
    path = files / "model"
    settings = ["--set", "scaling=row"]
    assert (
        run("fit", files / data, "--learner", model, "--passes", passes, *settings, "-o", path) == 0
    )
    out, err = capsys.readouterr()
    assert out == ""
    assert "12 labels, 48 features" in err
    assert run("evaluate", path, files / data, "--json") == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["n_examples"] == 600
    assert figures["error"] == pytest.approx(1 - figures["P@1"])
    learner = xmtree.load(path)
    best, _ = learner.predict_topk(X, 5)
    assert figures["error"] == pytest.approx(np.mean(best[:, 0] != Y))
    assert figures["error"] < 0.3
    for k in (1, 3, 5):
        assert figures[f"P@{k}"] == pytest.approx(np.mean(best[:, :k] == Y[:, None]))
    assert figures["nDCG@1"] == figures["P@1"]
    assert run("predict", path, files / data, "-k", 2) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 600
    expected, scores = learner.predict_topk(X, 2)
    for line, labels, values in zip(lines, expected, scores, strict=True):
        pairs = [pair.split(":") for pair in line.split()]
        assert [int(label) for label, _ in pairs] == labels.tolist()
        np.testing.assert_allclose([float(s) for _, s in pairs], values, rtol=1e-4, atol=1e-6)


def test_streaming_equals_partial_fit(files):
    assert (
        run("fit", files / "one.txt", "--learner", "lomtree", "--passes", 1, "-o", files / "m") == 0
    )
    streamed = xmtree.load(files / "m")
    expected = xmtree.LOMTreeClassifier(n_passes=1, random_state=0)
    expected.partial_fit(X, Y, classes=np.arange(12))
    estimators.same_predictions(streamed, expected, X)
    assert streamed.n_examples_seen_ == 600


def test_propensity_scored_precision(files, capsys):
    path = files / "model"
    assert run("fit", files / "sets.txt", "--learner", "oaa", "-o", path) == 0
    capsys.readouterr()
    assert run("evaluate", path, files / "sets.txt", "--json") == 0
    assert not any("PSP" in name for name in json.loads(capsys.readouterr().out))
    command = ["evaluate", path, files / "sets.txt", "--train", files / "sets.txt", "--json"]
    assert run(*command, "--batch-size", 77) == 0
    figures = json.loads(capsys.readouterr().out)
    rows, true = load_xmc(files / "sets.txt", multilabel=True)
    true = true.toarray()
    best, _ = xmtree.load(path).predict_topk(rows, 3)
    weight = 1 + (np.log(600) - 1) * 2.5**0.55 * (true.sum(axis=0) + 1.5) ** -0.55
    for k in (1, 3):
        won = sum(weight[c] * true[i, c] for i in range(600) for c in best[i, :k] if c >= 0)
        most = sum(np.sort(weight * true[i])[-k:].sum() for i in range(600))
        assert figures[f"PSP@{k}"] == pytest.approx(won / most)
    shown = [name for name in figures if name.endswith("@3")]
    assert shown == ["P@3", "nDCG@3", "recall@3", "PSP@3", "PSnDCG@3"]
    p = propensities(true)
    for k in (1, 3, 5):
        best, _ = xmtree.load(path).predict_topk(rows, k)
        assert figures[f"recall@{k}"] == pytest.approx(recall_at_k(true, best, k))
        assert figures[f"PSnDCG@{k}"] == pytest.approx(psndcg_at_k(true, best, p, k))


@pytest.mark.parametrize("passes", [1, 3])
def test_label_sets(passes, files, capsys):
    path = files / "model"
    assert run("fit", files / "sets.txt", "--learner", "oaa", "--passes", passes, "-o", path) == 0
    assert xmtree.load(path)._y_form == "sparse"
    capsys.readouterr()
    assert run("evaluate", path, files / "sets.txt") == 0
    figures = dict(line.split() for line in capsys.readouterr().out.splitlines())
    best, _ = xmtree.load(path).predict_topk(SETS_X, 3)
    for k in (1, 3):
        assert float(figures[f"P@{k}"]) == pytest.approx(precision_at_k(SETS_Y, best, k), abs=1e-5)
    assert float(figures["P@1"]) > 0.7
    assert run("predict", path, files / "sets.txt", "--json", "-o", files / "out") == 0
    rows = [json.loads(line) for line in (files / "out").read_text().splitlines()]
    assert len(rows) == 600
    assert all(len(row["labels"]) == len(row["scores"]) == 5 for row in rows)


def test_stdin_to_stdout(files):
    text = (files / "one.txt").read_text()
    model = files / "model"
    fit = ["fit", "-", "--learner", "lomtree"]
    fitted = piped(*fit, "-o", model, stdin=text)
    assert fitted.returncode == 0, fitted.stderr
    predicted = piped("predict", model, "-", "-k", 1, stdin=text)
    assert predicted.returncode == 0, predicted.stderr
    labels = [int(line.split(":")[0]) for line in predicted.stdout.splitlines()]
    assert np.mean(labels == Y) > 0.5
    assert predicted.stderr == ""
    svmlight = (files / "one.svm").read_text()
    described = ["--format", "svmlight", "--index-base", 0, "--n-labels", 12, "--n-features", 48]
    again = piped(*fit, *described, "-o", files / "m", stdin=svmlight)
    assert again.returncode == 0, again.stderr
    estimators.same_predictions(xmtree.load(model), xmtree.load(files / "m"), X)


def test_inspect(files, capsys):
    path = files / "model"
    run("fit", files / "one.txt", "--learner", "lomtree", "-o", path)
    capsys.readouterr()
    assert run("inspect", path, "--depth", 2) == 0
    out = capsys.readouterr().out
    assert "LOMTreeClassifier" in out
    assert "swap_resistance" in out
    assert "node 0" in out
    assert "label_entropy" in out
    xmtree.OAAClassifier().fit(X, Y).save(path)
    assert run("inspect", path) == 0


def test_inspect_a_recall_tree(files, capsys):
    path = files / "model"
    names = np.array([f"class {at}" for at in range(12)])
    model = xmtree.RecallTreeClassifier(max_candidates=3, random_state=0).fit(X, names[Y])
    model.save(path)
    assert run("inspect", path, "--depth", 1) == 0
    out = capsys.readouterr().out
    assert f"progressive recall {model.progressive_recall_:.4f}" in out
    assert "at most 3 per node" in out
    nodes = [line for line in out.splitlines() if line.strip().startswith(("node ", "leaf "))]
    assert len(nodes) == 3
    for fact in ("label class ", "recall 0.", "recall_bound 0.", "candidates 3"):
        assert fact in nodes[0]
    assert nodes[1].endswith(" ...")


def test_inspect_lists_only_the_first_trees(files, capsys):
    estimators.ALL["gamble"](n_estimators=25).fit(X, Y).save(files / "model")
    assert run("inspect", files / "model") == 0
    out = capsys.readouterr().out
    assert "tree 19: " in out
    assert "and 5 more" in out


def test_none_as_a_word_and_as_a_value(files):
    path = files / "model"
    words = ["--set", "path_features=none", "--set", "scaling=none", "--set", "max_depth=none"]
    assert run("fit", files / "one.txt", "--learner", "recall-tree", *words, "-o", path) == 0
    params = xmtree.load(path).get_params()
    assert params["path_features"] == params["scaling"] == "none"
    assert params["max_depth"] is None


WRONG_USAGE = [
    ([], "COMMAND"),
    (["dance"], "dance"),
    (["fit", "one.txt", "--learner", "oaa"], "-o"),
    (["fit", "one.txt", "--learner", "forest", "-o", "m"], "forest"),
    (["fit", "one.txt", "--learner", "oaa", "-o", "m", "--set", "loss"], "key=value"),
    (["fit", "one.txt", "--learner", "oaa", "-o", "m", "--set", "los=hinge"], "did you mean loss"),
    (["fit", "one.txt", "--learner", "oaa", "-o", "m", "--set", "zzz=1"], "n_passes"),
    (["fit", "one.txt", "--learner", "oaa", "-o", "m", "--set", "loss=absolute"], "loss"),
    (["fit", "one.txt", "--learner", "oaa", "-o", "m", "--passes", "0"], "--passes"),
    (["fit", "one.txt", "--learner", "oaa", "-o", "m", "--batch-size", "0"], "--batch-size"),
    (
        ["fit", "one.txt", "--learner", "lomtree", "-o", "m", "--labels", "sets"],
        "one label per row",
    ),
    (["fit", "-", "--learner", "oaa", "-o", "m", "--passes", "2"], "stdin"),
    (["fit", "-", "--format", "svmlight", "--learner", "oaa", "-o", "m"], "--n-labels"),
    (["predict", "model", "one.txt", "-k", "0"], "-k"),
    (["demo", "--rows", "1"], "--rows"),
    (["inspect", "model", "--plot", "tree.pdf"], ".svg, .png or .html"),
    (["inspect", "model", "--tree", "1"], "--tree"),
    (["inspect", "model", "--plot", "tree.svg"], "no tree"),
    (["inspect", "model", "--depth", "-1"], "--depth"),
]

FAILURES = [
    (["fit", "absent.txt", "--learner", "oaa", "-o", "m"], "absent.txt"),
    (["fit", "broken.txt", "--learner", "oaa", "-o", "m"], "broken.txt:2"),
    (["fit", "sets.txt", "--learner", "lomtree", "-o", "m", "--passes", "1"], "labels"),
    (["fit", "sets.txt", "--learner", "lomtree", "-o", "m", "--passes", "2"], "label"),
    (["fit", "one.txt", "--learner", "oaa", "-o", "absent/m"], "absent"),
    (["predict", "absent", "one.txt"], "absent"),
    (["predict", "one.txt", "one.txt"], "model"),
    (["predict", "model", "sets.txt"], "48 features"),
    (["evaluate", "model", "empty.txt"], "no examples"),
    (["inspect", "one.txt"], "model"),
]


@pytest.mark.parametrize(
    ("arguments", "message", "code"),
    [(*case, 2) for case in WRONG_USAGE] + [(*case, 1) for case in FAILURES],
)
def test_errors_are_one_line(arguments, message, code, files, capsys, monkeypatch):
    monkeypatch.chdir(files)
    (files / "broken.txt").write_text("2 3 4\n0 x:1\n1 2:1\n")
    (files / "empty.txt").write_text("0 48 12\n")
    xmtree.OAAClassifier(random_state=0).fit(X, Y).save("model")
    assert run(*arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert err.startswith("xmtree")
    assert not (files / "m").exists()


def test_debug_shows_the_traceback(files, capsys):
    assert run("inspect", files / "absent", "--debug") == 1
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["fit"], ["predict"], ["evaluate"], ["inspect"], ["demo"]])
def test_help(command, capsys):
    with pytest.raises(SystemExit) as stopped:
        run(*command, "--help")
    assert stopped.value.code == 0
    assert "usage: xmtree" in capsys.readouterr().out


def test_a_closed_pipe_shows_no_traceback(files):
    path = files / "model"
    xmtree.OAAClassifier(random_state=0).fit(X, Y).save(path)
    many = "\n".join(["60000 48 12", *(files / "one.txt").read_text().splitlines()[1:] * 100])
    (files / "many.txt").write_text(many + "\n")
    command = f"{sys.executable} -m xmtree predict {path} {files / 'many.txt'} | head -1"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.stdout.count("\n") == 1
    assert done.stderr == ""


def test_unknown_labels_count_as_missed(files, capsys):
    few = Y < 6
    xmtree.OAAClassifier(random_state=0).fit(X[few], Y[few]).save(files / "model")
    assert run("evaluate", files / "model", files / "one.txt", "--json") == 0
    figures = json.loads(capsys.readouterr().out)
    assert 0.45 < figures["P@1"] <= 0.5


def test_string_labels_cannot_be_compared_with_numbers(files, capsys):
    xmtree.OAAClassifier(random_state=0).fit(X, [f"l{label}" for label in Y]).save(files / "model")
    assert run("predict", files / "model", files / "one.txt", "-k", 1) == 0
    assert capsys.readouterr().out.startswith("l")
    assert run("evaluate", files / "model", files / "one.txt") == 1
    assert "cannot be compared" in capsys.readouterr().err
