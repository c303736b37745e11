"""Settings of all tests: no windows, and the same random cases in every run."""

import os

from hypothesis import settings

os.environ["MPLBACKEND"] = "Agg"

# `make check SELECT=fuzz` asks for "fresh" cases.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("XMTREE_HYPOTHESIS", "fixed"))
