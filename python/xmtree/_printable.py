"""Text from users, such as labels, made safe to show."""

from typing import Any


def printable(value: Any) -> str:
    """Return ``value`` as text with control characters as escape sequences.

    Control characters would change the state of a terminal and are not allowed in XML and SVG.
    """
    return "".join(char if char.isprintable() else repr(char)[1:-1] for char in str(value))
