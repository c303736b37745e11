"""Train a model on a file and save it.

Texts (a table with a column text, or fastText's format) train a TextClassifier: words become
features, and --learner auto chooses the learner. Numbers need --learner.

Online learners with --passes 1 or from stdin are streamed: memory holds the model and a few
batches, and examples are learned in the order of the file. (Shuffle files that are sorted by
label.) Otherwise the whole file is loaded, and shuffled in every pass. Texts are streamed only
if words are hashed as well: --set n_bits=20.

examples:
  xmtree fit reviews.csv -o model.xmtree
  xmtree fit train.txt.xz --learner lomtree -o model.xmtree
  xmtree fit train.txt --learner oaa --passes 3 --set loss=softmax -o model.xmtree
  zcat big.txt.gz | xmtree fit - --learner lomtree -o model.xmtree
  xmtree fit reviews.csv --tune 10m --metric ndcg@3 -o model.xmtree
  xmtree fit new.csv --continue model.xmtree -o newer.xmtree --valid test.csv
"""

import argparse
import errno
import os
import re
import sys
import time
from collections.abc import Iterable
from functools import partial
from typing import Any

from xmtree import TextClassifier
from xmtree._online import OnlineLearner
from xmtree._progress import shown_as
from xmtree.cli import models, training
from xmtree.cli.errors import WrongUsage
from xmtree.cli.evaluate import measure
from xmtree.cli.formats import open_reader
from xmtree.cli.formats.reader import Reader, Sets, lines
from xmtree.cli.options import add_data, add_unknown_features, add_work, at_least
from xmtree.cli.trained import Model, learner_of

