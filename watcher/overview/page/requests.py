"""Requests and responses as values, from and to WSGI."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs

from watcher.process.http_server import BODY_BYTES_MAX

QUERY_FIELDS_MAX = 16
SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Request:
    """A request; names of headers are in lower case."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes = b""
    protocol: str = "HTTP/1.1"


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
    """The request of a WSGI environment. Raises RequestRefusedError for one that is too long."""
    length = int(environ.get("CONTENT_LENGTH") or 0)
    if length > BODY_BYTES_MAX:
        raise RequestRefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "the request is too long")
    headers = {
        name.removeprefix("HTTP_").replace("_", "-").lower(): str(value)
        for name, value in environ.items()
        if name.startswith("HTTP_") or name == "CONTENT_TYPE"
    }
    try:
        query = parse_qs(str(environ.get("QUERY_STRING", "")), max_num_fields=QUERY_FIELDS_MAX)
    except ValueError as error:
        raise RequestRefusedError(
            HTTPStatus.BAD_REQUEST, "the query has too many fields"
        ) from error
    return Request(
        str(environ["REQUEST_METHOD"]),
        str(environ.get("PATH_INFO") or "/"),
        {name: values[0] for name, values in query.items()},
        headers,
        environ["wsgi.input"].read(length) if length else b"",
        str(environ.get("SERVER_PROTOCOL", "")),
    )


def read_json(request: Request) -> dict[str, str]:
    """The members of a JSON object whose values are text. Raises RequestRefusedError."""
    try:
        value = json.loads(request.body)
    except (ValueError, RecursionError) as error:
        raise RequestRefusedError(HTTPStatus.BAD_REQUEST, f"invalid JSON: {error}") from error
    if not isinstance(value, dict) or not all(map(is_text, value.values())):
        raise RequestRefusedError(
            HTTPStatus.BAD_REQUEST, "invalid request: send a JSON object whose values are text"
        )
    return value


def is_text(value: object) -> bool:
    """Whether a value of JSON is text that can be sent on: half of a surrogate pair cannot."""
    return isinstance(value, str) and not SURROGATE.search(value)


def make_text(text: str, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """A line of text."""
    return Response(status, f"{text}\n".encode())


def make_json(value: object, status: HTTPStatus = HTTPStatus.OK) -> Response:
    """JSON."""
    return Response(status, json.dumps(value, ensure_ascii=False).encode(), "application/json")
