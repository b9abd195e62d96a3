"""What a queue's messages say of a change beside its record: headers, and tombstones of deletes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from watcher.envelopes.datastream import schema_key
from watcher.envelopes.message import Headers, Message
from watcher.envelopes.wrapped import WrappedEnvelope
from watcher.model.change import Change, Operation
from watcher.spanner.timestamps import format_timestamp


@dataclass(frozen=True, slots=True)
class DescribedMessages(WrappedEnvelope):
    """An ``Envelope`` whose messages have ``headers`` by which a reader chooses without parsing the
    value; with ``tombstones`` a message without a value follows a delete, also in formats that have
    none of their own: a topic that is compacted then drops the key."""

    with_headers: bool = False
    with_tombstones: bool = False

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        messages = self.inside.encode(change)
        if self.with_tombstones and change.operation is Operation.DELETE:
            last = messages[-1]
            if last.value is not None:
                messages = (*messages, Message(last.key, None, last.headers))
        if not self.with_headers:
            return messages
        headers = describe_change(change)
        return tuple(replace(each, headers=each.headers + headers) for each in messages)


def describe_change(change: Change) -> Headers:
    """The table, the operation, the commit timestamp, the transaction if it is known, and a text
    that changes with the columns."""
    described = {
        "table": change.table,
        "operation": str(change.operation),
        "commit_timestamp": format_timestamp(change.commit_timestamp),
        "schema_version": schema_key(change.shape),
    }
    if change.origin is not None:
        described["transaction_id"] = change.origin.transaction_id
    return tuple((name, value.encode()) for name, value in described.items())
