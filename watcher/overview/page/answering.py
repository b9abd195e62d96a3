"""What every page answers by: routes, who may ask, and headers that keep other sites out."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from importlib.resources import files
from typing import Any, TypeVar

from watcher.model.errors import (
    ConsumerNotFoundError,
    NotWatchableError,
    TableNotFoundError,
    WatcherError,
)
from watcher.overview.page.access import Access
from watcher.overview.page.requests import (
    Request,
    RequestRefusedError,
    Response,
    make_json,
    read_request,
)
from watcher.spanner.failures import CALL_ERRORS

GZIP_BYTES_MIN = 1_000
"""Shorter answers are sent as they are."""
SECURITY_HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self';"
    " connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Handler = Callable[[Request], Response]
Result = TypeVar("Result")


class Answering:
    """Finds who answers a request: a WSGI application."""

    def __init__(self, access: Access, handlers: Mapping[tuple[str, str], Handler]) -> None:
        """``handlers`` by method and path."""
        self._access = access
        self._handlers = handlers

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        """As WSGI says."""
        response = compress(self._respond(environ), environ.get("HTTP_ACCEPT_ENCODING", ""))
        headers = {
            **SECURITY_HEADERS,
            "Content-Type": response.content_type,
            "Content-Length": str(len(response.body)),
            **response.headers,
        }
        start_response(f"{response.status.value} {response.status.phrase}", list(headers.items()))
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [response.body]

    def _respond(self, environ: dict[str, Any]) -> Response:
        try:
            request = read_request(environ)
            link = self._access.accept_link(request)
            if link is not None:
                return link
            request = self._access.check(request)
            return self._find_handler(request)(request)
        except RequestRefusedError as error:
            return make_json({"error": str(error)}, error.status)

    def _find_handler(self, request: Request) -> Handler:
        method = "GET" if request.method == "HEAD" else request.method
        handler = self._handlers.get((method, request.path))
        if handler is not None:
            return handler
        if any(path == request.path for _, path in self._handlers):
            raise RequestRefusedError(
                HTTPStatus.METHOD_NOT_ALLOWED, f"{request.path} does not take {request.method}"
            )
        raise RequestRefusedError(HTTPStatus.NOT_FOUND, f"there is no {request.path}")


@cache
def read_asset(name: str) -> bytes:
    """A file of the pages' packages."""
    return files("watcher.overview").joinpath(name).read_bytes()


def compress(response: Response, accepted: str) -> Response:
    """The response as gzip, where the client takes that: what many tables look like is a tenth."""
    names = {each.partition(";")[0].strip() for each in accepted.split(",")}
    if "gzip" not in names or len(response.body) < GZIP_BYTES_MIN:
        return response
    headers = {**response.headers, "Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return replace(response, body=gzip.compress(response.body, 6, mtime=0), headers=headers)


def answer_errors(work: Callable[[], Result]) -> Result:
    """What ``work`` gives. Raises RequestRefusedError for an error of Spanner's or watcher's."""
    try:
        return work()
    except (TableNotFoundError, ConsumerNotFoundError, NotWatchableError) as error:
        raise RequestRefusedError(HTTPStatus.NOT_FOUND, str(error)) from error
    except WatcherError as error:
        raise RequestRefusedError(HTTPStatus.BAD_GATEWAY, str(error)) from error
    except CALL_ERRORS as error:
        text = f"Spanner answered: {error.message or type(error).__name__}"
        raise RequestRefusedError(HTTPStatus.BAD_GATEWAY, text) from error
