"""The columns and the index that a table needs, as steps with their reasons."""

from __future__ import annotations

from dataclasses import dataclass

from ddl.tracking.comparison import list_shard_differences
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.errors import PlanError
from spanner_schema.model.names import (
    choose_free_column,
    choose_free_name,
    is_taken,
    join_name,
    same_name,
    split_name,
)
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Column, Dialect, Index, KeyPart, Schema, Table
from spanner_schema.model.steps import (
    AddColumn,
    AlterIndexStoring,
    CreateIndex,
    SetColumnOptions,
    SetDefault,
    SetOnUpdate,
    Step,
)
from spanner_schema.model.strategies import Modulo, Strategy
from spanner_schema.syntax.render import SPELLINGS, quote_column, render_type
from spanner_schema.syntax.spelling import normalize
from spanner_schema.watched.ownership import Ownership, fold, is_ours, refuse_take_over
from spanner_schema.watched.shards import shard_expression, shard_values
from spanner_schema.watched.tracked import describe_shard, find_processed, is_null_filtered


@dataclass(frozen=True, slots=True)
class RequiredStep:
    """A step, and what it is for. ``backfill`` is true if Spanner writes or reads existing rows."""

    step: Step
    reason: str
    backfill: bool


def add_timestamp(
    schema: Schema, table: Table, options: WatchOptions, ownership: Ownership
) -> list[RequiredStep]:
    """The commit-timestamp column: added empty, then written by Spanner.

    Spanner: ADD COLUMN with a DEFAULT would write every row; SET DEFAULT and SET ON UPDATE later
    change metadata only and leave the existing rows NULL, which is outside the index.
    """
    # assumes: on-update-dml
    # assumes: on-update-same-value
    # assumes: on-update-mutation
    # assumes: on-update-upsert
    # assumes: on-update-replace
    # assumes: on-update-partitioned
    # assumes: default-on-insert
    column = table.column(options.timestamp_column)
    if column is None:
        new = Column(
            options.timestamp_column,
            Type(TypeCode.TIMESTAMP),
            hidden=options.hidden,
            allow_commit_timestamp=True,
        )
        reason = (
            "holds the commit timestamp of a row's last change; existing rows stay NULL and"
            " outside the index"
        )
        step = RequiredStep(AddColumn(table.name, new), reason, backfill=False)
        return [step, *automate_timestamp(schema, table, new)]
    check_timestamp(schema, table, column)
    if is_ours(column, schema.dialect):
        return []
    check_owned_timestamp(schema, table, column, options, ownership)
    steps = []
    if not column.allow_commit_timestamp:
        option = SetColumnOptions(table.name, column.name, (("allow_commit_timestamp", "true"),))
        reason = (
            "lets the column hold commit timestamps; Spanner checks that no value lies in the"
            " future"
        )
        steps.append(RequiredStep(option, reason, backfill=True))
    return steps + automate_timestamp(schema, table, column)


def check_timestamp(schema: Schema, table: Table, column: Column) -> None:
    """Raises PlanError for an existing column that cannot hold our commit timestamps."""
    path, other = f"{table.name}.{column.name}", choose_other(table, column, "timestamp")
    if column.type.code is not TypeCode.TIMESTAMP or column.generated is not None:
        raise PlanError(
            f"{path} exists and is not a plain {name_type(TypeCode.TIMESTAMP, schema)} column:"
            f" {other}"
        )
    if not column.allow_commit_timestamp and schema.dialect is Dialect.POSTGRESQL:
        raise PlanError(
            f"{path} is a plain timestamp, which the PostgreSQL dialect cannot turn into a"
            f" SPANNER.COMMIT_TIMESTAMP column: {other}"
        )
    if any(part.column.casefold() == column.name.casefold() for part in table.primary_key):
        raise PlanError(
            f"{path} is part of the primary key, where Spanner does not allow ON UPDATE: {other}"
        )


