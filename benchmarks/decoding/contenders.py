"""What columns of values are made with: ours, the best libraries there are for it, and a plain
loop.

Libraries are measured where they are installed. Each contender gives the whole column, as Arrow
keeps it, from the same bytes: what it takes to get values into a library and out of it counts.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from importlib import import_module
from importlib.util import find_spec
from operator import attrgetter
from typing import Any

import pyarrow as pa
from google.cloud.spanner_v1 import PartialResultSet

from benchmarks.decoding.sample_values import COLUMN, Sample
from spanner_schema.model.column_types import Type, TypeCode
from watcher.envelopes.by_column.cells import render_cells, render_member
from watcher.envelopes.by_column.sent_objects import SentObjects
from watcher.envelopes.values import CellStyle
from watcher.model.value_types import Form, describe_values
from watcher.runners.spark.sent_columns import convert_column, decode_column
from watcher.spanner.json_values import decode_value
from watcher.spanner.results.columns import build_schema, convert_type, decode_batches
from watcher.spanner.results.supported_types import Nanoseconds
from watcher.spanner.results.wire import parse_result_part
from watcher.spanner.timestamps import format_timestamp, to_micros

Contender = Callable[[], pa.Array]
OURS, LOOP = "ours", "loop"
LIBRARIES = ("polars", "pybase64", "orjson")
INTEGERS_AS_TEXT, NESTED = "json, INT64 as text", "json, nested"
TIMESTAMP_FORMAT = "%Y-%m-%dT%H:%M:%S%.fZ"


def load_libraries() -> dict[str, Any]:
    """The libraries that are installed, by name."""
    return {name: import_module(name) for name in LIBRARIES if find_spec(name) is not None}


def list_refusals() -> tuple[type[Exception], ...]:
    """What contenders raise for values that they do not take."""
    polars = load_libraries().get("polars")
    own = () if polars is None else (polars.exceptions.PolarsError,)
    return (ValueError, TypeError, *own)


def list_result_contenders(sample: Sample) -> dict[str, Contender]:
    """A query's result -> Arrow."""
    messages, type_ = sample.make_messages(), sample.kind.type
    schema = build_schema(sample.columns)

    def decode_ours() -> pa.Array:
        parts = map(parse_result_part, messages)
        batches = list(decode_batches(parts, schema, [type_]))
        return pa.Table.from_batches(batches, schema).column(0).combine_chunks()

    def decode_by_loop() -> pa.Array:
        values = (convert_by_loop(v, type_) for v in read_messages(messages))
        return pa.array(values, schema.field(0).type)

    def read_column() -> pa.Array:
        return pa.array(read_fields(messages, type_), choose_sent(type_))

    libraries = list_conversions(type_)
    return {
        OURS: decode_ours,
        LOOP: decode_by_loop,
        **{f"upb, {n}": bind(read_column, convert) for n, convert in libraries.items()},
    }


def list_stream_contenders(sample: Sample) -> dict[str, Contender]:
    """The JSON of a change stream -> Arrow."""
    objects, type_ = pa.array(sample.make_objects(), pa.string()), sample.kind.type
    target = convert_type(type_)

    def decode_ours() -> pa.Array:
        sent = SentObjects(objects, sample.columns).get_sent(COLUMN)
        if isinstance(sent, pa.Array):
            return convert_column(sent, type_, Nanoseconds.TRUNCATE)
        return decode_column(sent, type_, Nanoseconds.TRUNCATE, of_key=False)

    def decode_by_loop() -> pa.Array:
        values = (json.loads(text)[COLUMN] for text in objects.to_pylist())
        return pa.array((convert_by_loop(v, type_) for v in values), target)

    return {
        OURS: decode_ours,
        LOOP: decode_by_loop,
        **{
            f"{read_name}, {name}": bind(read, convert)
            for read_name, read in list_object_readers(objects, type_).items()
            for name, convert in list_conversions(type_).items()
        },
    }


def list_json_contenders(sample: Sample, style: CellStyle) -> dict[str, Contender]:
    """Arrow -> the cells of a JSON format."""
    type_ = sample.kind.type
    column = pa.array([convert_by_loop(v, type_) for v in sample.sent], convert_type(type_))
    write = style.choose_writer(type_)
    read = format_moment if type_.code is TypeCode.TIMESTAMP else None

    def write_by_loop() -> pa.Array:
        values = column.to_pylist() if read is None else map(read, column.to_pylist())
        return pa.array(map(write, values), pa.string())

    contenders = {
        OURS: lambda: render_cells(column, type_, style),
        LOOP: write_by_loop,
    }
    return contenders | list_writers(column, type_, style)


def format_moment(moment: datetime | None) -> str | None:
    """A timestamp as changes have it."""
    return None if moment is None else format_timestamp(to_micros(moment))


