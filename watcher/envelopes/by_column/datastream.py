"""Datastream's events of whole batches."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from watcher.envelopes.by_column.cells import NotByColumnError
from watcher.envelopes.by_column.changes import CellColumns, ChangeColumns, keep_cells, merge_cells
from watcher.envelopes.by_column.messages import (
    MessageColumns,
    choose_if,
    dump_fields,
    find_captured,
    find_deleted_rows,
    merge_new_row,
    print_values,
    quote_or_null,
    refuse_any,
    select_key,
)
from watcher.envelopes.datastream import (
    NAMESPACE,
    Datastream,
    alike_metadata,
    alike_source,
    milliseconds_text,
)
from watcher.envelopes.images import OLD, ROWS
from watcher.envelopes.message import json_text
from watcher.json_columns.objects import COMPACT, NULL, Cells, join_array, join_object
from watcher.json_columns.scalars import format_timestamps
from watcher.json_columns.strings import wrap
from watcher.model.change import Common, Operation
from watcher.spanner.results.columns import TIMESTAMP

MILLISECONDS_LENGTH = len("YYYY-MM-DDTHH:MM:SS.fff")
UUID_BYTES = 16
UUID_TEXT = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"


def encode_datastream(changes: ChangeColumns, database: str, chosen: Datastream) -> MessageColumns:
    """As ``Datastream.encode``. Raises NotByColumnError for what columns cannot do or the envelope
    refuses."""
    if chosen.partial == "refuse":
        refuse_parts(changes)
    common = Common(database, changes.shape, changes.window)
    alike = dump_fields(alike_metadata(common, chosen.stream_name))
    read = pc.equal(changes.operations, str(Operation.READ))
    fields: Cells = {
        "stream_name": alike["stream_name"],
        "read_method": choose_if(read, '"backfill"', '"cdc"'),
        **alike,
        "uuid": wrap(compute_uuids(database, changes.ids), '"', '"'),
        "read_timestamp": json_text(milliseconds_text(common.window.end)),
        "source_timestamp": render_milliseconds(changes.commits),
        "sort_keys": render_sort_keys(changes),
        "source_metadata": render_metadata(changes, common),
        "payload": join_object(merge_last_row(changes), changes.rows, COMPACT),
    }
    keys = join_array(list(select_key(changes).values()), changes.rows, COMPACT.comma)
    return MessageColumns(keys, join_object(fields, changes.rows, COMPACT))


def refuse_parts(changes: ChangeColumns) -> None:
    """Raises NotByColumnError where a change has only some of the last row's values."""
    deleted = find_deleted_rows(changes)
    update = pc.equal(changes.operations, str(Operation.UPDATE))
    refuse_any(pc.and_not(update, find_captured(changes, ROWS)))
    if changes.origin is not None:
        lost = changes.origin.column("new_values").is_null()
        refuse_any(pc.and_(pc.and_(deleted, lost), pc.invert(find_captured(changes, OLD))))


def merge_last_row(changes: ChangeColumns) -> CellColumns:
    """The row as it is, or as it was before it was deleted: ``images.last_row``."""
    if not changes.shape.primary_key:
        raise NotByColumnError("a row without a key may be empty")
    rows = merge_new_row(changes)
    gone = pc.and_(find_deleted_rows(changes), find_captured(changes, OLD))
    gone = pc.and_(gone, changes.knows_old)
    if not pc.any(gone).as_py():
        return rows
    new = keep_cells(changes.new, pc.invert(gone))
    return merge_cells(changes.shape, keep_cells(changes.old, gone), new, changes.key)


def render_milliseconds(commits: pa.Array) -> pa.Array:
    """RFC 3339 with milliseconds."""
    texts = format_timestamps(commits.cast(TIMESTAMP))
    return wrap(pc.utf8_slice_codeunits(texts, 0, MILLISECONDS_LENGTH), '"', 'Z"')


def render_sort_keys(changes: ChangeColumns) -> pa.Array:
    """As ``datastream.sort_keys``."""
    commits = print_values(changes.commits)
    if changes.origin is None:
        return wrap(commits, "[", ',"","",0]')
    origin = changes.origin
    cells = [
        commits,
        quote_or_null(origin.column("transaction_id")),
        quote_or_null(origin.column("record_sequence")),
        print_values(origin.column("mod_number")),
    ]
    return join_array(cells, changes.rows, COMPACT.comma)


def render_metadata(changes: ChangeColumns, common: Common) -> Cells:
    """``source_metadata``, as that of each change."""
    origin = changes.origin
    return {
        **dump_fields(alike_source(common)),
        "is_deleted": print_values(find_deleted_rows(changes)),
        "change_type": quote_or_null(changes.operations),
        "tx_id": NULL if origin is None else quote_or_null(origin.column("transaction_id")),
        "record_sequence": (
            NULL if origin is None else quote_or_null(origin.column("record_sequence"))
        ),
        "mod_number": NULL if origin is None else print_values(origin.column("mod_number")),
    }


def compute_uuids(database: str, ids: pa.Array) -> pa.Array:
    """``uuid5(NAMESPACE, f"{database}/{id}")`` of each id, as text."""
    head = hashlib.sha1(NAMESPACE.bytes + f"{database}/".encode(), usedforsecurity=False)
    digests = bytearray()
    for each in ids.cast(pa.binary()).to_pylist():
        whole = head.copy()
        whole.update(each)
        digests += whole.digest()[:UUID_BYTES]
    octets = np.frombuffer(digests, np.uint8).reshape(-1, UUID_BYTES).copy()
    octets[:, 6] = (octets[:, 6] & 0x0F) | 0x50
    octets[:, 8] = (octets[:, 8] & 0x3F) | 0x80
    digits = np.frombuffer(octets.tobytes().hex().encode(), np.uint8).reshape(-1, 2 * UUID_BYTES)
    texts = np.full((len(octets), len(UUID_TEXT)), ord("-"), np.uint8)
    texts[:, [place for place, sign in enumerate(UUID_TEXT) if sign == "x"]] = digits
    offsets = np.arange(len(octets) + 1, dtype=np.int32) * len(UUID_TEXT)
    return pa.StringArray.from_buffers(
        len(octets), pa.py_buffer(offsets), pa.py_buffer(texts.reshape(-1))
    )
