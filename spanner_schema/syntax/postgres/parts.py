"""The parts of the PostgreSQL dialect's statements: columns, expressions, keys."""

from __future__ import annotations

from dataclasses import replace

from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.schema import (
    Check,
    Column,
    Identity,
    KeyPart,
    OnDelete,
    RowDeletionPolicy,
)
from spanner_schema.syntax.clauses import read_on_delete, read_option_list
from spanner_schema.syntax.postgres.types import read_type
from spanner_schema.syntax.reader import TokenReader
from spanner_schema.syntax.tokens import TokenKind

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
    "LOCALITY",
)


LOCALITY_GROUP, COLUMNAR_POLICY = "locality_group", "columnar_policy"
"""Options that have keywords of their own."""


def read_storage_option(reader: TokenReader) -> tuple[tuple[str, str], ...]:
    """LOCALITY GROUP g or COLUMNAR POLICY p, as an option; none where neither follows."""
    if reader.accept("LOCALITY", "GROUP"):
        return ((LOCALITY_GROUP, reader.advance().text),)
    if reader.accept("COLUMNAR", "POLICY"):
        return ((COLUMNAR_POLICY, reader.advance().text),)
    return ()


def read_table_options(reader: TokenReader) -> tuple[tuple[str, str], ...]:
    """WITH (a = b, ...), LOCALITY GROUP and COLUMNAR POLICY, those that follow."""
    options = read_option_list(reader) if reader.accept("WITH") else ()
    return options + read_storage_options(reader)


def read_storage_options(reader: TokenReader) -> tuple[tuple[str, str], ...]:
    """LOCALITY GROUP and COLUMNAR POLICY, those that follow."""
    options: tuple[tuple[str, str], ...] = ()
    while more := read_storage_option(reader):
        options += more
    return options


def read_expression(reader: TokenReader) -> str:
    """An expression, in parentheses or bare; its text without the outer parentheses."""
    if reader.peek("("):
        start = reader.mark()
        inner = reader.read_parenthesized()
        if ends_expression(reader):
            return inner
        reader.reset(start)
    first, depth = reader.token.start, 0
    last = first
    while depth or not ends_expression(reader):
        token = reader.advance()
        if token.kind is TokenKind.END:
            reader.fail("')'")
        last = token.end
        depth += {"(": 1, ")": -1}.get(token.text, 0)
    if last == first:
        reader.fail("an expression")
    return reader.text[first:last].strip()


def accept_immediate(reader: TokenReader) -> None:
    """NOT DEFERRABLE, INITIALLY IMMEDIATE: every constraint is."""
    reader.accept("NOT", "DEFERRABLE")
    reader.accept("INITIALLY", "IMMEDIATE")


def read_actions(reader: TokenReader) -> OnDelete | None:
    """MATCH SIMPLE, ON DELETE ..., ON UPDATE NO ACTION; None where NO ACTION is meant."""
    reader.accept("MATCH", "SIMPLE")
    reader.accept("ON", "UPDATE", "NO", "ACTION")
    action = read_on_delete(reader)
    reader.accept("ON", "UPDATE", "NO", "ACTION")
    accept_immediate(reader)
    return action if action is OnDelete.CASCADE else None


def ends_expression(reader: TokenReader) -> bool:
    """True where a bare expression ends."""
    if reader.token.kind is TokenKind.END or reader.peek(",") or reader.peek(")"):
        return True
    return any(reader.peek(word) for word in AFTER_EXPRESSION)


SERIALS = ("SERIAL", "SMALLSERIAL", "BIGSERIAL", "SERIAL2", "SERIAL4", "SERIAL8")
"""Spanner: all of them are bigint identities."""
DAYS_OF_UNIT = {"day": 1, "week": 7}


class ColumnClauses:
    """The clauses of a column that have been read so far."""

    def __init__(self) -> None:
        self.not_null = False
        self.primary_key = False
        self.nullable = False
        self.default: str | None = None
        self.on_update: str | None = None
        self.generated: str | None = None
        self.stored = False
        self.identity: Identity | None = None
        self.hidden = False
        self.vector_length: int | None = None
        self.placement_key = False
        self.options: tuple[tuple[str, str], ...] = ()
        self.checks: list[Check] = []
        self.references: tuple[str, tuple[str, ...], OnDelete | None] | None = None

    def read(self, reader: TokenReader) -> bool:
        """Reads one clause; False when there is none."""
        name = reader.read_name() if reader.accept("CONSTRAINT") else None
        if name is not None and not (reader.peek("CHECK") or reader.peek("REFERENCES")):
            reader.fail("CHECK or REFERENCES")
        return self._read_key(reader) or self._read_value(reader) or self._read_check(reader, name)

    def _read_key(self, reader: TokenReader) -> bool:
        """NOT NULL, PRIMARY KEY, PLACEMENT KEY, HIDDEN."""
        if reader.accept("NOT", "NULL"):
            self.not_null = True
        elif reader.accept("NULL"):
            self.nullable = True
        elif not self.primary_key and reader.accept("PRIMARY", "KEY"):
            self.primary_key = True
            accept_immediate(reader)
        else:
            return self._read_flag(reader)
        return True

    def _read_value(self, reader: TokenReader) -> bool:
        """What gives the column its value."""
        if reader.accept("DEFAULT"):
            self.default = read_expression(reader)
        elif reader.accept("ON", "UPDATE"):
            self.on_update = read_expression(reader)
        elif reader.accept("GENERATED", "ALWAYS", "AS"):
            self.generated = reader.read_parenthesized()
            self.stored = reader.accept("STORED")
            if not self.stored:
                reader.expect("VIRTUAL")
        elif reader.accept("GENERATED", "BY", "DEFAULT", "AS", "IDENTITY"):
            self.identity = read_identity(reader)
        else:
            return False
        return True

    def _read_check(self, reader: TokenReader, name: str | None) -> bool:
        """CHECK and REFERENCES."""
        if reader.accept("CHECK"):
            self.checks.append(Check(name, reader.read_parenthesized()))
        elif reader.accept("REFERENCES"):
            self.references = (reader.read_path(), reader.read_names(), read_actions(reader))
        else:
            return False
        return True

    def _read_flag(self, reader: TokenReader) -> bool:
        """Reads a clause that has little in it but its words; False when there is none."""
        if reader.accept("PLACEMENT", "KEY"):
            self.placement_key = True
        elif reader.accept("HIDDEN"):
            self.hidden = True
        elif self.vector_length is None and reader.accept("VECTOR", "LENGTH"):
            self.vector_length = reader.read_number()
        elif not self.options and (option := read_storage_option(reader)):
            self.options = option
        else:
            return False
        return True


