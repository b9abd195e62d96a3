"""CREATE TABLE and ALTER TABLE of GoogleSQL."""

from __future__ import annotations

from dataclasses import replace

from spanner_schema.model import steps
from spanner_schema.model.errors import InvalidDefinitionError
from spanner_schema.model.schema import (
    Check,
    Column,
    ForeignKey,
    Interleave,
    KeyPart,
    OnDelete,
    RowDeletionPolicy,
    Table,
    add_rowid,
)
from spanner_schema.model.steps import Step
from spanner_schema.syntax.clauses import (
    Options,
    read_foreign_key,
    read_interleave,
    read_on_delete,
    read_set_options,
    read_synonym_change,
    read_table_renames,
    starts_constraint,
)
from spanner_schema.syntax.googlesql.parts import (
    read_column,
    read_key_parts,
    read_nullable_options,
    read_options,
    read_row_deletion_policy,
    set_options,
)
from spanner_schema.syntax.reader import TokenReader


class TableBody:
    """What stands between the parentheses of CREATE TABLE."""

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.foreign_keys: list[ForeignKey] = []
        self.checks: list[Check] = []
        self.synonyms: list[str] = []
        self.keys: list[tuple[KeyPart, ...]] = []

    def read(self, reader: TokenReader) -> None:
        """Reads the body, with its parentheses."""
        reader.expect("(")
        while not reader.accept(")"):
            self._read_item(reader)
            if not reader.peek(")"):
                reader.expect(",")

    def _read_item(self, reader: TokenReader) -> None:
        if reader.accept("SYNONYM", "("):
            self.synonyms.append(reader.read_path("a synonym"))
            reader.expect(")")
        elif starts_constraint(reader):
            constraint = read_constraint(reader)
            if isinstance(constraint, Check):
                self.checks.append(constraint)
            else:
                self.foreign_keys.append(constraint)
        elif reader.accept("PRIMARY", "KEY"):
            self.keys.append(read_key_parts(reader))
        else:
            self._read_column(reader)

    def _read_column(self, reader: TokenReader) -> None:
        column = read_column(reader)
        if reader.accept("PRIMARY", "KEY"):
            self.keys.append((KeyPart(column.name),))
            if reader.peek("OPTIONS") and not column.options:
                column = set_options(column, read_options(reader))
        self.columns.append(column)

    def primary_key(self, *, strict: bool) -> tuple[KeyPart, ...]:
        """The key, empty if there is none. Raises InvalidDefinitionError for more than one."""
        if strict and len(self.keys) > 1:
            raise InvalidDefinitionError("Can only specify PRIMARY KEY once.")
        return self.keys[-1] if self.keys else ()


