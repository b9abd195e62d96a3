"""The SQL statements of captures: every name quoted, every value a parameter."""

from __future__ import annotations

from google.cloud.spanner_v1 import Type, TypeCode

from ddl.schema import Type as SchemaType
from ddl.schema import TypeCode as SchemaTypeCode
from watcher.spanner.sql import forced, quoted
from watcher.spanner.stream import WireValue
from watcher.spanner.timestamps import timestamp_text
from watcher.tables.values import ShardValue, WatchedTable
from watcher.window import ShardGroup, Window

COMMIT_TIMESTAMP_COLUMN = "_commit_timestamp"
SHARD_ID_COLUMN = "_shard_id"


TIMESTAMP = Type(code=TypeCode.TIMESTAMP)


def shard_list(table: WatchedTable, group: ShardGroup | None) -> tuple[ShardValue, ...] | None:
    """The shard values that a query names; None when it asks for IS NOT NULL, or for no shard.

    A list must be the same at every timestamp. The intervals of ``shard = 'time'`` have none: an
    application writes them by its own clock, commits later, and may keep an old one in an update.
    """
    if table.shard_column is None:
        return None
    return group.values if group is not None else table.shard_values


def window_params(window: Window, shards: tuple[ShardValue, ...] | None) -> dict[str, WireValue]:
    """The parameters of ``select_window`` and ``count_window``."""
    params: dict[str, WireValue] = {
        "start": timestamp_text(window.start),
        "end": timestamp_text(window.end),
    }
    if shards is not None:
        params["shards"] = [str(shard) for shard in shards]
    return params


def window_types(shards: tuple[ShardValue, ...] | None) -> dict[str, Type]:
    """The types of ``window_params``."""
    types = {"start": TIMESTAMP, "end": TIMESTAMP}
    if shards is not None:
        types["shards"] = shards_type(shards)
    return types


def shards_type(shards: tuple[ShardValue, ...]) -> Type:
    """ARRAY<INT64>, or ARRAY<STRING> for shards that are text."""
    text = any(isinstance(shard, str) for shard in shards)
    element = Type(code=TypeCode.STRING if text else TypeCode.INT64)
    return Type(code=TypeCode.ARRAY, array_element_type=element)


def source(table: WatchedTable) -> str:
    """The table, through its null-filtered index where it has one; with the strategy change-set,
    the change sets joined with the rows that carry their ids.

    Spanner: forcing a null-filtered index needs a proof that no key part is NULL.
    """
    sets = table.change_sets
    if sets is None:
        return quoted(table.name) + forced(table.index)
    return (
        f"{quoted(sets.table)}{forced(table.index)} AS c"
        f" JOIN {quoted(table.name)}{forced(sets.rows_index)} AS t"
        f" ON t.{quoted(sets.rows_column)} = c.{quoted(sets.id_column)}"
    )


def timestamp_of(table: WatchedTable) -> str:
    """The commit timestamp, as the queries of ``source`` call it."""
    return ("c." if table.change_sets else "") + quoted(table.timestamp_column)


def of_shards(table: WatchedTable, listed: bool, parameter: str = "shards") -> str:
    """The condition on the shard, and a proof that it is not NULL; empty without a shard."""
    if table.shard_column is None:
        return ""
    shard = ("c." if table.change_sets else "") + quoted(table.shard_column)
    named = f"{shard} IN UNNEST(@{parameter}) AND " if listed else ""
    return f"{shard} IS NOT NULL AND {named}"


def in_window(table: WatchedTable, listed: bool = True, number: str = "") -> str:
    """The condition of a window, as Spanner's commit-timestamp optimisation wants it: no OR."""
    timestamp = timestamp_of(table)
    shards = of_shards(table, listed, f"shards{number}")
    return f"{shards}{timestamp} > @start{number} AND {timestamp} <= @end{number}"


def select_window(table: WatchedTable, listed: bool = True) -> str:
    """The rows of a window: the columns that ``selected`` names, each once."""
    if table.change_sets is None:
        columns = [quoted(name) for name, _ in selected(table)]
    else:
        columns = [f"t.{quoted(name)}" for name, _ in table.columns]
        columns.append(f"{timestamp_of(table)} AS {quoted(COMMIT_TIMESTAMP_COLUMN)}")
        if table.shard_column is not None:
            columns.append(f"c.{quoted(table.shard_column)} AS {quoted(SHARD_ID_COLUMN)}")
    shown = ", ".join(columns)
    return f"SELECT {shown} FROM {source(table)} WHERE {in_window(table, listed)}"  # noqa: S608