#: Size in bytes of a model file from which ``fit`` suggests how to make it smaller.
_LARGE = 100_000_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``xmtree fit``."""
    group = add_data(parser)
    add_unknown_features(group, "--continue and --valid: features")
    group.add_argument(
        "--labels",
        choices=["auto", "one", "sets"],
        default="auto",
        help="one label per row, or label sets; auto (default) decides by the file, for XMC from "
        "stdin by its first batch, and for other formats from stdin is one",
    )
    group.add_argument(
        "--n-features",
        type=at_least(1),
        metavar="D",
        help="svmlight: number of columns (default: as many as DATA has)",
    )
    given = group.add_mutually_exclusive_group()
    given.add_argument(
        "--n-labels", type=at_least(1), metavar="K", help="stdin: labels are the integers 0 to K-1"
    )
    given.add_argument(
        "--classes", metavar="FILE", help="stdin: all labels that may occur, one on each line"
    )
    parser.add_argument(
        "--learner",
        choices=["auto", *sorted(models.names())],
        help="the learner; for texts auto (default) chooses by the number of labels",
    )
    parser.add_argument("-o", "--output", required=True, metavar="MODEL", help="file to write")
    parser.add_argument(
        "--continue",
        dest="start",
        metavar="MODEL",
        help="train this online model further instead of a new one, in the order of DATA",
    )
    parser.add_argument(
        "--new-labels",
        choices=["error", "add"],
        help="--continue: labels that the model does not have raise an error (default) or are "
        "added to it (oaa, lomtree, recall-tree)",
    )
    parser.add_argument(
        "--valid",
        metavar="FILE",
        help="report the error on this file after training; with --set early_stopping=true, gamble "
        "and samme also stop by it",
    )
    parser.add_argument(
        "--compact", action="store_true", help="write a small file, for prediction only"
    )
    parser.add_argument(
        "--passes", type=at_least(1), metavar="N", help="passes over DATA (n_passes)"
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="key=value",
        help="a constructor parameter of the learner, or of TextClassifier for texts; may be "
        "repeated",
    )
    text = "search for better parameters for about this time (30s, 10m, 2h), or number of settings"
    parser.add_argument("--tune", type=_budget, metavar="TIME", help=text)
    text = "what --tune maximizes on held-out rows: p@1 (default), ndcg@5, psp@3, f1_micro, ..."
    parser.add_argument("--metric", metavar="NAME", help=text)
    parser.add_argument("--seed", type=int, metavar="N", help="random_state (default 0)")
    add_work(parser)


def run(options: argparse.Namespace) -> int:
    """Train, save, and report in one line."""
    ignores = options.unknown_features == "ignore"
    if ignores and not (options.start or options.valid):
        raise WrongUsage("--unknown-features needs --continue or --valid")
    if options.new_labels is not None and not options.start:
        raise WrongUsage("--new-labels needs --continue")
    _check_tuning(options)
    if options.data == "-" and options.passes not in (None, 1):
        raise WrongUsage("stdin can be read only once; leave --passes out or use a file")
    if options.start is None:
        # Stdin is XMC text for a named learner.
        on_stdin = None if options.learner in (None, "auto") else "xmc"
        reader = open_reader(options.data, options, on_stdin=on_stdin)
        estimator = _new_estimator(reader, options)
    else:
        model = Model.load(options.start, ignores)
        reader = model.open(options.data, options)
        _check_continued(model, reader, options)
        estimator = model.estimator
    _check_output(options.output)
    valid = None if options.valid is None else open_reader(options.valid, options, strict=False)
    if valid is not None and valid.kind != reader.kind:
        raise WrongUsage(
            f"{reader.shown_name} holds {reader.kind}, but {valid.path} holds {valid.kind}"
        )
    began = time.perf_counter()
    how = "done"
    verbose = int(options.progress != "none")
    try:
        with shown_as(options.progress):
            if options.start is None:
                _train(estimator, reader, options, verbose, valid)
            else:
                grows = options.new_labels == "add"
                training.learn_on(model, reader, options.passes or 1, verbose, grows)
    except KeyboardInterrupt:
        # An online learner keeps the examples learned so far.
        if not estimator.__sklearn_is_fitted__():
            raise
        how = "stopped early"
    if options.start is None:
        learner_of(estimator)._table_options = reader.table_options()
    estimator.save(options.output, compact=options.compact)
    seconds = time.perf_counter() - began
    parts = _summary(estimator)
    if valid is not None:
        trained = Model.of(options.output, estimator, ignores)
        trained.prepare(valid)
        found = measure(trained, valid)
        more = [f" P@{k} {found.ranking[f'P@{k}']:.4f}" for k in found.cuts if k > 1]
        parts.append(f"error {found.error:.4f}{''.join(more)} on {options.valid}")
    if reader.categories is not None and reader.categories.numbers:
        counts = reader.categories.numbers.items()
        shown = ", ".join(f"{name!r} ({len(known)})" for name, known in counts)
        print(f"{reader.shown_name}: columns of categories: {shown}", file=sys.stderr)
    if reader.unused:
        shown = ", ".join(map(repr, reader.unused))
        print(f"{reader.shown_name}: unused columns: {shown}", file=sys.stderr)
    print(f"{options.output}: {', '.join(parts)}, {how} in {seconds:.1f} s", file=sys.stderr)
    size = os.path.getsize(options.output)
    if size >= _LARGE and not options.compact and getattr(estimator, "prune", 0) is None:
        print(
            f"{options.output}: {size / 1e6:.0f} MB; --set prune=0.03 keeps only large weights, "
            "--compact stores half the bits of each",
            file=sys.stderr,
        )
    return 0 if how == "done" else 1


def _budget(text: str) -> dict[str, Any]:
    """Return the argument of ``tune`` for a time or a number of settings."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smh])|(\d+)", text)
    if found is None:
        raise argparse.ArgumentTypeError(f"a time such as 30s, 10m or 2h, or a number, got {text}")
    if found[3]:
        return {"n_candidates": int(text)}
    return {"minutes": float(found[1]) * {"s": 1 / 60, "m": 1, "h": 60}[found[2]]}


