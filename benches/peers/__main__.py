"""python -m peers: runs what is chosen and not known yet, and writes the page; see --help."""

import argparse
import os
import re
import sys
from pathlib import Path

from peers import page, plots, report
from peers.programs import PROGRAMS
from peers.runs import Environments, Results, run_all
from peers.tasks import TASKS

ROOT = Path(__file__).parents[2]


def main():
    parser = argparse.ArgumentParser(prog="python -m peers", description=__doc__)
    parser.add_argument("--data", default="", metavar="REGEX", help="tasks of such names")
    parser.add_argument("--only", default="", metavar="REGEX", help="programs of such names")
    parser.add_argument("--list", action="store_true", help="list tasks and programs, run none")
    parser.add_argument(
        "--runs", type=int, default=3, metavar="N", help="of each program; 0: only write the page"
    )
    parser.add_argument("--threads", type=int, default=2, metavar="N", help="of each program")
    parser.add_argument(
        "--limit", type=float, default=900, metavar="SECONDS", help="end a run that takes longer"
    )
    parser.add_argument("--again", action="store_true", help="run what is known, too")
    parser.add_argument(
        "--pythons", nargs="*", default=(), metavar="PYTHON", help="interpreters that have peers"
    )
    parser.add_argument("--results", default=ROOT / "benches/figures-peers.jsonl", metavar="PATH")
    parser.add_argument("--page", metavar="PATH", help="write the page there, else print it")
    parser.add_argument("--json", type=Path, metavar="PATH", help="write the table there, too")
    parser.add_argument("--figures", type=Path, metavar="FOLDER", help="write plots there")
    args = parser.parse_args()
    tasks = [task for task in TASKS if re.search(args.data, task.name)]
    programs = [
        program for program in PROGRAMS if re.search(args.only, program.name, re.IGNORECASE)
    ]
    if not tasks:
        parser.error(f"no task has a name like {args.data!r}; --list lists them")
    if not programs:
        parser.error(f"no program has a name like {args.only!r}; --list lists them")
    # Where others use the cores, too, busy waiting takes LightGBM from seconds to minutes.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    environments = Environments(args.pythons)
    if args.list:
        for program in programs:
            print(f"{program.name:45}{environments.source(program) or 'not installed'}")
        for task in tasks:
            print(f"{task.name:45}{task.kind}")
        return
    results = Results(args.results)
    chosen = [(task, program) for task in tasks for program in programs]
    run_all(chosen, results, environments, args.runs, args.threads, args.limit, args.again)
    rows = report.table(results)
    sources = {program.name: environments.source(program) for program in PROGRAMS}
    figures = relative(args.figures, args.page) if args.figures and args.page else ""
    text = page.written(rows, sources, environments.missing, figures)
    if args.page:
        Path(args.page).write_text(text, encoding="utf-8")
    else:
        print(text)
    if args.json:
        args.json.write_text(report.as_json(rows), encoding="utf-8")
    if args.figures:
        plots.write(rows, args.figures)


def relative(folder, page):
    return Path(os.path.relpath(folder, Path(page).parent)).as_posix()


if __name__ == "__main__":
    sys.exit(main())
