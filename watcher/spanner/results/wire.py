"""Results as they come over the wire: each value stays the bytes that it was sent as.

Protocol buffers let a message be read by another definition of it. Here a PartialResultSet is one
whose values are byte strings, so that a million values cost no million message objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, cast, overload

import numpy as np
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from google.protobuf.struct_pb2 import Value

from watcher.spanner.results.sent_values import (
    PADDING,
    UnexpectedValueError,
    find_values,
)

PACKAGE = "watcher.spanner.results.wire"
FIELD = descriptor_pb2.FieldDescriptorProto
VALUE_TAG, ELEMENT_TAG = 0x12, 0x0A
"""Of the field ``values`` of a PartialResultSet, and of a ListValue."""
MANY_BYTES = 4096
"""Below this, vectors cost more than a Python object a value."""
BATCH_VALUES = 200_000
BATCH_BYTES = 2 * 1024 * 1024


class Elements(Protocol):
    """google.protobuf.ListValue, with values as they were sent."""

    values: Sequence[bytes]


def define_messages() -> descriptor_pool.DescriptorPool:
    """The messages, with the field numbers that Spanner gives them."""
    file = descriptor_pb2.FileDescriptorProto(
        name="watcher/spanner/results/wire.proto", package=PACKAGE, syntax="proto3"
    )
    part = file.message_type.add(name="ResultPart")
    part.field.add(name="metadata", number=1, type=FIELD.TYPE_BYTES, label=FIELD.LABEL_OPTIONAL)
    part.field.add(name="values", number=2, type=FIELD.TYPE_BYTES, label=FIELD.LABEL_REPEATED)
    part.field.add(name="chunked_value", number=3, type=FIELD.TYPE_BOOL, label=FIELD.LABEL_OPTIONAL)
    part.field.add(name="resume_token", number=4, type=FIELD.TYPE_BYTES, label=FIELD.LABEL_OPTIONAL)
    part.field.add(name="stats", number=5, type=FIELD.TYPE_BYTES, label=FIELD.LABEL_OPTIONAL)
    part.field.add(
        name="precommit_token", number=8, type=FIELD.TYPE_BYTES, label=FIELD.LABEL_OPTIONAL
    )
    part.field.add(name="last", number=9, type=FIELD.TYPE_BOOL, label=FIELD.LABEL_OPTIONAL)
    elements = file.message_type.add(name="Elements")
    elements.field.add(name="values", number=1, type=FIELD.TYPE_BYTES, label=FIELD.LABEL_REPEATED)
    lists = file.message_type.add(name="Lists")
    list_of = {"type": FIELD.TYPE_MESSAGE, "label": FIELD.LABEL_OPTIONAL}
    lists.field.add(name="list", number=6, type_name=f".{PACKAGE}.Elements", **list_of)
    arrays = file.message_type.add(name="Arrays")
    arrays.field.add(name="list", number=6, type_name=f".{PACKAGE}.Structs", **list_of)
    structs = file.message_type.add(name="Structs")
    structs.field.add(name="values", number=1, type_name=f".{PACKAGE}.Lists", **list_of)
    results = file.message_type.add(name="Results")
    results.field.add(name="values", number=2, type_name=f".{PACKAGE}.Arrays", **list_of)
    cell = file.message_type.add(name="Cell")
    cell.field.add(name="text", number=3, type=FIELD.TYPE_STRING, label=FIELD.LABEL_OPTIONAL)
    cell.field.add(name="boolean", number=4, type=FIELD.TYPE_BOOL, label=FIELD.LABEL_OPTIONAL)
    cell.field.add(name="list", number=6, type=FIELD.TYPE_BYTES, label=FIELD.LABEL_OPTIONAL)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


POOL = define_messages()
RESULT_PART = message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{PACKAGE}.ResultPart"))
ELEMENTS = message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{PACKAGE}.Elements"))
LISTS = message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{PACKAGE}.Lists"))
ARRAYS = message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{PACKAGE}.Arrays"))
RESULTS = message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{PACKAGE}.Results"))
CELL = message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{PACKAGE}.Cell"))


class ResultPart:
    """google.spanner.v1.PartialResultSet, with values as they were sent.

    ``metadata`` is a google.spanner.v1.ResultSetMetadata; empty in all messages but the first.
    ``stats`` is a google.spanner.v1.ResultSetStats; empty in all but the last, and there unless the
    query asks for it.
    """

    __slots__ = ("_message", "chunked_value", "data", "metadata", "resume_token", "stats")

    def __init__(self, data: bytes) -> None:
        message = cast(Any, RESULT_PART.FromString(data))
        self.data = data
        self.metadata: bytes = message.metadata
        self.chunked_value: bool = message.chunked_value
        self.resume_token: bytes = message.resume_token
        self.stats: bytes = message.stats
        self._message = message

    @property
    def values(self) -> Sequence[bytes]:
        """The values of this message; the last one may be continued in the next message."""
        values: Sequence[bytes] = self._message.values
        return values

    def cut_values(self) -> memoryview | None:
        """The fields that are the values, with their tags and lengths: what lies between the other
        fields. None where the fields are not in the order of their numbers."""
        head = frame(0x0A, self.metadata) if self.metadata else b""
        tail = self._encode_tail()
        # A text may end as such a message does: the last value has to be there, too.
        last = frame(VALUE_TAG, self.values[-1]) if self.values else b""
        if not (self.data.startswith(head) and self.data.endswith(last + tail)):
            return None
        return memoryview(self.data)[len(head) : len(self.data) - len(tail)]

    def _encode_tail(self) -> bytes:
        """The fields behind the values, as they are usually encoded."""
        tail = b"\x18\x01" if self.chunked_value else b""
        if self.resume_token:
            tail += frame(0x22, self.resume_token)
        if self.stats:
            tail += frame(0x2A, self.stats)
        if self._message.precommit_token:
            tail += frame(0x42, self._message.precommit_token)
        return tail + b"\x48\x01" if self._message.last else tail


def parse_result_part(data: bytes) -> ResultPart:
    """A PartialResultSet from its bytes."""
    return ResultPart(data)


def frame(tag: int, content: bytes) -> bytes:
    """A field: its tag, its length, its bytes."""
    length = len(content)
    head = bytearray((tag,))
    while length >= 0x80:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + content


class Cell(Protocol):
    """google.protobuf.Value: the field that was sent is set, the others are empty."""

    text: str
    boolean: bool
    list: bytes


def parse_cell(value: bytes) -> Cell:
    """One value from its bytes."""
    return cast(Cell, CELL.FromString(value))


def parse_elements(lists: bytes) -> Sequence[bytes]:
    """The elements of one or many ListValues, one after the other: concatenated messages merge."""
    if len(lists) >= MANY_BYTES:
        values = find_values(np.frombuffer(lists + PADDING, np.uint8), ELEMENT_TAG)
        if values is not None:
            return values
    return list(cast(Elements, ELEMENTS.FromString(lists)).values)


def count_values(lists: bytes) -> int:
    """How many elements ``parse_elements`` would give."""
    return len(cast(Elements, ELEMENTS.FromString(lists)).values)


def merge_lists(values: Iterable[bytes]) -> list[bytes]:
    """The elements of values that are lists, all of them together; of NULL none.

    A message within a message that is sent several times is merged: its elements follow each other.
    """
    return list(cast(Any, LISTS.FromString(b"".join(values))).list.values)


def merge_structs(values: Iterable[bytes]) -> list[bytes]:
    """The members of all structs in values that are arrays of structs."""
    return list(cast(Any, ARRAYS.FromString(b"".join(values))).list.values.list.values)


class CompletedValues(Sequence[bytes]):
    """The values that a message has completed. ``fields`` are they with their tags and lengths."""

    __slots__ = ("_count", "_values", "fields")

    def __init__(self, fields: bytes | memoryview, count: int) -> None:
        self.fields = fields
        self._count = count
        self._values: list[bytes] | None = None

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        return self._parse()[index]

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._parse())

    def _parse(self) -> list[bytes]:
        if self._values is None:
            self._values = parse_fields(self.fields, self._count)
        return self._values


def parse_fields(fields: bytes | memoryview, count: int) -> list[bytes]:
    """The values of fields. Raises UnexpectedValueError when these are not so many."""
    try:
        values = list(cast(Any, RESULT_PART.FromString(bytes(fields))).values)
    except DecodeError as error:
        raise UnexpectedValueError(f"Spanner sent a message with mixed fields: {error}") from error
    if len(values) != count:
        raise UnexpectedValueError(
            f"Spanner sent a message with mixed fields: {len(values)} values, not {count}"
        )
    return values


def merge_sent_structs(parts: Iterable[CompletedValues]) -> list[bytes]:
    """As ``merge_structs`` of all values of several messages."""
    fields = b"".join([part.fields for part in parts])
    return list(cast(Any, RESULTS.FromString(fields)).values.list.values.list.values)


def find_all(parts: Sequence[CompletedValues]) -> Sequence[bytes]:
    """The values of several messages."""
    count = sum(map(len, parts))
    fields = b"".join([*(part.fields for part in parts), PADDING])
    values = find_values(np.frombuffer(fields, np.uint8), VALUE_TAG)
    if values is not None and len(values) == count:
        return values
    return parse_fields(memoryview(fields)[: -len(PADDING)], count)


def collect_rows(results: Iterable[ResultPart], width: int) -> Iterator[Sequence[bytes]]:
    """The values of whole rows; chunked values are put together.

    Small messages are gathered into larger steps, because each step has its own cost.
    """
    pending: list[CompletedValues] = []
    count = size = 0
    for part, length in join_chunks(results):
        pending.append(part)
        count += len(part)
        size += length
        if count >= BATCH_VALUES or size >= BATCH_BYTES:
            values = find_all(pending)
            complete = count - count % width
            if complete:
                yield values if complete == count else values[:complete]
            pending, count, size = keep_values(values[complete:]), count - complete, 0
    complete = count - count % width
    if complete:
        values = find_all(pending)
        yield values if complete == count else values[:complete]


def keep_values(values: Sequence[bytes]) -> list[CompletedValues]:
    """Values of a row that is not complete, for the next step."""
    if not values:
        return []
    return [CompletedValues(b"".join(frame(VALUE_TAG, each) for each in values), len(values))]


def join_chunks(results: Iterable[ResultPart]) -> Iterator[tuple[CompletedValues, int]]:
    """The values that each message completes, and how long the message was."""
    chunk: bytes | None = None
    for message in results:
        values, fields = message.values, message.cut_values()
        if chunk is None and not message.chunked_value and fields is not None:
            yield CompletedValues(fields, len(values)), len(message.data)
            continue
        completed, chunk = complete_values(values, fields, chunk, message.chunked_value)
        yield completed, len(message.data)


def complete_values(
    values: Sequence[bytes], fields: memoryview | None, chunk: bytes | None, chunked: bool
) -> tuple[CompletedValues, bytes | None]:
    """The values that a message completes which continues a value or is continued, and the part of
    a value that the next message continues."""
    count = len(values)
    if not count:
        return CompletedValues(b"", 0), chunk
    first = values[0] if chunk is None else merge_encoded(chunk, values[0])
    last = first if count == 1 else values[-1]
    head = b"" if chunk is None else frame(VALUE_TAG, values[0])
    tail = frame(VALUE_TAG, values[-1]) if chunked else b""
    if chunked and count == 1:
        return CompletedValues(b"", 0), first
    if fields is None or not (
        fields[: len(head)] == head and fields[len(fields) - len(tail) :] == tail
    ):
        fields = memoryview(b"".join(frame(VALUE_TAG, each) for each in values))
    begun = frame(VALUE_TAG, first) if chunk is not None else b""
    whole = b"".join((begun, fields[len(head) : len(fields) - len(tail)]))
    return CompletedValues(whole, count - chunked), last if chunked else None


def merge_encoded(left: bytes, right: bytes) -> bytes:
    """A value that was cut between two messages."""
    value = Value.FromString(left)
    merge_values(value, Value.FromString(right))
    return value.SerializeToString()


def merge_values(left: Value, right: Value) -> None:
    """Appends the second part of a chunked value: strings are joined, lists at their seam."""
    if left.WhichOneof("kind") == "string_value":
        left.string_value += right.string_value
        return
    items, more = left.list_value.values, list(right.list_value.values)
    if items and more:
        kinds = {items[-1].WhichOneof("kind"), more[0].WhichOneof("kind")}
        if kinds in ({"string_value"}, {"list_value"}):
            merge_values(items[-1], more.pop(0))
    items.extend(more)
