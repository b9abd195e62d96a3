"""The schema at a read timestamp, without reading INFORMATION_SCHEMA again for each schedule.

The server says which schema is valid; its digest and what the product makes of it are worked out by
the product itself, the first time that this schema is met. To ask is a step of the schedule, as the
calls that it replaces.
"""

from __future__ import annotations

from typing import Any

import watcher.tables.schema_reader
from interleavings.scheduler import current_scheduler, current_unit, hide_steps
from interleavings.world import World
from spanner_schema.model.schema import Schema
from watcher.spanner.stream import QueryStream
from watcher.tables.schema_reader import SchemaEpoch

READ_DIGEST = watcher.tables.schema_reader.read_digest
READ_EPOCH = watcher.tables.schema_reader.read_epoch
LABEL = "ExecuteSql SELECT FROM INFORMATION_SCHEMA"
KNOWN = "known_epochs"
"""The attribute of a schema of the server that has what the product has read of it."""


class KnownSchemas:
    """The schemas of a world's database, by their digests."""

    def __init__(self, world: World, quiet: bool) -> None:
        """``quiet``: no actor changes the schema, so that reading it is not a step."""
        self._world = world
        self._quiet = quiet
        self._schemas: dict[int, Schema] = {}

    def read_digest(self, stream: QueryStream, at: int | None = None) -> tuple[int, int]:
        """As the product's."""
        unit = current_unit()
        if unit is None or unit.silent:
            return READ_DIGEST(stream, at)
        if unit.killed is not None:
            raise unit.killed
        crashes = not self._quiet and current_scheduler().gate(LABEL)
        timestamp, digest = self._digest(stream, at)
        if crashes:
            current_scheduler().crash(unit)
        return timestamp, digest

    def read_epoch(self, stream: QueryStream, at: int | None = None) -> SchemaEpoch:
        """As the product's."""
        if current_unit() is None:
            return READ_EPOCH(stream, at)
        timestamp, digest = self.read_digest(stream, at)
        return SchemaEpoch(timestamp, digest, self._schemas[digest])

    def _digest(self, stream: QueryStream, at: int | None) -> tuple[int, int]:
        engine: Any = self._world.engine
        if at is not None and at < engine.oldest_readable():
            with hide_steps():
                return READ_DIGEST(stream, at)
        timestamp = engine._timeline.strong() if at is None else at
        state = engine._writer.versions.state_at(timestamp, engine._writer.state)
        known: list[SchemaEpoch] = vars(state).setdefault(KNOWN, [])
        if not known:
            with hide_steps():
                known.append(READ_EPOCH(stream, timestamp))
        self._schemas[known[0].digest] = known[0].schema
        return timestamp, known[0].digest
