"""Changes the columns of a Delta table in one entry of its log. New ones are NULL in every row, or
its files are written anew with their values. Columns that its source has lost are marked, or leave
its schema.

Files keep what has left the schema until they are written anew, and readers take columns by their
names. So the table says which these are, and gets no column of such a name without a load.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import Schema as DeltaSchema

from watcher.process.failpoints import failpoint
from watcher.replica.copies import DROPPED, NewColumns, NewValues
from watcher.replica.cuts.modes import LATEST, OWN_COLUMNS, find_mode
from watcher.replica.delta.features import list_obstacles
from watcher.replica.delta.log import GONE, list_gone
from watcher.replica.delta.merge_on_read import VectorTable
from watcher.replica.delta.replacement import rewrite_files
from watcher.replica.delta.snapshot import Action, Snapshot
from watcher.replica.writing.statistics import COMPACT

Field = dict[str, Any]


def takes_columns(
    snapshot: Snapshot, added: Sequence[str], gone: Sequence[str], with_values: bool
) -> bool:
    """As ``EvolvingCopy.takes_columns``. What deleted rows and earlier versions would have is
    nowhere."""
    if with_values and find_mode(snapshot.schema.names) != LATEST:
        return False
    left = {name.casefold() for name in list_gone(snapshot.properties)}
    if any(name.casefold() in left for name in added):
        return False
    return not (set(gone) & set(snapshot.metadata["partitionColumns"]) or list_obstacles(snapshot))


def change_columns(
    table: VectorTable, snapshot: Snapshot, columns: NewColumns, mark: Mapping[str, str]
) -> bool:
    """Gives the version that ``VectorTable.read`` has returned other columns. Returns whether
    nobody has committed meanwhile. Raises OSError, ReplicaError."""
    fields, gone = list_fields(snapshot, columns)
    text = json.dumps({"type": "struct", "fields": fields}, separators=COMPACT)
    metadata = {**snapshot.metadata, "schemaString": text}
    if gone:
        names = json.dumps(sorted({*list_gone(snapshot.properties), *gone}))
        metadata["configuration"] = {**snapshot.properties, GONE: names}
    actions: list[Action] = [{"metaData": metadata}]
    if columns.values is not None:
        schema = pa.schema(DeltaSchema.from_json(text))
        actions += write_values(table, snapshot, schema, columns.values)
        failpoint("after-replica-files")
    kept = any(map(is_marked, fields))
    operation = "CHANGE COLUMNS" if kept or gone else "ADD COLUMNS"
    return table.commit(snapshot.version + 1, operation, actions, mark)


def write_values(
    table: VectorTable, snapshot: Snapshot, schema: pa.Schema, values: NewValues
) -> list[Action]:
    """Writes all files anew, with the rows that are there."""
    read = table.files.read_vector
    gone = {path: read(file.vector) for path, file in snapshot.files.items()}
    return list(rewrite_files(table, snapshot, gone, schema, values))


def list_fields(snapshot: Snapshot, columns: NewColumns) -> tuple[list[Field], list[str]]:
    """The columns that a table gets, in Delta's JSON: those that are there as they are, those that
    are kept although the source has lost them, its own of its mode; and those that are gone."""
    known = {each["name"]: each for each in json.loads(snapshot.metadata["schemaString"])["fields"]}
    wanted = json.loads(DeltaSchema.from_arrow(columns.schema).to_json())["fields"]
    fields = [known.get(field["name"], field) for field in wanted]
    names = {field["name"] for field in fields} | OWN_COLUMNS
    lost = [field for name, field in known.items() if name not in names]
    marked = [field for field in lost if columns.keep_dropped or is_marked(field)]
    own = [field for name, field in known.items() if name in OWN_COLUMNS]
    gone = [field["name"] for field in lost if field not in marked]
    return [*fields, *map(mark_dropped, marked), *own], gone


def is_marked(field: Mapping[str, Any]) -> bool:
    """Whether a column stays although its source has lost it."""
    return DROPPED in (field.get("metadata") or {})


def mark_dropped(field: Mapping[str, Any]) -> Field:
    """A column in Delta's schema that new rows have no value for."""
    return {**field, "nullable": True, "metadata": {**(field.get("metadata") or {}), DROPPED: ""}}
