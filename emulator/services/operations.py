"""google.longrunning.Operations, and how the other services run something in the background."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Executor

from google.longrunning import operations_pb2
from google.protobuf.empty_pb2 import Empty

from emulator.errors import SpannerError, internal, nested_too_deeply
from emulator.services.calls import Call, RpcContext
from emulator.services.registry import Registry
from emulator.wire.messages import Message
from emulator.wire.status import to_status

SERVICE = "/google.longrunning.Operations/"
WAIT_SECONDS_MAX = 60.0
ANSWER_SECONDS = 0.1
"""Clients look again after a second or so; most operations take milliseconds."""
LOG = logging.getLogger("emulator")


class Operations:
    """Get, list, cancel, delete, wait."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def calls(self) -> Mapping[str, Call]:
        """The methods of the service."""
        p = operations_pb2
        return {
            SERVICE + "GetOperation": Call(p.GetOperationRequest, self.get),
            SERVICE + "ListOperations": Call(p.ListOperationsRequest, self.list),
            SERVICE + "CancelOperation": Call(p.CancelOperationRequest, self.cancel),
            SERVICE + "DeleteOperation": Call(p.DeleteOperationRequest, self.delete),
            SERVICE + "WaitOperation": Call(p.WaitOperationRequest, self.wait),
        }

    def get(self, request: Message, context: RpcContext) -> Message:
        """An operation as it is now."""
        return self._registry.operations.get(request.name)

    def list(self, request: Message, context: RpcContext) -> Message:
        """The operations under a name."""
        prefix = request.name.rstrip("/")
        prefix = prefix if prefix.endswith("/operations") else prefix + "/operations"
        return operations_pb2.ListOperationsResponse(
            operations=self._registry.operations.below(prefix + "/")
        )

    def cancel(self, request: Message, context: RpcContext) -> Message:
        """Accepted for every operation; a statement that runs is finished, as in Spanner."""
        self._registry.operations.get(request.name)
        return Empty()

    def delete(self, request: Message, context: RpcContext) -> Message:
        """Forgets an operation."""
        self._registry.operations.delete(request.name)
        return Empty()

    def wait(self, request: Message, context: RpcContext) -> Message:
        """Returns when the operation is done or the time is over."""
        requested = request.timeout.seconds + request.timeout.nanos / 1e9
        seconds = (
            min(requested, WAIT_SECONDS_MAX) if request.HasField("timeout") else WAIT_SECONDS_MAX
        )
        return self._registry.operations.wait(request.name, seconds)


def run_in_background(
    registry: Registry, queue: Executor, name: str, metadata: Message, work: Callable[[], Message]
) -> Message:
    """Starts an operation whose result ``work`` gives; answers when it is done, or soon."""
    registry.operations.start(name, metadata)
    queue.submit(perform, registry, name, work)
    return registry.operations.wait(name, ANSWER_SECONDS)


def perform(registry: Registry, name: str, work: Callable[[], Message]) -> None:
    """Runs the work of an operation and records how it ended."""
    try:
        response = work()
    except SpannerError as error:
        status = to_status(error)
        registry.operations.change(name, lambda operation: set_error(operation, status))
    except RecursionError:
        status = to_status(nested_too_deeply())
        registry.operations.change(name, lambda operation: set_error(operation, status))
    except Exception:
        LOG.exception("An operation failed inside the embedded Spanner")
        status = to_status(internal())
        registry.operations.change(name, lambda operation: set_error(operation, status))
    else:
        registry.operations.change(name, lambda operation: set_response(operation, response))


def set_error(operation: Message, status: Message) -> None:
    """The operation ended with an error."""
    operation.error.CopyFrom(status)
    operation.done = True


def set_response(operation: Message, response: Message) -> None:
    """The operation ended with a result."""
    operation.response.Pack(response)
    operation.done = True