def _check_tuning(options: argparse.Namespace) -> None:
    """Refuse a wrong use of --tune and --metric, before data are read."""
    if options.tune is None:
        if options.metric is not None:
            raise WrongUsage("--metric needs --tune")
        return
    if options.start is not None:
        raise WrongUsage("--tune cannot be given with --continue: the model has its parameters")
    from xmtree import _tune

    try:
        _tune.check_budget(**options.tune)
        _tune.check_metric(options.metric or "p@1")
    except ValueError as error:
        raise WrongUsage(f"--tune: {error}") from error


def _tuned(estimator: Any, X: Any, y: Any, weights: Any, *, options: argparse.Namespace) -> None:
    """Set the best parameters that a search finds, and print what it tries."""
    from xmtree import _tune

    metric, seed = options.metric or "p@1", options.seed or 0

    def show(tried: dict[str, Any]) -> None:
        (_, rows), (_, score), (_, seconds), *values = tried.items()
        print(f"{rows:>9} {score:>9.4f} {seconds:>9.2f} ", _shown(values), file=sys.stderr)

    print(f"{'rows':>9} {metric:>9} {'seconds':>9}  parameters", file=sys.stderr)
    more = {"metric": metric, "random_state": seed, "sample_weight": weights, "report": show}
    search = _tune.tune(estimator, X, y, **options.tune, **more, refit=False)
    print("best:", _shown(search.best_params_.items()), file=sys.stderr)
    estimator.set_params(**search.best_params_)


def _shown(settings: Iterable[tuple[str, Any]]) -> str:
    return " ".join(f"{name}={value}" for name, value in sorted(settings))


def _new_estimator(reader: Reader, options: argparse.Namespace) -> Any:
    """Return an untrained estimator for the options and the kind of data."""
    name = options.learner or "auto"
    fixed = {
        "random_state": 0 if options.seed is None else options.seed,
        "n_jobs": options.jobs,
        "verbose": int(options.progress != "none"),
    }
    if reader.kind == "texts":
        return models.for_texts(name, options.set, options.passes, **fixed)
    reader.takes_categories = "; --learner gamble and samme also take text, as categories"
    if hasattr(models.names().get(name), "categorical_features"):
        reader.takes_categories = "; or name it in categorical_features"
    if name == "auto":
        # Reading a batch first reports columns that do not hold numbers.
        next(reader.batches(), None)
    return models.for_numbers(name, options.set, n_passes=options.passes, **fixed)


def _check_continued(model: Model, reader: Reader, options: argparse.Namespace) -> None:
    """Refuse a model that cannot be trained further, and prepare one that can."""
    for name in ("learner", "set", "seed", "n_labels", "classes", "n_features"):
        if getattr(options, name) not in (None, []):
            raise WrongUsage(
                f"--{name.replace('_', '-')} cannot be given with --continue: the model has its own"
            )
    if not hasattr(model.estimator, "partial_fit"):
        raise WrongUsage(
            f"--continue: the {type(model.learner).__name__} in {options.start} is not an online "
            "learner; train it again on all data"
        )
    if options.new_labels == "add" and not model.learner._takes_new_labels:
        raise WrongUsage(
            f"--new-labels add: the tree of the {type(model.learner).__name__} in {options.start} "
            "is over a fixed set of labels; train it again on all data, or use oaa, lomtree or "
            "recall-tree"
        )
    if getattr(model.learner, "prune", None) is not None:
        raise WrongUsage(
            f"--continue: {options.start} keeps only large weights (prune, the default of "
            "--learner auto); a model trained with --learner oaa can be trained further"
        )
    sets = model.learner._y_form != "labels"
    if options.labels != "auto" and (options.labels == "sets") != sets:
        raise WrongUsage(
            f"--labels {options.labels}: {options.start} was trained on "
            f"{'label sets' if sets else 'one label per row'}"
        )
    if options.jobs is not None:
        model.learner.set_params(n_jobs=options.jobs)
    model.prepare(reader)


