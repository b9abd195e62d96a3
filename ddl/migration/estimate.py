"""What a plan will take, before it is applied: rows, sizes, times, mutations of later writes.

It scans no table: sizes come from Spanner's statistics, rows are counted up to a limit, and the
width of rows is that of a few.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from google.api_core.exceptions import GoogleAPICallError, RetryError
from google.cloud.spanner_v1.database import Database

from ddl.migration.plan import Plan
from ddl.rules.evolve import apply_step
from ddl.rules.limits import FIXED_BYTES_MAX
from spanner_schema.model.column_types import TypeCode
from spanner_schema.model.schema import Column, Dialect, Schema, Table
from spanner_schema.syntax.parse import parse_statement
from spanner_schema.syntax.render import quote_column, quote_name

ROWS_COUNTED_MAX = 10_000
"""A count reads so many rows and no more."""
ROWS_MEASURED = 100
"""Rows whose width is measured."""
BACKFILL_BYTES_A_SECOND = 10_000_000
"""What a node reads for a backfill; assumed, as Spanner documents no figure."""
BACKFILLS_A_DAY = 3
"""New indexes that need a backfill, as Spanner's best practices for schema updates say."""
UNITS_A_NODE = 1_000
MUTATIONS_MAX = 80_000
"""Of one commit."""
TABLES_MAX = 50
"""So many tables are estimated, each by three queries."""
SIZES = (
    "SELECT TABLE_NAME, USED_BYTES FROM SPANNER_SYS.TABLE_SIZES_STATS_1HOUR WHERE INTERVAL_END ="
    " (SELECT MAX(INTERVAL_END) FROM SPANNER_SYS.TABLE_SIZES_STATS_1HOUR)"
)
CALL_ERRORS = (GoogleAPICallError, RetryError)


@dataclass(frozen=True, slots=True)
class TableEstimate:
    """What a plan takes of one table; None is what cannot be known.

    ``rows``: those that were counted, or, of more than ``ROWS_COUNTED_MAX``, by size and width of
    rows. ``rows_min``: as far as they were counted; 0 where they may not be read. ``table_bytes``:
    from Spanner's statistics of the last hour, with old versions; of a small table without any, by
    the width of its rows. ``read_bytes``: what Spanner reads in the background.
    ``backfill_hours``: for that, by ``BACKFILL_BYTES_A_SECOND`` a node. ``storage_bytes``: of new
    columns and index entries, once every row has been written again. ``mutations``: of an insert of
    a whole row, before and after.
    """

    table: str
    rows: int | None
    rows_min: int
    table_bytes: int | None
    read_bytes: int | None
    backfill_hours: float | None
    storage_bytes: int | None
    mutations: tuple[int, int]

    def describe(self) -> str:
        """The estimate in one sentence."""
        before, after = self.mutations
        return (
            f"{describe_rows(self)}, {describe_bytes(self.table_bytes)}; reads"
            f" {describe_bytes(self.read_bytes)} in the background{describe_time(self)};"
            f" {describe_bytes(self.storage_bytes)} more once every row is written again; an insert"
            f" of a row counts {after} mutations (now {before}): at most"
            f" {MUTATIONS_MAX // after:,} in a commit"
        )


def describe_rows(estimate: TableEstimate) -> str:
    """How many rows there are, in words."""
    if estimate.rows is None:
        known = estimate.rows_min > ROWS_COUNTED_MAX
        return f"more than {ROWS_COUNTED_MAX:,} rows" if known else "an unknown number of rows"
    return f"{'' if estimate.rows == estimate.rows_min else 'about '}{estimate.rows:,} rows"


def describe_bytes(size: int | None) -> str:
    """A size in words."""
    if size is None:
        return "an unknown size"
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} bytes"


def describe_time(estimate: TableEstimate) -> str:
    """How long the background work takes, in words; empty if that is unknown."""
    if estimate.backfill_hours is None or not estimate.read_bytes:
        return ""
    rate = BACKFILL_BYTES_A_SECOND // 10**6
    return f" (about {estimate.backfill_hours:.2g} hours if a node reads {rate} MB/s, as we assume)"


def estimate_plan(database: Database, schema: Schema, plan: Plan) -> list[TableEstimate]:
    """What a plan takes of each of its tables, of the ``TABLES_MAX`` largest where there are more.
    Reads a few rows, and changes nothing."""
    if plan.empty:
        return []
    sizes, units = read_sizes(database), read_processing_units(database)
    names = dict.fromkeys(statement.table for statement in plan.statements)
    tables = [table for name in names if (table := schema.table(name)) is not None]
    largest = sorted(tables, key=lambda table: -sizes.get(table.name, 0))[:TABLES_MAX]
    others = {table.name for table in tables} - {table.name for table in largest}
    after = schema
    for statement in plan.statements:
        if statement.table not in others:
            after = apply_step(after, parse_statement(statement.sql, schema.dialect))
    return [
        estimate_table(database, (schema, after), table, plan, sizes.get(table.name), units)
        for table in largest
    ]


