"""How a dialect writes DDL: what both dialects share, and what each writes its own way."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable

from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import (
    ChangeStream,
    ChangeStreamTable,
    Check,
    Column,
    ForeignKey,
    Identity,
    Index,
    Interleave,
    KeyPart,
    OnDelete,
    RowDeletionPolicy,
    Table,
)

Options = Iterable[tuple[str, str | None]]


class Spelling(ABC):
    """Writes clauses and statements as SQL text, without semicolons.

    The abstract methods raise DdlError for what the dialect lacks.
    """

    key_separator: str
    """What stands between a keyword or a table and the parenthesis after it."""
    skip_range_separator: str
    replace_policy = "REPLACE"
    """The word that puts another row deletion policy in place of one."""
    stored_column: str
    """The keyword for a column that an index stores."""
    stored_columns: str
    """The keyword before the columns that an index stores."""
    commit_timestamp: str
    """The commit timestamp of the transaction, as an expression."""
    bit_reversed: str
    """The words that make a sequence bit-reversed."""

    @abstractmethod
    def quote_column(self, name: str) -> str:
        """The name of a column, or another without a schema, quoted where it must be."""

    def quote_name(self, name: str) -> str:
        """The name of an object, quoted where it must be; one in a named schema part by part."""
        return ".".join(map(self.quote_column, name.split(".")))

    @abstractmethod
    def write_index_hint(self, index: str) -> str:
        """What follows a table in a query to read an index of it."""

    @abstractmethod
    def write_row_alias(self, table: str, columns: Iterable[str]) -> str:
        """What follows a table in a query, so that its name does not hide one of these columns."""

    @abstractmethod
    def write_null_filter(self, columns: Iterable[str]) -> str:
        """The words that keep rows with NULL in one of the columns out of an index."""

    @abstractmethod
    def write_type(self, type_: Type) -> str:
        """A type."""

    @abstractmethod
    def write_column_type(self, column: Column) -> str:
        """The type of a column in its definition."""

    @abstractmethod
    def write_generated(self, column: Column) -> str:
        """The clause that computes a generated column."""

    @abstractmethod
    def write_column_options(self, column: Column) -> str:
        """The options behind a column's definition, with a blank before them, or nothing."""

    @abstractmethod
    def write_policy(self, policy: RowDeletionPolicy) -> str:
        """The clause that deletes old rows."""

    @abstractmethod
    def write_drop_policy(self) -> str:
        """The words that drop a row deletion policy."""

    @abstractmethod
    def create_table(self, table: Table, if_not_exists: bool = False) -> str:
        """CREATE TABLE."""

    @abstractmethod
    def create_index(self, index: Index, if_not_exists: bool = False) -> str:
        """CREATE INDEX."""

    @abstractmethod
    def write_stream_options(self, options: Options) -> str:
        """The options of a change stream behind SET."""

    @abstractmethod
    def create_change_stream(self, stream: ChangeStream) -> str:
        """CREATE CHANGE STREAM."""

    @abstractmethod
    def alter_database(self, database: str, options: Options) -> str:
        """ALTER DATABASE."""

    @abstractmethod
    def rename_tables(self, renames: Iterable[tuple[str, str]]) -> str:
        """Other names for tables, one after another."""

    @abstractmethod
    def rename_with_synonym(self, new: str, synonym: str) -> str:
        """What follows ALTER TABLE to give a table another name, and a synonym."""

    @abstractmethod
    def redefine_column(self, column: Column) -> str:
        """What follows ALTER COLUMN to give a column's whole definition."""

    @abstractmethod
    def set_column_options(self, options: Options) -> str:
        """What follows ALTER COLUMN c to set options."""

    @abstractmethod
    def set_options(self, options: Options) -> str:
        """What follows ALTER TABLE t or ALTER INDEX i to set options."""

    @abstractmethod
    def set_not_null(self, not_null: bool) -> str:
        """What follows ALTER COLUMN c to make it NOT NULL, or NULL."""

    @abstractmethod
    def set_type(self, type_: Type) -> str:
        """What follows ALTER COLUMN c to change its type alone."""

    def quote_columns(self, names: Iterable[str]) -> str:
        """Columns, separated by commas."""
        return ", ".join(map(self.quote_column, names))

    def write_column(self, column: Column) -> str:
        """The definition of a column."""
        parts = [self.quote_column(column.name), self.write_column_type(column)]
        if column.not_null:
            parts.append("NOT NULL")
        if column.default is not None:
            parts.append(self.write_default(column.default))
        if column.on_update is not None:
            parts.append(f"ON UPDATE ({column.on_update})")
        if column.generated is not None:
            parts.append(self.write_generated(column))
        if column.identity is not None:
            parts.append(self.write_identity(column.identity))
        if column.placement_key:
            parts.append("PLACEMENT KEY")
        if column.hidden:
            parts.append("HIDDEN")
        return " ".join(parts) + self.write_column_options(column)

    def write_identity(self, identity: Identity) -> str:
        """GENERATED BY DEFAULT AS IDENTITY (...)."""
        parts = [] if identity.default_kind else ["BIT_REVERSED_POSITIVE"]
        if identity.skip_range is not None:
            low, high = identity.skip_range
            parts.append(f"SKIP RANGE {low}{self.skip_range_separator}{high}")
        if identity.start_counter is not None:
            parts.append(f"START COUNTER WITH {identity.start_counter}")
        details = f" ({' '.join(parts)})" if parts else ""
        return f"GENERATED BY DEFAULT AS IDENTITY{details}"

    def write_key(self, parts: Iterable[KeyPart]) -> str:
        """(a, b DESC)."""
        return f"({', '.join(map(self.write_key_part, parts))})"

    def write_key_part(self, part: KeyPart) -> str:
        """A column with its order."""
        return self.quote_column(part.column) + (" DESC" if part.descending else "")

    def write_foreign_key(self, key: ForeignKey) -> str:
        """[CONSTRAINT n] FOREIGN KEY ..."""
        target = (
            f"{self.quote_name(key.referenced_table)}({self.quote_columns(key.referenced_columns)})"
        )
        return (
            f"{self.write_constraint_name(key.name)}FOREIGN KEY{self.key_separator}"
            f"({self.quote_columns(key.columns)}) REFERENCES {target}"
            f"{self.write_on_delete(key.on_delete)}{'' if key.enforced else ' NOT ENFORCED'}"
        )

    def write_default(self, expression: str) -> str:
        """DEFAULT (...)."""
        return f"DEFAULT ({expression})"

    def write_check(self, check: Check) -> str:
        """[CONSTRAINT n] CHECK (...)."""
        name = self.write_constraint_name(check.name)
        return f"{name}CHECK{self.key_separator}({check.expression})"

    def write_constraint_name(self, name: str | None) -> str:
        """CONSTRAINT n with a blank after it, or nothing."""
        return f"CONSTRAINT {self.quote_column(name)} " if name else ""

    def write_interleave(self, interleave: Interleave) -> str:
        """INTERLEAVE IN ..."""
        words = "INTERLEAVE IN PARENT" if interleave.enforced else "INTERLEAVE IN"
        parent = self.quote_name(interleave.parent)
        cascades = interleave.on_delete is OnDelete.CASCADE
        return f"{words} {parent}{self.write_on_delete(OnDelete.CASCADE if cascades else None)}"

    def write_on_delete(self, action: OnDelete | None) -> str:
        """ON DELETE ... with a blank before it, or nothing for None."""
        return f" ON DELETE {action.value}" if action is not None else ""

    def write_not_null_filter(self, columns: Iterable[str]) -> str:
        """WHERE a IS NOT NULL AND ... with a blank before it, or nothing."""
        conditions = [f"{self.quote_column(column)} IS NOT NULL" for column in columns]
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def write_watches(self, stream: ChangeStream) -> str:
        """FOR ... with a blank before it, or nothing."""
        if stream.for_all:
            return " FOR ALL"
        tables = ", ".join(map(self.write_watched_table, stream.watches))
        return f" FOR {tables}" if tables else ""

    def write_watched_table(self, watched: ChangeStreamTable) -> str:
        """A table of a change stream, with its columns."""
        columns = "" if watched.columns is None else f"({self.quote_columns(watched.columns)})"
        return self.quote_name(watched.table) + columns


def normalize(expression: str | None) -> str:
    """An expression for comparison: in capitals, without blanks and PostgreSQL's prefix."""
    return "".join((expression or "").split()).upper().removeprefix("SPANNER.")
