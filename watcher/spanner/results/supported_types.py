"""Which types of Spanner can be decoded, and how TIMESTAMPs are: plain values, without Arrow."""

from __future__ import annotations

from enum import StrEnum

from spanner_schema.model.column_types import Type
from watcher.model.value_types import FORMS


def is_supported(type_: Type) -> bool:
    """True for a type that can be decoded: not TOKENLIST, for instance."""
    return (type_ if type_.element is None else type_.element).code in FORMS


class Nanoseconds(StrEnum):
    """How a TIMESTAMP is converted: Arrow and Spark keep microseconds.

    A TIMESTAMP in a primary key is never truncated: two rows would have one key.
    """

    TRUNCATE = "truncate"
    REFUSE = "refuse"
    """A value that is finer than microseconds is an error."""
    STRING = "string"
    """Every TIMESTAMP is text, as Spanner wrote it."""
