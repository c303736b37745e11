"""One run in this process: ``python -m reproduce.one ITEM SETTING SEED [--rows N]``, as JSON.

Its seconds are the processor's, with those of the programs that it started.
"""

import argparse
import json
import os

from reproduce.papers import ITEMS

parser = argparse.ArgumentParser()
parser.add_argument("item")
parser.add_argument("setting")
parser.add_argument("seed", type=int)
parser.add_argument("--rows", type=int)
args = parser.parse_args()
item = next(item for item in ITEMS if item.name == args.item)
values = item.measure(item.settings[args.setting], args.seed, args.rows)
print(json.dumps({"values": values, "seconds": round(sum(os.times()[:4]), 2)}))
