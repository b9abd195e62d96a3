"""What CREATE SEQUENCE and ALTER SEQUENCE say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from ddl.errors import SchemaError
from ddl.parse_parts import options
from ddl.reader import Reader
from ddl.schema import Identity, Schema, Verbatim, find
from ddl.tokens import Kind

KIND = "SEQUENCE"
BIT_REVERSED = "bit_reversed_positive"
BOUNDS = ("skip_range_min", "skip_range_max", "start_with_counter")


@dataclass(frozen=True, slots=True)
class Sequence:
    """A sequence as it was written: in ``clauses`` or in OPTIONS; ``kind`` None is the default.

    ``restarts`` tells of an ALTER that it sets the counter.
    """

    name: str
    kind: str | None = None
    skip_range_min: int | None = None
    skip_range_max: int | None = None
    start_with_counter: int | None = None
    clauses: bool = False
    optional: bool = False
    restarts: bool = False

    @property
    def text(self) -> str:
        """The statement that creates the sequence."""
        return f"CREATE SEQUENCE {self.name}{self._clauses() if self.clauses else self._options()}"

    def _clauses(self) -> str:
        parts = [BIT_REVERSED.upper()] if self.kind else []
        if self.skip_range_min is not None:
            parts.append(f"SKIP RANGE {self.skip_range_min}, {self.skip_range_max}")
        if self.start_with_counter is not None:
            parts.append(f"START COUNTER WITH {self.start_with_counter}")
        return "".join(f" {part}" for part in parts)

    def _options(self) -> str:
        pairs = [f"{name} = {value}" for name, value in self.options().items()]
        return f" OPTIONS ({', '.join(pairs)})" if pairs else ""

    def options(self) -> dict[str, str]:
        """The options that are set, as DDL writes their values."""
        given = {} if self.kind is None else {"sequence_kind": f"'{self.kind}'"}
        values = {name: getattr(self, name) for name in BOUNDS}
        return given | {name: str(value) for name, value in values.items() if value is not None}


@lru_cache(maxsize=1_000)
def read_sequence(text: str) -> Sequence:
    """Reads a whole CREATE SEQUENCE statement. Raises DdlSyntaxError, or SchemaError."""
    reader = Reader(text)
    reader.expect("CREATE", "SEQUENCE")
    optional = reader.accept("IF", "NOT", "EXISTS")
    start = reader.token.start
    reader.path("a sequence's name")
    name = text[start : reader.token.start].strip().rstrip(";").strip()
    kind = BIT_REVERSED if reader.accept("BIT_REVERSED_POSITIVE") else None
    sequence = Sequence(name, kind, optional=optional)
    sequence = ranges(reader, replace(sequence, clauses=kind is not None), "START")
    if reader.peek("OPTIONS"):
        if sequence.clauses:
            raise SchemaError(
                f"The sequence properties of {name} can be set in clauses or in OPTIONS, not both."
            )
        sequence = with_options(sequence, options(reader))
    reader.accept(";")
    reader.end()
    return checked(sequence)


def altered(sequence: Sequence, text: str) -> Sequence:
    """The sequence after ALTER SEQUENCE. Raises DdlSyntaxError, or SchemaError."""
    reader = Reader(text)
    reader.expect("ALTER", "SEQUENCE")
    reader.accept("IF", "EXISTS")
    reader.path("a sequence's name")
    before = replace(sequence, optional=False, restarts=False)
    if reader.accept("SET"):
        after = with_options(before, options(reader))
    else:
        after = ranges(reader, before, "RESTART")
    reader.accept(";")
    reader.end()
    return checked(after)


def altered_name(text: str) -> tuple[str, bool]:
    """The sequence that an ALTER SEQUENCE names, and whether it says IF EXISTS."""
    reader = Reader(text)
    reader.expect("ALTER", "SEQUENCE")
    optional = reader.accept("IF", "EXISTS")
    return reader.path("a sequence's name"), optional


def ranges(reader: Reader, sequence: Sequence, counter: str) -> Sequence:
    """[NO] SKIP RANGE a, b and START | RESTART COUNTER WITH n, in any order."""
    while True:
        if reader.accept("SKIP", "RANGE"):
            low = reader.number()
            reader.expect(",")
            sequence = replace(
                sequence, skip_range_min=low, skip_range_max=reader.number(), clauses=True
            )
        elif counter == "RESTART" and reader.accept("NO", "SKIP", "RANGE"):
            sequence = replace(sequence, skip_range_min=None, skip_range_max=None)
        elif reader.accept(counter, "COUNTER", "WITH"):
            sequence = replace(
                sequence, start_with_counter=reader.number(), clauses=True, restarts=True
            )
        else:
            return sequence


def with_options(sequence: Sequence, pairs: tuple[tuple[str, str], ...]) -> Sequence:
    """The sequence with options set, or taken away by NULL."""
    changes: dict[str, object] = {}
    for name, value in pairs:
        gone = value.upper() == "NULL"
        if name == "sequence_kind":
            kind = value.strip("'\"").lower()
            if gone or kind != BIT_REVERSED:
                raise SchemaError(f"Invalid Sequence Kind: {value}.")
            changes["kind"] = kind
        elif name in BOUNDS:
            changes[name] = None if gone else whole(name, value)
        else:
            raise SchemaError(f"Unsupported sequence option: {name}.")
    restarts = changes.get("start_with_counter") is not None
    return replace(sequence, restarts=restarts, **changes)  # type: ignore[arg-type]


def whole(name: str, value: str) -> int:
    """The number of an option."""
    try:
        return int(value, 0)
    except ValueError as error:
        raise SchemaError(f"Option {name} can only take an INT64 value.") from error


def checked(sequence: Sequence) -> Sequence:
    """Spanner's rules for the numbers."""
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


