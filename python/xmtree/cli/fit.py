"""Train a model on a file and save it.

Texts (a table with a column text, or fastText's format) train a TextClassifier: words become
features, and --learner auto chooses the learner. Numbers need --learner.

Online learners with --passes 1, and from stdin, are streamed: memory is that of the model and
a few batches, examples are learned in the order of the file. (Shuffle files that are sorted by
label.) Otherwise the whole file is loaded, and shuffled in every pass. Texts are streamed if,
besides, words are hashed: --set n_bits=20.

examples:
  xmtree fit reviews.csv -o model.xmtree
  xmtree fit train.txt.xz --learner lomtree -o model.xmtree
  xmtree fit train.txt --learner oaa --passes 3 --set loss=softmax -o model.xmtree
  zcat big.txt.gz | xmtree fit - --learner lomtree -o model.xmtree
  xmtree fit new.csv --continue model.xmtree -o newer.xmtree --valid test.csv
"""

from __future__ import annotations

import argparse
import errno
import os
import sys
import time
from typing import Any

from xmtree import TextClassifier
from xmtree._online import OnlineLearner
from xmtree._progress import shown_as
from xmtree.cli import arguments, models, plan, training
from xmtree.cli.errors import WrongUsage
from xmtree.cli.formats import Reader, open_reader
from xmtree.cli.measure import measure
from xmtree.cli.trained import Model, learner_of

