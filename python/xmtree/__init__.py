"""Logarithmic-time classifiers for very many labels."""
