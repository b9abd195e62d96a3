"""Placements: what CREATE PLACEMENT says, which tables keep their rows in placements, and the
functions that read change streams by placement.

Spanner: a placement table has a column with PLACEMENT KEY, whose value names the placement of each
row. The rows of the tables that are interleaved in it are where their ancestor is; everything else
is in the default placement.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from spanner_schema.model.errors import InvalidDefinitionError
from spanner_schema.model.names import same_name
from spanner_schema.model.schema import ChangeStream, Dialect, Schema, Table, Verbatim, find
from spanner_schema.syntax.googlesql.parts import read_options
from spanner_schema.syntax.reader import TokenReader

KIND = "PLACEMENT"
DEFAULT = "default"
"""The placement that every database has; no statement creates it."""

PARTITION_OPTION = "instance_partition"
FUNCTION_OPTION = "per_placement_tvf"
MODE_OPTION = "partition_mode"
MUTABLE = "MUTABLE_KEY_RANGE"
OPTIONS = (PARTITION_OPTION, "default_leader", "read_lease_regions")


@dataclass(frozen=True, slots=True)
class Placement:
    """A placement; ``written`` is its name with its quotes, ``optional`` says IF NOT EXISTS.

    ``options`` are those that are set, as they were written.
    """

    name: str
    written: str
    options: tuple[tuple[str, str], ...]
    optional: bool = False

    @property
    def instance_partition(self) -> str:
        """The instance partition in which it keeps its rows."""
        return strip_quotes(dict(self.options)[PARTITION_OPTION])

    @property
    def text(self) -> str:
        """The statement that creates the placement."""
        pairs = (f"{name} = {value}" for name, value in self.options)
        return f"CREATE PLACEMENT {self.written} OPTIONS ({', '.join(pairs)})"


@lru_cache(maxsize=1_000)
def read_placement(text: str) -> Placement:
    """Reads a whole CREATE PLACEMENT statement. Raises DdlSyntaxError, InvalidDefinitionError."""
    reader = TokenReader(text)
    reader.expect("CREATE", KIND)
    optional = reader.accept("IF", "NOT", "EXISTS")
    start = reader.token.start
    name = reader.read_path("a placement name")
    written = text[start : reader.token.start].strip().rstrip(";").strip()
    options = check_options(read_options(reader) if reader.peek("OPTIONS") else ())
    reader.accept(";")
    reader.expect_end()
    if PARTITION_OPTION not in dict(options):
        raise InvalidDefinitionError(
            f"CREATE PLACEMENT statements require option `{PARTITION_OPTION}` to be set"
        )
    return Placement(name, written, options, optional)


def read_altered_placement(text: str) -> tuple[str, bool]:
    """The placement that an ALTER PLACEMENT names, and whether it says IF EXISTS. Raises as
    ``read_placement``."""
    reader = TokenReader(text)
    reader.expect("ALTER", KIND)
    optional = reader.accept("IF", "EXISTS")
    name = reader.read_path("a placement name")
    if reader.accept("SET"):
        check_options(read_options(reader))
    reader.accept(";")
    reader.expect_end()
    return name, optional


def check_options(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    """The options that are set; NULL sets nothing. Raises InvalidDefinitionError."""
    options: dict[str, str] = {}
    seen: set[str] = set()
    for name, value in pairs:
        if name in seen:
            raise InvalidDefinitionError(f"Duplicate option: {name}")
        seen.add(name)
        if name not in OPTIONS:
            raise InvalidDefinitionError(f"Option: {name} is unknown.")
        if value.upper() == "NULL":
            if name == PARTITION_OPTION:
                raise InvalidDefinitionError(f"Placements must have a non-NULL {PARTITION_OPTION}.")
            continue
        if value[:1] not in {"'", '"'}:
            raise InvalidDefinitionError(
                f"Unexpected value for option: {name}. Supported option values are strings and"
                " NULL."
            )
        options[name] = value
        if not strip_quotes(value):
            raise InvalidDefinitionError(
                f"Empty string is an invalid value for {name}. If you'd like to clear a previously"
                " set value, use NULL."
            )
    return tuple(options.items())


def strip_quotes(value: str) -> str:
    """The text of a literal."""
    return value.strip("'\"")


def read_placements(schema: Schema) -> list[Placement]:
    """The placements of a schema, without the default one."""
    return [read_placement(item.text) for item in schema.verbatim if item.kind == KIND]


def find_placement(schema: Schema, name: str) -> Verbatim | None:
    """The placement of this name (without regard to case), or None."""
    return find(tuple(item for item in schema.verbatim if item.kind == KIND), name)


def find_placement_table(schema: Schema, table: Table) -> Table | None:
    """The table whose placement key says where the rows of a table are: itself, or one in which it
    is interleaved; None for tables of the default placement."""
    while table.placement_key is None:
        above = table.interleave
        parent = schema.table(above.parent) if above is not None and above.enforced else None
        if parent is None or same_name(parent.name, table.name):
            return None
        table = parent
    return table


@dataclass(frozen=True, slots=True)
class ReadFunction:
    """A function that reads a change stream; ``name`` is without ``READ_``. An empty ``placement``
    is all of them."""

    name: str
    stream: ChangeStream
    placement: str = ""

    def write(self, dialect: Dialect) -> str:
        """The function as statements name it: in the PostgreSQL dialect what the records are in is
        a part of its name."""
        if dialect is Dialect.GOOGLESQL:
            return f"READ_{self.name}"
        form = "proto_bytes" if has_moving_keys(self.stream) else "json"
        return f"spanner.read_{form}_{self.name}"


def is_per_placement(stream: ChangeStream) -> bool:
    """Whether a change stream has a function for each placement."""
    return dict(stream.options).get(FUNCTION_OPTION, "").casefold() == "true"


def has_moving_keys(stream: ChangeStream) -> bool:
    """Whether the partitions of a change stream live on while keys move between them."""
    return strip_quotes(dict(stream.options).get(MODE_OPTION, "")) == MUTABLE


def list_placement_names(schema: Schema) -> list[str]:
    """The names of all placements, the default one first."""
    return [DEFAULT, *(placement.name for placement in read_placements(schema))]


def list_read_functions(schema: Schema) -> Iterator[ReadFunction]:
    """The functions that read the change streams of a schema."""
    for stream in schema.change_streams:
        yield ReadFunction(stream.name, stream)
        for placement in list_placement_names(schema) if is_per_placement(stream) else ():
            yield ReadFunction(f"{stream.name}_{placement}", stream, placement)
