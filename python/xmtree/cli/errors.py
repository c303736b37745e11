"""Errors that end a command with exit code 2."""


class WrongUsage(ValueError):
    """An invalid option or combination of options, described in one line."""
