"""The embedded server as a gRPC channel: a call runs in the thread of its caller.

The client and the services of the server are the real ones, and so are the bytes between them; only
the network is left out. That makes a call ten times faster, and whoever waits in the server waits
in a thread that the scheduler knows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import grpc
from google.api_core.exceptions import from_grpc_error

from emulator.engine.clock import Clock
from emulator.faults import FaultInjector
from emulator.services.calls import Dispatcher
from emulator.services.database_admin import DatabaseAdmin
from emulator.services.instance_admin import InstanceAdmin
from emulator.services.operations import Operations
from emulator.services.registry import Registry
from emulator.services.sessions import Sessions
from emulator.services.spanner import SpannerApi

ADDRESS = "in-process:1"
Metadata = tuple[tuple[str, str | bytes], ...]


class EmbeddedServer:
    """The services without a port. ``wall`` gives the time in microseconds since 1970."""

    def __init__(self, wall: Callable[[], int]) -> None:
        faults = FaultInjector(None)
        self.registry = Registry(None)
        self.registry.clock = Clock(wall)
        calls = {
            **SpannerApi(Sessions(self.registry, faults), faults).calls(),
            **DatabaseAdmin(self.registry, faults).calls(),
            **InstanceAdmin(self.registry).calls(),
            **Operations(self.registry).calls(),
        }
        self.dispatcher = Dispatcher(calls, faults)

    def close(self) -> None:
        """Closes every database."""
        self.registry.close()


class CallError(grpc.RpcError, grpc.Call):
    """An error as a client of the network would see it."""

    def __init__(self, code: grpc.StatusCode, details: str, trailers: Metadata) -> None:
        super().__init__(details)
        self._code = code
        self._details = details
        self._trailers = trailers

    def code(self) -> grpc.StatusCode:
        return self._code

    def details(self) -> str:
        return self._details

    def initial_metadata(self) -> Metadata:
        return ()

    def trailing_metadata(self) -> Any:
        return self._trailers

    def is_active(self) -> bool:
        return False

    def time_remaining(self) -> float:
        return 0.0

    def cancel(self) -> None:
        return None

    def add_callback(self, callback: Callable[[], None]) -> bool:
        return False

    def result(self, timeout: float | None = None) -> Any:
        """As the future of a call that failed."""
        raise self

    def exception(self, timeout: float | None = None) -> CallError:
        """As the future of a call that failed."""
        return self


class HandlerEndedError(Exception):
    """Ends a handler, as gRPC's own does."""


class CallContext:
    """What a handler knows of its caller."""

    def __init__(self) -> None:
        self.code: grpc.StatusCode | None = None
        self.details = ""
        self.trailers: Metadata = ()
        self.active = True
        self._callbacks: list[Callable[[], None]] = []

    def is_active(self) -> bool:
        return self.active

    def add_callback(self, callback: Callable[[], None]) -> bool:
        self._callbacks.append(callback)
        return self.active

    def set_trailing_metadata(self, trailers: Metadata) -> None:
        self.trailers = trailers

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        self.code, self.details = code, details
        raise HandlerEndedError

    def end(self) -> None:
        """The call is over: whoever waits for it in the server is woken."""
        self.active = False
        for callback in self._callbacks:
            callback()

    def error(self) -> CallError:
        """How the call ended."""
        return CallError(self.code or grpc.StatusCode.UNKNOWN, self.details, self.trailers)


class Answer(grpc.Call, grpc.Future):  # type: ignore[type-arg]
    """The outcome of a call that is over."""

    def __init__(self, value: Any, error: CallError | None = None) -> None:
        self._value = value
        self._error = error

    def result(self, timeout: float | None = None) -> Any:
        if self._error is not None:
            raise self._error
        return self._value

    def exception(self, timeout: float | None = None) -> CallError | None:
        return self._error

    def traceback(self, timeout: float | None = None) -> None:
        return None

    def cancelled(self) -> bool:
        return False

    def running(self) -> bool:
        return False

    def done(self) -> bool:
        return True

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        callback(self)

    def code(self) -> grpc.StatusCode:
        return self._error.code() if self._error is not None else grpc.StatusCode.OK

    def details(self) -> str:
        return self._error.details() if self._error is not None else ""

    def initial_metadata(self) -> Metadata:
        return ()

    def trailing_metadata(self) -> Any:
        return self._error.trailing_metadata() if self._error is not None else ()

    def is_active(self) -> bool:
        return False

    def time_remaining(self) -> float:
        return 0.0

    def cancel(self) -> bool:
        return False

    def add_callback(self, callback: Callable[[], None]) -> bool:
        return False


