"""How fast results become Arrow columns, against google-cloud-spanner's own rows.

``python -m benchmarks.decode --rows 20000``: both decode the same recorded messages, from bytes, so
that neither the server nor the network is measured. The best of several runs counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

from google.cloud.spanner_v1 import PartialResultSet, ResultSetMetadata, StructType
from google.cloud.spanner_v1 import Type as TypePb
from google.cloud.spanner_v1.streamed import StreamedResultSet
from google.protobuf.struct_pb2 import ListValue, NullValue, Value

from ddl.schema import Type, TypeCode
from watcher.columns import arrow_schema, record_batches
from watcher.wire import result_part

RUNS = 3
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


@dataclass(frozen=True, slots=True)
class Result:
    """Rows per second of one table shape."""

    table: str
    columns: int
    rows: int
    client_rows_per_second: int
    columns_rows_per_second: int
    times: float


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
    return TypePb(code=type_.code.value)


def messages(columns: Columns, rows: int) -> list[bytes]:
    """A result as a server sends it; the first message carries the names and types."""
    message = PartialResultSet.pb()
    fields = [StructType.Field(name=name, type_=type_pb(type_)) for name, type_ in columns]
    metadata = ResultSetMetadata(row_type=StructType(fields=fields))
    values = [
        value(type_, row + place) for row in range(rows) for place, (_, type_) in enumerate(columns)
    ]
    parts = [
        message(values=values[first : first + MESSAGE_VALUES])
        for first in range(0, len(values), MESSAGE_VALUES)
    ]
    parts[0].metadata.CopyFrom(ResultSetMetadata.pb(metadata))
    return [part.SerializeToString() for part in parts]


def by_client(recorded: list[bytes]) -> int:
    """Rows, as the client's own iterator gives them."""
    parts: Iterator[PartialResultSet] = (PartialResultSet.deserialize(data) for data in recorded)
    return sum(1 for _ in StreamedResultSet(parts))


def by_columns(recorded: list[bytes], columns: Columns) -> int:
    """Rows, as Arrow columns."""
    schema = arrow_schema(columns)
    types = [type_ for _, type_ in columns]
    return sum(b.num_rows for b in record_batches(map(result_part, recorded), schema, types))


def seconds(work: Callable[[], int], rows: int) -> float:
    """The best of several runs. Raises SystemExit when rows are missing."""
    best = float("inf")
    for _ in range(RUNS):
        began = time.perf_counter()
        if work() != rows:
            raise SystemExit("rows are missing")
        best = min(best, time.perf_counter() - began)
    return best


def run(table: str, columns: Columns, rows: int) -> Result:
    """Measures one table shape."""
    recorded = messages(columns, rows)
    client = rows / seconds(lambda: by_client(recorded), rows)
    ours = rows / seconds(lambda: by_columns(recorded, columns), rows)
    return Result(table, len(columns), rows, round(client), round(ours), round(ours / client, 1))


def main() -> None:
    """Reads the command line, prints JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decode", description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    rows = parser.parse_args().rows
    for result in (run("narrow", NARROW, rows * 10), run("wide", WIDE, rows)):
        sys.stdout.write(json.dumps(asdict(result)) + "\n")


if __name__ == "__main__":
    main()
