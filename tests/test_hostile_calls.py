"""Every public call with nonsensical arguments raises one of few errors, and never panics."""

import inspect
import random

import estimators
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import xmtree
from sklearn.exceptions import NotFittedError
from xmtree import datasets, metrics

pytestmark = pytest.mark.filterwarnings("ignore")

ALLOWED = (ValueError, TypeError, OSError, MemoryError, RuntimeError, NotFittedError)
X, Y = estimators.sparse(n=60)

broken = sp.csr_matrix(np.eye(3))
broken.indices = np.array([0, 7, 2], np.int32)
backwards = sp.csr_matrix(np.eye(3))
backwards.indptr = np.array([0, 2, 1, 3], np.int32)
by_column = sp.csc_matrix(np.eye(3))
by_column.indices = np.array([0, 7_000_000, 2], np.int32)
by_value = sp.coo_matrix(np.eye(3))
by_value.row[0] = 7_000_000

HOSTILE = [
    None,
    True,
    0,
    -1,
    10**30,
    1e308,
    float("nan"),
    "",
    "nonsense",
    "\x00",
    b"bytes",
    [],
    [[]],
    [1, "a", None],
    {},
    {"a": object()},
    object(),
    lambda: None,
    np.array(3),
    np.zeros((0, 5)),
    np.zeros((3, 0)),
    np.zeros((2, 2, 2)),
    np.full((3, 4), np.nan),
    np.full((3, 4), np.inf),
    np.array([[1e308, -1e308]]),
    np.array([["a", "b"]]),
    np.array([[None, {}]], object),
    np.array([1 + 2j]),
    np.array(["2020-01-01"], "M8[D]"),
    np.zeros(3, "V8"),
    np.arange(12).reshape(3, 4)[::-1, ::-1],
    sp.csr_matrix((0, 4)),
    sp.coo_matrix(np.eye(3)),
    broken,
    backwards,
    by_column,
    by_value,
    pd.DataFrame({"a": ["x", None]}),
    pd.DataFrame(),
    pd.Series([1, 2]),
]


def calls():
    """Return public functions and classes by name."""
    public = {name: getattr(xmtree, name) for name in xmtree.__all__}
    for module in (metrics, datasets):
        prefix = module.__name__.rpartition(".")[2]
        public |= {f"{prefix}.{name}": getattr(module, name) for name in module.__all__}
    return {
        name: thing
        for name, thing in public.items()
        if callable(thing) and not (inspect.isclass(thing) and issubclass(thing, Exception))
    }


def methods(model):
    for name, _ in inspect.getmembers(type(model)):
        if not name.startswith("_"):
            method = getattr(model, name, None)
            if inspect.ismethod(method):
                yield name, method


def attack(call, seed, n=60):
    """Call the function repeatedly with nonsense."""
    source = random.Random(seed)
    try:
        parameters = [
            p
            for p in inspect.signature(call).parameters.values()
            if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        ]
    except ValueError:
        return
    for _ in range(n):
        given = {}
        for parameter in parameters:
            is_needed = parameter.default is parameter.empty
            if is_needed or source.random() < 0.3:
                sensible = {"X": X, "y": Y, "k": 2}.get(parameter.name)
                is_sensible = sensible is not None and source.random() < 0.5
                given[parameter.name] = sensible if is_sensible else source.choice(HOSTILE)
        positional = [
            given.pop(p.name) for p in parameters if p.kind is p.POSITIONAL_ONLY and p.name in given
        ]
        try:
            result = call(*positional, **given)
            if inspect.isgenerator(result):
                next(result, None)
        except ALLOWED:
            pass
        except BaseException as error:
            # Show only types, as scipy writes beyond its arrays when it prints a damaged matrix.
            shown = {name: type(value).__name__ for name, value in given.items()}
            raise AssertionError(
                f"{type(error).__name__}: {error}, from {getattr(call, '__qualname__', call)} of "
                f"{[type(value).__name__ for value in positional]} {shown}"
            ) from error


@pytest.mark.parametrize("damaged", [broken, backwards, by_column, by_value], ids="abcd")
def test_damaged_sparse_matrices_are_refused(damaged, tmp_path):
    """Pass matrices for most of which scipy would write beyond their arrays."""
    with pytest.raises(ValueError, match=r"damaged|outside|indptr|row"):
        xmtree.OAAClassifier().fit(damaged, [0, 1, 0])
    with pytest.raises(ValueError, match=r"y is a damaged sparse matrix|outside"):
        xmtree.OAAClassifier().fit(np.eye(3), damaged)
    with pytest.raises(ValueError, match=r"y_true is a damaged sparse matrix|outside"):
        metrics.precision_at_k(damaged, np.zeros((3, 3)))
    with pytest.raises(ValueError, match=r"y_pred is a damaged sparse matrix|outside"):
        metrics.precision_at_k(np.eye(3), damaged)
    with pytest.raises(ValueError, match="X is a damaged sparse matrix"):
        datasets.save_xmc(tmp_path / "data", damaged, [[0], [1], [2]])


@pytest.mark.parametrize("name", calls())
def test_functions_and_constructors(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    attack(calls()[name], name)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("name", "is_fitted"),
    [
        *((name, False) for name in estimators.CLASSES),
        *((name, True) for name in estimators.PYTHON),
    ],
)
def test_methods(name, is_fitted, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = estimators.ALL[name]()
    if is_fitted:
        model.fit(X, Y)
    for method_name, method in methods(model):
        if method_name in ("set_params", "get_metadata_routing"):
            continue
        attack(method, f"{name} {method_name}", n=40)
