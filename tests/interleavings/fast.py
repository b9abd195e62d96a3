"""Work that a schedule need not repeat. It changes how fast a schedule runs, not what it sees."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import ddl.migration.apply
import ddl.rules.evolve
import emulator.engine.ddl_statements
import emulator.engine.schema_changes
import emulator.engine.snapshots
from emulator.engine.state import SchemaState
from interleavings.known_schemas import KNOWN, KnownSchemas
from interleavings.virtual_clock import originals
from spanner_schema.model.schema import Dialect
from spanner_schema.model.steps import Step


def skip_creation(*_arguments: object, **_options: object) -> None:
    """In place of ``create_own_tables``: the world has created them."""


@lru_cache(maxsize=64)
def parse_schema_once(statements: tuple[str, ...], *more: Any) -> Any:
    """The schema of these statements; a schema is a value, so that it can be shared."""
    return PARSE_SCHEMA(list(statements), *more)


PARSE_SCHEMA = ddl.rules.evolve.parse_schema


PARSE_STATEMENT = emulator.engine.ddl_statements.parse_step


@lru_cache(maxsize=256)
def parse_statement_once(
    text: str, dialect: Dialect, type_names: tuple[str, ...], *, strict: bool = False
) -> Step:
    """The step of a DDL statement, which is a value, too."""
    return PARSE_STATEMENT(text, dialect, type_names, strict=strict)


BEGIN_STATE = SchemaState.__init__
KNOWN_STATES: list[SchemaState] = []
"""Those of all explorers of this process."""


def begin_state(state: SchemaState, *arguments: Any, **options: Any) -> None:
    """What was read of a schema holds for every database with the same one, as what the server has
    compiled for it."""
    BEGIN_STATE(state, *arguments, **options)
    of_state = vars(state)
    for other in KNOWN_STATES:
        if other.placement == state.placement and other.schema == state.schema:
            for name in ("_columns_read", KNOWN):
                of_state[name] = vars(other)[name]
            return
    of_state[KNOWN] = []
    KNOWN_STATES.append(state)


@contextmanager
def skip_repeated_work(schemas: KnownSchemas) -> Iterator[None]:
    """While it lasts, the product's own tables are not looked for, each schema is parsed and read
    once, and no garbage is collected within a schedule."""
    replaced: list[tuple[Any, str, Any]] = [
        (SchemaState, "__init__", begin_state),
        (emulator.engine.schema_changes, "parse_step", parse_statement_once),
        (
            ddl.migration.apply,
            "parse_schema",
            lambda texts, *more: parse_schema_once(tuple(texts), *more),
        ),
        # Snapshots are kept for a while of the machine's time; virtual time leaps.
        (emulator.engine.snapshots, "time", SimpleNamespace(monotonic=originals.monotonic)),
    ]
    for name, module in list(sys.modules.items()):
        if name.startswith("watcher.") and hasattr(module, "create_own_tables"):
            replaced.append((module, "create_own_tables", skip_creation))
        if name.startswith("watcher.") and name != "watcher.tables.schema_reader":
            for reads in ("read_epoch", "read_digest"):
                if hasattr(module, reads):
                    replaced.append((module, reads, getattr(schemas, reads)))
    before = [(owner, name, getattr(owner, name)) for owner, name, _ in replaced]
    for owner, name, value in replaced:
        setattr(owner, name, value)
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()
        for owner, name, value in before:
            setattr(owner, name, value)
