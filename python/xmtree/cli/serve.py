"""Answer requests over HTTP with a model.

POST /predict and /predict_topk take {"texts": [...]} or {"rows": [...]}, where a
row is a list of numbers or an object of names (or column numbers) and values.
GET / is the model card, /health and /openapi.json are as usual. SIGHUP loads the
file again without losing a request; SIGTERM and Ctrl-C stop after the current
requests. Needs pip install 'xmtree[serve]'.

examples:
  xmtree serve model.xmtree --port 8000
  curl -d '{"texts": ["where is my card"], "k": 3}' localhost:8000/predict_topk
"""

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Coroutine, Iterator
from typing import Any

from xmtree._printable import printable
from xmtree.cli.options import add_unknown_features, at_least
from xmtree.cli.trained import Model

#: Connections that are open at a time; further ones are refused by 503.
_MOST_CONNECTIONS = 256


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``xmtree serve``."""
    parser.add_argument("model", metavar="MODEL", help="a file written by xmtree fit or save()")
    parser.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen on; 127.0.0.1 (default) answers this machine only, 0.0.0.0 all. "
        "There is no authentication",
    )
    parser.add_argument("--port", type=_port, default=8000, help="default 8000; 0 is any free one")
    parser.add_argument(
        "--jobs", type=int, default=1, metavar="N", help="threads of a prediction (default 1)"
    )
    limits = [
        ("--max-body", 16, "MB", "largest body of a request in megabytes"),
        ("--max-rows", 10_000, "N", "most rows of a request"),
        ("--timeout", 30, "S", "seconds for a request, and for the current ones at a stop"),
    ]
    for name, default, unit, what in limits:
        about = f"{what} (default {default:,})"
        parser.add_argument(name, type=at_least(1), default=default, metavar=unit, help=about)
    add_unknown_features(parser, "features of a request")


def _port(text: str) -> int:
    if not 0 <= int(text) < 65536:
        raise argparse.ArgumentTypeError(f"must be from 0 to 65535, got {text}")
    return int(text)


def run(options: argparse.Namespace) -> int:
    """Serve until a signal."""
    try:
        import uvicorn

        from xmtree.cli.serving.app import Limits, Service
        from xmtree.cli.serving.served import Served
    except ImportError as error:
        raise RuntimeError(
            "xmtree serve needs starlette and uvicorn: pip install 'xmtree[serve]'"
        ) from error
    ignores = options.unknown_features == "ignore"

    def load() -> Served:
        model = Model.load(options.model, ignores)
        model.learner.set_params(n_jobs=options.jobs)
        return Served(model, options.max_rows)

    service = Service(load, Limits(options.max_body * 1_000_000, options.timeout))

    class Server(uvicorn.Server):
        """A server that ends with exit code 0 after a signal, and reloads the model on SIGHUP."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            ends = signal.SIGINT, signal.SIGTERM
            wanted: dict[Any, Any] = dict.fromkeys(ends, self.handle_exit)
            if hasattr(signal, "SIGHUP"):
                loop = asyncio.get_running_loop()
                wanted[signal.SIGHUP] = lambda *_: asyncio.run_coroutine_threadsafe(
                    _reload(service.reload(), options.model), loop
                )
            before = {number: signal.signal(number, handle) for number, handle in wanted.items()}
            try:
                yield
            finally:
                for number, handle in before.items():
                    signal.signal(number, handle)

    listener = _listener(options.host, options.port)
    host, port = listener.getsockname()[:2]
    name = f"[{host}]" if ":" in host else host
    print(f"{options.model}: serving on http://{name}:{port}", file=sys.stderr, flush=True)
    config = uvicorn.Config(
        service.app(),
        log_level="warning",
        access_log=False,
        server_header=False,
        limit_concurrency=_MOST_CONNECTIONS,
        timeout_graceful_shutdown=options.timeout,
    )
    Server(config).run([listener])
    return 0


async def _reload(work: Coroutine[Any, Any, None], path: str) -> None:
    """Replace the model, and report it in one line."""
    try:
        await work
    except Exception as error:  # whatever is wrong, the current model is still good
        what = printable(" ".join(str(error).split()))
        print(f"{path}: not loaded, the model of before stays: {what}", file=sys.stderr, flush=True)
    else:
        print(f"{path}: loaded again", file=sys.stderr, flush=True)


def _listener(host: str, port: int) -> socket.socket:
    """Return a listening socket."""
    listener = None
    try:
        # With the protocol given, asyncio sends short answers at once (TCP_NODELAY).
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
        family, kind, protocol, _, address = found[0]
        listener = socket.socket(family, kind, protocol)
        if os.name == "posix":  # elsewhere the option lets two servers share a port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
        return listener
    except OSError as error:
        if listener is not None:
            listener.close()
        raise OSError(error.errno, error.strerror or str(error), f"{host}:{port}") from None
