"""Many records of a change stream at once: from the wire to the columns of their changes.

Records are arrays of structs, nested six deep. All structs of one depth are taken apart together:
Spanner's encoding lets lists that follow each other be read as one. What is encoded in another way
goes record by record, as ``records`` decodes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.cloud.spanner_v1 import ResultSetMetadata
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from watcher.captures import StreamRows
from watcher.captures.change_stream.record_values import Heartbeat, Record
from watcher.captures.change_stream.records import (
    decode_children,
    decode_row,
    decode_shape,
    decode_timestamp,
    parse_list,
)
from watcher.captures.change_stream.rows import CHANGES, order_key
from watcher.captures.change_stream.watched import ChangeFilter
from watcher.captures.digests import hash_texts
from watcher.model.change import Operation, Shape, ValueCapture
from watcher.model.window import Window
from watcher.spanner.json_columns.scalars import format_timestamps
from watcher.spanner.results.cells import decode_booleans, scan_cells
from watcher.spanner.results.columns import count_elements, decode_strings, decode_timestamps
from watcher.spanner.results.sent_values import UnexpectedValueError, header_lengths
from watcher.spanner.results.wire import (
    CompletedValues,
    ResultPart,
    join_chunks,
    merge_lists,
    merge_sent_structs,
    merge_structs,
)

CHUNK_BYTES = 4 * 1024 * 1024
"""So much of a result is decoded at once."""
FEW_BYTES = 32 * 1024
"""Below this, record by record costs less."""
PARTS = ("data_change_record", "heartbeat_record", "child_partitions_record")
FIELDS = (
    "commit_timestamp",
    "record_sequence",
    "server_transaction_id",
    "is_last_record_in_transaction_in_partition",
    "table_name",
    "column_types",
    "mods",
    "mod_type",
    "value_capture_type",
    "number_of_records_in_transaction",
    "number_of_partitions_in_transaction",
    "transaction_tag",
    "is_system_transaction",
)
MODS = ("keys", "new_values", "old_values")
"""Spanner: the members of a record, of a data change record, and of its mods, in this order."""

TEXT_FIELDS = {
    "record_sequence": 1,
    "transaction_id": 2,
    "table": 4,
    "operation": 7,
    "captured": 8,
    "transaction_tag": 11,
}
FLAG_FIELDS = {"last_in_transaction_in_partition": 3, "system_transaction": 12}
NUMBER_FIELDS = {"records_in_transaction": 9, "partitions_in_transaction": 10}
COMMIT_FIELD, COLUMNS_FIELD, MODS_FIELD = 0, 5, 6
"""The indexes of ``FIELDS`` by the names of ``rows.CHANGES``."""


@dataclass(frozen=True)
class RecordColumns:
    """Data change records and their mods by column, named as those of ``rows.CHANGES``.

    ``fields`` have a row a record, ``mods`` a row a mod; ``records`` are the indexes of the records
    that the mods belong to.
    """

    fields: pa.RecordBatch
    shapes: tuple[Shape, ...]
    mods: pa.RecordBatch
    records: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Arrival:
    """The rows of a query's result that a message has completed, as they were sent.

    ``known`` says whether their structs have the members that this module knows.
    """

    values: CompletedValues
    size: int
    known: bool


def read_arrivals(results: Iterable[ResultPart]) -> Iterator[Arrival]:
    """The rows of a result, message by message."""
    messages = iter(results)
    first = next(messages, None)
    if first is None:
        return
    known = has_known_members(first.metadata)
    for values, size in join_chunks(chain((first,), messages)):
        yield Arrival(values, size, known)


def decode_arrivals(arrivals: Iterable[Arrival]) -> Iterator[Record | RecordColumns]:
    """The records of some messages of one query; where there are many, data change records come by
    column, before the heartbeats and child partitions that came with them."""
    some = list(arrivals)
    large = sum(each.size for each in some) >= FEW_BYTES
    known = large and all(each.known for each in some)
    chunk = decode_chunk([each.values for each in some]) if known else None
    if chunk is not None:
        yield from chunk
        return
    yield from decode_one_by_one(some)


def decode_one_by_one(arrivals: Iterable[Arrival]) -> Iterator[Record]:
    """The records of some messages."""
    for arrival in arrivals:
        for value in arrival.values:
            yield from decode_row(value)


def decode_chunks(results: Iterable[ResultPart]) -> Iterator[Record | RecordColumns]:
    """As ``records.decode_records``, many records at once as ``decode_arrivals`` gives them."""
    gathered: list[Arrival] = []
    size = 0
    for arrival in read_arrivals(results):
        gathered.append(arrival)
        size += arrival.size
        if size >= CHUNK_BYTES:
            yield from decode_arrivals(gathered)
            gathered, size = [], 0
    yield from decode_arrivals(gathered)


def has_known_members(metadata: bytes) -> bool:
    """Whether the structs of a result have the members that this module knows, and no others."""
    fields = ResultSetMetadata.pb().FromString(metadata).row_type.fields
    records = list_members(fields[0].type_) if fields else {}
    if tuple(records) != PARTS:
        return False
    data = list_members(records[PARTS[0]])
    return tuple(data) == FIELDS and tuple(list_members(data[FIELDS[MODS_FIELD]])) == MODS


def list_members(array: Any) -> dict[str, Any]:
    """The members of an array of structs: their types by name."""
    return {each.name: each.type_ for each in array.array_element_type.struct_type.fields}


def decode_chunk(values: Sequence[CompletedValues]) -> list[Record | RecordColumns] | None:
    """The records of some messages; None where they are not encoded as Spanner's usually are."""
    try:
        data, beats, children = split_members(merge_sent_structs(values), len(PARTS))
        columns = decode_columns(split_members(merge_structs(data), len(FIELDS)))
    except (UnexpectedValueError, DecodeError, pa.ArrowInvalid):
        return None
    records: list[Record | RecordColumns] = [columns] if columns.fields.num_rows else []
    records += [Heartbeat(decode_timestamp(parse_list(b)[0])) for b in merge_lists(beats)]
    for each in merge_lists(children):
        records += decode_children(parse_list(each))
    return records


