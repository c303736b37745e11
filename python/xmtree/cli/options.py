"""Options that several commands have."""

import argparse
from collections.abc import Callable

from xmtree._progress import STYLES
from xmtree.cli.formats import FORMATS

#: Rows per batch.
_BATCH = 4096


def at_least(low: int) -> Callable[[str], int]:
    """The type of an option that is a whole number and not below ``low``."""

    def integer(text: str) -> int:
        if int(text) < low:
            raise argparse.ArgumentTypeError(f"must be at least {low}, got {text}")
        return int(text)

    return integer


def add_data(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """DATA and its options, whose group is returned."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="a file of examples, plain or packed (.gz, .xz, .zst); - is stdin",
    )
    group = parser.add_argument_group("options for DATA")
    group.add_argument(
        "--format",
        choices=["auto", *FORMATS],
        default="auto",
        help="auto (default): by the name of the file (.csv, .tsv, .jsonl, .ndjson, .parquet, "
        ".vw, .svm), else by its first line; for stdin xmc, or text if the model takes texts",
    )
    group.add_argument(
        "--text-column",
        metavar="NAME",
        help="tables (csv, tsv, jsonl, parquet): the texts; by default the column text, and if "
        "there is none, all columns but the labels are features, which must be numbers. A model "
        "remembers this and the options for tables below",
    )
    group.add_argument(
        "--label-column", metavar="NAME", help="tables: the labels; by default label or labels"
    )
    group.add_argument(
        "--label-separator",
        metavar="CHAR",
        help="tables: what stands between the labels of a row. By default there is one label in "
        "the column label, and several with commas between them in the column labels",
    )
    group.add_argument(
        "--ignore-column",
        action="append",
        metavar="NAME",
        help="tables: a column that is no feature; may be repeated",
    )
    group.add_argument(
        "--no-header",
        action="store_const",
        const=True,
        help="csv, tsv: the first row is an example; columns have numbers, from 0",
    )
    group.add_argument(
        "--header",
        action="store_const",
        dest="no_header",
        const=False,
        help="csv, tsv: the first row names the columns (default, unless it did not in the file "
        "that the model was trained on)",
    )
    group.add_argument("--delimiter", metavar="CHAR", help="csv, tsv: another delimiter")
    group.add_argument(
        "--index-base",
        choices=["auto", "0", "1"],
        help="svmlight: whether indices start at 0 or 1; auto: as in the file that the model was "
        "trained on, and there 0 if an index is 0",
    )
    group.add_argument(
        "--batch-size",
        type=at_least(1),
        default=_BATCH,
        metavar="N",
        help=f"rows held at a time while streaming (default {_BATCH})",
    )
    return group


def add_unknown_features(group: argparse._ArgumentGroup, which: str) -> None:
    """What to do with features that a model does not have."""
    group.add_argument(
        "--unknown-features",
        choices=["error", "ignore"],
        default="error",
        help=f"{which} that the model does not have: refused (default) or left out; a "
        "model that hashes features (n_bits) takes all",
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """MODEL, DATA and their options, for the commands that apply a model."""
    parser.add_argument("model", metavar="MODEL", help="a file of xmtree fit or of save()")
    add_unknown_features(add_data(parser), "features of DATA")
    add_work(parser)


def add_work(parser: argparse.ArgumentParser) -> None:
    """Options of all work that may take long."""
    parser.add_argument("--jobs", type=int, metavar="N", help="threads; -1: all cores (default 1)")
    parser.add_argument(
        "--progress",
        choices=STYLES,
        default="auto",
        help="on stderr: a bar, lines, or none; auto (default): a bar on a terminal, else lines "
        "for work that takes more than 10 seconds",
    )
