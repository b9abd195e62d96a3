"""Which columns a table has got or lost between two timestamps, and nothing else, and which value a
new one has in every row that was not written since: NULL, a constant, or one that Spanner knows."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from google.api_core.exceptions import GoogleAPICallError

from spanner_schema.model.errors import DdlSyntaxError
from spanner_schema.model.schema import Column, Dialect
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
from watcher.tables.constants import Constant, read_constant

LOG = logging.getLogger("watcher.tables")
HARMLESS = (CreateIndex, DropIndex, CreateChangeStream, AlterChangeStream, DropChangeStream)
"""What changes no column of a table."""


NULL = Constant(None)


@dataclass(frozen=True, slots=True)
class ColumnSteps:
    """Columns that a table has got, with the constant that they have in the rows that were there
    (None: Spanner has computed their values), and that it has lost, the latter in small letters."""

    added: Mapping[str, Constant | None] = field(default_factory=dict)
    dropped: frozenset[str] = frozenset()

    def explain(self, added: Iterable[str], dropped: Iterable[str]) -> bool:
        """Whether these columns are among them."""
        lost = {name.casefold() for name in dropped}
        return self.added.keys() >= set(added) and self.dropped.issuperset(lost)

    def add(self, step: Step, dialect: Dialect) -> ColumnSteps | None:
        """With one more statement; None where that does something else, or adds a column again that
        was dropped. A copy may have one that was added before, and is dropped now."""
        if isinstance(step, DropColumn):
            added = {n: each for n, each in self.added.items() if not is_name(n, step.column)}
            return ColumnSteps(added, self.dropped | {step.column.casefold()})
        if not isinstance(step, AddColumn) or not is_new(step):
            return None
        column = step.column
        if column.name.casefold() in self.dropped or is_among(column.name, self.added):
            return None
        return replace(self, added={**self.added, column.name: find_constant(column, dialect)})


UNKNOWN = ColumnSteps()


def read_column_steps(
    address: DatabaseAddress, table: str, after: int, upto: int, dialect: Dialect
) -> ColumnSteps:
    """The columns that were added to a table after a timestamp, up to another, and those that were
    dropped. None, if anything else may have been done to the table in between, or where the server
    does not say it."""
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
        later = known.add(step, dialect)
        if later is None:
            return UNKNOWN
        known = later
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


def is_new(step: AddColumn) -> bool:
    """Whether the table did not have the column before, and no write since gives it another value
    than it says: ON UPDATE does, and IF NOT EXISTS may find one that was there."""
    column = step.column
    return not (step.if_not_exists or column.placement_key or column.on_update)


def find_constant(column: Column, dialect: Dialect) -> Constant | None:
    """The value of a new column in the rows that are there then; None where it is not plain."""
    # assumes: default-fills-rows
    if column.generated is not None or column.identity is not None:
        return None
    if column.default is None:
        return None if column.not_null else NULL
    return read_constant(column.default, column.type.code, dialect)
