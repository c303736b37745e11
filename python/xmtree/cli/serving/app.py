"""The application: routes, limits, and replacing the model while requests are answered."""

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from xmtree.cli.serving.pages import card_page, openapi
from xmtree.cli.serving.served import Served


@dataclass(frozen=True)
class Limits:
    """Limits of a request."""

    body_bytes: int
    seconds: float


class Service:
    """The routes around a model, which :meth:`reload` replaces.

    A request uses the model that was current when its prediction began. Predictions run on as many
    threads as there are cores; one that exceeds the time limit is answered, and its thread is
    free again when it ends.
    """

    def __init__(self, load: Callable[[], Served], limits: Limits) -> None:
        self._load, self._limits = load, limits
        self._served = load()
        self._threads = ThreadPoolExecutor(os.cpu_count(), "xmtree")
        self._reloads = asyncio.Lock()

    def app(self) -> Starlette:
        """Return the application."""
        routes = [
            Route("/", self._card, methods=["GET"]),
            Route("/health", self._health, methods=["GET"]),
            Route("/openapi.json", self._openapi, methods=["GET"]),
            Route("/predict", partial(self._answer, Served.predict), methods=["POST"]),
            Route("/predict_topk", partial(self._answer, Served.predict_topk), methods=["POST"]),
        ]
        handlers: Any = {HTTPException: _refusal, Exception: _failure}
        return Starlette(routes=routes, exception_handlers=handlers)

    async def reload(self) -> None:
        """Load the model again; after an error the current one stays."""
        async with self._reloads:
            self._served = await asyncio.get_running_loop().run_in_executor(None, self._load)

    async def _answer(self, answer: Callable[[Served, bytes], bytes], request: Request) -> Response:
        """Return the answer within the limits."""
        seconds, loop = self._limits.seconds, asyncio.get_running_loop()
        deadline = loop.time() + seconds
        try:
            async with asyncio.timeout_at(deadline):
                body = await _body(request, self._limits.body_bytes)
        except TimeoutError:
            raise HTTPException(408, f"the body did not arrive within {seconds:g} s") from None
        try:
            async with asyncio.timeout_at(deadline):
                work = loop.run_in_executor(self._threads, answer, self._served, body)
                return Response(await work, media_type="application/json")
        except TimeoutError:
            message = f"the prediction took more than {seconds:g} s; send fewer rows"
            raise HTTPException(503, message, {"Retry-After": "1"}) from None
        except (ValueError, TypeError, OverflowError) as error:
            raise HTTPException(400, str(error)) from error
        except MemoryError:
            raise HTTPException(503, "out of memory; send fewer rows") from None

    async def _card(self, request: Request) -> Response:
        card = self._served.card()
        if "text/html" in request.headers.get("accept", ""):
            return HTMLResponse(card_page(card))
        return JSONResponse(card)

    async def _health(self, request: Request) -> Response:
        return JSONResponse({"status": "ok", "loaded_at": self._served.loaded_at})

    async def _openapi(self, request: Request) -> Response:
        return JSONResponse(openapi(self._served.card()))


async def _body(request: Request, most: int) -> bytes:
    """Return the body of a request, but at most ``most`` bytes."""
    if request.headers.get("content-encoding", "identity") != "identity":
        raise HTTPException(415, "a body must not be compressed")
    announced = request.headers.get("content-length", "0")
    parts, size = [], 0
    # An announced body that is too large is not even read.
    if not announced.isdigit() or int(announced) <= most:
        try:
            async for part in request.stream():
                size += len(part)
                if size > most:
                    break
                parts.append(part)
            else:
                return b"".join(parts)
        except ClientDisconnect:
            raise HTTPException(400, "the client closed the connection") from None
    raise HTTPException(413, f"a body may have at most {most} bytes", {"Connection": "close"})


async def _refusal(request: Request, error: HTTPException) -> Response:
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


async def _failure(request: Request, error: Exception) -> Response:
    return JSONResponse({"error": "internal error; see the log of the server"}, 500)
