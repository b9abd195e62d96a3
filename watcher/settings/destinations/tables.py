"""Databases as destinations: each watched table is kept in a table of theirs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Self
from urllib.parse import parse_qsl

from spanner_schema.model.names import split_name
from watcher.model.errors import ConfigurationError
from watcher.settings.destinations.destination import TABLE_FIELD, Destination, QueueOptions

WRITTEN = re.compile(r"[^\x00-\x1f\"{}%]+\Z")
"""What names in an address may have. Those of Spanner may have more: they are quoted."""


class TableOptions(QueueOptions):
    """The options of a database."""

    @property
    def takes_columns(self) -> bool:
        """As ``QueueOptions.takes_columns``."""
        return True


class TableDestination(Destination):
    """A database. ``topic`` is the name of a table there, and ``schema`` where those go that are in
    no named schema of Spanner."""

    __slots__ = ()

    ordered = False
    compacted = False
    one_writer = True
    name_bytes_max: ClassVar[int] = 1_000
    """How long a name may be, in UTF-8."""

    schema: str

    @classmethod
    def parse(cls, authority: str, topic: str) -> Self | None:
        """As ``Destination.parse``."""
        return cls.read(f"//{authority}/{topic}")

    def name_target(self, table: str) -> tuple[str, str]:
        """The schema and the name of the table that has the rows of one of Spanner's. Raises
        ConfigurationError for a name that the database does not have."""
        named, name = split_name(table)
        found = (named or self.schema, self.topic.replace(TABLE_FIELD, name))
        for each in found:
            if len(each.encode()) > self.name_bytes_max:
                raise ConfigurationError(
                    f"{self.service} does not allow the name '{each}': it has more than"
                    f" {self.name_bytes_max} bytes; leave the table out, with exclude"
                )
        return found

    def name_topic(self, table: str) -> str:
        """As ``Destination.name_topic``: the table's name with its schema."""
        return ".".join(self.name_target(table))


def read_parameters(query: str, known: Mapping[str, str]) -> dict[str, str]:
    """What stands behind the ``?`` of an address; ``known`` says what each is. Raises
    ConfigurationError, which shows no value."""
    pairs = parse_qsl(query, keep_blank_values=True)
    for name, value in pairs:
        if name not in known:
            listed = ", ".join(f"{each} ({what})" for each, what in known.items())
            raise ConfigurationError(
                f"delivery.to has an unknown parameter '{name}' behind '?': use {listed}"
            )
        if not value:
            raise ConfigurationError(f"delivery.to has no value for its parameter '{name}'")
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ConfigurationError("delivery.to has a parameter twice behind '?': remove one")
    return found


TARGET_PARAMETERS = {
    "schema": "the schema of tables that are in none",
    "table": f"the name of each table, with {TABLE_FIELD} for Spanner's",
}


def read_target(given: Mapping[str, str], schema: str) -> tuple[str, str]:
    """The schema of tables that are in none, and the template of names. Raises ConfigurationError
    for names that cannot be, and for a template that would be one table for all."""
    target = (given.get("schema", schema), given.get("table", TABLE_FIELD))
    for name, text in zip(TARGET_PARAMETERS, target, strict=True):
        if WRITTEN.match(text.replace(TABLE_FIELD, "t") if name == "table" else text) is None:
            raise ConfigurationError(
                f"'{name}' in delivery.to cannot be '{text}': use a name without quotes, % and"
                f" braces, but for {TABLE_FIELD} in 'table'"
            )
    if TABLE_FIELD not in target[1]:
        raise ConfigurationError(
            f"'table' in delivery.to would put the rows of all tables into '{target[1]}': write"
            f" {TABLE_FIELD} in it, such as table=copy_{TABLE_FIELD}"
        )
    return target
