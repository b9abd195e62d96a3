"""What a Delta table asks of its readers and writers, and what a writer of deletion vectors cannot
give it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from watcher.replica.cuts.modes import LATEST, find_mode
from watcher.replica.delta.change_feed import has_feed
from watcher.replica.delta.feed_columns import PROPERTY as FEED
from watcher.replica.delta.snapshot import VECTORS, Action, Snapshot

PROPERTY = "delta.enableDeletionVectors"
READER, WRITER = 3, 7
"""The versions whose features are listed by name."""
WRITER_FEATURES = (
    (2, ("appendOnly", "invariants")),
    (3, ("checkConstraints",)),
    (4, ("changeDataFeed", "generatedColumns")),
    (5, ("columnMapping",)),
    (6, ("identityColumns",)),
)
"""What earlier versions of the protocol ask for, from which version on."""
KNOWN = {
    VECTORS,
    *(name for _, names in WRITER_FEATURES for name in names),
    *("timestampNtz", "vacuumProtocolCheck", "variantType"),
}
"""Features that ask for nothing, unless a table uses them: ``list_uses``. delta-rs adds
``variantType`` to every table with vectors whose properties it sets."""
PROPERTIES = {
    "delta.appendOnly": ("false",),
    "delta.columnMapping.mode": ("none",),
}
"""Properties, and values with which they ask for nothing."""
CONSTRAINT = "delta.constraints."
COLUMN_FEATURES = ("delta.invariants", "delta.generationExpression", "delta.identity.start")
"""Metadata of columns that asks a writer to compute or to check values."""
NEW = {
    "minReaderVersion": READER,
    "minWriterVersion": WRITER,
    "readerFeatures": [VECTORS],
    "writerFeatures": [VECTORS],
}
"""The protocol of a new table: what vectors need, so that it is readable for as many as can be."""
OLD = {"minReaderVersion": 1, "minWriterVersion": 2}
"""That of one without vectors."""


def allows_vectors(snapshot: Snapshot) -> bool:
    """Whether new vectors may be written."""
    return snapshot.has_vectors and snapshot.properties.get(PROPERTY) == "true"


def list_obstacles(snapshot: Snapshot) -> list[str]:
    """What keeps vectors from being written, in words of Delta. The change data feed is written
    with vectors, of rows that are there."""
    obstacles = list_demands(snapshot)
    fed = allows_vectors(snapshot) and find_mode(snapshot.schema.names) == LATEST
    if has_feed(snapshot) and not fed:
        obstacles.append(f"the property {FEED} = true")
    return obstacles


def list_demands(snapshot: Snapshot) -> list[str]:
    """What a table asks of everybody who writes rows, and is not done here."""
    return [*list_unknown(snapshot.protocol), *list_uses(snapshot.metadata)]


def list_unknown(protocol: Action) -> Iterator[str]:
    """The features that are not known here."""
    for name in sorted({*list_reader_features(protocol), *list_writer_features(protocol)} - KNOWN):
        yield f"the feature {name}"


def list_uses(metadata: Action) -> Iterator[str]:
    """What a table uses of the features that are known."""
    for name, value in (metadata.get("configuration") or {}).items():
        if value.lower() not in PROPERTIES.get(name, (value.lower(),)):
            yield f"the property {name} = {value}"
        if name.startswith(CONSTRAINT):
            yield f"the constraint {name.removeprefix(CONSTRAINT)}"
    for column in json.loads(metadata["schemaString"])["fields"]:
        if column["type"] == "variant":
            yield f"the type variant of column {column['name']}"
        for name in COLUMN_FEATURES:
            if name in (column.get("metadata") or {}):
                yield f"{name} of column {column['name']}"


def list_reader_features(protocol: Action) -> list[str]:
    """The features that readers need to know."""
    if protocol["minReaderVersion"] >= READER:
        return list(protocol.get("readerFeatures") or ())
    return ["columnMapping"] if protocol["minReaderVersion"] == READER - 1 else []


def list_writer_features(protocol: Action) -> list[str]:
    """The features that writers need to know."""
    version = protocol["minWriterVersion"]
    if version >= WRITER:
        return list(protocol.get("writerFeatures") or ())
    return [name for since, names in WRITER_FEATURES if since <= version for name in names]


def enable_vectors(snapshot: Snapshot) -> list[Mapping[str, Any]]:
    """The actions that let vectors be written to a table; all else stays as it was."""
    protocol, metadata = snapshot.protocol, snapshot.metadata
    return [
        {
            "protocol": {
                "minReaderVersion": READER,
                "minWriterVersion": WRITER,
                "readerFeatures": sorted({*list_reader_features(protocol), VECTORS}),
                "writerFeatures": sorted({*list_writer_features(protocol), VECTORS}),
            }
        },
        {"metaData": {**metadata, "configuration": {**snapshot.properties, PROPERTY: "true"}}},
    ]
