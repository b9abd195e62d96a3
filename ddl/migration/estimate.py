"""What a plan will take, before it is applied: rows, sizes, times, mutations of later writes.

It scans no table: sizes come from Spanner's statistics, rows are counted up to a limit, and the
width of rows is that of a few.
"""

from __future__ import annotations

from dataclasses import dataclass

from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

from ddl.migration.plan import Plan
from ddl.model.schema import Column, Dialect, Schema, Table, TypeCode
from ddl.rules.evolve import apply_step
from ddl.rules.limits import FIXED_BYTES_MAX
from ddl.syntax.parse import parse_statement
from ddl.syntax.render import quote_column, quote_name

ROWS_COUNTED_MAX = 10_000
"""A count reads so many rows and no more."""
ROWS_MEASURED = 100
"""Rows whose width is measured."""
BACKFILL_BYTES_A_SECOND = 10_000_000
"""What a node reads for a backfill; assumed, as Spanner documents no figure."""
UNITS_A_NODE = 1_000
MUTATIONS_MAX = 80_000
"""Of one commit."""
SIZE = (
    "SELECT USED_BYTES FROM SPANNER_SYS.TABLE_SIZES_STATS_1HOUR WHERE TABLE_NAME = {}"
    " ORDER BY INTERVAL_END DESC LIMIT 1"
)


@dataclass(frozen=True, slots=True)
class TableEstimate:
    """What a plan takes of one table; None is what cannot be known.

    ``rows``: counted if ``counted``, else estimated by the size and the width of rows; None for
    more than ``ROWS_COUNTED_MAX`` of which no more is known. ``table_bytes``: from Spanner's
    statistics of the last hour, with old versions; None without. ``read_bytes``: what Spanner reads
    in the background. ``backfill_hours``: for that, by ``BACKFILL_BYTES_A_SECOND`` a node.
    ``storage_bytes_max``: of new columns and index entries, once every row has been written again.
    ``mutations``: of an insert of a whole row, before and after.
    """

    table: str
    rows: int | None
    counted: bool
    table_bytes: int | None
    read_bytes: int | None
    backfill_hours: float | None
    storage_bytes_max: int | None
    mutations: tuple[int, int]

    def describe(self) -> str:
        """The estimate in one sentence."""
        before, after = self.mutations
        return (
            f"{describe_rows(self)}, {describe_bytes(self.table_bytes)}; reads"
            f" {describe_bytes(self.read_bytes)} in the background{describe_time(self)};"
            f" at most {describe_bytes(self.storage_bytes_max)} more once every row is written"
            f" again; an insert of a row counts {after} mutations (now {before}): at most"
            f" {MUTATIONS_MAX // after:,} in a commit"
        )


def describe_rows(estimate: TableEstimate) -> str:
    """How many rows there are, in words."""
    if estimate.rows is None:
        return f"more than {ROWS_COUNTED_MAX:,} rows"
    return f"{'' if estimate.counted else 'about '}{estimate.rows:,} rows"


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
    """What a plan takes of each of its tables. Reads a few rows, and changes nothing."""
    after = schema
    for statement in plan.statements:
        after = apply_step(after, parse_statement(statement.sql, schema.dialect))
    units = read_processing_units(database) if plan.statements else None
    names = dict.fromkeys(statement.table for statement in plan.statements)
    tables = [table for name in names if (table := schema.table(name)) is not None]
    return [estimate_table(database, schema, after, table, plan, units) for table in tables]


def estimate_table(
    database: Database, schema: Schema, after: Schema, table: Table, plan: Plan, units: int | None
) -> TableEstimate:
    """What a plan takes of a table."""
    dialect = schema.dialect
    rows = count_rows(database, table.name, dialect)
    counted = rows is not None and rows <= ROWS_COUNTED_MAX
    size = read_size(database, table.name, dialect)
    if not counted:
        width = measure_width(database, table, dialect)
        rows = round(size / width) if size and width else None
    if size is None and counted and rows is not None:
        width = measure_width(database, table, dialect)
        size = round(rows * width) if width is not None else None
    scans = sum(each.long_running for each in plan.statements if each.table == table.name)
    read = scans * size if size is not None else None
    seconds = read / BACKFILL_BYTES_A_SECOND if read is not None else None
    changed = after.table(table.name) or table
    added = count_added_bytes(table, changed, schema, after)
    return TableEstimate(
        table.name,
        rows,
        counted,
        size,
        read,
        round(seconds / 3_600 * UNITS_A_NODE / units, 4) if units and seconds is not None else None,
        rows * added if rows is not None else None,
        (count_mutations(table, schema), count_mutations(changed, after)),
    )


