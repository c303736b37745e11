"""Explain the scores of every row of a file by its features, for texts by words.

Text output has a line per row, "label:score feature:contribution ...", the
features of the largest contributions first. -o with a name that ends in .csv or
.tsv writes a table: id, label, score, base, feature_1, contribution_1, ... One
that ends in .jsonl, or --json, writes an object per row. The score is base plus
all contributions, also those not shown.

examples:
  xmtree explain model.xmtree questions.txt --format text --top 5
  xmtree explain model.xmtree new.csv --label churn -o why.csv
"""

import argparse
from collections.abc import Iterator
from typing import Any

from xmtree import _explanation
from xmtree.cli.errors import WrongUsage
from xmtree.cli.options import add_model, add_output, at_least
from xmtree.cli.output import Row
from xmtree.cli.predict import write_results
from xmtree.cli.trained import open_model


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``xmtree explain``."""
    add_model(parser)
    parser.add_argument(
        "--top", type=at_least(1), default=10, metavar="N", help="features per row (default 10)"
    )
    parser.add_argument(
        "--label", metavar="L", help="label whose score is explained (default: each row's best)"
    )
    add_output(parser)


def run(options: argparse.Namespace) -> int:
    """Explain batch by batch."""
    model, reader = open_model(options)
    _explanation.check_explains(model.learner)
    labels = {str(label): label for label in model.learner.classes_.tolist()}
    if options.label is not None and options.label not in labels:
        raise WrongUsage(f"--label: {model.name} has no label {options.label!r}")
    label = labels.get(options.label)

    learner, start = model.learner, model.learner._index_base or 0

    def results_of(rows: Any, given: Any) -> Iterator[Row]:
        rows = learner._rows(rows)
        codes = _explanation.codes_of(learner, rows, label)
        found = _explanation.contributions(learner, rows, codes)
        names = list(model.numbers or range(start, start + rows.shape[1]))
        for at, own in enumerate(learner.classes_[codes].tolist()):
            if model.takes == "texts":
                pairs = model.estimator._features.by_word(given[at], found[at])
            else:
                pairs = _explanation.named_pairs(names, found[at])
            why = _explanation.explained(own, found[at], pairs, options.top)
            first = {"label": why.label, "score": why.score, "base": why.base}
            yield [name for name, _ in why.contributions], [x for _, x in why.contributions], first

    names = ("feature", "contribution")
    return write_results(options, model, reader, options.top, results_of, names)
