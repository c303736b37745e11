"""Print the requirements of an extra of the package, or those to "build" and run it.

Lets pip install them before, and independently of, the package itself.
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
build = project["build-system"]["requires"] + project["project"]["dependencies"]
extras = project["project"]["optional-dependencies"] | {"build": build}
print(*extras[sys.argv[1]], sep="\n")
