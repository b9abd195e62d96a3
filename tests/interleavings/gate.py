"""The gate: a gRPC client interceptor before which every RPC of every actor waits for its turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc
import proto

from interleavings.scheduler import current_scheduler, current_unit

BEGINS = "(begins)"
"""At the end of the label of an RPC that begins a read-write transaction."""

QUIET = frozenset({"CreateSession", "BatchCreateSessions", "DeleteSession", "GetOperation"})
"""Methods that neither change nor read what another actor could see."""

Observer = Callable[[str, Any, Any], None]
"""Called after each RPC that was not aborted, with its method, its request, and the response of one
that gives one and succeeded."""


class Gate(grpc.UnaryUnaryClientInterceptor, grpc.UnaryStreamClientInterceptor):  # type: ignore[type-arg]
    """Asks the scheduler before an RPC is sent. ``quiet_texts``, in capitals: queries that contain
    one of these do not wait, because nothing in the scenario changes their results."""

    def __init__(self) -> None:
        self.quiet_texts: tuple[str, ...] = ()
        self.observer: Observer | None = None

    def intercept_unary_unary(self, continuation: Any, details: Any, request: Any) -> Any:
        """As gRPC's."""
        method, raw = method_of(details), message_of(request)
        crashes = self._pass(method, raw)
        outcome = continuation(details, request)
        code = outcome.code()
        if code is not grpc.StatusCode.ABORTED:
            done = code is grpc.StatusCode.OK and method == "Commit"
            self._notify_observer(method, raw, message_of(outcome.result()) if done else None)
        if crashes:
            self._crash()
        return outcome

    def _notify_observer(self, method: str, request: Any, response: Any) -> None:
        if self.observer is not None and current_unit() is not None:
            self.observer(method, request, response)

    def intercept_unary_stream(self, continuation: Any, details: Any, request: Any) -> Any:
        """As gRPC's."""
        method, raw = method_of(details), message_of(request)
        crashes = self._pass(method, raw)
        outcome = continuation(details, request)
        self._notify_observer(method, raw, None)
        if crashes:
            self._crash()
        return outcome

    def _pass(self, method: str, request: Any) -> bool:
        unit = current_unit()
        if unit is None:
            return False
        if unit.killed is not None:
            raise unit.killed
        if unit.silent or method in QUIET:
            return False
        text = getattr(request, "sql", "")
        if any(part in text.upper() for part in self.quiet_texts):
            return False
        return current_scheduler().gate(label_of(method, request, text))

    def _crash(self) -> None:
        unit = current_unit()
        assert unit is not None
        current_scheduler().crash(unit)


def message_of(request: Any) -> Any:
    """The message below the client's wrapper, whose fields are slow to read."""
    return type(request).pb(request) if isinstance(request, proto.Message) else request


def method_of(details: Any) -> str:
    """The last part of a method's name."""
    name = details.method
    text: str = name.decode() if isinstance(name, bytes) else name
    return text.rpartition("/")[2]


def label_of(method: str, request: Any, text: str) -> str:
    """A short text for an RPC, for people who read a schedule."""
    label = label_without_transaction(method, request, text)
    return f"{label} {BEGINS}" if begins_transaction(request) else label


def begins_transaction(request: Any) -> bool:
    """Whether a request begins a read-write transaction: its age is above those of all before."""
    options: Any = getattr(request, "options", None)
    selector: Any = getattr(request, "transaction", None)
    if hasattr(selector, "begin") and selector.HasField("begin"):
        options = selector.begin
    return hasattr(options, "read_write") and bool(options.HasField("read_write"))


def label_without_transaction(method: str, request: Any, text: str) -> str:
    """The method, and what it reads or writes."""
    if text:
        return " ".join([method, *text.split()])
    table = getattr(request, "table", "")
    if table:
        return f"{method} {table}"
    return " ".join([method, *tables_of_commit(request)]) if method == "Commit" else method


def tables_of_commit(request: Any) -> list[str]:
    """The tables of a commit's mutations."""
    kinds = ((mutation, mutation.WhichOneof("operation")) for mutation in request.mutations)
    return sorted({getattr(mutation, kind).table for mutation, kind in kinds})
