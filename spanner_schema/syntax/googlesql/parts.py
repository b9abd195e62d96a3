"""The parts of GoogleSQL's statements: columns, keys, options."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import cast

from spanner_schema.model.schema import Column, Identity, KeyPart, RowDeletionPolicy
from spanner_schema.syntax.clauses import Options, read_option_list
from spanner_schema.syntax.googlesql.types import read_type
from spanner_schema.syntax.reader import TokenReader

VALUE_CLAUSES = frozenset({"default", "on_update", "generated", "identity"})
"""What gives a column its value: one of them, or DEFAULT and ON UPDATE."""


def read_column(reader: TokenReader) -> Column:
    """The definition of a column: unless the reader is strict, its clauses come in any order."""
    name = reader.read_name("a column name")
    type_ = read_type(reader)
    clauses: dict[str, object] = {}
    start = reader.mark()
    given: dict[str, object] = {}
    while read_column_clause(reader, given):
        if reader.is_strict and not may_follow(clauses, given):
            reader.reset(start)
            break
        clauses |= given
        given, start = {}, reader.mark()
    options = cast("Options", clauses.pop("options", ()))
    return set_options(Column(name, type_, **clauses), options)  # type: ignore[arg-type]


def set_options(column: Column, options: Options) -> Column:
    """A column with the options that are written after it."""
    commit = any(n == "allow_commit_timestamp" and v.lower() == "true" for n, v in options)
    others = tuple(pair for pair in options if not sets_nothing(*pair))
    return replace(column, allow_commit_timestamp=commit, options=others)


def may_follow(clauses: Collection[str], given: Collection[str]) -> bool:
    """Whether a clause of a column stands at its place: NOT NULL first, then what gives a value,
    then the others; none of them twice."""
    if not set(clauses).isdisjoint(given):
        return False
    if "not_null" in given:
        return not clauses
    if VALUE_CLAUSES.isdisjoint(given):
        return True
    before = set(clauses) - {"not_null"}
    return not before or {*before, *given} == {"default", "on_update"}


def sets_nothing(name: str, value: str) -> bool:
    """True for what need not be kept as text: it has a field of its own, or is the default."""
    return name == "allow_commit_timestamp" and value.lower() in {"true", "null"}


def read_column_clause(reader: TokenReader, clauses: dict[str, object]) -> bool:
    """Reads one clause after a column's type into ``clauses``; False when there is none."""
    if reader.accept("NOT", "NULL"):
        clauses["not_null"] = True
    elif reader.accept("PLACEMENT", "KEY"):
        clauses["placement_key"] = True
    elif reader.accept("HIDDEN"):
        clauses["hidden"] = True
    elif reader.accept("DEFAULT"):
        clauses["default"] = reader.read_parenthesized()
    elif reader.accept("ON", "UPDATE"):
        clauses["on_update"] = reader.read_parenthesized()
    elif reader.peek("AS", "("):
        reader.expect("AS")
        clauses["generated"] = reader.read_parenthesized()
        clauses["stored"] = reader.accept("STORED")
    elif reader.accept("GENERATED", "BY", "DEFAULT", "AS", "IDENTITY"):
        clauses["identity"] = read_identity(reader)
    elif reader.accept("AUTO_INCREMENT"):
        clauses["identity"] = Identity(default_kind=True)
    elif reader.peek("OPTIONS"):
        clauses["options"] = read_options(reader)
    else:
        return False
    return True


def read_identity(reader: TokenReader) -> Identity:
    """(BIT_REVERSED_POSITIVE [SKIP RANGE a, b] [START COUNTER WITH n])."""
    if not reader.accept("("):
        return Identity(default_kind=True)
    start_counter, skip_range, default_kind = None, None, True
    while not reader.accept(")"):
        if reader.accept("SKIP", "RANGE"):
            low = reader.read_number()
            reader.expect(",")
            skip_range = (low, reader.read_number())
        elif reader.accept("START", "COUNTER", "WITH"):
            start_counter = reader.read_number()
        else:
            reader.expect("BIT_REVERSED_POSITIVE")
            default_kind = False
    return Identity(start_counter, skip_range, default_kind)


def read_options(reader: TokenReader) -> Options:
    """OPTIONS (a = b, ...): the values as written."""
    reader.expect("OPTIONS")
    return read_option_list(reader)


def read_nullable_options(reader: TokenReader) -> tuple[tuple[str, str | None], ...]:
    """OPTIONS (a = b, c = null): null, which removes an option, is None."""
    options = read_options(reader)
    return tuple((name, None if value.upper() == "NULL" else value) for name, value in options)


def read_key_parts(reader: TokenReader) -> tuple[KeyPart, ...]:
    """(a, b DESC, ...); may be empty."""
    reader.expect("(")
    parts = []
    while not reader.accept(")"):
        name = reader.read_name("a column name")
        descending = reader.accept("DESC")
        if not descending:
            reader.accept("ASC")
        parts.append(KeyPart(name, descending))
        reader.expect_more()
    return tuple(parts)


def read_row_deletion_policy(reader: TokenReader) -> RowDeletionPolicy:
    """ROW DELETION POLICY (OLDER_THAN(c, INTERVAL n DAY))."""
    reader.expect("ROW", "DELETION", "POLICY", "(", "OLDER_THAN", "(")
    column = reader.read_name("a column name")
    reader.expect(",", "INTERVAL")
    days = reader.read_number()
    reader.expect("DAY", ")", ")")
    return RowDeletionPolicy(column, days)
