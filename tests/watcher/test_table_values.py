"""The values of every type as rows of other databases, row by row and cell by cell."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from fixtures.any_batch import polled_batches
from fixtures.everything import row as make_row
from fixtures.everything import rows as make_rows
from fixtures.everything import write
from fixtures.singers import address_of
from fixtures.table_targets import TableTarget
from google.cloud.spanner_v1.database import Database
from hypothesis import given, settings

from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.schema import Dialect
from watcher import Watcher
from watcher.captures import COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN, TableRows
from watcher.captures.changes import list_commits
from watcher.replica.copies import STAMP_COLUMN
from watcher.replica.rows import find_deleted
from watcher.sinks.queues import open_queue

TABLES = itertools.count()


def canonical(value: Any) -> Any:
    """A cell in a form in which equal ones are equal."""
    if isinstance(value, list | tuple):
        return [canonical(each) for each in value]
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else (value, math.copysign(1, value))
    if isinstance(value, Decimal):
        return "NaN" if value.is_nan() else value
    if isinstance(value, datetime):
        return value.astimezone(UTC)
    if isinstance(value, memoryview):
        return bytes(value)
    return str(value) if isinstance(value, UUID) else value


def canonical_rows(rows: Sequence[dict[str, Any]], key: Sequence[str]) -> dict[str, Any]:
    """Rows by the text of their key."""
    found = {}
    for row in rows:
        cells = {name: canonical(value) for name, value in row.items()}
        found[repr([cells[name] for name in key])] = cells
    assert len(found) == len(rows)
    return found


def expect_rows(rows: TableRows) -> dict[str, Any]:
    """The newest version of each row, one by one."""
    key = rows.table.primary_key
    deleted = find_deleted(rows.batch, rows.table.deleted).to_pylist()
    commits = list_commits(rows)
    newest: dict[str, tuple[int, bool, dict[str, Any]]] = {}
    cells = rows.batch.drop_columns([COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN]).to_pylist()
    for row, commit, gone in zip(cells, commits, deleted, strict=True):
        for name in key:
            row[name] = row[name] + 0.0 if isinstance(row[name], float) else row[name]
        stamp = datetime.fromtimestamp(0, UTC) + (datetime.resolution * commit)
        found = {name: canonical(value) for name, value in (row | {STAMP_COLUMN: stamp}).items()}
        identity = repr([found[name] for name in key])
        if identity not in newest or newest[identity][0] <= commit:
            newest[identity] = (commit, gone, found)
    return {identity: row for identity, (_, gone, row) in newest.items() if not gone}


def strip_nul(rows: TableRows) -> TableRows:
    """Rows without the character that PostgreSQL does not store."""
    columns = [remove_nul(column) for column in rows.batch.columns]
    return replace(rows, batch=pa.RecordBatch.from_arrays(columns, schema=rows.batch.schema))


def remove_nul(column: pa.Array) -> pa.Array:
    if pa.types.is_string(column.type):
        return pc.replace_substring(column, "\0", "")
    if pa.types.is_list(column.type) and pa.types.is_string(column.type.value_type):
        cells = column.to_pylist()
        return pa.array([c and [e and e.replace("\0", "") for e in c] for c in cells], column.type)
    return column


def has_possible_key(rows: TableRows) -> bool:
    """JSON is no key in Spanner, and has no index in PostgreSQL."""
    return all(rows.table.column_type(n).code is not TypeCode.JSON for n in rows.table.primary_key)


def as_single(row: dict[str, Any], schema: pa.Schema) -> dict[str, Any]:
    """A row with FLOAT32s as such: PostgreSQL writes the fewest digits that are of one of them."""
    single = {field.name: field.type for field in schema if has_single(field.type)}
    cast = {name: pa.scalar(row[name], type_).as_py() for name, type_ in single.items()}
    return row | cast


def has_single(type_: pa.DataType) -> bool:
    return pa.float32() in (type_, getattr(type_, "value_type", None))


@pytest.mark.essential
def test_any_batch_is_the_newest_rows(table_target: TableTarget) -> None:
    sink = table_target.open_sink()

    @settings(max_examples=30)
    @given(polled_batches().filter(has_possible_key))
    def check(drawn: TableRows) -> None:
        rows = replace(drawn, table=replace(drawn.table, name=f"T{next(TABLES)}"))
        rows = rows if table_target.null_texts else strip_nul(rows)
        expected = expect_rows(rows)
        for _ in range(2):
            assert sink.write_rows(rows)
            sink.flush()
            found = [
                as_single(row, rows.batch.schema) for row in table_target.read(rows.table.name)
            ]
            assert canonical_rows(found, rows.table.primary_key) == expected

    with closing(sink):
        check()


@pytest.mark.essential
@pytest.mark.both_dialects
def test_every_type_has_its_values(
    everything: Database, dialect: Dialect, table_target: TableTarget
) -> None:
    postgresql = not table_target.null_texts
    expected = make_rows(Dialect.POSTGRESQL if postgresql else dialect)
    if postgresql and dialect is Dialect.GOOGLESQL:
        expected = [
            row | {name: make_row(row["Id"])[name] for name in ("Js", "Jss")} for row in expected
        ]
    write(everything, expected)
    watcher = Watcher(
        database=str(address_of(everything)),
        consumer="types",
        start="earliest",
        delivery={"to": table_target.address},
    )
    watcher.deliver_to(open_queue(watcher.config))
    assert watcher.run_once() == len(expected)
    found = canonical_rows(table_target.read("Everything"), ["Id"])
    for row in expected:
        cells = {name: canonical(value) for name, value in row.items()}
        written = found[repr([canonical(row["Id"])])]
        assert {name: written[name] for name in cells} == cells
