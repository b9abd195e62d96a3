"""The SQL of clearing: every name quoted, every value a parameter."""

from __future__ import annotations

from watcher.model.errors import NotWatchableError
from watcher.tables.values import WatchedTable


def clearing_statement(table: WatchedTable) -> str:
    """The clearing statement of the table's strategy, for partitioned DML.

    The condition on the timestamp keeps a row that changes meanwhile: its timestamp is above @safe.
    Raises NotWatchableError for a table whose index cannot be cleared.
    """
    if table.change_sets is not None:
        return delete_change_sets(table)
    if table.processed_column is not None:
        return clear_by_processed(table, table.processed_column)
    if not table.clears_by_null:
        raise NotWatchableError(
            f"{table.name}.{table.timestamp_column} is NOT NULL, and the table has no Processed"
            " column: its index cannot be cleared"
        )
    return clear_by_null(table)


def clear_by_null(table: WatchedTable) -> str:
    """Removes delivered rows from the index: the timestamp comes back with the next write."""
    # assumes: explicit-null-wins
    return (
        f"UPDATE {table.sql.render_table(table.name, table.names)}"  # noqa: S608
        f" SET {table.sql.quote_column(table.timestamp_column)} = NULL"
        f" WHERE {clearable_condition(table)}"
    )


def clear_by_processed(table: WatchedTable, processed: str) -> str:
    """Removes delivered rows from the index: the shard of a processed row is NULL.

    Assigning the timestamp to itself keeps ON UPDATE from overwriting it (an explicit value wins).
    """
    # assumes: explicit-value-wins
    timestamp = table.sql.quote_column(table.timestamp_column)
    return (
        f"UPDATE {table.sql.render_table(table.name, table.names)}"  # noqa: S608
        f" SET {table.sql.quote_column(processed)} = TRUE, {timestamp} = {timestamp}"
        f" WHERE {clearable_condition(table)}"
    )


def delete_change_sets(table: WatchedTable) -> str:
    """Deletes delivered change sets."""
    timestamp = table.sql.quote_column(table.timestamp_column)
    return (
        f"DELETE FROM {table.sql.render_table(target_table(table), table.names)}"  # noqa: S608
        f" WHERE {timestamp} <= @safe"
    )


def delete_named_sets(table: WatchedTable) -> str:
    """As ``delete_change_sets``, of those that @ids names."""
    assert table.change_sets is not None
    column = table.sql.quote_column(table.change_sets.id_column)
    return f"{delete_change_sets(table)} AND {table.sql.is_any(column, '@ids')}"


def target_table(table: WatchedTable) -> str:
    """The table whose index is cleared: that of the change sets, where it has them."""
    return table.name if table.change_sets is None else table.change_sets.table


def clearable_condition(table: WatchedTable) -> str:
    """The condition on a row that may leave the index, with the proof that it is in there."""
    shard = (
        f"{table.sql.quote_column(table.shard_column)} IS NOT NULL AND "
        if table.shard_column
        else ""
    )
    return f"{shard}{table.sql.quote_column(table.timestamp_column)} <= @safe"


def indexed_table(table: WatchedTable) -> str:
    """The table that is cleared, through its index where it has one."""
    return table.sql.render_table(target_table(table), table.names, table.index)


def count_clearable(table: WatchedTable) -> str:
    """Of each shard that has some: how many rows a clearing would take out, and the latest
    timestamp among them. Read from the index alone."""
    shard = table.sql.quote_column(table.shard_column) if table.shard_column else None
    grouped = f" GROUP BY {shard}" if shard else ""
    return (
        f"SELECT {shard or table.sql.null_integer}, COUNT(*),"  # noqa: S608
        f" MAX({table.sql.quote_column(table.timestamp_column)})"
        f" FROM {indexed_table(table)} WHERE {clearable_condition(table)}{grouped}"
    )


def latest_clearable(table: WatchedTable) -> str:
    """The ``@limit``-th commit timestamp among those at or below @safe, in ascending order."""
    timestamp = table.sql.quote_column(table.timestamp_column)
    return (
        f"SELECT MAX(t) FROM (SELECT {timestamp} AS t FROM {indexed_table(table)}"  # noqa: S608
        f" WHERE {clearable_condition(table)} ORDER BY t LIMIT @limit) AS first_rows"
    )


def count_table(table: WatchedTable) -> str:
    """How many rows the table has that is cleared, ``@limit`` at most: no more are read."""
    source = table.sql.quote(target_table(table))
    return f"SELECT COUNT(*) FROM (SELECT 1 FROM {source} LIMIT @limit) AS counted"  # noqa: S608


def page_of_shard(table: WatchedTable) -> str:
    """The next ``@limit`` rows of a shard to be cleared, from @low on: the timestamp, then the key
    (of change sets the id), in the order of the index and from the index alone.

    No OFFSET: what was cleared is not in the index any more; @low skips what is left of it.
    """
    timestamp = table.sql.quote_column(table.timestamp_column)
    of_shard = (
        f" AND {table.sql.quote_column(table.shard_column)} = @shard" if table.shard_column else ""
    )
    shown = ", ".join([timestamp, *map(table.sql.quote_column, key_columns(table))])
    return (
        f"SELECT {shown} FROM {indexed_table(table)} WHERE {clearable_condition(table)}{of_shard}"  # noqa: S608
        f" AND {timestamp} >= @low ORDER BY {timestamp} LIMIT @limit"
    )


def key_columns(table: WatchedTable) -> tuple[str, ...]:
    """What names a row that is cleared."""
    return table.primary_key if table.change_sets is None else (table.change_sets.id_column,)
