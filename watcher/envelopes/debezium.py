"""A change as Debezium's connector for Spanner writes it to Kafka, with or without schemas."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import ClassVar, Literal

import pyarrow.compute as pc
from pydantic import model_validator

from watcher.envelopes.connect_schema import event_schema, key_schema
from watcher.envelopes.debezium_source import FIELDS, Source
from watcher.envelopes.kinds import (
    Kind,
    LackingError,
    Layer,
    Layers,
    new_row,
    old_row,
    refuse_part,
)
from watcher.envelopes.leaves import (
    WINDOW_END_MS,
    WINDOW_END_NS,
    WINDOW_END_US,
    ByNames,
    Cells,
    describe_key,
)
from watcher.envelopes.message import Json, Known, RecordLayout, json_text
from watcher.envelopes.templates import Described, DescribedEnvelope, JsonEnvelope, Tree
from watcher.envelopes.values import COMPACT_CELLS, CellStyle, quote
from watcher.model.change import Operation, Shape
from watcher.model.errors import ConfigurationError
from watcher.spanner.address import DatabaseAddress
from watcher.spanner.json_columns.objects import NULL

OPS = {
    Operation.INSERT: "c",
    Operation.UPDATE: "u",
    Operation.UPSERT: "u",
    Operation.DELETE: "d",
    Operation.READ: "r",
}
EXISTED = (Operation.UPDATE, Operation.DELETE, Operation.UPSERT)
"""The operations on a row that was there before."""


class DebeziumRecord(DescribedEnvelope):
    """``name`` is that of the connector, from which topic names derive; ``stream`` is that of the
    change stream.

    ``before``: if the capture knows it, always (or the capture is refused), or never.
    ``low_watermark`` writes the start of the window, up to which everything was delivered. Polling
    cannot tell inserts from updates: both are ``u``.
    """

    has_key: ClassVar[bool] = True

    name: str = "spanner-watcher"
    stream: str = ""
    tombstones: bool = True
    before: Literal["known", "required", "never"] = "known"
    low_watermark: bool = False

    @property
    def omits_columns(self) -> bool:
        """Whether a row may have only some of its columns."""
        return False

    def check(self, known: Known) -> None:
        """As ``Envelope.check``."""
        if self.before == "required" and not known.old_values:
            raise ConfigurationError(
                f"debezium's before is required, and {known} does not know the row before a change:"
                " use a change stream with value_capture_type NEW_ROW_AND_OLD_VALUES"
            )
        if not self.omits_columns and not known.whole_rows:
            omit = ", or partial = 'omit'" if "partial" in type(self).model_fields else ""
            raise ConfigurationError(
                f"debezium's after needs the whole row, and {known} has only the columns that"
                f" changed: use value_capture_type NEW_ROW or NEW_ROW_AND_OLD_VALUES{omit}"
            )

    @property
    def style(self) -> CellStyle:
        """As ``DescribedEnvelope.style``."""
        return COMPACT_CELLS

    def describe(self, kind: Kind, database: str, shape: Shape) -> Described:
        """The event, and after a delete also the tombstone of its key."""
        after, before = new_row(kind), self._choose_before(kind)
        if not self.omits_columns:
            refuse_part(kind, kind.has_whole_new_row, "debezium's after needs the whole row")
        value: Tree = {
            "before": NULL if before is None else Cells(shape, before, COMPACT_CELLS),
            "after": NULL if after is None else Cells(shape, after, COMPACT_CELLS),
            "source": self._describe_source(kind, database, shape),
            "op": quote(OPS[kind.operation]),
            "ts_ms": WINDOW_END_MS,
            "ts_us": WINDOW_END_US,
            "ts_ns": WINDOW_END_NS,
            "transaction": NULL,
        }
        key: Tree = describe_key(shape, COMPACT_CELLS)
        return Described(key, value, self.tombstones and kind.deleted)

    def _describe_source(self, kind: Kind, database: str, shape: Shape) -> dict[str, Tree]:
        source = Source(
            kind,
            DatabaseAddress.parse(database),
            shape.table,
            self.name,
            self.stream,
            self.low_watermark,
        )
        return {field.name: field.describe(source) for field in FIELDS}

    def _choose_before(self, kind: Kind) -> Layers | None:
        if self.before == "never":
            return None
        before = old_row(kind)
        if self.before == "required" and before is None and kind.operation in EXISTED:
            raise LackingError("does not have the row before, and debezium's before is required")
        return before


class Debezium(DebeziumRecord, JsonEnvelope):
    """As ``DebeziumRecord``, in JSON.

    ``with_schema`` adds Kafka Connect's schema to every key and value. ``partial``: updates with
    only some columns are refused, or their other columns are left out.
    """

    layout: ClassVar[RecordLayout | None] = RecordLayout(
        ("source", "table"),
        (
            (("source", "ts_us"), "long"),
            (("source", "server_transaction_id"), "string"),
            (("source", "sequence"), "long"),
            (("source", "mod_number"), "long"),
        ),
        roots=((), ("payload",)),
    )

    with_schema: bool = False
    partial: Literal["refuse", "omit"] = "refuse"

    @model_validator(mode="after")
    def _check_schema(self) -> Debezium:
        if self.with_schema and self.partial == "omit":
            raise ValueError(
                "with a schema, readers take a missing column for NULL: use partial = 'refuse', or"
                " with_schema = false"
            )
        return self

    @property
    def omits_columns(self) -> bool:
        """As ``DebeziumRecord.omits_columns``."""
        return self.partial == "omit"

    def describe(self, kind: Kind, database: str, shape: Shape) -> Described:
        """As ``DebeziumRecord.describe``."""
        described = super().describe(kind, database, shape)
        if not self.with_schema:
            return described
        key: Tree = {
            "schema": describe_by_null_keys(lambda nulls: key_schema(shape, nulls)),
            "payload": described.key,
        }
        event = describe_by_null_keys(lambda nulls: event_schema(self.name, shape, nulls))
        value: Tree = {"schema": event, "payload": described.value}
        return Described(key, value, described.tombstone)


def describe_by_null_keys(make_schema: Callable[[frozenset[str]], Json]) -> ByNames:
    """A schema that depends on the columns of the key that are NULL."""
    return ByNames(
        lru_cache(maxsize=64)(lambda nulls: json_text(make_schema(nulls))),
        lambda change: frozenset(name for name, cell in change.key.items() if cell is None),
        lambda changes: {
            name: pc.equal(cells, NULL) for name, cells in changes.get_cells(Layer.KEY).items()
        },
    )