def check_owned_timestamp(
    schema: Schema, table: Table, column: Column, options: WatchOptions, ownership: Ownership
) -> None:
    """Raises PlanError for a column whose values nobody gave up."""
    path = f"{table.name}.{column.name}"
    effect = TIMESTAMP_EFFECTS[options.strategy]
    if not ownership.allows(column.name):
        why = "Spanner does not fill it by DEFAULT and ON UPDATE"
        other = choose_other(table, column, "timestamp")
        raise refuse_take_over(path, why, effect, column.name, other)
    pending = SPELLINGS[schema.dialect].commit_timestamp
    if column.default is not None and normalize(column.default) != normalize(pending):
        raise PlanError(
            f"{path} has the default {column.default}: drop it, or choose another column with"
            " --timestamp-column"
        )
    if column.not_null and options.strategy is Strategy.AUTOMATIC:
        raise PlanError(
            f"{path} is NOT NULL, so that clearing cannot set it to NULL: drop NOT NULL, use"
            " --strategy processed, or choose another column with --timestamp-column"
        )


TIMESTAMP_EFFECTS = {
    Strategy.AUTOMATIC: "each write of a row would overwrite it with the commit timestamp, and"
    " clearing would set it to NULL",
    Strategy.PROCESSED: "each write of a row would overwrite it with the commit timestamp",
    Strategy.MANUAL: "clearing would set it to NULL",
}
"""What becomes of the values of a timestamp column."""
PROCESSED_EFFECT = "clearing would set it to TRUE"
SETS_EFFECT = "clearing would delete its rows"


def automate_timestamp(schema: Schema, table: Table, column: Column) -> list[RequiredStep]:
    """DEFAULT and ON UPDATE of the commit-timestamp column."""
    pending = SPELLINGS[schema.dialect].commit_timestamp
    steps = []
    if column.default is None:
        steps.append(
            RequiredStep(
                SetDefault(table.name, column.name, pending),
                "sets the commit timestamp on INSERT, where the application gives none",
                backfill=False,
            )
        )
    if column.on_update is None:
        steps.append(
            RequiredStep(
                SetOnUpdate(table.name, column.name, pending),
                "sets it on UPDATE of a column outside the key, even if the values stay the same",
                backfill=False,
            )
        )
    return steps


def name_type(code: TypeCode, schema: Schema) -> str:
    """A type as the dialect calls it."""
    return render_type(Type(code), schema.dialect)


def add_processed(
    schema: Schema, table: Table, options: WatchOptions, ownership: Ownership
) -> list[RequiredStep]:
    """The Processed column: TRUE removes a row from the index."""
    column = table.column(options.processed_column)
    if column is None:
        new = Column(options.processed_column, Type(TypeCode.BOOL), hidden=options.hidden)
        reason = "is TRUE once a change is delivered; applications reset it when they update a row"
        return [RequiredStep(AddColumn(table.name, new), reason, backfill=False)]
    path, other = f"{table.name}.{column.name}", choose_other(table, column, "processed")
    if column.type.code is not TypeCode.BOOL or column.generated is not None:
        raise PlanError(
            f"{path} exists and is not a plain {name_type(TypeCode.BOOL, schema)} column: {other}"
        )
    used = (find_processed(table, each, schema.dialect) for each in table.columns)
    if column.name not in used and not ownership.allows(column.name):
        why = "no computed shard depends on it"
        raise refuse_take_over(path, why, PROCESSED_EFFECT, column.name, other)
    return []


