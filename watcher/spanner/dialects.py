"""What the two dialects of Spanner write differently, in one place: names, parameters, hints,
functions, types.

A ``SqlDialect`` travels as a value with what is read (``WatchedTable.dialect``), or is found
once for a client (``find_dialect``). Texts name their parameters ``@name``; the dialect says how
they are sent.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from spanner_schema.model.schema import Dialect
from spanner_schema.syntax.render import ROW, render_index_hint, row_alias
from watcher.model.errors import ConfigurationError

if TYPE_CHECKING:
    from google.cloud.spanner_v1.database import Database

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}\Z")
PARAMETER = r"@([A-Za-z_][A-Za-z0-9_]*)"
GOOGLESQL_PARAMETER = re.compile(rf"`(?:[^`\\]|\\.)*`|{PARAMETER}")
POSTGRESQL_PARAMETER = re.compile(rf'"(?:[^"]|"")*"|{PARAMETER}')
"""A parameter of a text, or a name in quotes, in which something may look like one."""

FIND_DIALECT = (
    "SELECT option_value FROM information_schema.database_options"
    " WHERE option_name = 'database_dialect'"
)
"""Both dialects take it. A database without the row has GoogleSQL."""

Values = Mapping[str, tuple[object, object]]
"""The value and the type of each parameter."""
Bound = tuple[str, dict[str, Any] | None, dict[str, Any] | None]
"""The text, the parameters and their types, in the order in which the client takes them."""


def check_name(name: str) -> list[str]:
    """The parts of a name: its named schema, if any, and its name there.

    Raises ConfigurationError.
    """
    parts = name.split(".")
    if not all(NAME.match(part) for part in parts):
        raise ConfigurationError(
            f"invalid name '{name}': Spanner allows a letter or underscore, followed by"
            " letters, digits and underscores, at most 128 in all"
        )
    return parts


class SqlDialect(ABC):
    """How SQL is written for a database. Without state: there is one object a dialect."""

    dialect: ClassVar[Dialect]
    default_schema: ClassVar[str]
    """How information_schema calls the schema of tables without a named schema."""
    commit_timestamp: ClassVar[str]
    """The commit timestamp of the transaction, in DML."""
    null_integer: ClassVar[str]
    """NULL as an INT64."""
    row: ClassVar[str]
    """A name of rows that hides no column."""
    nan_is_greatest: ClassVar[bool]
    """Whether NaN is above all numbers, in comparisons and in order; else it is below, and compares
    with nothing."""

    def quote(self, name: str) -> str:
        """An identifier, with its named schema. Raises ConfigurationError."""
        return ".".join(map(self.quote_column, check_name(name)))

    @abstractmethod
    def quote_column(self, name: str) -> str:
        """A column. In the PostgreSQL dialect its name may have any characters, a dot too."""

    def quote_all(self, names: Iterable[str]) -> str:
        """Columns, one after another."""
        return ", ".join(map(self.quote_column, names))

    def render_table(self, name: str, columns: Iterable[str], index: str | None = None) -> str:
        """A table in FROM, UPDATE or DELETE, through an index if one is named.

        ``columns`` are those of the query: the table's name may hide one of them that has it.
        """
        return f"{self.quote(name)}{self.force_index(index)}{self._alias(name, columns)}"

    @abstractmethod
    def quote_view_column(self, name: str) -> str:
        """A column of information_schema, by its name in GoogleSQL."""

    @abstractmethod
    def _alias(self, table: str, columns: Iterable[str]) -> str: ...

    def force_index(self, index: str | None) -> str:
        """The hint that forces an index; empty without one. Raises ConfigurationError."""
        if index is not None:
            check_name(index)
        return render_index_hint(index, self.dialect)

    @abstractmethod
    def is_any(self, value: str, parameter: str) -> str:
        """The value is one of the elements of an array."""

    @abstractmethod
    def to_text(self, value: str) -> str:
        """A value as text."""

    @abstractmethod
    def add_milliseconds(self, time: str, parameter: str) -> str:
        """A time so many milliseconds later."""

    @abstractmethod
    def returning(self, columns: str) -> str:
        """The clause by which DML returns rows."""

    @abstractmethod
    def is_nan(self, value: str) -> str:
        """A number is NaN."""

    @abstractmethod
    def ends_with(self, value: str, part: str) -> str:
        """A text ends with another."""

    @abstractmethod
    def digest_lines(self, lines: str) -> str:
        """An INT64 of the texts ``Line`` of a query, in whatever order they come."""

    @abstractmethod
    def name_read_function(self, name: str, messages: bool) -> str:
        """The function that reads a change stream; ``messages``: one whose keys move."""

    @abstractmethod
    def read_stream(self, name: str, messages: bool) -> str:
        """The query of a change stream, with the parameters @start, @end, @token and @heartbeat.

        Spanner: its function is called by its name alone, with nothing around it.
        """

    @abstractmethod
    def add_parameter(self, sql: str, name: str) -> tuple[str, str]:
        """An application's own text with ``@name`` as one more parameter, and the name under which
        that is sent."""

    @abstractmethod
    def place_parameters(self, sql: str) -> tuple[str, dict[str, str]]:
        """A text as it is sent, and under which name each of its parameters is sent."""

    def bind(self, sql: str, values: Values | None = None) -> Bound:
        """What the client takes: ``values`` has the value and the type of each parameter."""
        if not values:
            return sql, None, None
        text, names = self.place_parameters(sql)
        params = {sent: values[name][0] for name, sent in names.items()}
        return text, params, {sent: values[name][1] for name, sent in names.items()}


class GoogleSql(SqlDialect):
    """GoogleSQL."""

    dialect = Dialect.GOOGLESQL
    default_schema = ""
    commit_timestamp = "PENDING_COMMIT_TIMESTAMP()"
    null_integer = "CAST(NULL AS INT64)"
    row = ROW
    nan_is_greatest = False

    def quote_column(self, name: str) -> str:
        """As ``SqlDialect.quote_column``."""
        escaped = name.replace("\\", "\\\\").replace("`", "\\`")
        return f"`{escaped}`"

    def quote_view_column(self, name: str) -> str:
        """As ``SqlDialect.quote_view_column``."""
        return f"`{name}`"

    def _alias(self, table: str, columns: Iterable[str]) -> str:
        return row_alias(table, columns)

    def is_any(self, value: str, parameter: str) -> str:
        """As ``SqlDialect.is_any``."""
        return f"{value} IN UNNEST({parameter})"

    def to_text(self, value: str) -> str:
        """As ``SqlDialect.to_text``."""
        return f"CAST({value} AS STRING)"

    def add_milliseconds(self, time: str, parameter: str) -> str:
        """As ``SqlDialect.add_milliseconds``."""
        return f"TIMESTAMP_ADD({time}, INTERVAL {parameter} MILLISECOND)"

    def returning(self, columns: str) -> str:
        """As ``SqlDialect.returning``."""
        return f"THEN RETURN {columns}"

    def is_nan(self, value: str) -> str:
        """As ``SqlDialect.is_nan``."""
        return f"IS_NAN({value})"

    def ends_with(self, value: str, part: str) -> str:
        """As ``SqlDialect.ends_with``."""
        return f"ENDS_WITH({value}, {part})"

    def digest_lines(self, lines: str) -> str:
        """No two texts are the same, so that none cancels another out of the XOR."""
        return f"SELECT COALESCE(BIT_XOR(FARM_FINGERPRINT(Line)), 0) FROM ({lines})"  # noqa: S608

    def name_read_function(self, name: str, messages: bool) -> str:  # noqa: ARG002
        """One function has both kinds of records."""
        return f"READ_{name}"

    def read_stream(self, name: str, messages: bool) -> str:
        """As ``SqlDialect.read_stream``."""
        function = self.name_read_function(name, messages)
        return (
            f"SELECT ChangeRecord FROM {function}(start_timestamp => @start,"  # noqa: S608
            " end_timestamp => @end, partition_token => @token, read_options => NULL,"
            " heartbeat_milliseconds => @heartbeat)"
        )

    def add_parameter(self, sql: str, name: str) -> tuple[str, str]:
        """As ``SqlDialect.add_parameter``."""
        return sql, name

    def place_parameters(self, sql: str) -> tuple[str, dict[str, str]]:
        """As ``SqlDialect.place_parameters``: by their names."""
        return sql, {name: name for name in GOOGLESQL_PARAMETER.findall(sql) if name}


class PostgreSql(SqlDialect):
    """Spanner's PostgreSQL dialect."""

    dialect = Dialect.POSTGRESQL
    default_schema = "public"
    commit_timestamp = "SPANNER.PENDING_COMMIT_TIMESTAMP()"
    null_integer = "CAST(NULL AS bigint)"
    row = '"the row"'
    nan_is_greatest = True

    def quote_column(self, name: str) -> str:
        """As ``SqlDialect.quote_column``."""
        escaped = name.replace('"', '""')
        return f'"{escaped}"'

    def quote_view_column(self, name: str) -> str:
        """As ``SqlDialect.quote_view_column``: they are in lower case."""
        return f'"{name.lower()}"'

    def _alias(self, table: str, columns: Iterable[str]) -> str:  # noqa: ARG002
        return ""  # PostgreSQL looks for a column first

    def is_any(self, value: str, parameter: str) -> str:
        """As ``SqlDialect.is_any``."""
        return f"{value} = ANY({parameter})"

    def to_text(self, value: str) -> str:
        """As ``SqlDialect.to_text``."""
        return f"CAST({value} AS text)"

    def add_milliseconds(self, time: str, parameter: str) -> str:
        """As ``SqlDialect.add_milliseconds``."""
        return f"SPANNER.TIMESTAMPTZ_ADD({time}, {self.to_text(parameter)} || ' milliseconds')"

    def returning(self, columns: str) -> str:
        """As ``SqlDialect.returning``."""
        return f"RETURNING {columns}"

    def is_nan(self, value: str) -> str:
        """PostgreSQL: NaN equals NaN."""
        return f"{value} = 'NaN'"

    def ends_with(self, value: str, part: str) -> str:
        """As ``SqlDialect.ends_with``."""
        return f"RIGHT({value}, LENGTH({part})) = {part}"

    def digest_lines(self, lines: str) -> str:
        """Spanner has no bit_xor in this dialect; the sum of bigints is a numeric of any size."""
        total = "COALESCE(SUM(SPANNER.FARM_FINGERPRINT(line)), 0)"
        digest = f"CAST(MOD({total}, 9223372036854775807) AS bigint)"
        return f"SELECT {digest} FROM ({lines}) AS all_lines"  # noqa: S608

    def name_read_function(self, name: str, messages: bool) -> str:
        """Records are JSON, those of a stream whose keys move are messages."""
        return f"read_{'proto_bytes' if messages else 'json'}_{name}"

    def read_stream(self, name: str, messages: bool) -> str:
        """As ``SqlDialect.read_stream``."""
        function = self.name_read_function(name, messages)
        return f'SELECT * FROM "spanner"."{function}"(@start, @end, @token, @heartbeat, null)'  # noqa: S608

    def add_parameter(self, sql: str, name: str) -> tuple[str, str]:
        """As ``SqlDialect.add_parameter``: after the last number."""
        number = max(map(int, re.findall(r"\$(\d+)", sql)), default=0) + 1
        return re.sub(rf"@{name}\b", f"${number}", sql), f"p{number}"

    def place_parameters(self, sql: str) -> tuple[str, dict[str, str]]:
        """As ``SqlDialect.place_parameters``: ``$1`` is sent under the name ``p1``."""
        numbers: dict[str, int] = {}

        def number(match: re.Match[str]) -> str:
            if match[1] is None:
                return match[0]
            return f"${numbers.setdefault(match[1], len(numbers) + 1)}"

        text = POSTGRESQL_PARAMETER.sub(number, sql)
        return text, {name: f"p{at}" for name, at in numbers.items()}


GOOGLESQL, POSTGRESQL = GoogleSql(), PostgreSql()
DIALECTS: Mapping[Dialect, SqlDialect] = {
    Dialect.GOOGLESQL: GOOGLESQL,
    Dialect.POSTGRESQL: POSTGRESQL,
}

FOUND = "_sql_dialect"
"""The attribute of a client's database that keeps what was found: it cannot be hashed."""


def parse_dialect(option: str | None) -> SqlDialect:
    """The dialect that the answer of ``FIND_DIALECT`` names."""
    return POSTGRESQL if option == "POSTGRESQL" else GOOGLESQL


def find_dialect(database: Database) -> SqlDialect:
    """The dialect of a client's database, which never changes: asked once, by one query."""
    found: SqlDialect | None = getattr(database, FOUND, None)
    if found is None:
        with database.snapshot() as snapshot:
            rows = list(snapshot.execute_sql(FIND_DIALECT))
        found = parse_dialect(rows[0][0] if rows else None)
        setattr(database, FOUND, found)
    return found
