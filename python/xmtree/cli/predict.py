"""Predict the best labels of every row of a file.

Text output has a line per row, "label:score label:score ...", best first. -o
with a name that ends in .csv or .tsv writes a table: id, label_1, score_1, ...
One that ends in .jsonl, or --json, writes {"id": ..., "labels": [...],
"scores": [...]} per row. The id is that of --id-column. Rows keep their order;
memory is constant. --scores probability writes probabilities instead of the
learner's own scores. --threshold leaves out labels with lower scores, so that a
row may have none.

examples:
  xmtree predict model.xmtree test.txt.xz -k 1
  xmtree predict model.xmtree questions.txt --format text --scores probability --threshold 0.5
  xmtree predict model.xmtree new.csv --id-column ticket -o predicted.csv
  xmtree predict model.xmtree - --json < test.txt > top5.jsonl
"""

import argparse
import math
from collections.abc import Callable, Iterator
from typing import Any

from xmtree._progress import progress, shown_as
from xmtree.cli.errors import WrongUsage
from xmtree.cli.formats.reader import Reader
from xmtree.cli.options import add_model, add_output, at_least
from xmtree.cli.output import Row, opened, writer_of
from xmtree.cli.trained import Model, open_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``xmtree predict``."""
    add_model(parser)
    parser.add_argument(
        "-k", type=at_least(1), default=5, help="number of labels per row (default 5)"
    )
    parser.add_argument(
        "--scores",
        choices=["raw", "probability"],
        default="raw",
        help="scores beside the labels: raw, by which the learner ranks them (default), or "
        "probabilities",
    )
    parser.add_argument(
        "--threshold",
        type=float,
        default=-math.inf,
        metavar="T",
        help="write only labels whose score is at least T",
    )
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Predict batch by batch."""
    if math.isnan(options.threshold):
        raise WrongUsage("--threshold must be a number, got nan")
    model, reader = open_model(options)

    k = min(options.k, len(model.learner.classes_))

    def results_of(rows: Any, _given: Any) -> Iterator[Row]:
        labels, scores = model.learner.predict_topk(rows, options.k, scores=options.scores)
        return ((*pairs, {}) for pairs in rows_of(labels, scores, options.threshold))

    return write_results(options, model, reader, k, results_of)


def write_results(
    options: argparse.Namespace,
    model: Model,
    reader: Reader,
    k: int,
    results_of: Callable[[Any, Any], Iterator[Row]],
    names: tuple[str, str] = ("label", "score"),
) -> int:
    """Write up to ``k`` pairs for each row, batch by batch.

    ``results_of`` gets a batch as rows for the learner, and as it was read.
    """
    writer_class = writer_of(options)
    with (
        opened(options.output) as out,
        shown_as(options.progress),
        progress(1, options.command) as report,
    ):
        writer = writer_class(out, k, names)
        for first_row, batch in reader.numbered(True):
            rows = model.rows(batch, reader, first_row)
            writer.write(batch.ids, results_of(rows, batch.rows))
            if report:
                report(first_row + len(batch), 0, None, None)
    return 0


def rows_of(labels: Any, scores: Any, threshold: float) -> Iterator[tuple[list[Any], list[float]]]:
    """Yield the labels and scores of each row that exist and reach the threshold."""
    counts = ((scores > -math.inf) & (scores >= threshold)).sum(axis=1).tolist()
    for row, values, n in zip(labels.tolist(), scores.tolist(), counts, strict=True):
        yield row[:n], values[:n]
