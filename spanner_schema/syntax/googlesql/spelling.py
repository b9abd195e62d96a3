"""How GoogleSQL writes DDL: as Spanner itself prints it."""

from __future__ import annotations

import re
from collections.abc import Iterable

from spanner_schema.model.column_types import COLUMN_TYPES, Type, TypeCode, TypeSyntax
from spanner_schema.model.errors import DdlError
from spanner_schema.model.names import split_name
from spanner_schema.model.schema import ChangeStream, Column, Index, RowDeletionPolicy, Table
from spanner_schema.syntax.googlesql.reserved import QUOTED
from spanner_schema.syntax.spelling import Options, Spelling

PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
ROW = "`the row`"
"""No column has a space in its name."""


def quote_part(part: str) -> str:
    """One part of a name, in backticks where it is reserved or not a plain word."""
    if PLAIN_NAME.match(part) and part.upper() not in QUOTED:
        return part
    return "`" + part.replace("\\", "\\\\").replace("`", "\\`") + "`"


def quote_type_name(name: str) -> str:
    """The name of a message or an enum: as a whole in backticks where a part of it needs them."""
    quoted = [quote_part(part) for part in name.split(".")]
    plain = len(quoted) > 1 and not any(part.startswith("`") for part in quoted)
    return name if plain else f"`{name}`"


def write_options(options: Options) -> str:
    """OPTIONS (...), or nothing."""
    pairs = [f"{name} = {'null' if value is None else value}" for name, value in options]
    return f"OPTIONS ({', '.join(pairs)})" if pairs else ""


class GoogleSqlSpelling(Spelling):
    """GoogleSQL."""

    key_separator = ""
    skip_range_separator = ", "
    stored_column = "STORED COLUMN"
    stored_columns = "STORING"
    commit_timestamp = "PENDING_COMMIT_TIMESTAMP()"
    bit_reversed = "sequence_kind = 'bit_reversed_positive'"

    def quote_column(self, name: str) -> str:
        return quote_part(name)

    def write_index_hint(self, index: str) -> str:
        """Spanner takes an index of a named schema as one string; a path would be an expression."""
        value = f'"{index}"' if "." in index else self.quote_name(index)
        return f"@{{FORCE_INDEX={value}}}"

    def write_row_alias(self, table: str, columns: Iterable[str]) -> str:
        """In GoogleSQL the name of a table means its row, and hides a column of the same name."""
        name = split_name(table)[1].casefold()
        return f" AS {ROW}" if name in {column.casefold() for column in columns} else ""

    def write_null_filter(self, columns: Iterable[str]) -> str:
        return "NULL_FILTERED"

    def write_type(self, type_: Type) -> str:
        if type_.code is TypeCode.ARRAY and type_.element is not None:
            vector = f"(vector_length=>{type_.vector_length})" if type_.vector_length else ""
            return f"ARRAY<{self.write_type(type_.element)}>{vector}"
        if type_.code in {TypeCode.PROTO, TypeCode.ENUM}:
            return quote_type_name(type_.proto_name or "")
        if type_.code is TypeCode.STRUCT:
            fields = (f"{field.name} {self.write_type(field.type)}" for field in type_.fields)
            return f"STRUCT<{', '.join(fields)}>"
        spelling = COLUMN_TYPES[type_.code].googlesql
        if spelling is None:
            raise DdlError(f"GoogleSQL has no type {type_.code.value}")
        length = "MAX" if type_.length is None else type_.length
        return str(type_.code.value) + (f"({length})" if spelling is TypeSyntax.SIZED else "")

    def write_column_type(self, column: Column) -> str:
        return self.write_type(column.type)

    def write_generated(self, column: Column) -> str:
        return f"AS ({column.generated})" + (" STORED" if column.stored else "")

    def write_column_options(self, column: Column) -> str:
        options = list(column.options)
        if column.allow_commit_timestamp:
            options.insert(0, ("allow_commit_timestamp", "true"))
        return f" {write_options(options)}" if options else ""

    def write_policy(self, policy: RowDeletionPolicy) -> str:
        column = self.quote_column(policy.column)
        return f"ROW DELETION POLICY (OLDER_THAN({column}, INTERVAL {policy.days} DAY))"

    def write_drop_policy(self) -> str:
        return "DROP ROW DELETION POLICY"

    def create_table(self, table: Table, if_not_exists: bool = False) -> str:
        lines = [self.write_column(column) for column in table.columns]
        lines += [self.write_foreign_key(key) for key in table.foreign_keys]
        lines += [self.write_check(check) for check in table.checks]
        lines += [f"SYNONYM({self.quote_name(synonym)})" for synonym in table.synonyms]
        body = "".join(f"  {line},\n" for line in lines)
        optional = "IF NOT EXISTS " if if_not_exists else ""
        text = f"CREATE TABLE {optional}{self.quote_name(table.name)} (\n{body})"
        text += f" PRIMARY KEY{self.write_key(table.primary_key)}"
        if table.interleave is not None:
            text += f",\n  {self.write_interleave(table.interleave)}"
        if table.row_deletion_policy is not None:
            text += f",\n  {self.write_policy(table.row_deletion_policy)}"
        return text + (f", {write_options(table.options)}" if table.options else "")

    def create_index(self, index: Index, if_not_exists: bool = False) -> str:
        text = "CREATE "
        text += "UNIQUE " if index.unique else ""
        text += "NULL_FILTERED " if index.null_filtered else ""
        text += f"INDEX {'IF NOT EXISTS ' if if_not_exists else ''}{self.quote_name(index.name)}"
        text += f" ON {self.quote_name(index.table)}{self.write_key(index.parts)}"
        if index.storing:
            text += f" STORING ({self.quote_columns(index.storing)})"
        text += self.write_not_null_filter(index.where_not_null)
        if index.interleave_in:
            text += f", INTERLEAVE IN {self.quote_name(index.interleave_in)}"
        return text + (f" {write_options(index.options)}" if index.options else "")

    def write_stream_options(self, options: Options) -> str:
        return write_options(options)

    def create_change_stream(self, stream: ChangeStream) -> str:
        text = f"CREATE CHANGE STREAM {self.quote_name(stream.name)}{self.write_watches(stream)}"
        return text + (f" {write_options(stream.options)}" if stream.options else "")

    def alter_database(self, database: str, options: Options) -> str:
        return f"ALTER DATABASE {self.quote_name(database)} SET {write_options(options)}"

    def rename_tables(self, renames: Iterable[tuple[str, str]]) -> str:
        pairs = (f"{self.quote_name(old)} TO {self.quote_name(new)}" for old, new in renames)
        return f"RENAME TABLE {', '.join(pairs)}"

    def rename_with_synonym(self, new: str, synonym: str) -> str:
        return f"RENAME TO {self.quote_name(new)}, ADD SYNONYM {self.quote_name(synonym)}"

    def redefine_column(self, column: Column) -> str:
        return self.write_column(column)

    def set_column_options(self, options: Options) -> str:
        return f"SET {write_options(options)}"

    def set_options(self, options: Options) -> str:
        return f"SET {write_options(options)}"

    def set_not_null(self, not_null: bool) -> str:
        raise DdlError(
            f"GoogleSQL has no {'SET' if not_null else 'DROP'} NOT NULL: use ALTER COLUMN with the"
            " whole definition of the column"
        )

    def set_type(self, type_: Type) -> str:
        raise DdlError(
            f"GoogleSQL has no ALTER COLUMN TYPE {self.write_type(type_)}: use ALTER COLUMN with"
            " the whole definition of the column"
        )
