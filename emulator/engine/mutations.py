"""Mutations and the rows of INSERT statements, written inside a transaction of SQLite."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import apsw

from emulator.engine.failed_rows import refuse_row, write_row
from emulator.engine.keys import key_clauses, key_parts
from emulator.engine.refusals import (
    commit_timestamp_not_allowed,
    future_timestamp,
    generated_key_changed,
    generated_key_missing,
    key_column_missing,
    row_exists,
    row_not_found,
    unknown_table,
    wrong_row_size,
)
from emulator.engine.write_plans import PENDING_TEXT, Moment, Row, WritePlan
from emulator.sql.compile import compile_expression
from emulator.storage.sqlite import current_table
from emulator.values.requests import (
    COMMIT_TIMESTAMP,
    KeyDelete,
    KeyRange,
    KeySet,
    MutationKind,
    Stored,
)
from emulator.values.sqlite_text import quote_name
from emulator.wrong import Wrong, is_wrong
from spanner_schema.model.schema import KeyPart, Schema, Table


def resolve(plan: WritePlan, rows: Sequence[Row], moment: Moment) -> Sequence[Row]:
    """Whole rows with the commit timestamp in place. Raises for rows that must not be written."""
    width = len(plan.columns) - plan.padding
    for row in rows:
        if len(row) != width:
            raise wrong_row_size(width)
    if plan.padding:
        rows = [row + (None,) * plan.padding for row in rows]
    if not plan.timestamps:
        return rows
    return [resolve_row(plan, row, moment) for row in rows]


def resolve_row(plan: WritePlan, row: Row, moment: Moment) -> Row:
    """One row of ``resolve``."""
    changed: list[Stored] | None = None
    for position in plan.timestamps:
        value, column = row[position], plan.columns[position]
        if value in (COMMIT_TIMESTAMP, PENDING_TEXT):
            if column.name not in plan.stampable:
                raise commit_timestamp_not_allowed(column.name)
            changed = list(row) if changed is None else changed
            changed[position] = moment.text
        elif column.allow_commit_timestamp and isinstance(value, str) and value > moment.now:
            raise future_timestamp(value)
    return row if changed is None else tuple(changed)


def key_of(plan: WritePlan, row: Row) -> Row:
    """The primary key of a row; a part that is not given is NULL."""
    return tuple(row[position] if position >= 0 else None for position in plan.keys)


def write_rows(
    connection: apsw.Connection,
    plan: WritePlan,
    kind: MutationKind,
    rows: Sequence[Row],
    moment: Moment,
) -> None:
    """Writes rows; raises and leaves the rest to the caller's rollback."""
    entry = LEFT_TIMESTAMPS.get(kind)
    if entry is not None and is_wrong(entry):
        with left_timestamps(connection, plan, rows):
            write_in_order(connection, plan, kind, rows, moment)
    else:
        write_in_order(connection, plan, kind, rows, moment)
    if kind in LEFT_TIMESTAMPS and is_wrong(Wrong.ON_UPDATE_KEY_ONLY):
        stamp_named(connection, plan, rows, moment)


def stamp_named(
    connection: apsw.Connection, plan: WritePlan, rows: Sequence[Row], moment: Moment
) -> None:
    """Wrong on purpose: rows of which only the key was written get the timestamps of ON UPDATE."""
    names = [column.name for column in plan.table.columns if column.on_update]
    if not names or len(plan.columns) > len(plan.keys):
        return
    where = plan.find.partition(" WHERE ")[2]
    sets = ", ".join(f"{quote_name(name)} = ?{len(plan.keys) + 1}" for name in names)
    for row in rows:
        text = f"UPDATE {current_table(plan.table.name)} SET {sets} WHERE {where}"
        connection.execute(text, (*key_of(plan, row), moment.text))


@contextmanager
def left_timestamps(
    connection: apsw.Connection, plan: WritePlan, rows: Sequence[Row]
) -> Iterator[None]:
    """Wrong on purpose: rows that are there keep the timestamps that ON UPDATE would set, and new
    ones get none."""
    written = {column.name for column in plan.columns}
    names = [c.name for c in plan.table.columns if c.on_update and c.name not in written]
    target, width = current_table(plan.table.name), len(plan.keys)
    where = plan.find.partition(" WHERE ")[2]
    read = f"SELECT {', '.join(map(quote_name, names)) or 'NULL'} FROM {target} WHERE {where}"
    keys = [key_of(plan, row) for row in rows] if names else []
    kept = [(key, connection.execute(read, key).fetchone()) for key in keys]
    yield
    sets = ", ".join(f"{quote_name(name)} = ?{width + n}" for n, name in enumerate(names, 1))
    absent = (None,) * len(names) if is_wrong(Wrong.DEFAULT_ON_INSERT) else None
    for key, before in kept:
        values = absent if before is None else before
        if values is not None:
            connection.execute(f"UPDATE {target} SET {sets} WHERE {where}", (*key, *values))


