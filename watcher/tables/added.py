"""Which columns a table has got between two timestamps, and nothing else: their value is NULL in
every row that was not written since."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from google.api_core.exceptions import GoogleAPICallError

from ddl.model.errors import DdlSyntaxError
from ddl.model.schema import Dialect
from ddl.model.steps import (
    AddColumn,
    AlterChangeStream,
    AlterTableIfExists,
    CreateChangeStream,
    CreateIndex,
    CreateTable,
    DropChangeStream,
    DropIndex,
    DropTable,
    RenameTables,
    Step,
)
from ddl.syntax.parse import parse_statement
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.schema_changes import SchemaChange, read_schema_changes

LOG = logging.getLogger("watcher.tables")
HARMLESS = (CreateIndex, DropIndex, CreateChangeStream, AlterChangeStream, DropChangeStream)
"""What changes no column of a table."""


def read_added(
    address: DatabaseAddress, table: str, after: int, upto: int, dialect: Dialect
) -> frozenset[str]:
    """The columns that were added to a table after a timestamp, up to another, without a default or
    anything else that gives rows a value. None, if anything else may have been done to the table in
    between, or where the server does not say it."""
    try:
        changes = read_schema_changes(address, after)
    except GoogleAPICallError as error:
        LOG.info("what was done to table %s is not known: %s", table, error.message)
        return frozenset()
    return find_added([each for each in changes if each.committed_at <= upto], table, dialect)


def find_added(changes: Iterable[SchemaChange], table: str, dialect: Dialect) -> frozenset[str]:
    """As ``read_added``, of these changes of the schema."""
    added: set[str] = set()
    for change in changes:
        try:
            step = parse_statement(change.statement, dialect)
        except DdlSyntaxError as error:
            LOG.info("what %r does to table %s is not known: %s", change.statement, table, error)
            return frozenset()
        if isinstance(step, HARMLESS) or not concerns(step, table):
            continue
        column = step.column if isinstance(step, AddColumn) and is_plain(step) else None
        if column is None:
            return frozenset()
        added.add(column.name)
    return frozenset(added)


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
    """Names of tables have no case."""
    return name.casefold() == table.casefold()


def is_plain(step: AddColumn) -> bool:
    """Whether the rows that are there have NULL in the column then. With IF NOT EXISTS it may have
    been there before."""
    column = step.column
    gives = (column.default, column.generated, column.identity, column.on_update)
    return not (step.if_not_exists or column.not_null or column.placement_key or any(gives))
