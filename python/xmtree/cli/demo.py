"""Compare trees with one-against-all on the data inside the package.

Trains every learner on one thread and prints a table. About a minute on two cores.
"""

import argparse

from xmtree.cli.options import at_least


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``xmtree demo``."""
    parser.add_argument(
        "--rows",
        type=at_least(100),
        metavar="N",
        help="use only N training rows of each data set, for a quick look",
    )


def run(options: argparse.Namespace) -> int:
    """Measure every learner and print the table."""
    # Imported here, as the other commands do not need the data.
    from xmtree import demo

    print(demo.header())
    for data in demo.DATA_SETS:
        parts = data.load(options.rows)
        for contender in demo.CONTENDERS:
            if contender.competes_on(data):
                print(demo.line(demo.measure(contender, data, parts, verbose=1)), flush=True)
    return 0
