"""The strategies: which steps make a table watchable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ddl.rules.change_streams import check_watches, create
from ddl.tracking.comparison import list_differences
from ddl.tracking.required_steps import (
    PROCESSED_EFFECT,
    SETS_EFFECT,
    TIMESTAMP_EFFECTS,
    RequiredStep,
    add_index,
    add_processed,
    add_shard,
    add_timestamp,
    find_name,
    find_stored_columns,
    name_index,
    store_columns,
)
from ddl.tracking.reshaping import reshape
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.errors import PlanError
from spanner_schema.model.names import find_named_table, same_name
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import (
    ChangeStream,
    ChangeStreamTable,
    Column,
    Dialect,
    Index,
    KeyPart,
    Schema,
    Table,
)
from spanner_schema.model.steps import (
    AddColumn,
    AlterChangeStream,
    CreateIndex,
    CreateTable,
)
from spanner_schema.model.strategies import Strategy
from spanner_schema.watched.ownership import (
    NOBODY,
    Ownership,
    TakeOver,
    fold,
    is_change_sets_table,
    is_ours,
    refuse_take_over,
)
from spanner_schema.watched.tracked import (
    Tracking,
    find_own_trackings,
    find_processed,
    find_trackings,
    name_set_timestamp,
)


def list_required_steps(
    schema: Schema, table_name: str, options: WatchOptions, ownership: Ownership = NOBODY
) -> list[RequiredStep]:
    """The steps that make a table watchable as asked for, without those that are already done.

    Raises PlanError if the table cannot be watched by this strategy, or would lose what is not
    ours; nothing is changed.
    """
    table = find_named_table(schema, table_name)
    chosen = options.for_dialect(schema.dialect)
    ownership = replace(ownership, asked=fold(options.take_over))
    check_take_overs(chosen)
    if chosen.hidden and schema.dialect is Dialect.POSTGRESQL:
        raise PlanError(
            "--hidden: the PostgreSQL dialect hides generated columns only, so that SELECT * would"
            f" still have {chosen.timestamp_column}: leave --hidden out"
        )
    check_deletion_policy(schema, table, chosen, ownership)
    return STRATEGIES[chosen.strategy](schema, table, chosen, ownership)


def check_deletion_policy(
    schema: Schema, table: Table, options: WatchOptions, ownership: Ownership
) -> None:
    """Raises PlanError where clearing would keep rows from being deleted: it sets a timestamp to
    NULL by which the table's row deletion policy deletes. Of a table that is tracked already
    clearing itself refuses that."""
    policy, column = table.row_deletion_policy, table.column(options.timestamp_column)
    if policy is None or column is None or not same_name(policy.column, column.name):
        return
    if find_trackings(schema, table):
        return
    erased = is_ours(column, schema.dialect) or ownership.allows(column.name)
    if options.strategy is Strategy.AUTOMATIC or (options.strategy is Strategy.MANUAL and erased):
        raise PlanError(
            f"{table.name}.{column.name} is the column of the table's row deletion policy: clearing"
            " would set it to NULL, and Spanner then never deletes the row: use --strategy"
            " processed, which keeps it, or another column with --timestamp-column"
        )


def check_take_overs(options: WatchOptions) -> None:
    """Raises PlanError for a name to be taken over that this strategy never writes over."""
    written = WRITTEN_OVER[options.strategy](options)
    for name in options.take_over:
        if name.casefold() not in fold(written):
            names = ", ".join(written) or "nothing"
            raise PlanError(
                f"--take-over {name}: the strategy {options.strategy} writes over {names}; name"
                " the column with --timestamp-column or --processed-column, too"
            )


WRITTEN_OVER: dict[Strategy, Callable[[WatchOptions], tuple[str, ...]]] = {
    Strategy.AUTOMATIC: lambda options: (options.timestamp_column,),
    Strategy.PROCESSED: lambda options: (options.timestamp_column, options.processed_column),
    Strategy.MANUAL: lambda options: (options.timestamp_column,),
    Strategy.CHANGE_SET: lambda options: (options.change_sets,),
    Strategy.CHANGE_STREAM: lambda _: (),
}
"""What each strategy, or its clearing, writes over."""


def list_take_overs(
    schema: Schema, table_name: str, options: WatchOptions, ownership: Ownership
) -> tuple[TakeOver, ...]:
    """What is asked to be taken over, exists, and is not ours yet; with what happens to it."""
    table = schema.table(table_name)
    if table is None:
        return ()
    chosen = options.for_dialect(schema.dialect)
    ownership = replace(ownership, asked=fold(options.take_over))
    effects = list_effects(schema, table, chosen)
    return tuple(
        TakeOver(table.name, name, effect)
        for name, effect in effects.items()
        if ownership.is_new(name)
    )


def list_effects(schema: Schema, table: Table, options: WatchOptions) -> dict[str, str]:
    """What exists and is not ours by its form, with what would happen to it."""
    effects = {}
    timestamp = table.column(options.timestamp_column)
    effect = TIMESTAMP_EFFECTS.get(options.strategy)
    if effect and timestamp is not None and not is_ours(timestamp, schema.dialect):
        effects[timestamp.name] = effect
    processed = table.column(options.processed_column)
    if options.strategy is Strategy.PROCESSED and processed is not None:
        used = (find_processed(table, each, schema.dialect) for each in table.columns)
        usual = WatchOptions().for_dialect(schema.dialect).processed_column
        if processed.name not in used or not same_name(processed.name, usual):
            effects[processed.name] = PROCESSED_EFFECT
    by_sets = options.strategy is Strategy.CHANGE_SET
    sets = schema.table(options.change_sets) if by_sets else None
    if sets is not None and not is_change_sets_table(sets, options.change_set_column):
        effects[sets.name] = SETS_EFFECT
    return effects


def track_automatically(
    schema: Schema, table: Table, options: WatchOptions, ownership: Ownership
) -> list[RequiredStep]:
    """Spanner writes the timestamp, whoever writes the row."""
    trackings = find_trackings(schema, table)
    if trackings and not is_automation(trackings, options):
        return reshape(schema, table, trackings, options)
    if not trackings and is_tracked_by_own_shard(schema, table, options):
        return []
    return [
        *add_timestamp(schema, table, options, ownership),
        *add_shard(schema, table, options),
        *add_index(schema, table, options),
    ]


def is_tracked_by_own_shard(schema: Schema, table: Table, options: WatchOptions) -> bool:
    """True where a table is polled through a shard that applications write, and nothing else was
    asked for."""
    return any(
        tracking.strategy is Strategy.AUTOMATIC and not list_differences(tracking, options)
        for tracking in find_own_trackings(schema, table)
    )


def is_automation(trackings: Sequence[Tracking], options: WatchOptions) -> bool:
    """True where applications write the timestamp of a tracked table, and Spanner is to do that."""
    return (
        "strategy" in options.model_fields_set
        and len(trackings) == 1
        and trackings[0].strategy is Strategy.MANUAL
        and {each.option for each in list_differences(trackings[0], options)} == {"strategy"}
    )


def track_processed(
    schema: Schema, table: Table, options: WatchOptions, ownership: Ownership
) -> list[RequiredStep]:
    """As ``automatic``, but clearing marks rows as processed and keeps their timestamp."""
    if options.shard != "computed":
        raise PlanError(
            f"--shard {options.shard} does not work with the strategy processed, whose shard is"
            " computed from the Processed column: use automatic or manual"
        )
    trackings = find_trackings(schema, table)
    if trackings:
        return reshape(schema, table, trackings, options)
    return [
        *add_timestamp(schema, table, options, ownership),
        *add_processed(schema, table, options, ownership),
        *add_shard(schema, table, options),
        *add_index(schema, table, options),
    ]


def track_manually(
    schema: Schema, table: Table, options: WatchOptions, ownership: Ownership
) -> list[RequiredStep]:
    """The applications write an existing commit-timestamp column. Clearing does not touch it unless
    it is taken over."""
    trackings = find_trackings(schema, table)
    if trackings:
        return reshape(schema, table, trackings, options)
    column = table.column(options.timestamp_column)
    if column is None or not column.allow_commit_timestamp:
        raise PlanError(
            f"{table.name}.{options.timestamp_column} is not a commit-timestamp column: the"
            " strategy manual needs an existing one; name it with --timestamp-column"
        )
    steps = [*add_shard(schema, table, options), *add_index(schema, table, options)]
    if is_ours(column, schema.dialect) or ownership.allows(column.name):
        return steps
    note = (
        f"{{}}; clearing leaves {column.name} as it is, so that rows stay in the index:"
        f" --take-over {column.name} lets it set the column to NULL"
    )
    return [
        replace(each, reason=note.format(each.reason))
        if isinstance(each.step, CreateIndex)
        else each
        for each in steps
    ]


OTHER_SETS = "choose another name with change_sets in --config"


def track_by_change_sets(
    schema: Schema, table: Table, options: WatchOptions, ownership: Ownership
) -> list[RequiredStep]:
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
    elif not is_change_sets_table(sets, column) and not ownership.allows(sets.name):
        why = "it has columns of other kinds"
        raise refuse_take_over(sets.name, why, SETS_EFFECT, sets.name, OTHER_SETS)
    steps += track_sets(schema, sets, options)
    if table.column(column) is None:
        new = Column(column, Type(TypeCode.STRING, length=36))
        reason = "names the change set that last wrote the row; applications write it"
        steps.append(RequiredStep(AddColumn(table.name, new), reason, backfill=False))
    return steps + add_rows_index(schema, table, options)


def track_sets(schema: Schema, sets: Table, options: WatchOptions) -> list[RequiredStep]:
    """The shard and the index of the table of change sets. Raises PlanError."""
    name = name_set_timestamp(schema.dialect)
    timestamp = sets.column(name)
    if timestamp is None or not timestamp.allow_commit_timestamp:
        raise PlanError(
            f"table {sets.name} exists and has no commit-timestamp column {name}: {OTHER_SETS}"
        )
    update = {
        "timestamp_column": timestamp.name,
        "shard_key": None,
        "index": None,
        "storing": (),
        "hidden": False,
    }
    set_options = WatchOptions.model_construct(
        options.model_fields_set & {"shards", "modulo", "stored", "shard_column"},
        **(dict(options) | update),
    )
    trackings = find_trackings(schema, sets)
    if trackings:
        return reshape(schema, sets, trackings, set_options)
    return [*add_shard(schema, sets, set_options), *add_index(schema, sets, set_options)]


def add_rows_index(schema: Schema, table: Table, options: WatchOptions) -> list[RequiredStep]:
    """The index by which polls find the rows of a change set. Raises PlanError."""
    column = find_name(table, options.change_set_column)
    existing = [
        index
        for index in schema.indexes_of(table.name)
        if index.parts[0].column.casefold() == column.casefold()
    ]
    named = options.index.casefold() if options.index else None
    for index in existing:
        if named in (None, index.name.casefold()):
            return store_columns(table, index, options)
    if existing:
        raise PlanError(
            f"table {table.name} has index {existing[0].name} on {column}, but --index"
            f" {options.index} was asked for: drop that index, or leave --index out"
        )
    suffix = "_by_change_set" if schema.dialect is Dialect.POSTGRESQL else "ByChangeSet"
    chosen = name_index(schema, table, options.index, suffix)
    storing = find_stored_columns(table, options)
    index = Index(chosen, table.name, (KeyPart(column),), storing)
    return [RequiredStep(CreateIndex(index), "lets polls find the rows of a change set", True)]


def make_change_sets_table(schema: Schema, options: WatchOptions) -> Table:
    """The table of change sets. Its key is a UUID, so that writes spread over all splits."""
    column = options.change_set_column
    return Table(
        options.change_sets,
        (
            Column(column, Type(TypeCode.STRING, length=36), not_null=True),
            Column(
                name_set_timestamp(schema.dialect),
                Type(TypeCode.TIMESTAMP),
                allow_commit_timestamp=True,
            ),
        ),
        (KeyPart(column),),
    )


def track_by_change_stream(
    schema: Schema, table: Table, options: WatchOptions, ownership: Ownership
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
        return [RequiredStep(create(schema, new), reason, backfill=False)]
    if stream.for_all or any(w.table.casefold() == table.name.casefold() for w in stream.watches):
        return []
    others = tuple(each for each in schema.change_streams if each is not stream)
    check_watches(schema, ChangeStream(stream.name, (watched,)), others)
    extended = replace(stream, watches=(*stream.watches, watched))
    reason = "adds this table to the change stream"
    return [
        RequiredStep(AlterChangeStream(extended, frozenset({"watches"})), reason, backfill=False)
    ]


Track = Callable[[Schema, Table, WatchOptions, Ownership], list[RequiredStep]]
STRATEGIES: dict[Strategy, Track] = {
    Strategy.AUTOMATIC: track_automatically,
    Strategy.PROCESSED: track_processed,
    Strategy.MANUAL: track_manually,
    Strategy.CHANGE_SET: track_by_change_sets,
    Strategy.CHANGE_STREAM: track_by_change_stream,
}
