"""Parameters are declared in the core; constructors repeat only the defaults."""

import inspect

import pytest
from xmtree._parameters import declared
from xmtree.cli.models import names


@pytest.mark.parametrize("name", sorted(names()))
def test_constructors_have_the_declared_parameters_and_defaults(name):
    cls = names()[name]
    signature = inspect.signature(cls.__init__).parameters
    given = {key: value.default for key, value in signature.items() if key != "self"}
    for key, entry in declared(name).items():
        default = entry["default"] if entry["kind"] != "integers" else "from_dtype"
        assert given.pop(key) == default, key
    assert set(given) == set(cls._python_constraints) - cls._core_names
