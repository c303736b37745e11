"""Training on a cluster while workers are killed: python benches/dask_kills.py [--kills 10].

Two workers that are processes; one after the other is killed with SIGKILL while LdSM trains on
the demo set, again and again until there were so many kills. Every model must be the one that is
trained here, to the bit.
"""

import argparse
import os
import signal
import tempfile
import threading
import time
from pathlib import Path

import dask
from distributed import Client, LocalCluster
from xmtree import LdSMClassifier
from xmtree.dask import DaskLdSMClassifier
from xmtree.datasets import load_demo

PARAMS = {"n_estimators": 4, "max_nodes": 1000, "random_state": 0}


def saved(model):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        model.save(path)
        return path.read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--between", type=float, default=4.0, help="seconds between two kills")
    arguments = parser.parse_args()
    data = load_demo("onet-titles")
    # About a minute of one core in all.
    X, y = data.X_train[:12_000], data.y_train[:12_000]
    start = time.perf_counter()
    wanted = saved(LdSMClassifier(**PARAMS).fit(X, y))
    print(f"here: {time.perf_counter() - start:.1f} s", flush=True)
    kills = 0
    done = threading.Event()

    def kill(cluster):
        nonlocal kills
        while kills < arguments.kills and not done.wait(arguments.between):
            pids = [nanny.pid for nanny in cluster.workers.values() if nanny.pid]
            if pids:
                os.kill(pids[kills % len(pids)], signal.SIGKILL)
                kills += 1
                print(f"kill {kills}", flush=True)

    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 100}),
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        killer = threading.Thread(target=kill, args=[cluster])
        killer.start()
        try:
            while kills < arguments.kills:
                start = time.perf_counter()
                model = DaskLdSMClassifier(**PARAMS, client=client).fit(X, y)
                assert saved(model) == wanted, "another model"
                print(f"the same model in {time.perf_counter() - start:.1f} s", flush=True)
        finally:
            done.set()
            killer.join()
    print(f"{kills} kills, all models the same to the bit")


if __name__ == "__main__":
    main()
