"""The statements of the PostgreSQL dialect's DDL."""

from __future__ import annotations

from spanner_schema.model import steps
from spanner_schema.model.errors import DdlError
from spanner_schema.model.names import join_name, split_name
from spanner_schema.model.schema import ChangeStream, Index, Verbatim
from spanner_schema.model.steps import Step
from spanner_schema.syntax.clauses import (
    read_alter_change_stream,
    read_alter_index,
    read_alter_verbatim,
    read_create_schema,
    read_create_verbatim,
    read_not_null_columns,
    read_option_list,
    read_watches,
)
from spanner_schema.syntax.postgres.parts import read_key_parts, read_storage_options
from spanner_schema.syntax.postgres.tables import read_alter_table, read_create_table
from spanner_schema.syntax.reader import TokenReader

OPTION_WORDS = {"true", "false", "null"}


def read_create(reader: TokenReader) -> Step:
    """CREATE ..., after the word."""
    if reader.accept("TABLE"):
        return read_create_table(reader)
    if reader.accept("CHANGE", "STREAM"):
        return read_create_change_stream(reader)
    if reader.accept("SCHEMA"):
        return read_create_schema(reader)
    if reader.peek("UNIQUE") or reader.peek("INDEX"):
        return read_create_index(reader)
    return read_create_verbatim(reader)


def read_drop_behavior(reader: TokenReader) -> None:
    """RESTRICT, after a DROP statement. Raises DdlError for CASCADE, and for a second name."""
    if reader.peek("CASCADE"):
        raise DdlError("Only <RESTRICT> behavior is supported by <DROP> statement.")
    if reader.peek(","):
        raise DdlError("<DROP> statements support deletion of only single object per statement.")
    reader.accept("RESTRICT")


def read_create_change_stream(reader: TokenReader) -> Step:
    """CREATE CHANGE STREAM, after these words."""
    reader.accept("IF", "NOT", "EXISTS")
    name = reader.read_path()
    tables, for_all = read_watches(reader) if reader.accept("FOR") else ((), False)
    options = read_stream_options(reader) if reader.accept("WITH") else ()
    return steps.CreateChangeStream(ChangeStream(name, tables, for_all, options))


def read_stream_options(reader: TokenReader) -> tuple[tuple[str, str], ...]:
    """(a = b, ...): each once; words are true, false and null alone, in quotes or not."""
    if reader.peek("(", ")"):
        reader.expect("(")
        reader.fail("an option")
    options: list[tuple[str, str]] = []
    for name, value in read_option_list(reader):
        if any(name == other for other, _ in options):
            raise DdlError(
                f"Contains duplicate change stream option '{name}' in <CREATE CHANGE STREAM>"
                " statement."
            )
        word = value.strip("'").lower()
        if not value.startswith("'") and word not in OPTION_WORDS:
            raise DdlError(
                f"Failed to provide valid option value for '{name}' in <CREATE CHANGE STREAM>"
                " statement."
            )
        options.append((name, word if word in OPTION_WORDS else value))
    return tuple(options)


def read_create_index(reader: TokenReader) -> Step:
    """CREATE [UNIQUE] INDEX, after CREATE."""
    unique = reader.accept("UNIQUE")
    reader.expect("INDEX")
    if_not_exists = reader.accept("IF", "NOT", "EXISTS")
    name = reader.read_path("an index name")
    reader.expect("ON")
    if reader.peek("ONLY"):
        reader.fail("a table name without ONLY")
    table = reader.read_path("a table name")
    if "." not in name:
        name = join_name(split_name(table)[0], name)
    reader.accept("*")
    if reader.peek("USING", "SCANN"):
        reader.read_rest()
        return steps.CreateVerbatim(Verbatim("VECTOR INDEX", name, reader.text))
    reader.accept("USING", "BTREE")
    parts = read_key_parts(reader)
    storing = reader.read_names() if reader.accept("INCLUDE") else ()
    options = read_storage_options(reader)
    parent = reader.read_path("a table name") if reader.accept("INTERLEAVE", "IN") else None
    where = read_not_null_columns(reader) if reader.accept("WHERE") else ()
    options += read_storage_options(reader)
    index = Index(
        name,
        table,
        parts,
        storing=storing,
        unique=unique,
        where_not_null=where,
        interleave_in=parent,
        options=options,
    )
    return steps.CreateIndex(index, if_not_exists)


def read_alter(reader: TokenReader) -> Step:
    """ALTER ..., after the word."""
    if reader.accept("TABLE"):
        return read_alter_table(reader)
    if reader.accept("INDEX"):
        return read_alter_index(reader, ("INCLUDE", "COLUMN"))
    if reader.accept("CHANGE", "STREAM"):
        return read_alter_stream(reader)
    if reader.accept("DATABASE"):
        return read_alter_database(reader)
    return read_alter_verbatim(reader)


def read_alter_stream(reader: TokenReader) -> Step:
    """ALTER CHANGE STREAM s RESET (option, ...), or what both dialects have."""
    start = reader.mark()
    name = reader.read_path()
    if not reader.accept("RESET"):
        reader.reset(start)
        return read_alter_change_stream(reader, read_stream_options)
    options = tuple((option, "null") for option in reader.read_names())
    return steps.AlterChangeStream(ChangeStream(name, options=options), frozenset({"options"}))


def read_alter_database(reader: TokenReader) -> Step:
    """ALTER DATABASE d SET spanner.option = value, after the first two words."""
    name = reader.read_name("a database name")
    if reader.accept("RESET"):
        option = reader.read_path("an option").removeprefix("spanner.")
        return steps.AlterDatabase(name, ((option, None),))
    reader.expect("SET")
    option = reader.read_path("an option").removeprefix("spanner.")
    if not reader.accept("="):
        reader.expect("TO")
    value = reader.advance().text
    return steps.AlterDatabase(name, ((option, None if value.upper() == "DEFAULT" else value),))
