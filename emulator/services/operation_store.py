"""The long-running operations that the server keeps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import grpc
from google.longrunning.operations_pb2 import Operation

from emulator.errors import SpannerError, already_exists, not_found
from emulator.services.backup_store import decode_message, encode_message
from emulator.wire.messages import Message
from emulator.wire.status import to_status


class OperationStore:
    """Thread-safe, under the lock of the registry. Every change is saved before it is answered."""

    def __init__(self, lock: threading.RLock, save: Callable[[], None]) -> None:
        self._lock, self._save = lock, save
        self._finished = threading.Condition(lock)
        self._operations: dict[str, Message] = {}

    def start(self, name: str, metadata: Message) -> Message:
        """A new operation that runs. Raises ALREADY_EXISTS when its id was used before."""
        operation = Operation(name=name)
        operation.metadata.Pack(metadata)
        with self._lock:
            if name in self._operations:
                raise already_exists(f"Operation already exists: {name}")
            self._operations[name] = operation
            self._save()
        return self.get(name)

    def get(self, name: str) -> Message:
        """A copy of an operation as it is now."""
        with self._lock:
            operation = self._operations.get(name)
            if operation is None:
                raise not_found(f"Operation not found: {name}")
            copy = Operation()
            copy.CopyFrom(operation)
            return copy

    def below(
        self, prefix: str, accept: Callable[[Message], bool] = lambda _: True
    ) -> list[Message]:
        """Copies of the operations whose names begin like this and that are accepted, by name."""
        with self._lock:
            names = [
                name
                for name, operation in self._operations.items()
                if name.startswith(prefix) and accept(operation)
            ]
            return [self.get(name) for name in sorted(names)]

    def change(self, name: str, change: Callable[[Message], None]) -> None:
        """Changes an operation, if it was not deleted meanwhile; wakes those who wait for it."""
        with self._lock:
            operation = self._operations.get(name)
            if operation is not None:
                change(operation)
                self._save()
                self._finished.notify_all()

    def delete(self, name: str) -> None:
        """Forgets an operation."""
        with self._lock:
            self.get(name)
            del self._operations[name]
            self._save()

    def wait(self, name: str, timeout_seconds: float) -> Message:
        """An operation once it is done, or as it is after the time."""
        with self._finished:
            self._finished.wait_for(
                lambda: name not in self._operations or self._operations[name].done, timeout_seconds
            )
            return self.get(name)

    def describe(self) -> list[str]:
        """What the file says of them; the caller has the lock."""
        return [encode_message(operation) for operation in self._operations.values()]

    def load(self, texts: Iterable[str]) -> None:
        """Those of a file; what was running has ended with its process."""
        for text in texts:
            operation = decode_message(Operation, text)
            if not operation.done:
                interrupt(operation)
            self._operations[operation.name] = operation


def interrupt(operation: Message) -> None:
    """An operation that was running when the process ended."""
    operation.done = True
    error = SpannerError(
        grpc.StatusCode.ABORTED,
        "The server restarted while the operation ran: GetDatabaseDdl shows which of its "
        "statements were executed.",
    )
    operation.error.CopyFrom(to_status(error))
