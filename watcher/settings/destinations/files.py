"""Files by table and time as a destination: a folder of this machine or of an object store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Self
from urllib.parse import quote

from watcher.settings.destinations.destination import TABLE_FIELD, Destination, QueueOptions


class FilesOptions(QueueOptions):
    """How to write files by table and time."""

    format: Literal["lines", "parquet"] = "lines"
    """``lines`` of ``delivery.envelope``, compressed by gzip, or ``parquet``: the columns of the
    table, after the type of the change, its commit timestamp and its id."""
    partition_by: Literal["hour", "day"] = "hour"
    """How long the time is whose changes have a folder: the folder is that of the commit timestamp,
    in UTC."""

    @property
    def takes_columns(self) -> bool:
        """As ``QueueOptions.takes_columns``."""
        return self.format == "parquet"


@dataclass(frozen=True, slots=True)
class FilesDestination(Destination):
    """A folder with one of each table in it, which has one of each hour or day."""

    scheme = "files"
    service = "A folder"
    messaging_system = "files"
    ordered = True
    compacted = False
    options = FilesOptions
    takes_late = False
    one_writer = True
    as_lines = True

    folder: str
    topic: str = TABLE_FIELD

    def __str__(self) -> str:
        return f"files:{self.folder}"

    @classmethod
    def read(cls, rest: str) -> Self | None:
        """As ``Destination.read``."""
        return cls(rest) if rest.strip("/ ") else None

    @classmethod
    def parse(cls, authority: str, topic: str) -> Self | None:
        """As ``Destination.parse``."""
        return cls.read(f"//{authority}/{topic}")

    def name_topic(self, table: str) -> str:
        """As ``Destination.name_topic``: the table's folder. What not every store takes in a name
        is its code in it."""
        return quote(table, safe="").replace("~", "%7E").replace("%", "~")
