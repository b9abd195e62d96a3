"""CREATE TABLE and ALTER TABLE of the PostgreSQL dialect."""

from __future__ import annotations

from dataclasses import replace

from spanner_schema.model import steps
from spanner_schema.model.errors import DdlError
from spanner_schema.model.names import split_name
from spanner_schema.model.schema import (
    Check,
    Column,
    ForeignKey,
    KeyPart,
    OnDelete,
    Table,
    add_rowid,
)
from spanner_schema.model.steps import Step
from spanner_schema.syntax.clauses import (
    read_foreign_key,
    read_interleave,
    read_on_delete,
    read_set_options,
    read_synonym_change,
    read_table_renames,
    starts_constraint,
)
from spanner_schema.syntax.postgres.parts import (
    accept_immediate,
    read_actions,
    read_column,
    read_expression,
    read_key_parts,
    read_table_options,
    read_ttl,
)
from spanner_schema.syntax.postgres.types import read_type
from spanner_schema.syntax.reader import TokenReader

RESERVED_PREFIX = "pg_"
IDENTITY_CHANGES = (
    *(("RESTART", "COUNTER"), ("SET", "SKIP"), ("SET", "NO"), ("SET", "RESTART")),
    ("SET", "CYCLE"),
)


class PostgreSqlTableBody:
    """What stands between the parentheses of CREATE TABLE."""

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.foreign_keys: list[ForeignKey] = []
        self.checks: list[Check] = []
        self.synonyms: list[str] = []
        self.primary_key: tuple[KeyPart, ...] = ()
        self.has_primary_key = False

    def read(self, reader: TokenReader) -> None:
        """Reads the body, with its parentheses."""
        reader.expect("(")
        while not reader.accept(")"):
            self._read_item(reader)
            if not reader.peek(")"):
                reader.expect(",")

    def _read_item(self, reader: TokenReader) -> None:
        name = reader.read_name() if reader.accept("CONSTRAINT") else None
        if name is None and reader.accept("PRIMARY", "KEY"):
            self._set_primary_key(read_key_parts(reader))
            accept_immediate(reader)
        elif reader.accept("CHECK"):
            self.checks.append(Check(name, reader.read_parenthesized()))
        elif reader.peek("FOREIGN", "KEY"):
            self.foreign_keys.append(read_foreign_key(reader, name, read_actions))
        elif name is not None:
            reader.fail("CHECK or FOREIGN KEY")
        elif reader.accept("SYNONYM", "("):
            self.synonyms.append(reader.read_path("a synonym"))
            reader.expect(")")
        else:
            self._read_column(reader)

    def _read_column(self, reader: TokenReader) -> None:
        """Reads a column, with the constraints of the table in its definition."""
        column, clauses = read_column(reader)
        self.columns.append(column)
        self.checks += clauses.checks
        if clauses.primary_key:
            if clauses.nullable:
                raise DdlError("Nullable <PRIMARY KEY> columns are not supported.")
            self._set_primary_key((KeyPart(column.name),))
        if clauses.references is not None:
            table, columns, action = clauses.references
            self.foreign_keys.append(ForeignKey(None, (column.name,), table, columns, action))

    def _set_primary_key(self, key: tuple[KeyPart, ...]) -> None:
        if self.has_primary_key:
            raise DdlError("Primary key can be only defined once.")
        self.primary_key, self.has_primary_key = key, True

    def complete_columns(self) -> tuple[Column, ...]:
        """The columns; in PostgreSQL those of the primary key are NOT NULL without saying so."""
        names = {part.column for part in self.primary_key}
        return tuple(replace(c, not_null=True) if c.name in names else c for c in self.columns)


