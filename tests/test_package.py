"""The installed package is consistent."""

from importlib import metadata
from importlib.resources import files

from xmtree import _core


def test_the_compiled_module_and_the_metadata_are_of_one_version():
    assert _core.__version__ == metadata.version("xmtree")


def test_the_package_contains_its_types():
    assert files("xmtree").joinpath("py.typed").is_file()
    assert files("xmtree").joinpath("_core.pyi").is_file()
