"""What ``xmtree fit`` is to do, by its options: which estimator, streamed or not."""

from __future__ import annotations

import argparse
from typing import Any

from xmtree import TextClassifier
from xmtree._online import OnlineLearner
from xmtree.cli import models, training
from xmtree.cli.errors import WrongUsage
from xmtree.cli.formats import Reader, Sets
from xmtree.cli.formats.lines import lines
from xmtree.cli.trained import Model


def stdin_format(options: argparse.Namespace) -> str | None:
    """The format of stdin where no option tells it: a named learner reads XMC, as it did before
    there were texts."""
    return None if options.learner in (None, "auto") else "xmc"


def new_estimator(reader: Reader, options: argparse.Namespace) -> Any:
    """An estimator of the options, for the kind of data that there is."""
    seed = 0 if options.seed is None else options.seed
    fixed = {"random_state": seed, "n_jobs": options.jobs, "verbose": 1}
    if options.progress == "none":
        fixed["verbose"] = 0
    if reader.kind == "texts":
        return models.for_texts(options.learner or "auto", options.set, options.passes, **fixed)
    if options.learner in (None, "auto"):
        # Tells of columns that hold no numbers, if there are any.
        next(reader.batches(), None)
    return models.for_numbers(
        options.learner or "auto", options.set, n_passes=options.passes, **fixed
    )


def check_continued(model: Model, reader: Reader, options: argparse.Namespace) -> None:
    """Refuses a model that cannot be trained further, and prepares one that can."""
    for name in ("learner", "set", "seed", "n_labels", "classes", "n_features"):
        if getattr(options, name) not in (None, []):
            raise WrongUsage(
                f"--{name.replace('_', '-')} cannot change with --continue: the model has its own"
            )
    if options.passes not in (None, 1) and reader.is_stdin:
        raise WrongUsage("stdin can be read only once; leave --passes out or use a file")
    if not hasattr(model.estimator, "partial_fit"):
        raise WrongUsage(
            f"--continue: {type(model.learner).__name__}, the model in {options.start}, is not "
            "online; train it again on all data"
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
    if options.jobs is not None:
        model.learner.set_params(n_jobs=options.jobs)
    model.prepare(reader, options.unknown_features == "ignore")


def sets_of(estimator: Any, options: argparse.Namespace) -> Sets:
    """Whether y is label sets, or "auto"."""
    learner = estimator.learner if isinstance(estimator, TextClassifier) else estimator
    able = learner == "auto" if isinstance(learner, str) else learner._multilabel
    if options.labels == "sets" and not able:
        raise WrongUsage(f"--learner {options.learner} learns one label per row, not sets")
    if options.labels == "auto":
        return "auto" if able else False
    return bool(options.labels == "sets")


def given_labels(options: argparse.Namespace) -> list[Any] | None:
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


def is_streamed(
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


def check_stream(learner: OnlineLearner, reader: Reader, options: argparse.Namespace) -> None:
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
