"""Every code block of the README and of docs/ runs and prints what the page says.

The blocks of a page share variables and a folder. ``python`` blocks are executed, and lines of
``console`` blocks that begin with ``$ xmtree``. An ``output`` block holds the output of the block
before it.
"""

import re
import shlex
from pathlib import Path

import pytest
from xmtree.cli import main

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", flags=re.M | re.S)
RUN = ("python", "console")
WITH_CODE = [
    p for p in PAGES if any(kind in RUN for kind, _ in BLOCK.findall(p.read_text("utf-8")))
]


def run(kind: str, code: str, page: str, names: dict) -> None:
    if kind == "python":
        exec(compile(code, page, "exec"), names)
    else:
        lines = re.findall(r"^\$ xmtree (.*)$", code, flags=re.M)
        assert lines, f"no command in {code!r}"
        for line in lines:
            assert main(shlex.split(line)) == 0, line


@pytest.mark.parametrize("page", WITH_CODE, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_code_runs_as_written(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    printed = ""
    for kind, code in BLOCK.findall(page.read_text("utf-8")):
        if kind in RUN:
            run(kind, code, page.name, names)
            printed = capsys.readouterr().out
        elif kind == "output":
            assert printed.split() == code.split()