def estimate_table(
    database: Database,
    schemas: tuple[Schema, Schema],
    table: Table,
    plan: Plan,
    size: int | None,
    units: int | None,
) -> TableEstimate:
    """What a plan takes of a table, by the schema before it and after it."""
    before, after = schemas
    count = count_rows(database, table.name, before.dialect)
    counted = count is not None and count <= ROWS_COUNTED_MAX
    width = measure_width(database, table, table.columns, before.dialect)
    rows = count if counted else round(size / width) if size and width else None
    if size is None and counted and count is not None:
        size = round(count * (width or 0))
    scans = sum(each.long_running for each in plan.statements if each.table == table.name)
    read = scans * size if size is not None else None
    changed = after.table(table.name) or table
    added = measure_added(database, table, changed, schemas) if rows else 0
    return TableEstimate(
        table=table.name,
        rows=rows,
        rows_min=count or 0,
        table_bytes=size,
        read_bytes=read,
        backfill_hours=count_hours(read, units),
        storage_bytes=round(rows * added) if rows is not None and added is not None else None,
        mutations=(count_mutations(table, before), count_mutations(changed, after)),
    )


def count_hours(size: int | None, units: int | None) -> float | None:
    """How long an instance reads so many bytes in the background."""
    if size is None or not units:
        return None
    return round(size / BACKFILL_BYTES_A_SECOND / 3_600 * UNITS_A_NODE / units, 4)


def count_rows(database: Database, table: str, dialect: Dialect) -> int | None:
    """The rows of a table, up to one more than ``ROWS_COUNTED_MAX``; None where they may not be
    read."""
    text = (
        f"SELECT COUNT(*) FROM (SELECT 1 AS present FROM {quote_name(table, dialect)}"  # noqa: S608
        f" LIMIT {ROWS_COUNTED_MAX + 1}) AS counted"
    )
    count = read_number(database, text)
    return None if count is None else round(count)


def read_sizes(database: Database) -> dict[str, int]:
    """The bytes of each table and index by Spanner's statistics; none where they may not be
    read."""
    try:
        with database.snapshot() as snapshot:
            return {name: round(size) for name, size in snapshot.execute_sql(SIZES)}
    except CALL_ERRORS:
        return {}


def measure_width(
    database: Database, table: Table, columns: Sequence[Column], dialect: Dialect
) -> float | None:
    """The bytes of some columns of a row, on the average of a few rows; None without any."""
    postgres = dialect is Dialect.POSTGRESQL
    length, number = ("OCTET_LENGTH", "float8") if postgres else ("BYTE_LENGTH", "FLOAT64")
    texts = [quote_column(each.name, dialect) for each in columns if is_text(each)]
    fixed = FIXED_BYTES_MAX * (len(columns) - len(texts))
    sums = " + ".join(f"COALESCE({length}({each}), 0)" for each in texts) or "0"
    text = (
        f"SELECT CAST(AVG({fixed} + {sums}) AS {number}) FROM"  # noqa: S608 (quoted)
        f" (SELECT {', '.join(texts) or '1 AS present'} FROM {quote_name(table.name, dialect)}"
        f" LIMIT {ROWS_MEASURED}) AS measured"
    )
    return read_number(database, text)


def is_text(column: Column) -> bool:
    """Whether the values of a column have a length of their own."""
    return column.type.code in {TypeCode.STRING, TypeCode.BYTES}


def describe_pace(plan: Plan) -> str | None:
    """What Spanner advises against in a plan, in words; None for nothing."""
    count = sum(each.long_running for each in plan.statements)
    if count <= BACKFILLS_A_DAY:
        return None
    return (
        f"{count} statements need work in the background; Spanner advises at most"
        f" {BACKFILLS_A_DAY} new indexes of existing tables a day, and may throttle more: apply"
        " fewer tables at a time (--table)"
    )


def read_number(database: Database, text: str) -> float | None:
    """The one number of a query; None without one, also where the query is refused, as it is where
    somebody may apply a plan and not read the table."""
    try:
        with database.snapshot() as snapshot:
            value = next((row[0] for row in snapshot.execute_sql(text)), None)
    except CALL_ERRORS:
        return None
    return None if value is None else float(value)


def read_processing_units(database: Database) -> int | None:
    """The compute capacity of the instance; None where it may not be read."""
    instance = database._instance
    try:
        instance.reload()
    except CALL_ERRORS:
        return None
    return int(instance.processing_units) or None


def measure_added(
    database: Database, table: Table, changed: Table, schemas: tuple[Schema, Schema]
) -> float | None:
    """The bytes that a row needs more for new columns and for entries of new indexes, each of which
    has the key of its row."""
    before, after = schemas
    known = {column.name for column in table.columns}
    columns = [
        each
        for each in changed.columns
        if each.name not in known and (each.generated is None or each.stored)
    ]
    there = {index.name for index in before.indexes_of(table.name)}
    made = [index for index in after.indexes_of(table.name) if index.name not in there]
    keys = [table.column(part.column) for part in table.primary_key]
    width = measure_width(database, table, [each for each in keys if each], before.dialect)
    if width is None:
        return None
    parts = len(columns) + sum(len(index.parts) for index in made)
    return FIXED_BYTES_MAX * parts + len(made) * width


def count_mutations(table: Table, schema: Schema) -> int:
    """What an insert of all columns that applications write counts, with its index entries: columns
    with a value of their own count, and the key once more where there is one."""
    keys = len(table.primary_key) if any(map(has_own_value, table.columns)) else 0
    return len(table.columns) + keys + len(schema.indexes_of(table.name))


def has_own_value(column: Column) -> bool:
    """Whether a column that is left out gets a value by itself."""
    return any((column.default, column.generated, column.identity))
