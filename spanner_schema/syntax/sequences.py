"""Sequences: what CREATE SEQUENCE, ALTER SEQUENCE and ALTER IDENTITY say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from spanner_schema.model.errors import InvalidDefinitionError, SchemaError
from spanner_schema.model.schema import Dialect, Identity, Schema, Verbatim, find
from spanner_schema.syntax.googlesql.parts import read_options
from spanner_schema.syntax.postgres.parts import accept_defaults
from spanner_schema.syntax.postgres.spelling import PostgreSqlSpelling
from spanner_schema.syntax.reader import TokenReader
from spanner_schema.syntax.tokens import TokenKind

KIND = "SEQUENCE"
BIT_REVERSED = "bit_reversed_positive"
BOUNDS = ("skip_range_min", "skip_range_max", "start_with_counter")


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence as it was written: in ``clauses`` or in OPTIONS; ``kind`` None is the default.

    ``optional`` says IF NOT EXISTS. ``restarts`` is true after an ALTER that sets the counter.
    """

    name: str
    kind: str | None = None
    skip_range_min: int | None = None
    skip_range_max: int | None = None
    start_with_counter: int | None = None
    clauses: bool = False
    optional: bool = False
    restarts: bool = False
    dialect: Dialect = Dialect.GOOGLESQL

    @property
    def text(self) -> str:
        """The statement that creates the sequence."""
        details = self._write_clauses() if self.clauses else self._write_options()
        return f"CREATE SEQUENCE {self.name}{details}"

    def _write_clauses(self) -> str:
        parts = [BIT_REVERSED.upper()] if self.kind else []
        if self.skip_range_min is not None:
            comma = "" if self.dialect is Dialect.POSTGRESQL else ","
            parts.append(f"SKIP RANGE {self.skip_range_min}{comma} {self.skip_range_max}")
        if self.start_with_counter is not None:
            parts.append(f"START COUNTER WITH {self.start_with_counter}")
        return "".join(f" {part}" for part in parts)

    def _write_options(self) -> str:
        pairs = [f"{name} = {value}" for name, value in self.options().items()]
        return f" OPTIONS ({', '.join(pairs)})" if pairs else ""

    def options(self) -> dict[str, str]:
        """The options that are set, with their values as DDL writes them."""
        kind = {} if self.kind is None else {"sequence_kind": f"'{self.kind}'"}
        values = {name: getattr(self, name) for name in BOUNDS}
        return kind | {name: str(value) for name, value in values.items() if value is not None}