def read_create_table(reader: TokenReader) -> Step:
    """CREATE TABLE, after these words."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.read_path("a table name")
    body = PostgreSqlTableBody()
    body.read(reader)
    if split_name(name)[1].startswith(RESERVED_PREFIX):
        raise DdlError(f"'{RESERVED_PREFIX}' is not supported as a prefix for a table name.")
    options = read_table_options(reader)
    interleave = read_interleave(reader) if reader.peek("INTERLEAVE") else None
    policy = read_ttl(reader) if reader.peek("TTL") else None
    table = Table(
        name,
        body.complete_columns(),
        body.primary_key,
        interleave,
        tuple(body.foreign_keys),
        tuple(body.checks),
        policy,
        tuple(body.synonyms),
        options + read_table_options(reader),
    )
    return steps.CreateTable(table if body.has_primary_key else add_rowid(table), if_not_exists)


def read_alter_table(reader: TokenReader) -> Step:
    """ALTER TABLE, after these words."""
    reader.accept("IF", "EXISTS")
    reader.accept("ONLY")
    table = reader.read_path("a table name")
    if (renames := read_table_renames(reader, table)) is not None:
        return renames
    if (synonym := read_synonym_change(reader, table)) is not None:
        return synonym
    if (options := read_set_options(reader)) is not None:
        return steps.SetTableOptions(table, options)
    if reader.peek("ADD", "TTL") or reader.peek("ALTER", "TTL"):
        replaces = reader.advance().text.upper() == "ALTER"
        return steps.SetRowDeletionPolicy(table, read_ttl(reader), replaces)
    if reader.accept("DROP", "TTL"):
        return steps.SetRowDeletionPolicy(table, None)
    if reader.accept("ADD"):
        return read_add(reader, table)
    if reader.accept("DROP", "CONSTRAINT"):
        constraint = reader.read_name("a constraint name")
        if reader.peek("CASCADE"):
            raise DdlError(
                "Only <RESTRICT> drop mode is supported in <ALTER> statement operations."
            )
        reader.accept("RESTRICT")
        return steps.DropConstraint(table, constraint)
    if reader.accept("DROP"):
        reader.accept("COLUMN")
        column = reader.read_name("a column name")
        reader.accept("RESTRICT")
        return steps.DropColumn(table, column)
    if reader.accept("ALTER"):
        reader.accept("COLUMN")
        return read_alter_column(reader, table)
    reader.expect("SET")
    if reader.peek("ON", "DELETE"):
        return steps.SetOnDelete(table, read_on_delete(reader) or OnDelete.NO_ACTION)
    return steps.SetInterleave(table, read_interleave(reader))


def read_add(reader: TokenReader, table: str) -> Step:
    """ALTER TABLE t ADD ..., after ADD."""
    if starts_constraint(reader):
        name = reader.read_name() if reader.accept("CONSTRAINT") else None
        if reader.accept("CHECK"):
            return steps.AddCheck(table, Check(name, reader.read_parenthesized()))
        return steps.AddForeignKey(table, read_foreign_key(reader, name, read_actions))
    reader.accept("COLUMN")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    return steps.AddColumn(table, read_column(reader)[0], if_not_exists)


def read_alter_column(reader: TokenReader, table: str) -> Step:
    """ALTER TABLE t ALTER COLUMN c ..., after COLUMN."""
    name = reader.read_name("a column name")
    if reader.accept("SET", "DEFAULT"):
        return steps.SetDefault(table, name, read_expression(reader))
    if reader.accept("DROP", "DEFAULT"):
        return steps.SetDefault(table, name, None)
    if reader.accept("SET", "ON", "UPDATE"):
        return steps.SetOnUpdate(table, name, read_expression(reader))
    if reader.accept("DROP", "ON", "UPDATE"):
        return steps.SetOnUpdate(table, name, None)
    if reader.accept("SET", "NOT", "NULL"):
        return steps.SetNotNull(table, name, True)
    if reader.accept("DROP", "NOT", "NULL"):
        return steps.SetNotNull(table, name, False)
    if (options := read_set_options(reader)) is not None:
        return steps.SetColumnOptions(table, name, options)
    if any(reader.peek(*words) for words in IDENTITY_CHANGES):
        reader.read_rest()
        return steps.OtherStatement("ALTER IDENTITY", reader.text)
    reader.accept("SET", "DATA")
    reader.expect("TYPE")
    type_ = read_type(reader)[0]
    if not reader.accept(","):
        return steps.SetType(table, name, type_)
    reader.expect("ALTER")
    reader.accept("COLUMN")
    if reader.read_name("a column name") != name:
        raise DdlError(
            "Both actions (<SET DATA TYPE> and <{SET|DROP} NOT NULL>) of <ALTER TABLE ALTER COLUMN>"
            " statement should be applied to the same column."
        )
    not_null = reader.accept("SET")
    if not not_null:
        reader.expect("DROP")
    reader.expect("NOT", "NULL")
    return steps.SetType(table, name, type_, not_null)
