"""Write the golden files: small streams and Vowpal Wabbit's predictions on them.

    pip install vowpalwabbit==9.11.9 numpy
    python tests/golden/make_vw.py

Deterministic; each ``vw_<stream>.npz`` holds (no pickles; see
``tests/reference/README.md`` for the keys) the stream, the test rows, and for each
configuration VW's predictions and, for ``--log_multi``, its final tree.  The files
``vw_recall_<name>.npz`` hold the same for ``--recall_tree`` without the stream.

Details that make the comparison exact:

* Features go in through VW's Python interface as (integer index, float32 value), so
  no text parser rounds them, in increasing order; VW adds its constant as the last
  one.  ``vw -d`` on text gives the same predictions.
* Integer indices are not hashed, and ``-b 18`` leaves room for every (feature,
  predictor) pair, the constant's included: ``check_room`` asserts it.  For recall
  trees ``-b 20``, and indices start from 1: the root's indicator has index 0.
* "Two passes" is the stream fed twice in the same order; VW's ``--passes 2`` with a
  cache and ``--holdout_off`` does the same.
"""

import json
import re
import tempfile
from pathlib import Path

import numpy as np
import vowpalwabbit

HERE = Path(__file__).parent
BITS, CONSTANT = 18, 11650396  # the hash VW gives its constant feature
RECALL_BITS, NODE = 20, 868771  # node j's indicator has index 868771 j
HEAD = 60  # number of rows whose progressive scores are kept

LOSSES = {
    f"oaa_{loss}": f"--oaa {{k}} --loss_function {loss}"
    for loss in ("squared", "logistic", "hinge", "quantile")
}
OAA_OPTIONS = {
    "oaa_quantile_tau": "--oaa {k} --loss_function quantile --quantile_tau 0.3",
    "oaa_rate": "--oaa {k} --learning_rate 2",
}


def tree(T, resistance=4):
    """Return name and options of a --log_multi run with T internal nodes."""
    name = f"lomtree_T{T}_R{resistance}"
    return {name: f"--log_multi {T + 1} --swap_resistance {resistance}"}


# -- streams --------------------------------------------------------------------------


def to_csr(X):
    """Return the arrays (indptr, indices, data) of a dense matrix, without zeros."""
    nonzero = X != 0
    indptr = np.concatenate([[0], np.cumsum(nonzero.sum(1))]).astype(np.int32)
    return indptr, np.nonzero(nonzero)[1].astype(np.int32), X[nonzero].astype(np.float32)


def on_grid(X):
    """Round values to multiples of 1/16, which compress well and are exact as text."""
    return np.round(X * 16) / 16


def sparse_rows(rng, centres, y, keep, noise):
    """Return noisy class centers with a random part of the features in each row."""
    X = centres[y] + noise * rng.normal(size=(len(y), centres.shape[1]))
    return on_grid(X * (rng.random(X.shape) < keep))


def stream_sparse(rng, n=450, k=10, d=100):
    """Return a stream like text: a tenth of the features, counts, skewed classes."""
    y = rng.choice(k, size=n, p=rng.dirichlet(np.full(k, 2.0)))
    mean = rng.gamma(0.3, 0.7, size=d) * rng.gamma(0.7, 1.4, size=(k, d))
    return rng.poisson(mean[y]).astype(float), y, np.ones(n)


def stream_scales(rng, n=450, k=6, d=12):
    """Return dense rows with growing feature scales from 1e-4 to 1e4, which rescale weights."""
    y = rng.integers(k, size=n)
    X = rng.normal(size=(k, d))[y] * 0.6 + rng.normal(size=(n, d))
    growth = 1 + 3 * np.arange(n)[:, None] / n * (np.arange(d) % 3)
    return X * np.logspace(-4, 4, d) * growth, y, np.ones(n)


def stream_weighted(rng, n=450, k=8, d=40):
    """Return a stream with importance weights, some 0, and a few rows without features."""
    y = rng.integers(k, size=n)
    X = sparse_rows(rng, rng.normal(size=(k, d)), y, 0.4, 0.7)
    X[rng.random(n) < 0.02] = 0
    return X, y, rng.choice([0, 0.25, 0.5, 1, 2, 5.5], size=n)


def stream_drift(rng, n=1050, k=24, d=30, segment=75):
    """Return a stream whose class distribution changes every ``segment`` rows."""
    y = np.empty(n, int)
    for i in range(0, n, segment):
        y[i : i + segment] = rng.choice(k, size=segment, p=rng.dirichlet(np.full(k, 0.15)))
    return sparse_rows(rng, 1.5 * rng.normal(size=(k, d)), y, 0.35, 0.8), y, np.ones(n)


