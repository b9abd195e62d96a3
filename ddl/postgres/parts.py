"""The parts of statements of the PostgreSQL dialect: columns, expressions, options."""

from __future__ import annotations

from ddl.postgres.types import type_of
from ddl.reader import Reader
from ddl.schema import (
    ChangeStreamTable,
    Check,
    Column,
    ForeignKey,
    Identity,
    Interleave,
    KeyPart,
    OnDelete,
    RowDeletionPolicy,
    Type,
    TypeCode,
)
from ddl.tokens import Kind

# A bare DEFAULT expression ends where one of these follows.
AFTER_EXPRESSION = (
    "NOT",
    "NULL",
    "PRIMARY",
    "CHECK",
    "CONSTRAINT",
    "ON",
    "GENERATED",
    "REFERENCES",
    "HIDDEN",
)


def expression(reader: Reader) -> str:
    """An expression, in parentheses or bare; the text without outer parentheses."""
    if reader.peek("("):
        start = reader.mark()
        inner = reader.parenthesised()
        if ends_expression(reader):
            return inner
        reader.reset(start)
    first, depth = reader.token.start, 0
    last = first
    while depth or not ends_expression(reader):
        token = reader.advance()
        if token.kind is Kind.END:
            reader.fail("')'")
        last = token.end
        depth += {"(": 1, ")": -1}.get(token.text, 0)
    if last == first:
        reader.fail("an expression")
    return reader.text[first:last].strip()


def ends_expression(reader: Reader) -> bool:
    """True where a bare expression is over."""
    if reader.token.kind is Kind.END or reader.peek(",") or reader.peek(")"):
        return True
    return any(reader.peek(word) for word in AFTER_EXPRESSION)


class ColumnClauses:
    """What has been read of a column's constraints."""

    def __init__(self) -> None:
        self.not_null = False
        self.primary = False
        self.default: str | None = None
        self.on_update: str | None = None
        self.generated: str | None = None
        self.stored = False
        self.identity: Identity | None = None
        self.hidden = False
        self.checks: list[Check] = []
        self.references: tuple[str, tuple[str, ...], OnDelete] | None = None

    def read(self, reader: Reader) -> bool:
        """One clause; False when there is none."""
        name = reader.name() if reader.accept("CONSTRAINT") else None
        if reader.accept("NOT", "NULL"):
            self.not_null = True
        elif reader.accept("NULL"):
            pass
        elif reader.accept("PRIMARY", "KEY"):
            self.primary = True
        elif reader.accept("HIDDEN"):
            self.hidden = True
        elif reader.accept("DEFAULT"):
            self.default = expression(reader)
        elif reader.accept("ON", "UPDATE"):
            self.on_update = expression(reader)
        elif reader.accept("GENERATED", "ALWAYS", "AS"):
            self.generated = reader.parenthesised()
            self.stored = reader.accept("STORED")
            if not self.stored:
                reader.expect("VIRTUAL")
        elif reader.accept("GENERATED", "BY", "DEFAULT", "AS", "IDENTITY"):
            self.identity = identity(reader)
        elif reader.accept("CHECK"):
            self.checks.append(Check(name, reader.parenthesised()))
        elif reader.accept("REFERENCES"):
            self.references = (reader.path(), reader.names(), on_delete(reader))
        else:
            return False
        return True


def column(reader: Reader) -> tuple[Column, ColumnClauses]:
    """A column, and those of its clauses that belong to the table."""
    name = reader.name("a column name")
    clauses = ColumnClauses()
    if reader.accept("SERIAL") or reader.accept("BIGSERIAL"):
        clauses.identity, clauses.not_null = Identity(), True
        type_, commit_timestamp = Type(TypeCode.INT64), False
    else:
        type_, commit_timestamp = type_of(reader)
    while clauses.read(reader):
        pass
    found = Column(
        name,
        type_,
        not_null=clauses.not_null,
        default=clauses.default,
        on_update=clauses.on_update,
        generated=clauses.generated,
        stored=clauses.stored,
        identity=clauses.identity,
        hidden=clauses.hidden,
        allow_commit_timestamp=commit_timestamp,
    )
    return found, clauses


