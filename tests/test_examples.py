"""Command lines and docstrings work as shown; test_docs.py runs the code blocks of pages."""

import doctest
import importlib
import pkgutil
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
import xmtree
from xmtree.cli import main

README = Path(__file__).parent.parent / "README.md"


def test_readme_command_lines(tmp_path, monkeypatch):
    """Run the command lines that do not need a shell."""
    import cli_files as files

    monkeypatch.chdir(tmp_path)
    files.write_csv(Path("reviews.csv"), {"text": files.TEXTS, "label": files.LABELS})
    lines = re.findall(r"^    xmtree (.*)$", README.read_text(encoding="utf-8"), flags=re.M)
    assert len(lines) == 2
    for line in lines:
        assert main(line.split()) == 0


def test_command_lines_of_the_docs(tmp_path, monkeypatch, capsys):
    import cli_files as files

    monkeypatch.chdir(tmp_path)
    texts, labels = files.TEXTS, files.LABELS
    for name in ("tickets.csv", "new.csv", "test.csv", "more.csv"):
        files.write_csv(Path(name), {"text": texts, "label": labels, "ticket": labels})
    files.write_csv(Path("reviews.csv"), {"body": texts, "topic": labels})
    files.write_csv(Path("tagged.csv"), {"text": texts, "tags": [f"{x};y" for x in labels]})
    lines = [f"{label};{text}" for label, text in zip(labels, files.PLAIN, strict=True)]
    Path("plain.csv").write_text("\n".join(lines).replace('"', "") + "\n", encoding="utf-8")
    Path("questions.txt").write_text("\n".join(files.PLAIN), encoding="utf-8")
    numbers = {"height": files.NUMBERS[:, 0], "label": files.NUMBER_LABELS}
    enough = {name: np.tile(values, 2) for name, values in numbers.items()}  # for --tune
    files.write_csv(Path("trees.csv"), enough)
    sites = {"url": list("ab") * 45, "visits": [1, 2] * 45, **numbers}
    files.write_csv(Path("sites.csv"), sites)
    shops = {"city": ["Oslo", "Rome", "Bonn"] * 30, "zip": [1, 2] * 45, "label": list("xyz") * 30}
    files.write_csv(Path("shops.csv"), shops)
    Path("ads.vw").write_text("1 |site a b\n2 2.0 |site b c:0.5\n" * 20)
    page = (README.parent / "docs" / "command-line.md").read_text(encoding="utf-8")
    lines = re.findall(r"^    xmtree ([^|\n]*)$", page, flags=re.M)
    assert len(lines) > 20
    for line in lines:
        if line.split()[0] not in ("demo", "serve"):
            assert main(shlex.split(line)) == 0, line


def test_figures_of_the_pages_come_from_the_benchmarks(monkeypatch):
    """Check that figures are included, not typed."""
    monkeypatch.syspath_prepend(README.parent / "benches")
    assert importlib.import_module("harness.pages").update(check=True) == []


@pytest.mark.parametrize(
    "module",
    [m.name for m in pkgutil.walk_packages(xmtree.__path__, "xmtree.") if "__main__" not in m.name],
)
def test_docstrings(module):
    assert doctest.testmod(importlib.import_module(module)).failed == 0
