"""One run in this process: ``python -m reproduce.one ITEM SETTING SEED [--rows N]``, as JSON."""

import argparse
import json
import time

from reproduce.papers import ITEMS

parser = argparse.ArgumentParser()
parser.add_argument("item")
parser.add_argument("setting")
parser.add_argument("seed", type=int)
parser.add_argument("--rows", type=int)
args = parser.parse_args()
item = next(item for item in ITEMS if item.name == args.item)
began = time.process_time()
values = item.measure(item.settings[args.setting], args.seed, args.rows)
print(json.dumps({"values": values, "seconds": round(time.process_time() - began, 2)}))