def stream_takeover(rng, n=1000, k=16, d=20, segment=200):
    """Return a stream with new classes in each ``segment`` and none of the old ones."""
    first = 3 * (np.arange(n) // segment)
    y = (first + rng.integers(4, size=n)) % k
    weight = rng.choice([0.5, 1, 3], size=n)
    return sparse_rows(rng, 1.5 * rng.normal(size=(k, d)), y, 0.6, 0.8), y, weight


def stream_many(rng, n=750, k=30, d=60):
    """Return a stream with many classes, distributed by a power law."""
    p = 1 / (1 + np.arange(k))
    y = rng.choice(k, size=n, p=p / p.sum())
    return sparse_rows(rng, 2 * rng.normal(size=(k, d)), y, 0.2, 0.5), y, np.ones(n)


STREAMS = {  # name: (function, seed, test rows, configurations)
    "sparse": (stream_sparse, 1, 100, LOSSES | OAA_OPTIONS | tree(9) | tree(30)),
    "scales": (stream_scales, 2, 100, LOSSES | OAA_OPTIONS | tree(5) | tree(20, 1)),
    "weighted": (stream_weighted, 3, 100, LOSSES | OAA_OPTIONS | tree(7) | tree(16, 2)),
    "drift": (stream_drift, 4, 100, tree(23) | tree(23, 1) | tree(15, 2) | tree(40)),
    "takeover": (stream_takeover, 5, 100, tree(15) | tree(15, 1) | tree(31, 2)),
    "many": (stream_many, 6, 100, {"oaa_squared": LOSSES["oaa_squared"]} | tree(29) | tree(100)),
}


def recall(stream, *configurations):
    """Return a file of --recall_tree runs, named by their shortened options."""
    letters = {
        "max_candidates": "F", "max_depth": "D", "bern_hyper": "h", "learning_rate": "rate",
        "quantile_tau": "tau",
    }  # fmt: skip
    runs = {}
    for text in configurations:
        name = "recall"
        for option in filter(None, text.split("--")):
            key, _, value = option.strip().partition(" ")
            name += "_" + {"loss_function": ""}.get(key, letters.get(key, key)) + value
        runs[name] = f"--recall_tree {{k}} {text}".strip()
    return stream, runs


RECALL = {  # vw_recall_<name>.npz: (stream, runs)
    "drift": recall(
        "drift",
        "",
        "--max_candidates 4 --bern_hyper 0.01 --loss_function logistic --learning_rate 1",
        "--max_candidates 2 --bern_hyper 0 --loss_function quantile",
    ),
    "many": recall(
        "many",
        "--max_candidates 4 --node_only",
        "--max_candidates 2 --bern_hyper 10 --loss_function hinge",
    ),
    "scales": recall(
        "scales",
        "--max_candidates 2 --loss_function logistic",
        "--max_candidates 2 --bern_hyper 0.01 --loss_function quantile --quantile_tau 0.3",
        "--max_candidates 2 --max_depth 3 --bern_hyper 0 --node_only --loss_function hinge",
    ),
    "sparse": recall(
        "sparse",
        "--max_candidates 2",
        "--max_candidates 2 --loss_function logistic --learning_rate 1",
        "--max_candidates 4 --max_depth 1 --node_only --loss_function logistic",
        "--max_candidates 3 --max_depth 6 --bern_hyper 0.01 --loss_function hinge",
    ),
    "takeover": recall(
        "takeover",
        "--max_candidates 4 --bern_hyper 0.01 --node_only --loss_function hinge",
        "--max_candidates 2 --max_depth 3 --loss_function quantile",
    ),
    "uneven": recall(
        "weighted",
        "--max_candidates 2 --loss_function logistic",
        "--max_candidates 4 --max_depth 3 --bern_hyper 0.1",
        "--max_candidates 2 --max_depth 5 --bern_hyper 10 --node_only --loss_function hinge",
    ),
    "weighted": recall("weighted", "--max_candidates 2 --loss_function hinge"),
    "late_zeros": recall(
        "weighted",
        "--max_candidates 2 --loss_function hinge",
        "--max_candidates 3 --bern_hyper 0.1 --node_only --loss_function quantile",
    ),
}


def uneven_weights(n):
    """Return positive weights that VW reads, and whose sums are not float32 numbers."""
    return np.random.default_rng(7).choice([0.1, 0.3, 0.7, 1.1, 2.3, 5.6], size=n)


# -- running VW -----------------------------------------------------------------------


def workspace(options):
    bits = str(RECALL_BITS if "--recall_tree" in options else BITS)
    return vowpalwabbit.Workspace(arg_list=[*options.split(), "-b", bits, "--quiet"])


def check_room(n_features, n_predictors):
    """Assert that no two (feature, predictor) pairs share a weight."""
    width = 1 << (n_predictors - 1).bit_length()  # VW rounds up to a power of two
    slots = np.append(np.arange(n_features), CONSTANT) * width % (1 << BITS)
    assert len(set(slots)) == n_features + 1
    assert np.diff(np.sort(slots)).min() >= width


def each_row(vw, csr, labels=None, weight=None, first=0):
    """Yield the rows as VW examples, with labels if given, and release them afterwards.

    ``first`` is the index of feature 0.
    """
    indptr, indices, data = csr
    for i in range(len(indptr) - 1):
        row = slice(indptr[i], indptr[i + 1])
        pairs = [(int(j) + first, float(v)) for j, v in zip(indices[row], data[row], strict=True)]
        example = vowpalwabbit.Example(vw, {"x": pairs})
        if labels is not None:
            example.set_label_string(f"{labels[i] + 1} {weight[i]!s}")
            assert example.get_multiclass_weight() == weight[i]
        yield example
        vw.finish_example(example)


def run(options, train, y, weight, test, read):
    """Return ``read(example)`` after learning each row, in two passes, and on the test rows."""
    vw = workspace(options)
    passes = []
    for _ in range(2):
        out = []
        for example in each_row(vw, train, y, weight):
            vw.learn(example)
            out.append(read(example))
        passes.append(np.array(out))
    out = []
    for example in each_row(vw, test):
        vw.predict(example)
        out.append(read(example))
    vw.finish()
    return *passes, np.array(out)


def parse_tree(text):
    """Return nodes and label tables of ``--readable_model``; floats have six digits."""
    fields = {
        "parent": np.int32, "internal": np.int32, "left": np.int32, "right": np.int32,
        "min_count": np.int32, "base_predictor": np.int32, "norm_Eh": float, "Eh": float,
        "n": np.int32, "max_count": np.int32, "max_count_label": np.int32,
    }  # fmt: skip
    labels = {
        "label": np.int32, "label_count": np.int32, "nk": np.int32, "Ehk": float, "norm_Ehk": float
    }  # fmt: skip
    nodes, table, starts = [], [], []
    for line in text.splitlines():
        found = dict(re.findall(r"(\w+) = (\S+)", line))
        if line.startswith(" parent"):
            nodes.append(found)
            starts.append(len(table))
        elif line.startswith("  Ehk"):
            table.append(found)
    out = {
        f"node_{f}": np.array([v.get(f, "-1") for v in nodes]).astype(t) for f, t in fields.items()
    }
    out |= {f"table_{f}": np.array([v[f] for v in table]).astype(t) for f, t in labels.items()}
    out["table_label"] -= 1
    at_leaf = out["node_max_count_label"] > 0
    out["node_max_count_label"] = np.where(at_leaf, out["node_max_count_label"] - 1, -1)
    return out | {"table_indptr": np.array([*starts, len(table)], dtype=np.int32)}


def run_recall(options, n_features, train, y, weight, test):
    """Return everything recorded for one --recall_tree run, by the last part of its key."""

    def answer(vw, example):
        """Return the prediction, and the unclamped score that VW computed last for it."""
        vw.predict(example)
        return example.get_multiclass_prediction() - 1, example.get_partial_prediction()

    seen = {"pass1": [], "pass2": [], "test": []}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model.txt")
        vw = workspace(f"{options} --readable_model {model}")
        for part in ("pass1", "pass2"):
            for example in each_row(vw, train, y, weight, first=1):
                seen[part].append(answer(vw, example))
                vw.learn(example)
                assert example.get_multiclass_prediction() - 1 == seen[part][-1][0]
        seen["test"] = [answer(vw, example) for example in each_row(vw, test, first=1)]
        vw.finish()
        text = model.read_text()
    out = {part: np.array([label for label, _ in pairs]) for part, pairs in seen.items()}
    for key, pairs in (("score_head", seen["pass1"][:HEAD]), ("score_test", seen["test"])):
        out[key] = np.array([score for _, score in pairs], dtype=np.float32)
    out |= parse_recall_tree(text)
    used = [int(line.split(":")[0]) for line in re.findall(r"^\d+:\S+ ", text, re.M)]
    check_recall_room(n_features, int(options.split()[1]), out["node_links"][:, 3], used)
    return out


def check_recall_room(n_features, k, routers, used):
    """Assert that no two (feature, predictor) pairs share a weight, and that none is misplaced."""
    n_routers, n_nodes = int(routers.max()) + 1, len(routers)
    width = 1 << (n_routers + k - 1).bit_length()  # VW rounds up to a power of two
    starts = [*np.arange(1, n_features + 1), CONSTANT]
    slots = [j * width + i for j in starts for i in range(n_routers + k)]
    slots += [NODE * j + n_routers + i for j in range(n_nodes) for i in range(k)]
    slots = {int(slot) % (1 << RECALL_BITS) for slot in slots}
    assert len(slots) == (n_features + 1) * (n_routers + k) + n_nodes * k
    assert slots >= set(used)


def parse_recall_tree(text):
    """Return nodes and counts of ``--readable_model``, which has all digits."""
    nodes, table, starts = [], [], []
    for name, value in re.findall(r"^(\w+) = (\S+)$", text, re.M):
        if name == "parent":
            nodes.append({})
            starts.append(len(table))
        if name == "label":
            table.append([int(value) - 1])
        elif name == "label_count":
            table[-1].append(float(value))
        elif nodes and name != "internal":
            nodes[-1][name] = float(value)
    links = [[v[f] for f in ("parent", "left", "right", "base_router", "depth")] for v in nodes]
    return {
        "node_links": np.array(links).astype(np.int16),
        "node_n": np.array([v["n"] for v in nodes]),
        "node_entropy": np.array([v["entropy"] for v in nodes]),
        "node_bound": np.array([v["recall_lbest"] for v in nodes], dtype=np.float32),
        "table_indptr": np.array([*starts, len(table)], dtype=np.int16),
        "table_label": np.array([label for label, _ in table], dtype=np.int16),
        "table_count": np.array([count for _, count in table]),
    }


def golden(options, *data):
    """Return everything recorded for one configuration, by the last part of its key."""
    names = ("pass1", "pass2", "test")
    if "--log_multi" not in options:
        answers = run(options, *data, lambda e: e.get_multiclass_prediction() - 1)
        scores = run(options + " --scores", *data, lambda e: np.float32(e.get_scalars()))
        out = dict(zip(names, answers, strict=True))
        return out | {"scores_head": scores[0][:HEAD], "scores_test": scores[2]}
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder, "model.txt")
        options += f" --readable_model {model}"
        answers = run(options, *data, lambda e: e.get_multiclass_prediction() - 1)
        return dict(zip(names, answers, strict=True)) | parse_tree(model.read_text())


