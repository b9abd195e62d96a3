"""The strategies: which steps make a table watchable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ddl.errors import PlanError
from ddl.names import make_unknown_table_error
from ddl.options import WatchOptions
from ddl.required_steps import (
    RequiredStep,
    add_index,
    add_processed,
    add_shard,
    add_timestamp,
    find_name,
    find_stored_columns,
    name_index,
)
from ddl.schema import (
    ChangeStream,
    ChangeStreamTable,
    Column,
    Dialect,
    Index,
    KeyPart,
    Schema,
    Table,
    Type,
    TypeCode,
)
from ddl.steps import (
    AddColumn,
    AlterChangeStream,
    CreateChangeStream,
    CreateIndex,
    CreateTable,
)
from ddl.strategies import Strategy


def list_required_steps(
    schema: Schema, table_name: str, options: WatchOptions
) -> list[RequiredStep]:
    """The steps that make a table watchable, without those that are already done.

    Raises PlanError if the table cannot be watched by this strategy; nothing is changed.
    """
    table = schema.table(table_name)
    if table is None:
        raise make_unknown_table_error(schema, table_name)
    chosen = options.for_dialect(schema.dialect)
    return STRATEGIES[chosen.strategy](schema, table, chosen)


def track_automatically(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """Spanner writes the timestamp: no application changes."""
    return [
        *add_timestamp(schema, table, options),
        *add_shard(schema, table, options),
        *add_index(schema, table, options),
    ]


def track_processed(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """As ``automatic``, but clearing marks rows as processed and keeps their timestamp."""
    return [
        *add_timestamp(schema, table, options),
        *add_processed(schema, table, options),
        *add_shard(schema, table, options),
        *add_index(schema, table, options),
    ]


def track_manually(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """The applications write an existing commit-timestamp column."""
    column = table.column(options.timestamp_column)
    if column is None or not column.allow_commit_timestamp:
        raise PlanError(
            f"{table.name}.{options.timestamp_column} is not a commit-timestamp column: the"
            " strategy manual needs an existing one; name it with --timestamp-column"
        )
    return [*add_shard(schema, table, options), *add_index(schema, table, options)]


def track_by_change_sets(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """For tables without a timestamp: a table of change sets, whose ids the rows carry.

    The table of change sets is itself polled through a shard and a null-filtered index.
    """
    column = options.change_set_column
    sets = schema.table(options.change_sets)
    steps: list[RequiredStep] = []
    if sets is None:
        sets = make_change_sets_table(schema, options)
        reason = "holds one row for each transaction, with its commit timestamp"
        steps.append(RequiredStep(CreateTable(sets), reason, backfill=False))
    set_options = options.model_copy(
        update={
            "timestamp_column": name_set_timestamp(schema),
            "shard_key": None,
            "index": None,
            "storing": (),
        }
    )
    steps += [*add_shard(schema, sets, set_options), *add_index(schema, sets, set_options)]
    if table.column(column) is None:
        new = Column(column, Type(TypeCode.STRING, length=36))
        reason = "names the change set that last wrote the row; applications write it"
        steps.append(RequiredStep(AddColumn(table.name, new), reason, backfill=False))
    if not any(
        i.parts[0].column.casefold() == column.casefold() for i in schema.indexes_of(table.name)
    ):
        suffix = "_by_change_set" if schema.dialect is Dialect.POSTGRESQL else "ByChangeSet"
        chosen = name_index(schema, table, options.index, suffix)
        storing = find_stored_columns(table, options)
        index = Index(chosen, table.name, (KeyPart(find_name(table, column)),), storing)
        reason = "lets polls find the rows of a change set"
        steps.append(RequiredStep(CreateIndex(index), reason, backfill=True))
    return steps


def name_set_timestamp(schema: Schema) -> str:
    """The commit-timestamp column of the table of change sets."""
    return "commit_timestamp" if schema.dialect is Dialect.POSTGRESQL else "CommitTimestamp"


def make_change_sets_table(schema: Schema, options: WatchOptions) -> Table:
    """The table of change sets. Its key is a UUID, so that writes spread over all splits."""
    column = options.change_set_column
    return Table(
        options.change_sets,
        (
            Column(column, Type(TypeCode.STRING, length=36), not_null=True),
            Column(
                name_set_timestamp(schema), Type(TypeCode.TIMESTAMP), allow_commit_timestamp=True
            ),
        ),
        (KeyPart(column),),
    )


def track_by_change_stream(
    schema: Schema, table: Table, options: WatchOptions
) -> list[RequiredStep]:
    """A change stream of Spanner; the table does not change."""
    stream = schema.change_stream(options.change_stream)
    watched = ChangeStreamTable(table.name)
    if stream is None:
        new = ChangeStream(
            options.change_stream,
            watches=(watched,),
            options=(("value_capture_type", "'NEW_ROW_AND_OLD_VALUES'"),),
        )
        reason = "makes Spanner record every change of the table, with deletes and old values"
        return [RequiredStep(CreateChangeStream(new), reason, backfill=False)]
    if stream.for_all or any(w.table.casefold() == table.name.casefold() for w in stream.watches):
        return []
    extended = replace(stream, watches=(*stream.watches, watched))
    reason = "adds this table to the change stream"
    return [
        RequiredStep(AlterChangeStream(extended, frozenset({"watches"})), reason, backfill=False)
    ]


STRATEGIES: dict[Strategy, Callable[[Schema, Table, WatchOptions], list[RequiredStep]]] = {
    Strategy.AUTOMATIC: track_automatically,
    Strategy.PROCESSED: track_processed,
    Strategy.MANUAL: track_manually,
    Strategy.CHANGE_SET: track_by_change_sets,
    Strategy.CHANGE_STREAM: track_by_change_stream,
}
