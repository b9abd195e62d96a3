"""Which columns a table has got or lost between two timestamps, and nothing else: the value of a
new one is NULL in every row that was not written since."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, replace

from google.api_core.exceptions import GoogleAPICallError

from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.schema import Dialect
from spanner_schema.model.steps import (
    AddColumn,
    AlterChangeStream,
    AlterTableIfExists,
    CreateChangeStream,
    CreateIndex,
    CreateTable,
    DropChangeStream,
    DropColumn,
    DropIndex,
    DropTable,
    RenameTables,
    Step,
)
from spanner_schema.syntax.parse import parse_statement
from watcher.model.log_events.reading import STATEMENT_NOT_UNDERSTOOD, TABLE_HISTORY_UNKNOWN
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.schema_changes import SchemaChange, read_schema_changes

LOG = logging.getLogger("watcher.tables")
HARMLESS = (CreateIndex, DropIndex, CreateChangeStream, AlterChangeStream, DropChangeStream)
"""What changes no column of a table."""


@dataclass(frozen=True, slots=True)
class ColumnSteps:
    """Columns that a table has got, which are NULL in the rows that were there, and that it has
    lost, the latter in small letters."""

    added: frozenset[str] = frozenset()
    dropped: frozenset[str] = frozenset()

    def explain(self, added: Iterable[str], dropped: Iterable[str]) -> bool:
        """Whether these columns are among them."""
        lost = {name.casefold() for name in dropped}
        return self.added.issuperset(added) and self.dropped.issuperset(lost)

    def add(self, step: Step) -> ColumnSteps | None:
        """With one more statement; None where that does something else, or a column that was added
        is dropped again, or the other way round."""
        if isinstance(step, DropColumn) and not is_among(step.column, self.added):
            return replace(self, dropped=self.dropped | {step.column.casefold()})
        if not isinstance(step, AddColumn) or not is_plain(step):
            return None
        name = step.column.name
        return None if name.casefold() in self.dropped else replace(self, added=self.added | {name})


UNKNOWN = ColumnSteps()


def read_column_steps(
    address: DatabaseAddress, table: str, after: int, upto: int, dialect: Dialect
) -> ColumnSteps:
    """The columns that were added to a table after a timestamp, up to another, without a default or
    anything else that gives rows a value, and those that were dropped. None, if anything else may
    have been done to the table in between, or where the server does not say it."""
    try:
        changes = read_schema_changes(address, after)
    except GoogleAPICallError as error:
        TABLE_HISTORY_UNKNOWN.log(LOG, table=table, error=error.message)
        return UNKNOWN
    return find_column_steps(
        [each for each in changes if each.committed_at <= upto], table, dialect
    )


def find_column_steps(changes: Iterable[SchemaChange], table: str, dialect: Dialect) -> ColumnSteps:
    """As ``read_column_steps``, of these changes of the schema."""
    known = ColumnSteps()
    for change in changes:
        try:
            step = parse_statement(change.statement, dialect)
        except DdlSyntaxError as error:
            STATEMENT_NOT_UNDERSTOOD.log(LOG, statement=change.statement, table=table, error=error)
            return UNKNOWN
        if isinstance(step, HARMLESS) or not concerns(step, table):
            continue
        added = known.add(step)
        if added is None:
            return UNKNOWN
        known = added
    return known


def is_among(name: str, names: Iterable[str]) -> bool:
    """Whether a name is one of these."""
    return any(is_name(name, each) for each in names)


def concerns(step: Step, table: str) -> bool:
    """Whether a statement may have done something to a table."""
    if isinstance(step, AlterTableIfExists):
        return concerns(step.step, table) or is_name(step.table, table)
    if isinstance(step, CreateTable):
        return is_name(step.table.name, table)
    if isinstance(step, DropTable):
        return is_name(step.name, table)
    if isinstance(step, RenameTables):
        return any(is_name(name, table) for pair in step.renames for name in pair)
    named = getattr(step, "table", None)
    return not isinstance(named, str) or is_name(named, table)


def is_name(name: str, table: str) -> bool:
    """Names of tables and columns have no case."""
    return name.casefold() == table.casefold()


def is_plain(step: AddColumn) -> bool:
    """Whether the rows that are there have NULL in the column then. With IF NOT EXISTS it may have
    been there before."""
    column = step.column
    gives = (column.default, column.generated, column.identity, column.on_update)
    return not (step.if_not_exists or column.not_null or column.placement_key or any(gives))
