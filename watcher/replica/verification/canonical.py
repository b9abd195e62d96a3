"""The canonical text of a row, in each dialect; ``row_hashes`` makes it of Arrow columns.

A row is the parts of its columns. The part of NULL is ``~``; that of another value is its text and
``;``. Before a STRING, BYTES, PROTO or JSON stand its length in bytes and ``:``. So different rows
have different texts.

| type | text |
|---|---|
| BOOL | ``true``, ``false`` |
| INT64, ENUM | decimal |
| FLOAT32, FLOAT64 | ``%.16e`` of the FLOAT64 (exact); ``nan``, ``inf``, ``-inf``; zero with its
  sign, but without it in a primary key, where Spanner has one zero, and in the PostgreSQL dialect,
  whose change streams (jsonb) have one |
| NUMERIC, numeric | decimal, without trailing zeros; where the copy keeps text, as it is written |
| STRING, UUID | itself |
| BYTES, PROTO | hexadecimal, lower case |
| DATE | ISO 8601 |
| TIMESTAMP | microseconds since 1970, rounded down; where the copy keeps text, also ``.`` and the
  nanoseconds of the microsecond |
| JSON, jsonb | as Spanner writes it |
| ARRAY | the parts of its elements |

The hash of a row is the FarmHash fingerprint of the SHA-256 of its text, which both dialects have;
that of a range is the sum of its rows' hashes, beside their count.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, assert_never

from spanner_schema.model.column_types import Type
from spanner_schema.model.schema import Dialect
from watcher.model.value_types import Form, describe_values, get_compared, write_compared
from watcher.spanner.dialects import GOOGLESQL, POSTGRESQL, SqlDialect
from watcher.tables.masks import REDACTED, Mask, MaskKind

LOW_BITS = 0xFFFFFFFF
FLOAT_FORMAT = "%.16e"
FLOAT_PICTURE = f"9.{'9' * 16}EEEE"
"""The same in the words of TO_CHAR."""
ZERO, NEGATIVE_ZERO = FLOAT_FORMAT % 0.0, FLOAT_FORMAT % -0.0
BACKSLASH = "CHR(92)"
NULL_PART = "~"
END = ";"
"""The end of a part: no text has it but those whose length stands before them."""
MASKED_PARTS = {MaskKind.NULL: NULL_PART, MaskKind.REDACT: f"{len(REDACTED)}:{REDACTED}"}
"""Those of columns of which a copy has none of the values."""
SECOND_DAY = "CAST('0001-01-02 00:00:00+00' AS timestamptz)"


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A column that is compared. ``exact``: the copy keeps its TIMESTAMPs, or numerics, as text.
    ``one_zero``: -0.0 is 0.0 in it. ``mask``: what the copy has in place of its values."""

    name: str
    type: Type
    exact: bool = False
    one_zero: bool = False
    mask: Mask | None = None

    @property
    def hashed(self) -> bool:
        """Whether the copy has hashes of its values, by a key that Spanner is not given."""
        return self.mask is not None and self.mask.reads_column

    @property
    def element(self) -> ComparedColumn | None:
        """What an ARRAY has elements of."""
        return None if self.type.element is None else replace(self, type=self.type.element)


class CanonicalText(ABC):
    """The expressions of a dialect; those of both have the same values."""

    sql: ClassVar[SqlDialect]

    def render_part(self, value: str, column: ComparedColumn) -> str:
        """The expression of the part of a value; of one that is not read, that of its mask."""
        if column.mask is not None and not column.hashed:
            return f"'{MASKED_PARTS[column.mask.kind]}'"
        if column.element is not None:
            parts = self.render_elements(value, column.element)
            return f"CASE WHEN {value} IS NULL THEN '{NULL_PART}' ELSE CONCAT({parts}, '{END}') END"
        text = self.render_text(value, column)
        if not is_measured(column):
            return f"COALESCE(CONCAT({text}, '{END}'), '{NULL_PART}')"
        measured = f"CONCAT({self.sql.to_text(f'{self.byte_length}({text})')}, ':', {text})"
        # The text of a JSON that is NULL need not be NULL.
        return f"CASE WHEN {value} IS NULL THEN '{NULL_PART}' ELSE {measured} END"

    byte_length: ClassVar[str]

    def render_text(self, value: str, column: ComparedColumn) -> str:
        """The expression of the text of a value that is not an ARRAY. NULL for NULL, except for
        measured types. Raises UnsupportedTypeError."""
        text = write_compared(column.type, self.sql.dialect).format(value)
        form = describe_values(column.type).form
        match form:
            case Form.FLOAT32 | Form.FLOAT64:
                return self.render_float(text, column.one_zero)
            case Form.WIDE_NUMERIC:
                return text if column.exact else self.trim_fraction(text)
            case Form.TIMESTAMP:
                nanos = self.sql.to_text(self.render_nanoseconds(value))
                return f"CONCAT({text}, '.', {nanos})" if column.exact else text
            case Form.BOOL | Form.INTEGER | Form.NUMERIC | Form.DATE:
                return text
            case Form.TEXT | Form.BYTES | Form.JSON:
                return text
        assert_never(form)

    @abstractmethod
    def render_float(self, value: str, one_zero: bool) -> str:
        """The text of a FLOAT64."""

    @abstractmethod
    def render_nanoseconds(self, value: str) -> str:
        """The nanoseconds of the microsecond of a TIMESTAMP, an INT64."""

    def trim_fraction(self, text: str) -> str:
        """The text of a decimal without trailing zeros."""
        trimmed = f"RTRIM(RTRIM({text}, '0'), '.')"
        return f"CASE WHEN STRPOS({text}, '.') > 0 THEN {trimmed} ELSE {text} END"

    @abstractmethod
    def render_elements(self, value: str, element: ComparedColumn) -> str:
        """The expression of the parts of the elements of an ARRAY that is not NULL."""

    @abstractmethod
    def hash_text(self, text: str) -> str:
        """The expression of the hash of a text, an INT64."""

    @abstractmethod
    def add_up(self, value: str) -> str:
        """The sum of small integers, an INT64."""


