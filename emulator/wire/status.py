"""Errors as gRPC statuses with the details that Spanner's clients look for."""

from __future__ import annotations

from typing import NoReturn

import grpc
from google.protobuf.any_pb2 import Any as AnyProto
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import ErrorInfo, Help, ResourceInfo, RetryInfo
from google.rpc.status_pb2 import Status

from emulator.errors import SpannerError
from emulator.wire.messages import Message
from emulator.wrong import Wrong, is_wrong

RESOURCE_PREFIX = "type.googleapis.com/"


def code_number(code: grpc.StatusCode) -> int:
    """The number of a status code."""
    value: int = code.value[0]
    return value


def error_details(error: SpannerError) -> list[Message]:
    """RetryInfo, ResourceInfo, Help and ErrorInfo, where they belong."""
    messages: list[Message] = []
    if error.retry_delay_seconds is not None:
        delay = Duration(nanos=int(error.retry_delay_seconds * 1e9))
        messages.append(RetryInfo(retry_delay=delay))
    if error.resource is not None:
        kind, name = error.resource
        messages.append(
            ResourceInfo(
                resource_type=RESOURCE_PREFIX + kind,
                resource_name=name,
                description=f"{kind.rpartition('.')[2]} does not exist.",
            )
        )
    if error.link is not None:
        description, url = error.link
        messages.append(Help(links=[Help.Link(description=description, url=url)]))
    if error.sqlstate is not None:
        metadata = {"pg_sqlerrcode": error.sqlstate}
        messages.append(ErrorInfo(domain="spanner.googleapis.com", metadata=metadata))
    return messages


def to_status(error: SpannerError) -> Message:
    """google.rpc.Status, as operations and batch responses contain it."""
    status = Status(code=code_number(error.code), message=error.message)
    for detail in error_details(error):
        packed = AnyProto()
        packed.Pack(detail)
        status.details.append(packed)
    return status


UNNAMED = {grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.NOT_FOUND}
"""The errors that do not say what is missing, where that is made wrong."""


def abort(context: grpc.ServicerContext, error: SpannerError) -> NoReturn:
    """Ends a call with an error. Clients read the details in one of two places: both are filled."""
    messages = error_details(error)
    unnamed = error.code in UNNAMED and is_wrong(Wrong.MISSING_OBJECTS_NAMED)
    message = "The request is refused." if unnamed else error.message
    if messages:
        status = to_status(error)
        status.message = message
        trailers = [("grpc-status-details-bin", status.SerializeToString())]
        trailers += [
            (f"{detail.DESCRIPTOR.full_name.lower()}-bin", detail.SerializeToString())
            for detail in messages
        ]
        context.set_trailing_metadata(tuple(trailers))
    context.abort(error.code, message)
