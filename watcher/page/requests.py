"""Requests and responses as values, from and to WSGI."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

BODY_BYTES_MAX = 65_536

WsgiApp = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Request:
    """A request; names of headers are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Response:
    """A response with its headers."""

    status: HTTPStatus
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


class RequestRefusedError(Exception):
    """A request that is answered with an error; ``str(error)`` says what to do."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


def read_request(environ: Mapping[str, Any]) -> Request:
    """The request of a WSGI environment. Raises RequestRefusedError for a body that is too long."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > BODY_BYTES_MAX:
        raise RequestRefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too long")
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_") or name == "CONTENT_TYPE"
    }
    query = parse_qs(str(environ.get("QUERY_STRING", "")))
    return Request(
        str(environ["REQUEST_METHOD"]),
        str(environ.get("PATH_INFO") or "/"),
        {name: values[0] for name, values in query.items()},
        headers,
        environ["wsgi.input"].read(length) if length else b"",
    )


def read_json(request: Request) -> dict[str, str]:
    """The members of a JSON object whose values are text. Raises RequestRefusedError."""
    try:
        value = json.loads(request.body)
    except ValueError as error:
        raise RequestRefusedError(HTTPStatus.BAD_REQUEST, f"invalid JSON: {error}") from error
    if not isinstance(value, dict) or not all(isinstance(each, str) for each in value.values()):
        raise RequestRefusedError(
            HTTPStatus.BAD_REQUEST, "invalid request: send a JSON object whose values are text"
        )
    return value


def make_text(text: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """A line of text."""
    return Response(status, f"{text}\n".encode())


def make_json(value: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """JSON."""
    return Response(status, json.dumps(value, ensure_ascii=False).encode(), "application/json")
