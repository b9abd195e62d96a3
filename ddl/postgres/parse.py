"""DDL text of Spanner's PostgreSQL dialect -> steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ddl import steps
from ddl.parse_parts import OTHER_KINDS, VERBATIM_KINDS
from ddl.postgres.parts import (
    column,
    expression,
    foreign_key,
    interleave,
    key_parts,
    on_delete,
    options,
    ttl,
    watches,
)
from ddl.postgres.types import type_of
from ddl.reader import Reader
from ddl.schema import ChangeStream, Check, Column, ForeignKey, Index, KeyPart, Table, Verbatim
from ddl.steps import Step

IDENTITY_CHANGES = (
    ("RESTART",),
    ("SET", "SKIP"),
    ("SET", "NO"),
)


def statement(reader: Reader) -> Step:
    """Any statement, by its first word."""
    readers: dict[str, Callable[[Reader], Step]] = {"CREATE": create, "ALTER": alter, "DROP": drop}
    for word, read in readers.items():
        if reader.accept(word):
            return read(reader)
    if any(reader.peek(word) for word in OTHER_KINDS):
        kind = reader.advance().text.upper()
        reader.rest()
        return steps.OtherStatement(kind, reader.text)
    return reader.fail("CREATE, ALTER, DROP, GRANT, REVOKE, RENAME or ANALYZE")


def create(reader: Reader) -> Step:
    """CREATE ..."""
    if reader.accept("TABLE"):
        return create_table(reader)
    if reader.accept("CHANGE", "STREAM"):
        reader.accept("IF", "NOT", "EXISTS")
        name = reader.path()
        tables, for_all = watches(reader) if reader.accept("FOR") else ((), False)
        given = options(reader) if reader.accept("WITH") else ()
        return steps.CreateChangeStream(ChangeStream(name, tables, for_all, given))
    if reader.accept("SCHEMA"):
        optional = reader.accept("IF", "NOT", "EXISTS")
        return steps.CreateNamedSchema(reader.path(), optional)
    if reader.peek("UNIQUE") or reader.peek("INDEX"):
        return create_index(reader)
    reader.accept("OR", "REPLACE")
    for kind in VERBATIM_KINDS:
        if reader.accept(*kind.split()):
            reader.accept("IF", "NOT", "EXISTS")
            name = reader.path()
            reader.rest()
            return steps.CreateVerbatim(Verbatim(kind, name, reader.text))
    return reader.fail("TABLE, INDEX, CHANGE STREAM, SCHEMA, VIEW, SEQUENCE or another kind")


class Body:
    """What stands between the parentheses of CREATE TABLE."""

    def __init__(self) -> None:
        self.columns: list[Column] = []
        self.keys: list[ForeignKey] = []
        self.checks: list[Check] = []
        self.primary: tuple[KeyPart, ...] = ()

    def read(self, reader: Reader) -> None:
        """A column or a constraint."""
        name = reader.name() if reader.accept("CONSTRAINT") else None
        if reader.accept("PRIMARY", "KEY"):
            self.primary = key_parts(reader)
        elif reader.accept("CHECK"):
            self.checks.append(Check(name, reader.parenthesised()))
        elif reader.peek("FOREIGN", "KEY"):
            self.keys.append(foreign_key(reader, name))
        else:
            self.read_column(reader)

    def read_column(self, reader: Reader) -> None:
        """A column, with what it says of the table."""
        found, clauses = column(reader)
        self.columns.append(found)
        self.checks += clauses.checks
        if clauses.primary:
            self.primary = (KeyPart(found.name),)
        if clauses.references is not None:
            table, columns, action = clauses.references
            self.keys.append(ForeignKey(None, (found.name,), table, columns, action))

    def not_null_keys(self) -> tuple[Column, ...]:
        """PostgreSQL: a column of the primary key is NOT NULL though nobody says so."""
        names = {part.column for part in self.primary}
        return tuple(replace(c, not_null=True) if c.name in names else c for c in self.columns)


def create_table(reader: Reader) -> Step:
    """CREATE TABLE, after these words."""
    optional = reader.accept("IF", "NOT", "EXISTS")
    name = reader.path("a table name")
    body = Body()
    reader.expect("(")
    while not reader.accept(")"):
        body.read(reader)
        if not reader.peek(")"):
            reader.expect(",")
    parent = interleave(reader) if reader.peek("INTERLEAVE") else None
    policy = ttl(reader) if reader.peek("TTL") else None
    table = Table(
        name,
        body.not_null_keys(),
        body.primary,
        parent,
        tuple(body.keys),
        tuple(body.checks),
        policy,
    )
    return steps.CreateTable(table, optional)


def create_index(reader: Reader) -> Step:
    """CREATE [UNIQUE] INDEX, after CREATE."""
    unique = reader.accept("UNIQUE")
    reader.expect("INDEX")
    optional = reader.accept("IF", "NOT", "EXISTS")
    name = reader.path("an index name")
    reader.expect("ON")
    table = reader.path("a table name")
    parts = key_parts(reader)
    included = reader.names() if reader.accept("INCLUDE") else ()
    parent = reader.path("a table name") if reader.accept("INTERLEAVE", "IN") else None
    where: list[str] = []
    if reader.accept("WHERE"):
        while not where or reader.accept("AND"):
            where.append(reader.name("a column name"))
            reader.expect("IS", "NOT", "NULL")
    index = Index(
        name,
        table,
        parts,
        included,
        unique,
        where_not_null=tuple(where),
        interleave_in=parent,
    )
    return steps.CreateIndex(index, optional)


def drop(reader: Reader) -> Step:
    """DROP ..."""
    if reader.accept("CHANGE", "STREAM"):
        reader.accept("IF", "EXISTS")
        return steps.DropChangeStream(reader.path())
    plain: dict[str, Callable[[str, bool], Step]] = {
        "TABLE": steps.DropTable,
        "INDEX": steps.DropIndex,
        "SCHEMA": steps.DropNamedSchema,
    }
    for word, make in plain.items():
        if reader.accept(word):
            optional = reader.accept("IF", "EXISTS")
            return make(reader.path(), optional)
    for kind in VERBATIM_KINDS:
        if reader.accept(*kind.split()):
            optional = reader.accept("IF", "EXISTS")
            return steps.DropVerbatim(kind, reader.path(), optional)
    return reader.fail("TABLE, INDEX, CHANGE STREAM, SCHEMA, VIEW, SEQUENCE or another kind")


def alter(reader: Reader) -> Step:
    """ALTER ..."""
    if reader.accept("TABLE"):
        reader.accept("IF", "EXISTS")
        reader.accept("ONLY")
        return alter_table(reader, reader.path("a table name"))
    if reader.accept("INDEX"):
        name = reader.path("an index name")
        add = reader.accept("ADD")
        if not add:
            reader.expect("DROP")
        reader.expect("INCLUDE", "COLUMN")
        return steps.AlterIndexStoring(name, reader.name("a column name"), add)
    if reader.accept("CHANGE", "STREAM"):
        return alter_change_stream(reader)
    if reader.accept("DATABASE"):
        return alter_database(reader)
    for kind in VERBATIM_KINDS:
        if reader.peek(*kind.split()):
            reader.rest()
            return steps.OtherStatement(f"ALTER {kind}", reader.text)
    return reader.fail("TABLE, INDEX, CHANGE STREAM, DATABASE or another kind of object")


def alter_database(reader: Reader) -> Step:
    """ALTER DATABASE d SET spanner.option = value."""
    name = reader.name("a database name")
    reader.expect("SET")
    option = reader.path("an option").removeprefix("spanner.")
    if not reader.accept("="):
        reader.expect("TO")
    value = reader.advance().text
    return steps.AlterDatabase(name, ((option, None if value.upper() == "DEFAULT" else value),))


def alter_change_stream(reader: Reader) -> Step:
    """ALTER CHANGE STREAM s SET FOR ... | DROP FOR ALL | SET (...)."""
    name = reader.path()
    if reader.accept("DROP", "FOR", "ALL"):
        return steps.AlterChangeStream(ChangeStream(name), frozenset({"watches"}))
    if reader.accept("FOR"):
        tables, for_all = watches(reader)
        reader.expect("SET")
        both = ChangeStream(name, tables, for_all, options(reader))
        return steps.AlterChangeStream(both, frozenset({"watches", "options"}))
    reader.expect("SET")
    if reader.accept("FOR"):
        tables, for_all = watches(reader)
        return steps.AlterChangeStream(ChangeStream(name, tables, for_all), frozenset({"watches"}))
    changed = ChangeStream(name, options=options(reader))
    return steps.AlterChangeStream(changed, frozenset({"options"}))


def alter_table(reader: Reader, table: str) -> Step:
    """ALTER TABLE t, after the name."""
    if reader.peek("ADD", "TTL") or reader.peek("ALTER", "TTL"):
        reader.advance()
        return steps.SetRowDeletionPolicy(table, ttl(reader))
    if reader.accept("DROP", "TTL"):
        return steps.SetRowDeletionPolicy(table, None)
    if reader.accept("ADD"):
        return add_to_table(reader, table)
    if reader.accept("DROP", "CONSTRAINT"):
        return steps.DropConstraint(table, reader.name("a constraint name"))
    if reader.accept("DROP"):
        reader.accept("COLUMN")
        return steps.DropColumn(table, reader.name("a column name"))
    if reader.accept("ALTER"):
        reader.accept("COLUMN")
        return alter_column(reader, table)
    reader.expect("SET")
    if reader.peek("ON", "DELETE"):
        return steps.SetOnDelete(table, on_delete(reader))
    return steps.SetInterleave(table, interleave(reader))


def add_to_table(reader: Reader, table: str) -> Step:
    """ALTER TABLE t ADD ..."""
    if reader.peek("CONSTRAINT") or reader.peek("CHECK", "(") or reader.peek("FOREIGN", "KEY"):
        name = reader.name() if reader.accept("CONSTRAINT") else None
        if reader.accept("CHECK"):
            return steps.AddCheck(table, Check(name, reader.parenthesised()))
        return steps.AddForeignKey(table, foreign_key(reader, name))
    reader.accept("COLUMN")
    optional = reader.accept("IF", "NOT", "EXISTS")
    return steps.AddColumn(table, column(reader)[0], optional)


def alter_column(reader: Reader, table: str) -> Step:
    """ALTER TABLE t ALTER COLUMN c ..."""
    name = reader.name("a column name")
    if reader.accept("SET", "DEFAULT"):
        return steps.SetDefault(table, name, expression(reader))
    if reader.accept("DROP", "DEFAULT"):
        return steps.SetDefault(table, name, None)
    if reader.accept("SET", "ON", "UPDATE"):
        return steps.SetOnUpdate(table, name, expression(reader))
    if reader.accept("DROP", "ON", "UPDATE"):
        return steps.SetOnUpdate(table, name, None)
    for words, wanted in ((("SET", "NOT", "NULL"), True), (("DROP", "NOT", "NULL"), False)):
        if reader.accept(*words):
            return steps.SetNotNull(table, name, wanted)
    if any(reader.peek(*words) for words in IDENTITY_CHANGES):
        reader.rest()
        return steps.OtherStatement("ALTER IDENTITY", reader.text)
    reader.accept("SET", "DATA")
    reader.expect("TYPE")
    return steps.SetType(table, name, type_of(reader)[0])