def add_shard(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """The computed shard; none where applications write one.

    Not STORED by default: the index stores the value anyway, and adding a stored column makes
    Spanner write every row of the table.
    """
    if options.shard != "computed":
        return []
    expression = write_shard(schema, table, options)
    column = table.column(options.shard_column)
    if column is None:
        new = Column(
            options.shard_column,
            Type(TypeCode.INT64),
            generated=expression,
            stored=options.stored,
            hidden=options.hidden,
        )
        reason = (
            f"spreads the growing timestamps over {options.shards} places of the index, which"
            " avoids a hot spot"
        )
        return [RequiredStep(AddColumn(table.name, new), reason, backfill=options.stored)]
    check_shard(schema, table, column, options)
    return []


def write_shard(schema: Schema, table: Table, options: WatchOptions) -> str:
    """The expression of the shard. Raises PlanError for a key that cannot be hashed."""
    signed = options.modulo is Modulo.SIGNED
    expression = shard_expression(table, options.shard_key, options.shards, signed, schema.dialect)
    if options.strategy is Strategy.PROCESSED:
        processed_column = quote_column(find_name(table, options.processed_column), schema.dialect)
        expression = f"CASE WHEN {processed_column} THEN NULL ELSE {expression} END"
    return expression


def choose_other(table: Table, column: Column, kind: str) -> str:
    """What to do where a name is taken: the option with a name that is free."""
    return f"choose another name, as --{kind}-column {choose_free_column(table, column.name)}"


def check_shard(schema: Schema, table: Table, column: Column, options: WatchOptions) -> None:
    """Raises PlanError for an existing column that is not the shard of this strategy: what an
    application writes there spreads nothing, and may be NULL."""
    path, other = f"{table.name}.{column.name}", choose_other(table, column, "shard")
    if column.type.code is not TypeCode.INT64:
        raise PlanError(
            f"{path} exists and is not of type {name_type(TypeCode.INT64, schema)}: {other}"
        )
    if column.generated is None or shard_values(column.generated) is None:
        raise PlanError(
            f"{path} exists and is not a computed shard, such as MOD(..., number): {other}, or, if"
            " applications write the shard of every row there, poll by it with --shard not-null"
            f" --shard-column {column.name}: a row without one is not delivered"
        )
    processed = find_processed(table, column, schema.dialect)
    wanted = options.processed_column if options.strategy is Strategy.PROCESSED else None
    if (processed or "").casefold() != (wanted or "").casefold():
        depends = f"depends on {processed}" if processed else "depends on no Processed column"
        raise PlanError(
            f"{path} exists and {depends}, which does not fit the strategy {options.strategy}:"
            f" {other}"
        )
    for each in list_shard_differences(describe_shard(table, column, schema.dialect), options):
        raise PlanError(f"{path} exists with {each}: {other}, or leave {each.flag} out")


def add_index(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """The null-filtered index that polls read; no step if the table has one."""
    parts = list_index_columns(table, options)
    for index in schema.indexes_of(table.name):
        names = [part.column.casefold() for part in index.parts]
        if is_null_filtered(index) and names == [part.casefold() for part in parts]:
            return store_columns(table, index, options)
    return [create_poll_index(schema, table, parts, options)]


def list_index_columns(table: Table, options: WatchOptions) -> tuple[str, ...]:
    """The key of the index: the shard, where there is one, and the timestamp. Raises PlanError."""
    timestamp = find_name(table, options.timestamp_column)
    if options.shard == "none":
        return (timestamp,)
    if options.shard != "computed" and table.column(options.shard_column) is None:
        raise PlanError(
            f"table {table.name} has no column {options.shard_column}: --shard {options.shard}"
            " needs the column that applications write; name it with --shard-column"
        )
    return find_name(table, options.shard_column), timestamp


def create_poll_index(
    schema: Schema, table: Table, parts: tuple[str, ...], options: WatchOptions
) -> RequiredStep:
    """The step that makes the index. Raises PlanError."""
    postgres = schema.dialect is Dialect.POSTGRESQL
    suffix = "_by_shard_and_time" if postgres else "ByShardAndTime"
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
    return RequiredStep(CreateIndex(index), reason, backfill=True)


def store_columns(table: Table, index: Index, options: WatchOptions) -> list[RequiredStep]:
    """The columns that an existing index does not store yet."""
    stored = fold(index.storing)
    reason = "saves polls the join with the table for this column"
    return [
        RequiredStep(AlterIndexStoring(index.name, name, add=True), reason, backfill=True)
        for name in find_stored_columns(table, options)
        if name.casefold() not in stored
    ]


def name_index(schema: Schema, table: Table, chosen: str | None, suffix: str) -> str:
    """The name of a new index, which is in the schema of its table: the one that the user has
    chosen, else a free one with the suffix. Raises PlanError."""
    if chosen is None:
        return choose_free_name(schema, table.name, suffix)
    (named_schema, _), (written, last) = split_name(table.name), split_name(chosen)
    if written and not same_name(written, named_schema):
        raise PlanError(
            f"the index {chosen} would not be in the schema of table {table.name}, which Spanner"
            f" refuses: write --index {join_name(named_schema, last)}"
        )
    return join_name(named_schema, last)


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
