"""The clauses and statements that both dialects read alike."""

from __future__ import annotations

from collections.abc import Callable

from spanner_schema.model import steps
from spanner_schema.model.schema import (
    ChangeStream,
    ChangeStreamTable,
    Dialect,
    ForeignKey,
    Interleave,
    OnDelete,
    Verbatim,
)
from spanner_schema.model.steps import Step
from spanner_schema.syntax.reader import TokenReader
from spanner_schema.syntax.tokens import TokenKind

VERBATIM_KINDS = (
    "PROTO BUNDLE",
    "PROPERTY GRAPH",
    "SEARCH INDEX",
    "VECTOR INDEX",
    "LOCALITY GROUP",
    "SEQUENCE",
    "VIEW",
    "MODEL",
    "ROLE",
    "FUNCTION",
    "PLACEMENT",
)
OPTION_WORDS = {("LOCALITY", "GROUP"): "locality_group", ("COLUMNAR", "POLICY"): "columnar_policy"}
"""Options that have keywords of their own in the PostgreSQL dialect."""
OTHER_KINDS = ("GRANT", "REVOKE", "ANALYZE", "RENAME")
EXPECTED_KIND = "TABLE, INDEX, CHANGE STREAM, SCHEMA, VIEW, SEQUENCE or another kind of object"

Options = tuple[tuple[str, str], ...]
NullableOptions = tuple[tuple[str, str | None], ...]


def accept_verbatim_kind(reader: TokenReader) -> str | None:
    """Takes the keywords of an object that is kept as text; None when none follow."""
    return next((kind for kind in VERBATIM_KINDS if reader.accept(*kind.split())), None)


def read_verbatim_name(reader: TokenReader, kind: str) -> str:
    """The name of an object that is kept as text; a proto bundle has none."""
    if kind == "LOCALITY GROUP" and reader.accept("DEFAULT"):
        return "default"
    return "" if kind == "PROTO BUNDLE" else reader.read_path()


def read_create_schema(reader: TokenReader) -> Step:
    """CREATE SCHEMA [IF NOT EXISTS] s, after these first two words."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    return steps.CreateNamedSchema(reader.read_path(), if_not_exists)


def read_create_verbatim(reader: TokenReader) -> Step:
    """CREATE [OR REPLACE] of an object that is kept as text, after CREATE."""
    reader.accept("OR", "REPLACE")
    kind = accept_verbatim_kind(reader)
    if kind is None:
        return reader.fail(EXPECTED_KIND)
    reader.accept("IF", "NOT", "EXISTS")
    name = read_verbatim_name(reader, kind)
    reader.read_rest()
    return steps.CreateVerbatim(Verbatim(kind, name, reader.text))


def read_alter_verbatim(reader: TokenReader) -> Step:
    """ALTER of an object that is kept as text, after ALTER."""
    kind = "STATISTICS" if reader.accept("STATISTICS") else accept_verbatim_kind(reader)
    if kind is None:
        return reader.fail("TABLE, DATABASE, INDEX, CHANGE STREAM or another kind of object")
    reader.read_rest()
    return steps.OtherStatement(f"ALTER {kind}", reader.text)


def read_drop(reader: TokenReader) -> Step:
    """DROP ..., after the word."""
    if reader.accept("CHANGE", "STREAM"):
        if_exists = reader.accept("IF", "EXISTS")
        return steps.DropChangeStream(reader.read_path(), if_exists)
    step_types: dict[str, Callable[[str, bool], Step]] = {
        "TABLE": steps.DropTable,
        "INDEX": steps.DropIndex,
        "SCHEMA": steps.DropNamedSchema,
    }
    for word, make_step in step_types.items():
        if reader.accept(word):
            if_exists = reader.accept("IF", "EXISTS")
            name = reader.read_path()
            if word == "SCHEMA" and reader.peek(","):
                reader.read_rest()
                return steps.OtherStatement("DROP SCHEMA of several schemas", reader.text)
            return make_step(name, if_exists)
    kind = accept_verbatim_kind(reader)
    if kind is None:
        return reader.fail(EXPECTED_KIND)
    if_exists = reader.accept("IF", "EXISTS")
    return steps.DropVerbatim(kind, read_verbatim_name(reader, kind), if_exists)


def read_other_statement(reader: TokenReader) -> Step:
    """A statement that the model does not look into, and RENAME TABLE."""
    if reader.accept("RENAME", "TABLE"):
        renames = [read_rename(reader, reader.read_path("a table name"))]
        while reader.accept(","):
            renames.append(read_rename(reader, reader.read_path("a table name")))
        return steps.RenameTables(tuple(renames))
    kind = reader.advance().text.upper()
    reader.read_rest()
    return steps.OtherStatement(kind, reader.text)


def read_rename(reader: TokenReader, table: str) -> tuple[str, str]:
    """TO a name, after a table's."""
    reader.expect("TO")
    return table, reader.read_path("a table name")


