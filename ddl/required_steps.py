"""The columns and the index that a table needs, as steps with their reasons."""

from __future__ import annotations

from dataclasses import dataclass

from ddl.errors import PlanError
from ddl.names import choose_free_name, is_taken, join_name, same_name, split_name
from ddl.options import WatchOptions
from ddl.render import SPELLINGS, quote_name, render_type
from ddl.rules import normalize
from ddl.schema import Column, Dialect, Index, KeyPart, Schema, Table, Type, TypeCode
from ddl.shards import shard_expression
from ddl.steps import AddColumn, CreateIndex, SetColumnOptions, SetDefault, SetOnUpdate, Step
from ddl.strategies import Modulo, Strategy


@dataclass(frozen=True, slots=True)
class RequiredStep:
    """A step, and what it is for. ``backfill`` is true if Spanner writes or reads existing rows."""

    step: Step
    reason: str
    backfill: bool


def add_timestamp(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """The commit-timestamp column: added empty, then written by Spanner.

    Spanner: ADD COLUMN with a DEFAULT would write every row; SET DEFAULT and SET ON UPDATE later
    change metadata only and leave the existing rows NULL, which is outside the index.
    """
    column = table.column(options.timestamp_column)
    place = f"{table.name}.{options.timestamp_column}"
    steps = []
    if column is None:
        new = Column(
            options.timestamp_column, Type(TypeCode.TIMESTAMP), allow_commit_timestamp=True
        )
        steps.append(
            RequiredStep(
                AddColumn(table.name, new),
                "holds the commit timestamp of a row's last change; existing rows stay NULL and"
                " outside the index",
                backfill=False,
            )
        )
        column = new
    elif column.type.code is not TypeCode.TIMESTAMP or column.generated is not None:
        raise PlanError(
            f"{place} exists and is not a plain {name_type(TypeCode.TIMESTAMP, schema)} column:"
            " choose another name with --timestamp-column"
        )
    elif not column.allow_commit_timestamp and schema.dialect is Dialect.POSTGRESQL:
        raise PlanError(
            f"{place} is a plain timestamp, which the PostgreSQL dialect cannot turn into a"
            " SPANNER.COMMIT_TIMESTAMP column: choose another name with --timestamp-column"
        )
    elif not column.allow_commit_timestamp:
        option = SetColumnOptions(table.name, column.name, (("allow_commit_timestamp", "true"),))
        steps.append(
            RequiredStep(
                option,
                "lets the column hold commit timestamps; Spanner checks that no value lies in the"
                " future",
                backfill=True,
            )
        )
    if any(p.column.casefold() == column.name.casefold() for p in table.primary_key):
        raise PlanError(
            f"{place} is part of the primary key, where Spanner does not allow ON"
            " UPDATE: choose another name with --timestamp-column"
        )
    return steps + automate_timestamp(schema, table, column)


def automate_timestamp(schema: Schema, table: Table, column: Column) -> list[RequiredStep]:
    """DEFAULT and ON UPDATE of the commit-timestamp column."""
    pending = SPELLINGS[schema.dialect].commit_timestamp
    steps = []
    if column.default is None:
        steps.append(
            RequiredStep(
                SetDefault(table.name, column.name, pending),
                "sets the commit timestamp on INSERT, without a change to the applications",
                backfill=False,
            )
        )
    elif normalize(column.default) != normalize(pending):
        raise PlanError(
            f"{table.name}.{column.name} has the default {column.default}: drop it, or choose"
            " another column with --timestamp-column"
        )
    if column.on_update is None:
        steps.append(
            RequiredStep(
                SetOnUpdate(table.name, column.name, pending),
                "sets it on UPDATE, even if the values stay the same",
                backfill=False,
            )
        )
    return steps


def name_type(code: TypeCode, schema: Schema) -> str:
    """A type as the dialect calls it."""
    return render_type(Type(code), schema.dialect)


def add_processed(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """The Processed column: TRUE removes a row from the index."""
    column = table.column(options.processed_column)
    if column is None:
        new = Column(options.processed_column, Type(TypeCode.BOOL))
        reason = "is TRUE once a change is delivered; applications reset it when they update a row"
        return [RequiredStep(AddColumn(table.name, new), reason, backfill=False)]
    if column.type.code is not TypeCode.BOOL or column.generated is not None:
        raise PlanError(
            f"{table.name}.{column.name} exists and is not a plain"
            f" {name_type(TypeCode.BOOL, schema)} column:"
            " choose another name with --processed-column"
        )
    return []


def add_shard(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """The computed shard.

    Not STORED by default: the index stores the value anyway, and adding a stored column makes
    Spanner write every row of the table.
    """
    signed = options.modulo is Modulo.SIGNED
    expression = shard_expression(table, options.shard_key, options.shards, signed, schema.dialect)
    if options.strategy is Strategy.PROCESSED:
        processed_column = quote_name(find_name(table, options.processed_column), schema.dialect)
        expression = f"CASE WHEN {processed_column} THEN NULL ELSE {expression} END"
    column = table.column(options.shard_column)
    if column is None:
        new = Column(
            options.shard_column,
            Type(TypeCode.INT64),
            generated=expression,
            stored=options.stored,
        )
        reason = (
            f"spreads the growing timestamps over {options.shards} places of the index, which"
            " avoids a hot spot"
        )
        return [RequiredStep(AddColumn(table.name, new), reason, backfill=options.stored)]
    if column.type.code is not TypeCode.INT64:
        raise PlanError(
            f"{table.name}.{column.name} exists and is not of type"
            f" {name_type(TypeCode.INT64, schema)}:"
            " choose another name with --shard-column"
        )
    return []


def add_index(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """The null-filtered index that polls read; no step if the table has one."""
    key = (options.shard_column.casefold(), options.timestamp_column.casefold())
    for index in schema.indexes_of(table.name):
        parts = tuple(part.column.casefold() for part in index.parts)
        not_null = {c.casefold() for c in index.where_not_null}
        if (index.null_filtered or set(parts) <= not_null) and parts == key:
            return []
    postgres = schema.dialect is Dialect.POSTGRESQL
    suffix = "_by_shard_and_time" if postgres else "ByShardAndTime"
    parts = (
        find_name(table, options.shard_column),
        find_name(table, options.timestamp_column),
    )
    index = Index(
        name_index(schema, table, options.index, suffix),
        table.name,
        tuple(map(KeyPart, parts)),
        storing=find_stored_columns(table, options),
        null_filtered=not postgres,
        where_not_null=parts if postgres else (),
    )
    if options.index and is_taken(schema, index.name):
        raise PlanError(f"the index name {index.name} is taken: choose another with --index")
    reason = (
        "lets polls read changed rows only; rows whose timestamp or shard is NULL are not in it,"
        " so clearing keeps it small"
    )
    return [RequiredStep(CreateIndex(index), reason, backfill=True)]


def name_index(schema: Schema, table: Table, chosen: str | None, suffix: str) -> str:
    """The name of a new index, which is in the schema of its table: the one that the user has
    chosen, else a free one with the suffix. Raises PlanError."""
    if chosen is None:
        return choose_free_name(schema, table.name, suffix)
    (place, _), (written, last) = split_name(table.name), split_name(chosen)
    if written and not same_name(written, place):
        raise PlanError(
            f"the index {chosen} would not be in the schema of table {table.name}, which Spanner"
            f" refuses: write --index {join_name(place, last)}"
        )
    return join_name(place, last)


def find_name(table: Table, name: str) -> str:
    """A column's name as the table has it; for a new one, as the user gave it."""
    column = table.column(name)
    return name if column is None else column.name


def find_stored_columns(table: Table, options: WatchOptions) -> tuple[str, ...]:
    """The columns that the index stores, as the table calls them. Raises PlanError."""
    for name in options.storing:
        if table.column(name) is None:
            raise PlanError(
                f"table {table.name} has no column {name}: --storing needs existing columns"
            )
    return tuple(find_name(table, name) for name in options.storing)
