"""Every error that the server answers: a status, a sentence, and details for the client.

Each error is a named function, so that its wording is in one place.
"""

from __future__ import annotations

import grpc


class SpannerError(Exception):
    """An answer other than OK.

    ``retry_delay_seconds`` is sent as RetryInfo (ABORTED), ``resource`` (its type and its name) as
    ResourceInfo.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        retry_delay_seconds: float | None = None,
        resource: tuple[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.retry_delay_seconds = retry_delay_seconds
        self.resource = resource


def invalid_argument(message: str) -> SpannerError:
    """The request itself is wrong, whatever the state of the database."""
    return SpannerError(grpc.StatusCode.INVALID_ARGUMENT, message)


def failed_precondition(message: str) -> SpannerError:
    """The request is refused because of the state of the database."""
    return SpannerError(grpc.StatusCode.FAILED_PRECONDITION, message)


def not_found(message: str) -> SpannerError:
    """Something that the request names does not exist."""
    return SpannerError(grpc.StatusCode.NOT_FOUND, message)


def already_exists(message: str) -> SpannerError:
    """Something that the request creates exists already."""
    return SpannerError(grpc.StatusCode.ALREADY_EXISTS, message)


def out_of_range(message: str) -> SpannerError:
    """A value does not fit (overflow, division by zero)."""
    return SpannerError(grpc.StatusCode.OUT_OF_RANGE, message)


def aborted(message: str, retry_delay_seconds: float = 0.01) -> SpannerError:
    """The transaction must be tried again as a whole."""
    return SpannerError(grpc.StatusCode.ABORTED, message, retry_delay_seconds=retry_delay_seconds)


def unimplemented(feature: str) -> SpannerError:
    """Spanner supports it, this server does not: it never gives a wrong answer instead."""
    return SpannerError(
        grpc.StatusCode.UNIMPLEMENTED, f"{feature} is not supported by the embedded Spanner."
    )


def resource_not_found(kind: str, resource_type: str, name: str) -> SpannerError:
    """An instance, database or session does not exist; clients read the ResourceInfo."""
    return SpannerError(
        grpc.StatusCode.NOT_FOUND, f"{kind} not found: {name}", resource=(resource_type, name)
    )
