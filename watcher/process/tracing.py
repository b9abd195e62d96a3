"""Spans of OpenTelemetry around what a watcher does.

They cost nothing, and nothing is missing, where the API is not installed or not loaded: only a
process that has loaded it can have an exporter. Spans of google-cloud-spanner are inside these.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from types import ModuleType
from typing import Any, TypeVar

from google.api_core.exceptions import GoogleAPICallError

from watcher.model.errors import WatcherError

API = "opentelemetry.trace"
TRACER = "spanner-watcher"
OWN = "spanner_watcher."
"""The prefix of attributes for which there is no semantic convention."""

Item = TypeVar("Item")
Value = str | int | float | bool | Sequence[str]


class Kind(StrEnum):
    """OpenTelemetry's kinds of spans, by their names there."""

    INTERNAL = "INTERNAL"
    CLIENT = "CLIENT"
    PRODUCER = "PRODUCER"


class Span:
    """A span of OpenTelemetry's; without one, nothing happens."""

    def __init__(self, trace: ModuleType | None = None, span: Any = None) -> None:
        self._trace = trace
        self._span = span

    def set(self, name: str, value: Value) -> None:
        """Sets an attribute."""
        if self._span is not None:
            self._span.set_attribute(name, value)

    def record(self, error: BaseException) -> None:
        """The span has failed. Messages of a callback's own errors are left out: they may quote
        rows."""
        if self._trace is None or not isinstance(error, Exception):
            return
        name = type(error).__name__
        known = isinstance(error, WatcherError | GoogleAPICallError)
        attributes = {"exception.type": name} | ({"exception.message": str(error)} if known else {})
        self._span.set_attribute("error.type", name)
        self._span.add_event("exception", attributes)
        status = self._trace.StatusCode.ERROR
        self._span.set_status(status, str(error) if known else name)

    def end(self) -> None:
        """The work is done."""
        if self._span is not None:
            self._span.end()

    @contextmanager
    def is_current(self) -> Iterator[None]:
        """What begins in the block, in this thread, is inside the span."""
        if self._trace is None:
            yield
            return
        with self._trace.use_span(
            self._span, record_exception=False, set_status_on_exception=False
        ):
            yield


NO_SPAN = Span()


def start_span(
    name: str,
    attributes: Mapping[str, Value] | None = None,
    kind: Kind = Kind.INTERNAL,
    started_at: int | None = None,
) -> Span:
    """A span inside the current one, which the caller ends; ``started_at`` is in nanoseconds since
    1970."""
    trace = sys.modules.get(API)
    if trace is None:
        return NO_SPAN
    span = trace.get_tracer(TRACER).start_span(
        name, kind=trace.SpanKind[kind], attributes=attributes, start_time=started_at
    )
    return Span(trace, span)


@contextmanager
def span(
    name: str,
    attributes: Mapping[str, Value] | None = None,
    kind: Kind = Kind.INTERNAL,
    started_at: int | None = None,
) -> Iterator[Span]:
    """As ``start_span``, around a block; an error that leaves the block is recorded."""
    current = start_span(name, attributes, kind, started_at)
    try:
        with current.is_current():
            yield current
    except BaseException as error:
        current.record(error)
        raise
    finally:
        current.end()


def find_identifiers() -> dict[str, str]:
    """The current trace and span, as OpenTelemetry names them in logs; nothing without one."""
    trace = sys.modules.get(API)
    context = None if trace is None else trace.get_current_span().get_span_context()
    if trace is None or context is None or not context.is_valid:
        return {}
    return {
        "trace_id": trace.format_trace_id(context.trace_id),
        "span_id": trace.format_span_id(context.span_id),
    }


def describe_database(path: str, table: str) -> dict[str, Value]:
    """The attributes of what is asked of Spanner, as OpenTelemetry names them."""
    return {"db.system.name": "gcp.spanner", "db.namespace": path, "db.collection.name": table}


def follow(current: Span, items: Iterator[Item]) -> Iterator[Item]:
    """The same items; the span, which has begun, ends with them. It is not the current one, because
    others do their work between two items."""
    try:
        yield from items
    except Exception as error:
        current.record(error)
        raise
    finally:
        current.end()