def write_in_order(
    connection: apsw.Connection,
    plan: WritePlan,
    kind: MutationKind,
    rows: Sequence[Row],
    moment: Moment,
) -> None:
    """``write_rows`` as Spanner does it."""
    one_step = kind is MutationKind.INSERT_OR_UPDATE and plan.upsert is not None
    if one_step and plan.key_may_be_null:
        # SQLite's ON CONFLICT takes NULLs for different; Spanner does not.
        one_step = not any(None in key_of(plan, row) for row in rows)
    if one_step and plan.upsert is not None:
        tail = plan.upsert.tail(moment)
        write_many(connection, plan, plan.upsert.sql, (row + tail for row in rows), new=False)
    else:
        PATHS[kind](connection, plan, rows, moment)


def insert_rows(
    connection: apsw.Connection, plan: WritePlan, rows: Sequence[Row], moment: Moment
) -> None:
    """Every row must be new."""
    tail = plan.insert.tail(moment)

    def values() -> Iterator[Row]:
        for row in rows:
            if plan.key_may_be_null:
                refuse_known_null_key(connection, plan, key_of(plan, row))
            yield row + tail

    write_many(connection, plan, plan.insert.sql, values(), new=True)


def write_many(
    connection: apsw.Connection, plan: WritePlan, sql: str, rows: Iterable[Row], *, new: bool
) -> None:
    """Runs a statement for each row, which must be ``new`` or may be there."""
    current: Row = ()

    def values() -> Iterator[Row]:
        nonlocal current
        for row in rows:
            current = row
            yield row

    try:
        connection.executemany(sql, values())
    except apsw.ConstraintError as error:
        key = key_of(plan, current)
        if new and "UNIQUE" in str(error) and plan.identified and exists(connection, plan, key):
            raise row_exists(plan.table, key) from error
        refuse_row(connection, plan, error, sql, current)
        raise


def refuse_known_null_key(connection: apsw.Connection, plan: WritePlan, key: Row) -> None:
    """A key with a NULL must be new, too: SQLite takes NULLs for different."""
    if None in key and plan.identified and exists(connection, plan, key):
        raise row_exists(plan.table, key)


def update_rows(
    connection: apsw.Connection, plan: WritePlan, rows: Sequence[Row], moment: Moment
) -> None:
    """Every row must be there."""
    plan, rows = compute_keys(connection, plan, rows)
    if plan.padding:
        raise key_column_missing(plan.table.name, plan.columns[-1].name)
    refuse_unknown_generated_key(plan, rows)
    refuse_partial_key(plan)
    for row in rows:
        if not update_row(connection, plan, row, moment):
            raise row_not_found(plan.table, key_of(plan, row))


def upsert_rows(
    connection: apsw.Connection, plan: WritePlan, rows: Sequence[Row], moment: Moment
) -> None:
    """Looks for each row first: for keys with NULL, and where constraints judge the whole row."""
    plan, rows = compute_keys(connection, plan, rows)
    for row in rows:
        if not (plan.identified and update_row(connection, plan, row, moment)):
            write_row(connection, plan, plan.insert.sql, row + plan.insert.tail(moment))


def replace_rows(
    connection: apsw.Connection, plan: WritePlan, rows: Sequence[Row], moment: Moment
) -> None:
    """Delete, then insert."""
    plan, rows = compute_keys(connection, plan, rows)
    refuse_partial_key(plan)
    for row in rows:
        connection.execute(plan.delete, key_of(plan, row))
        write_row(connection, plan, plan.insert.sql, row + plan.insert.tail(moment))


def compute_keys(
    connection: apsw.Connection, plan: WritePlan, rows: Sequence[Row]
) -> tuple[WritePlan, Sequence[Row]]:
    """Rows with the generated parts of their keys; a given one must equal the computed one."""
    rule = plan.key_rule
    if rule is None:
        return plan, rows
    keyed_rows: list[Row] = [
        (*row, *connection.execute(rule.sql, row).fetchall()[0]) if rule.keyed is not None else row
        for row in rows
    ]
    if rule.keyed is not None:
        return rule.keyed, keyed_rows
    for row in rows:
        computed = connection.execute(rule.sql, row).fetchall()[0]
        if computed != tuple(row[position] for position in rule.positions):
            raise generated_key_changed(plan.table.name, key_of(plan, row))
    return plan, rows


PATHS = {
    MutationKind.INSERT: insert_rows,
    MutationKind.UPDATE: update_rows,
    MutationKind.INSERT_OR_UPDATE: upsert_rows,
    MutationKind.REPLACE: replace_rows,
}


