"""Which tables of a database a watcher watches: names and globs against the schema."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from spanner_schema.model.names import list_user_tables
from spanner_schema.model.schema import Schema
from spanner_schema.model.selection import is_glob, is_selected, matches_any
from spanner_schema.model.suggestions import suggest_name
from spanner_schema.watched.tracked import find_set_rows
from watcher.model.errors import NotWatchableError, TableNotFoundError
from watcher.model.log_events.reading import TABLE_LEFT_OUT, TABLE_SCANNED
from watcher.tables.discovery import find_watched_table, find_whole_table
from watcher.tables.predicates import RowFilter
from watcher.tables.values import TableSpec, WatchedTable

LOG = logging.getLogger("watcher.selection")
STREAMED = "change-stream"
"""How the stored selection of a reader of a change stream says so."""


@dataclass(frozen=True, slots=True)
class Selection:
    """``include`` and ``exclude`` are names or globs, without regard to case. A table that is named
    must exist and be watchable; of those that match a glob, the others are left out."""

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()
    """The tables in which the product keeps its own state: never watched by a glob."""
    streamed: bool = False
    """The changes come from a change stream: nothing of them is ever read from an index."""
    complete: bool = False
    """For copies: the columns that are HIDDEN are read, too, a change stream has to have every
    change, and of rows that a condition leaves out it is said that they have changed."""

    def includes(self, name: str) -> bool:
        """True for a table that is selected, or will be once it exists."""
        selected = is_selected(name, self.include) and not matches_any(name, self.exclude)
        return selected and name not in self.ours

    def list_names(self) -> list[str]:
        """The names in ``include`` that are not excluded."""
        names = [pattern for pattern in self.include if not is_glob(pattern)]
        return [name for name in names if not matches_any(name, self.exclude)]

    def match_globs(self, names: Sequence[str]) -> list[str]:
        """Those of the names that a glob in ``include`` selects."""
        globs = [pattern for pattern in self.include if is_glob(pattern)]
        return [name for name in names if matches_any(name, globs) and self.includes(name)]

    def to_text(self) -> str:
        """The form that is stored with a consumer, for clearing."""
        stored: dict[str, object] = {"include": self.include, "exclude": self.exclude}
        if self.streamed:
            stored["capture"] = STREAMED
        return json.dumps(stored)


def select(
    schema: Schema,
    selection: Selection,
    specs: Mapping[str, TableSpec],
    database_name: str,
    scan: frozenset[str] | None = None,
) -> tuple[WatchedTable, ...]:
    """The tables to watch. Raises TableNotFoundError or NotWatchableError for a table that is
    named, and when no table is left.

    ``scan`` names tables that may be read without an index; unless it is None, those that the
    selection names may be, too.
    """
    tables: dict[str, WatchedTable] = {}
    for name in selection.list_names():
        spec = choose_spec(specs, name, selection)
        table = find_table(schema, name, database_name, spec, scan=scan is not None)
        tables[table.name] = table
    for name in selection.match_globs([table.name for table in schema.tables]):
        if name in tables or holds_sets_of_others(schema, name):
            continue
        allowed = name in (scan or ())
        try:
            spec = choose_spec(specs, name, selection)
            tables[name] = find_table(schema, name, database_name, spec, allowed)
        except NotWatchableError as error:
            TABLE_LEFT_OUT.log(LOG, table=name, error=error)
    if not tables:
        raise NotWatchableError(
            f"no table of {database_name} that can be watched matches"
            f" {', '.join(selection.include)}; make tables watchable: spanner-watcher ddl apply"
            f" --database spanner://{database_name} --table NAME"
        )
    check_configured(schema, specs, database_name)
    return tuple(replace(each, copied=selection.complete) for each in tables.values())


def holds_sets_of_others(schema: Schema, name: str) -> bool:
    """True for a table of change sets: who watches it by a glob wants the rows that they wrote."""
    table = schema.table(name)
    return table is not None and find_set_rows(schema, table) is not None


def select_streamed(
    schema: Schema,
    selection: Selection,
    streamed: Sequence[str],
    database_name: str,
    specs: Mapping[str, TableSpec] = MappingProxyType({}),
) -> tuple[WatchedTable, ...]:
    """The tables of a change stream to read: those that are named, and of the ``streamed`` ones
    those that match a glob. Raises TableNotFoundError for a name that does not exist, and when no
    table is left."""
    tables: dict[str, WatchedTable] = {}
    for name in (*selection.list_names(), *selection.match_globs(streamed)):
        spec = choose_spec(specs, name, selection)
        table = find_whole_table(schema, name, database_name, spec)
        tables[table.name] = table
    if not tables:
        raise TableNotFoundError(
            f"no table of {database_name} that the change stream watches matches"
            f" {', '.join(selection.include)}"
        )
    check_configured(schema, specs, database_name)
    return tuple(replace(each, copied=selection.complete) for each in tables.values())


def read_filtered(
    specs: Mapping[str, TableSpec], tables: Iterable[WatchedTable]
) -> dict[str, TableSpec]:
    """How tables are read so that their filters can be evaluated here: with the columns that these
    look at, and without a condition."""
    read = dict(specs)
    for table in tables:
        for name, spec in specs.items():
            if name.casefold() != table.name.casefold() or not table.filtered:
                continue
            wanted = {column.casefold(): column for column, _ in table.filtered}
            chosen = spec.columns if spec.columns is None else (*spec.columns, *wanted.values())
            excluded = tuple(c for c in spec.exclude_columns if c.casefold() not in wanted)
            read[name] = replace(spec, columns=chosen, exclude_columns=excluded, where=None)
    return read


def list_filters(tables: Iterable[WatchedTable]) -> dict[str, RowFilter]:
    """The filters of tables, by their names in small letters."""
    return {each.name.casefold(): each.row_filter for each in tables if each.row_filter is not None}


def find_spec(specs: Mapping[str, TableSpec], name: str) -> TableSpec | None:
    """What the configuration says of a table, without regard to case."""
    by_name = {each.casefold(): spec for each, spec in specs.items()}
    return by_name.get(name.casefold())


def choose_spec(
    specs: Mapping[str, TableSpec], name: str, selection: Selection
) -> TableSpec | None:
    """How a table is read: as the configuration says, and whole where it is copied."""
    spec = find_spec(specs, name)
    return replace(spec or TableSpec(), hidden_columns=True) if selection.complete else spec


def check_configured(schema: Schema, specs: Mapping[str, TableSpec], database_name: str) -> None:
    """Raises TableNotFoundError for a table that is configured but does not exist."""
    unknown = [name for name in specs if schema.table(name) is None]
    if unknown:
        advice = suggest_name(unknown[0], list_user_tables(schema), "it has")
        raise TableNotFoundError(
            f"{database_name} has no table {unknown[0]}, but it is configured; {advice}"
        )


def find_table(
    schema: Schema, name: str, database_name: str, spec: TableSpec | None, scan: bool
) -> WatchedTable:
    """A table through its index; without one where that is allowed and it has a timestamp."""
    try:
        return find_watched_table(schema, name, database_name, spec)
    except NotWatchableError:
        if not scan:
            raise
        TABLE_SCANNED.log(LOG, table=name)
        indexless = replace(spec or TableSpec(), shard="none", shard_column=None, index=None)
        return find_watched_table(schema, name, database_name, indexless)