def read_create_table(reader: TokenReader) -> Step:
    """CREATE TABLE, after these words."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.read_path("a table name")
    body = TableBody()
    body.read(reader)
    if reader.accept("PRIMARY", "KEY"):
        body.keys.append(read_key_parts(reader))
    interleave: Interleave | None = None
    policy: RowDeletionPolicy | None = None
    options: Options = ()
    while reader.accept(",") or reader.peek("OPTIONS"):
        if reader.is_strict and interleave is not None and reader.peek("INTERLEAVE"):
            reader.fail("ROW")
        if reader.is_strict and policy is not None and reader.peek("ROW"):
            reader.fail("OPTIONS")
        if reader.peek("INTERLEAVE"):
            interleave = read_interleave(reader)
        elif reader.peek("OPTIONS"):
            options = read_options(reader)
        else:
            policy = read_row_deletion_policy(reader)
    table = Table(
        name,
        tuple(body.columns),
        body.primary_key(strict=reader.is_strict),
        interleave,
        tuple(body.foreign_keys),
        tuple(body.checks),
        policy,
        tuple(body.synonyms),
        options,
    )
    return steps.CreateTable(table if body.keys else add_rowid(table), if_not_exists)


def read_constraint(reader: TokenReader) -> Check | ForeignKey:
    """[CONSTRAINT name] CHECK (...) | FOREIGN KEY ... [[NOT] ENFORCED]."""
    name = reader.read_name() if reader.accept("CONSTRAINT") else None
    if reader.accept("CHECK"):
        return Check(name, reader.read_parenthesized())
    key = read_foreign_key(reader, name)
    enforced = not reader.accept("NOT", "ENFORCED")
    reader.accept("ENFORCED")
    return replace(key, enforced=enforced)


def read_alter_table(reader: TokenReader) -> Step:
    """ALTER TABLE, after these words."""
    if reader.accept("IF", "EXISTS"):
        start = reader.mark()
        table = reader.read_path("a table name")
        reader.reset(start)
        return steps.AlterTableIfExists(table, read_alter_table(reader))
    table = reader.read_path("a table name")
    if (renames := read_table_renames(reader, table)) is not None:
        return renames
    if (synonym := read_synonym_change(reader, table)) is not None:
        return synonym
    if (options := read_set_options(reader)) is not None:
        return steps.SetTableOptions(table, options)
    if reader.accept("ADD"):
        return read_add(reader, table)
    if reader.accept("DROP"):
        return read_drop_from_table(reader, table)
    if reader.accept("REPLACE"):
        policy = read_row_deletion_policy(reader)
        return steps.SetRowDeletionPolicy(table, policy, replaces=True)
    if reader.accept("ALTER"):
        reader.accept("COLUMN")
        return read_alter_column(reader, table)
    reader.expect("SET")
    if reader.peek("ON", "DELETE"):
        return steps.SetOnDelete(table, read_on_delete(reader) or OnDelete.NO_ACTION)
    if reader.peek("INTERLEAVE"):
        return steps.SetInterleave(table, read_interleave(reader))
    return reader.fail("ON DELETE or INTERLEAVE IN")


def read_add(reader: TokenReader, table: str) -> Step:
    """ALTER TABLE t ADD ..., after ADD."""
    if reader.peek("ROW", "DELETION"):
        return steps.SetRowDeletionPolicy(table, read_row_deletion_policy(reader))
    if starts_constraint(reader):
        constraint = read_constraint(reader)
        if isinstance(constraint, Check):
            return steps.AddCheck(table, constraint)
        return steps.AddForeignKey(table, constraint)
    reader.accept("COLUMN")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    return steps.AddColumn(table, read_column(reader), if_not_exists)


def read_drop_from_table(reader: TokenReader, table: str) -> Step:
    """ALTER TABLE t DROP ..., after DROP."""
    if reader.accept("ROW", "DELETION", "POLICY"):
        return steps.SetRowDeletionPolicy(table, None)
    if reader.accept("CONSTRAINT"):
        return steps.DropConstraint(table, reader.read_name("a constraint name"))
    reader.accept("COLUMN")
    return steps.DropColumn(table, reader.read_name("a column name"))


def read_alter_column(reader: TokenReader, table: str) -> Step:
    """ALTER TABLE t ALTER COLUMN c ..., after COLUMN."""
    start = reader.mark()
    name = reader.read_name("a column name")
    if reader.accept("SET", "DEFAULT"):
        return steps.SetDefault(table, name, reader.read_parenthesized())
    if reader.accept("DROP", "DEFAULT"):
        return steps.SetDefault(table, name, None)
    if reader.accept("SET", "ON", "UPDATE"):
        return steps.SetOnUpdate(table, name, reader.read_parenthesized())
    if reader.accept("DROP", "ON", "UPDATE"):
        return steps.SetOnUpdate(table, name, None)
    if reader.accept("ALTER", "IDENTITY"):
        reader.read_rest()
        return steps.OtherStatement("ALTER IDENTITY", reader.text)
    if any(reader.peek(word, "PLACEMENT", "KEY") for word in ("SET", "DROP")):
        reader.read_rest()
        return steps.OtherStatement("ALTER PLACEMENT KEY", reader.text)
    if reader.accept("SET"):
        return steps.SetColumnOptions(table, name, read_nullable_options(reader))
    reader.reset(start)
    return steps.AlterColumn(table, read_column(reader))
