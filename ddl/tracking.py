"""The strategies: what a table needs to be watched, as the schema that is wanted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from ddl.errors import PlanError
from ddl.names import NAME_LENGTH_MAX, choose_free_name, is_taken
from ddl.options import Modulo, Strategy, WatchOptions
from ddl.render import quote_name
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
from ddl.shards import shard_expression
from ddl.steps import (
    AddColumn,
    AlterChangeStream,
    CreateChangeStream,
    CreateIndex,
    CreateTable,
    SetColumnOptions,
    SetDefault,
    SetOnUpdate,
    Step,
)

COMMIT_TIMESTAMP = "PENDING_COMMIT_TIMESTAMP()"


@dataclass(frozen=True, slots=True)
class RequiredStep:
    """A step, why it is needed, and whether it only changes metadata or fills data in."""

    step: Step
    reason: str
    backfill: bool


def list_required_steps(
    schema: Schema, table_name: str, options: WatchOptions
) -> list[RequiredStep]:
    """The steps that make a table watchable, without those that are done already.

    Raises PlanError before anything is changed when the table cannot be watched so.
    """
    table = schema.table(table_name)
    if table is None:
        known = ", ".join(t.name for t in schema.tables) or "none"
        raise PlanError(f"there is no table {table_name}; tables of this schema: {known}")
    if schema.dialect is Dialect.POSTGRESQL:
        options = options.use_postgresql_names()
    return STRATEGIES[options.strategy](schema, table, options)


def track_automatically(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """Spanner writes the timestamp by itself."""
    return [
        *add_timestamp(schema, table, options),
        *add_shard(schema, table, options),
        *add_index(schema, table, options),
    ]


def track_processed(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """As ``automatic``; delivered rows are marked instead of losing their timestamp."""
    return [
        *add_timestamp(schema, table, options),
        *add_processed(table, options),
        *add_shard(schema, table, options),
        *add_index(schema, table, options),
    ]


def track_manually(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """An existing column that the applications write; nobody else does."""
    column = table.column(options.timestamp_column)
    if column is None or not column.allow_commit_timestamp:
        raise PlanError(
            f"{table.name}.{options.timestamp_column} is no commit-timestamp column: with the"
            " strategy manual it has to be there; name it with --timestamp-column"
        )
    return [*add_shard(schema, table, options), *add_index(schema, table, options)]


def track_by_change_sets(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """A table of change sets, and their ids in the rows; for tables without a timestamp.

    The table of change sets itself is watched through a shard and a null-filtered index.
    """
    column = options.change_set_column
    sets = schema.table(options.change_sets)
    steps: list[RequiredStep] = []
    if sets is None:
        sets = make_change_sets_table(schema, options)
        reason = "one row a transaction, with its commit timestamp"
        steps.append(RequiredStep(CreateTable(sets), reason, backfill=False))
    of_sets = options.model_copy(
        update={"timestamp_column": name_set_timestamp(schema), "shard_key": None, "index": None}
    )
    steps += [*add_shard(schema, sets, of_sets), *add_index(schema, sets, of_sets)]
    if table.column(column) is None:
        new = Column(column, Type(TypeCode.STRING, length=36))
        reason = "the change set that wrote the row last; the applications write it"
        steps.append(RequiredStep(AddColumn(table.name, new), reason, backfill=False))
    if not any(
        i.parts[0].column.casefold() == column.casefold() for i in schema.indexes_of(table.name)
    ):
        chosen = options.index or choose_free_name(schema, f"{table.name}ByChangeSet")
        index = Index(chosen, table.name, (KeyPart(column),))
        reason = "polls go from the change sets to their rows through it"
        steps.append(RequiredStep(CreateIndex(index), reason, backfill=True))
    return steps


def name_set_timestamp(schema: Schema) -> str:
    """The commit-timestamp column of the table of change sets."""
    return "commit_timestamp" if schema.dialect is Dialect.POSTGRESQL else "CommitTimestamp"


def make_change_sets_table(schema: Schema, options: WatchOptions) -> Table:
    """The table of change sets. Its key is a UUID, so that it is no hot spot."""
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
    """A native change stream; the table itself stays as it is."""
    stream = schema.change_stream(options.change_stream)
    watched = ChangeStreamTable(table.name)
    if stream is None:
        new = ChangeStream(
            options.change_stream,
            watches=(watched,),
            options=(("value_capture_type", "'NEW_ROW_AND_OLD_VALUES'"),),
        )
        reason = "Spanner records every change of the table, with deletes and old values"
        return [RequiredStep(CreateChangeStream(new), reason, backfill=False)]
    if stream.for_all or any(w.table.casefold() == table.name.casefold() for w in stream.watches):
        return []
    grown = replace(stream, watches=(*stream.watches, watched))
    reason = "the change stream is to watch this table, too"
    return [RequiredStep(AlterChangeStream(grown, frozenset({"watches"})), reason, backfill=False)]


def add_timestamp(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
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
            RequiredStep(
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
    elif not column.allow_commit_timestamp and schema.dialect is Dialect.POSTGRESQL:
        raise PlanError(
            f"{where} is a plain timestamp, and the PostgreSQL dialect cannot turn it into a"
            " SPANNER.COMMIT_TIMESTAMP column: choose another name with --timestamp-column"
        )
    elif not column.allow_commit_timestamp:
        option = SetColumnOptions(table.name, column.name, (("allow_commit_timestamp", "true"),))
        steps.append(
            RequiredStep(
                option,
                "the column is to hold commit timestamps; Spanner checks that no value"
                " lies in the future",
                backfill=True,
            )
        )
    if any(p.column.casefold() == column.name.casefold() for p in table.primary_key):
        raise PlanError(f"{where} is part of the primary key, where Spanner allows no ON UPDATE")
    return steps + automate_timestamp(schema, table, column)


def automate_timestamp(schema: Schema, table: Table, column: Column) -> list[RequiredStep]:
    """DEFAULT and ON UPDATE of the commit-timestamp column."""
    prefix = "SPANNER." if schema.dialect is Dialect.POSTGRESQL else ""
    pending = prefix + COMMIT_TIMESTAMP
    steps = []
    if column.default is None:
        steps.append(
            RequiredStep(
                SetDefault(table.name, column.name, pending),
                "inserts get the commit timestamp without any change to the applications",
                backfill=False,
            )
        )
    elif column.default.replace(" ", "").upper() != pending:
        raise PlanError(f"{table.name}.{column.name} has another default: {column.default}")
    if column.on_update is None:
        steps.append(
            RequiredStep(
                SetOnUpdate(table.name, column.name, pending),
                "updates get it too, also those that write the same values again",
                backfill=False,
            )
        )
    return steps


def add_processed(table: Table, options: WatchOptions) -> list[RequiredStep]:
    """The Processed column: TRUE takes a row out of the index."""
    column = table.column(options.processed_column)
    if column is None:
        new = Column(options.processed_column, Type(TypeCode.BOOL))
        reason = "TRUE once a change is delivered; applications reset it when they update a row"
        return [RequiredStep(AddColumn(table.name, new), reason, backfill=False)]
    if column.type.code is not TypeCode.BOOL or column.generated is not None:
        raise PlanError(
            f"{table.name}.{column.name} is there already and is no plain BOOL column:"
            " choose another name with --processed-column"
        )
    return []


def add_shard(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """The computed shard.

    Not STORED unless asked for: the index keeps the value anyway, so that a stored column would
    keep it twice, and adding one makes Spanner write every row of the table.
    """
    signed = options.modulo is Modulo.SIGNED
    expression = shard_expression(table, options.shard_key, options.shards, signed, schema.dialect)
    if options.strategy is Strategy.PROCESSED:
        processed_column = quote_name(options.processed_column, schema.dialect)
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
            f"spreads the growing timestamps of the index over {options.shards} places, so that"
            " writing it is no hot spot"
        )
        return [RequiredStep(AddColumn(table.name, new), reason, backfill=options.stored)]
    if column.type.code is not TypeCode.INT64:
        raise PlanError(
            f"{table.name}.{column.name} is there already and is no INT64 column:"
            " choose another name with --shard-column"
        )
    return []


def add_index(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """The null-filtered index that polls read; none when one that serves is there."""
    key = (options.shard_column.casefold(), options.timestamp_column.casefold())
    for index in schema.indexes_of(table.name):
        parts = tuple(part.column.casefold() for part in index.parts)
        filtered = {c.casefold() for c in index.where_not_null}
        if (index.null_filtered or set(parts) <= filtered) and parts == key:
            return []
    columns = {c.name.casefold() for c in table.columns}
    for column in options.storing:
        if column.casefold() not in columns:
            raise PlanError(f"table {table.name} has no column {column} to store in the index")
    postgres = schema.dialect is Dialect.POSTGRESQL
    index = Index(
        options.index or choose_free_name(schema, make_index_name(table, postgres)),
        table.name,
        (KeyPart(options.shard_column), KeyPart(options.timestamp_column)),
        storing=options.storing,
        null_filtered=not postgres,
        where_not_null=(options.shard_column, options.timestamp_column) if postgres else (),
    )
    if options.index and is_taken(schema, options.index):
        raise PlanError(f"the name {options.index} is taken: choose another with --index")
    reason = (
        "polls read only changed rows through it; rows whose timestamp or shard is NULL are not in"
        " it, so that clearing keeps it small"
    )
    return [RequiredStep(CreateIndex(index), reason, backfill=True)]


def make_index_name(table: Table, postgres: bool = False) -> str:
    """What the index is called when nobody says otherwise."""
    suffix = "_by_shard_and_time" if postgres else "ByShardAndTime"
    return f"{table.name}{suffix}"[-NAME_LENGTH_MAX:]


STRATEGIES: dict[Strategy, Callable[[Schema, Table, WatchOptions], list[RequiredStep]]] = {
    Strategy.AUTOMATIC: track_automatically,
    Strategy.PROCESSED: track_processed,
    Strategy.MANUAL: track_manually,
    Strategy.CHANGE_SET: track_by_change_sets,
    Strategy.CHANGE_STREAM: track_by_change_stream,
}