class GoogleSqlText(CanonicalText):
    """GoogleSQL."""

    sql = GOOGLESQL
    byte_length = "BYTE_LENGTH"

    def render_elements(self, value: str, element: ComparedColumn) -> str:
        """As ``CanonicalText.render_elements``."""
        part = self.render_part("e", element)
        rows = f"SELECT {part} FROM UNNEST({value}) AS e WITH OFFSET AS o ORDER BY o"  # noqa: S608
        return f"ARRAY_TO_STRING(ARRAY({rows}), '')"

    def render_nanoseconds(self, value: str) -> str:
        """In the default zone the year 1 would begin in the year 0, which there is none of."""
        return f"MOD(EXTRACT(NANOSECOND FROM {value} AT TIME ZONE 'UTC'), 1000)"

    def render_float(self, value: str, one_zero: bool) -> str:
        """FORMAT writes zero without its sign."""
        text = f"FORMAT('{FLOAT_FORMAT}', {value})"
        if one_zero:
            return text
        negative = f"{value} = 0 AND IEEE_DIVIDE(1, {value}) < 0"
        return f"CASE WHEN {negative} THEN '{NEGATIVE_ZERO}' ELSE {text} END"

    def hash_text(self, text: str) -> str:
        """As ``CanonicalText.hash_text``."""
        return f"FARM_FINGERPRINT(SHA256({text}))"

    def add_up(self, value: str) -> str:
        """As ``CanonicalText.add_up``."""
        return f"COALESCE(SUM({value}), 0)"


class PostgreSqlText(CanonicalText):
    """Spanner's PostgreSQL dialect."""

    sql = POSTGRESQL
    byte_length = "OCTET_LENGTH"
    index = '"the index"'
    """A name that hides no column."""

    def render_elements(self, value: str, element: ComparedColumn) -> str:
        """As ``CanonicalText.render_elements``."""
        part = self.render_part(f"{value}[{self.index}]", element)
        source = f"GENERATE_SERIES(1, ARRAY_LENGTH({value}, 1)) AS {self.index}"
        parts = f"ARRAY(SELECT {part} FROM {source} ORDER BY {self.index})"  # noqa: S608 (our own text)
        return f"COALESCE(ARRAY_TO_STRING({parts}, ''), '')"

    def render_nanoseconds(self, value: str) -> str:
        """Those of the microsecond, from the text. In the default zone the first day of the year 1
        is in the year 0, which has no text: there they are taken as 0, and a row that has others
        there is reported as changed."""
        text = f"CONCAT({self.sql.to_text(value)}, '.')"
        fraction = f"SPLIT_PART(SPLIT_PART(SPLIT_PART({text}, '.', 2), '-', 1), '+', 1)"
        nanos = f"CAST(SUBSTR(RPAD({fraction}, 9, '0'), 7, 3) AS bigint)"
        return f"CASE WHEN {value} < {SECOND_DAY} THEN 0 ELSE {nanos} END"

    def render_float(self, value: str, one_zero: bool) -> str:  # noqa: ARG002 (of both dialects)
        """Both zeros have one text."""
        return (
            f"CASE WHEN {value} = 'NaN' THEN 'nan' WHEN {value} = 'Infinity' THEN 'inf'"
            f" WHEN {value} = '-Infinity' THEN '-inf' WHEN {value} = 0 THEN '{ZERO}'"
            f" ELSE BTRIM(TO_CHAR({value}, '{FLOAT_PICTURE}')) END"
        )

    def hash_text(self, text: str) -> str:
        """A text becomes bytea as a literal does, where a backslash is written twice."""
        escaped = f"REPLACE({text}, {BACKSLASH}, {BACKSLASH} || {BACKSLASH})"
        return f"SPANNER.FARM_FINGERPRINT(SHA256(CAST({escaped} AS bytea)))"

    def add_up(self, value: str) -> str:
        """The sum of bigints is a numeric."""
        return f"CAST(COALESCE(SUM({value}), 0) AS bigint)"


TEXTS: Mapping[Dialect, CanonicalText] = {
    Dialect.GOOGLESQL: GoogleSqlText(),
    Dialect.POSTGRESQL: PostgreSqlText(),
}


def is_measured(column: ComparedColumn) -> bool:
    """Whether the text of a value may have any character, so that its length is part of it."""
    return column.element is None and get_compared(column.type).measured


def render_parts(columns: Iterable[ComparedColumn], dialect: Dialect) -> list[str]:
    """The expression of the part of each column."""
    texts = TEXTS[dialect]
    return [texts.render_part(texts.sql.quote_column(each.name), each) for each in columns]


def render_hash(columns: Iterable[ComparedColumn], dialect: Dialect) -> str:
    """The expression of the hash of a row, an INT64."""
    parts = ", ".join(["''", *render_parts(columns, dialect)])
    return TEXTS[dialect].hash_text(f"CONCAT({parts})")


def render_sum(value: str, dialect: Dialect) -> str:
    """The sums of the lower and of the upper 32 bits of a column of hashes: an INT64 would not
    hold the sum of whole ones."""
    add_up = TEXTS[dialect].add_up
    return f"{add_up(f'{value} & {LOW_BITS}')}, {add_up(f'({value} >> 32) & {LOW_BITS}')}"