def stamp_names(table: WatchedTable) -> tuple[str, str | None]:
    """What ``selected`` calls the commit timestamp and the shard."""
    if table.change_sets is None:
        return table.timestamp_column, table.shard_column
    return COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN if table.shard_column else None


def selected(table: WatchedTable) -> tuple[tuple[str, SchemaType], ...]:
    """The table's columns, and the commit timestamp and the shard where they are not among them."""
    names = {name for name, _ in table.columns}
    timestamp, shard = stamp_names(table)
    more = [(timestamp, SchemaType(SchemaTypeCode.TIMESTAMP))] if timestamp else []
    if shard is not None:
        more.append((shard, SchemaType(SchemaTypeCode.INT64)))
    return table.columns + tuple(pair for pair in more if pair[0] not in names)


def count_window(table: WatchedTable, listed: bool = True) -> str:
    """How many rows a window has: read from the index alone."""
    return f"SELECT COUNT(*) FROM {source(table)} WHERE {in_window(table, listed)}"  # noqa: S608


def count_some(table: WatchedTable, listed: bool = True) -> str:
    """As ``count_window``, ``@limit`` rows at most: reads no more entries of the index."""
    return (
        f"SELECT COUNT(*) FROM (SELECT 1 FROM {source(table)}"  # noqa: S608
        f" WHERE {in_window(table, listed)} LIMIT @limit)"
    )


def load_of_window(table: WatchedTable, listed: bool, number: str) -> str:
    """The rows of each shard in a window, and their first and last timestamp: of the index alone.

    ``number`` stands in the first column, and tells the parameters of several tables apart.
    """
    timestamp = timestamp_of(table)
    of_sets = "c." if table.change_sets else ""
    shard = f"{of_sets}{quoted(table.shard_column)}" if table.shard_column else None
    shown = f"CAST({shard} AS STRING)" if shard else "CAST(NULL AS STRING)"
    grouped = f" GROUP BY {shard}" if shard else ""
    return (
        f"SELECT {number}, {shown}, COUNT(*), MIN({timestamp}), MAX({timestamp})"  # noqa: S608
        f" FROM {source(table)} WHERE {in_window(table, listed, number)}{grouped}"
    )


def any_after(table: WatchedTable, listed: bool = True, number: str = "") -> str:
    """Is there a row after @start? Reads one entry of the index.

    ``number`` tells the parameters of several tables in one query apart.
    """
    timestamp = timestamp_of(table)
    return (
        f"SELECT 1 FROM {source(table)}"  # noqa: S608
        f" WHERE {of_shards(table, listed, f'shards{number}')}{timestamp} > @start{number}"
        " LIMIT 1"
    )


def count_index(table: WatchedTable) -> str:
    """How many rows are in the index."""
    timestamp = timestamp_of(table)
    return (
        f"SELECT COUNT(*) FROM {source(table)}"  # noqa: S608
        f" WHERE {of_shards(table, listed=False)}{timestamp} IS NOT NULL"
    )


def earliest_above(table: WatchedTable, listed: bool = True) -> str:
    """The ``@limit``-th commit timestamp of a window, in ascending order: where to cut it."""
    timestamp = timestamp_of(table)
    return (
        f"SELECT MAX(t) FROM (SELECT {timestamp} AS t FROM {source(table)}"  # noqa: S608
        f" WHERE {in_window(table, listed)} ORDER BY t LIMIT @limit)"
    )


def nth_of_shard(table: WatchedTable) -> str:
    """The commit timestamp of the row of one shard in a window that has ``@skip`` rows before it:
    in the order of the index, so that no more entries are read."""
    return (
        f"SELECT {timestamp_of(table)} AS t FROM {source(table)}"  # noqa: S608
        f" WHERE {in_window(table, listed=False)} AND {quoted(table.shard_column or '')} = @shard"
        " ORDER BY t LIMIT 1 OFFSET @skip"
    )


def read_change_stream(name: str) -> str:
    """The records of a partition, or, with a NULL token, the partitions.

    Spanner: the function of a stream is called by its name alone, with nothing around it.
    """
    quoted(name)
    return (
        f"SELECT ChangeRecord FROM READ_{name}(start_timestamp => @start,"  # noqa: S608
        " end_timestamp => @end, partition_token => @token, read_options => NULL,"
        " heartbeat_milliseconds => @heartbeat)"
    )
