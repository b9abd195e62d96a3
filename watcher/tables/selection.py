"""Which tables of a database a watcher watches: names and globs against the schema."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from types import MappingProxyType

from ddl.schema import Schema
from watcher.errors import NotWatchableError, TableNotFoundError
from watcher.tables.discovery import find_watched_table, find_whole_table
from watcher.tables.values import TableSpec, WatchedTable

LOG = logging.getLogger("watcher.selection")
GLOB = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Selection:
    """``include`` and ``exclude`` are names or globs, without regard to case. A name must be there
    and be watchable; of a glob, what is not watchable is left out."""

    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()
    """The tables in which the product keeps its own state: never watched by a glob."""

    def includes(self, name: str) -> bool:
        """True for a table that is selected, or will be once it is there."""
        selected = matches(name, self.include) and not matches(name, self.exclude)
        return selected and name not in self.ours

    def to_text(self) -> str:
        """As it is stored with a consumer, for clearing."""
        return json.dumps({"include": self.include, "exclude": self.exclude})


def is_glob(pattern: str) -> bool:
    """True for a pattern that may mean several tables."""
    return not GLOB.isdisjoint(pattern)


def matches(name: str, patterns: Sequence[str]) -> bool:
    """True when one of the patterns means the table."""
    return any(fnmatchcase(name.casefold(), pattern.casefold()) for pattern in patterns)


def select(
    schema: Schema,
    selection: Selection,
    specs: Mapping[str, TableSpec],
    database_name: str,
    scan: frozenset[str] | None = None,
) -> tuple[WatchedTable, ...]:
    """The tables to watch. Raises TableNotFoundError or NotWatchableError for a table that is
    named, and when nothing at all is left.

    ``scan`` names tables that may be read without an index; unless it is None, those that the
    selection names may be, too.
    """
    by_name = {name.casefold(): spec for name, spec in specs.items()}
    names = [pattern for pattern in selection.include if not is_glob(pattern)]
    globs = [pattern for pattern in selection.include if is_glob(pattern)]
    found: dict[str, WatchedTable] = {}
    for name in names:
        if not matches(name, selection.exclude):
            spec = by_name.get(name.casefold())
            table = find_table(schema, name, database_name, spec, scan=scan is not None)
            found[table.name] = table
    for candidate in (table.name for table in schema.tables):
        wanted = matches(candidate, globs) and not matches(candidate, selection.exclude)
        if not wanted or candidate in found or candidate in selection.ours:
            continue
        spec = by_name.get(candidate.casefold())
        try:
            found[candidate] = find_table(
                schema, candidate, database_name, spec, scan=candidate in (scan or ())
            )
        except NotWatchableError as error:
            LOG.info("table %s is left out: %s", candidate, error)
    if not found:
        raise NotWatchableError(
            f"no table of {database_name} that can be watched matches"
            f" {', '.join(selection.include)}; make tables watchable: spanner-watcher ddl apply"
            f" --database spanner://{database_name} --table NAME"
        )
    check_configured(schema, specs, database_name)
    return tuple(found.values())


def select_streamed(
    schema: Schema,
    selection: Selection,
    watched: Sequence[str],
    database_name: str,
    specs: Mapping[str, TableSpec] = MappingProxyType({}),
) -> tuple[WatchedTable, ...]:
    """The tables of a change stream to read: those that are named, and of the ``watched`` ones what
    the globs mean. Raises TableNotFoundError for a name that is not there, and when none is."""
    by_name = {name.casefold(): spec for name, spec in specs.items()}
    names = [pattern for pattern in selection.include if not is_glob(pattern)]
    globs = [pattern for pattern in selection.include if is_glob(pattern)]
    meant = [name for name in watched if matches(name, globs) and name not in selection.ours]
    found: dict[str, WatchedTable] = {}
    for name in (*names, *meant):
        if not matches(name, selection.exclude):
            spec = by_name.get(name.casefold())
            table = find_whole_table(schema, name, database_name, spec)
            found[table.name] = table
    if not found:
        raise TableNotFoundError(
            f"no table of {database_name} that the change stream watches matches"
            f" {', '.join(selection.include)}"
        )
    check_configured(schema, specs, database_name)
    return tuple(found.values())


def check_configured(schema: Schema, specs: Mapping[str, TableSpec], database_name: str) -> None:
    """Raises TableNotFoundError for a table that is configured and not there."""
    unknown = [name for name in specs if schema.table(name) is None]
    if unknown:
        raise TableNotFoundError(f"{database_name} has no table {unknown[0]}, which is configured")


def find_table(
    schema: Schema, name: str, database_name: str, spec: TableSpec | None, scan: bool
) -> WatchedTable:
    """A table through its index; without one where that is allowed and the timestamp is there."""
    try:
        return find_watched_table(schema, name, database_name, spec)
    except NotWatchableError:
        if not scan:
            raise
        LOG.warning("table %s has no index to poll through: each poll scans the table", name)
        free = replace(spec or TableSpec(), shard="none", shard_column=None, index=None)
        return find_watched_table(schema, name, database_name, free)