def split_members(members: Sequence[bytes], width: int) -> list[Sequence[bytes]]:
    """The members of structs, all of one index together. Raises UnexpectedValueError where structs
    have more or fewer."""
    if len(members) % width:
        raise UnexpectedValueError(f"Spanner sent structs that have not {width} members")
    return [members[index::width] for index in range(width)]


def decode_columns(members: Sequence[Sequence[bytes]]) -> RecordColumns:
    """Data change records from their fields, by index. Raises UnexpectedValueError or pyarrow's
    ArrowInvalid for what is not as Spanner documents it."""
    commits = decode_timestamps(members[COMMIT_FIELD])
    if commits.null_count:
        raise UnexpectedValueError("Spanner sent a record without a commit timestamp")
    fields = {
        "commit_timestamp": commits,
        **{name: decode_texts(members[index]) for name, index in TEXT_FIELDS.items()},
        **{name: decode_flags(members[index]) for name, index in FLAG_FIELDS.items()},
        **{name: decode_numbers(members[index]) for name, index in NUMBER_FIELDS.items()},
    }
    check_words(fields["operation"], Operation)
    check_words(fields["captured"], ValueCapture)
    fields["shape"], shapes = decode_shapes(fields["table"], members[COLUMNS_FIELD])
    mods = merge_lists(members[MODS_FIELD])
    ends = find_ends(members[MODS_FIELD], mods)
    counts = np.diff(ends, prepend=0)
    records = np.repeat(np.arange(len(counts)), counts)
    numbers = np.arange(len(mods)) - np.repeat(ends - counts, counts)
    batch = pa.RecordBatch.from_pydict(fields)
    return RecordColumns(batch, shapes, decode_mods(mods, numbers, batch, records), records)


def find_ends(lists: Sequence[bytes], items: Sequence[bytes]) -> NDArray[np.int64]:
    """How many items there are up to the end of each list, of values that are lists."""
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    sizes = lengths - header_lengths(lengths)
    return count_elements(items, np.cumsum(sizes))


def decode_texts(values: Sequence[bytes]) -> pa.Array:
    """Texts; an empty one for NULL."""
    return pc.fill_null(decode_strings(values), "")


def decode_flags(values: Sequence[bytes]) -> pa.Array:
    """Booleans; false for NULL."""
    return pc.fill_null(decode_booleans(scan_cells(values)), False)


def decode_numbers(values: Sequence[bytes]) -> pa.Array:
    """INT64."""
    return decode_texts(values).cast(pa.int64())


def check_words(column: pa.Array, words: type[StrEnum]) -> None:
    """Raises UnexpectedValueError for a text that is none of the words."""
    if not set(pc.unique(column).to_pylist()) <= set(words):
        raise UnexpectedValueError(f"Spanner sent a record with an unknown {words.__name__}")


