"""DDL text of Spanner's GoogleSQL -> steps and schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ddl import steps
from ddl.errors import DdlSyntaxError
from ddl.evolve import apply_step
from ddl.parse_parts import (
    OTHER_KINDS,
    VERBATIM_KINDS,
    column,
    foreign_key,
    interleave,
    key_parts,
    on_delete,
    options,
    row_deletion_policy,
    watches,
)
from ddl.postgres import parse as postgres
from ddl.reader import Reader
from ddl.schema import (
    ChangeStream,
    Check,
    Column,
    Dialect,
    ForeignKey,
    Index,
    KeyPart,
    Schema,
    Table,
    Verbatim,
)
from ddl.steps import Step
from ddl.tokens import place, split


def parse_statement(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> Step:
    """One DDL statement; a semicolon at its end is no error.

    Raises DdlSyntaxError with line, column and what was expected.
    """
    found = split(text, dialect)
    if not found:
        raise DdlSyntaxError(1, 1, "a statement", "nothing")
    if len(found) > 1:
        raise DdlSyntaxError(*place(text, found[1][1]), "the end of the statement", "another one")
    reader = Reader(found[0][0], dialect)
    step = statement(reader) if dialect is Dialect.GOOGLESQL else postgres.statement(reader)
    reader.end()
    return step


def parse_script(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> list[Step]:
    """Statements separated by semicolons."""
    return [parse_statement(part, dialect) for part, _ in split(text, dialect)]


def parse_schema(statements: str | Iterable[str], dialect: Dialect = Dialect.GOOGLESQL) -> Schema:
    """The schema that the statements make out of an empty database."""
    text = statements if isinstance(statements, str) else ";\n".join(statements)
    schema = Schema(dialect=dialect)
    for step in parse_script(text, dialect):
        schema = apply_step(schema, step)
    return schema


def statement(reader: Reader) -> Step:
    """Any statement, by its first words."""
    for words, read in STATEMENTS:
        if reader.peek(*words):
            return read(reader)
    return reader.fail("CREATE, ALTER, DROP, GRANT, REVOKE, RENAME or ANALYZE")


def create(reader: Reader) -> Step:
    """CREATE ..."""
    text = reader.text
    reader.expect("CREATE")
    if reader.accept("TABLE"):
        return create_table(reader)
    if reader.accept("CHANGE", "STREAM"):
        return create_change_stream(reader)
    if reader.accept("SCHEMA"):
        optional = reader.accept("IF", "NOT", "EXISTS")
        return steps.CreateNamedSchema(reader.path(), optional)
    if reader.peek("UNIQUE") or reader.peek("NULL_FILTERED") or reader.peek("INDEX"):
        return create_index(reader)
    reader.accept("OR", "REPLACE")
    for kind in VERBATIM_KINDS:
        if reader.accept(*kind.split()):
            reader.accept("IF", "NOT", "EXISTS")
            name = "" if kind == "PROTO BUNDLE" else reader.path()
            reader.rest()
            return steps.CreateVerbatim(Verbatim(kind, name, text))
    return reader.fail(
        "TABLE, INDEX, CHANGE STREAM, SCHEMA, VIEW, SEQUENCE or another kind of object"
    )


def create_table(reader: Reader) -> Step:
    """CREATE TABLE, after these words."""
    optional = reader.accept("IF", "NOT", "EXISTS")
    name = reader.path("a table name")
    columns: list[Column] = []
    checks: list[Check] = []
    keys: list[ForeignKey] = []
    inline_key: list[KeyPart] = []
    synonyms: list[str] = []
    reader.expect("(")
    while not reader.accept(")"):
        if reader.peek("SYNONYM", "("):
            reader.expect("SYNONYM", "(")
            synonyms.append(reader.name())
            reader.expect(")")
        elif starts_constraint(reader):
            item = constraint(reader)
            checks += [item] if isinstance(item, Check) else []
            keys += [item] if isinstance(item, ForeignKey) else []
        elif reader.accept("PRIMARY", "KEY"):
            inline_key += key_parts(reader)
        else:
            columns.append(column(reader))
            if reader.accept("PRIMARY", "KEY"):
                inline_key.append(KeyPart(columns[-1].name))
        if not reader.peek(")"):
            reader.expect(",")
    primary_key = key_parts(reader) if reader.accept("PRIMARY", "KEY") else tuple(inline_key)
    parent, policy = None, None
    table_options: tuple[tuple[str, str], ...] = ()
    while reader.accept(","):
        if reader.peek("INTERLEAVE"):
            parent = interleave(reader)
        else:
            policy = row_deletion_policy(reader)
    if reader.peek("OPTIONS"):
        table_options = options(reader)
    table = Table(
        name,
        tuple(columns),
        primary_key,
        parent,
        tuple(keys),
        tuple(checks),
        policy,
        tuple(synonyms),
        table_options,
    )
    return steps.CreateTable(table, optional)


def starts_constraint(reader: Reader) -> bool:
    """True at CONSTRAINT, FOREIGN KEY or CHECK ( in a table's body."""
    return reader.peek("CONSTRAINT") or reader.peek("FOREIGN", "KEY") or reader.peek("CHECK", "(")


def constraint(reader: Reader) -> Check | ForeignKey:
    """[CONSTRAINT name] CHECK (...) | FOREIGN KEY ..."""
    name = reader.name() if reader.accept("CONSTRAINT") else None
    if reader.accept("CHECK"):
        return Check(name, reader.parenthesised())
    return foreign_key(reader, name)


def create_index(reader: Reader) -> Step:
    """CREATE [UNIQUE] [NULL_FILTERED] INDEX, after CREATE."""
    unique = reader.accept("UNIQUE")
    null_filtered = reader.accept("NULL_FILTERED")
    reader.expect("INDEX")
    optional = reader.accept("IF", "NOT", "EXISTS")
    name = reader.path("an index name")
    reader.expect("ON")
    table = reader.path("a table name")
    parts = key_parts(reader)
    storing = reader.names() if reader.accept("STORING") else ()
    where = not_null_columns(reader) if reader.accept("WHERE") else ()
    parent = None
    if reader.accept(",", "INTERLEAVE", "IN"):
        parent = reader.path("a table name")
    index_options = options(reader) if reader.peek("OPTIONS") else ()
    return steps.CreateIndex(
        Index(name, table, parts, storing, unique, null_filtered, where, parent, index_options),
        optional,
    )


def not_null_columns(reader: Reader) -> tuple[str, ...]:
    """a IS NOT NULL AND b IS NOT NULL ..."""
    names = [reader.name("a column name")]
    reader.expect("IS", "NOT", "NULL")
    while reader.accept("AND"):
        names.append(reader.name("a column name"))
        reader.expect("IS", "NOT", "NULL")
    return tuple(names)


def create_change_stream(reader: Reader) -> Step:
    """CREATE CHANGE STREAM, after these words."""
    name = reader.path()
    tables, for_all = watches(reader) if reader.accept("FOR") else ((), False)
    stream_options = options(reader) if reader.peek("OPTIONS") else ()
    return steps.CreateChangeStream(ChangeStream(name, tables, for_all, stream_options))


def drop(reader: Reader) -> Step:
    """DROP ..."""
    reader.expect("DROP")
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
            name = "" if kind == "PROTO BUNDLE" else reader.path()
            return steps.DropVerbatim(kind, name, optional)
    return reader.fail(
        "TABLE, INDEX, CHANGE STREAM, SCHEMA, VIEW, SEQUENCE or another kind of object"
    )


def other(reader: Reader) -> Step:
    """A statement that the model does not look into."""
    kind = reader.advance().text.upper()
    reader.rest()
    return steps.OtherStatement(kind, reader.text)


def alter(reader: Reader) -> Step:
    """ALTER ..."""
    text = reader.text
    reader.expect("ALTER")
    if reader.accept("TABLE"):
        return alter_table(reader)
    if reader.accept("DATABASE"):
        database = reader.name("a database name")
        reader.expect("SET")
        return steps.AlterDatabase(database, nullable(options(reader)))
    if reader.accept("INDEX"):
        return alter_index(reader)
    if reader.accept("CHANGE", "STREAM"):
        return alter_change_stream(reader)
    for kind in VERBATIM_KINDS:
        if reader.peek(*kind.split()):
            reader.rest()
            return steps.OtherStatement(f"ALTER {kind}", text)
    return reader.fail("TABLE, DATABASE, INDEX, CHANGE STREAM or another kind of object")


def alter_index(reader: Reader) -> Step:
    """ALTER INDEX i ADD | DROP STORED COLUMN c."""
    name = reader.path("an index name")
    add = reader.accept("ADD")
    if not add:
        reader.expect("DROP")
    reader.expect("STORED", "COLUMN")
    return steps.AlterIndexStoring(name, reader.name("a column name"), add)


def alter_change_stream(reader: Reader) -> Step:
    """ALTER CHANGE STREAM s SET FOR ... | DROP FOR ALL | SET OPTIONS (...)."""
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
    return steps.AlterChangeStream(
        ChangeStream(name, options=options(reader)), frozenset({"options"})
    )


def alter_table(reader: Reader) -> Step:
    """ALTER TABLE, after these words."""
    table = reader.path("a table name")
    if reader.accept("ADD"):
        return add_to_table(reader, table)
    if reader.accept("DROP"):
        return drop_from_table(reader, table)
    if reader.accept("REPLACE"):
        return steps.SetRowDeletionPolicy(table, row_deletion_policy(reader))
    if reader.accept("ALTER"):
        reader.accept("COLUMN")
        return alter_column(reader, table)
    reader.expect("SET")
    if reader.peek("ON", "DELETE"):
        return steps.SetOnDelete(table, on_delete(reader))
    if reader.peek("INTERLEAVE"):
        return steps.SetInterleave(table, interleave(reader))
    return reader.fail("ON DELETE or INTERLEAVE IN")


def add_to_table(reader: Reader, table: str) -> Step:
    """ALTER TABLE t ADD ..."""
    if reader.peek("ROW", "DELETION"):
        return steps.SetRowDeletionPolicy(table, row_deletion_policy(reader))
    if starts_constraint(reader):
        item = constraint(reader)
        if isinstance(item, Check):
            return steps.AddCheck(table, item)
        return steps.AddForeignKey(table, item)
    reader.accept("COLUMN")
    optional = reader.accept("IF", "NOT", "EXISTS")
    return steps.AddColumn(table, column(reader), optional)


def drop_from_table(reader: Reader, table: str) -> Step:
    """ALTER TABLE t DROP ..."""
    if reader.accept("ROW", "DELETION", "POLICY"):
        return steps.SetRowDeletionPolicy(table, None)
    if reader.accept("CONSTRAINT"):
        return steps.DropConstraint(table, reader.name("a constraint name"))
    reader.accept("COLUMN")
    return steps.DropColumn(table, reader.name("a column name"))


def alter_column(reader: Reader, table: str) -> Step:
    """ALTER TABLE t ALTER COLUMN c ..."""
    start = reader.mark()
    name = reader.name("a column name")
    if reader.accept("SET", "DEFAULT"):
        return steps.SetDefault(table, name, reader.parenthesised())
    if reader.accept("DROP", "DEFAULT"):
        return steps.SetDefault(table, name, None)
    if reader.accept("SET", "ON", "UPDATE"):
        return steps.SetOnUpdate(table, name, reader.parenthesised())
    if reader.accept("DROP", "ON", "UPDATE"):
        return steps.SetOnUpdate(table, name, None)
    if reader.accept("ALTER", "IDENTITY"):
        reader.rest()
        return steps.OtherStatement("ALTER IDENTITY", reader.text)
    if reader.accept("SET"):
        return steps.SetColumnOptions(table, name, nullable(options(reader)))
    reader.reset(start)
    return steps.AlterColumn(table, column(reader))


def nullable(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str | None], ...]:
    """Options in which the word null takes one away."""
    return tuple((name, None if value.upper() == "NULL" else value) for name, value in pairs)


STATEMENTS: tuple[tuple[tuple[str, ...], Callable[[Reader], Step]], ...] = (
    (("CREATE",), create),
    (("ALTER",), alter),
    (("DROP",), drop),
    *(((word,), other) for word in OTHER_KINDS),
)