def sequences(schema: Schema) -> Mapping[str, Sequence]:
    """The sequences of a schema, by their names as written."""
    return {item.name: read_sequence(item.text) for item in schema.verbatim if item.kind == KIND}


def sequence(schema: Schema, name: str) -> Verbatim | None:
    """The sequence of this name (without regard to case), or None."""
    return find(tuple(item for item in schema.verbatim if item.kind == KIND), name)


def sequences_in(expression: str) -> set[str]:
    """The names, in lower case, that an expression gives after the word SEQUENCE."""
    reader = Reader(expression)
    found = set()
    while reader.token.kind is not Kind.END:
        if reader.accept("SEQUENCE") and reader.token.kind in {Kind.WORD, Kind.QUOTED}:
            found.add(reader.path().casefold())
        else:
            reader.advance()
    return found


def identity_column(text: str) -> tuple[str, str]:
    """Table and column of ALTER TABLE t ALTER COLUMN c ALTER IDENTITY."""
    reader = Reader(text)
    return identity_head(reader)


def identity_head(reader: Reader) -> tuple[str, str]:
    """Reads such a statement up to what it changes."""
    reader.expect("ALTER", "TABLE")
    table = reader.path("a table name")
    reader.expect("ALTER")
    reader.accept("COLUMN")
    column = reader.name("a column name")
    reader.expect("ALTER", "IDENTITY")
    return table, column


def identity_after(identity: Identity, text: str) -> tuple[Identity, bool]:
    """The identity after ALTER IDENTITY, and whether its counter starts anew."""
    reader = Reader(text)
    identity_head(reader)
    reader.accept("SET")
    low, high = identity.skip_range or (None, None)
    before = Sequence("", BIT_REVERSED, low, high, identity.start_counter)
    after = checked(ranges(reader, before, "RESTART"))
    reader.accept(";")
    reader.end()
    low, high = after.skip_range_min, after.skip_range_max
    skipped = None if low is None or high is None else (low, high)
    return Identity(after.start_with_counter, skipped), after.restarts
