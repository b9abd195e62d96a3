"""A change stream that is read: from the schema, never guessed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from spanner_schema.model.schema import ChangeStream, ChangeStreamTable, Schema
from spanner_schema.model.selection import is_glob
from spanner_schema.model.steps import CreateChangeStream
from spanner_schema.model.suggestions import suggest_name
from spanner_schema.syntax.render import render_step
from watcher.captures.change_stream.captured import describe_gaps, read_option
from watcher.captures.change_stream.delivered_records import (
    choose_columns,
    filter_record,
    mask_record,
)
from watcher.captures.change_stream.record_values import DataRecord
from watcher.model.change import Operation, ValueCapture
from watcher.model.errors import NotWatchableError, StreamNotFoundError
from watcher.tables.column_choice import EVERYTHING, ColumnChoice
from watcher.tables.discovery import find_whole_table
from watcher.tables.predicates import RowFilter
from watcher.tables.selection import Selection, select_streamed
from watcher.tables.values import TableSpec, WatchedTable

MUTABLE = "MUTABLE_KEY_RANGE"


@dataclass(frozen=True, slots=True)
class WatchedStream:
    """A change stream, and the tables of the database that it watches, with their primary keys.

    Spanner's records name the columns of a key, but not their order.
    """

    name: str
    keys: Mapping[str, tuple[str, ...]]
    captured: ValueCapture
    keys_move: bool = False
    """Its partitions live on while keys move between them: ``MUTABLE_KEY_RANGE``."""
    placement_functions: tuple[str, ...] = ()
    """The functions of placements, without ``READ_``, that are read instead of the stream's own."""

    @property
    def functions(self) -> tuple[str, ...]:
        """The functions that read it, without ``READ_``: its own, or those of placements. Each has
        partitions of its own."""
        return self.placement_functions or (self.name,)

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(self.keys)

    def known_values(self, whole_rows: bool) -> ValueCapture:
        """Which values a change has; with ``whole_rows`` the others are read from the table."""
        return self.captured.whole_row_form if whole_rows else self.captured


@dataclass(frozen=True, slots=True)
class ChangeFilter:
    """Which changes are read: of some tables, operations, transactions. Empty is all. ``columns``
    says which columns of a table are read, by its name in small letters: also of a table that is
    gone, or not known yet."""

    tables: frozenset[str] = frozenset()
    operations: frozenset[Operation] = frozenset()
    tag: str | None = None
    columns: Mapping[str, ColumnChoice] = field(default_factory=dict)
    selection: Selection | None = None
    """Accepts also tables that were created after this value."""
    row_filters: Mapping[str, RowFilter] = field(default_factory=dict)
    """Which rows of a table are copied, by its name in small letters."""

    def narrow(self, record: DataRecord) -> DataRecord:
        """The record with the columns that are read of its table, and its key."""
        choice = self.columns.get(record.shape.table.casefold())
        return record if choice is None else choose_columns(record, choice)

    def finish(self, record: DataRecord) -> Iterator[DataRecord]:
        """A completed record as it is delivered: changes of rows that are not copied are deletes,
        and values have the masks of their columns."""
        name = record.shape.table.casefold()
        row_filter, choice = self.row_filters.get(name), self.columns.get(name)
        for part in (record,) if row_filter is None else filter_record(record, row_filter):
            yield part if choice is None else mask_record(part, choice.masks)

    def accepts(self, record: DataRecord) -> bool:
        """True for a record that is read."""
        return self.accepts_kind(record.shape.table, record.operation, record.tag)

    def accepts_kind(self, table: str, operation: Operation, tag: str) -> bool:
        """True where records of a table, an operation and a transaction tag are read."""
        return (
            self.accepts_table(table)
            and (not self.operations or operation in self.operations)
            and (self.tag is None or tag == self.tag)
        )

    def accepts_table(self, name: str) -> bool:
        """True where changes of a table are read."""
        if not self.tables or name in self.tables:
            return True
        return self.selection is not None and self.selection.includes(name)


def find_stream(
    schema: Schema, name: str | None, tables: Sequence[str], database: str
) -> WatchedStream:
    """The stream of a name, or the only one that watches all the tables.

    Raises StreamNotFoundError for a stream that does not exist, NotWatchableError for one that does
    not watch a table, and when several watch the tables.
    """
    stream = choose_stream(schema, name, tables, database)
    watched = list_watched(stream, schema)
    check_stream(stream, watched, tables)
    return WatchedStream(
        stream.name,
        {name: list_key_columns(schema, name) for name in watched},
        ValueCapture(read_option(stream, "value_capture_type", ValueCapture.OLD_AND_NEW_VALUES)),
        read_option(stream, "partition_mode", "") == MUTABLE,
    )


