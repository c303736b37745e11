"""Predict the best labels of every row of a file.

Text output has a line per row, "label:score label:score ...", best first;
--json writes {"labels": [...], "scores": [...]} per row, which also suits labels
with spaces. Rows come out in the order they went in, in constant memory.

examples:
  xmtree predict model.xmtree test.txt.xz -k 1
  xmtree predict model.xmtree - --json < test.txt > top5.jsonl
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
from collections.abc import Iterator
from typing import IO, Any

from xmtree._progress import progress
from xmtree.cli import data
from xmtree.cli.errors import WrongUsage


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``xmtree predict``."""
    data.add_model_arguments(parser)
    parser.add_argument("-k", type=int, default=5, help="labels per row (default 5)")
    parser.add_argument(
        "-o", "--output", default="-", metavar="OUT", help="file to write; - is stdout (default)"
    )
    parser.add_argument("--json", action="store_true", help="JSON lines")


def run(options: argparse.Namespace) -> int:
    """Predicts batch by batch."""
    if options.k < 1:
        raise WrongUsage(f"-k must be at least 1, got {options.k}")
    learner, source = data.open_model(options)
    write = _json_lines if options.json else _text_lines
    with _output(options.output) as out, progress(1, "predict") as report:
        done = 0
        for X, _ in source.batches_for(learner, True):
            out.writelines(write(*learner.predict_topk(X, options.k)))
            done += X.shape[0]
            if report:
                report(done, 0, None, None)
    return 0


@contextlib.contextmanager
def _output(path: str) -> Iterator[IO[str]]:
    if path == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    with open(path, "w", encoding="utf-8") as out:
        yield out


def _rows(labels: Any, scores: Any) -> Iterator[tuple[list[Any], list[float]]]:
    """Labels and scores of each row, those that there are."""
    counts = (scores > -float("inf")).sum(axis=1).tolist()
    for row, values, n in zip(labels.tolist(), scores.tolist(), counts, strict=True):
        yield row[:n], values[:n]


def _text_lines(labels: Any, scores: Any) -> Iterator[str]:
    for row, values in _rows(labels, scores):
        yield " ".join(f"{a}:{s:.6g}" for a, s in zip(row, values, strict=True)) + "\n"


def _json_lines(labels: Any, scores: Any) -> Iterator[str]:
    for row, values in _rows(labels, scores):
        rounded = [float(f"{s:.6g}") for s in values]
        yield json.dumps({"labels": row, "scores": rounded}, ensure_ascii=False) + "\n"
