"""The documentation, built by `make docs`: Markdown pages, and a reference from the docstrings."""

import contextlib
import re
from pathlib import Path
from typing import Any

import matplotlib as mpl
import xmtree
from xmtree.plotting._figures import house_style

project = "xmtree"
author = "the xmtree authors"
project_copyright = "the xmtree authors"
release = xmtree.__version__
version = release

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
]
myst_enable_extensions = ["attrs_inline", "colon_fence"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections have the types
numpydoc_show_class_members = False  # the templates list them
numpydoc_xref_param_type = False
# Docstrings list all parameters, in the order of the signature, and describe the return value.
numpydoc_validation_checks = {"PR01", "PR02", "PR03", "PR04", "RT01", "GL03"}
# Generators have Yields instead of Returns.
numpydoc_validation_exclude = {r"\.iter_"}


html_theme = "furo"
html_title = f"xmtree {release}"
html_show_sourcelink = False
templates_path = ["_templates"]


def link_pages(*arguments: Any) -> None:
    """Turn names of pages in a docstring, such as docs/experiments/oaa.md, into links."""
    lines = arguments[-1]
    link = r":doc:`\g<0> </\1>`"
    lines[:] = [re.sub(r"docs/(experiments/[\w-]+)\.md", link, line) for line in lines]


def draw_gallery(app: Any) -> None:
    """Run the code of the gallery, which writes its pictures, in the folder gallery."""
    page = (Path(app.srcdir) / "plotting.md").read_text(encoding="utf-8")
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, flags=re.M | re.S))
    folder = Path(app.srcdir) / "gallery"
    folder.mkdir(exist_ok=True)
    mpl.use("Agg")
    with contextlib.chdir(folder), house_style():
        exec(compile(code, "plotting.md", "exec"), {})


def setup(app: Any) -> None:
    app.connect("builder-inited", draw_gallery)
    app.connect("autodoc-process-docstring", link_pages)
