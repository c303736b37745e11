"""The command ``xmtree``: one module per subcommand."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Sequence
from typing import NoReturn

from xmtree._core import __version__
from xmtree._printable import printable
from xmtree.cli import demo, evaluate, fit, inspect, predict
from xmtree.cli.errors import WrongUsage

COMMANDS = (demo, fit, predict, evaluate, inspect)

OK, FAILED, WRONG_USAGE = 0, 1, 2


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def error(self, message: str) -> NoReturn:
        raise WrongUsage(f"{self.prog}: {message}; see {self.prog} --help")


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; the exit code: 0 done, 1 the work failed, 2 wrong usage."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    debug = "--debug" in arguments
    try:
        options = parser().parse_args(arguments)
        code: int = options.run(options)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader of our output has closed it, as `head` does.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except KeyboardInterrupt:
        return fail("interrupted", FAILED, debug)
    except WrongUsage as error:
        return fail(str(error), WRONG_USAGE, debug)
    except MemoryError as error:
        stream = "" if "--passes" in arguments else "stream with --passes 1, or "
        return fail(str(error) or f"out of memory; {stream}use n_bits", FAILED, debug)
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        return fail(f"{name}{error.strerror or error}", FAILED, debug)
    except (ValueError, TypeError, RuntimeError, NotImplementedError) as error:
        return fail(str(error) or type(error).__name__, FAILED, debug)


def fail(message: str, code: int, debug: bool) -> int:
    """Prints the error as one line to stderr and returns the exit code."""
    if debug:
        traceback.print_exc()
    line = printable(" ".join(message.split()))
    prefix = "" if line.startswith("xmtree") else "xmtree: "
    print(prefix + line, file=sys.stderr)
    return code


def parser() -> Parser:
    """The whole command line."""
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
        command.add_argument(
            "--debug", action="store_true", help="show the traceback where something fails"
        )
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return top
