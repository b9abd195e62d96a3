"""The privileges that a role needs to watch tables, and no others.

Source: Spanner's documentation, "Fine-grained access control privileges".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from spanner_schema.model.errors import PlanError
from spanner_schema.model.names import find_named_table, split_name
from spanner_schema.model.purposes import Purpose
from spanner_schema.model.schema import Grant, Schema, Table
from spanner_schema.syntax.grants import (
    CHANGE_STREAM,
    DELETE,
    EXECUTE,
    FUNCTION,
    INFO_READER,
    INSERT,
    ROLE,
    SCHEMA,
    SELECT,
    TABLE,
    UPDATE,
    USAGE,
    render_grants,
)
from spanner_schema.syntax.placements import list_read_functions
from spanner_schema.syntax.render import SPELLINGS
from spanner_schema.watched.tracked import Tracking, find_own_trackings, find_trackings

ROLE_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,127}")
READING = {Purpose.WATCH, Purpose.REPLICATE, Purpose.VERIFY}
WRITING_OWN = {Purpose.WATCH, Purpose.REPLICATE, Purpose.CLEAR, Purpose.CONTROL}
STREAMING = {Purpose.WATCH, Purpose.REPLICATE, Purpose.STATUS}
"""The purposes that read the tables, write the product's own ones, and read change streams."""


@dataclass(frozen=True, slots=True)
class GrantRequest:
    """A role, what it is for, and what it works with: tables, change streams, and the product's own
    tables in this database."""

    role: str
    purposes: frozenset[Purpose]
    tables: tuple[str, ...]
    streams: tuple[str, ...]
    own_tables: tuple[str, ...]


def list_statements(schema: Schema, request: GrantRequest) -> list[str]:
    """CREATE ROLE and GRANT, as far as they are missing. Raises PlanError for a table or a change
    stream that is not there, and for what no role can be called."""
    if not ROLE_NAME.fullmatch(request.role):
        raise PlanError(
            f"'{request.role}' is not the name of a role: use a letter, then letters, digits and"
            " underscores, 128 at most"
        )
    known = {item.name.casefold() for item in schema.verbatim if item.kind == ROLE}
    missing = [grant for grant in list_grants(schema, request) if grant not in schema.grants]
    quote = SPELLINGS[schema.dialect]
    role = quote.quote_name(request.role)
    created = [] if request.role.casefold() in known else [f"CREATE ROLE {role}"]
    grants = render_grants(missing, quote.quote_name, quote.quote_column, schema.dialect)
    return created + grants


def list_grants(schema: Schema, request: GrantRequest) -> list[Grant]:
    """The privileges of the role. Raises as ``list_statements``."""
    tables = [find_named_table(schema, name) for name in request.tables]
    grants = [Grant(USAGE, (), ROLE, INFO_READER, request.role)]
    owners = {split_name(name)[0] for name in (*request.tables, *request.own_tables)} - {""}
    grants += [Grant(USAGE, (), SCHEMA, owner, request.role) for owner in sorted(owners)]
    for table in tables:
        grants += grant_table(schema, table, request)
    for name in request.streams if request.purposes & STREAMING else ():
        grants += grant_stream(schema, name, request.role)
    for name in request.own_tables:
        grants += [Grant(each, (), TABLE, name, request.role) for each in use_own(request)]
    return grants


def use_own(request: GrantRequest) -> Sequence[str]:
    """What is done with the product's own tables."""
    if request.purposes & WRITING_OWN:
        return (SELECT, INSERT, UPDATE, DELETE)
    return (SELECT,) if Purpose.STATUS in request.purposes else ()


def grant_table(schema: Schema, table: Table, request: GrantRequest) -> Iterator[Grant]:
    """What is done with a watched table."""
    trackings = (*find_trackings(schema, table), *find_own_trackings(schema, table))
    if request.purposes & READING:
        yield Grant(SELECT, (), TABLE, table.name, request.role)
    elif request.purposes & {Purpose.CLEAR, Purpose.STATUS} and trackings:
        yield Grant(SELECT, key_columns(table, trackings), TABLE, table.name, request.role)
    if Purpose.CLEAR in request.purposes:
        cleared = tuple(dict.fromkeys(cleared_column(each) for each in trackings))
        if not cleared:
            raise PlanError(
                f"table {table.name} has no index that is cleared: make it watchable first, by"
                " 'spanner-watcher ddl apply'"
            )
        yield Grant(UPDATE, cleared, TABLE, table.name, request.role)


def cleared_column(tracking: Tracking) -> str:
    """The column that takes a row out of the index."""
    return tracking.shard.processed or tracking.timestamp.name


def key_columns(table: Table, trackings: Iterable[Tracking]) -> tuple[str, ...]:
    """The columns by which rows are found in an index and cleared."""
    names = [part.column for part in table.primary_key]
    for tracking in trackings:
        names += [tracking.shard.column.name, tracking.timestamp.name, cleared_column(tracking)]
    return tuple(dict.fromkeys(names))


def grant_stream(schema: Schema, name: str, role: str) -> Iterator[Grant]:
    """A change stream, and the functions that read it. Raises PlanError."""
    stream = schema.change_stream(name)
    if stream is None:
        raise PlanError(f"there is no change stream {name} in the database")
    yield Grant(SELECT, (), CHANGE_STREAM, stream.name, role)
    for function in list_read_functions(schema):
        if function.stream is stream:
            yield Grant(EXECUTE, (), FUNCTION, function.write(schema.dialect), role)
