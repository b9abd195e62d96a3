"""What a schedule does not need to do again: nothing here decides who sees what, only how soon."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

from google.cloud.spanner_v1 import _opentelemetry_tracing as tracing
from opentelemetry import trace

import ddl.apply
import emulator.engine.snapshots
from emulator.engine.state import SchemaState
from interleavings.virtual_clock import originals


@contextmanager
def untraced(*_arguments: object, **_options: object) -> Iterator[Any]:
    """In place of the client's spans, which nobody collects."""
    yield trace.INVALID_SPAN


def nothing(*_arguments: object, **_options: object) -> None:
    """The product's own tables are there: the world has made them."""


@lru_cache(maxsize=64)
def parsed_once(statements: tuple[str, ...], *more: Any) -> Any:
    """A schema is a value: the same statements give the same one."""
    return PARSE(list(statements), *more)


PARSE = ddl.apply.parse_schema


def remembering() -> Callable[..., None]:
    """What was compiled for a schema holds for every database with the same one."""
    begin, known = SchemaState.__init__, list[SchemaState]()

    def initialise(state: SchemaState, *arguments: Any, **options: Any) -> None:
        begin(state, *arguments, **options)
        for other in known:
            if other.placement == state.placement and other.schema == state.schema:
                state._statements = other._statements
                state._plans = other._plans
                state._columns_read = other._columns_read
                return
        known.append(state)

    return initialise


@contextmanager
def faster() -> Iterator[None]:
    """While it lasts: no spans, no look for tables that are there, each schema parsed once."""
    replaced: list[tuple[Any, str, Any]] = [
        (SchemaState, "__init__", remembering()),
        (ddl.apply, "parse_schema", lambda texts, *more: parsed_once(tuple(texts), *more)),
        # Snapshots are kept for a while of the machine's time; virtual time leaps.
        (emulator.engine.snapshots, "time", SimpleNamespace(monotonic=originals.monotonic)),
    ]
    for name, module in list(sys.modules.items()):
        if name.startswith("watcher.") and hasattr(module, "create_own_tables"):
            replaced.append((module, "create_own_tables", nothing))
        if name.startswith("google.cloud.spanner_v1.") and module is not tracing:
            if hasattr(module, "trace_call"):
                replaced.append((module, "trace_call", untraced))
            if hasattr(module, "add_span_event"):
                replaced.append((module, "add_span_event", nothing))
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in replaced]
    for owner, name, value in replaced:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)
