"""Compare trees with one-against-all on the data inside the package.

Trains every learner on one thread, prints a table, and writes a page with plots, also
of the time against the number of labels, if matplotlib is there (pip install matplotlib).
About a minute on two cores.
"""

import argparse
import sys

from xmtree.cli.options import at_least


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``xmtree demo``."""
    parser.add_argument(
        "-o",
        "--output",
        default="xmtree-demo.html",
        metavar="HTML",
        help="the page to write (default xmtree-demo.html)",
    )
    parser.add_argument(
        "--rows",
        type=at_least(100),
        metavar="N",
        help="use only N training rows of each data set, for a quick look",
    )


def run(options: argparse.Namespace) -> int:
    """Measures, prints, writes."""
    # Only this command needs the data.
    from xmtree import demo

    print(demo.header())
    results, about = [], {}
    for data in demo.DATA_SETS:
        parts = data.load(options.rows)
        about[data] = data.description(parts)
        for contender in demo.CONTENDERS:
            if contender.competes_on(data):
                results.append(demo.measure(contender, data, parts, verbose=1))
                print(demo.line(results[-1]), flush=True)
    try:
        from xmtree.demo.page import write_page
    except ImportError:
        print("\nFor a page with plots: pip install matplotlib, and run this again.")
        return 0
    # Their times are those of the plain one and of the filter tree.
    same = ("OAA, softmax", "Random tree")
    scaled = demo.scaling(
        [c for c in demo.CONTENDERS if c.multiclass and c.text and c.name not in same],
        range(6, 15, 2) if options.rows is None else range(6, 9, 2),
        min(8192, options.rows or 8192),
        budget=3.0,
        show=_show,
    )
    write_page(options.output, results, scaled, about)
    print(f"\nPlots are in {options.output}")
    return 0


def _show(what: str) -> None:
    """Shows on a terminal what is being timed, in a line that is overwritten."""
    if sys.stderr.isatty():
        print(f"\r\033[Ktiming: {what}", end="", file=sys.stderr, flush=True)
