"""Which tables are not those of their names any more: dropped and created again, or renamed.

INFORMATION_SCHEMA has no identity of a table, so that two tables of one name and form look the
same in it; the DDL statements between two timestamps tell them apart.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.schema import Dialect
from spanner_schema.model.steps import DropTable, RenameTables
from spanner_schema.syntax.parse import parse_statement
from watcher.model.log_events.reading import DROP_NOT_UNDERSTOOD
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.schema_changes import SchemaChange, read_schema_changes

LOG = logging.getLogger("watcher.tables")


def read_replaced(
    address: DatabaseAddress, known: Mapping[str, int], dialect: Dialect
) -> dict[str, int]:
    """Of tables that were there at timestamps, those whose name another table may have now, and
    since when: the commit timestamp of the last statement that took the name away or gave it.

    Raises GoogleAPICallError where the server does not answer.
    """
    if not known:
        return {}
    return find_replaced(read_schema_changes(address, min(known.values())), known, dialect)


def find_replaced(
    changes: Iterable[SchemaChange], known: Mapping[str, int], dialect: Dialect
) -> dict[str, int]:
    """As ``read_replaced``, of the schema changes since the earliest of the timestamps."""
    gone_at: dict[str, int] = {}
    for change in changes:
        for name in list_gone(change.statement, dialect):
            gone_at[name.casefold()] = change.committed_at
    return {
        name: gone for name, at in known.items() if (gone := gone_at.get(name.casefold(), at)) > at
    }


def list_gone(statement: str, dialect: Dialect) -> Iterator[str]:
    """The names that a DDL statement takes from a table, or gives to one that had another."""
    try:
        step = parse_statement(statement, dialect)
    except DdlSyntaxError as error:
        DROP_NOT_UNDERSTOOD.log(LOG, statement=statement, error=error)
        return
    if isinstance(step, DropTable):
        yield step.name
    elif isinstance(step, RenameTables):
        yield from chain.from_iterable(step.renames)