def _train(
    estimator: Any,
    reader: Reader,
    options: argparse.Namespace,
    verbose: int,
    valid: Reader | None,
) -> None:
    """Train a new estimator on the whole file at once or batch by batch."""
    is_text = isinstance(estimator, TextClassifier)
    learner = estimator.learner if is_text else estimator
    learns_sets = learner == "auto" if isinstance(learner, str) else learner._multilabel
    if options.labels == "sets" and not learns_sets:
        raise WrongUsage(f"--learner {options.learner} learns one label per row, not sets")
    sets: Sets = options.labels == "sets"
    if options.labels == "auto" and learns_sets:
        sets = "auto"
    given = _given_labels(options)
    if is_text:
        streams = estimator.n_bits is not None and not estimator.idf
        streams = streams and hasattr(estimator, "partial_fit")
        streams = streams and (given is not None if reader.is_stdin else options.passes == 1)
    else:
        streams = isinstance(estimator, OnlineLearner)
        streams = streams and (reader.is_stdin or getattr(estimator, "n_passes", None) == 1)
    streams = streams and options.tune is None
    if given is not None and not (reader.is_stdin and streams and reader.name != "xmc"):
        raise WrongUsage(
            "--n-labels and --classes are only for online learners that read stdin, in formats "
            "other than xmc"
        )
    if not is_text:
        if streams:
            _check_stream(estimator, reader, options)
        index_base = reader.prepare_fit(streams)
        if index_base is not None:
            estimator._index_base = index_base
    if streams:
        training.stream(estimator, reader, sets, given, verbose)
    else:
        tuned = None if options.tune is None else partial(_tuned, options=options)
        ignores = options.unknown_features == "ignore"
        training.fit_whole(estimator, reader, sets, tuned, valid, ignores)


def _given_labels(options: argparse.Namespace) -> list[Any] | None:
    """Return the labels of --n-labels or --classes."""
    if options.n_labels is not None:
        return list(map(str, range(options.n_labels)))
    if options.classes is None:
        return None
    found = [line for line in lines(options.classes, options.classes) if line]
    if not found:
        raise ValueError(f"--classes: {options.classes} holds no labels")
    return found


def _check_stream(learner: OnlineLearner, reader: Reader, options: argparse.Namespace) -> None:
    """Refuse settings that a stream does not allow, and name all missing ones at once."""
    if learner.class_weight == "balanced":
        raise WrongUsage(
            "class_weight=balanced needs label counts before training, which a stream does not "
            "have; use a file with --passes 2 or more, or give the weights of labels: "
            """--set 'class_weight={"3": 10}'"""
        )
    if not reader.is_stdin:
        return
    missing = reader.missing_on_stdin(options, training.hashes(learner))
    if missing:
        raise WrongUsage(f"{reader.name} from stdin needs {' and '.join(missing)}")


def _check_output(path: str) -> None:
    """Refuse an output that cannot be written, before training."""
    if path == "-":
        raise WrongUsage("-o: a model cannot be written to stdout; name a file")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), folder)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), folder)


def _summary(estimator: Any) -> list[str]:
    """Return a summary of the trained model, as short phrases."""
    learner = learner_of(estimator)
    features = "hashed" if learner._takes_any_width() else learner.n_features_in_
    parts = [f"{len(learner.classes_)} labels", f"{features} features"]
    if isinstance(estimator, TextClassifier):
        parts.insert(0, type(learner).__name__)
    if isinstance(learner, OnlineLearner):
        parts.append(f"{learner.n_examples_seen_} examples learned")
        loss, recent = learner.progressive_loss_, learner.recent_loss()
        more = f" (recent {recent:.4f})" if abs(recent - loss) > 1e-6 else ""
        parts.append(f"progressive error {loss:.4f}{more}")
    if hasattr(learner, "progressive_recall_"):
        parts.append(f"progressive recall {learner.progressive_recall_:.4f}")
    return parts
