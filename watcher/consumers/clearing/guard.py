"""Refuses to erase what is an application's own, at the place that erases.

Clearing sets a timestamp to NULL or a mark to TRUE, or deletes change sets. A timestamp is ours by
its form, when Spanner fills it by DEFAULT and ON UPDATE, a mark by its name, and a table of change
sets when it has nothing else. Of everything else a user has to have said so: ``ddl apply
--take-over`` records that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from google.cloud.spanner_v1 import param_types
from google.cloud.spanner_v1.database import Database

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.names import same_name, split_name
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Column, Dialect
from spanner_schema.syntax.tokens import tokenize
from spanner_schema.watched.ownership import fold, is_ours
from spanner_schema.watched.records import (
    RECORDED_SCHEMA,
    TABLE,
    TAKEN_OVER,
    list_added_columns,
    read_records,
)
from watcher.consumers.positions.tables import read_columns
from watcher.model.errors import NotOursError
from watcher.spanner.dialects import SqlDialect
from watcher.tables.schema_rows import unwrap_expression
from watcher.tables.values import WatchedTable


def check_erasable(database: Database, table: WatchedTable) -> None:
    """Raises NotOursError when clearing would erase what nobody let it erase, by the schema and the
    record as they are now."""
    if table.change_sets is not None:
        check_change_sets(database, table, table.change_sets.table)
    elif table.processed_column is not None:
        check_processed(database, table, table.processed_column)
    else:
        check_timestamp(database, table)
        check_deletion_policy(database, table)


def check_timestamp(database: Database, table: WatchedTable) -> None:
    """Clearing sets the timestamp to NULL."""
    columns = read_table_columns(database, table.name, table.sql)
    column = columns.get(table.timestamp_column)
    if column is not None and is_ours(column, table.dialect):
        return
    if is_taken_over(database, table.name, table.timestamp_column):
        return
    raise NotOursError(
        f"clearing would set {table.name}.{table.timestamp_column} to NULL, which the application"
        " writes (Spanner does not fill it by DEFAULT and ON UPDATE). If its values may be lost,"
        f" run spanner-watcher ddl apply --database spanner://{database.name} --table {table.name}"
        f" --strategy manual --timestamp-column {table.timestamp_column}"
        f" --take-over {table.timestamp_column}; to keep them, do not clear"
    )


def check_processed(database: Database, table: WatchedTable, column: str) -> None:
    """Clearing sets a mark to TRUE. By the form of its shard it may mark something else, as that a
    row is archived."""
    usual = WatchOptions().for_dialect(table.dialect).processed_column
    if same_name(column, usual) or is_taken_over(database, table.name, column, table.dialect):
        return
    raise NotOursError(
        f"clearing would set {table.name}.{column} to TRUE in every row that is delivered, because"
        " its shard is then NULL. If the column says that and nothing else, run spanner-watcher ddl"
        f" apply --database spanner://{database.name} --table {table.name} --strategy processed"
        f" --processed-column {column} --take-over {column}; to keep its values, do not clear"
    )


def check_deletion_policy(database: Database, table: WatchedTable) -> None:
    """Spanner deletes no row by a timestamp that is NULL."""
    columns = ("ROW_DELETION_POLICY_EXPRESSION",)
    rows = query_view(database, "TABLES", columns, table.name, table.sql)
    for (expression,) in rows:
        tokens = tokenize(expression or "", table.dialect)
        if any(same_name(token.value, table.timestamp_column) for token in tokens):
            raise NotOursError(
                f"clearing would set {table.name}.{table.timestamp_column} to NULL, and the row"
                f" deletion policy of the table ({expression}) then never deletes the row: let the"
                " policy name another column, or watch the table by --strategy processed, whose"
                " clearing keeps the timestamp"
            )


def check_change_sets(database: Database, table: WatchedTable, sets: str) -> None:
    """Clearing deletes rows of the table of change sets."""
    assert table.change_sets is not None
    check_cascades(database, sets, table.sql)
    ours = {table.change_sets.id_column, table.timestamp_column}
    columns = read_table_columns(database, sets, table.sql)
    others = [c.name for c in columns.values() if c.name not in ours and c.generated is None]
    if not others or is_taken_over(database, table.name, sets):
        return
    raise NotOursError(
        f"clearing would delete rows of {sets}, which has columns that are not ours:"
        f" {', '.join(others)}. If they may be lost, run spanner-watcher ddl apply --database"
        f" spanner://{database.name} --table {table.name} --strategy change-set --take-over {sets}"
    )


CASCADES = """\
SELECT t.TABLE_NAME FROM INFORMATION_SCHEMA.TABLES AS t
WHERE t.PARENT_TABLE_NAME = @table AND t.ON_DELETE_ACTION = 'CASCADE'
UNION ALL
SELECT r.CONSTRAINT_NAME FROM INFORMATION_SCHEMA.REFERENTIAL_CONSTRAINTS AS r
JOIN INFORMATION_SCHEMA.CONSTRAINT_TABLE_USAGE AS u
  ON r.CONSTRAINT_SCHEMA = u.CONSTRAINT_SCHEMA AND r.CONSTRAINT_NAME = u.CONSTRAINT_NAME
