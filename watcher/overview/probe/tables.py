"""The tables of a probe: made in one schema update, changed in a second, removed in a third."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from google.cloud.spanner_v1.database import Database

from ddl.migration.apply import read_schema, run_statements
from ddl.rules.evolve import apply_step
from ddl.tracking.wanted_schema import list_required_steps
from spanner_schema.model.column_types import Type, TypeCode
from spanner_schema.model.names import NAME_LENGTH_MAX
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import (
    ChangeStream,
    ChangeStreamTable,
    Column,
    Dialect,
    KeyPart,
    Schema,
    Table,
)
from spanner_schema.model.steps import (
    AddColumn,
    CreateChangeStream,
    CreateIndex,
    CreateTable,
    DropChangeStream,
    DropColumn,
    DropIndex,
    DropTable,
    RenameTables,
    Step,
)
from spanner_schema.model.strategies import Strategy
from spanner_schema.syntax.render import render_step
from watcher.model.errors import ConfigurationError
from watcher.spanner.dialects import NAME

PREFIX = "SpannerWatcherProbe"
KEY, VALUE, GONE = "ProbeKey", "ProbeValue", "ProbeGone"
"""The columns of every table; by the key a table is known as one of a probe's. ``GONE`` is dropped
while the probe runs."""
OTHER, HIDDEN = "ProbeOther", "ProbeHidden"
"""Columns of the table that the change stream watches; only GoogleSQL has HIDDEN ones."""
ADDED, FILLED = "ProbeAdded", "filled"
"""A column that a table gets while the probe runs, and its default."""
SHARDS = 8
STREAM_OPTIONS = (
    ("value_capture_type", "'NEW_ROW_AND_OLD_VALUES'"),
    ("allow_txn_exclusion", "true"),
)


@dataclass(frozen=True, slots=True)
class ProbeNames:
    """What the tables of a probe are called. Raises ConfigurationError for a prefix that Spanner
    would refuse."""

    prefix: str = PREFIX

    def __post_init__(self) -> None:
        longest = max(map(len, self.all_tables)) + len("_by_shard_and_time")
        if not NAME.match(self.prefix) or longest > NAME_LENGTH_MAX[Dialect.POSTGRESQL]:
            raise ConfigurationError(
                f"invalid --dataset '{self.prefix}': it begins the names of tables; use a letter,"
                " followed by letters and digits, at most 25 characters"
            )

    @property
    def rows(self) -> str:
        """A table with the strategy ``automatic``, which the change stream watches."""
        return f"{self.prefix}Rows"

    @property
    def marked(self) -> str:
        """A table with the strategy ``processed``."""
        return f"{self.prefix}Marked"

    @property
    def changed(self) -> str:
        """A table that loses a column."""
        return f"{self.prefix}Changed"

    @property
    def dropped(self) -> str:
        """A table that is dropped."""
        return f"{self.prefix}Dropped"

    @property
    def renamed(self) -> str:
        """A table that gets another name."""
        return f"{self.prefix}Renamed"

    @property
    def new_name(self) -> str:
        """The other name."""
        return f"{self.prefix}NewName"

    @property
    def stream(self) -> str:
        """The change stream."""
        return f"{self.prefix}Stream"

    @property
    def all_tables(self) -> tuple[str, ...]:
        """Every name that a table of the probe may have."""
        return (
            self.rows,
            self.marked,
            self.changed,
            self.dropped,
            self.renamed,
            self.new_name,
        )


def make_table(name: str, *more: Column) -> Table:
    """A table as an application has it."""
    key = Column(KEY, Type(TypeCode.INT64), not_null=True)
    return Table(name, (key, text(VALUE), *more), (KeyPart(KEY),))


def text(name: str, hidden: bool = False) -> Column:
    """A column of text."""
    return Column(name, Type(TypeCode.STRING), hidden=hidden)


def plan_tables(names: ProbeNames, dialect: Dialect) -> list[str]:
    """The statements that make the tables: as ``ddl apply`` makes them watchable, in one go."""
    schema = Schema(dialect=dialect)
    tables = (
        make_table(names.rows, text(OTHER), text(HIDDEN, dialect is Dialect.GOOGLESQL)),
        make_table(names.marked),
        make_table(names.changed, text(GONE)),
        make_table(names.dropped, text(GONE)),
        make_table(names.renamed),
    )
    for table in tables:
        schema = apply_step(schema, CreateTable(table))
    schema = make_watchable(schema, names.rows, Strategy.AUTOMATIC)
    schema = make_watchable(schema, names.marked, Strategy.PROCESSED)
    stream = ChangeStream(names.stream, (ChangeStreamTable(names.rows),), options=STREAM_OPTIONS)
    steps: list[Step] = [
        *map(CreateTable, schema.tables),
        *map(CreateIndex, schema.indexes),
        CreateChangeStream(stream),
    ]
    return [render_step(step, dialect) for step in steps]


def make_watchable(schema: Schema, table: str, strategy: Strategy) -> Schema:
    """The schema with a table that can be polled."""
    options = WatchOptions(strategy=strategy, shards=SHARDS)
    for required in list_required_steps(schema, table, options):
        schema = apply_step(schema, required.step)
    return schema


def plan_changes(names: ProbeNames, dialect: Dialect) -> list[str]:
    """The statements that change the tables."""
    steps: list[Step] = [
        DropColumn(names.changed, GONE),
        DropTable(names.dropped),
        RenameTables(((names.renamed, names.new_name),)),
        AddColumn(names.new_name, replace(text(ADDED), default=f"'{FILLED}'")),
    ]
    return [render_step(step, dialect) for step in steps]


def create_tables(database: Database, names: ProbeNames, dialect: Dialect) -> None:
    """Makes the tables. Raises ConfigurationError where some are there already."""
    there = list(list_leftovers(read_schema(database), names))
    if there:
        raise ConfigurationError(
            f"a probe that has not ended, or still runs, has left {len(there)} objects that begin"
            f" with {names.prefix}: run 'spanner-watcher check --probe --clean', or choose another"
            " --dataset"
        )
    run_statements(database, plan_tables(names, dialect))


def remove_tables(database: Database, names: ProbeNames, dialect: Dialect) -> int:
    """Removes whatever is left of the tables, and says how many objects that were. Raises
    ConfigurationError for a table of somebody else's."""
    steps = list(list_leftovers(read_schema(database), names))
    run_statements(database, [render_step(step, dialect) for step in steps])
    return len(steps)


def list_leftovers(schema: Schema, names: ProbeNames) -> Iterator[Step]:
    """The steps that remove what is there. Raises ConfigurationError as ``remove_tables``."""
    if schema.change_stream(names.stream) is not None:
        yield DropChangeStream(names.stream)
    tables = [table for name in names.all_tables if (table := schema.table(name)) is not None]
    check_ours(tables)
    for table in tables:
        yield from (DropIndex(index.name) for index in schema.indexes_of(table.name))
        yield DropTable(table.name)


def check_ours(tables: Sequence[Table]) -> None:
    """Raises ConfigurationError for a table that no probe has made."""
    for table in tables:
        if [part.column for part in table.primary_key] != [KEY]:
            raise ConfigurationError(
                f"table {table.name} is not one of a probe's: its key is not {KEY}; choose another"
                " --dataset"
            )