def list_sent_json_contenders(sample: Sample, style: CellStyle) -> dict[str, Contender]:
    """The JSON of a change stream -> the cells of a JSON format."""
    objects, type_ = pa.array(sample.make_objects(), pa.string()), sample.kind.type
    write = style.choose_writer(type_)
    libraries = load_libraries()

    def write_ours() -> pa.Array:
        return render_member(SentObjects(objects, sample.columns), COLUMN, type_, style)

    def write_each(loads: Callable[[str], Any]) -> pa.Array:
        values = (loads(text)[COLUMN] for text in objects.to_pylist())
        return pa.array((write(decode_value(value, type_)) for value in values), pa.string())

    contenders = {OURS: write_ours, LOOP: lambda: write_each(json.loads)}
    if "orjson" in libraries:
        contenders["orjson"] = lambda: write_each(libraries["orjson"].loads)
    return contenders


def bind(read: Contender, convert: Callable[[pa.Array], pa.Array]) -> Contender:
    """Values as they were sent are read by one, and converted by another."""
    return lambda: convert(read())


def read_messages(messages: Sequence[bytes]) -> Iterator[Any]:
    """The values of a result, as protobuf's own classes give them."""
    message = PartialResultSet.pb()
    for data in messages:
        for value in message.FromString(data).values:
            yield read_value(value)


def read_fields(messages: Sequence[bytes], type_: Type) -> Iterator[Any]:
    """As ``read_messages``, of values whose kind is known."""
    if type_.element is not None:
        return read_messages(messages)
    message, sent = PartialResultSet.pb(), choose_sent(type_)
    field = "string_value" if pa.types.is_string(sent) else "number_value"
    if pa.types.is_boolean(sent):
        field = "bool_value"
    get = attrgetter(field)
    return (
        get(value) if value.HasField(field) else None
        for data in messages
        for value in message.FromString(data).values
    )


def read_value(value: Any) -> Any:
    """A value of a message, as JSON has it."""
    kind = value.WhichOneof("kind")
    if kind == "list_value":
        return [read_value(each) for each in value.list_value.values]
    return None if kind == "null_value" else getattr(value, kind)


def convert_by_loop(value: Any, type_: Type) -> Any:
    """A value as it was sent, in Python's type for it."""
    if value is None:
        return None
    if type_.element is not None:
        return [convert_by_loop(each, type_.element) for each in value]
    match describe_values(type_).form:
        case Form.INTEGER:
            return int(value)
        case Form.NUMERIC | Form.WIDE_NUMERIC:
            return Decimal(value)
        case Form.FLOAT32 | Form.FLOAT64:
            return float(value)
        case Form.BYTES:
            return b64decode(value)
        case Form.DATE:
            return date.fromisoformat(value)
        case Form.TIMESTAMP:
            return datetime.fromisoformat(value)
        case _:
            return value


def choose_sent(type_: Type) -> pa.DataType:
    """The Arrow type of values as they were sent."""
    if type_.element is not None:
        return pa.list_(choose_sent(type_.element))
    match describe_values(type_).form:
        case Form.BOOL:
            return pa.bool_()
        case Form.FLOAT32 | Form.FLOAT64:
            return pa.float64()
        case _:
            return pa.string()


def list_conversions(type_: Type) -> dict[str, Callable[[pa.Array], pa.Array]]:
    """What else converts a column as it was sent."""
    libraries = load_libraries()
    target = convert_type(type_)
    found: dict[str, Callable[[pa.Array], pa.Array]] = {}
    if choose_sent(type_) == target:
        return {"pyarrow": lambda column: column}
    if "polars" in libraries:
        found["polars"] = lambda column: convert_by_polars(libraries["polars"], column, type_)
    if type_.element is not None:
        return found
    if "pybase64" in libraries and pa.types.is_binary(target):
        decode = libraries["pybase64"].b64decode
        found["pybase64"] = lambda column: pa.array(
            (None if v is None else decode(v) for v in column.to_pylist()), target
        )
    elif not pa.types.is_binary(target):
        found["pyarrow"] = lambda column: column.cast(target, safe=False)
    return found


def convert_by_polars(polars: Any, column: pa.Array, type_: Type) -> pa.Array:
    """A column as it was sent, by polars."""
    values = polars.from_arrow(column)
    if type_.element is not None:
        element = convert_polars_expression(polars, polars.element(), type_.element)
        values = values.list.eval(element)
    else:
        frame = values.alias(COLUMN).to_frame()
        expression = convert_polars_expression(polars, polars.col(COLUMN), type_)
        values = frame.select(expression).to_series()
    oldest = polars.CompatLevel.oldest()
    return values.to_arrow(compat_level=oldest).cast(convert_type(type_))


