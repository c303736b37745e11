"""What xmtree.dask does where there is no cluster."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

pytest.importorskip("distributed")

from test_ldsm import FEW, X_NEW, X, Y
from xmtree import LdSMClassifier, OAAClassifier
from xmtree.dask import DaskLdSMClassifier
from xmtree.dask._ldsm import Read, _fitted


def test_parameters_that_mean_nothing_are_refused():
    with pytest.raises(TypeError, match=r"no parameter 'n_jobs': a worker's own threads"):
        DaskLdSMClassifier(n_jobs=2)
    with pytest.raises(TypeError, match=r"no parameter 'warm_start'"):
        DaskLdSMClassifier(warm_start=True)
    with pytest.raises(TypeError, match="n_trees"):
        DaskLdSMClassifier(n_trees=2)


def test_without_a_client_it_says_so():
    with pytest.raises(ValueError, match="there is no Dask client"):
        DaskLdSMClassifier(**FEW).fit(X, Y)


def test_no_task_changes_what_it_is_given():
    local = LdSMClassifier(**FEW).fit(X, Y)
    read = Read(LdSMClassifier(**FEW), json_of(FEW), None, {})
    prepared = read(X, Y, None)
    assert not hasattr(read.local, "classes_")
    again = read(X, Y, None)
    assert prepared[1] is not again[1]
    fitted = _fitted(prepared, local._model)
    assert not hasattr(prepared[1], "_model")
    assert fitted.predict_topk(X_NEW)[0].tolist() == local.predict_topk(X_NEW)[0].tolist()


def json_of(params):
    return json.dumps(LdSMClassifier(**params)._core_params() | {"seed": 0})


def test_misaligned_arrays_are_read():
    """Arrays of a message between processes may lie anywhere."""

    def moved(array):
        memory = np.empty(array.nbytes + 1, np.uint8)[1:]
        memory[:] = array.view(np.uint8)
        return memory.view(array.dtype)

    arrays = moved(X_NEW.data), moved(X_NEW.indices), moved(X_NEW.indptr)
    assert not arrays[0].flags.aligned
    rows = sp.csr_matrix(arrays, X_NEW.shape)
    rows.data, rows.indices, rows.indptr = arrays
    labels, weights = moved(np.arange(300) % 5), moved(np.ones(300))
    model = OAAClassifier(random_state=0).fit(rows, labels, weights)
    wanted = OAAClassifier(random_state=0).fit(X_NEW, np.arange(300) % 5, np.ones(300))
    assert np.array_equal(model.decision_function(rows), wanted.decision_function(X_NEW))


def test_without_dask_the_rest_works(tmp_path):
    for name in ("dask", "distributed"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('none')")
    code = (
        "import xmtree\n"
        "try:\n    import xmtree.dask\n"
        "except ImportError as error:\n    print(error)"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    run = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "pip install xmtree[dask]" in run.stdout
