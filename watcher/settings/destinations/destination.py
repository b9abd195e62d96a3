"""What every destination of changes says of itself, and its options."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import ClassVar, Self

from watcher.model.errors import ConfigurationError
from watcher.settings.fields import Section

TABLE_FIELD = "{table}"
BROKER = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::\d{1,5})?\Z")
"""A host, perhaps with a port."""
EXAMPLE_TABLE = "Singers"


class QueueOptions(Section):
    """The options of a queue, in the section of its scheme."""

    def check(self, consumer: str | None) -> None:
        """Raises ConfigurationError for options that do not work together, or not with a consumer
        of this name; None is one without a name."""

    @property
    def takes_columns(self) -> bool:
        """Whether it takes whole rows in columns, not messages."""
        return False

    @property
    def one_owner(self) -> str | None:
        """The option that lets one instance at a time write, if it is given."""
        return None


class Destination(ABC):
    """A queue: it takes keys, tombstones and binary values.

    ``topic`` is a template: ``{table}`` stands for the name of a change's table. A queue is a
    subclass in ``DESTINATIONS``, and its ``scheme`` a key of ``SINKS``.
    """

    __slots__ = ()

    scheme: ClassVar[str]
    service: ClassVar[str]
    """Its name in messages."""
    messaging_system: ClassVar[str]
    """Its name in OpenTelemetry's conventions."""
    ordered: ClassVar[bool]
    """Whether messages of several keys have an order."""
    compacted: ClassVar[bool]
    """Whether a topic may keep the last message of each key alone: then keys of two tables in it
    must differ."""
    options: ClassVar[type[QueueOptions]]
    one_writer: ClassVar[bool] = False
    """Whether one instance at a time writes, whole windows of a consumer with a name."""
    as_lines: ClassVar[bool] = False
    """Whether it takes an envelope as lines."""
    takes_late: ClassVar[bool] = True
    """Whether it takes a change behind newer ones, as dead letters are that are replayed."""

    topic: str

    @classmethod
    def read(cls, rest: str) -> Self | None:
        """The destination whose address goes on like this behind the colon of its scheme; None if
        it is not written so. Raises ConfigurationError that says more."""
        if not rest.startswith("//"):
            return None
        authority, _, topic = rest[2:].partition("/")
        return cls.parse(authority, topic or TABLE_FIELD)

    @classmethod
    @abstractmethod
    def parse(cls, authority: str, topic: str) -> Self | None:
        """The queue of an authority, which stands between the scheme and the topic; None if that is
        not how one is written."""

    @abstractmethod
    def name_topic(self, table: str) -> str:
        """The topic of a table. Raises ConfigurationError for a name that the service refuses."""

    @property
    def server_address(self) -> str | None:
        """The host that spans name, where there is one."""
        return None

    @property
    def identity(self) -> str:
        """What instances of a shared consumer have in common."""
        return f"{self}, topic {self.topic}"


def refuse_password(instead: str) -> ConfigurationError:
    """The error for an address with a password; ``instead`` is what to set."""
    return ConfigurationError(
        "delivery.to has a password, which everybody on this machine can read: remove it, and set"
        f" {instead}"
    )


def check_topic(topic: str, allowed: re.Pattern[str], service: str) -> str:
    """The name of a topic. Raises ConfigurationError for one that the service refuses."""
    if allowed.match(topic) is None:
        raise ConfigurationError(
            f"{service} does not allow a topic '{topic}': change the topic in delivery.to, where"
            f" {TABLE_FIELD} stands for the name of the table"
        )
    return topic
