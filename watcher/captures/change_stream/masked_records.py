"""Masks of columns in the records of a change stream: in new values and in old ones."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from spanner_schema.model.column_types import TypeCode
from watcher.captures.change_stream.record_values import DataRecord, StreamMod
from watcher.captures.masked_values import mask_cell
from watcher.model.errors import ConfigurationError
from watcher.tables.masks import Mask, fits


def mask_record(record: DataRecord, masks: Sequence[Mask]) -> DataRecord:
    """A record whose values, new and old, are masked. Raises ConfigurationError for a column that
    had another type, or was of the key, when it changed: its values must not be delivered."""
    by_name = {mask.column.casefold(): mask for mask in masks}
    masked = {
        name: (by_name[name.casefold()], type_.code)
        for name, type_ in record.shape.columns
        if name.casefold() in by_name
    }
    if not masked:
        return record
    types = dict(record.shape.columns)
    for name, (mask, _) in masked.items():
        if name in record.shape.primary_key or not fits(mask.kind, types[name]):
            raise ConfigurationError(
                f"column {record.shape.table}.{name} cannot be masked by '{mask.kind}' as it was"
                " when its row changed: use exclude_columns for it, or for a column of the key"
                " exclude the table"
            )
    mods = tuple(mask_mod(mod, masked) for mod in record.mods)
    return replace(record, mods=mods)


def mask_mod(mod: StreamMod, masked: Mapping[str, tuple[Mask, TypeCode]]) -> StreamMod:
    """A row of a record, masked."""
    return replace(mod, new=mask_values(mod.new, masked), old=mask_values(mod.old, masked))


def mask_values(text: str | None, masked: Mapping[str, tuple[Mask, TypeCode]]) -> str | None:
    """A JSON object of Spanner's API, in which BYTES are base64."""
    if text is None:
        return None
    values = json.loads(text)
    for name in values.keys() & masked.keys():
        mask, code = masked[name]
        values[name] = mask_cell(mask, code, values[name])
    return json.dumps(values)
