"""Queries and reads with what their transaction has written, and not committed, in them."""

from __future__ import annotations

from collections.abc import Mapping

from emulator.engine.reads import ReadPlan, merge_rows
from emulator.engine.results import Check, collect_rows, rows_in_memory
from emulator.engine.writer import DatabaseWriter
from emulator.sql.statements import CompiledQuery
from emulator.storage.history import table_source
from emulator.values.requests import ResultRows, Stats, Stored


def run_query(
    writer: DatabaseWriter,
    statement: CompiledQuery,
    values: Mapping[str, Stored],
    *,
    profile: bool = False,
    check: Check | None = None,
) -> ResultRows:
    """A query on the writing connection."""
    schema = writer.state.schema
    return collect_rows(
        writer.reader,
        statement.sql,
        values,
        statement.columns,
        schema,
        profile=profile,
        check=check,
    )


def run_read(writer: DatabaseWriter, plan: ReadPlan, check: Check | None = None) -> ResultRows:
    """A read on the writing connection."""
    schema = writer.state.schema
    rows = merge_rows(
        plan,
        lambda sql, values: (
            collect_rows(writer.reader, sql, values, plan.columns, schema, check=check).rows
        ),
        table_source((), counted=False),
    )
    return rows_in_memory(plan.columns, rows, Stats())
