"""Whether what would be released works: python tools/release_check.py [--wheel PATH].

Builds the wheel and the source distribution (or takes a wheel that is there), and then, in an empty
environment for the oldest dependencies that pyproject.toml allows and one for the newest, installs
the wheel and runs the commands and code blocks of README and docs, scikit-learn's checks and the
tests of a cluster. The source distribution is built into a wheel without network, from the crates
that Cargo.lock names.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
MOST_MB = 5.0
#: How dependencies are chosen, by uv.
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
TESTS = (
    "test_docs.py",
    "test_examples.py",
    "test_sklearn.py",
    "test_parameters.py",
    "test_dask.py",
    "test_dask_without_cluster.py",
)


def run(*command, **options):
    print("$", *command, flush=True)
    subprocess.run([str(part) for part in command], check=True, **options)


def uv(*arguments):
    run(sys.executable, "-m", "uv", *arguments, "--quiet")


def built(folder, kind):
    """The file that maturin builds."""
    before = set(folder.iterdir()) if folder.exists() else set()
    command = ["sdist"] if kind == "sdist" else ["build", "--release", "--locked", "--quiet"]
    run(sys.executable, "-m", "maturin", *command, "--out", folder, cwd=ROOT)
    (path,) = set(folder.iterdir()) - before
    return path


def check_size(wheel):
    megabytes = wheel.stat().st_size / 1e6
    print(f"{wheel.name}: {megabytes:.1f} MB, at most {MOST_MB}")
    if megabytes > MOST_MB:
        raise SystemExit(f"{wheel.name} has {megabytes:.1f} MB, more than {MOST_MB}")


def check_installed(wheel, which, folder):
    """Installs the wheel in an empty environment and runs the pages' commands there."""
    environment = folder / which
    python = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    uv("venv", environment, "--python", sys.executable)
    # Named, so that they are direct requirements.
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["plot"], *extras["parquet"], *extras["dask"]]
    how = ("--resolution", RESOLUTIONS[which])
    uv("pip", "install", "--python", python, *how, wheel, *needed)
    # The tests' own tools, which are not released, as they come; they leave what is there alone.
    there = folder / f"{which}.txt"
    freeze = [sys.executable, "-m", "uv", "pip", "freeze", "--python", python]
    found = subprocess.run(freeze, check=True, capture_output=True, text=True).stdout
    lines = [line for line in found.splitlines() if not line.startswith("xmtree")]
    there.write_text("\n".join(lines), encoding="utf-8")
    tools = ("pytest", "hypothesis", "pandas", "polars", "skops", "mypy", "scipy-stubs")
    tools += ("dask[dataframe]",)
    uv("pip", "install", "--python", python, "--constraint", there, *tools)
    run(python, "-c", VERSIONS)
    tests = [ROOT / "tests" / name for name in TESTS]
    # Old libraries warn of one another.
    quiet = ("-q", "-p", "no:cacheprovider", "-o", "filterwarnings=default")
    run(python, "-m", "pytest", *quiet, *tests, cwd=folder)


VERSIONS = (
    "import dask, numpy, scipy, sklearn, joblib, tqdm, xmtree; "
    "print(xmtree.__version__, xmtree.__file__, *(f'{m.__name__} {m.__version__}' "
    "for m in (numpy, scipy, sklearn, joblib, tqdm, dask)))"
)


def check_source(source, folder):
    """Builds the source distribution without network; pip would have fetched maturin before."""
    with tarfile.open(source) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = (folder / name for name in os.listdir(folder) if name.startswith("xmtree-"))
    environment = os.environ | {"CARGO_NET_OFFLINE": "true"}
    out = folder / "from-source"
    command = ["build", "--release", "--locked", "--quiet", "--out", out]
    run(sys.executable, "-m", "maturin", *command, cwd=unpacked, env=environment)
    check_size(next(out.glob("*.whl")))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--wheel", type=Path, help="check this one, and build none")
    parser.add_argument("--without-source", action="store_true", help="no source distribution")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = options.wheel or built(folder / "dist", "wheel")
        check_size(wheel)
        for which in RESOLUTIONS:
            check_installed(wheel.resolve(), which, folder)
        if not options.without_source:
            source = folder / "source"
            source.mkdir()
            check_source(built(folder / "dist", "sdist"), source)
    print("released files work")


if __name__ == "__main__":
    main()
