"""Every error that the server answers: a status, a sentence, and details for the client.

Each error is a named function, so that its wording is in one place.
"""

from __future__ import annotations

import grpc

from emulator.limits import ERROR_BYTES_MAX, RESOURCE_BYTES_MAX

PLAIN = frozenset(range(0x20, 0x7F)) - {ord("%")}
"""The bytes that gRPC sends as they are; every other one takes three."""
MIDDLE = " [...] "


def shorten(text: str, bytes_max: int) -> str:
    """A text that takes at most so many bytes in the headers of an answer.

    What is too long loses its middle: the beginning says what is wrong, the end often where.
    """
    data = text[: 2 * bytes_max].encode(errors="replace") if text else b""
    if len(text) <= bytes_max and encoded_size(data) <= bytes_max:
        return data.decode()
    half = (bytes_max - len(MIDDLE)) // 2
    return cut_to(text, half) + MIDDLE + cut_to(text[::-1], half)[::-1]


def cut_to(text: str, bytes_max: int) -> str:
    """The beginning of a text that takes at most so many bytes in headers."""
    kept, size = [], 0
    for character in text[:bytes_max]:
        data = character.encode(errors="replace")
        size += encoded_size(data)
        if size > bytes_max:
            break
        kept.append(data.decode())
    return "".join(kept)


def encoded_size(data: bytes) -> int:
    """How many bytes a message takes as gRPC encodes it."""
    return sum(1 if byte in PLAIN else 3 for byte in data)


class SpannerError(Exception):
    """An answer other than OK.

    ``retry_delay_seconds`` is sent as RetryInfo (ABORTED), ``resource`` (its type and its name) as
    ResourceInfo, ``link`` (a description and an address) as Help, ``sqlstate`` (PostgreSQL's code)
    in ErrorInfo. Long messages are shortened: clients refuse an answer whose headers are too long.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        retry_delay_seconds: float | None = None,
        resource: tuple[str, str] | None = None,
        link: tuple[str, str] | None = None,
    ) -> None:
        self.message = shorten(message, ERROR_BYTES_MAX)
        super().__init__(self.message)
        self.code = code
        self.retry_delay_seconds = retry_delay_seconds
        self.resource = resource
        self.link = link
        self.sqlstate: str | None = None


def invalid_argument(message: str) -> SpannerError:
    """The request itself is wrong, whatever the state of the database."""
    return SpannerError(grpc.StatusCode.INVALID_ARGUMENT, message)


def failed_precondition(message: str) -> SpannerError:
    """The request is refused because of the state of the database."""
    return SpannerError(grpc.StatusCode.FAILED_PRECONDITION, message)


def permission_denied(message: str) -> SpannerError:
    """The role of the session may not do this."""
    return SpannerError(grpc.StatusCode.PERMISSION_DENIED, message)


def not_found(message: str) -> SpannerError:
    """Something that the request names does not exist."""
    return SpannerError(grpc.StatusCode.NOT_FOUND, message)


def already_exists(message: str) -> SpannerError:
    """Something that the request creates exists already."""
    return SpannerError(grpc.StatusCode.ALREADY_EXISTS, message)


def out_of_range(message: str) -> SpannerError:
    """A value does not fit (overflow, division by zero)."""
    return SpannerError(grpc.StatusCode.OUT_OF_RANGE, message)


def resource_exhausted(message: str) -> SpannerError:
    """There is no room for more."""
    return SpannerError(grpc.StatusCode.RESOURCE_EXHAUSTED, message)


def aborted(message: str, retry_delay_seconds: float = 0.01) -> SpannerError:
    """The transaction must be tried again as a whole."""
    return SpannerError(grpc.StatusCode.ABORTED, message, retry_delay_seconds=retry_delay_seconds)


def unimplemented(feature: str) -> SpannerError:
    """Spanner supports it, this server does not: it never gives a wrong answer instead."""
    return SpannerError(
        grpc.StatusCode.UNIMPLEMENTED, f"{feature} is not supported by the embedded Spanner."
    )


def unsupported(sentence: str) -> SpannerError:
    """Spanner does not have it either, and says so in these words."""
    return SpannerError(grpc.StatusCode.UNIMPLEMENTED, sentence)


def resource_not_found(kind: str, resource_type: str, name: str) -> SpannerError:
    """An instance, database or session does not exist; clients read the ResourceInfo."""
    name = shorten(name, RESOURCE_BYTES_MAX)
    return SpannerError(
        grpc.StatusCode.NOT_FOUND, f"{kind} not found: {name}", resource=(resource_type, name)
    )


def nested_too_deeply(what: str = "statement") -> SpannerError:
    """A request nests deeper than it can be worked on; Spanner has such limits, too."""
    return invalid_argument(
        f"The {what} is nested too deeply: split it, or write lists as arrays of a parameter."
    )


def internal() -> SpannerError:
    """A fault of this server: its log has the details, which mean nothing to a client."""
    return SpannerError(
        grpc.StatusCode.INTERNAL,
        "The embedded Spanner could not answer this request because of a fault of its own. Its log "
        "says where: please report it, with the request.",
    )