def main():
    for stream, (make, seed, n_test, configurations) in STREAMS.items():
        X, y, weight = make(np.random.default_rng(seed))
        k, cut = int(y.max()) + 1, len(y) - n_test
        train, test = to_csr(X[:cut]), to_csr(X[cut:])
        y, weight = y.astype(np.int32)[:cut], weight.astype(np.float32)[:cut]
        used = {name: options.format(k=k) for name, options in configurations.items()}
        meta = {
            "vw_version": vowpalwabbit.__version__, "stream": stream, "about": make.__doc__,
            "n_classes": k, "n_features": X.shape[1], "options": used,
        }  # fmt: skip
        out = {"meta": np.array(json.dumps(meta)), "train_y": y, "train_weight": weight}
        for part, csr in (("train", train), ("test", test)):
            for name, array in zip(("indptr", "indices", "data"), csr, strict=True):
                out[f"{part}_{name}"] = array
        for name, options in used.items():
            check_room(X.shape[1], int(options.split()[1]))
            for key, array in golden(options, train, y, weight, test).items():
                kind = np.int16 if key in ("pass1", "pass2", "test") else array.dtype
                out[f"{name}.{key}"] = array.astype(kind)
        save(stream, out)
    recall_files()


def recall_files():
    """Return the files of --recall_tree runs, which refer to the streams' files."""
    for name, (stream, configurations) in RECALL.items():
        with np.load(HERE / f"vw_{stream}.npz") as file:
            meta = json.loads(str(file["meta"]))
            data = {key: file[key] for key in file.files if key.startswith(("train_", "test_"))}
        train, test = (
            [data[f"{part}_{key}"] for key in ("indptr", "indices", "data")]
            for part in ("train", "test")
        )
        weight, out = data["train_weight"], {}
        if name == "uneven":
            weight = uneven_weights(len(weight)).astype(np.float32)
        if name == "late_zeros":  # early rows of weight 0 make VW lose its tree
            weight = np.where((weight == 0) & (np.arange(len(weight)) < 60), np.float32(1), weight)
        if weight is not data["train_weight"]:
            out["train_weight"] = weight
        used = {run: text.format(k=meta["n_classes"]) for run, text in configurations.items()}
        meta |= {"vw_version": vowpalwabbit.__version__, "stream": stream, "options": used}
        out["meta"] = np.array(json.dumps(meta))
        for run, options in used.items():
            answers = run_recall(options, meta["n_features"], train, data["train_y"], weight, test)
            for key, array in answers.items():
                kind = np.int16 if key in ("pass1", "pass2", "test") else array.dtype
                out[f"{run}.{key}"] = array.astype(kind)
        save(f"recall_{name}", out)


def save(name, arrays):
    path = HERE / f"vw_{name}.npz"
    np.savez_compressed(path, **arrays)
    print(name, path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
