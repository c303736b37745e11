"""Figures are drawn without windows, in examples too."""

import os

os.environ["MPLBACKEND"] = "Agg"
