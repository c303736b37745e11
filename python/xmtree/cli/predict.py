"""Predict the best labels of every row of a file.

Text output has a line per row, "label:score label:score ...", best first;
--json writes {"labels": [...], "scores": [...]} per row, which also suits labels
with spaces. Rows keep their order; memory is constant. --scores probability
writes probabilities instead of the learner's own scores. --threshold leaves out
labels with lower scores, so that a row may have none.

examples:
  xmtree predict model.xmtree test.txt.xz -k 1
  xmtree predict model.xmtree questions.txt --format text --scores probability --threshold 0.5
  xmtree predict model.xmtree - --json < test.txt > top5.jsonl
"""

import argparse
import contextlib
import json
import math
import sys
from collections.abc import Iterator
from typing import Any

from xmtree._progress import progress, shown_as
from xmtree.cli.errors import WrongUsage
from xmtree.cli.options import add_model, at_least
from xmtree.cli.trained import open_model


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
    parser.add_argument(
        "-o", "--output", default="-", metavar="OUT", help="file to write; - is stdout (default)"
    )
    parser.add_argument("--json", action="store_true", help="JSON lines")


def run(options: argparse.Namespace) -> int:
    """Predict batch by batch."""
    if math.isnan(options.threshold):
        raise WrongUsage("--threshold must be a number, got nan")
    if options.output.lower().endswith((".csv", ".tsv", ".parquet")):
        raise WrongUsage(
            f"-o {options.output}: predict writes lines of text, label:score, or with --json JSON "
            "lines, not tables; choose another extension"
        )
    model, reader = open_model(options)
    write = _json_line if options.json else _text_line
    with (
        contextlib.nullcontext(sys.stdout)
        if options.output == "-"
        else open(options.output, "w", encoding="utf-8") as out,
        shown_as(options.progress),
        progress(1, "predict") as report,
    ):
        for first_row, batch in reader.numbered(True):
            rows = model.rows(batch, reader, first_row)
            labels, scores = model.learner.predict_topk(rows, options.k, scores=options.scores)
            out.writelines(write(*row) for row in _rows(labels, scores, options.threshold))
            if report:
                report(first_row + len(batch), 0, None, None)
    return 0


def _rows(labels: Any, scores: Any, threshold: float) -> Iterator[tuple[list[Any], list[float]]]:
    """Yield the labels and scores of each row that exist and reach the threshold."""
    counts = ((scores > -math.inf) & (scores >= threshold)).sum(axis=1).tolist()
    for row, values, n in zip(labels.tolist(), scores.tolist(), counts, strict=True):
        yield row[:n], values[:n]


def _text_line(labels: list[Any], scores: list[float]) -> str:
    return " ".join(f"{a}:{s:.6g}" for a, s in zip(labels, scores, strict=True)) + "\n"


def _json_line(labels: list[Any], scores: list[float]) -> str:
    rounded = [float(f"{s:.6g}") for s in scores]
    return json.dumps({"labels": labels, "scores": rounded}, ensure_ascii=False) + "\n"
