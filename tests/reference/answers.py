"""The answer of a query in a form that two implementations can be compared in.

A type is its SQL text. Values are what JSON has: integers, NUMERIC, dates and bytes (base64) are as
Spanner's API writes them; a TIMESTAMP is its nanoseconds since 1970, an INTERVAL its months, days
and nanoseconds, a float that is no number a word, a STRUCT or ARRAY a list, a JSON value its text.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from google.api_core.exceptions import GoogleAPICallError
from google.cloud.spanner_v1 import StructType, Type, TypeCode
from google.cloud.spanner_v1.database import Database
from google.protobuf.struct_pb2 import Value

RELATIVE_TOLERANCE, RELATIVE_TOLERANCE_32 = 1e-13, 1e-6
"""How far two floats may lie apart: mathematical libraries differ in the last digit."""
ABSOLUTE_TOLERANCE = 1e-300
INTERVAL = re.compile(
    r"P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(?:\.(\d+))?S)?)?"
)
TIMESTAMP = re.compile(r"(\d+-\d+-\d+T\d+:\d+:\d+)(?:\.(\d+))?Z")


@dataclass(frozen=True, slots=True)
class Answer:
    """``columns`` are names and types; ``refusal`` is the error in the place of rows."""

    columns: Sequence[tuple[str, str]] = ()
    rows: Sequence[Sequence[Any]] = ()
    refusal: str | None = None

    def to_plain(self) -> dict[str, Any]:
        """For JSON."""
        return {"columns": self.columns, "rows": self.rows, "refusal": self.refusal}

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Answer:
        """The answer from its JSON."""
        columns = tuple((name, kind) for name, kind in plain["columns"])
        return cls(columns, plain["rows"], plain["refusal"])

    def describe(self, limit: int = 200) -> str:
        """A line for a person."""
        if self.refusal is not None:
            return f"refused: {self.refusal}"[:limit]
        columns = ", ".join(f"{name} {kind}".strip() for name, kind in self.columns)
        return f"({columns}) {json.dumps(self.rows, ensure_ascii=False)}"[:limit]


def ask_server(database: Database, sql: str) -> Answer:
    """What a Spanner server answers."""
    try:
        with database.snapshot() as snapshot:
            result = snapshot.execute_sql(sql, lazy_decode=True)
            rows = [list(row) for row in result]
            fields = list(result.metadata.row_type.fields)
    except GoogleAPICallError as error:
        return Answer(
            refusal=f"{error.grpc_status_code and error.grpc_status_code.name}: {error.message}"
        )
    columns = [(each.name, type_text(each.type_)) for each in fields]
    types = [each.type_ for each in fields]
    plain = [[read(type_, value) for type_, value in zip(types, row, strict=True)] for row in rows]
    return Answer(columns, plain)


def type_text(type_: Type) -> str:
    """A type as SQL writes it."""
    if type_.code == TypeCode.ARRAY:
        return f"ARRAY<{type_text(type_.array_element_type)}>"
    if type_.code == TypeCode.STRUCT:
        return f"STRUCT<{', '.join(map(field_text, type_.struct_type.fields))}>"
    return str(TypeCode(type_.code).name)


def field_text(each: StructType.Field) -> str:
    """A field of a STRUCT as SQL writes it."""
    return f"{each.name} {type_text(each.type_)}".strip()


def read(type_: Type, value: Value) -> Any:
    """A value of the API."""
    if value.HasField("null_value"):
        return None
    if type_.code == TypeCode.ARRAY:
        return [read(type_.array_element_type, item) for item in value.list_value.values]
    if type_.code == TypeCode.STRUCT:
        fields = type_.struct_type.fields
        items = value.list_value.values
        return [read(each.type_, item) for each, item in zip(fields, items, strict=True)]
    if type_.code == TypeCode.BOOL:
        return value.bool_value
    if type_.code in {TypeCode.FLOAT64, TypeCode.FLOAT32}:
        return value.number_value if value.HasField("number_value") else value.string_value
    if type_.code == TypeCode.TIMESTAMP:
        return read_timestamp(value.string_value)
    if type_.code == TypeCode.INTERVAL:
        return read_interval(value.string_value)
    return value.string_value


def read_timestamp(text: str) -> int:
    """Nanoseconds since 1970."""
    match = TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(f"not a timestamp of the API: {text}")
    since = datetime.fromisoformat(match[1]).replace(tzinfo=UTC) - datetime.fromtimestamp(0, UTC)
    return (since.days * 86_400 + since.seconds) * 10**9 + int((match[2] or "").ljust(9, "0"))


def read_interval(text: str) -> list[int]:
    """Months, days, nanoseconds."""
    match = INTERVAL.fullmatch(text)
    if match is None:
        raise ValueError(f"not an interval of the API: {text}")
    years, months, days, hours, minutes = (int(each or 0) for each in match.groups()[:5])
    nanos = int(match[7] or 0) * 10**9 + int((match[8] or "").ljust(9, "0"))
    seconds = (hours * 3_600 + minutes * 60) * 10**9
    return [years * 12 + months, days, seconds + (-nanos if match[6] else nanos)]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two answers to one statement; ``difference`` is None where they agree."""

    sql: str
    reference: Answer
    server: Answer
    is_ordered: bool = False
    difference: str | None = field(init=False)

    def __post_init__(self) -> None:
        """Compares them."""
        object.__setattr__(self, "difference", self._compare())

    @property
    def is_refused(self) -> bool:
        """Whether the reference refuses the statement."""
        return self.reference.refusal is not None

    def _compare(self) -> str | None:
        here = self.server.refusal
        if self.is_refused or here is not None:
            return self._compare_refusals(here)
        if list(self.reference.columns) != list(self.server.columns):
            return "other columns"
        kinds = [kind for _, kind in self.server.columns]
        if same_rows(kinds, self.reference.rows, self.server.rows, self.is_ordered):
            return None
        return "another result"

    def _compare_refusals(self, here: str | None) -> str | None:
        if here is None:
            return "accepted, the reference refuses it"
        if here.startswith(("INTERNAL", "UNKNOWN")):
            return here.split(":", maxsplit=1)[0]
        if self.is_refused:
            return None
        unimplemented = here.startswith("UNIMPLEMENTED")
        return "UNIMPLEMENTED" if unimplemented else "refused, the reference accepts it"


