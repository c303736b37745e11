"""Small data in every format that the command line reads, and the command line itself."""

import contextlib
import csv
import gzip
import io
import json
import lzma
import os
import subprocess
import tempfile

import numpy as np
import pyarrow
from pyarrow import parquet
from xmtree.cli import main

TOPICS = ("card", "transfer", "exchange rate", "cash")
WORDS = {
    "card": "card plastic arrive post lost",
    "transfer": "transfer send money account wrong",
    "exchange rate": "exchange rate euro dollar currency",
    "cash": "cash machine atm withdraw notes",
}
_random = np.random.default_rng(7)


def _sentence(topic):
    chosen = _random.choice(WORDS[topic].split(), 3)
    others = _random.choice(['please, "tell" me', "why is\nthe", "where Ünïcode", "my"], 2)
    return f"{others[0]} {' '.join(chosen)} {others[1]}"


LABELS = [TOPICS[at % 4] for at in range(80)]
TEXTS = [_sentence(topic) for topic in LABELS]
#: Text without line ends, for formats that have one text per line.
PLAIN = [text.replace("\n", " ") for text in TEXTS]
SETS = [[label, "odd"] if at % 8 > 3 else [label] for at, label in enumerate(LABELS)]

NAMES = ["height", "weight", "age of tree"]
NUMBERS = np.round(_random.normal(size=(90, 3)), 3).astype(np.float32)
NUMBER_LABELS = (NUMBERS[:, 0] > 0) + 2 * (NUMBERS[:, 1] > 0)


def run(*arguments):
    return main([str(argument) for argument in arguments])


def piped(*arguments, stdin):
    """Run a command on the text ``stdin``, in this process: imports of a new one take 2 s."""
    out, err = io.StringIO(), io.StringIO()
    with (
        standard_input(stdin.encode()),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = run(*arguments)
    return subprocess.CompletedProcess(arguments, code, out.getvalue(), err.getvalue())


@contextlib.contextmanager
def standard_input(content):
    """Replace the descriptor, since Rust code does not read ``sys.stdin``."""
    with tempfile.TemporaryFile() as file:
        file.write(content)
        file.seek(0)
        before = os.dup(0)
        os.dup2(file.fileno(), 0)
        try:
            yield
        finally:
            os.dup2(before, 0)
            os.close(before)


def write_csv(path, columns, delimiter=","):
    """Write columns by name, with lists joined by commas."""
    with open(path, "w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out, delimiter=delimiter)
        writer.writerow(columns)
        for row in zip(*columns.values(), strict=True):
            writer.writerow([",".join(v) if isinstance(v, list) else v for v in row])


def write_tsv(path, columns):
    write_csv(path, columns, "\t")


def write_jsonl(path, columns):
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    plain = [{k: v.item() if hasattr(v, "item") else v for k, v in row.items()} for row in rows]
    path.write_text("".join(json.dumps(row) + "\n" for row in plain), encoding="utf-8")


def write_parquet(path, columns):
    parquet.write_table(pyarrow.table(columns), path)


def write_fasttext(path, columns):
    """Write a text and its labels per line; labels of fastText have no spaces."""
    texts, labels = columns.values()
    rows = [[label] if isinstance(label, str) else label for label in labels]
    lines = [
        " ".join([f"__label__{label.replace(' ', '-')}" for label in row] + [" ".join(t.split())])
        for t, row in zip(texts, rows, strict=True)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def packed(write):
    """Return a writer that compresses the file as its extension says."""

    def write_packed(path, columns):
        plain = path.with_suffix("")
        write(plain, columns)
        content = plain.read_bytes()
        if path.suffix == ".zst":
            with pyarrow.CompressedOutputStream(str(path), "zstd") as out:
                out.write(content)
        else:
            pack = {".gz": gzip.compress, ".xz": lzma.compress}[path.suffix]
            path.write_bytes(pack(content))
        plain.unlink()

    return write_packed


#: Files and their writers. fastText has no extension of its own.
TABLES = [
    ("data.csv", write_csv),
    ("data.tsv", write_tsv),
    ("data.jsonl", write_jsonl),
    ("data.ndjson.zst", packed(write_jsonl)),
    ("data.csv.gz", packed(write_csv)),
    ("data.tsv.xz", packed(write_tsv)),
    ("data.parquet", write_parquet),
]
TEXT_FILES = [*TABLES, ("data.txt", write_fasttext), ("data.txt.gz", packed(write_fasttext))]
