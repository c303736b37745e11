"""Slow, obvious implementations that the tests compare the package with."""
