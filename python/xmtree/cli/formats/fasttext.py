"""fastText's training text: ``__label__a __label__b the words of the text``."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from xmtree.cli.formats.lines import lines
from xmtree.cli.formats.reader import Batch, Kind, Reader, Sets

PREFIX = "__label__"


class FastTextReader(Reader):
    """A text per line, and its labels as words with a prefix, as fastText reads them."""

    name = "fasttext"
    endings = (".fasttext", ".ft")

    @classmethod
    def begins_with(cls, first_line: str) -> bool:
        return first_line.lstrip().startswith(PREFIX)

    @property
    def kind(self) -> Kind:
        return "texts"

    def batches(self, sets: Sets = True) -> Iterator[Batch]:
        found = (line.split() for line in lines(self.path, self.shown_name))
        line = 1
        while rows := list(islice(found, self.batch_size)):
            yield Batch(
                [" ".join(word for word in row if not word.startswith(PREFIX)) for row in rows],
                [[w.removeprefix(PREFIX) for w in row if w.startswith(PREFIX)] for row in rows],
                lines=list(range(line, line + len(rows))),
            )
            line += len(rows)
