"""Masks at work, on the Arrow columns of a table and on single values as Spanner sends them."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterable

import pyarrow as pa
import pyarrow.compute as pc

from spanner_schema.model.column_types import TypeCode
from watcher.model.errors import ConfigurationError
from watcher.tables.masks import REDACTED, Mask, MaskKind

DIGEST = "sha256"


def mask_column(mask: Mask, column: pa.Array | None, type_: pa.DataType, rows: int) -> pa.Array:
    """The column that is delivered; ``column`` is None for one that was not read."""
    match mask.kind:
        case MaskKind.NULL:
            return pa.nulls(rows, type_)
        case MaskKind.REDACT:
            return pa.repeat(pa.scalar(REDACTED, type_), rows)
        case MaskKind.HASH:
            assert column is not None, "what is hashed is read"
            return hash_column(column, read_key(mask))


def mask_batch(batch: pa.RecordBatch, masks: Iterable[Mask]) -> pa.RecordBatch:
    """Rows with some of their columns masked."""
    for mask in masks:
        index = batch.schema.get_field_index(mask.column)
        if index >= 0:
            field = batch.schema.field(index)
            column = mask_column(mask, batch.column(index), field.type, batch.num_rows)
            batch = batch.set_column(index, field, column)
    return batch


def hash_column(column: pa.Array, key: bytes) -> pa.Array:
    """The hashes of texts, or of bytes; each value of the column is hashed once."""
    values = pc.dictionary_encode(column)
    is_text = pa.types.is_string(column.type)
    hashes = [
        digest(each.encode(), key).hex() if is_text else digest(each, key)
        for each in values.dictionary.to_pylist()
    ]
    return pa.array(hashes, column.type).take(values.indices)


def digest(value: bytes, key: bytes) -> bytes:
    """The HMAC of a value."""
    return hmac.digest(key, value, DIGEST)


def read_key(mask: Mask) -> bytes:
    """The key of a hash. Raises ConfigurationError."""
    if mask.key is None:
        raise ConfigurationError(
            f"column {mask.column} is masked by 'hash', which needs mask_key: write"
            ' { file = "PATH" } or { env = "NAME" } there'
        )
    return mask.key.read()


def mask_cell(mask: Mask, code: TypeCode, value: str | None) -> str | None:
    """One value."""
    if mask.kind is MaskKind.NULL:
        return None
    if mask.kind is MaskKind.REDACT:
        return REDACTED
    if value is None:
        return None
    key = read_key(mask)
    if code is TypeCode.BYTES:
        return b64encode(digest(b64decode(value), key)).decode()
    return digest(value.encode(), key).hex()
