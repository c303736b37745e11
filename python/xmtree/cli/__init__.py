"""The command ``xmtree``: one module per subcommand."""

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from xmtree._core import __version__
from xmtree._printable import printable
from xmtree.cli import demo, evaluate, explain, fit, inspect, predict, serve
from xmtree.cli.errors import WrongUsage

COMMANDS = (demo, fit, predict, evaluate, explain, inspect, serve)

FAILED, WRONG_USAGE = 1, 2

#: Errors that are shown as one line; any other is a bug and shows its traceback.
_EXPECTED = (WrongUsage, MemoryError, OSError, ValueError, TypeError, RuntimeError)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(f"{self.prog}: {message}; see {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 the work failed, 2 wrong usage."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        options = parser().parse_args(arguments)
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # A reader such as `head` has closed our output.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except (*_EXPECTED, KeyboardInterrupt) as error:
        if "--debug" in arguments:
            traceback.print_exc()
        line = printable(" ".join(_message(error, arguments).split()))
        print(line if line.startswith("xmtree") else f"xmtree: {line}", file=sys.stderr)
        return WRONG_USAGE if isinstance(error, WrongUsage) else FAILED


def _message(error: BaseException, arguments: list[str]) -> str:
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    if isinstance(error, MemoryError) and not str(error):
        stream = "" if "--passes" in arguments else "stream with --passes 1, or "
        return f"out of memory; {stream}use n_bits"
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        return f"{name}{error.strerror or error}"
    return str(error) or type(error).__name__


def parser() -> Parser:
    """Return the parser of the whole command line."""
    top = Parser(
        prog="xmtree",
        description="Logarithmic-time classifiers for very many labels.",
        epilog="Exit codes: 0 done, 1 the work failed, 2 wrong usage.",
    )
    top.add_argument("--version", action="version", version=f"xmtree {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in COMMANDS:
        name = module.__name__.rpartition(".")[2]
        summary, _, rest = (module.__doc__ or "").partition("\n\n")
        command = commands.add_parser(
            name,
            help=summary.rstrip(".").lower()[:1] + summary.rstrip(".")[1:],
            description=summary,
            epilog=rest.strip() or None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        module.add_arguments(command)
        command.set_defaults(run=module.run, command=name)
    return top
