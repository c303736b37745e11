"""Progress of training and prediction on stderr, as a bar or as lines."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tqdm.auto import tqdm

#: Callback of the core, called with (units done, total units or 0, progressive error or None,
#: progressive recall of the candidates or None), by the command line also with the error of
#: recent examples.
Report = Callable[..., None]

#: Styles of progress; see :func:`shown_as`.
STYLES = ("auto", "bar", "lines", "none")

#: Seconds between lines.
_BETWEEN_LINES = 5.0
#: Seconds of work after which lines begin with the style "auto".
_LONG = 10.0

_style: ContextVar[str | None] = ContextVar("progress_style", default=None)


@contextmanager
def shown_as(style: str) -> Iterator[None]:
    """Show progress inside the context as a "bar", as "lines" or not at all ("none").

    "auto" is a bar on a terminal, else lines if the work takes long. Outside of any context,
    progress is a bar on a terminal, else nothing.
    """
    token = _style.set(style)
    try:
        yield
    finally:
        _style.reset(token)


@contextmanager
def progress(verbose: int, what: str) -> Iterator[Report | None]:
    """Show the rate, the progressive error and the recall of candidates on stderr.

    Yields a callback, or None if ``verbose`` is 0 or nothing is shown.
    """
    style = _style.get()
    if style == "auto":
        style = "bar" if sys.stderr.isatty() else "lines if long"
    if not verbose or style == "none":
        yield None
    elif style in ("lines", "lines if long"):
        lines = _Lines(what, 0.0 if style == "lines" else _LONG)
        yield lines.report
        if style == "lines":
            lines.write()
    else:
        disable = None if style is None else False
        with tqdm(desc=what, unit=" ex", unit_scale=True, disable=disable, dynamic_ncols=True) as b:

            def report(done: int, total: int, *measures: float | None) -> None:
                b.total = total or None
                b.set_postfix_str(", ".join(_measures(*measures)), refresh=False)
                b.update(done - b.n)

            yield None if b.disable else report


class _Lines:
    """Progress as a line every few seconds."""

    def __init__(self, what: str, quiet: float) -> None:
        self._what = what
        self._began = self._last = time.monotonic()
        self._quiet = quiet
        self._line = ""

    def report(self, done: int, total: int, *measures: float | None) -> None:
        now = time.monotonic()
        parts = [f"{done} of {total} examples" if total else f"{done} examples"]
        parts.append(f"{done / max(now - self._began, 1e-3):.0f}/s")
        self._line = ", ".join(parts + _measures(*measures))
        if now - self._last >= _BETWEEN_LINES and now - self._began >= self._quiet:
            self._last = now
            self.write()

    def write(self) -> None:
        """Write the newest figures, unless they have been written."""
        if self._line:
            print(f"{self._what}: {self._line}", file=sys.stderr, flush=True)
            self._line = ""


def _measures(loss: float | None, recall: float | None, recent: float | None = None) -> list[str]:
    shown = []
    if loss is not None:
        more = "" if recent is None else f" (recent {recent:.4f})"
        shown.append(f"error {loss:.4f}{more}")
    if recall is not None:
        shown.append(f"recall {100 * recall:.1f} %")
    return shown