def convert_polars_expression(polars: Any, values: Any, type_: Type) -> Any:
    """The expression of a conversion."""
    match describe_values(type_).form:
        case Form.INTEGER:
            return values.cast(polars.Int64)
        case Form.NUMERIC | Form.WIDE_NUMERIC:
            return values.cast(polars.Decimal(38, 9))
        case Form.BYTES:
            return values.str.decode("base64")
        case Form.DATE:
            return values.str.to_date("%Y-%m-%d")
        case Form.TIMESTAMP:
            return values.str.to_datetime(TIMESTAMP_FORMAT, time_unit="us", time_zone="UTC")
        case Form.FLOAT32:
            return values.cast(polars.Float32)
        case _:
            return values


def list_object_readers(objects: pa.Array, type_: Type) -> dict[str, Contender]:
    """What else takes a member out of objects."""
    libraries, sent = load_libraries(), choose_sent(type_)
    readers: dict[str, Contender] = {}
    if "orjson" in libraries:
        loads = libraries["orjson"].loads

        def read_by_orjson() -> pa.Array:
            parsed = loads(f"[{','.join(objects.to_pylist())}]")
            return pa.array((each[COLUMN] for each in parsed), sent)

        readers["orjson"] = read_by_orjson
    if "polars" in libraries:
        polars = libraries["polars"]
        struct = polars.Struct({COLUMN: to_polars_type(polars, sent)})

        def read_by_polars() -> pa.Array:
            members = polars.from_arrow(objects).str.json_decode(struct)
            oldest = polars.CompatLevel.oldest()
            return members.struct.field(COLUMN).to_arrow(compat_level=oldest).cast(sent)

        readers["polars"] = read_by_polars
    return readers


def to_polars_type(polars: Any, type_: pa.DataType) -> Any:
    """An Arrow type of sent values as a type of polars."""
    if pa.types.is_list(type_):
        return polars.List(to_polars_type(polars, type_.value_type))
    if pa.types.is_boolean(type_):
        return polars.Boolean
    return polars.Float64 if pa.types.is_floating(type_) else polars.String


def list_writers(column: pa.Array, type_: Type, style: CellStyle) -> dict[str, Contender]:
    """What else writes cells of JSON."""
    libraries = load_libraries()
    found: dict[str, Contender] = {}
    scalar = type_.element is None
    if (
        "orjson" in libraries
        and scalar
        and pa.types.is_string(column.type)
        and not (type_.code.is_json and style.json_nested)
    ):
        dumps = libraries["orjson"].dumps
        found["orjson"] = lambda: pa.array(map(dumps, column.to_pylist()), pa.binary()).cast(
            pa.string()
        )
    # It cannot write arrays of BYTES, and ends the process with it.
    known = type_.element is None or describe_values(type_.element).form is not Form.BYTES
    if "polars" in libraries and known and not (type_.code.is_json and style.json_nested):
        polars = libraries["polars"]
        found["polars"] = lambda: write_by_polars(polars, column, type_)
    return found


def write_by_polars(polars: Any, column: pa.Array, type_: Type) -> pa.Array:
    """The cells of a column as an object each, without the name."""
    values = polars.from_arrow(column).alias(COLUMN)
    if type_.code in (TypeCode.BYTES, TypeCode.PROTO):
        values = values.bin.encode("base64")
        texts = polars.select('"' + values + '"').to_series().fill_null("null")
    else:
        before = len(f'{{"{COLUMN}":')
        objects = values.to_frame().to_struct().struct.json_encode()
        texts = objects.str.slice(before).str.head(-1)
    return texts.to_arrow(compat_level=polars.CompatLevel.oldest()).cast(pa.string())


def are_same(left: pa.Array, right: pa.Array) -> bool:
    """Whether two columns are equal; NaN equals NaN."""
    return bool(left.equals(right)) or repr(left.to_pylist()) == repr(right.to_pylist())


def is_written(path: str, type_: Type) -> bool:
    """Whether a path does something of its own with a type."""
    code = (type_.element or type_).code
    if path == INTEGERS_AS_TEXT:
        return code is TypeCode.INT64
    return path != NESTED or code.is_json


Paths = Mapping[str, Callable[[Sample], dict[str, Contender]]]
PATHS: Paths = {
    "result": list_result_contenders,
    "stream": list_stream_contenders,
    "json": lambda sample: list_json_contenders(sample, CellStyle()),
    INTEGERS_AS_TEXT: lambda sample: list_json_contenders(sample, CellStyle(int64_as_text=True)),
    NESTED: lambda sample: list_json_contenders(sample, CellStyle(json_nested=True)),
    "stream to json": lambda sample: list_sent_json_contenders(sample, CellStyle()),
}
