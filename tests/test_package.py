"""The installed package is consistent."""

import subprocess
import sys
import sysconfig
from importlib import metadata
from importlib.resources import files

import estimators
import pytest
from xmtree import _core


def test_the_compiled_module_and_the_metadata_are_of_one_version():
    assert _core.__version__ == metadata.version("xmtree")


def test_the_package_contains_its_types():
    assert files("xmtree").joinpath("py.typed").is_file()
    assert files("xmtree").joinpath("_core.pyi").is_file()


@pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="not free-threaded")
def test_the_package_does_not_bring_the_global_lock_back():
    program = "import sys, xmtree; sys.exit(sys._is_gil_enabled())"
    assert subprocess.run([sys.executable, "-W", "error", "-c", program]).returncode == 0


def test_names_of_parameters_are_interned():
    model = estimators.ALL["lomtree"]().fit(*estimators.dense())._model
    assert all(name is sys.intern(name) for name in model.params)
