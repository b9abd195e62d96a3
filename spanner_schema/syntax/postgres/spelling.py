"""How the PostgreSQL dialect writes DDL."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar

from spanner_schema.model.column_types import COLUMN_TYPES, Type, TypeCode
from spanner_schema.model.errors import DdlError
from spanner_schema.model.names import split_name
from spanner_schema.model.schema import (
    ChangeStream,
    Check,
    Column,
    Dialect,
    ForeignKey,
    Index,
    KeyPart,
    RowDeletionPolicy,
    Table,
)
from spanner_schema.syntax.postgres.parts import COLUMNAR_POLICY, LOCALITY_GROUP, read_expression
from spanner_schema.syntax.postgres.reserved import QUOTED
from spanner_schema.syntax.postgres.types import COMMIT_TIMESTAMP
from spanner_schema.syntax.reader import TokenReader
from spanner_schema.syntax.spelling import Options, Spelling
from spanner_schema.syntax.tokens import TokenKind

PLAIN_NAME = re.compile(r"[a-z_][a-z0-9_]*\Z")


def quote_part(part: str) -> str:
    """One part of a name, in quotes where it has capitals, other signs, or a meaning of its own."""
    if PLAIN_NAME.match(part) and part not in QUOTED:
        return part
    return '"' + part.replace('"', '""') + '"'


STREAM_OPTIONS = ("value_capture_type", "retention_period")
"""The options of change streams that are shown first."""


def stream_order(option: tuple[str, str]) -> int:
    """The rank of an option among those of a change stream."""
    name = option[0]
    return STREAM_OPTIONS.index(name) if name in STREAM_OPTIONS else len(STREAM_OPTIONS)


def stands_alone(expression: str) -> bool:
    """Whether an expression needs no parentheses to end where it ends."""
    reader = TokenReader(expression, Dialect.POSTGRESQL)
    whole = read_expression(reader) in {expression, expression[1:-1].strip()}
    return whole and reader.token.kind is TokenKind.END


STORAGE = {LOCALITY_GROUP: "LOCALITY GROUP", COLUMNAR_POLICY: "COLUMNAR POLICY"}
"""The keywords of options that do not stand in WITH."""


def write_storage(options: Iterable[tuple[str, str]]) -> str:
    """WITH (...) LOCALITY GROUP ... COLUMNAR POLICY ..., with a blank before it, or nothing."""
    pairs = tuple(options)
    listed = ", ".join(f"{name} = {value}" for name, value in pairs if name not in STORAGE)
    words = [f"WITH ({listed})"] if listed else []
    words += [f"{STORAGE[name]} {value}" for name, value in pairs if name in STORAGE]
    return "".join(f" {each}" for each in words)


Constraint = TypeVar("Constraint", ForeignKey, Check)


def named_last(constraints: Iterable[Constraint]) -> list[Constraint]:
    """Constraints in the order in which Spanner shows them."""
    return sorted(constraints, key=lambda each: each.name is not None)


class PostgreSqlSpelling(Spelling):
    """Spanner's PostgreSQL dialect."""

    key_separator = " "
    skip_range_separator = " "
    stored_column = "INCLUDE COLUMN"
    stored_columns = "INCLUDE"
    commit_timestamp = "SPANNER.PENDING_COMMIT_TIMESTAMP()"
    bit_reversed = "BIT_REVERSED_POSITIVE"
    replace_policy = "ALTER"

    def quote_column(self, name: str) -> str:
        return quote_part(name)

    def write_index_hint(self, index: str) -> str:
        """Spanner looks for the index in the schema of the table, and refuses a path of names."""
        return f" /*@ FORCE_INDEX={self.quote_name(split_name(index)[1])} */"

    def write_row_alias(self, table: str, columns: Iterable[str]) -> str:
        return ""

    def write_null_filter(self, columns: Iterable[str]) -> str:
        return self.write_not_null_filter(columns).lstrip()

    def write_type(self, type_: Type) -> str:
        if type_.code is TypeCode.ARRAY and type_.element is not None:
            vector = f" vector length {type_.vector_length}" if type_.vector_length else ""
            return f"{self.write_type(type_.element)}[]{vector}"
        names = COLUMN_TYPES[type_.code].postgresql
        if not names:
            known = ", ".join(t.postgresql[0] for t in COLUMN_TYPES.values() if t.postgresql)
            raise DdlError(
                f"the PostgreSQL dialect has no type {type_.code.value}: use one of {known}"
            )
        sized = type_.code is TypeCode.STRING and type_.length is not None
        return names[0] + (f"({type_.length})" if sized else "")

    def write_column_type(self, column: Column) -> str:
        return COMMIT_TIMESTAMP if column.allow_commit_timestamp else self.write_type(column.type)

    def write_generated(self, column: Column) -> str:
        kind = "STORED" if column.stored else "VIRTUAL"
        return f"GENERATED ALWAYS AS ({column.generated}) {kind}"

    def write_check(self, check: Check) -> str:
        return f"{self.write_constraint_name(check.name)}CHECK({check.expression})"

    def write_default(self, expression: str) -> str:
        return f"DEFAULT {expression}" if stands_alone(expression) else f"DEFAULT ({expression})"

    def write_column_options(self, column: Column) -> str:
        return write_storage(column.options)

    def write_policy(self, policy: RowDeletionPolicy) -> str:
        interval = policy.interval or f"{policy.days} days"
        return f"TTL INTERVAL '{interval}' ON {self.quote_column(policy.column)}"

    def write_drop_policy(self) -> str:
        return "DROP TTL"

    def create_table(self, table: Table, if_not_exists: bool = False) -> str:
        lines = [self.write_column(column) for column in table.columns]
        lines.append(f"PRIMARY KEY{self.write_key(table.primary_key)}")
        lines += [self.write_foreign_key(key) for key in named_last(table.foreign_keys)]
        lines += [self.write_check(check) for check in named_last(table.checks)]
        lines += [f"SYNONYM ({self.quote_name(synonym)})" for synonym in table.synonyms]
        body = ",\n".join(f"  {line}" for line in lines)
        optional = "IF NOT EXISTS " if if_not_exists else ""
        text = f"CREATE TABLE {optional}{self.quote_name(table.name)} (\n{body}\n)"
        text += write_storage(table.options)
        if table.interleave is not None:
            text += f" {self.write_interleave(table.interleave)}"
        if table.row_deletion_policy is not None:
            text += f" {self.write_policy(table.row_deletion_policy)}"
        return text

    def create_index(self, index: Index, if_not_exists: bool = False) -> str:
        """CREATE INDEX. NULL_FILTERED is written as WHERE ... IS NOT NULL."""
        text = f"CREATE {'UNIQUE ' if index.unique else ''}INDEX"
        # An index is in the schema of its table, which its own name does not repeat.
        name = self.quote_name(split_name(index.name)[1])
        text += f" {'IF NOT EXISTS ' if if_not_exists else ''}{name}"
        text += f" ON {self.quote_name(index.table)} {self.write_key(index.parts)}"
        if index.storing:
            text += f" INCLUDE ({self.quote_columns(index.storing)})"
        text += write_storage(index.options)
        if index.interleave_in:
            text += f" INTERLEAVE IN {self.quote_name(index.interleave_in)}"
        where = index.where_not_null
        if index.null_filtered and not where:
            where = tuple(part.column for part in index.parts)
        return text + self.write_not_null_filter(where)

    def write_key_part(self, part: KeyPart) -> str:
        nulls = f" NULLS {'LAST' if part.descending else 'FIRST'}" if part.other_nulls else ""
        return super().write_key_part(part) + nulls

    def write_stream_options(self, options: Options) -> str:
        return "(" + ", ".join(f"{name} = {value}" for name, value in options) + ")"

    def create_change_stream(self, stream: ChangeStream) -> str:
        text = f"CREATE CHANGE STREAM {self.quote_name(stream.name)}{self.write_watches(stream)}"
        kept = sorted(
            (option for option in stream.options if option[1].lower() != "null"), key=stream_order
        )
        return text + (f" WITH {self.write_stream_options(kept)}" if kept else "")

    def alter_database(self, database: str, options: Options) -> str:
        pairs = tuple(options)
        if len(pairs) != 1:
            raise DdlError(
                "the PostgreSQL dialect sets one database option in a statement: write an"
                f" ALTER DATABASE for each of the {len(pairs)} options"
            )
        ((option, value),) = pairs
        text = "DEFAULT" if value is None else value
        return f"ALTER DATABASE {self.quote_name(database)} SET spanner.{option} = {text}"

    def rename_tables(self, renames: Iterable[tuple[str, str]]) -> str:
        quote = self.quote_name
        return ", ".join(f"ALTER TABLE {quote(o)} RENAME TO {quote(n)}" for o, n in renames)

    def rename_with_synonym(self, new: str, synonym: str) -> str:
        return f"RENAME WITH SYNONYM TO {self.quote_name(new)}"

    def redefine_column(self, column: Column) -> str:
        raise DdlError(
            "the PostgreSQL dialect has no ALTER COLUMN with a whole definition (column"
            f" {column.name}): use TYPE, SET NOT NULL or SET DEFAULT"
        )

    def set_column_options(self, options: Options) -> str:
        if all(name in STORAGE for name, _ in options):
            return self.set_options(options)
        names = ", ".join(name for name, _ in options)
        raise DdlError(
            f"the PostgreSQL dialect has no options of a column ({names}): for commit timestamps"
            " create the column with the type SPANNER.COMMIT_TIMESTAMP"
        )

    def set_options(self, options: Options) -> str:
        ((name, value),) = options
        return f"SET {STORAGE[name]} {'NULL' if value is None else value}"

    def set_not_null(self, not_null: bool) -> str:
        return "SET NOT NULL" if not_null else "DROP NOT NULL"

    def set_type(self, type_: Type) -> str:
        return f"TYPE {self.write_type(type_)}"
