"""What is, beside what was asked for: the one place that says whether a table is as asked."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spanner_schema.model.names import join_name, split_name
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Index
from spanner_schema.watched.ownership import fold
from spanner_schema.watched.tracked import ShardShape, Tracking

RESHAPING = frozenset({"shards", "modulo", "shard_key", "stored", "shard_column", "index"})
"""Options that another shard or another index fulfils, which are made beside the old ones."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An option, what the table has, and what was asked for, in words."""

    option: str
    actual: str
    asked: str

    @property
    def flag(self) -> str:
        """The option as the command line spells it."""
        return f"--{self.option.replace('_', '-')}"

    def __str__(self) -> str:
        name = self.option.replace("_", " ")
        return f"{name} {self.actual}, but {self.flag} {self.asked} was asked for"


Pairs = Iterator[tuple[str, tuple[object, object]]]
"""Each option with what the table has and what was asked for, as values that can be compared."""


def list_differences(tracking: Tracking, options: WatchOptions) -> tuple[Difference, ...]:
    """Where a table is watched otherwise than was asked for."""
    return keep_differences(list_pairs(tracking, options), options)


def list_shard_differences(shard: ShardShape, options: WatchOptions) -> tuple[Difference, ...]:
    """The same of a shard column that is there already."""
    return keep_differences(list_shard_pairs(shard, options), options)


def keep_differences(pairs: Pairs, options: WatchOptions) -> tuple[Difference, ...]:
    """Only the options that a user set say something: the others are whatever the table has."""
    asked = options.model_fields_set
    return tuple(
        Difference(option, str(actual), str(wanted))
        for option, (actual, wanted) in pairs
        if option in asked and actual != wanted
    )


def list_pairs(tracking: Tracking, options: WatchOptions) -> Pairs:
    """The pairs of a polled table."""
    yield "strategy", (tracking.strategy, options.strategy)
    for option, actual, name in (
        ("timestamp_column", tracking.timestamp.name, options.timestamp_column),
        ("shard_column", tracking.shard.column.name, options.shard_column),
        ("index", tracking.index.name, place_index(tracking.index, options.index)),
    ):
        if name is not None:
            yield option, (actual, match_case(name, actual))
    yield "hidden", (tracking.shard.column.hidden, options.hidden)
    yield from list_shard_pairs(tracking.shard, options)
    missing = [n for n in options.storing if n.casefold() not in fold(tracking.index.storing)]
    if missing:
        yield "storing", (", ".join(tracking.index.storing) or "nothing", ", ".join(missing))


def list_shard_pairs(shard: ShardShape, options: WatchOptions) -> Pairs:
    """The pairs of a shard."""
    yield "shard", (shard.kind, options.shard)
    yield "shards", (shard.shards, options.shards)
    if shard.shards != 1:  # one shard has one value, whatever its sign
        yield "modulo", (shard.modulo, options.modulo)
    yield "stored", (shard.column.stored, options.stored)
    if shard.processed is not None:
        name = match_case(options.processed_column, shard.processed)
        yield "processed_column", (shard.processed, name)
    if options.shard_key is not None and fold(options.shard_key) != fold(shard.hashed):
        yield "shard_key", (", ".join(shard.hashed), ", ".join(options.shard_key))


def place_index(index: Index, name: str | None) -> str | None:
    """The name of an index in the named schema of its table, which may be left out."""
    return name and join_name(split_name(index.table)[0], split_name(name)[1])


def match_case(name: str, actual: str) -> str:
    """A name as the schema spells it, where it is the same one."""
    return actual if name.casefold() == actual.casefold() else name
