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
from xmtree.cli import arguments, create, training
from xmtree.cli.errors import WrongUsage
from xmtree.cli.formats import Reader, Sets, open_reader
from xmtree.cli.formats.lines import lines
from xmtree.cli.measure import measure
from xmtree.cli.models import Model, learner_of


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
        "--n-labels", type=int, metavar="K", help="stdin: labels are the integers 0 to K-1"
    )
    group.add_argument(
        "--classes", metavar="FILE", help="stdin: all labels that may occur, one on each line"
    )
    learners = ["auto", *sorted(create.names())]
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
    reader = open_reader(options.data, options)
    if options.start is None:
        estimator = _new(reader, options)
    else:
        model = _started(reader, options)
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
    estimator.save(options.output, compact=options.compact)
    seconds = time.perf_counter() - began
    parts = _summary(estimator)
    if valid is not None:
        parts += _validated(Model.of(options.output, estimator), valid, options)
    how = "stopped early" if stopped else "done"
    print(f"{options.output}: {', '.join(parts)}, {how} in {seconds:.1f} s", file=sys.stderr)
    return 1 if stopped else 0


def _new(reader: Reader, options: argparse.Namespace) -> Any:
    """An estimator of the options, for the kind of data that there is."""
    seed = 0 if options.seed is None else options.seed
    fixed = {"random_state": seed, "n_jobs": options.jobs, "verbose": 1}
    if options.progress == "none":
        fixed["verbose"] = 0
    # Known before stdin is waited for.
    if reader.kind == "texts":
        return create.for_texts(options.learner or "auto", options.set, options.passes, **fixed)
    learner = create.for_numbers(
        options.learner or "auto", options.set, n_passes=options.passes, **fixed
    )
    if options.passes is not None and not isinstance(learner, OnlineLearner):
        raise WrongUsage(
            f"--passes is for online learners; --learner {options.learner} has no passes"
        )
    return learner


def _started(reader: Reader, options: argparse.Namespace) -> Model:
    """The model to train further."""
    for name, value in (("learner", options.learner), ("set", options.set), ("seed", options.seed)):
        if value not in (None, []):
            raise WrongUsage(f"--{name} cannot change with --continue: the model has its own")
    for name in ("n_labels", "classes"):
        if getattr(options, name) is not None:
            raise WrongUsage(
                f"--{name.replace('_', '-')} cannot be given with --continue: the model has labels"
            )
    if options.passes not in (None, 1) and reader.is_stdin:
        raise WrongUsage("stdin can be read only once; leave --passes out or use a file")
    model = Model.load(options.start)
    if not hasattr(model.estimator, "partial_fit"):
        raise WrongUsage(
            f"--continue: {options.start} holds a {type(model.learner).__name__}, which is not "
            "online; train it anew on all data"
        )
    if getattr(model.learner, "prune", None) is not None:
        raise WrongUsage(
            f"--continue: {options.start} keeps only its large weights (prune), as --learner auto "
            "has it; a model trained with --learner oaa can learn on"
        )
    sets = model.learner._y_form != "labels"
    if options.labels != "auto" and (options.labels == "sets") != sets:
        raise WrongUsage(
            f"--labels {options.labels}: {options.start} has learned "
            f"{'label sets' if sets else 'one label per row'}"
        )
    model.learner.set_params(n_jobs=options.jobs)
    model.prepare(reader, options.unknown_features == "ignore")
    return model


def _train(estimator: Any, reader: Reader, options: argparse.Namespace, verbose: int) -> None:
    """Trains a new estimator."""
    sets = _sets(estimator, options)
    given = _given_labels(options)
    streamed = _is_streamed(estimator, reader, options, given)
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
        _check_stream(estimator, reader, options)
    index_base = reader.prepare_fit(streamed)
    if index_base is not None:
        estimator._index_base = index_base
    if streamed:
        training.stream(estimator, reader, sets, given, verbose)
    else:
        training.fit_whole(estimator, reader, sets)


def _sets(estimator: Any, options: argparse.Namespace) -> Sets:
    """Whether y is label sets, or "auto"."""
    learner = estimator.learner if isinstance(estimator, TextClassifier) else estimator
    able = learner == "auto" if isinstance(learner, str) else learner._multilabel
    if options.labels == "sets" and not able:
        raise WrongUsage(f"--learner {options.learner} learns one label per row, not sets")
    if options.labels == "auto":
        return "auto" if able else False
    return bool(options.labels == "sets")


def _given_labels(options: argparse.Namespace) -> list[Any] | None:
    """The labels of --n-labels or --classes."""
    if options.n_labels is not None and options.classes is not None:
        raise WrongUsage("--n-labels and --classes say the same; give one of them")
    if options.n_labels is not None:
        return list(map(str, range(options.n_labels)))
    if options.classes is None:
        return None
    found = [line for line in lines(options.classes, options.classes) if line]
    if not found:
        raise ValueError(f"--classes: {options.classes} names no label")
    return found


def _is_streamed(
    estimator: Any, reader: Reader, options: argparse.Namespace, given: list[Any] | None
) -> bool:
    """Whether examples are learned batch by batch."""
    if reader.is_stdin and options.passes not in (None, 1):
        raise WrongUsage("stdin can be read only once; leave --passes out or use a file")
    if isinstance(estimator, TextClassifier):
        if estimator.n_bits is None or estimator.idf or not hasattr(estimator, "partial_fit"):
            return False
        return given is not None if reader.is_stdin else options.passes == 1
    if not isinstance(estimator, OnlineLearner):
        return False
    return reader.is_stdin or getattr(estimator, "n_passes", None) == 1


def _check_stream(learner: OnlineLearner, reader: Reader, options: argparse.Namespace) -> None:
    """Refuses what a stream does not allow, and names all that is missing at once."""
    if learner.class_weight == "balanced":
        raise WrongUsage(
            "class_weight=balanced counts the labels before learning, which a stream does not "
            "allow; read a file, with --passes 2 or more, or give the weights of labels: "
            """--set 'class_weight={"3": 10}'"""
        )
    if not reader.is_stdin:
        return
    missing = reader.missing_on_stdin(options, training.hashes(learner))
    if missing:
        raise WrongUsage(
            f"{reader.name} from stdin does not say all that must be known before; "
            f"give {' and '.join(missing)}"
        )


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
