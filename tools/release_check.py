"""Test the files of a release: python tools/release_check.py [--wheel PATH].

Builds the wheel and the source distribution, or takes an existing wheel. Installs the wheel in two
empty environments, with the oldest dependencies that pyproject.toml allows and with the newest.
There it runs the demo, the commands and code blocks of README and docs, scikit-learn's checks and
the cluster tests. Builds the source distribution without network, from the crates in Cargo.lock.
--tag only compares a tag with the version and the changelog.
"""

import argparse
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_MB = 5.0
#: Names of the environments, and uv's strategies for choosing dependencies.
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
TESTS = (
    "test_docs.py",
    "test_examples.py",
    "test_sklearn.py",
    "test_parameters.py",
    "test_dask.py",
    "test_dask_ldsm.py",
    "test_dask_parts.py",
    "test_dask_relay.py",
    "test_dask_without_cluster.py",
    "test_serve.py",
)
#: Tools of the tests, which may have any version that fits.
TOOLS = (
    *("pytest", "hypothesis", "pandas", "polars", "skops", "mypy", "scipy-stubs", "httpx"),
    "dask[dataframe]",
)
VERSIONS = (
    "import dask, numpy, scipy, sklearn, joblib, tqdm, xmtree; "
    "print(xmtree.__version__, xmtree.__file__, *(f'{m.__name__} {m.__version__}' "
    "for m in (numpy, scipy, sklearn, joblib, tqdm, dask)))"
)


def run(*command, **options):
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **options)


def uv(*arguments):
    run(sys.executable, "-m", "uv", *arguments, "--quiet")


def maturin(kind, folder, **options):
    """Build a wheel or a source distribution into an empty folder and return its path."""
    more = ["--release", "--locked", "--quiet"] if kind == "build" else []
    run(sys.executable, "-m", "maturin", kind, *more, "--out", folder, **options)
    (path,) = folder.iterdir()
    return path


def check_size(wheel):
    megabytes = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {megabytes:.1f} MB, limit {MOST_MB}")
    if megabytes > MOST_MB:
        raise SystemExit(f"{wheel.name} has {megabytes:.1f} MB, more than {MOST_MB}")


def check_tag(tag):
    """Refuse a tag that is not v and the version in Cargo.toml and of the newest release."""
    package = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["package"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## ([^,\n]+)", changelog, re.M)[0]
    for where, version in (("Cargo.toml", package["version"]), ("CHANGELOG.md", newest)):
        if tag != f"v{version}":
            raise SystemExit(f"the tag is {tag}, but {where} has {version}")
    print(f"the version is {tag[1:]} everywhere")


def check_installed(wheel, which, folder):
    """Install the wheel in an empty environment and run tests there."""
    environment = folder / which
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    uv("venv", environment, "--python", sys.executable)
    install = ("pip", "install", "--python", python)
    # Named explicitly, because "lowest-direct" takes the oldest versions of named packages only.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["plot"], *extras["parquet"], *extras["dask"]]
    needed += extras["serve"]
    uv(*install, "--resolution", RESOLUTIONS[which], wheel, *needed)
    # The tools must not change the versions of the installed packages.
    constraints = folder / f"{which}.txt"
    freeze = [sys.executable, "-m", "uv", "pip", "freeze", "--python", python]
    installed = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    lines = [line for line in installed.splitlines() if not line.startswith("xmtree")]
    constraints.write_text("\n".join(lines), encoding="utf-8")
    uv(*install, "--constraint", constraints, *TOOLS)
    run(python, "-c", VERSIONS)
    if which == "newest":
        run(python, "-m", "xmtree", "demo", cwd=folder)
    # Old libraries give warnings, which are no failures here.
    options = ("-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default")
    run(python, "-m", "pytest", *options, *(ROOT / "tests" / name for name in TESTS), cwd=folder)


def check_source(source, folder):
    """Build the source distribution without network, with the maturin that is installed."""
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.glob("xmtree-*/")
    offline = os.environ | {"CARGO_NET_OFFLINE": "true"}
    check_size(maturin("build", folder / "from-source", cwd=unpacked, env=offline))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="test this wheel, build none")
    parser.add_argument("--without-source", action="store_true", help="skip the source files")
    parser.add_argument("--tag", help="only check that this is the tag of the version")
    options = parser.parse_args()
    if options.tag:
        return check_tag(options.tag)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = options.wheel or maturin("build", folder / "wheel", cwd=ROOT)
        check_size(wheel)
        for which in RESOLUTIONS:
            check_installed(wheel.resolve(), which, folder)
        if not options.without_source:
            check_source(maturin("sdist", folder / "sdist", cwd=ROOT), folder)
    print("the files of the release work")


if __name__ == "__main__":
    main()
