"""The SQL statements of captures: every name quoted, every value a parameter."""

from __future__ import annotations

from collections.abc import Sequence

from spanner_schema.model.column_types import Type, TypeCode
from watcher.captures.row_filters import render_filter
from watcher.model.window import ShardGroup, Window
from watcher.spanner.dialects import GOOGLESQL, SqlDialect
from watcher.spanner.sql import Statement, WireValue
from watcher.spanner.timestamps import format_timestamp
from watcher.tables.values import ShardValue, WatchedTable

COMMIT_TIMESTAMP_COLUMN = "_commit_timestamp"
SHARD_ID_COLUMN = "_shard_id"
STAMPS = (COMMIT_TIMESTAMP_COLUMN, SHARD_ID_COLUMN)
"""The columns that captures add to those of a table; a capture reads those that are shown."""

TIMESTAMP = Type(TypeCode.TIMESTAMP)
INT64 = Type(TypeCode.INT64)
STRING = Type(TypeCode.STRING)
STREAM_TYPES = {"start": TIMESTAMP, "end": TIMESTAMP, "token": STRING, "heartbeat": INT64}

Params = dict[str, WireValue]
Types = dict[str, Type]
Shards = tuple[ShardValue, ...]


def choose_shards(table: WatchedTable, group: ShardGroup | None) -> Shards | None:
    """The shard values that a query names; None when it asks for IS NOT NULL, or for no shard.

    A list must be the same at every timestamp. The intervals of ``shard = 'time'`` have none: an
    application writes them by its own clock, commits later, and may keep an old one in an update.
    """
    if table.shard_column is None:
        return None
    return group.values if group is not None else table.shard_values


def array_type(shards: Shards) -> Type:
    """ARRAY<INT64>, or ARRAY<STRING> for shards that are text."""
    text = any(isinstance(shard, str) for shard in shards)
    return Type(TypeCode.ARRAY, element=STRING if text else INT64)


def bind_window(
    sql: str, window: Window, shards: Shards | None, suffix: str = "", **numbers: int
) -> Statement:
    """A statement with the parameters of a window, and of some numbers. ``suffix`` keeps
    the parameters of several tables in one query apart."""
    params: Params = {
        f"start{suffix}": format_timestamp(window.start),
        f"end{suffix}": format_timestamp(window.end),
    }
    types = {f"start{suffix}": TIMESTAMP, f"end{suffix}": TIMESTAMP}
    bind_shards(params, types, shards, suffix)
    for name, number in numbers.items():
        params[name], types[name] = str(number), INT64
    return Statement(sql, params, types)


def bind_shards(params: Params, types: Types, shards: Shards | None, suffix: str = "") -> None:
    """Adds the parameter that lists the shards, if they are listed."""
    if shards is not None:
        params[f"shards{suffix}"] = [str(shard) for shard in shards]
        types[f"shards{suffix}"] = array_type(shards)


def render_source(table: WatchedTable) -> str:
    """The table, through its null-filtered index where it has one; with the strategy change-set,
    the change sets joined with the rows that carry their ids.

    Spanner: forcing a null-filtered index needs a proof that no key part is NULL.
    """
    # assumes: index-reads-entries
    sets, sql = table.change_sets, table.sql
    if sets is None:
        return table.sql.render_table(table.name, table.names, table.index)
    return (
        f"{sql.quote(sets.table)}{sql.force_index(table.index)} AS c"
        f" JOIN {sql.quote(table.name)}{sql.force_index(sets.rows_index)} AS t"
        f" ON t.{sql.quote_column(sets.rows_column)} = c.{sql.quote_column(sets.id_column)}"
    )


def render_timestamp(table: WatchedTable) -> str:
    """The commit timestamp, as it is called in queries of ``render_source``."""
    return ("c." if table.change_sets else "") + table.sql.quote_column(table.timestamp_column)


def render_shard(table: WatchedTable) -> str | None:
    """The shard, as it is called in queries of ``render_source``; None without one."""
    if table.shard_column is None:
        return None
    return ("c." if table.change_sets else "") + table.sql.quote_column(table.shard_column)


def render_shard_condition(table: WatchedTable, listed: bool, suffix: str = "") -> str:
    """The condition on the shard, and a proof that it is not NULL; empty without a shard."""
    shard = render_shard(table)
    if shard is None:
        return ""
    values = f"{table.sql.is_any(shard, f'@shards{suffix}')} AND " if listed else ""
    return f"{shard} IS NOT NULL AND {values}"


def render_window_condition(table: WatchedTable, listed: bool, suffix: str = "") -> str:
    """The condition of a window, as Spanner's commit-timestamp optimisation wants it: no OR."""
    timestamp = render_timestamp(table)
    shards = render_shard_condition(table, listed, suffix)
    return f"{shards}{timestamp} > @start{suffix} AND {timestamp} <= @end{suffix}"