def same_rows(
    kinds: Sequence[str],
    first: Sequence[Sequence[Any]],
    second: Sequence[Sequence[Any]],
    is_ordered: bool,
) -> bool:
    """Whether the rows are the same, in the same order if that is defined."""
    if len(first) != len(second):
        return False
    if not is_ordered:
        first, second = sorted(first, key=sort_key), sorted(second, key=sort_key)
    return all(
        same(kind, a, b)
        for one, other in zip(first, second, strict=True)
        for kind, a, b in zip(kinds, one, other, strict=True)
    )


def sort_key(row: Sequence[Any]) -> str:
    """An order in which rows that are nearly equal lie side by side: floats are cut."""
    return json.dumps(cut_floats(row), sort_keys=True)


def cut_floats(value: Any) -> Any:
    """A value with the first nine digits of its floats."""
    if isinstance(value, float):
        return f"{value + 0.0:.9g}"
    return [cut_floats(item) for item in value] if isinstance(value, (list, tuple)) else value


def same(kind: str, first: Any, second: Any) -> bool:
    """Whether two values of a type are the same."""
    if first is None or second is None:
        return bool(first is None and second is None)
    if isinstance(first, float) or isinstance(second, float):
        return same_float(kind, first, second)
    if isinstance(first, list):
        return len(first) == len(second) and all(
            same(kind, a, b) for a, b in zip(first, second, strict=True)
        )
    if kind == "JSON":
        return bool(read_json(first) == read_json(second))
    if "NUMERIC" in kind and isinstance(first, str) and first != second:
        return same_number(first, second)
    return bool(first == second)


def same_float(kind: str, first: float | str, second: float | str) -> bool:
    """Whether two floats, or words for what is no number, are the same."""
    if isinstance(first, str) or isinstance(second, str):
        return bool(first == second)
    tolerance = RELATIVE_TOLERANCE_32 if "FLOAT32" in kind else RELATIVE_TOLERANCE
    return math.isclose(first, second, rel_tol=tolerance, abs_tol=ABSOLUTE_TOLERANCE)


def read_json(text: str) -> Any:
    """A JSON value; numbers are floats, so that 1.0 and 1 are the same."""
    return json.loads(text, parse_int=float)


def same_number(first: str, second: str) -> bool:
    """Whether two texts are the same number."""
    try:
        return Decimal(first) == Decimal(second)
    except ArithmeticError:
        return False
