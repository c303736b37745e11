"""The documentation, built by `make docs`: Markdown pages, and a reference from the docstrings."""

import xmtree

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
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
]
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath"]
myst_heading_anchors = 3
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build"]
nitpicky = False

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections have the types
numpydoc_show_class_members = False  # the templates list them
numpydoc_xref_param_type = False
# Every public name has its parameters, in the order of its signature, and what it returns.
numpydoc_validation_checks = {"PR01", "PR02", "PR03", "PR04", "RT01", "GL03"}
# What yields has no Returns.
numpydoc_validation_exclude = {r"\.iter_"}

# No page needs the network to be built: without it, links to other projects stay text.
intersphinx_mapping = {}

html_theme = "pydata_sphinx_theme"
html_title = f"xmtree {release}"
html_static_path = ["_static"]
html_show_sourcelink = False
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
}
templates_path = ["_templates"]
