"""Text of users, labels above all, as it may be shown."""

from typing import Any


def printable(value: Any) -> str:
    """``value`` as text whose control characters are written as Python does.

    They would steer a terminal, and XML, so SVG, must not hold them.
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
