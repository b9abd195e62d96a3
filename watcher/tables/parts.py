"""The parts of a shared consumer: the shards of each table, divided among several instances."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from spanner_schema.model.schema import Schema
from spanner_schema.syntax.references import find_referenced_columns
from watcher.model.errors import NotWatchableError
from watcher.tables.shards import group_shards
from watcher.tables.values import ShardValue, WatchedTable

PART_NAME = re.compile(r"(?P<shared>.+)/(?P<number>[1-9]\d*)-of-(?P<of>[1-9]\d*)\Z")


@dataclass(frozen=True, slots=True, order=True)
class Part:
    """One of the parts that the shards of every table are divided into; numbers begin with 1."""

    number: int
    of: int

    def name_consumer(self, shared: str) -> str:
        """A part is a consumer of its own: its name, from that of the shared consumer."""
        return f"{shared}/{self.number}-of-{self.of}"


def parse_part_name(consumer: str) -> tuple[str, Part] | None:
    """The shared consumer and the part that a consumer's name means; None for a consumer that is
    whole."""
    match = PART_NAME.match(consumer)
    if match is None:
        return None
    return match["shared"], Part(int(match["number"]), int(match["of"]))


def find_parts(shared: str, consumers: Iterable[str]) -> tuple[str, ...]:
    """Those of some consumers that are parts of a shared one."""
    parsed = ((name, parse_part_name(name)) for name in set(consumers))
    return tuple(sorted(name for name, part in parsed if part is not None and part[0] == shared))


def list_parts(of: int) -> tuple[Part, ...]:
    """All of them."""
    return tuple(Part(number, of) for number in range(1, of + 1))


def keep_part(table: WatchedTable, part: Part) -> WatchedTable:
    """The table with those of its shards that belong to a part; with none of them where it has
    fewer shards than there are parts."""
    groups = group_shards(table.shard_values, part.of)
    shards: tuple[ShardValue, ...] = (
        groups[part.number - 1].values if part.number <= len(groups) else ()
    )
    return replace(table, shard_values=shards)


def check_divisible(schema: Schema, table: WatchedTable) -> None:
    """Raises NotWatchableError for a table whose rows do not stay in one part: their shard must
    follow from the primary key, and all its values must be known."""
    reason = None
    if table.change_sets is not None:
        reason = "its shard is that of change sets, which differ from change to change of a row"
    elif not table.hashed or table.shard_values is None:
        reason = "the values of its shard cannot be listed"
    elif others := find_other_columns(schema, table):
        reason = f"its shard follows from {', '.join(others)} too, which may change"
    if reason is not None:
        raise NotWatchableError(
            f"table {table.name} cannot be divided into parts: {reason}; leave the table out with"
            " 'exclude', remove 'parts', or let 'spanner-watcher ddl apply' give it a shard that is"
            " computed from the primary key"
        )


def find_other_columns(schema: Schema, table: WatchedTable) -> tuple[str, ...]:
    """What the shard follows from beside the key; a row with ``Processed`` has none."""
    stored = schema.table(table.name)
    if stored is None:
        return ()
    allowed = {*table.primary_key, table.processed_column}
    named = find_referenced_columns(find_expression(schema, table) or "", stored, schema.dialect)
    return tuple(name for name in named if name not in allowed)


def find_expression(schema: Schema, table: WatchedTable) -> str | None:
    """The expression of the shard."""
    stored = schema.table(table.name)
    column = stored.column(table.shard_column or "") if stored is not None else None
    return column.generated if column is not None else None


def count_parts(division: str) -> int:
    """The number of parts of a division, as ``describe_division`` writes it."""
    return int(json.loads(division)["parts"])


def describe_division(schema: Schema, table: WatchedTable, of: int) -> str:
    """Which rows are in which part, as text: the same text means the same rows in each."""
    return json.dumps(
        {
            "parts": of,
            "shard": find_expression(schema, table),
            "values": sorted(map(str, table.shard_values or ())),
        }
    )
