"""Data sets with very many labels: readers, a writer, a generator and demo data.

:func:`iter_table` reads tables; the other readers know two text formats. Files may be compressed
(gzip, xz or zstd, recognized by the file's first bytes, not by its name):

svmlight
    ``label[,label...] index:value ... # comment``, the format of
    :func:`sklearn.datasets.load_svmlight_file`.
XMC
    A header line ``N D K`` (rows, features, labels), then a line
    ``label,label,... index:value ...`` per row, with all numbers from 0: the format
    of the Extreme Classification Repository. A row without labels begins with a space.

Sparse matrices are `scipy.sparse.csr_matrix`, as from scikit-learn's own loaders. With
``sklearn.set_config(sparse_interface="sparray")`` they are `scipy.sparse.csr_array`.
`xmtree`'s estimators accept either.
"""

from ._demo import load_demo
from ._synthetic import make_xmc
from ._text import iter_svmlight, iter_table, iter_xmc, load_svmlight, load_xmc, save_xmc

__all__ = [
    "iter_svmlight",
    "iter_table",
    "iter_xmc",
    "load_demo",
    "load_svmlight",
    "load_xmc",
    "make_xmc",
    "save_xmc",
]
