"""Formats with an example per line: plain text, fastText's and Vowpal Wabbit's."""

import argparse
import math
import re
from collections.abc import Iterator
from itertools import islice

import numpy as np

from xmtree.cli.formats.reader import Batch, Labels, Reader, Sets, is_number

#: Prefix of labels in fastText's format.
_PREFIX = "__label__"


class PlainReader(Reader):
    """A text per line; empty lines count, so that predictions keep the line numbers."""

    name = "text"
    kind = "texts"

    def batches(self, sets: Sets = True) -> Iterator[Batch]:
        found = self.lines()
        while rows := list(islice(found, self.batch_size)):
            yield Batch(rows, None)


class FastTextReader(Reader):
    """A text per line with its labels as prefixed words, as fastText reads them."""

    name = "fasttext"
    kind = "texts"
    endings = (".fasttext", ".ft")
    opening = re.compile(rf"\s*{_PREFIX}.*")

    def batches(self, sets: Sets = True) -> Iterator[Batch]:
        found = enumerate(map(str.split, self.lines()), 1)
        while part := list(islice(found, self.batch_size)):
            numbers, rows = zip(*part, strict=True)
            texts = [" ".join(word for word in row if not word.startswith(_PREFIX)) for row in rows]
            labels = [
                [w.removeprefix(_PREFIX) for w in row if w.startswith(_PREFIX)] for row in rows
            ]
            yield Batch(texts, Labels.of(labels), lines=list(numbers))


#: Labels, importance, features, line.
_Example = tuple[list[str], float, dict[str, float], int]


class VwReader(Reader):
    """``label importance 'tag|namespace feature:value ... |namespace ...``.

    Only the part for single labels and label sets is read. All other VW syntax is refused, with its
    line and name.

    A feature's name is ``namespace^feature``, or ``feature`` without a namespace. A word as its
    value, as in ``color:red``, gives ``namespace^color^red``. Labels are integers or strings;
    several separated by commas, or none, are a label set.
    """

    name = "vw"
    endings = (".vw",)
    opening = re.compile(r"\s*([^\s|]+\s+){0,3}('?[^\s|]*)?\|.*")

    def batches(self, sets: Sets = True) -> Iterator[Batch]:
        found = self._examples()
        while examples := list(islice(found, self.batch_size)):
            labels, weights, features, numbers = zip(*examples, strict=True)
            weighted = np.array(weights, np.float64)
            yield Batch(list(features), Labels.of(labels), weighted, lines=list(numbers))

    def missing_on_stdin(self, options: argparse.Namespace, hashes: bool) -> list[str]:
        missing = super().missing_on_stdin(options, hashes)
        return missing if hashes else [*missing, "--set n_bits=BITS"]

    def _examples(self) -> Iterator[_Example]:
        for number, line in enumerate(self.lines(), 1):
            if not line.strip():
                continue
            try:
                yield *_example(line), number
            except ValueError as error:
                raise self.wrong(number, str(error)) from None


def _example(line: str) -> tuple[list[str], float, dict[str, float]]:
    """Parse one line, or raise a ValueError about the part that cannot be read."""
    head, bar, rest = line.partition("|")
    if not bar:
        raise ValueError("no '|' before the features")
    labels, importance = _head(head)
    features: dict[str, float] = {}
    for part in rest.split("|"):
        # A namespace follows its bar without a space.
        words = part.split()
        prefix, weight = "", 1.0
        if words and not part[0].isspace():
            space, value = _split(words.pop(0), "namespace")
            weight = 1.0 if value is None else _number(value, f"weight of namespace {space!r}")
            prefix = f"{space}^"
        for word in words:
            name, number = _feature(word)
            name = prefix + name
            # A repeated feature counts twice, as in VW.
            features[name] = features.get(name, 0.0) + weight * number
    return labels, importance, features


def _head(head: str) -> tuple[list[str], float]:
    """Return labels and importance from the part before the first bar."""
    words = head.split()
    if words and words[-1].startswith("'"):
        words.pop()  # a tag
    elif words and not head[-1].isspace():
        if len(words) == 1:
            raise ValueError(
                f"{words[0]!r} touches the '|' and is a tag to VW, not a label; put a space "
                "between them, or a quote before a tag"
            )
        words.pop()  # a tag without a quote
    if not words:
        return [], 1.0
    if words[0] == "shared" or any(":" in word for word in words):
        what = "shared features" if words[0] == "shared" else "labels with costs or actions"
        raise ValueError(
            f"{' '.join(words)!r}: {what} (for VW's cost-sensitive and contextual-bandit "
            "learners) are not supported, only labels and their importance"
        )
    if len(words) > 2:
        raise ValueError(
            f"{words[2]!r} after label and importance: initial predictions are not supported"
        )
    importance = 1.0
    if len(words) == 2:
        importance = _number(words[1], "importance")
        if importance < 0:
            raise ValueError(f"importance must not be negative, got {words[1]}")
    labels = words[0].split(",")
    if not all(labels):
        raise ValueError(f"{words[0]!r}: a label is missing next to a comma")
    return labels, importance


def _feature(word: str) -> tuple[str, float]:
    """Return name and value of a feature; ``color:red`` is ``color^red`` with the value 1."""
    name, value = _split(word, "feature")
    if value is None:
        return name, 1.0
    if value and ":" not in value and not is_number(value):
        return f"{name}^{value}", 1.0
    return name, _number(value, f"value of the feature {name!r}")


def _split(word: str, what: str) -> tuple[str, str | None]:
    """Return a name and the text after its colon, or None without a colon."""
    name, colon, value = word.partition(":")
    if not name:
        raise ValueError(f"{word!r}: a {what} must have a name")
    return name, value if colon else None


def _number(text: str, what: str) -> float:
    if not (is_number(text) and math.isfinite(float(text))):
        raise ValueError(f"the {what} must be a finite number, got {text!r}")
    return float(text)
