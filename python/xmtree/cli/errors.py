"""Errors that end a command with exit code 2."""


class WrongUsage(Exception):
    """An invalid option or combination of options, described in one line."""
