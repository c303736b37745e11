"""Ctrl-C while the command ``xmtree`` starts, which takes a second, prints no traceback.

It ends the process as it ends any other program, from the import of this module to :func:`end`.
"""

from __future__ import annotations

import os
import signal
import sys


def _is_command() -> bool:
    """Whether this process is ``xmtree`` or ``python -m xmtree``."""
    if os.path.basename(sys.argv[0]) == "xmtree":
        return True
    # While Python looks for the module of -m, its name is not in argv yet.
    return sys.argv[0] == "-m" and "xmtree" in sys.orig_argv[1:4]


def end() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt again."""
    if _is_command() and signal.getsignal(signal.SIGINT) is signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)


if _is_command() and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