#: Bytes of a model file from which ``fit`` says how to have a smaller one.
_LARGE = 100_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options of ``xmtree fit``."""
    group = arguments.add_data(parser)
    arguments.add_unknown_features(group, "--continue and --valid: features")
    group.add_argument(
        "--labels",
        choices=["auto", "one", "sets"],
        default="auto",
        help="one label per row, or sets; auto reads the file; for stdin it is one, but for XMC "
        "what the first batch shows",
    )
    group.add_argument(
        "--n-features",
        type=int,
        metavar="D",
        help="svmlight: number of columns, by default as many as occur",
    )
    group.add_argument(
        "--n-labels", type=int, metavar="K", help="stdin: labels are the integers 0 to K-1"
    )
    group.add_argument(
        "--classes", metavar="FILE", help="stdin: all labels that may occur, one on each line"
    )
    learners = ["auto", *sorted(models.names())]
    parser.add_argument(
        "--learner",
        choices=learners,
        help="which learner; texts: by default auto, which chooses by the number of labels",
    )
    # Its name before there were texts.
    parser.add_argument(
        "--model", dest="learner", choices=learners, default=None, help=argparse.SUPPRESS
    )
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="file to write")
    parser.add_argument(
        "--continue",
        dest="start",
        metavar="MODEL",
        help="train this model further instead of a new one, in the order of DATA; it must be "
        "online, and the labels must be among its own",
    )
    parser.add_argument(
        "--valid", metavar="FILE", help="report the error on this file after training"
    )
    parser.add_argument(
        "--compact", action="store_true", help="write the model for prediction only: a small file"
    )
    parser.add_argument("--passes", type=int, metavar="N", help="passes over DATA (n_passes)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="key=value",
        help="a parameter of the learner, or of TextClassifier for texts, as its constructor has "
        "it; may be repeated",
    )
    parser.add_argument("--seed", type=int, metavar="N", help="random_state (default 0)")
    arguments.add_work(parser)


def run(options: argparse.Namespace) -> int:
    """Trains, saves, and reports in one line."""
    for name in ("passes", "n_labels", "n_features"):
        value = getattr(options, name)
        if value is not None and value < 1:
            raise WrongUsage(f"--{name.replace('_', '-')} must be at least 1, got {value}")
    if options.unknown_features == "ignore" and not (options.start or options.valid):
        raise WrongUsage("--unknown-features is for --continue and --valid")
    if options.start is None:
        reader = open_reader(options.data, options, on_stdin=plan.stdin_format(options))
        estimator = plan.new_estimator(reader, options)
    else:
        model = Model.load(options.start)
        reader = model.open(options.data, options)
        plan.check_continued(model, reader, options)
        estimator = model.estimator
    _check_output(options.output)
    valid = None if options.valid is None else open_reader(options.valid, options, strict=False)
    if valid is not None and valid.kind != reader.kind:
        raise WrongUsage(f"{reader.shown_name} holds {reader.kind}, {valid.path} {valid.kind}")
    began = time.perf_counter()
    stopped = False
    verbose = int(options.progress != "none")
    try:
        with shown_as(options.progress):
            if options.start is not None:
                ignores = options.unknown_features == "ignore"
                training.learn_on(model, reader, options.passes or 1, ignores, verbose)
            else:
                _train(estimator, reader, options, verbose)
    except KeyboardInterrupt:
        # An online learner keeps what it has learned so far.
        if not estimator.__sklearn_is_fitted__():
            raise
        stopped = True
    if options.start is None:
        learner_of(estimator)._table_options = reader.table_options()
    estimator.save(options.output, compact=options.compact)
    seconds = time.perf_counter() - began
    parts = _summary(estimator)
    if valid is not None:
        parts += _validated(Model.of(options.output, estimator), valid, options)
    if reader.unused:
        shown = ", ".join(map(repr, reader.unused))
        print(f"{reader.shown_name}: columns that were not used: {shown}", file=sys.stderr)
    how = "stopped early" if stopped else "done"
    print(f"{options.output}: {', '.join(parts)}, {how} in {seconds:.1f} s", file=sys.stderr)
    size = os.path.getsize(options.output)
    if size >= _LARGE and not options.compact and getattr(estimator, "prune", 0) is None:
        print(
            f"{options.output}: {size / 1e6:.0f} MB; --set prune=0.03 keeps large weights only, "
            "--compact half of the bits of each",
            file=sys.stderr,
        )
    return 1 if stopped else 0


def _train(estimator: Any, reader: Reader, options: argparse.Namespace, verbose: int) -> None:
    """Trains a new estimator."""
    sets = plan.sets_of(estimator, options)
    given = plan.given_labels(options)
    streamed = plan.is_streamed(estimator, reader, options, given)
    if given is not None and not (reader.is_stdin and streamed and reader.name != "xmc"):
        raise WrongUsage(
            "--n-labels and --classes are for what is streamed from stdin and does not say "
            "which labels there are"
        )
    if isinstance(estimator, TextClassifier):
        if streamed:
            training.stream(estimator, reader, sets, given, verbose)
        else:
            training.fit_whole(estimator, reader, sets)
        return
    if streamed:
        plan.check_stream(estimator, reader, options)
    index_base = reader.prepare_fit(streamed)
    if index_base is not None:
        estimator._index_base = index_base
    if streamed:
        training.stream(estimator, reader, sets, given, verbose)
    else:
        training.fit_whole(estimator, reader, sets)


def _check_output(path: str) -> None:
    """Refuses an output that cannot be written, before anything is trained."""
    if path == "-":
        raise WrongUsage("-o: a model cannot go to standard output; name a file")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


def _summary(estimator: Any) -> list[str]:
    """What was trained, in a few words each."""
    learner = learner_of(estimator)
    features = "hashed" if learner._takes_any_width() else learner.n_features_in_
    parts = [f"{len(learner.classes_)} labels", f"{features} features"]
    if isinstance(estimator, TextClassifier):
        parts.insert(0, type(learner).__name__)
    if isinstance(learner, OnlineLearner):
        parts.append(f"{learner.n_examples_seen_} examples learned")
        parts.append(f"progressive error {learner.progressive_loss_:.4f}")
    if hasattr(learner, "progressive_recall_"):
        parts.append(f"progressive recall {learner.progressive_recall_:.4f}")
    return parts


def _validated(model: Model, valid: Reader, options: argparse.Namespace) -> list[str]:
    """The measures of a file that was not trained on."""
    ignores = options.unknown_features == "ignore"
    model.prepare(valid, ignores)
    found = measure(model, valid, ignores)
    shown = [f"{name} {value:.4f}" for name, value in found.ranking.items() if name[:2] == "P@"]
    return [" ".join([f"error {found.error:.4f}", *shown[1:], f"on {options.valid}"])]