LEFT_TIMESTAMPS = {
    MutationKind.INSERT: Wrong.DEFAULT_ON_INSERT,
    MutationKind.UPDATE: Wrong.ON_UPDATE_MUTATION,
    MutationKind.INSERT_OR_UPDATE: Wrong.ON_UPDATE_UPSERT,
    MutationKind.REPLACE: Wrong.ON_UPDATE_REPLACE,
}


def update_row(connection: apsw.Connection, plan: WritePlan, row: Row, moment: Moment) -> bool:
    """Whether the row was there."""
    values = row + plan.update.tail(moment)
    return write_row(connection, plan, plan.update.sql, values) is not None


def exists(connection: apsw.Connection, plan: WritePlan, key: Row) -> bool:
    """Whether there is a row with this key."""
    return connection.execute(plan.find, key).fetchone() is not None


def refuse_unknown_generated_key(plan: WritePlan, rows: Sequence[Row]) -> None:
    """An update gives the generated parts of a key, or the columns from which they follow."""
    given = {column.name for column in plan.columns}
    keys = {part.column.casefold() for part in plan.table.primary_key}
    for column in plan.table.columns:
        if column.generated is None or column.name in given or column.name.casefold() not in keys:
            continue
        for source in compile_expression(column.generated, plan.table, plan.schema).columns:
            if source not in given and source.casefold() not in keys:
                row = dict(zip([each.name for each in plan.columns], rows[0], strict=True))
                raise generated_key_missing(plan.table, column.name, source, row)


def refuse_partial_key(plan: WritePlan) -> None:
    """An update or a replace must give the whole key."""
    if not plan.identified:
        missing = next(
            part.column
            for part, position in zip(plan.table.primary_key, plan.keys, strict=True)
            if position < 0
        )
        raise key_column_missing(plan.table.name, missing)


def delete_rows(
    connection: apsw.Connection, schema: Schema, delete: KeyDelete, moment: Moment
) -> int:
    """Deletes the rows of a key set; how many mutations that is, as Spanner's quotas count them.

    One for each key and range, and one for each index entry of a row. Children of a cascade do not
    count.
    """
    table = schema.table(delete.table)
    if table is None:
        raise unknown_table(delete.table)
    deleted = 0
    keys = delete.keys
    resolved = resolve_key_timestamps(table, delete.keys, moment)
    for clause in key_clauses(key_parts(table, None), resolved):
        sql = f"DELETE FROM {current_table(table.name)} WHERE {clause.sql}"
        connection.execute(sql, clause.values)
        deleted += connection.changes()
    named = 1 if keys.all else len(keys.keys) + len(keys.ranges)
    return named + deleted * len(schema.indexes_of(table.name))


def resolve_key_timestamps(table: Table, keys: KeySet, moment: Moment) -> KeySet:
    """A key set with the commit timestamp in its keys; in its ranges it means the far future."""
    stamped = {c.name for c in table.columns if c.allow_commit_timestamp}
    parts = table.primary_key
    if not any(part.column in stamped for part in parts):
        return keys
    points = tuple(replace_sentinel(key, moment.text) for key in keys.keys)
    ranges = tuple(
        replace(
            r,
            start=replace_sentinel(r.start, PENDING_TEXT),
            end=replace_sentinel(r.end, PENDING_TEXT),
        )
        for r in keys.ranges
    )
    for each in ranges:
        latest = latest_timestamp(parts, stamped, each)
        if latest is not None and moment.now < latest < PENDING_TEXT:
            raise future_timestamp(latest)
    return replace(keys, keys=points, ranges=ranges)


def replace_sentinel(key: Row, text: str) -> Row:
    """A key with a timestamp in the place of the sentinel."""
    return tuple(text if part == COMMIT_TIMESTAMP else part for part in key)


def latest_timestamp(
    parts: Sequence[KeyPart], stamped: Collection[str], keys: KeyRange
) -> str | None:
    """The latest commit timestamp in a range that is not empty."""
    pairs = list(zip(keys.start, keys.end, strict=False))
    differing = [position for position, (start, end) in enumerate(pairs) if start != end]
    if not differing:
        one_key = keys.start_closed and keys.end_closed and len(keys.start) == len(keys.end)
        values = [
            value for part, value in zip(parts, keys.end, strict=False) if part.column in stamped
        ]
        return max(map(str, values)) if one_key and values else None
    part = parts[differing[0]]
    start, end = pairs[differing[0]]
    low, high = (end, start) if part.descending else (start, end)
    if part.column not in stamped or not isinstance(high, str):
        return None
    return high if not isinstance(low, str) or low < high else None
