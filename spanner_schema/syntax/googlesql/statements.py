"""The statements of GoogleSQL's DDL."""

from __future__ import annotations

from spanner_schema.model import steps
from spanner_schema.model.schema import ChangeStream, Index
from spanner_schema.model.steps import Step
from spanner_schema.syntax.clauses import (
    read_alter_change_stream,
    read_alter_index,
    read_alter_verbatim,
    read_create_schema,
    read_create_verbatim,
    read_not_null_columns,
    read_watches,
)
from spanner_schema.syntax.googlesql.parts import (
    read_key_parts,
    read_nullable_options,
    read_options,
)
from spanner_schema.syntax.googlesql.tables import read_alter_table, read_create_table
from spanner_schema.syntax.reader import TokenReader


def read_create(reader: TokenReader) -> Step:
    """CREATE ..., after the word."""
    if reader.accept("TABLE"):
        return read_create_table(reader)
    if reader.accept("CHANGE", "STREAM"):
        return read_create_change_stream(reader)
    if reader.accept("OR", "REPLACE", "SCHEMA"):
        # Google's script of MySQL's functions begins so: a schema that is there stays.
        return steps.CreateNamedSchema(reader.read_path(), if_not_exists=True)
    if reader.accept("SCHEMA"):
        return read_create_schema(reader)
    if reader.peek("UNIQUE") or reader.peek("NULL_FILTERED") or reader.peek("INDEX"):
        return read_create_index(reader)
    return read_create_verbatim(reader)


def read_create_index(reader: TokenReader) -> Step:
    """CREATE [UNIQUE] [NULL_FILTERED] INDEX, after CREATE."""
    unique = reader.accept("UNIQUE")
    null_filtered = reader.accept("NULL_FILTERED")
    reader.expect("INDEX")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.read_path("an index name")
    reader.expect("ON")
    table = reader.read_path("a table name")
    parts = read_key_parts(reader)
    storing = reader.read_names() if reader.accept("STORING") else ()
    where = read_not_null_columns(reader) if reader.accept("WHERE") else ()
    parent = None
    if reader.accept(",", "INTERLEAVE", "IN"):
        parent = reader.read_path("a table name")
    options = read_options(reader) if reader.peek("OPTIONS") else ()
    index = Index(name, table, parts, storing, unique, null_filtered, where, parent, options)
    return steps.CreateIndex(index, if_not_exists)


def read_create_change_stream(reader: TokenReader) -> Step:
    """CREATE CHANGE STREAM, after these words."""
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.read_path()
    tables, for_all = read_watches(reader) if reader.accept("FOR") else ((), False)
    options = read_options(reader) if reader.peek("OPTIONS") else ()
    stream = ChangeStream(name, tables, for_all, options)
    return steps.CreateChangeStream(stream, if_not_exists)


def read_alter(reader: TokenReader) -> Step:
    """ALTER ..., after the word."""
    if reader.accept("TABLE"):
        return read_alter_table(reader)
    if reader.accept("DATABASE"):
        database = reader.read_name("a database name")
        reader.expect("SET")
        return steps.AlterDatabase(database, read_nullable_options(reader))
    if reader.accept("INDEX"):
        return read_alter_index(reader, ("STORED", "COLUMN"))
    if reader.accept("CHANGE", "STREAM"):
        return read_alter_change_stream(reader, read_options)
    return read_alter_verbatim(reader)
