"""Changes the columns of a Delta table in one entry of its log: new ones are NULL in every row, or
its files are written anew with their values; those that its source has lost are marked."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
from deltalake import Schema as DeltaSchema

from watcher.process.failpoints import failpoint
from watcher.replica.copies import DROPPED, NewValues
from watcher.replica.cuts.modes import OWN_COLUMNS
from watcher.replica.delta.merge_on_read import VectorTable
from watcher.replica.delta.replacement import rewrite_files
from watcher.replica.delta.snapshot import Action, Snapshot
from watcher.replica.writing.statistics import COMPACT


def change_columns(
    table: VectorTable,
    snapshot: Snapshot,
    schema: pa.Schema,
    mark: Mapping[str, str],
    values: NewValues | None = None,
) -> bool:
    """Gives the version that ``VectorTable.read`` has returned the columns of a schema that no file
    has, with these values in every row (None: NULL). Those that are there stay as they are, and are
    marked as dropped where the schema does not have them. Returns whether nobody has committed
    meanwhile. Raises OSError, ReplicaError."""
    fields = list_fields(snapshot, DeltaSchema.from_arrow(schema).to_json())
    text = json.dumps({"type": "struct", "fields": fields}, separators=COMPACT)
    actions: list[Action] = [{"metaData": {**snapshot.metadata, "schemaString": text}}]
    if values is not None:
        actions += write_values(table, snapshot, pa.schema(DeltaSchema.from_json(text)), values)
        failpoint("after-replica-files")
    kept = any(is_marked(field) for field in fields)
    operation = "CHANGE COLUMNS" if kept else "ADD COLUMNS"
    return table.commit(snapshot.version + 1, operation, actions, mark)


def write_values(
    table: VectorTable, snapshot: Snapshot, schema: pa.Schema, values: NewValues
) -> list[Action]:
    """Writes all files anew, with the rows that are there."""
    read = table.files.read_vector
    gone = {path: read(file.vector) for path, file in snapshot.files.items()}
    return list(rewrite_files(table, snapshot, gone, schema, values))


def list_fields(snapshot: Snapshot, schema: str) -> Sequence[dict[str, Any]]:
    """The columns that a table gets by Delta's JSON of a schema: those that are there as they are,
    and then its own of its mode."""
    known = {each["name"]: each for each in json.loads(snapshot.metadata["schemaString"])["fields"]}
    fields = [known.get(field["name"], field) for field in json.loads(schema)["fields"]]
    names = {field["name"] for field in fields} | OWN_COLUMNS
    kept = [mark_dropped(field) for name, field in known.items() if name not in names]
    own = [field for name, field in known.items() if name in OWN_COLUMNS]
    return [*fields, *kept, *own]


def mark_dropped(field: Mapping[str, Any]) -> dict[str, Any]:
    """A column in Delta's schema that new rows have no value for."""
    return {**field, "nullable": True, "metadata": {**(field.get("metadata") or {}), DROPPED: ""}}


def is_marked(field: Mapping[str, Any]) -> bool:
    """Whether a column is marked so."""
    return DROPPED in (field.get("metadata") or {})
