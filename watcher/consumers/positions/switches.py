"""A consumer that goes over from a change stream, for which no clearing waits, to polling."""

from __future__ import annotations

from google.cloud.spanner_v1 import param_types

from watcher.consumers.positions.cleared import read_cleared
from watcher.consumers.positions.own_names import consumers_table
from watcher.consumers.positions.reader import RowReader
from watcher.consumers.positions.selections import SELECTION_COLUMN, parse_selection
from watcher.model.errors import ConfigurationError
from watcher.spanner.dialects import SqlDialect
from watcher.spanner.timestamps import format_timestamp, to_micros


def check_still_in_index(
    reader: RowReader, positions_table: str, consumer: str, selection: str | None, sql: SqlDialect
) -> None:
    """Raises ConfigurationError for a reader of a change stream that is to poll a table of which
    rows above its position were cleared: nobody waited for it, and it would miss them.

    In the transaction that stores the new selection: what is cleared from then on waits.
    """
    values = {"consumer": (consumer, param_types.STRING)}
    stored = (
        f"SELECT {sql.quote(SELECTION_COLUMN)} FROM {sql.quote(consumers_table(positions_table))}"  # noqa: S608
        f" WHERE {sql.quote('Consumer')} = @consumer"
    )
    before = next((row[0] for row in reader.execute_sql(*sql.bind(stored, values))), None)
    if not is_streamed(before, consumer) or is_streamed(selection, consumer):
        return
    text = (
        f"SELECT {sql.quote_all(('WatchedTable', 'Position'))} FROM {sql.quote(positions_table)}"  # noqa: S608
        f" WHERE {sql.quote('Consumer')} = @consumer"
    )
    rows = reader.execute_sql(*sql.bind(text, values))
    positions = {row[0]: to_micros(row[1]) for row in rows}
    for table, cleared in read_cleared(reader, positions_table, positions, sql).items():
        if positions[table] < cleared:
            raise ConfigurationError(
                f"consumer '{consumer}' has read {table} from a change stream up to"
                f" {format_timestamp(positions[table])}, and its index was cleared up to"
                f" {format_timestamp(cleared)} since: it cannot poll without missing rows. Go on"
                " with the change stream (--capture change-stream), or forget the consumer"
                f" (spanner-watcher ctl forget {consumer}) and start it with a backfill"
            )


def is_streamed(selection: str | None, consumer: str) -> bool:
    """True for the stored selection of a reader of a change stream."""
    return selection is not None and parse_selection(selection, consumer, ()).streamed
