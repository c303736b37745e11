"""Settings of all tests: no windows, and the same random cases in every run."""

import gc
import os

from hypothesis import settings

os.environ["MPLBACKEND"] = "Agg"

# `make check SELECT=fuzz` asks for "fresh" cases.
settings.register_profile("fixed", derandomize=True, database=None, deadline=None)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("XMTREE_HYPOTHESIS", "fixed"))

# Modules and test cases stay until the end. Looking for garbage among them takes a third of the
# time until the first test, and later makes each full collection slow.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()
