"""The text format of the Extreme Classification Repository."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator
from typing import Any

from xmtree import datasets
from xmtree.cli.formats.reader import Batch, Kind, NamedRows, Reader, Sets

_HEADER = re.compile(r"\s*\d+\s+\d+\s+\d+\s*")


class XmcReader(Reader):
    """XMC text, which the core parses. Labels of batches are an indicator of all labels."""

    name = "xmc"
    endings = (".xmc",)
    untyped_labels = False
    labels_in_header = True

    @classmethod
    def begins_with(cls, first_line: str) -> bool:
        return _HEADER.fullmatch(first_line) is not None

    @property
    def kind(self) -> Kind:
        return "numbers"

    def load(self, sets: Sets, of_names: Callable[[NamedRows], Any]) -> Batch:
        X, y = datasets.load_xmc(self.path, multilabel=sets)
        if X.shape[0] == 0:
            raise self.empty()
        return Batch(X, y)

    def batches(self, sets: Sets = True) -> Iterator[Batch]:
        found = datasets.iter_xmc(self.path, self.batch_size, multilabel=True)
        return (Batch(X, y) for X, y in found)

    def missing_on_stdin(self, options: argparse.Namespace, hashes: bool) -> list[str]:
        return []

    def beyond(self, X: Any, width: int, first_row: int) -> str | None:
        return (
            f"{self.shown_name} has {X.shape[1]} features, the model {width} features; "
            "--unknown-features ignore leaves out the others"
        )