def count_rows(database: Database, table: str, dialect: Dialect) -> int | None:
    """The rows of a table, up to one more than ``ROWS_COUNTED_MAX``; None where they may not be
    read."""
    text = (
        f"SELECT COUNT(*) FROM (SELECT 1 AS present FROM {quote_name(table, dialect)}"  # noqa: S608
        f" LIMIT {ROWS_COUNTED_MAX + 1}) AS counted"
    )
    count = read_number(database, text)
    return None if count is None else round(count)


def read_size(database: Database, table: str, dialect: Dialect) -> int | None:
    """The bytes of a table by Spanner's statistics; None without."""
    postgres = dialect is Dialect.POSTGRESQL
    parameter, name = ("$1", "p1") if postgres else ("@name", "name")
    size = read_number(
        database,
        SIZE.format(parameter),
        params={name: table},
        param_types={name: param_types.STRING},
    )
    return None if size is None else round(size)


def measure_width(database: Database, table: Table, dialect: Dialect) -> float | None:
    """The bytes of a row, on the average of a few; None for an empty table."""
    length = "OCTET_LENGTH" if dialect is Dialect.POSTGRESQL else "BYTE_LENGTH"
    texts = [quote_column(each.name, dialect) for each in table.columns if is_text(each)]
    fixed = FIXED_BYTES_MAX * (len(table.columns) - len(texts))
    sums = " + ".join(f"COALESCE({length}({each}), 0)" for each in texts) or "0"
    text = (
        f"SELECT CAST(AVG({fixed} + {sums}) AS {'float8' if length[0] == 'O' else 'FLOAT64'}) FROM"  # noqa: S608
        f" (SELECT {', '.join(texts) or '1 AS present'} FROM {quote_name(table.name, dialect)}"
        f" LIMIT {ROWS_MEASURED}) AS measured"
    )
    return read_number(database, text)


def is_text(column: Column) -> bool:
    """Whether the values of a column have a length of their own."""
    return column.type.code in {TypeCode.STRING, TypeCode.BYTES}


def read_number(database: Database, text: str, **bound: object) -> float | None:
    """The one number of a query; None without one, also where the query is refused, as it is where
    somebody may apply a plan and not read the table."""
    try:
        with database.snapshot() as snapshot:
            value = next((row[0] for row in snapshot.execute_sql(text, **bound)), None)
    except GoogleAPICallError:
        return None
    return None if value is None else float(value)


def read_processing_units(database: Database) -> int | None:
    """The compute capacity of the instance; None where it may not be read."""
    instance = database._instance
    try:
        instance.reload()
    except GoogleAPICallError:
        return None
    return int(instance.processing_units) or None


def count_added_bytes(table: Table, changed: Table, before: Schema, after: Schema) -> int:
    """The bytes that a row needs more, at most, for columns and for entries of indexes."""
    known = {column.name for column in table.columns}
    columns = [
        each
        for each in changed.columns
        if each.name not in known and (each.generated is None or each.stored)
    ]
    there = {index.name for index in before.indexes_of(table.name)}
    entries = [
        len(index.parts) + len(table.primary_key)
        for index in after.indexes_of(table.name)
        if index.name not in there
    ]
    return FIXED_BYTES_MAX * (len(columns) + sum(entries))


def count_mutations(table: Table, schema: Schema) -> int:
    """What an insert of all columns that applications write counts, with its index entries: columns
    with a value of their own count, and the key once more where there is one."""
    keys = len(table.primary_key) if any(map(has_own_value, table.columns)) else 0
    return len(table.columns) + keys + len(schema.indexes_of(table.name))


def has_own_value(column: Column) -> bool:
    """Whether a column that is left out gets a value by itself."""
    return any((column.default, column.generated, column.identity))
