"""Print the requirements of an extra, or of building and running the package ("build").

pip installs them before the package, and independently of it.
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
build = project["build-system"]["requires"] + project["project"]["dependencies"]
extras = project["project"]["optional-dependencies"] | {"build": build}
print(*extras[sys.argv[1]], sep="\n")
