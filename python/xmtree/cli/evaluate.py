"""Measure a model on a labelled file.

error is the share of rows whose best label is wrong (1 - P@1); P@k, nDCG@k and
recall@k are those of xmtree.metrics, as the Extreme Classification Repository
defines them. Labels that the model has never seen count as missed, rows without
labels score 0. PSP@k and PSnDCG@k give rare labels a larger weight. They are reported
if the training file is given (--train), in which the labels are counted.

--per-label lists the labels, the most frequent first: precision and recall of what
the model predicts (its best label, or the label set), and the label that was predicted
most often where this one was missed. Labels that the model has never seen are not listed.

examples:
  xmtree evaluate model.xmtree test.txt.xz --train train.txt.xz --json
  xmtree evaluate model.xmtree test.csv --per-label
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from xmtree._progress import shown_as
from xmtree.cli import arguments, per_label
from xmtree.cli.formats import open_reader
from xmtree.cli.measure import Propensities, measure
from xmtree.cli.trained import open_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``xmtree evaluate``."""
    arguments.add_model(parser)
    parser.add_argument(
        "--train",
        metavar="FILE",
        help="the training file, for PSP@k and PSnDCG@k; formats as DATA",
    )
    parser.add_argument("--per-label", action="store_true", help="also list all labels")
    parser.add_argument("--json", action="store_true", help="one JSON object")


def run(options: argparse.Namespace) -> int:
    """Measures and prints."""
    model, reader = open_model(options)
    propensities = None
    if options.train is not None:
        remembered = model.learner._table_options
        train = open_reader(options.train, options, strict=False, remembered=remembered)
        model.prepare(train, ignores_unknown=True)
        propensities = Propensities.of(train, model)
    labels = per_label.PerLabel(model.learner.classes_) if options.per_label else None
    with shown_as(options.progress):
        ignores = options.unknown_features == "ignore"
        found = measure(model, reader, ignores, propensities, labels)
    figures: dict[str, Any] = {"n_examples": found.n_examples, "error": found.error}
    figures |= found.ranking
    figures["us_per_prediction"] = found.seconds / found.n_examples * 1e6
    listed = list(labels.rows()) if labels is not None else []
    if options.json:
        print(json.dumps(figures | ({"per_label": listed} if labels else {}), ensure_ascii=False))
        return 0
    for name, value in figures.items():
        print(f"{name:<18}{value:.6g}")
    if labels is not None:
        print()
        print("\n".join(per_label.table(listed)))
    return 0
