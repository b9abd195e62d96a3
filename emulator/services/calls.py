"""What an RPC is to the server: a request's class and a function."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from typing import NoReturn, TypeAlias

import grpc

from emulator.engine.clock import Clock
from emulator.errors import SpannerError, internal, invalid_argument, nested_too_deeply
from emulator.faults import FaultInjector, deadline_exceeded
from emulator.limits import ADMIN_REQUEST_BYTES_MAX, RECEIVED_BYTES_MAX, REQUEST_BYTES
from emulator.services.request_fields import Path, list_refused, refuse_fields
from emulator.unsupported import unsupported_method
from emulator.wire.messages import Message
from emulator.wire.status import abort

LOG = logging.getLogger("emulator")
GOOGLE = "/google."
"""How the methods of Google's services begin."""
ADMIN = "google.spanner.admin."
"""How the messages of the administrative API begin."""


class RpcContext:
    """The caller: its deadline, and whether it still waits."""

    def __init__(self, grpc_context: grpc.ServicerContext) -> None:
        self._context = grpc_context

    def check(self) -> None:
        """Raises when nobody waits for the answer any more."""
        if not self._context.is_active():
            raise SpannerError(grpc.StatusCode.CANCELLED, "The client cancelled the call.")

    def hand_over(self, later: RpcContext) -> None:
        """What was begun for this call goes on for a later one, which it asks from now on."""
        self._context = later._context

    def when_gone(self, wake: Callable[[], None]) -> None:
        """Calls a function when the call ends, or now if it has ended."""
        if not self._context.add_callback(wake):
            wake()

    def wait_until(self, micros: int, clock: Clock) -> None:
        """Waits for a time of the clock (Unix microseconds), as long as the caller waits."""
        while (ahead := micros - clock.wall()) > 0:
            self.check()
            time.sleep(min(ahead / 1_000_000, 0.1))


Unary = Callable[[Message, RpcContext], Message]
Streaming = Callable[[Message, RpcContext], Iterator[bytes]]
Handler: TypeAlias = "grpc.RpcMethodHandler[Message, Message]"


@dataclass(frozen=True, slots=True)
class Call:
    """``unary`` answers with a message (or its bytes), ``streaming`` with the bytes of many."""

    request: Message
    unary: Unary | None = None
    streaming: Streaming | None = None


class Dispatcher(grpc.GenericRpcHandler):  # type: ignore[type-arg]  # generic in stubs only
    """Finds the call of a method; every other method is UNIMPLEMENTED and named."""

    def __init__(self, calls: Mapping[str, Call], faults: FaultInjector) -> None:
        self._faults = faults
        self.handlers = {name: self._handler(name, call) for name, call in calls.items()}
        """By the path of the method."""

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler:
        """The handler of one call."""
        handler = self.handlers.get(handler_call_details.method)
        return handler or unknown_method(handler_call_details.method)

    def _handler(self, name: str, call: Call) -> Handler:
        begin = self._faults_of(name)
        deserialize = call.request.FromString
        descriptor = call.request.DESCRIPTOR
        refused = tuple(list_refused(descriptor))
        bytes_max = find_bytes_max(descriptor.full_name)
        if call.streaming is not None:
            return grpc.unary_stream_rpc_method_handler(
                self._guard_stream(call.streaming, refused, bytes_max, begin), deserialize, None
            )
        if call.unary is None:
            raise ValueError("a call needs a function")
        return grpc.unary_unary_rpc_method_handler(
            self._guard(call.unary, refused, bytes_max, begin), deserialize, to_bytes
        )

    def _faults_of(self, name: str) -> Callable[[], None]:
        """What happens to a call before it begins. The methods that set faults meet none."""
        if not name.startswith(GOOGLE):
            return self._faults.delay

        def begin() -> None:
            self._faults.delay()
            self._faults.may_refuse()

        return begin

    def _guard(
        self, function: Unary, refused: tuple[Path, ...], bytes_max: int, begin: Callable[[], None]
    ) -> Callable[[Message, grpc.ServicerContext], Message]:
        def handle(request: Message, context: grpc.ServicerContext) -> Message:
            try:
                begin()
                check_bytes(request, bytes_max)
                refuse_fields(request, refused)
                return function(request, RpcContext(context))
            except SpannerError as error:
                abort(context, error)
            except RecursionError:
                abort(context, nested_too_deeply("request"))
            except Exception as error:  # noqa: BLE001 - the server must live
                fail(context, error)

        return handle

    def _guard_stream(
        self,
        function: Streaming,
        refused: tuple[Path, ...],
        bytes_max: int,
        begin: Callable[[], None],
    ) -> Callable[[Message, grpc.ServicerContext], Iterator[bytes]]:
        def handle(request: Message, context: grpc.ServicerContext) -> Iterator[bytes]:
            try:
                begin()
                check_bytes(request, bytes_max)
                refuse_fields(request, refused)
                messages = function(request, RpcContext(context))
                if self._faults.exceeds_deadline():
                    yield from end_after_first(messages)
                yield from messages
            except SpannerError as error:
                abort(context, error)
            except RecursionError:
                abort(context, nested_too_deeply("request"))
            except Exception as error:  # noqa: BLE001 - the server must live
                fail(context, error)

        return handle


def find_bytes_max(message: str) -> int:
    """How many bytes a request of this type may have."""
    is_admin = message.startswith(ADMIN)
    return REQUEST_BYTES.get(message, ADMIN_REQUEST_BYTES_MAX if is_admin else RECEIVED_BYTES_MAX)


def check_bytes(request: Message, bytes_max: int) -> None:
    """Raises INVALID_ARGUMENT for a request that is too large."""
    if bytes_max < RECEIVED_BYTES_MAX and (size := request.ByteSize()) > bytes_max:
        raise invalid_argument(
            f"The request has {size} bytes, more than the maximum of {bytes_max} bytes of a"
            f" {request.DESCRIPTOR.name}."
        )


def end_after_first(messages: Iterator[bytes]) -> Iterator[bytes]:
    """The first part of a stream, which then takes too long."""
    with closing(messages):  # type: ignore[type-var]  # a generator
        yield from islice(messages, 1)
        raise deadline_exceeded()


def to_bytes(message: Message) -> bytes:
    """Answers that are encoded already go out as they are."""
    data: bytes = message if isinstance(message, bytes) else message.SerializeToString()
    return data


def fail(context: grpc.ServicerContext, error: Exception) -> NoReturn:
    """Answers INTERNAL for a fault of the server, which logs it and continues."""
    LOG.error("A call failed inside the embedded Spanner", exc_info=error)
    abort(context, internal())


def unknown_method(name: str) -> Handler:
    """Answers any method of any shape with UNIMPLEMENTED."""

    def handle(_requests: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        abort(context, unsupported_method(name))
        yield b""

    return grpc.stream_stream_rpc_method_handler(handle, None, None)