@lru_cache(maxsize=1_000)
def read_sequence(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> Sequence:
    """Reads a whole CREATE SEQUENCE statement. Raises DdlSyntaxError, or SchemaError."""
    reader = TokenReader(text, dialect)
    reader.expect("CREATE", "SEQUENCE")
    optional = reader.accept("IF", "NOT", "EXISTS")
    start = reader.token.start
    path = reader.read_path("a sequence name")
    name = text[start : reader.token.start].strip().rstrip(";").strip()
    postgres = dialect is Dialect.POSTGRESQL
    if postgres:
        name = PostgreSqlSpelling().quote_name(path)
    kind = BIT_REVERSED if reader.accept("BIT_REVERSED_POSITIVE") else None
    sequence = Sequence(name, kind, clauses=kind is not None or postgres, optional=optional)
    sequence = read_clauses(reader, replace(sequence, dialect=dialect), "START")
    if not postgres and reader.peek("OPTIONS"):
        if sequence.clauses:
            raise InvalidDefinitionError(
                "The sequence properties can only be set in either clauses and options for the"
                f" sequence {name}"
            )
        sequence = set_options(sequence, read_options(reader))
    reader.accept(";")
    reader.expect_end()
    return check_sequence(sequence)


def alter_sequence(sequence: Sequence, text: str) -> Sequence:
    """The sequence after ALTER SEQUENCE. Raises DdlSyntaxError, or SchemaError."""
    reader = TokenReader(text, sequence.dialect)
    reader.expect("ALTER", "SEQUENCE")
    reader.accept("IF", "EXISTS")
    reader.read_path("a sequence name")
    before = replace(sequence, optional=False, restarts=False)
    if sequence.dialect is Dialect.GOOGLESQL and reader.accept("SET"):
        after = set_options(before, read_options(reader))
    else:
        after = read_clauses(reader, before, "RESTART")
    reader.accept(";")
    reader.expect_end()
    return check_sequence(after)


def read_altered_name(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> tuple[str, bool]:
    """The sequence that an ALTER SEQUENCE names, and whether it says IF EXISTS."""
    reader = TokenReader(text, dialect)
    reader.expect("ALTER", "SEQUENCE")
    optional = reader.accept("IF", "EXISTS")
    return reader.read_path("a sequence name"), optional


def read_clauses(reader: TokenReader, sequence: Sequence, counter: str) -> Sequence:
    """[NO] SKIP RANGE a, b and START | RESTART COUNTER WITH n, in any order.

    The PostgreSQL dialect has no comma, and may leave out WITH.
    """
    postgres = reader.dialect is Dialect.POSTGRESQL
    while True:
        if postgres and accept_defaults(reader):
            sequence = replace(sequence, clauses=True)
        elif reader.accept("SKIP", "RANGE"):
            low = reader.read_number()
            if not postgres:
                reader.expect(",")
            sequence = replace(
                sequence, skip_range_min=low, skip_range_max=reader.read_number(), clauses=True
            )
        elif counter == "RESTART" and reader.accept("NO", "SKIP", "RANGE"):
            sequence = replace(sequence, skip_range_min=None, skip_range_max=None)
        elif reader.accept(counter, "COUNTER", "WITH") or (
            postgres and reader.accept(counter, "COUNTER")
        ):
            sequence = replace(
                sequence, start_with_counter=reader.read_number(), clauses=True, restarts=True
            )
        else:
            return sequence


def set_options(sequence: Sequence, pairs: tuple[tuple[str, str], ...]) -> Sequence:
    """The sequence with options set, or removed by NULL. Raises SchemaError."""
    changes: dict[str, object] = {}
    for name, value in pairs:
        is_null = value.upper() == "NULL"
        if name == "sequence_kind":
            kind = value.strip("'\"").lower()
            if is_null or kind != BIT_REVERSED:
                raise SchemaError(f"Invalid Sequence Kind: {value}.")
            changes["kind"] = kind
        elif name in BOUNDS:
            changes[name] = None if is_null else parse_option_number(name, value)
        else:
            raise SchemaError(f"Unsupported sequence option: {name}.")
    restarts = changes.get("start_with_counter") is not None
    return replace(sequence, restarts=restarts, **changes)  # type: ignore[arg-type]


def parse_option_number(name: str, value: str) -> int:
    """The number that an option is set to. Raises SchemaError."""
    try:
        return int(value, 0)
    except ValueError as error:
        raise SchemaError(f"Option {name} can only take an INT64 value.") from error


def check_sequence(sequence: Sequence) -> Sequence:
    """The sequence, if its numbers obey Spanner's rules. Raises SchemaError."""
    low, high = sequence.skip_range_min, sequence.skip_range_max
    if (low is None) is not (high is None):
        raise SchemaError("`skip_range_min` and `skip_range_max` have to be set together")
    if low is not None and high is not None:
        if low > high:
            raise SchemaError("`skip_range_min` has to be lesser than or equal to `skip_range_max`")
        if high < 1:
            raise SchemaError(
                "The sequence skipped range has to contain at least one positive value"
            )
    if sequence.start_with_counter is not None and sequence.start_with_counter < 1:
        raise SchemaError("`start_with_counter` has to be a positive INT64 number")
    return sequence


def read_sequences(schema: Schema) -> Mapping[str, Sequence]:
    """The sequences of a schema, by their names as written."""
    return {
        item.name: read_sequence(item.text, schema.dialect)
        for item in schema.verbatim
        if item.kind == KIND
    }


def find_sequence(schema: Schema, name: str) -> Verbatim | None:
    """The sequence of this name (without regard to case), or None."""
    return find(tuple(item for item in schema.verbatim if item.kind == KIND), name)


def find_sequence_names(expression: str) -> set[str]:
    """The names, in lower case, that follow the word SEQUENCE in an expression."""
    reader = TokenReader(expression)
    names = set()
    while reader.token.kind is not TokenKind.END:
        if reader.accept("SEQUENCE") and reader.token.kind in {TokenKind.WORD, TokenKind.QUOTED}:
            names.add(reader.read_path().casefold())
        else:
            reader.advance()
    return names


def read_identity_column(text: str, dialect: Dialect = Dialect.GOOGLESQL) -> tuple[str, str]:
    """The table and column of ALTER TABLE t ALTER COLUMN c ALTER IDENTITY, which are words that the
    PostgreSQL dialect leaves out."""
    return read_identity_head(TokenReader(text, dialect))


def read_identity_head(reader: TokenReader) -> tuple[str, str]:
    """Reads such a statement up to what it changes."""
    postgres = reader.dialect is Dialect.POSTGRESQL
    reader.expect("ALTER", "TABLE")
    if postgres:
        reader.accept("IF", "EXISTS")
        reader.accept("ONLY")
    table = reader.read_path("a table name")
    reader.expect("ALTER")
    reader.accept("COLUMN")
    column = reader.read_name("a column name")
    if not postgres:
        reader.expect("ALTER", "IDENTITY")
    return table, column


def alter_identity(
    identity: Identity, text: str, dialect: Dialect = Dialect.GOOGLESQL
) -> tuple[Identity, bool]:
    """The identity after ALTER IDENTITY, and whether its counter restarts."""
    reader = TokenReader(text, dialect)
    read_identity_head(reader)
    reader.accept("SET")
    low, high = identity.skip_range or (None, None)
    before = Sequence("", BIT_REVERSED, low, high, identity.start_counter, dialect=dialect)
    after = check_sequence(read_clauses(reader, before, "RESTART"))
    reader.accept(";")
    reader.expect_end()
    low, high = after.skip_range_min, after.skip_range_max
    skip_range = None if low is None or high is None else (low, high)
    return Identity(after.start_with_counter, skip_range), after.restarts