WHERE u.TABLE_NAME = @table AND r.DELETE_RULE = 'CASCADE'"""
"""What is interleaved in a table, and the foreign keys to it: their rows go with its own."""


def check_cascades(database: Database, sets: str, sql: SqlDialect) -> None:
    """Spanner deletes what hangs on a row of change sets with it."""
    values: dict[str, tuple[object, object]] = {"table": (split_name(sets)[1], param_types.STRING)}
    with database.snapshot() as snapshot:
        names = [row[0] for row in snapshot.execute_sql(*sql.bind(CASCADES, values))]
    if names:
        raise NotOursError(
            f"clearing would delete rows of {sets}, and with them rows that an application wrote,"
            f" by ON DELETE CASCADE: {', '.join(names)}. Keep these in a table that neither"
            " references nor is interleaved in the change sets, or do not clear"
        )


def read_table_columns(database: Database, table: str, sql: SqlDialect) -> Mapping[str, Column]:
    """What INFORMATION_SCHEMA says of the columns of a table, by name: the expressions that fill
    them. The types are left out."""
    columns = ("COLUMN_NAME", "COLUMN_DEFAULT", "ON_UPDATE_EXPRESSION", "GENERATION_EXPRESSION")
    rows = query_view(database, "COLUMNS", columns, table, sql)
    return {row[0]: make_column(*row) for row in rows}


def query_view(
    database: Database, view: str, columns: Sequence[str], table: str, sql: SqlDialect
) -> list[Sequence[Any]]:
    """Columns of the rows that a view of INFORMATION_SCHEMA has of a table."""
    schema, name = split_name(table)
    query = (
        f"SELECT {', '.join(map(sql.quote_view_column, columns))}"  # noqa: S608 (our own names)
        f" FROM INFORMATION_SCHEMA.{view} WHERE TABLE_SCHEMA = @schema AND TABLE_NAME = @table"
    )
    values: dict[str, tuple[object, object]] = {
        "schema": (schema or sql.default_schema, param_types.STRING),
        "table": (name, param_types.STRING),
    }
    with database.snapshot() as snapshot:
        return list(snapshot.execute_sql(*sql.bind(query, values)))


def make_column(
    name: str, default: str | None, on_update: str | None, generated: str | None
) -> Column:
    """A column by its expressions. One that Spanner fills with commit timestamps may hold them."""
    expressions = [unwrap(each) for each in (default, on_update)]
    return Column(
        name,
        Type(TypeCode.TIMESTAMP),
        default=expressions[0],
        on_update=expressions[1],
        generated=generated,
        allow_commit_timestamp=on_update is not None,
    )


def unwrap(expression: str | bytes | None) -> str | None:
    """An expression without parentheses around all of it."""
    if expression is None:
        return None
    text = expression.decode() if isinstance(expression, bytes) else expression
    return unwrap_expression(text)


def is_taken_over(
    database: Database, table: str, name: str, added_in: Dialect | None = None
) -> bool:
    """True when ``ddl apply --take-over`` has recorded it; in a dialect also what ``apply`` has
    added."""
    if (TABLE, TAKEN_OVER.name) not in read_columns(database, [TABLE]):
        return False
    records = read_records(database, RECORDED_SCHEMA)
    return any(
        recorded.casefold() == table.casefold()
        and name.casefold()
        in fold((*record.taken_over, *(list_added_columns(record, added_in) if added_in else ())))
        for recorded, record in records.items()
    )
