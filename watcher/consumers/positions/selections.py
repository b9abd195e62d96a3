"""Which tables each consumer watches, also those that it has not registered yet, and how."""

from __future__ import annotations

import json
from collections.abc import Iterable

from google.cloud.spanner_v1.transaction import Transaction

from watcher.consumers.positions.own_names import consumers_table
from watcher.consumers.positions.reader import RowReader
from watcher.consumers.positions.tables import own_tables
from watcher.model.errors import CheckpointError
from watcher.spanner.dialects import SqlDialect
from watcher.tables.selection import STREAMED, Selection

SELECTION_COLUMN = "Selection"


def parse_selection(text: str, consumer: str, ours: tuple[str, ...]) -> Selection:
    """A selection as it is stored. Raises CheckpointError for one that cannot be read: nobody may
    clear while it is not known what a consumer watches."""
    try:
        stored = json.loads(text)
        return Selection(
            tuple(map(str, stored["include"])),
            tuple(map(str, stored.get("exclude", ()))),
            ours,
            streamed=stored.get("capture") == STREAMED,
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"the stored selection of consumer '{consumer}' cannot be read ({text!r}); start that"
            " consumer again with this release, or unregister it: spanner-watcher ctl forget"
            f" {consumer}"
        ) from error


def read_selections(
    reader: RowReader, positions_table: str, sql: SqlDialect
) -> dict[str, Selection]:
    """The selections of all consumers, by consumer. Releases that store none have none, and before
    this one readers of change streams had none."""
    ours = own_tables(positions_table)
    rows = reader.execute_sql(
        f"SELECT {sql.quote_all(('Consumer', SELECTION_COLUMN))}"  # noqa: S608 (quoted)
        f" FROM {sql.quote(consumers_table(positions_table))}"
        f" WHERE {sql.quote(SELECTION_COLUMN)} IS NOT NULL"
    )
    return {row[0]: parse_selection(row[1], row[0], ours) for row in rows}


def store_selection(
    transaction: Transaction, positions_table: str, consumer: str, selection: str | None
) -> None:
    """Stores which tables a consumer polls (None: a change stream), in the transaction that
    registers it. The consumer has a state."""
    table = consumers_table(positions_table)
    transaction.update(table, ("Consumer", SELECTION_COLUMN), [(consumer, selection)])


def unite_selections(selections: Iterable[Selection]) -> Selection | None:
    """A selection that means every table that one of them means; None without any."""
    each = list(selections)
    if not each:
        return None
    include = dict.fromkeys(pattern for one in each for pattern in one.include)
    common = [name for name in each[0].exclude if all(name in other.exclude for other in each)]
    return Selection(tuple(include), tuple(common), each[0].ours)
