"""Starts the process from which workers of a cluster are forked, with all of its imports.

It makes them while the tests make their own. Workers that follow a killed one start at once, too.
"""

from multiprocessing import forkserver

forkserver.set_forkserver_preload(["xmtree.dask", "distributed.nanny"])
forkserver.ensure_running()
METHOD = "forkserver"
