"""Parquet files, by pyarrow."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from xmtree.cli.formats.table import Chunk, TableReader


class ParquetReader(TableReader):
    """A table in binary form. From stdin it is held in memory, as its index is at the end."""

    name = "parquet"
    endings = (".parquet",)
    untyped_labels = False
    has_lines = False

    def chunks(self) -> Iterator[Chunk]:
        try:
            from pyarrow import ArrowException, parquet
        except ImportError as error:
            raise RuntimeError(
                f"{self.shown_name}: reading parquet needs pyarrow: pip install pyarrow"
            ) from error
        source: Any = io.BytesIO(sys.stdin.buffer.read()) if self.is_stdin else self.path
        row = 0
        try:
            with parquet.ParquetFile(source) as file:
                names = file.schema_arrow.names
                for batch in file.iter_batches(self.batch_size):
                    yield _chunk(names, batch, row)
                    row += batch.num_rows
                if row == 0:
                    yield _chunk(names, file.schema_arrow.empty_table(), 0)
        except ArrowException as error:
            raise ValueError(f"{self.shown_name}: {error}") from error


def _chunk(names: list[str], batch: Any, first_row: int) -> Chunk:
    from pyarrow import types

    def numbers(name: str) -> NDArray[np.float64] | None:
        column = batch.column(name)
        kind = column.type
        if not (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)):
            return None
        found: NDArray[np.float64] = column.cast("float64", safe=False).to_numpy(
            zero_copy_only=False
        )
        return found

    places = list(range(first_row, first_row + batch.num_rows))
    return Chunk(names, lambda name: batch.column(name).to_pylist(), places, numbers)
