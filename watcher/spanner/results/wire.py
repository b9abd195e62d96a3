"""Results as they come over the wire: each value stays the bytes that it was sent as.

Protocol buffers let a message be read by another definition of it. Here a PartialResultSet is one
whose values are byte strings, so that a million values cost no million message objects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, cast

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.struct_pb2 import Value

PACKAGE = "watcher.spanner.results.wire"
FIELD = descriptor_pb2.FieldDescriptorProto
BATCH_VALUES = 200_000
BATCH_BYTES = 4 * 1024 * 1024


class ResultPart(Protocol):
    """google.spanner.v1.PartialResultSet, with values as they were sent.

    ``metadata`` is a google.spanner.v1.ResultSetMetadata; empty in all messages but the first.
    ``stats`` is a google.spanner.v1.ResultSetStats; empty in all but the last, and there unless the
    query asks for it.
    """

    metadata: bytes
    values: Sequence[bytes]
    chunked_value: bool
    resume_token: bytes
    stats: bytes

    def ByteSize(self) -> int:  # noqa: N802 (protobuf's name)
        """The length of the message."""
        ...


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
    elements = file.message_type.add(name="Elements")
    elements.field.add(name="values", number=1, type=FIELD.TYPE_BYTES, label=FIELD.LABEL_REPEATED)
    lists = file.message_type.add(name="Lists")
    list_of = {"type": FIELD.TYPE_MESSAGE, "label": FIELD.LABEL_OPTIONAL}
    lists.field.add(name="list", number=6, type_name=f".{PACKAGE}.Elements", **list_of)
    arrays = file.message_type.add(name="Arrays")
    arrays.field.add(name="list", number=6, type_name=f".{PACKAGE}.Structs", **list_of)
    structs = file.message_type.add(name="Structs")
    structs.field.add(name="values", number=1, type_name=f".{PACKAGE}.Lists", **list_of)
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
CELL = message_factory.GetMessageClass(POOL.FindMessageTypeByName(f"{PACKAGE}.Cell"))


def parse_result_part(data: bytes) -> ResultPart:
    """A PartialResultSet from its bytes."""
    return cast(ResultPart, RESULT_PART.FromString(data))


class Cell(Protocol):
    """google.protobuf.Value: the field that was sent is set, the others are empty."""

    text: str
    boolean: bool
    list: bytes


def parse_cell(value: bytes) -> Cell:
    """One value from its bytes."""
    return cast(Cell, CELL.FromString(value))


def parse_elements(lists: bytes) -> list[bytes]:
    """The elements of one or many ListValues, one after the other: concatenated messages merge."""
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


def collect_rows(results: Iterable[ResultPart], width: int) -> Iterator[list[bytes]]:
    """The values of whole rows; chunked values are put together.

    Small messages are gathered into larger steps, because each step has its own cost.
    """
    pending: list[bytes] = []
    size = 0
    for values, length in join_chunks(results):
        pending += values
        size += length
        if len(pending) >= BATCH_VALUES or size >= BATCH_BYTES:
            complete = len(pending) - len(pending) % width
            if complete:
                yield pending if complete == len(pending) else pending[:complete]
            pending, size = pending[complete:], 0
    complete = len(pending) - len(pending) % width
    if complete:
        yield pending[:complete]


def join_chunks(results: Iterable[ResultPart]) -> Iterator[tuple[list[bytes], int]]:
    """The values that each message completes, and how long the message was."""
    chunk: bytes | None = None
    for message in results:
        values = list(message.values)
        if chunk is not None and values:
            values[0] = merge_encoded(chunk, values[0])
            chunk = None
        if message.chunked_value:
            chunk = values.pop()
        yield values, message.ByteSize()


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
