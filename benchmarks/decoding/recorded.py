"""Results of queries as a server sends them, recorded: what decoders are measured with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from google.cloud.spanner_v1 import PartialResultSet, ResultSetMetadata, StructType
from google.cloud.spanner_v1 import Type as TypePb
from google.protobuf.struct_pb2 import ListValue, NullValue, Value

from spanner_schema.model.column_types import Type, TypeCode
from watcher.model.value_types import ANNOTATIONS

MESSAGE_VALUES = 5_000
NULL_EVERY = 10

PICTURES = ("cGljdHVyZQ==", "cGljdHVyZXM=")
Columns = tuple[tuple[str, Type], ...]
SCALARS: dict[TypeCode, Callable[[int], Value]] = {
    TypeCode.BOOL: lambda n: Value(bool_value=n % 2 == 0),
    TypeCode.INT64: lambda n: Value(string_value=str(n * 7_919)),
    TypeCode.FLOAT32: lambda n: Value(number_value=n / 4),
    TypeCode.FLOAT64: lambda n: Value(number_value=n / 7),
    TypeCode.NUMERIC: lambda n: Value(string_value=f"{n}.25"),
    TypeCode.STRING: lambda n: Value(string_value=f"a value of some length {n}"),
    TypeCode.BYTES: lambda n: Value(string_value=PICTURES[n % 2]),
    TypeCode.DATE: lambda n: Value(string_value=f"20{n % 90 + 10}-01-31"),
    TypeCode.TIMESTAMP: lambda n: Value(string_value=f"2026-01-31T12:00:00.{n % 1_000_000:06}Z"),
    TypeCode.JSON: lambda n: Value(string_value=f'{{"number":{n}}}'),
}
ARRAYS = (TypeCode.INT64, TypeCode.STRING, TypeCode.FLOAT64, TypeCode.BOOL, TypeCode.TIMESTAMP)
NARROW: Columns = (("Id", Type(TypeCode.INT64)), ("Name", Type(TypeCode.STRING)))
TIMES = tuple((code, number) for number in range(3) for code in SCALARS)[:25]
WIDE: Columns = (
    *((f"{code.value}{number}", Type(code)) for code, number in TIMES),
    *((f"ARRAY_{code.value}", Type(TypeCode.ARRAY, element=Type(code))) for code in ARRAYS),
)


def value(type_: Type, number: int) -> Value:
    """The value of a cell; some are NULL."""
    if number % NULL_EVERY == NULL_EVERY - 1:
        return Value(null_value=NullValue.NULL_VALUE)
    if type_.element is not None:
        items = [SCALARS[type_.element.code](number + n) for n in range(number % 4)]
        return Value(list_value=ListValue(values=items))
    return SCALARS[type_.code](number)


def type_pb(type_: Type) -> TypePb:
    """A type as the API has it."""
    if type_.element is not None:
        return TypePb(code="ARRAY", array_element_type=type_pb(type_.element))
    written = ANNOTATIONS.get(type_.code)
    if written is None:
        return TypePb(code=type_.code.value)
    return TypePb(code=written.value, type_annotation=type_.code.value)


def messages(columns: Columns, rows: int) -> list[bytes]:
    """A result as a server sends it; the first message carries the names and types."""
    values = [
        value(type_, row + index) for row in range(rows) for index, (_, type_) in enumerate(columns)
    ]
    return record_values(columns, values)


def record_values(columns: Columns, values: Sequence[Value]) -> list[bytes]:
    """As ``messages``, of values that follow each other row by row."""
    message = PartialResultSet.pb()
    fields = [StructType.Field(name=name, type_=type_pb(type_)) for name, type_ in columns]
    metadata = ResultSetMetadata(row_type=StructType(fields=fields))
    parts = [
        message(values=values[first : first + MESSAGE_VALUES])
        for first in range(0, len(values), MESSAGE_VALUES)
    ]
    parts[0].metadata.CopyFrom(ResultSetMetadata.pb(metadata))
    return [part.SerializeToString() for part in parts]
