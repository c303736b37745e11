"""The progress bar of training and prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tqdm.auto import tqdm

#: Called with (units done, units in all or 0, progressive error or None,
#: progressive recall of the candidates or None).
Report = Callable[[int, int, float | None, float | None], None]


@contextmanager
def progress(verbose: int, what: str) -> Iterator[Report | None]:
    """A bar on stderr with the rate, the progressive error and, where there are
    candidates, their recall.

    Yields None, so that nothing is called, if ``verbose`` is 0 or stderr is
    no terminal.
    """
    if not verbose:
        yield None
        return
    with tqdm(desc=what, unit=" ex", unit_scale=True, disable=None, dynamic_ncols=True) as bar:

        def report(done: int, total: int, loss: float | None, recall: float | None) -> None:
            bar.total = total or None
            shown = []
            if loss is not None:
                shown.append(f"error {loss:.4f}")
            if recall is not None:
                shown.append(f"recall {100 * recall:.1f} %")
            bar.set_postfix_str(", ".join(shown), refresh=False)
            bar.update(done - bar.n)

        yield None if bar.disable else report
