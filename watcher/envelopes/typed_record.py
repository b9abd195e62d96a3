"""The project's own record for formats with typed columns: a change as a value that they write."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Annotated, ClassVar

from pydantic import Field

from spanner_schema.model.names import split_name
from watcher.envelopes.kinds import (
    Kind,
    LackingError,
    Layer,
    Layers,
    find_kind,
    new_row,
    old_row,
    refuse_change,
    refuse_part,
)
from watcher.envelopes.leaves import read_row
from watcher.envelopes.message import (
    EnvelopeOptions,
    Known,
    Message,
    RecordLayout,
    id_header,
)
from watcher.model.change import Change, Shape, Value
from watcher.model.errors import ConfigurationError

NAMESPACE = r"^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$"
"""What a namespace may be, in Avro and as a package of Protobuf."""
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")
ROW: Layers = (Layer.NEW, Layer.KEY)


class TypedRecord(EnvelopeOptions):
    """The record of ``plain``, key and value typed, without their schemas, which a registry keeps.

    ``values`` is the row afterwards, ``old_values`` the row before where it is known; each is whole
    or null, since a column that is left out would be NULL. ``namespace`` is that of the records; by
    default the database.
    """

    has_key: ClassVar[bool] = True
    binary: ClassVar[bool] = True
    needs_registry: ClassVar[bool] = True
    layout: ClassVar[RecordLayout | None] = None
    format_name: ClassVar[str]

    namespace: Annotated[str, Field(pattern=NAMESPACE)] | None = None

    @abstractmethod
    def convert(self, shape: Shape, row: dict[str, Value]) -> dict[str, object]:
        """The cells of a row as the format's writer takes them. Raises EnvelopeError."""

    @abstractmethod
    def write(self, database: str, shape: Shape, event: dict[str, object]) -> tuple[bytes, bytes]:
        """The key and the value of an event. Raises as ``describe_schemas``, too."""

    @property
    def need(self) -> str:
        """What every change has to have."""
        return f"a row in {self.format_name} needs every column"

    def check(self, known: Known) -> None:
        """As ``Envelope.check``."""
        if not known.whole_rows:
            raise ConfigurationError(
                f"{self.need}, and {known} has only the columns that changed: use"
                " value_capture_type NEW_ROW or NEW_ROW_AND_OLD_VALUES"
            )

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        try:
            event = self._fill(change, find_kind(change))
        except LackingError as error:
            raise refuse_change(change, error) from error
        key, value = self.write(change.database, change.shape, event)
        return (Message(key, value, id_header(change.id)),)

    def name_table(self, database: str, table: str) -> str:
        """The namespace of a table's records."""
        namespace = self.namespace or replace_signs(database.rpartition("/")[2])
        return ".".join([namespace, *(replace_signs(part) for part in split_name(table) if part)])

    def _fill(self, change: Change, kind: Kind) -> dict[str, object]:
        """The record of a change. Raises LackingError."""
        refuse_part(kind, kind.has_whole_new_row, self.need)
        new = ROW if kind.has_new else new_row(kind)  # of a soft delete there is still the row
        old = old_row(kind)
        origin, shape = change.origin, change.shape
        return {
            "id": change.id,
            "table": change.table,
            "operation": str(change.operation),
            "commit_timestamp": change.commit_timestamp,
            "shard": change.shard_id,
            "key": self.convert(shape, dict(change.key)),
            "values": new and self.convert(shape, dict(read_row(change, new))),
            "old_values": old and self.convert(shape, dict(read_row(change, old))),
            "transaction": origin
            and {
                "id": origin.transaction_id,
                "sequence": origin.record_sequence,
                "tag": origin.transaction_tag,
            },
            "window": {"start": change.window.start, "end": change.window.end},
        }


def replace_signs(name: str) -> str:
    """A name with only the signs that are allowed."""
    replaced = NOT_IN_NAMES.sub("_", name)
    return f"_{replaced}" if replaced[0].isdigit() else replaced
