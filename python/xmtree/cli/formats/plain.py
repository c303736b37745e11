"""Plain text: one text per line, without labels."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from xmtree.cli.formats.lines import lines
from xmtree.cli.formats.reader import Batch, Kind, Reader, Sets


class PlainReader(Reader):
    """A text per line, also an empty one, so that predictions have its line's number."""

    name = "text"

    @property
    def kind(self) -> Kind:
        return "texts"

    def batches(self, sets: Sets = True) -> Iterator[Batch]:
        found = lines(self.path, self.shown_name)
        while rows := list(islice(found, self.batch_size)):
            yield Batch(rows, None)