def identity(reader: Reader) -> Identity:
    """(BIT_REVERSED_POSITIVE [SKIP RANGE a b] [START COUNTER [WITH] n])."""
    if not reader.accept("("):
        return Identity()
    start, skip = None, None
    while not reader.accept(")"):
        if reader.accept("SKIP", "RANGE"):
            skip = (reader.number(), reader.number())
        elif reader.accept("START", "COUNTER"):
            reader.accept("WITH")
            start = reader.number()
        else:
            reader.expect("BIT_REVERSED_POSITIVE")
    return Identity(start, skip)


def on_delete(reader: Reader) -> OnDelete:
    """ON DELETE CASCADE | NO ACTION, or nothing."""
    if not reader.accept("ON", "DELETE"):
        return OnDelete.NO_ACTION
    if reader.accept("CASCADE"):
        return OnDelete.CASCADE
    reader.expect("NO", "ACTION")
    return OnDelete.NO_ACTION


def foreign_key(reader: Reader, name: str | None) -> ForeignKey:
    """FOREIGN KEY (...) REFERENCES t (...)."""
    reader.expect("FOREIGN", "KEY")
    columns = reader.names()
    reader.expect("REFERENCES")
    table = reader.path("a table name")
    return ForeignKey(name, columns, table, reader.names(), on_delete(reader))


def interleave(reader: Reader) -> Interleave:
    """INTERLEAVE IN [PARENT] p [ON DELETE ...]."""
    reader.expect("INTERLEAVE", "IN")
    enforced = reader.accept("PARENT")
    parent = reader.path("a table name")
    return Interleave(parent, on_delete(reader), enforced)


def ttl(reader: Reader) -> RowDeletionPolicy:
    """TTL INTERVAL '30 days' ON c."""
    reader.expect("TTL", "INTERVAL")
    if reader.token.kind is not Kind.STRING:
        reader.fail("an interval such as '30 days'")
    text = reader.advance().text.strip("'").split()
    if len(text) != 2 or not text[0].isdigit() or text[1].lower() not in ("day", "days"):
        reader.fail("an interval in days such as '30 days'")
    reader.expect("ON")
    return RowDeletionPolicy(reader.name("a column name"), int(text[0]))


def key_parts(reader: Reader) -> tuple[KeyPart, ...]:
    """(a, b DESC NULLS LAST, ...)."""
    reader.expect("(")
    parts = []
    while not reader.accept(")"):
        name = reader.name("a column name")
        descending = reader.accept("DESC")
        if not descending:
            reader.accept("ASC")
        if reader.accept("NULLS") and not reader.accept("FIRST"):
            reader.expect("LAST")
        parts.append(KeyPart(name, descending))
        if not reader.peek(")"):
            reader.expect(",")
    return tuple(parts)


def watches(reader: Reader) -> tuple[tuple[ChangeStreamTable, ...], bool]:
    """ALL, or t, t(a, b), t()."""
    if reader.accept("ALL"):
        return (), True
    tables = []
    while True:
        name = reader.path("a table name")
        tables.append(ChangeStreamTable(name, reader.names() if reader.peek("(") else None))
        if not reader.accept(","):
            return tuple(tables), False


def options(reader: Reader) -> tuple[tuple[str, str], ...]:
    """(a = b, ...): the values as written."""
    reader.expect("(")
    pairs = []
    while not reader.accept(")"):
        name = reader.name("an option")
        reader.expect("=")
        sign = "-" if reader.accept("-") else ""
        if reader.token.kind not in {Kind.STRING, Kind.NUMBER, Kind.WORD}:
            reader.fail("a value")
        pairs.append((name, sign + reader.advance().text))
        if not reader.peek(")"):
            reader.expect(",")
    return tuple(pairs)
