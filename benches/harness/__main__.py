"""python -m harness [SUBJECT...]: measures what is not known yet and writes records, pictures and
pages; see --help."""

import argparse
import re
import sys
from dataclasses import replace
from functools import partial

from harness import data, pages, plot
from harness.case import SUBJECTS, medians, subject
from harness.pages import markdown
from harness.record import Record, summarized
from harness.run import Environments, Log, run_all

LOGS = data.CACHE / "measure"


def arguments():
    parser = argparse.ArgumentParser(prog="python -m harness", description=__doc__)
    parser.add_argument("subjects", nargs="*", help=f"any of {', '.join(SUBJECTS)}; without: all")
    parser.add_argument(
        "--only", default="", metavar="REGEX", help="cases whose 'TASK, PROGRAM' has it"
    )
    parser.add_argument("--list", action="store_true", help="list the cases and run none")
    parser.add_argument("--write", action="store_true", help="only write pictures and pages")
    parser.add_argument("--seeds", type=int, metavar="N", help="runs of each case")
    parser.add_argument(
        "--rows",
        type=int,
        metavar="N",
        help="no more rows than these, to see that everything runs; nothing is recorded",
    )
    parser.add_argument(
        "--limit", type=float, metavar="SECONDS", help="end a run that takes longer"
    )
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="runs at the same time")
    parser.add_argument("--again", action="store_true", help="run what is known, too")
    parser.add_argument(
        "--pythons", nargs="*", default=(), metavar="PYTHON", help="interpreters that have programs"
    )
    args = parser.parse_args()
    unknown = set(args.subjects) - set(SUBJECTS)
    if unknown:
        parser.error(f"no subject {', '.join(sorted(unknown))}; there are {', '.join(SUBJECTS)}")
    return args


def chosen(module, args):
    """The cases of a subject that are asked for."""
    how = {} if args.seeds is None else {"seeds": args.seeds}
    for case in module.cases(**how):
        if re.search(args.only, f"{case.task}, {case.program}", re.IGNORECASE):
            yield replace(case, rows=args.rows)


def is_absent(module, case):
    """Whether the data of a case are neither here nor can be made."""
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
            runs = run_all(here, log, environments, limit, args.again, args.jobs)
            failed += [run for run in runs if "failed" in run]
        rows = list(summarized(runs, getattr(module, "summarize", medians)))
        if args.rows:
            show(rows)
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


def show(rows):
    """A table of what was measured."""
    names = dict.fromkeys(name for row in rows for name in row if name not in ("at", "runs"))
    if rows:
        print(markdown(list(names), [[shown(row.get(name, "")) for name in names] for row in rows]))


def shown(value):
    return value if isinstance(value, int | float | str) else " ".join(f"{v:.4g}" for v in value)


if __name__ == "__main__":
    sys.exit(main())
