"""Options that several commands share."""

import argparse
from collections.abc import Callable

from xmtree._progress import STYLES
from xmtree.cli.formats import FORMATS

#: Default rows per batch.
_BATCH = 4096
#: Options that say how tables are read, with their help after the word "tables".
_OF_TABLES = {
    "text-column": " (csv, tsv, jsonl, parquet): the column of texts (default: text). Without "
    "one, all columns except the labels are features, numbers or for gamble and samme categories. "
    "The model remembers this option and those for tables below",
    "label-column": ": the column of labels (default: label or labels)",
    "label-separator": ": the separator between the labels of a row. By default the column label "
    "holds one label, and the column labels holds labels separated by commas",
    "ignore-column": ": a column to leave out; may be repeated",
    "weight-column": ": the column of importance weights, which are 0 or more; only fit uses them",
    "id-column": ": a column that is not a feature, and that predict writes beside the labels",
}


def at_least(low: int) -> Callable[[str], int]:
    """Return an argparse type that accepts integers from ``low`` up."""

    def integer(text: str) -> int:
        if int(text) < low:
            raise argparse.ArgumentTypeError(f"must be at least {low}, got {text}")
        return int(text)

    return integer


def add_data(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add DATA and its options, and return the group of the options."""
    parser.add_argument(
        "data",
        metavar="DATA",
        help="a file of examples, plain or compressed (.gz, .xz, .zst); - is stdin",
    )
    group = parser.add_argument_group("options for DATA")
    group.add_argument(
        "--format",
        choices=["auto", *FORMATS],
        default="auto",
        help="auto (default) goes by the extension (.csv, .tsv, .jsonl, .ndjson, .parquet, "
        ".vw, .svm), else by the first line; stdin is xmc, or text if the model takes texts",
    )
    for name, what in _OF_TABLES.items():
        action = "append" if name == "ignore-column" else "store"
        metavar = "CHAR" if name == "label-separator" else "NAME"
        group.add_argument(f"--{name}", action=action, metavar=metavar, help=f"tables{what}")
    group.add_argument(
        "--no-header",
        action="store_const",
        const=True,
        help="csv, tsv: the first row is an example; columns are named 0, 1, 2, ...",
    )
    group.add_argument(
        "--header",
        action="store_const",
        dest="no_header",
        const=False,
        help="csv, tsv: the first row names the columns (default, unless the model was trained "
        "with --no-header)",
    )
    group.add_argument("--delimiter", metavar="CHAR", help=r"csv, tsv: the delimiter; \t is a tab")
    group.add_argument(
        "--index-base",
        choices=["auto", "0", "1"],
        help="svmlight: the first index, 0 or 1; auto: that of the model's training file, which "
        "is 0 if any index is 0, else 1",
    )
    group.add_argument(
        "--batch-size",
        type=at_least(1),
        default=_BATCH,
        metavar="N",
        help=f"rows per batch while streaming (default {_BATCH})",
    )
    return group


def add_unknown_features(group: argparse._ActionsContainer, which: str) -> None:
    """Add the option for features that the model does not have."""
    group.add_argument(
        "--unknown-features",
        choices=["error", "ignore"],
        default="error",
        help=f"{which} that the model does not have raise an error (default) or are left out; a "
        "model that hashes features (n_bits) accepts all",
    )


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add MODEL, DATA and their options, for the commands that apply a model."""
    parser.add_argument("model", metavar="MODEL", help="a file written by xmtree fit or save()")
    add_unknown_features(add_data(parser), "features of DATA")
    add_work(parser)


def add_output(parser: argparse.ArgumentParser) -> None:
    """Add the options for the file that a command writes."""
    parser.add_argument(
        "-o",
        "--output",
        default="-",
        metavar="OUT",
        help="file to write: .csv, .tsv, .jsonl, or text; - is stdout (default)",
    )
    parser.add_argument("--json", action="store_true", help="JSON lines")


def add_work(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that may run for long."""
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="threads; -1 uses all cores (default 1)"
    )
    parser.add_argument(
        "--progress",
        choices=STYLES,
        default="auto",
        help="progress on stderr: a bar, lines, or none; auto (default) shows a bar on a "
        "terminal, else lines if the work takes more than 10 seconds",
    )
