"""xmtree beside other programs, on the same rows, split and threads: ``make peers``."""