def read_table_renames(reader: TokenReader, table: str) -> Step | None:
    """RENAME TO a name, and the same of other tables, or RENAME of one with a synonym, after ALTER
    TABLE and a name."""
    if not reader.accept("RENAME"):
        return None
    if reader.dialect is Dialect.POSTGRESQL and reader.accept("WITH", "SYNONYM"):
        return steps.RenameTables((read_rename(reader, table),), table)
    renames = [read_rename(reader, table)]
    while reader.accept(",", "ALTER", "TABLE"):
        reader.accept("IF", "EXISTS")
        reader.accept("ONLY")
        other = reader.read_path("a table name")
        reader.expect("RENAME")
        renames.append(read_rename(reader, other))
    added = len(renames) == 1 and reader.accept(",", "ADD", "SYNONYM")
    return steps.RenameTables(tuple(renames), reader.read_path("a synonym") if added else None)


def read_synonym_change(reader: TokenReader, table: str) -> Step | None:
    """ADD SYNONYM s or DROP SYNONYM s, after ALTER TABLE and a name."""
    if reader.accept("ADD", "SYNONYM"):
        return steps.AddSynonym(table, reader.read_path("a synonym"))
    if reader.accept("DROP", "SYNONYM"):
        return steps.DropSynonym(table, reader.read_path("a synonym"))
    return None


def read_set_options(reader: TokenReader) -> NullableOptions | None:
    """SET OPTIONS (...), in PostgreSQL SET LOCALITY GROUP g or SET COLUMNAR POLICY p; None where
    none of them follows. null, which removes an option, is None."""
    if reader.dialect is Dialect.POSTGRESQL:
        for words, name in OPTION_WORDS.items():
            if reader.accept("SET", *words):
                value = reader.advance().text
                return ((name, None if value.upper() == "NULL" else value),)
        return None
    if not reader.accept("SET", "OPTIONS"):
        return None
    options = read_option_list(reader)
    return tuple((name, None if value.upper() == "NULL" else value) for name, value in options)


def read_alter_index(reader: TokenReader, stored_column: tuple[str, ...]) -> Step:
    """ALTER INDEX i ADD | DROP a stored column, after the first two words.

    ``stored_column`` holds the keywords before the column's name.
    """
    name = reader.read_path("an index name")
    if (options := read_set_options(reader)) is not None:
        return steps.SetIndexOptions(name, options)
    add = reader.accept("ADD")
    if not add:
        reader.expect("DROP")
    reader.expect(*stored_column)
    return steps.AlterIndexStoring(name, reader.read_name("a column name"), add)


def read_alter_change_stream(
    reader: TokenReader, read_options: Callable[[TokenReader], Options]
) -> Step:
    """ALTER CHANGE STREAM s SET FOR ... | DROP FOR ALL | [FOR ...] SET options, after the words."""
    name = reader.read_path()
    if reader.accept("DROP", "FOR", "ALL"):
        return steps.AlterChangeStream(ChangeStream(name), frozenset({"watches"}))
    if reader.accept("FOR"):
        tables, for_all = read_watches(reader)
        reader.expect("SET")
        stream = ChangeStream(name, tables, for_all, read_options(reader))
        return steps.AlterChangeStream(stream, frozenset({"watches", "options"}))
    reader.expect("SET")
    if reader.accept("FOR"):
        tables, for_all = read_watches(reader)
        return steps.AlterChangeStream(ChangeStream(name, tables, for_all), frozenset({"watches"}))
    stream = ChangeStream(name, options=read_options(reader))
    return steps.AlterChangeStream(stream, frozenset({"options"}))


