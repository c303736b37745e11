"""Run the cases that were not measured yet, and write records, pictures and pages."""

import argparse
import os
import re
import sys
from dataclasses import replace
from functools import partial

from harness import data, pages, plot
from harness.case import SUBJECTS, medians, subject
from harness.record import Record, summarized
from harness.run import Environments, Log, run_all

LOGS = data.CACHE / "measure"


def arguments():
    parser = argparse.ArgumentParser(prog="python -m harness", description=__doc__)
    parser.add_argument("subjects", nargs="*", help=f"any of {', '.join(SUBJECTS)}; default: all")
    parser.add_argument("--only", default="", metavar="REGEX", help="some 'TASK, PROGRAM'")
    parser.add_argument("--list", action="store_true", help="list the cases, run none")
    parser.add_argument("--write", action="store_true", help="write pictures and pages, run none")
    parser.add_argument("--seeds", type=int, metavar="N", help="run each case with N seeds")
    parser.add_argument("--rows", type=int, metavar="N", help="a trial with N rows, not recorded")
    parser.add_argument("--limit", type=float, metavar="SECONDS", help="stop longer runs")
    parser.add_argument("--again", action="store_true", help="run known cases again")
    parser.add_argument("--pythons", nargs="*", default=(), help="interpreters of other programs")
    args = parser.parse_args()
    unknown = set(args.subjects) - set(SUBJECTS)
    if unknown:
        parser.error(f"unknown subject {', '.join(sorted(unknown))}; known: {', '.join(SUBJECTS)}")
    return args


def chosen(module, args):
    """Yield the selected cases of a subject."""
    how = {} if args.seeds is None else {"seeds": args.seeds}
    for case in module.cases(**how):
        if re.search(args.only, f"{case.task}, {case.program}", re.IGNORECASE):
            yield replace(case, rows=args.rows)


def is_absent(module, case):
    """Return whether the data of a case are missing and cannot be made."""
    names = module.needs(case) if hasattr(module, "needs") else [case.task]
    return any(data.absent(name) for name in names)


def main():
    args = arguments()
    environments = Environments(args.pythons)
    failed = []
    for name in args.subjects or SUBJECTS:
        module = subject(name)
        cases = list(chosen(module, args))
        if args.list:
            for case in cases:
                state = "no data" if is_absent(module, case) else environments.source(case)
                print(f"{case}: {state or 'not installed'}")
            continue
        runs = []
        if not args.write:
            here = [case for case in cases if not is_absent(module, case)]
            limit = args.limit or getattr(module, "LIMIT", 900)
            log = Log(LOGS / f"{name}{'-few' if args.rows else ''}.jsonl")
            jobs = min(getattr(module, "JOBS", 1), os.cpu_count() or 1)
            how = {"jobs": jobs, "slow": getattr(module, "SLOW", None)}
            runs = run_all(here, log, environments, limit, args.again, **how)
            failed += [run for run in runs if "failed" in run]
        rows = list(summarized(runs, getattr(module, "summarize", medians)))
        if args.rows:
            print(*rows, sep="\n")
            continue
        record = Record(name, module.TITLE)
        if rows:
            order = dict.fromkeys((case.task, case.program) for case in module.cases())
            record.update(rows, order)
            record.write()
        if hasattr(module, "pictures"):
            plot.save(partial(module.pictures, record))
    if not (args.list or args.rows):
        print("written:", *(pages.update() or ["none"]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
