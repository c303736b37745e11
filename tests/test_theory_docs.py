"""docs/theory.md names every test of the papers' statements, and no other."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = (ROOT / "docs" / "theory.md").read_text()


def names(files, pattern):
    return {name for file in files for name in re.findall(pattern, file.read_text())}


def test_every_theory_test_has_its_verdict():
    files = {file for file in ROOT.glob("tests/test_theory_*.py") if file != Path(__file__)}
    written = names(files, r"(?m)^def (test_\w+)")
    named = set(re.findall(r"`(test_\w+)`", TABLE))
    assert written <= named
    for name, file in re.findall(r"`(test_\w+)` in `([\w/.]+)`", TABLE):
        assert f"def {name}(" in (ROOT / file).read_text()
        named -= {name}
    assert named == written


def test_the_tests_of_the_core_exist():
    named = set(re.findall(r"rust `(\w+)`", TABLE))
    assert named
    assert named <= names((ROOT / "rust" / "src").rglob("*.rs"), r"fn (\w+)\(")


def test_every_row_of_the_table_has_its_columns():
    rows = [line for line in TABLE.splitlines() if line.startswith("|")]
    assert len(rows) > 40
    assert {line.count("|") for line in rows} == {5}
