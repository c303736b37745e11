"""Data sets inside the package."""

import lzma
import string
from importlib.resources import as_file, files
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from ._text import load_xmc

_LETTERS = list(string.ascii_uppercase)

_DEMOS = ("naics2017-index", "onet-titles", "letter")


def load_demo(name: str = "naics2017-index") -> Bunch:
    """Load one of the data sets inside the package.

    =================  ======  =====  ========  =======  ==========
    name               train   test   features  classes  kind
    =================  ======  =====  ========  =======  ==========
    naics2017-index     16045   4012     38982     1055  multiclass
    onet-titles         35015   8754     49598     1016  multilabel
    letter              16000   4000        16       26  multiclass
    =================  ======  =====  ========  =======  ==========

    Parameters
    ----------
    name : {"naics2017-index", "onet-titles", "letter"}, default="naics2017-index"
        Business descriptions with industries; job titles with occupations;
        images of letters.

    Returns
    -------
    data : :class:`sklearn.utils.Bunch`
        Object with the attributes

        X_train, X_test : csr_matrix of shape (n_samples, n_features), dtype float32
            Counts of words and word pairs, or (letter) measures of the image.
        y_train, y_test : ndarray of shape (n_samples,), dtype int64, or csr_matrix \
of shape (n_samples, n_classes), dtype int64
            One class per row, or (onet-titles) a 0/1 indicator.
        target_names : ndarray of shape (n_classes,), dtype str
            Name of each class: its letter or code, for occupations with the title.
        DESCR : str
            Source, license and modifications.

    Examples
    --------
    >>> from xmtree.datasets import load_demo
    >>> data = load_demo("letter")
    >>> data.X_train.shape, data.y_train.shape
    ((16000, 16), (16000,))
    >>> str(data.target_names[data.y_train[0]])
    'T'
    """
    if name not in _DEMOS:
        raise ValueError(f"name must be one of {', '.join(map(repr, _DEMOS))}, got {name!r}")
    parts = {}
    for part in ("train", "test"):
        with as_file(_resource(f"{name}.{part}.txt.xz")) as path:
            # Not "auto", as both parts must have the same form.
            found = load_xmc(path, multilabel=name == "onet-titles")
        parts[f"X_{part}"], parts[f"y_{part}"] = found
    names = _LETTERS
    if name != "letter":
        packed = _resource(f"{name}.labels.txt.xz").read_bytes()
        names = lzma.decompress(packed).decode().replace("\t", " ").splitlines()
    sections = _resource("ATTRIBUTION.md").read_text(encoding="utf-8").split("\n## ")
    about = next(text for text in sections if text.startswith(f"{name}\n"))
    return Bunch(**parts, target_names=np.array(names), DESCR=about)


def _resource(name: str) -> Any:
    return files("xmtree") / "demo_data" / name
