"""Probes that look back at tables after their schema has changed."""

from __future__ import annotations

from collections.abc import Callable

from google.api_core.exceptions import InvalidArgument, NotFound
from google.cloud.spanner_v1 import param_types

from watcher.overview.probe.context import OLD_KEY, Observation, ProbeContext
from watcher.overview.probe.tables import ADDED, FILLED, GONE, KEY, VALUE, ProbeNames
from watcher.spanner.schema_changes import read_schema_changes
from watcher.spanner.timestamps import to_datetime


def write_history(context: ProbeContext) -> int:
    """Puts a row into each table that will change; the commit timestamp."""
    names = context.names

    def write(batch: object) -> None:
        for name in (names.changed, names.dropped):
            batch.insert(name, (KEY, VALUE, GONE), [(OLD_KEY, "old", "old")])  # type: ignore[attr-defined]
        batch.insert(names.renamed, (KEY, VALUE), [(OLD_KEY, "old")])  # type: ignore[attr-defined]

    return context.write(write)


def probe_schema(context: ProbeContext) -> Observation:
    """Asks INFORMATION_SCHEMA at a timestamp from before a column was dropped."""
    query = (
        "SELECT COLUMN_NAME FROM INFORMATION_SCHEMA.COLUMNS"
        " WHERE TABLE_NAME = @name ORDER BY ORDINAL_POSITION"
    )
    bound = context.sql.bind(query, {"name": (context.names.changed, param_types.STRING)})
    with context.database.snapshot(read_timestamp=to_datetime(context.history)) as snapshot:
        then = [row[0] for row in snapshot.execute_sql(*bound)]
    with context.database.snapshot() as snapshot:
        now = [row[0] for row in snapshot.execute_sql(*bound)]
    holds = then == [KEY, VALUE, GONE] and now == [KEY, VALUE]
    return Observation(holds, f"the columns were {', '.join(then)}, and are {', '.join(now)}")


def probe_columns(context: ProbeContext) -> Observation:
    """Reads a column that was dropped."""
    return read_old(context, context.names.changed, (VALUE, GONE), ["old", "old"])


def probe_filled(context: ProbeContext) -> Observation:
    """Reads a column with a default in a row that was there before."""
    row = context.read((ADDED,), OLD_KEY, table=context.names.new_name)
    return Observation(row == [FILLED], f"a row that was there before shows {row}")


def read_table(name: Callable[[ProbeNames], str]) -> Callable[[ProbeContext], Observation]:
    """A probe that reads a table by a name that it does not have any more."""

    def probe(context: ProbeContext) -> Observation:
        return read_old(context, name(context.names), (VALUE,), ["old"])

    return probe


def read_old(
    context: ProbeContext, table: str, columns: tuple[str, ...], expected: list[str]
) -> Observation:
    """Reads a row at a timestamp from before the changes."""
    try:
        row = context.read(columns, OLD_KEY, context.history, table)
    except (NotFound, InvalidArgument) as error:
        return Observation(False, f"Spanner refused: {error.message}")
    return Observation(row == expected, f"a read at a timestamp from before shows {row}")


def probe_listed_changes(context: ProbeContext) -> Observation:
    """Lists the statements that have changed the tables."""
    changes = read_schema_changes(context.address, context.history)
    dropped = [each for each in changes if context.names.dropped in each.statement]
    return Observation(
        bool(dropped), f"{len(changes)} statements listed, {len(dropped)} of them drop the table"
    )