def decode_shapes(tables: pa.Array, columns: Sequence[bytes]) -> tuple[pa.Array, tuple[Shape, ...]]:
    """The index of each record's shape among the shapes that there are."""
    of_table = tables.dictionary_encode()
    of_columns = pa.array(columns, pa.binary()).dictionary_encode()
    kinds = len(of_columns.dictionary)
    codes = of_table.indices.to_numpy().astype(np.int64) * kinds + of_columns.indices.to_numpy()
    distinct, which = np.unique(codes, return_inverse=True)
    shapes: dict[Shape, int] = {}
    indexes = [
        shapes.setdefault(
            decode_shape(
                of_table.dictionary[code // kinds].as_py(),
                of_columns.dictionary[code % kinds].as_py(),
            ),
            len(shapes),
        )
        for code in distinct.tolist()
    ]
    return pa.array(np.array(indexes, np.int32)[which], pa.int32()), tuple(shapes)


def decode_mods(
    mods: Sequence[bytes],
    numbers: NDArray[np.int64],
    fields: pa.RecordBatch,
    records: NDArray[np.int64],
) -> pa.RecordBatch:
    """The changed rows. As ``records.decode_mod``: a delete has no new values, and old values are
    there where the stream captures them."""
    members = split_members(merge_lists(mods), len(MODS))
    keys, new, old = (decode_texts(texts) for texts in members)
    deleted = pc.equal(fields.column("operation"), str(Operation.DELETE))
    kept = [str(each) for each in ValueCapture if each.keeps_old]
    keeps_old = pc.is_in(fields.column("captured"), value_set=pa.array(kept))
    return pa.RecordBatch.from_pydict(
        {
            "key": keys,
            "new_values": complete_objects(new, pc.invert(deleted).take(pa.array(records))),
            "old_values": complete_objects(old, keeps_old.take(pa.array(records))),
            "mod_number": pa.array(numbers, pa.int32()),
        }
    )


def complete_objects(texts: pa.Array, known: pa.Array) -> pa.Array:
    """Objects of JSON: an empty one where there is no text, NULL where nothing is known."""
    empty = pc.equal(texts, "")
    if pc.any(empty).as_py():
        texts = pc.if_else(empty, "{}", texts)
    return texts if pc.all(known).as_py() else pc.if_else(known, texts, None)


def make_stream_rows(
    columns: RecordColumns,
    window: Window,
    keys: Mapping[str, tuple[str, ...]],
    token: str,
    change_filter: ChangeFilter,
) -> StreamRows | None:
    """The changes of the records that pass a filter; None where none does. ``keys`` are the key
    columns of each table, in order."""
    fields, mods, records = columns.fields, columns.mods, columns.records
    accepted = accept_records(fields, change_filter)
    if accepted is not None:
        chosen = accepted[records]
        records, mods = records[chosen], mods.filter(pa.array(chosen))
    if not len(records):
        return None
    of_mods = fields.take(pa.array(records))
    indexes, shapes = drop_unused(of_mods.column("shape"), columns.shapes)
    arrays = {name: of_mods.column(name) for name in of_mods.schema.names}
    arrays |= {name: mods.column(name) for name in mods.schema.names}
    arrays["shape"] = indexes
    arrays["partition_token"] = pa.repeat(token, len(records))
    arrays["id"] = compute_change_ids(fields, mods, records)
    batch = pa.RecordBatch.from_arrays([arrays[name] for name in CHANGES.names], schema=CHANGES)
    return StreamRows(window, batch, tuple(order_key(shape, keys) for shape in shapes))


def accept_records(fields: pa.RecordBatch, change_filter: ChangeFilter) -> NDArray[np.bool_] | None:
    """Which records are read; None for all."""
    kinds = ("table", "operation", "transaction_tag")
    codes = [fields.column(name).dictionary_encode() for name in kinds]
    whole = np.zeros(fields.num_rows, np.int64)
    for each in codes:
        whole = whole * len(each.dictionary) + each.indices.to_numpy()
    _, firsts, which = np.unique(whole, return_index=True, return_inverse=True)
    some = fields.select(kinds).take(pa.array(firsts)).to_pylist()
    verdicts = [
        change_filter.accepts_kind(
            each["table"], Operation(each["operation"]), each["transaction_tag"]
        )
        for each in some
    ]
    return None if all(verdicts) else np.array(verdicts)[which]


def drop_unused(indexes: pa.Array, shapes: tuple[Shape, ...]) -> tuple[pa.Array, tuple[Shape, ...]]:
    """The shapes that changes have, and the index of each change's among them."""
    used, which = np.unique(indexes.to_numpy(), return_inverse=True)
    return pa.array(which, pa.int32()), tuple(shapes[index] for index in used.tolist())


def compute_change_ids(
    fields: pa.RecordBatch, mods: pa.RecordBatch, records: NDArray[np.int64]
) -> pa.Array:
    """As ``rows.compute_change_ids``."""
    heads = pc.binary_join_element_wise(
        fields.column("table"),
        format_timestamps(fields.column("commit_timestamp")),
        fields.column("transaction_id"),
        fields.column("record_sequence"),
        "\n",
    )
    numbers, keys = mods.column("mod_number").cast(pa.string()), mods.column("key")
    whole = heads.take(pa.array(records))
    return hash_texts(pc.binary_join_element_wise(whole, numbers, keys, "\n"))
