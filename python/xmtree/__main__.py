"""``python -m xmtree`` is ``xmtree``."""

import sys

from xmtree.cli import main

if __name__ == "__main__":
    sys.exit(main())
