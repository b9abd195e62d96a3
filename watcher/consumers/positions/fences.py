"""What keeps out who held a consumer, or a part of one, before it was moved: rule 13 of
docs/protocol.md."""

from __future__ import annotations

from collections.abc import Sequence

from google.cloud.spanner_v1 import KeyRange, KeySet, param_types
from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions.own_names import consumers_table, divisions_table, members_table
from watcher.consumers.positions.reader import RowReader
from watcher.consumers.positions.tables import select_of_consumer
from watcher.errors import ConfigurationError, DivisionChangedError
from watcher.spanner.dialects import SqlDialect
from watcher.tables.parts import count_parts, parse_part_name


def read_divisions(
    reader: RowReader, positions_table: str, shared: str, sql: SqlDialect
) -> dict[str, str]:
    """How the tables of a shared consumer are divided; empty for one that is whole."""
    columns = ("WatchedTable", "Division")
    query = select_of_consumer(sql, divisions_table(positions_table), columns, shared)
    return {row[0]: row[1] for row in reader.execute_sql(*query)}


def check_division(reader: RowReader, positions_table: str, consumer: str, sql: SqlDialect) -> None:
    """Raises an error for who would run as the whole of a consumer that is divided, or as a part of
    one that is not divided so: an instance that was frozen while others have merged, divided or
    unregistered the consumer. In the transaction that takes a name, or says that an instance is
    there."""
    part = parse_part_name(consumer)
    if part is not None:
        check_divided(reader, positions_table, part[0], part[1].of, sql)
    elif read_divisions(reader, positions_table, consumer, sql):
        raise ConfigurationError(
            f"consumer '{consumer}' is divided into parts: start it with 'parts' as before, or stop"
            f" all its instances and run: spanner-watcher ctl merge {consumer}"
        )


def check_divided(
    reader: RowReader, positions_table: str, shared: str, of: int, sql: SqlDialect
) -> None:
    """Raises DivisionChangedError unless a consumer is divided into so many parts."""
    stored = read_divisions(reader, positions_table, shared, sql)
    if {count_parts(each) for each in stored.values()} != {of}:
        raise DivisionChangedError(
            f"consumer '{shared}' is not divided into {of} parts, or not any more: it was merged,"
            " divided in another way, or unregistered since this instance began; start it again"
        )


def delete_division(
    transaction: Transaction,
    positions_table: str,
    shared: str,
    tables: Sequence[str] | None = None,
) -> None:
    """A consumer is divided no more, or (``tables``) these tables of it are not. Who held a part,
    or is about to take one, is refused from now on."""
    whole = KeySet(ranges=[KeyRange(start_closed=[shared], end_closed=[shared])])
    named = KeySet(keys=[[shared, table] for table in tables or ()])
    transaction.delete(divisions_table(positions_table), whole if tables is None else named)
    if tables is None:
        transaction.delete(members_table(positions_table), whole)


def end_lease(
    transaction: Transaction, positions_table: str, consumer: str, sql: SqlDialect
) -> None:
    """Nobody owns a consumer's lease any more: an instance whose lease has run out, and that was
    frozen meanwhile, is refused at its next renewal."""
    q = sql.quote
    text = (
        f"UPDATE {q(consumers_table(positions_table))} SET {q('Owner')} = NULL,"  # noqa: S608
        f" {q('LeaseUntil')} = NULL WHERE {q('Consumer')} = @consumer"
    )
    transaction.execute_update(*sql.bind(text, {"consumer": (consumer, param_types.STRING)}))
