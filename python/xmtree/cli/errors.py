"""Errors that end a command with exit code 2."""


class WrongUsage(Exception):
    """An option or a combination of options that cannot be followed, in one line."""
