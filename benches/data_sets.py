"""Where the data sets of the benchmarks are."""

import os
from pathlib import Path

#: The folder that has one folder for each data set.
ROOT = Path(os.environ.get("XMTREE_DATA", Path(__file__).parents[2] / "shared" / "data"))