def read_watches(reader: TokenReader) -> tuple[tuple[ChangeStreamTable, ...], bool]:
    """ALL | t1, t2(c1, c2), t3(): the tables of a change stream, and whether it is ALL."""
    if reader.accept("ALL"):
        return (), True
    tables = []
    while True:
        name = reader.read_path("a table name")
        columns = reader.read_names() if reader.peek("(") else None
        tables.append(ChangeStreamTable(name, columns))
        if not reader.accept(","):
            return tuple(tables), False


def read_option_list(reader: TokenReader) -> Options:
    """(a = b, ...): the values as written."""
    reader.expect("(")
    options: list[tuple[str, str]] = []
    if reader.is_strict and reader.peek(")"):
        reader.fail("an option")
    while not reader.accept(")"):
        name = reader.read_name("an option")
        reader.expect("=")
        options.append((name, read_option_value(reader)))
        reader.expect_more()
    return tuple(options)


def read_option_value(reader: TokenReader) -> str:
    """The value of an option: a literal, a word or a list."""
    if reader.peek("["):
        start = reader.token.start
        while not reader.peek("]"):
            if reader.token.kind is TokenKind.END:
                reader.fail("']'")
            reader.advance()
        return reader.text[start : reader.advance().end]
    sign = "-" if reader.accept("-") else ""
    if reader.token.kind not in {TokenKind.STRING, TokenKind.NUMBER, TokenKind.WORD}:
        reader.fail("a value")
    return sign + reader.advance().text


def starts_constraint(reader: TokenReader) -> bool:
    """True at CONSTRAINT, FOREIGN KEY or CHECK ( in a table's body."""
    return reader.peek("CONSTRAINT") or reader.peek("FOREIGN", "KEY") or reader.peek("CHECK", "(")


def read_interleave(reader: TokenReader) -> Interleave:
    """INTERLEAVE IN [PARENT] p [ON DELETE ...]."""
    reader.expect("INTERLEAVE", "IN")
    mark = reader.mark()
    enforced = reader.accept("PARENT")
    if enforced and reader.dialect is Dialect.POSTGRESQL and reader.token.kind is TokenKind.END:
        # The table is called parent: there the word is no keyword.
        reader.reset(mark)
        enforced = False
    parent = reader.read_path("a table name")
    if not enforced and reader.peek("ON", "DELETE"):
        reader.fail("the end of INTERLEAVE IN, which has no ON DELETE")
    return Interleave(parent, read_on_delete(reader) or OnDelete.NO_ACTION, enforced)


def read_on_delete(reader: TokenReader) -> OnDelete | None:
    """ON DELETE CASCADE | NO ACTION; None where nothing is written, which means NO ACTION."""
    if not reader.accept("ON", "DELETE"):
        return None
    if reader.accept("CASCADE"):
        return OnDelete.CASCADE
    reader.expect("NO", "ACTION")
    return OnDelete.NO_ACTION


def read_foreign_key(
    reader: TokenReader,
    name: str | None,
    read_actions: Callable[[TokenReader], OnDelete | None] = read_on_delete,
) -> ForeignKey:
    """FOREIGN KEY (...) REFERENCES t (...) [ON DELETE ...]."""
    reader.expect("FOREIGN", "KEY")
    columns = read_some_names(reader)
    reader.expect("REFERENCES")
    table = reader.read_path("a table name")
    return ForeignKey(name, columns, table, read_some_names(reader), read_actions(reader))


def read_some_names(reader: TokenReader) -> tuple[str, ...]:
    """As ``read_names``, but one column at least."""
    if reader.peek("(", ")"):
        reader.expect("(")
        reader.fail("a column name")
    return reader.read_names()


def read_not_null_columns(reader: TokenReader) -> tuple[str, ...]:
    """a IS NOT NULL AND (b IS NOT NULL) ...: the names of the columns."""
    names: list[str] = []
    while not names or reader.accept("AND"):
        if reader.accept("("):
            names += read_not_null_columns(reader)
            reader.expect(")")
            continue
        names.append(reader.read_name("a column name"))
        reader.expect("IS", "NOT", "NULL")
    return tuple(names)