def render_rows(table: WatchedTable, shards: Shards | None, suffix: str = "") -> str:
    """FROM and WHERE of the rows of a window."""
    condition = render_window_condition(table, shards is not None, suffix)
    return f"FROM {render_source(table)} WHERE {condition}"


def select_window(
    table: WatchedTable,
    window: Window,
    group: ShardGroup | None = None,
    stamps: Sequence[str] = STAMPS,
) -> Statement:
    """The rows of a window: the columns of ``list_selected_columns``, each once. Also those that
    the table's filter leaves out, where it is told which."""
    if table.change_sets is None:
        columns = [table.sql.quote_column(name) for name, _ in list_selected_columns(table, stamps)]
    else:
        read = [name for name, _ in table.columns if name not in table.unread]
        columns = [f"t.{table.sql.quote_column(name)}" for name in read]
        own = {
            COMMIT_TIMESTAMP_COLUMN: render_timestamp(table),
            SHARD_ID_COLUMN: render_shard(table),
        }
        names = name_stamps(table, stamps)
        columns += [f"{own[name]} AS {table.sql.quote_column(name)}" for name in names]
    shards = choose_shards(table, group)
    sql = f"SELECT {', '.join(columns)} {render_rows(table, shards)}"
    rows = bind_window(sql, window, shards)
    return rows if table.tells_outside else add_filter(rows, table, "AND")


def add_filter(statement: Statement, table: WatchedTable, word: str) -> Statement:
    """A statement that keeps the rows of the table's filter; ``word`` is WHERE or AND."""
    if table.row_filter is None:
        return statement
    condition = render_filter(table.row_filter, table.sql)
    return Statement(
        f"{statement.sql} {word} ({condition.sql})",
        {**statement.params, **condition.params},
        {**statement.types, **condition.types},
    )


def sample_window(
    table: WatchedTable, window: Window, limit: int, stamps: Sequence[str]
) -> Statement:
    """Some rows of a window, with the columns of ``list_selected_columns``."""
    return limit_rows(select_window(table, window, stamps=stamps), limit)


def limit_rows(whole: Statement, limit: int) -> Statement:
    """A statement that ends after so many rows."""
    params, types = {**whole.params, "limit": str(limit)}, {**whole.types, "limit": INT64}
    return Statement(f"{whole.sql} LIMIT @limit", params, types)


def select_table(table: WatchedTable, stamps: Sequence[str]) -> Statement:
    """All rows of a table: the columns of ``list_selected_columns``."""
    columns = ", ".join(
        table.sql.quote_column(name) for name, _ in list_selected_columns(table, stamps)
    )
    source = table.sql.render_table(table.name, table.names)
    return add_filter(Statement(f"SELECT {columns} FROM {source}"), table, "WHERE")  # noqa: S608


def find_end(table: WatchedTable, last: bool) -> Statement:
    """The first key of a table, or the last one: reads no other."""
    names = {name: table.sql.quote_column(name) for name in table.primary_key}
    ordered = (
        f"{quoted} DESC" if last != (name in table.descending) else quoted
        for name, quoted in names.items()
    )
    source = table.sql.render_table(table.name, table.names)
    keys = ", ".join(names.values())
    return Statement(f"SELECT {keys} FROM {source} ORDER BY {', '.join(ordered)} LIMIT 1")  # noqa: S608


def name_stamps(table: WatchedTable, stamps: Sequence[str]) -> dict[str, str]:
    """What each of ``stamps`` is called in ``list_selected_columns``; without those that the table
    does not have."""
    own = {COMMIT_TIMESTAMP_COLUMN: table.timestamp_column, SHARD_ID_COLUMN: table.shard_column}
    there = {stamp: column for stamp, column in own.items() if column and stamp in stamps}
    return there if table.change_sets is None else {stamp: stamp for stamp in there}


def list_selected_columns(
    table: WatchedTable, stamps: Sequence[str]
) -> tuple[tuple[str, Type], ...]:
    """The table's columns that are read, and those of ``stamps`` that are not among them. Where the
    rows outside of the filter are told, also what it looks at."""
    read = tuple(column for column in table.columns if column[0] not in table.unread)
    names = {name for name, _ in read}
    if table.tells_outside:
        read += tuple(column for column in table.filtered if column[0] not in names)
        names |= {name for name, _ in read}
    types = {COMMIT_TIMESTAMP_COLUMN: TIMESTAMP, SHARD_ID_COLUMN: INT64}
    named = name_stamps(table, stamps).items()
    return read + tuple((name, types[each]) for each, name in named if name not in names)


def count_window(table: WatchedTable, window: Window, group: ShardGroup | None = None) -> Statement:
    """How many rows a window has: read from the index alone."""
    shards = choose_shards(table, group)
    return bind_window(f"SELECT COUNT(*) {render_rows(table, shards)}", window, shards)