def find_streamed_tables(
    schema: Schema,
    name: str | None,
    selection: Selection,
    database: str,
    specs: Mapping[str, TableSpec] = MappingProxyType({}),
) -> tuple[WatchedStream, tuple[WatchedTable, ...]]:
    """The change stream of a name, or the only one that watches the tables that are named; and the
    tables of it to read, with what the stream leaves out of their changes. Raises as
    ``find_stream`` and ``select_streamed``."""
    named = [each for each in selection.include if not is_glob(each)]
    spelled = [find_whole_table(schema, each, database).name for each in named]
    stream = find_stream(schema, name, spelled, database)
    tables = select_streamed(schema, selection, stream.tables, database, specs)
    found = schema.change_stream(stream.name)
    assert found is not None, "find_stream has found it in the schema"
    return stream, describe_gaps(schema, found, tables)


def choose_recorded_columns(
    schema: Schema, tables: Iterable[WatchedTable], choices: Mapping[str, ColumnChoice]
) -> Mapping[str, ColumnChoice]:
    """Which columns of the records are read, by table: the chosen ones, without those that are
    HIDDEN and that nobody asked for. A record has them, and does not say so."""
    chosen = dict(choices)
    for each in tables:
        table = schema.table(each.name)
        filtered = each.row_filter.columns if each.row_filter is not None else ()
        unread = set(each.left_out) - {name for name, _ in filtered}
        columns = table.columns if table is not None else ()
        hidden = tuple(c.name for c in columns if c.hidden and c.name in unread)
        if hidden:
            choice = chosen.get(each.name.casefold(), EVERYTHING)
            excluded = replace(choice, exclude=(*choice.exclude, *hidden))
            chosen[each.name.casefold()] = excluded
    return chosen


def choose_stream(
    schema: Schema, name: str | None, tables: Sequence[str], database: str
) -> ChangeStream:
    """The stream of a name, or the only one that watches all the tables."""
    if name is None:
        return find_only_stream(schema, tables, database)
    stream = schema.change_stream(name)
    if stream is None:
        names = [each.name for each in schema.change_streams]
        advice = suggest_name(name, names, "it has")
        raise StreamNotFoundError(f"{database} has no change stream {name}; {advice}")
    return stream


def check_stream(stream: ChangeStream, watched: Sequence[str], tables: Sequence[str]) -> None:
    """Raises NotWatchableError for a stream that does not watch a table."""
    missing = [table for table in tables if table not in watched]
    if missing:
        raise NotWatchableError(
            f"change stream {stream.name} does not watch table {missing[0]}; add it: ALTER CHANGE"
            f" STREAM {stream.name} SET FOR {', '.join([*watched, missing[0]])}"
        )


def list_key_columns(schema: Schema, name: str) -> tuple[str, ...]:
    """The columns of a table's primary key, in order."""
    table = schema.table(name)
    return tuple(part.column for part in table.primary_key) if table is not None else ()


def find_only_stream(schema: Schema, tables: Sequence[str], database: str) -> ChangeStream:
    """The only stream that watches the tables."""
    fitting = [s for s in schema.change_streams if set(tables) <= set(list_watched(s, schema))]
    if not fitting:
        names = ", ".join(tables)
        raise NotWatchableError(
            f"{database} has no change stream that watches {names}; create one:"
            f" {write_create_stream(schema, tables)}"
        )
    if len(fitting) > 1:
        raise NotWatchableError(
            f"several change streams watch the tables: {', '.join(s.name for s in fitting)}; name"
            " the one to read"
        )
    return fitting[0]


def write_create_stream(schema: Schema, tables: Sequence[str]) -> str:
    """The statement that creates a change stream for tables, as an example."""
    watches = tuple(ChangeStreamTable(name) for name in tables)
    options = (("value_capture_type", "'NEW_ROW_AND_OLD_VALUES'"),)
    stream = ChangeStream("Changes", watches, False, options)
    return render_step(CreateChangeStream(stream), schema.dialect)


def list_watched(stream: ChangeStream, schema: Schema) -> tuple[str, ...]:
    """The names of the tables that a stream watches, as the schema spells them."""
    if stream.for_all:
        return tuple(table.name for table in schema.tables)
    return tuple(spell_names(schema, (each.table for each in stream.watches)))


def spell_names(schema: Schema, names: Iterable[str]) -> Iterable[str]:
    """Names as the schema spells them; those that it does not have are left out."""
    for name in names:
        table = schema.table(name)
        if table is not None:
            yield table.name
