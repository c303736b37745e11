"""python -m reproduce: runs the items that are chosen and writes the page; see --help."""

import argparse
import re
import sys
from pathlib import Path

from reproduce import data, page
from reproduce.papers import ITEMS
from reproduce.runs import Results, run_all, wanted

BENCHES = Path(__file__).parents[1]


def main():
    parser = argparse.ArgumentParser(prog="python -m reproduce", description=__doc__)
    parser.add_argument("--items", default="", metavar="REGEX", help="run those of such names")
    parser.add_argument("--list", action="store_true", help="list the items and run none")
    parser.add_argument("--seeds", type=int, metavar="N", help="run no more seeds of an item")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="runs at the same time")
    parser.add_argument(
        "--rows",
        type=int,
        metavar="N",
        help="use no more rows of each data set, to see that everything runs",
    )
    parser.add_argument("--results", default=BENCHES / "reproduction.jsonl", metavar="PATH")
    parser.add_argument("--page", metavar="PATH", help="write the page there (default: print it)")
    args = parser.parse_args()
    items = [item for item in ITEMS if re.search(args.items, item.name)]
    if not items:
        parser.error(f"no item has a name like {args.items!r}")
    if args.list:
        for item in items:
            lacks = data.absent(item.needs)
            state = f"absent: {', '.join(lacks)}" if lacks else f"{item.seconds:.0f} s"
            print(f"{item.name:32} {item.seeds:2} seeds  {state:28} {item.title}")
        present = sum(item.seconds for item in items if not data.absent(item.needs))
        print(f"together {present:.0f} s of a processor")
        return 0
    present = [item for item in items if not data.absent(item.needs)]
    results = Results(args.results)
    failed = run_all(wanted(present, args.rows, args.seeds), results, args.jobs)
    text = page.written(ITEMS, results, args.rows, failed)
    if args.page:
        Path(args.page).write_text(text, encoding="utf-8")
    else:
        print(text)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