def read_column(reader: TokenReader) -> tuple[Column, ColumnClauses]:
    """A column, and those of its clauses that belong to the table."""
    name = reader.read_name("a column name")
    clauses = ColumnClauses()
    if any(reader.accept(word) for word in SERIALS):
        clauses.identity, clauses.not_null = Identity(default_kind=True), True
        type_, commit_timestamp = Type(TypeCode.INT64), False
    else:
        type_, commit_timestamp = read_type(reader)
    while clauses.read(reader):
        pass
    if clauses.vector_length is not None:
        if type_.element is None or type_.vector_length is not None:
            reader.fail("an array without another VECTOR LENGTH")
        type_ = replace(type_, vector_length=clauses.vector_length)
    column = Column(
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
        options=clauses.options,
        placement_key=clauses.placement_key,
    )
    return column, clauses


DEFAULTS = (("NO", "MINVALUE"), ("NO", "MAXVALUE"), ("NO", "CYCLE"), ("OWNED", "BY", "NONE"))
"""What may be said of a sequence and is so anyway."""


def accept_defaults(reader: TokenReader) -> bool:
    """Takes a clause of a sequence that changes nothing; False where none follows."""
    return any(reader.accept(*words) for words in DEFAULTS)


def read_identity(reader: TokenReader) -> Identity:
    """([BIT_REVERSED_POSITIVE] [SKIP RANGE a b] [START COUNTER [WITH] n]); without the kind it is
    that of the database."""
    if not reader.accept("("):
        return Identity(default_kind=True)
    start_counter, skip_range, default_kind = None, None, True
    while not reader.accept(")"):
        if reader.accept("SKIP", "RANGE"):
            skip_range = (reader.read_number(), reader.read_number())
        elif reader.accept("START", "COUNTER"):
            reader.accept("WITH")
            start_counter = reader.read_number()
        elif not accept_defaults(reader):
            reader.expect("BIT_REVERSED_POSITIVE")
            default_kind = False
    return Identity(start_counter, skip_range, default_kind)


def read_ttl(reader: TokenReader) -> RowDeletionPolicy:
    """TTL INTERVAL '30 days' ON c."""
    reader.expect("TTL", "INTERVAL")
    if reader.token.kind is not TokenKind.STRING:
        reader.fail("an interval such as '30 days'")
    interval = reader.advance().text.strip("'")
    days = read_days(interval)
    if days is None:
        reader.fail("an interval in days such as '30 days'")
    reader.expect("ON")
    written = "" if interval == f"{days} days" else interval
    return RowDeletionPolicy(reader.read_name("a column name"), days, written)


def read_days(interval: str) -> int | None:
    """The days of weeks and days, as "3 weeks 2 days"; None for another interval."""
    words = interval.lower().split()
    if not words or len(words) % 2:
        return None
    days = 0
    for number, unit in zip(words[::2], words[1::2], strict=True):
        if not number.isdigit() or unit.rstrip("s") not in DAYS_OF_UNIT:
            return None
        days += int(number) * DAYS_OF_UNIT[unit.rstrip("s")]
    return days


def read_nulls(reader: TokenReader, descending: bool) -> bool:
    """NULLS FIRST | LAST; whether they are elsewhere than PostgreSQL has them by itself."""
    if not reader.accept("NULLS"):
        return False
    first = reader.accept("FIRST")
    if not first:
        reader.expect("LAST")
    return first is not descending


def read_key_parts(reader: TokenReader) -> tuple[KeyPart, ...]:
    """(a, b DESC NULLS LAST, ...)."""
    reader.expect("(")
    parts = []
    while not reader.accept(")"):
        name = reader.read_name("a column name")
        descending = reader.accept("DESC")
        if not descending:
            reader.accept("ASC")
        parts.append(KeyPart(name, descending, read_nulls(reader, descending)))
        if not reader.peek(")"):
            reader.expect(",")
    return tuple(parts)
