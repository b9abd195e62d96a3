"""A change as a CloudEvent in JSON: ``plain`` as the data of an event."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from watcher.envelopes.kinds import Kind
from watcher.envelopes.leaves import COMMIT_TIME, ID
from watcher.envelopes.message import RecordLayout
from watcher.envelopes.plain import PlainRecord
from watcher.envelopes.templates import Described, Tree
from watcher.envelopes.values import quote
from watcher.model.change import Shape

SPECIFICATION = "1.0"
CONTENT_TYPE = b"application/cloudevents+json; charset=UTF-8"
"""CloudEvents, Kafka protocol binding: by it readers know that the whole event is in the value."""
SOURCE = "//spanner.googleapis.com/"
"""What comes before a database: the name that Google's own events have for a resource."""


class CloudEvents(PlainRecord):
    """The structured mode: all attributes are in the JSON, so that files and queues take it.

    ``type_prefix`` begins the type of events; the operation in small letters follows it. The other
    options are those of ``plain``, whose record without its id is the data.
    """

    headers: ClassVar[tuple[tuple[str, bytes], ...]] = (("content-type", CONTENT_TYPE),)
    layout: ClassVar[RecordLayout | None] = RecordLayout(
        ("subject",),
        (
            (("time",), "string"),
            (("data", "transaction", "id"), "string"),
            (("data", "transaction", "sequence"), "string"),
        ),
        key=("data", "key"),
    )

    type_prefix: str = Field("spanner-watcher.change", min_length=1)

    def describe(self, kind: Kind, database: str, shape: Shape) -> Described:
        """As ``DescribedEnvelope.describe``: of every kind."""
        plain = super().describe(kind, database, shape)
        assert isinstance(plain.value, dict), "plain is an object"
        data = {name: each for name, each in plain.value.items() if name != "id"}
        value: dict[str, Tree] = {
            "specversion": quote(SPECIFICATION),
            "id": ID,
            "source": quote(f"{SOURCE}{database}"),
            "type": quote(f"{self.type_prefix}.{kind.operation.lower()}"),
            "subject": quote(shape.table),
            "time": COMMIT_TIME,
            "datacontenttype": quote("application/json"),
            "data": data,
        }
        return Described(plain.key, value)
