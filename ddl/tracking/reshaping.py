"""From a table as it is watched to one as it was asked for: another shard, another index.

The new shard and index are made beside the old ones, which go once the new ones can be read. A
window is read through the index that is in the schema at its end, so that consumers go over by
themselves and miss nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from ddl.tracking.comparison import RESHAPING, Difference, list_differences, place_index
from ddl.tracking.required_steps import (
    RequiredStep,
    check_shard,
    create_poll_index,
    store_columns,
    write_shard,
)
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.errors import PlanError
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Column, Schema, Table
from spanner_schema.model.steps import AddColumn, DropColumn, DropIndex
from spanner_schema.watched.ownership import fold
from spanner_schema.watched.tracked import Tracking

GONE = (
    "goes once the new one can be read: consumers go over with their next window. Those of a shared"
    " consumer ('watch --parts') stop instead: merge it before ('ctl merge')"
)


def reshape(
    schema: Schema, table: Table, trackings: Sequence[Tracking], options: WatchOptions
) -> list[RequiredStep]:
    """The steps from the ways in which a table is polled to the one that was asked for; none where
    it is so. Raises PlanError for what only a rollback makes possible."""
    differences = [list_differences(each, options) for each in trackings]
    if () in differences:  # the rest of a migration that was interrupted
        kept = trackings[differences.index(())]
        others = [
            each
            for each, found in zip(trackings, differences, strict=True)
            if found and {one.option for one in found} <= RESHAPING
        ]
        return drop_old(schema, table, others, kept.shard.column)
    old, found = trackings[0], differences[0]
    refuse_what_needs_rollback(table, old, found)
    check_new_names(table, old, options, found)
    wanted = fill_in(old, table, options)
    if not {each.option for each in found} & RESHAPING:
        return store_columns(table, old.index, wanted)
    shard = choose_shard(schema, table, old, wanted, found)
    steps: list[RequiredStep] = []
    after = table
    if table.column(shard.name) is None:
        reason = f"spreads the timestamps over {wanted.shards} places of the index, as asked for"
        steps.append(RequiredStep(AddColumn(table.name, shard), reason, shard.stored))
        after = replace(table, columns=(*table.columns, shard))
    created = create_poll_index(schema, after, (shard.name, old.timestamp.name), wanted)
    return [*steps, created, *drop_old(schema, table, trackings, shard)]


def refuse_what_needs_rollback(
    table: Table, old: Tracking, differences: Sequence[Difference]
) -> None:
    """Raises PlanError for an option that cannot change while consumers go on."""
    for each in differences:
        if each.option not in RESHAPING | {"storing"}:
            raise PlanError(
                f"table {table.name} is watched ({old.describe()}) with {each}: leave {each.flag}"
                f" out, or remove what is there first (spanner-watcher ddl rollback --table"
                f" {table.name}, once every consumer has delivered it)"
            )


def check_new_names(
    table: Table, old: Tracking, options: WatchOptions, differences: Sequence[Difference]
) -> None:
    """Raises PlanError where what is made beside the old one is to have its name."""
    changed = {each.option for each in differences}
    names = {"index": old.index.name}
    if changed & RESHAPING - {"index"}:
        names["shard_column"] = old.shard.column.name
    if not changed & RESHAPING:
        return
    for option, name in names.items():
        if option in options.model_fields_set - changed and getattr(options, option) is not None:
            flag = f"--{option.replace('_', '-')}"
            raise PlanError(
                f"table {table.name} is watched with {differences[0]}: the new one is made beside"
                f" {name}, so it needs another name: leave {flag} out, or choose another"
            )


def fill_in(old: Tracking, table: Table, options: WatchOptions) -> WatchOptions:
    """The options with what the table has in place of those that nobody set."""
    key = tuple(part.column for part in table.primary_key)
    has = {
        "strategy": old.strategy,
        "shards": old.shard.shards or options.shards,
        "modulo": old.shard.modulo,
        "stored": old.shard.column.stored,
        "hidden": old.shard.column.hidden,
        "shard_key": None if fold(key) == fold(old.shard.hashed) else old.shard.hashed,
        "timestamp_column": old.timestamp.name,
        "processed_column": old.shard.processed or options.processed_column,
    }
    asked = options.model_fields_set
    missing = [n for n in options.storing if n.casefold() not in fold(old.index.storing)]
    values = {name: value for name, value in has.items() if name not in asked}
    values |= {"storing": (*old.index.storing, *missing), "index": None}
    named = place_index(old.index, options.index)
    if "index" in asked and (named or "").casefold() != old.index.name.casefold():
        values["index"] = options.index
    return WatchOptions.model_construct(asked, **(dict(options) | values))


def choose_shard(
    schema: Schema,
    table: Table,
    old: Tracking,
    options: WatchOptions,
    differences: Sequence[Difference],
) -> Column:
    """The shard column that fulfils the options: the one that is there, one that an interrupted
    migration has added, or a new one. Raises PlanError."""
    if {each.option for each in differences} <= {"index", "storing"}:
        return old.shard.column
    new = Column("", Type(TypeCode.INT64), generated=write_shard(schema, table, options))
    new = replace(new, stored=options.stored, hidden=options.hidden)
    if "shard_column" in {each.option for each in differences}:
        existing = table.column(options.shard_column)
        if existing is not None:
            check_shard(schema, table, existing, options)
        return existing or replace(new, name=options.shard_column)
    for number in count(2):
        name = f"{old.shard.column.name}{number}"
        existing = table.column(name)
        if existing is None or replace(existing, name="") == new:
            break
    return existing or replace(new, name=name)


def drop_old(
    schema: Schema, table: Table, trackings: Sequence[Tracking], kept: Column
) -> list[RequiredStep]:
    """The steps that drop indexes, and their shards unless one is ``kept`` or another index has
    it."""
    names = fold(each.index.name for each in trackings)
    used = fold(
        name
        for index in schema.indexes_of(table.name)
        if index.name.casefold() not in names
        for name in (*(part.column for part in index.parts), *index.storing)
    )
    drops = [RequiredStep(DropIndex(each.index.name), GONE, False) for each in trackings]
    columns = dict.fromkeys(each.shard.column.name for each in trackings)
    for name in columns:
        if name.casefold() not in used | {kept.name.casefold()}:
            reason = "no index has this shard any more"
            drops.append(RequiredStep(DropColumn(table.name, name), reason, False))
    return drops
