"""No two files of the core depend on each other."""

import re
from pathlib import Path

import pytest

SOURCES = Path(__file__).parents[1] / "rust" / "src"

pytestmark = pytest.mark.skipif(not SOURCES.exists(), reason="needs the Rust sources")


def modules():
    """Return the text of each production module, by its path below ``rust/src``."""
    found = {}
    for path in SOURCES.rglob("*.rs"):
        name = path.relative_to(SOURCES).with_suffix("").as_posix()
        if "tests" not in name:
            found[name] = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod tests")[0]
    return found


def used(name, text, names):
    """Return the modules that ``text``, of the module ``name``, names by a path."""
    folder = name.split("/")[:-1]
    found = set()
    for path in re.findall(r"\b((?:super::|crate::)[A-Za-z_:]+)", text):
        parts = path.split("::")
        here = [] if parts[0] == "crate" else list(folder)
        if parts[0] == "super" and not name.endswith("/mod"):
            parts = parts[1:]
        while parts and parts[0] in ("crate", "super"):
            if parts.pop(0) == "super":
                here = here[:-1]
        for i in range(len(parts), 0, -1):
            candidate = "/".join(here + parts[:i])
            match = next((n for n in (candidate, f"{candidate}/mod") if n in names), None)
            if match:
                found.add(match)
                break
    return found - {name}


def test_no_two_files_depend_on_each_other():
    texts = modules()
    uses = {name: used(name, text, texts) for name, text in texts.items()}
    assert sum(map(len, uses.values())) > 300, "paths are no longer found"
    # A folder's mod.rs lists its files, and they use what it declares.
    pairs = [
        (one, other)
        for one in uses
        for other in uses[one]
        if one < other and one in uses[other] and not related(one, other)
    ]
    assert pairs == []


def related(one, other):
    """Return whether one of two modules is the parent of the other."""
    parents = [name.removesuffix("/mod") for name in (one, other)]
    return parents[0].startswith(f"{parents[1]}/") or parents[1].startswith(f"{parents[0]}/")