def count_window_up_to(table: WatchedTable, window: Window, limit: int) -> Statement:
    """As ``count_window``, ``limit`` rows at most: reads no more entries of the index."""
    shards = choose_shards(table, None)
    rows = f"SELECT 1 {render_rows(table, shards)} LIMIT @limit"
    return bind_window(f"SELECT COUNT(*) FROM ({rows}) AS counted", window, shards, limit=limit)  # noqa: S608


def measure_load(table: WatchedTable, window: Window, number: int) -> Statement:
    """The rows of each shard in a window, and their first and last timestamp: of the index alone.

    ``number`` is the first column, and keeps the parameters of several tables apart.
    """
    timestamp, shard = render_timestamp(table), render_shard(table)
    shards, suffix = choose_shards(table, None), str(number)
    group_by = f" GROUP BY {shard}" if shard else ""
    sql = (
        f"SELECT {number}, {table.sql.to_text(shard or 'NULL')}, COUNT(*),"
        f" MIN({timestamp}), MAX({timestamp}) {render_rows(table, shards, suffix)}{group_by}"
    )
    return bind_window(sql, window, shards, suffix)


def find_any_after(
    table: WatchedTable, start: int, number: int = 0, shared: int | None = None
) -> Statement:
    """``number``, if there is a row after a timestamp: reads one entry of the index.

    ``number`` also keeps the parameters of several tables in one query apart. ``shared`` is that of
    an earlier table in the query with the same shards, whose list serves for this one, too.
    """
    shards = choose_shards(table, None)
    listed = str(number if shared is None else shared)
    condition = render_shard_condition(table, shards is not None, listed)
    sql = (
        f"SELECT {number} FROM (SELECT 1 FROM {render_source(table)}"  # noqa: S608
        f" WHERE {condition}{render_timestamp(table)} > @start{number} LIMIT 1) AS newer"
    )
    params: Params = {f"start{number}": format_timestamp(start)}
    types = {f"start{number}": TIMESTAMP}
    if shared is None:
        bind_shards(params, types, shards, listed)
    return Statement(sql, params, types)


def count_index(table: WatchedTable) -> Statement:
    """How many rows are in the index."""
    condition = render_shard_condition(table, listed=False)
    return Statement(
        f"SELECT COUNT(*) FROM {render_source(table)}"  # noqa: S608
        f" WHERE {condition}{render_timestamp(table)} IS NOT NULL"
    )


def find_cut(table: WatchedTable, window: Window, limit: int) -> Statement:
    """The ``limit``-th commit timestamp of a window, in ascending order: where to cut it."""
    shards = choose_shards(table, None)
    rows = f"SELECT {render_timestamp(table)} AS t {render_rows(table, shards)}"
    sql = f"SELECT MAX(t) FROM ({rows} ORDER BY t LIMIT @limit) AS first_rows"  # noqa: S608
    return bind_window(sql, window, shards, limit=limit)


def find_nth_of_shards(
    table: WatchedTable, window: Window, shards: Sequence[int], number: int
) -> Statement:
    """The commit timestamp of the ``number``-th row of each shard in a window, for those that have
    so many: in the order of the index, so that no more entries are read."""
    rows = f"SELECT {render_timestamp(table)} AS t {render_rows(table, None)}"
    each = (
        f"SELECT t FROM ({rows} AND {render_shard(table)} = @shard{index}"  # noqa: S608
        f" ORDER BY t LIMIT 1 OFFSET @skip) AS of_shard{index}"
        for index in range(len(shards))
    )
    numbers = {f"shard{index}": shard for index, shard in enumerate(shards)}
    return bind_window(" UNION ALL ".join(each), window, None, "", skip=number - 1, **numbers)


def read_change_stream(
    name: str,
    start: int,
    end: int | None,
    token: str | None,
    heartbeat_milliseconds: int,
    sql: SqlDialect = GOOGLESQL,
    messages: bool = False,
) -> Statement:
    """The records of a partition, or, without a token, the partitions. ``messages``: those of a
    stream whose keys move."""
    sql.quote_column(name)
    params: Params = {
        "start": format_timestamp(start),
        "end": format_timestamp(end) if end is not None else None,
        "token": token,
        "heartbeat": str(heartbeat_milliseconds),
    }
    return Statement(sql.read_stream(name, messages), params, STREAM_TYPES)


def list_read_functions(prefix: str) -> Statement:
    """The names of the functions that begin with a prefix."""
    sql = (
        "SELECT ROUTINE_NAME FROM INFORMATION_SCHEMA.ROUTINES"
        " WHERE STARTS_WITH(LOWER(ROUTINE_NAME), LOWER(@prefix)) ORDER BY 1"
    )
    return Statement(sql, {"prefix": prefix}, {"prefix": STRING})