class Stream(Answer):
    """A streaming call. All of it was computed when it began, as far as the server buffers ahead;
    what does not end (``lazily``) is computed as it is read."""

    def __init__(
        self, messages: Iterator[bytes], read: Callable[[bytes], Any], context: CallContext
    ):
        super().__init__(None)
        self._messages = messages
        self._read = read
        self._context = context

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        try:
            return self._read(next(self._messages))
        except StopIteration:
            self._context.end()
            raise
        except HandlerEndedError:
            self._error = self._context.error()
            self._context.end()
            # What the client's own wrapper of a stream makes of it. The wrapper also waits for the
            # first message within the call, which would be one more place to be interrupted at.
            raise from_grpc_error(self._error) from self._error

    def cancel(self) -> bool:
        self._context.end()
        return True


class Method:
    """A method of a service, for the client to call."""

    def __init__(
        self, handler: Any, serialize: Callable[[Any], bytes], deserialize: Callable[[bytes], Any]
    ) -> None:
        self._handler = handler
        self._serialize = serialize
        self._deserialize = deserialize

    def __call__(self, request: Any, timeout: float | None = None, **_options: Any) -> Any:
        return self.with_call(request, timeout)[0]

    def with_call(self, request: Any, timeout: float | None = None, **_options: Any) -> Any:
        """The answer, and the call it came with."""
        handler, context = self._handler, CallContext()
        try:
            received = handler.request_deserializer(self._serialize(request))
            answer = handler.response_serializer(handler.unary_unary(received, context))
        except HandlerEndedError:
            raise context.error() from None
        finally:
            context.end()
        value = self._deserialize(answer)
        return value, Answer(value)


class StreamingMethod(Method):
    """A method that answers with a stream."""

    def __call__(self, request: Any, timeout: float | None = None, **_options: Any) -> Any:
        handler, context = self._handler, CallContext()
        received = handler.request_deserializer(self._serialize(request))
        messages = handler.unary_stream(received, context)
        return Stream(
            messages if is_endless(received) else compute_ahead(messages),
            self._deserialize,
            context,
        )


def compute_ahead(messages: Iterator[bytes]) -> Iterator[bytes]:
    """The messages of a stream, all computed now; the error that ended it comes after them."""
    computed: list[bytes] = []
    failure: HandlerEndedError | None = None
    try:
        computed.extend(messages)
    except HandlerEndedError as error:
        failure = error
    return replay(computed, failure)


def replay(computed: list[bytes], failure: HandlerEndedError | None) -> Iterator[bytes]:
    """What was computed, one after another."""
    yield from computed
    if failure is not None:
        raise failure


def is_endless(request: Any) -> bool:
    """Whether a query of a change stream goes on until its client is gone."""
    text = getattr(request, "sql", "")
    return "READ_" in text and "end_timestamp" in text and "end" not in request.params.fields


class InProcessChannel(grpc.Channel):
    """A channel to an embedded server in this process."""

    def __init__(self, server: EmbeddedServer) -> None:
        self._dispatcher = server.dispatcher

    def _handler(self, method: str) -> Any:
        details = type("Details", (), {"method": method, "invocation_metadata": ()})()
        return self._dispatcher.service(details)

    def unary_unary(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        *_more: Any,
    ) -> Any:
        return Method(self._handler(method), request_serializer, response_deserializer)

    def unary_stream(
        self,
        method: str,
        request_serializer: Any = None,
        response_deserializer: Any = None,
        *_more: Any,
    ) -> Any:
        return StreamingMethod(self._handler(method), request_serializer, response_deserializer)

    def stream_unary(self, *_arguments: Any, **_options: Any) -> Any:
        raise NotImplementedError

    def stream_stream(self, *_arguments: Any, **_options: Any) -> Any:
        raise NotImplementedError

    def subscribe(self, callback: Any, try_to_connect: bool | None = False) -> None:
        return None

    def unsubscribe(self, callback: Any) -> None:
        return None

    def close(self) -> None:
        return None

    def __enter__(self) -> InProcessChannel:
        return self

    def __exit__(self, *_error: object) -> None:
        return None


@contextmanager
def serve_in_process(wall: Callable[[], int]) -> Iterator[str]:
    """A server for every client of this process; the address to give them. ``wall`` as above."""
    server, real = EmbeddedServer(wall), grpc.insecure_channel
    grpc.insecure_channel = lambda *_target, **_options: InProcessChannel(server)
    try:
        yield ADDRESS
    finally:
        grpc.insecure_channel = real
        server.close()
