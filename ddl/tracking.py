"""The strategies: what a table needs to be watched, as the schema that is wanted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from ddl.errors import PlanError
from ddl.options import Strategy, WatchOptions
from ddl.render import name
from ddl.schema import Column, Index, KeyPart, Schema, Table, Type, TypeCode
from ddl.shards import shard_expression
from ddl.steps import AddColumn, CreateIndex, SetColumnOptions, SetDefault, SetOnUpdate, Step

COMMIT_TIMESTAMP = "PENDING_COMMIT_TIMESTAMP()"
NAME_LENGTH_MAX = 128


@dataclass(frozen=True, slots=True)
class Wanted:
    """A step, why it is needed, and whether it only changes metadata or fills data in."""

    step: Step
    reason: str
    backfill: bool


def wanted_steps(schema: Schema, table_name: str, options: WatchOptions) -> list[Wanted]:
    """The steps that make a table watchable, without those that are done already.

    Raises PlanError before anything is changed when the table cannot be watched so.
    """
    table = schema.table(table_name)
    if table is None:
        known = ", ".join(t.name for t in schema.tables) or "none"
        raise PlanError(f"there is no table {table_name}; tables of this schema: {known}")
    steps = timestamp_steps(table, options)
    if options.strategy is Strategy.PROCESSED:
        steps += processed_steps(table, options)
    return steps + shard_steps(table, options) + index_steps(schema, table, options)


def timestamp_steps(table: Table, options: WatchOptions) -> list[Wanted]:
    """The commit-timestamp column: added empty, then kept by Spanner itself.

    Spanner: ADD COLUMN with a DEFAULT would write every row; SET DEFAULT and SET ON UPDATE later
    change metadata only and leave the existing rows NULL, which is outside the index.
    """
    column = table.column(options.timestamp_column)
    where = f"{table.name}.{options.timestamp_column}"
    steps = []
    if column is None:
        new = Column(
            options.timestamp_column, Type(TypeCode.TIMESTAMP), allow_commit_timestamp=True
        )
        steps.append(
            Wanted(
                AddColumn(table.name, new),
                "a column for the commit timestamp of a row's last change; existing rows stay NULL"
                " and so outside the index",
                backfill=False,
            )
        )
        column = new
    elif column.type.code is not TypeCode.TIMESTAMP or column.generated is not None:
        raise PlanError(
            f"{where} is there already and is no plain TIMESTAMP column:"
            " choose another name with --timestamp-column"
        )
    elif not column.allow_commit_timestamp:
        option = SetColumnOptions(table.name, column.name, (("allow_commit_timestamp", "true"),))
        steps.append(
            Wanted(
                option,
                "the column is to hold commit timestamps; Spanner checks that no value"
                " lies in the future",
                backfill=True,
            )
        )
    if any(p.column.casefold() == column.name.casefold() for p in table.primary_key):
        raise PlanError(f"{where} is part of the primary key, where Spanner allows no ON UPDATE")
    return steps + automation_steps(table, column)


def automation_steps(table: Table, column: Column) -> list[Wanted]:
    """DEFAULT and ON UPDATE of the commit-timestamp column."""
    steps = []
    if column.default is None:
        steps.append(
            Wanted(
                SetDefault(table.name, column.name, COMMIT_TIMESTAMP),
                "inserts get the commit timestamp without any change to the applications",
                backfill=False,
            )
        )
    elif column.default.replace(" ", "").upper() != COMMIT_TIMESTAMP:
        raise PlanError(f"{table.name}.{column.name} has another default: {column.default}")
    if column.on_update is None:
        steps.append(
            Wanted(
                SetOnUpdate(table.name, column.name, COMMIT_TIMESTAMP),
                "updates get it too, also those that write the same values again",
                backfill=False,
            )
        )
    return steps


def processed_steps(table: Table, options: WatchOptions) -> list[Wanted]:
    """The Processed column: TRUE takes a row out of the index."""
    column = table.column(options.processed_column)
    if column is None:
        new = Column(options.processed_column, Type(TypeCode.BOOL))
        reason = "TRUE once a change is delivered; applications reset it when they update a row"
        return [Wanted(AddColumn(table.name, new), reason, backfill=False)]
    if column.type.code is not TypeCode.BOOL or column.generated is not None:
        raise PlanError(
            f"{table.name}.{column.name} is there already and is no plain BOOL column:"
            " choose another name with --processed-column"
        )
    return []


def shard_steps(table: Table, options: WatchOptions) -> list[Wanted]:
    """The computed shard.

    Not STORED unless asked for: the index keeps the value anyway, so that a stored column would
    keep it twice, and adding one makes Spanner write every row of the table.
    """
    expression = shard_expression(table, options.shard_key, options.shards)
    if options.strategy is Strategy.PROCESSED:
        expression = f"CASE WHEN {name(options.processed_column)} THEN NULL ELSE {expression} END"
    column = table.column(options.shard_column)
    if column is None:
        new = Column(
            options.shard_column,
            Type(TypeCode.INT64),
            generated=expression,
            stored=options.stored,
        )
        reason = (
            f"spreads the growing timestamps of the index over {options.shards} places, so that"
            " writing it is no hot spot"
        )
        return [Wanted(AddColumn(table.name, new), reason, backfill=options.stored)]
    if column.type.code is not TypeCode.INT64:
        raise PlanError(
            f"{table.name}.{column.name} is there already and is no INT64 column:"
            " choose another name with --shard-column"
        )
    return []


def index_steps(schema: Schema, table: Table, options: WatchOptions) -> list[Wanted]:
    """The null-filtered index that polls read; none when one that serves is there."""
    key = (options.shard_column.casefold(), options.timestamp_column.casefold())
    for index in schema.indexes_of(table.name):
        parts = tuple(part.column.casefold() for part in index.parts)
        if index.null_filtered and parts == key:
            return []
    columns = {c.name.casefold() for c in table.columns}
    for column in options.storing:
        if column.casefold() not in columns:
            raise PlanError(f"table {table.name} has no column {column} to store in the index")
    index = Index(
        options.index or free_name(schema, index_name(table)),
        table.name,
        (KeyPart(options.shard_column), KeyPart(options.timestamp_column)),
        storing=options.storing,
        null_filtered=True,
    )
    if options.index and taken(schema, options.index):
        raise PlanError(f"the name {options.index} is taken: choose another with --index")
    reason = (
        "polls read only changed rows through it; rows whose timestamp or shard is NULL are not in"
        " it, so that clearing keeps it small"
    )
    return [Wanted(CreateIndex(index), reason, backfill=True)]


def index_name(table: Table) -> str:
    """What the index is called when nobody says otherwise."""
    return f"{table.name}ByShardAndTime"[-NAME_LENGTH_MAX:]


def taken(schema: Schema, wanted: str) -> bool:
    """True when an object of this name is there."""
    return any(each.casefold() == wanted.casefold() for each in all_names(schema))


def all_names(schema: Schema) -> Iterable[str]:
    """Names of one space: tables, indexes, change streams, views."""
    for items in (schema.tables, schema.indexes, schema.change_streams, schema.verbatim):
        yield from (item.name for item in items)


def free_name(schema: Schema, wanted: str) -> str:
    """The name, or with a number at its end the first that is free."""
    chosen, number = wanted, 2
    while taken(schema, chosen):
        suffix = str(number)
        chosen, number = wanted[: NAME_LENGTH_MAX - len(suffix)] + suffix, number + 1
    return chosen
