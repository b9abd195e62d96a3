"""Values of every type of Spanner, as it sends them: what kernels of columns are measured with."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from google.protobuf.struct_pb2 import Value

from benchmarks.decoding.recorded import record_values
from spanner_schema.model.column_types import Type, TypeCode
from watcher.runners.spark.sent_columns import encode_value

COLUMN = "Value"
Sent = bool | float | str | list["Sent"] | None
"""A value as JSON has it, in a query's result as in a change stream."""
ARRAY_ITEMS = 4
LETTERS = 'abc defghijklmnopqrstuvwxyz "quoted" 0123456789 \u00fc\u20ac'


@dataclass(frozen=True, slots=True)
class SampleKind:
    """A type, how large its values are, and what makes one of them."""

    name: str
    type: Type
    make: Callable[[Random], Sent]


@dataclass(frozen=True, slots=True)
class Sample:
    """A column of values as they were sent; some are NULL."""

    kind: SampleKind
    nulls: float
    sent: tuple[Sent, ...]

    @property
    def columns(self) -> tuple[tuple[str, Type], ...]:
        """The column, as a result and a change stream know it."""
        return ((COLUMN, self.kind.type),)

    def make_messages(self) -> list[bytes]:
        """A query's result, as a server sends it."""
        values: list[Value] = [encode_value(value) for value in self.sent]
        return record_values(self.columns, values)

    def make_objects(self) -> list[str]:
        """The objects of the change stream, as a server writes them."""
        return [json.dumps({COLUMN: v}, separators=(",", ":")) for v in self.sent]


def make_sample(kind: SampleKind, values: int, nulls: float) -> Sample:
    """So many values, the same in every run; ``nulls`` is the share that is NULL."""
    random = Random(kind.name)
    sent = tuple(None if random.random() < nulls else kind.make(random) for _ in range(values))
    return Sample(kind, nulls, sent)


def make_text(size: int) -> Callable[[Random], Sent]:
    """Texts of so many characters, with some that JSON escapes and some that are not ASCII."""
    return lambda random: "".join(random.choices(LETTERS, k=size))


def make_base64(size: int) -> Callable[[Random], Sent]:
    """So many bytes."""
    return lambda random: b64encode(random.randbytes(size)).decode()


def make_digits(most: int) -> Callable[[Random], Sent]:
    """Integers up to a number."""
    return lambda random: str(random.randint(-most, most))


def make_moment(fraction: int) -> Callable[[Random], Sent]:
    """Timestamps with so many digits of a second."""

    def make(random: Random) -> Sent:
        rest = f".{random.randint(1, 10**fraction - 1):0{fraction}}" if fraction else ""
        return (
            f"{make_date(random)}T{random.randint(0, 23):02}:{random.randint(0, 59):02}:07{rest}Z"
        )

    return make


def make_date(random: Random) -> str:
    """Dates of a lifetime."""
    return f"{random.randint(1950, 2040)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"


def make_numeric(random: Random) -> Sent:
    """Amounts with a fraction that is written without zeros at its end."""
    return f"{random.randint(-(10**9), 10**9)}.{random.randint(1, 99):02}".rstrip("0")


def make_double(random: Random) -> Sent:
    """Doubles, one of a hundred very large or very small, or none that is a number."""
    if random.random() < 0.01:
        return random.choice((1e22, -1e-7, 1e300, "NaN", "Infinity", "-Infinity"))
    return random.random() * 1_000


def make_document(random: Random) -> Sent:
    """A small document of JSON, written as Spanner writes it."""
    return f'{{"id":{random.randint(0, 10**6)},"tags":["a","b"],"text":"some text"}}'


def make_list(make: Callable[[Random], Sent]) -> Callable[[Random], Sent]:
    """Lists of up to so many values, some NULL."""
    return lambda random: [make(random) for _ in range(random.randint(0, ARRAY_ITEMS))]


def make_uuid(random: Random) -> Sent:
    """A UUID as text."""
    digits = f"{random.getrandbits(128):032x}"
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


SCALARS: Mapping[str, tuple[TypeCode, Callable[[Random], Sent]]] = {
    "BOOL": (TypeCode.BOOL, lambda random: random.random() < 0.5),
    "INT64 of 3 digits": (TypeCode.INT64, make_digits(999)),
    "INT64 of 18 digits": (TypeCode.INT64, make_digits(10**18)),
    "ENUM": (TypeCode.ENUM, make_digits(20)),
    "FLOAT32": (TypeCode.FLOAT32, lambda random: random.randint(0, 10**6) / 4),
    "FLOAT64 of 3 digits": (TypeCode.FLOAT64, lambda random: random.randint(0, 999) / 4),
    "FLOAT64 of 17 digits": (TypeCode.FLOAT64, make_double),
    "NUMERIC": (TypeCode.NUMERIC, make_numeric),
    "PG_NUMERIC": (TypeCode.PG_NUMERIC, make_numeric),
    "STRING of 8": (TypeCode.STRING, make_text(8)),
    "STRING of 64": (TypeCode.STRING, make_text(64)),
    "STRING of 1,000": (TypeCode.STRING, make_text(1_000)),
    "BYTES of 8": (TypeCode.BYTES, make_base64(8)),
    "BYTES of 64": (TypeCode.BYTES, make_base64(64)),
    "BYTES of 200": (TypeCode.BYTES, make_base64(200)),
    "BYTES of 1,000": (TypeCode.BYTES, make_base64(1_000)),
    "PROTO of 64": (TypeCode.PROTO, make_base64(64)),
    "DATE": (TypeCode.DATE, make_date),
    "TIMESTAMP in seconds": (TypeCode.TIMESTAMP, make_moment(0)),
    "TIMESTAMP in microseconds": (TypeCode.TIMESTAMP, make_moment(6)),
    "TIMESTAMP in nanoseconds": (TypeCode.TIMESTAMP, make_moment(9)),
    "JSON": (TypeCode.JSON, make_document),
    "PG_JSONB": (TypeCode.PG_JSONB, make_document),
    "UUID": (TypeCode.UUID, make_uuid),
    "INTERVAL": (TypeCode.INTERVAL, lambda random: f"P{random.randint(1, 9)}Y3M4DT5H6M7S"),
}
ARRAYS = (
    "BOOL",
    "INT64 of 3 digits",
    "FLOAT64 of 17 digits",
    "STRING of 8",
    "BYTES of 64",
    "TIMESTAMP in microseconds",
)
KINDS: Mapping[str, SampleKind] = {
    **{name: SampleKind(name, Type(code), make) for name, (code, make) in SCALARS.items()},
    **{
        f"ARRAY of {name}": SampleKind(
            f"ARRAY of {name}",
            Type(TypeCode.ARRAY, element=Type(SCALARS[name][0])),
            make_list(SCALARS[name][1]),
        )
        for name in ARRAYS
    },
}
"""The samples by name."""
