"""The pages of the learners: their pictures, and their place in the table of contents."""

import importlib.util
import re
from pathlib import Path

import pytest
import xmtree

pytest.importorskip("matplotlib")
DOCS = Path(__file__).parent.parent / "docs"
PAGES = [page for page in sorted((DOCS / "learners").glob("*.md")) if page.stem != "index"]


def drawing():
    spec = importlib.util.spec_from_file_location("draw", DOCS / "pictures" / "draw.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_each_page_has_its_picture():
    named = {page.stem: f"```{{figure}} ../pictures/{page.stem}.svg" for page in PAGES}
    for page in PAGES:
        assert named[page.stem] in page.read_text("utf-8")
    drawn = {path.stem for path in (DOCS / "pictures").glob("*.svg")}
    assert drawn == set(named) == set(drawing().PICTURES)


def test_a_picture_is_drawn(tmp_path):
    drawing().main(["filter-and-random-trees"], tmp_path)
    svg = (tmp_path / "filter-and-random-trees.svg").read_text("utf-8")
    assert "E loses here" in svg
    assert "dc:date" not in svg


def test_each_learner_has_a_page():
    pages = "".join(page.read_text("utf-8") for page in PAGES)
    described = set(re.findall(r"\{py:class\}`~xmtree\.(\w+)`", pages))
    learners = {name for name in xmtree.__all__ if name.endswith(("Classifier", "Learner"))}
    # Texts have their own pages.
    assert described == learners - {"TextClassifier"} | {"ActiveGamble"}


def test_each_page_is_in_the_table_of_contents():
    listed = (DOCS / "learners" / "index.md").read_text("utf-8").partition("```{toctree}")[2]
    assert {page.stem for page in PAGES} == set(listed.split()) - {":hidden:", "```"}
