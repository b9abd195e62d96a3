"""Every change of a schema as a value.

``parse`` reads steps, ``tracking`` plans them, ``render`` writes them, ``evolve`` applies them to a
schema, and ``reverse`` undoes them. The embedded server executes the same values.
"""

from __future__ import annotations

from dataclasses import dataclass

from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import (
    ChangeStream,
    Check,
    Column,
    Dialect,
    ForeignKey,
    Index,
    Interleave,
    OnDelete,
    RowDeletionPolicy,
    Table,
    Verbatim,
)


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE [IF NOT EXISTS]."""

    table: Table
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """DROP TABLE [IF EXISTS]."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameTables:
    """RENAME TABLE a TO b, ...; in the PostgreSQL dialect ALTER TABLE a RENAME TO b, .... Each name
    is that of a table after the renames before it: so two tables swap their names. A ``synonym`` is
    for a table that is renamed alone."""

    renames: tuple[tuple[str, str], ...]
    synonym: str | None = None

    def find_origins(self) -> dict[str, str]:
        """What each table that has another name now was called before, both in lower case."""
        origins: dict[str, str] = {}
        for old, new in self.renames:
            origins[new.casefold()] = origins.pop(old.casefold(), old.casefold())
        return {new: old for new, old in origins.items() if new != old}


@dataclass(frozen=True, slots=True)
class AddSynonym:
    """ALTER TABLE t ADD SYNONYM s."""

    table: str
    synonym: str


@dataclass(frozen=True, slots=True)
class DropSynonym:
    """ALTER TABLE t DROP SYNONYM s."""

    table: str
    synonym: str


@dataclass(frozen=True, slots=True)
class AddColumn:
    """ALTER TABLE t ADD COLUMN [IF NOT EXISTS] c."""

    table: str
    column: Column
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    """ALTER TABLE t DROP COLUMN c."""

    table: str
    column: str


@dataclass(frozen=True, slots=True)
class AlterColumn:
    """ALTER TABLE t ALTER COLUMN c <type> [NOT NULL] [DEFAULT (...)]: the whole definition."""

    table: str
    column: Column


@dataclass(frozen=True, slots=True)
class SetNotNull:
    """ALTER COLUMN c SET NOT NULL | DROP NOT NULL, as PostgreSQL writes it."""

    table: str
    column: str
    not_null: bool


@dataclass(frozen=True, slots=True)
class SetType:
    """ALTER COLUMN c TYPE type [, ALTER COLUMN c SET | DROP NOT NULL], as PostgreSQL writes it.

    ``not_null`` is None where the statement leaves it as it is.
    """

    table: str
    column: str
    type: Type
    not_null: bool | None = None


@dataclass(frozen=True, slots=True)
class SetDefault:
    """ALTER COLUMN c SET DEFAULT (expression), or DROP DEFAULT when ``expression`` is None."""

    table: str
    column: str
    expression: str | None


@dataclass(frozen=True, slots=True)
class SetOnUpdate:
    """ALTER COLUMN c SET ON UPDATE (expression), or DROP ON UPDATE when ``expression`` is None."""

    table: str
    column: str
    expression: str | None


@dataclass(frozen=True, slots=True)
class SetColumnOptions:
    """ALTER COLUMN c SET OPTIONS (...): None removes an option."""

    table: str
    column: str
    options: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class SetTableOptions:
    """ALTER TABLE t SET OPTIONS (...): None removes an option."""

    table: str
    options: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class SetIndexOptions:
    """ALTER INDEX i SET OPTIONS (...): None removes an option."""

    index: str
    options: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    """ALTER TABLE t ADD [CONSTRAINT n] FOREIGN KEY."""

    table: str
    foreign_key: ForeignKey


@dataclass(frozen=True, slots=True)
class AddCheck:
    """ALTER TABLE t ADD [CONSTRAINT n] CHECK (...)."""

    table: str
    check: Check


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """ALTER TABLE t DROP CONSTRAINT n."""

    table: str
    name: str


@dataclass(frozen=True, slots=True)
class SetRowDeletionPolicy:
    """ALTER TABLE t ADD | REPLACE | DROP ROW DELETION POLICY (None drops it)."""

    table: str
    policy: RowDeletionPolicy | None
    replaces: bool = False


@dataclass(frozen=True, slots=True)
class SetOnDelete:
    """ALTER TABLE t SET ON DELETE action (of its interleaving)."""

    table: str
    on_delete: OnDelete


@dataclass(frozen=True, slots=True)
class SetInterleave:
    """ALTER TABLE t SET INTERLEAVE IN [PARENT] p."""

    table: str
    interleave: Interleave


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """CREATE [UNIQUE] [NULL_FILTERED] INDEX [IF NOT EXISTS]."""

    index: Index
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropIndex:
    """DROP INDEX [IF EXISTS]."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterIndexStoring:
    """ALTER INDEX i ADD | DROP STORED COLUMN c."""

    index: str
    column: str
    add: bool


@dataclass(frozen=True, slots=True)
class CreateChangeStream:
    """CREATE CHANGE STREAM [IF NOT EXISTS]."""

    change_stream: ChangeStream
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterChangeStream:
    """ALTER CHANGE STREAM: only the parts of ``change_stream`` that ``changes`` names are set.

    ``changes`` holds "watches" (SET FOR / DROP FOR ALL) and / or "options" (SET OPTIONS).
    """

    change_stream: ChangeStream
    changes: frozenset[str]


@dataclass(frozen=True, slots=True)
class DropChangeStream:
    """DROP CHANGE STREAM [IF EXISTS]."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    """ALTER DATABASE d SET OPTIONS (...): None removes an option."""

    database: str
    options: tuple[tuple[str, str | None], ...]


@dataclass(frozen=True, slots=True)
class CreateNamedSchema:
    """CREATE SCHEMA [IF NOT EXISTS] s."""

    name: str
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropNamedSchema:
    """DROP SCHEMA [IF EXISTS] s."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class CreateVerbatim:
    """CREATE of an object that the model keeps as text (OR REPLACE allowed)."""

    item: Verbatim


@dataclass(frozen=True, slots=True)
class DropVerbatim:
    """DROP of an object that the model keeps as text."""

    kind: str
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterTableIfExists:
    """ALTER TABLE IF EXISTS: ``step`` is what it does to a table that exists."""

    table: str
    step: Step


@dataclass(frozen=True, slots=True)
class OtherStatement:
    """A statement that changes nothing in the model (GRANT, REVOKE, ANALYZE, ...)."""

    kind: str
    text: str


Step = (
    CreateTable
    | DropTable
    | RenameTables
    | AddSynonym
    | DropSynonym
    | AddColumn
    | DropColumn
    | AlterColumn
    | SetNotNull
    | SetType
    | SetDefault
    | SetOnUpdate
    | SetColumnOptions
    | SetTableOptions
    | SetIndexOptions
    | AddForeignKey
    | AddCheck
    | DropConstraint
    | SetRowDeletionPolicy
    | SetOnDelete
    | SetInterleave
    | CreateIndex
    | DropIndex
    | AlterIndexStoring
    | CreateChangeStream
    | AlterChangeStream
    | DropChangeStream
    | AlterDatabase
    | CreateNamedSchema
    | DropNamedSchema
    | CreateVerbatim
    | DropVerbatim
    | AlterTableIfExists
    | OtherStatement
)


def redefine_column(table: str, column: Column, dialect: Dialect) -> Step:
    """The step that gives a column another length, as each dialect has it."""
    if dialect is Dialect.POSTGRESQL:
        return SetType(table, column.name, column.type, column.not_null)
    return AlterColumn(table, column)
