"""The whole way of a schema: planned, applied, written, polled, replicated, changed, verified,
cleared, rolled back; with what the application reads itself as the truth."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fixtures.any_application import Application
from fixtures.replicas import verify_folder
from fixtures.same_values import (
    Key,
    Row,
    compare_rows,
    key_of,
    read_copied_cell,
    read_row,
)
from fixtures.singers import address_of, fetch_now
from fixtures.table_facts import TableFacts, quote, quote_table
from google.cloud.spanner_v1.database import Database

from ddl.migration.apply import apply_plan, read_schema, roll_back
from ddl.migration.plan import make_plan
from ddl.tracking.lint import lint_schema
from ddl.tracking.status import list_statuses
from schemas.delivered import SinkKind, apply_changes, deliver, truncate_row
from schemas.facts import is_own
from schemas.outcomes import SchemaOutcome
from spanner_schema.model.errors import DdlError
from spanner_schema.model.options import WatchOptions
from spanner_schema.model.schema import Dialect, Schema
from spanner_schema.model.selection import select_tables
from spanner_schema.syntax.render import render_schema
from watcher.consumers.clearing import Clearing, Method
from watcher.consumers.positions import SpannerPositions
from watcher.replica.cuts.cut import Cut
from watcher.replica.cuts.manifest import Manifest
from watcher.replica.reading import as_of
from watcher.runners.replicator import Replicator
from watcher.runners.watcher import Watcher
from watcher.settings.watcher import parse_watch_config
from watcher.spanner.timestamps import format_timestamp, to_datetime
from watcher.tables.discovery import discover_table

NEVER_DELIVERED = frozenset({"INTERVAL"})
"""Kinds of columns that polls and copies leave out (docs/spark.md)."""
ADDED = "added_later"
DDL_SECONDS_MAX = 300
STREAM = "AnyStream"
Settings = dict[str, Any]
OpenCopier = Callable[[Settings, Path], Callable[[], object]]
"""What brings the copies in a folder up to now, whenever it is called."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What writes copies, and in which format."""

    name: str
    format: str
    open: OpenCopier


def make_engine(merge: str) -> Engine:
    """Copies in Delta, by this process."""

    def open_copier(settings: Settings, folder: Path) -> Callable[[], object]:
        replica = {"to": f"delta:{folder}", "merge": merge}
        return Replicator(parse_watch_config({"replica": replica} | settings)).run_once

    return Engine(merge, "delta", open_copier)


MERGE_ON_READ, COPY_ON_WRITE = make_engine("merge-on-read"), make_engine("copy-on-write")
ENGINES = (MERGE_ON_READ, COPY_ON_WRITE)


@dataclass(frozen=True, slots=True)
class Choice:
    """By what a schema is watched. ``value_capture``: of a change stream; None polls.
    ``positions`` keeps positions, if it is not the watched database. Without ``leaves`` the tables
    are neither cleared nor rolled back, positions are in memory, and copies are kept by one process
    from beginning to end."""

    engines: Sequence[Engine] = ENGINES
    sink: SinkKind = SinkKind.PLAIN
    value_capture: str | None = None
    positions: Database | None = None
    leaves: bool = True


@dataclass(frozen=True)
class Subject:
    """A database with tables, and rows from a ``seed``."""

    database: Database
    dialect: Dialect
    facts: Sequence[TableFacts]
    seed: str
    folder: Path
    choice: Choice = field(default_factory=Choice)


class Way:
    """A database with a schema, on its way."""

    def __init__(self, subject: Subject, outcome: SchemaOutcome) -> None:
        self._subject, self._outcome = subject, outcome
        self._database, self._dialect = subject.database, subject.dialect
        self._before = read_schema(self._database)
        self.application = Application(self._database, self._dialect, subject.facts, subject.seed)
        self._options = WatchOptions().for_dialect(self._dialect)
        self._watched: list[TableFacts] = []
        self._stream_start = 0
        self._copiers: dict[str, Callable[[], object]] = {}
        outcome.counts["tables"] += len(subject.facts)
        for table in subject.facts:
            outcome.left_out |= {
                f"{table.name}.{column.name}": column.type.kind
                for column in table.columns.values()
                if column.type.kind in NEVER_DELIVERED
            }

    def run(self) -> None:
        """All stages; those after a failed apply have nothing to look at."""
        stage, application = self._outcome.stage, self.application
        with stage("write"):
            application.insert(2)
        with stage("lint"):
            lint_schema(self._before)
            list_statuses(self._before, [table.name for table in self._before.tables])
        with stage("plan"):
            self._choose_tables()
        if self._watched:
            with stage("apply"):
                self._apply()
            if self._outcome.holds:
                self._run_watched()
            if self._subject.choice.leaves:
                with stage("rollback"):
                    self._roll_back()
        self._outcome.counts["rows written"] += application.written
        empty = (table.name for table in application.tables if not application.read(table))
        expired = "its rows are gone: they were older than its row deletion policy keeps them"
        self._outcome.not_written |= {n: application.refusals.get(n, expired) for n in empty}

    def _run_watched(self) -> None:
        stage, application = self._outcome.stage, self.application
        with stage("write"):
            before = self._read_all()
            application.insert(3)
            application.update(2)
            application.delete(1)
        with stage("watch"):
            self._watch(before)
        self._replicate_all(verify=False)
        with stage("change"):
            application.insert(1)
            application.update(1)
            if self._streams:  # polling does not see it
                application.delete(1)
            self._add_column()
        self._replicate_all(verify=True)
        if not self._subject.choice.leaves:
            return
        with stage("change"):
            self._drop_column()
        if not self._streams:
            with stage("clear"):
                self._clear()

    @property
    def _streams(self) -> bool:
        return self._subject.choice.value_capture is not None

    # Before anything is changed.

    def _choose_tables(self) -> None:
        """Those that can be planned; the others are refused by name."""
        for table in self.application.tables:
            try:
                make_plan(self._before, [table.name], self._options)
            except DdlError as error:
                self._outcome.refused[table.name] = str(error)
                if table.name.casefold() not in str(error).casefold():
                    self._outcome.add("plan", [f"the refusal does not name {table.name}: {error}"])
            else:
                self._watched.append(table)
        self._outcome.counts["tables watched"] += len(self._watched)

    @property
    def _names(self) -> list[str]:
        return [table.name for table in self._watched]

    def _apply(self) -> None:
        everything = select_tables(self._before, ["*"], [*self._outcome.refused])
        apply_plan(self._database, make_plan(self._before, everything, self._options))
        after = read_schema(self._database)
        again = make_plan(after, everything, self._options)
        if not again.empty:
            self._outcome.add("apply", [f"planned again: {s.sql}" for s in again.statements])
        if self._streams:
            self._create_stream()

    def _create_stream(self) -> None:
        """Of the tables alone: the product's own ones are in the database, too."""
        capture = self._subject.choice.value_capture
        tables = ", ".join(quote_table(table.name, self._dialect) for table in self._watched)
        options = f"value_capture_type = '{capture}'"
        word = "OPTIONS" if self._dialect is Dialect.GOOGLESQL else "WITH"
        name = quote(STREAM, self._dialect)
        self._run_ddl(f"CREATE CHANGE STREAM {name} FOR {tables} {word} ({options})")
        self._stream_start = fetch_now(self._database)

    def _run_ddl(self, statement: str) -> None:
        self._database.update_ddl([statement]).result(DDL_SECONDS_MAX)

    # What was delivered.

    def _settings(self, consumer: str) -> dict[str, Any]:
        choice = self._subject.choice
        settings: dict[str, Any] = {
            "database": str(address_of(self._database)),
            "tables": self._names,
            "interval": "20ms",
            "consumer": consumer,
        }
        if not choice.leaves:
            settings["positions"] = {"keep": "memory"}
        elif choice.positions is not None:
            settings["positions"] = {"database": str(address_of(choice.positions))}
        if self._streams:
            settings |= {"capture": "change-stream", "stream": {"name": STREAM}}
        # Decimals of Arrow have neither all digits of PostgreSQL's nor NaN.
        settings["table"] = {
            table.name: {"text_columns": list_numerics(table), "hidden_columns": True}
            for table in self._watched
        }
        return settings

    def _watch(self, before: Mapping[str, Mapping[Key, Row]]) -> None:
        kind, path = self._subject.choice.sink, self._subject.folder / "changes.jsonl"
        start = format_timestamp(self._stream_start) if self._streams else "earliest"
        settings = self._settings("watcher") | {"start": start}
        if self._streams and kind in (SinkKind.DEBEZIUM, SinkKind.TABLES):
            settings["stream"] = {"name": STREAM, "whole_rows": True}
        changes = deliver(settings, kind, path, self._watched)
        self._outcome.counts["changes delivered"] += len(changes)
        for table in self._watched:
            left_out = self._left_out(table)
            if self._streams:
                written, first = self.application.read(table), before[table.name]
                # Their values are no part of a stream: those of before may be of older rows.
                computed = {c.name for c in table.columns.values() if c.generated} - set(table.key)
                left_out |= computed
                first = {key: drop_columns(row, computed) for key, row in first.items()}
                written, first = self._show_as_streamed(written), self._show_as_streamed(first)
            else:
                written, first = show_rows(table, self._read_stamped(table)), {}
                doubled = [each for each in changes if each.table == table.name]
                if len({key_of(table, each.cells) for each in doubled}) < len(doubled):
                    self._outcome.add("watch", [f"{table.name}: a row is delivered twice"])
            # Values that a record lacks are read, and have their signs.
            found = self._show_as_streamed(apply_changes(table, first, changes))
            problems = compare_rows(table, written, list(found.values()), left_out)
            self._outcome.add("watch", problems)

    def _show_as_streamed(self, rows: Mapping[Key, Row]) -> dict[Key, Row]:
        """In the PostgreSQL dialect records are jsonb, whose numbers are numeric: a zero has no
        sign."""
        keeps_signs = not self._streams or self._dialect is Dialect.GOOGLESQL
        return {key: row if keeps_signs else drop_signs(row) for key, row in rows.items()}

    def _read_stamped(self, table: TableFacts) -> dict[Key, Row]:
        """The rows that have a commit timestamp."""
        stamped = self._list_stamped_keys(table)
        return {k: row for k, row in self.application.read(table).items() if k in stamped}

    def _list_stamped_keys(self, table: TableFacts) -> set[Key]:
        stamp = quote(self._options.timestamp_column, self._dialect)
        return self.application.list_keys(table, f"zz.{stamp} IS NOT NULL")

    def _left_out(self, table: TableFacts) -> frozenset[str]:
        return frozenset(c for c in table.columns if f"{table.name}.{c}" in self._outcome.left_out)

    # What was copied.

    def _replicate_all(self, verify: bool) -> None:
        for engine in self._subject.choice.engines:
            with self._outcome.stage(engine.name):
                self._replicate(engine, verify)

    def _copy(self, engine: Engine) -> Path:
        folder = self._subject.folder / engine.name
        copy = self._copiers.get(engine.name)
        if copy is None:
            copy = engine.open(self._settings(f"copier-{engine.name}"), folder)
        copy()
        if not self._subject.choice.leaves:
            self._copiers[engine.name] = copy
        return folder

    def _replicate(self, engine: Engine, verify: bool) -> None:
        folder = self._copy(engine)
        for each in verify_folder(self._database, folder).tables if verify else ():
            if not each.equal:
                self._outcome.add(engine.name, [f"verify: {json.dumps(each.to_json())}"])
        cut = Manifest(str(folder)).find_exact()
        for table in self._watched:
            self._compare_copy(engine, folder, cut, table)

    def _compare_copy(self, engine: Engine, folder: Path, cut: Cut, table: TableFacts) -> None:
        copy = as_of(f"{engine.format}:{folder}").read(table.name).to_pylist()
        read = [read_row(table.columns, row, read_copied_cell) for row in copy]
        # Rows of the load have their signs, those that changed since have not.
        found = self._show_as_streamed({key_of(table, row): row for row in read}).values()
        if len(found) < len(read):
            self._outcome.add(engine.name, [f"{table.name}: a key is there twice"])
        written = self._show_as_streamed(self.application.read(table, to_datetime(cut.end)))
        self._outcome.counts["rows copied"] += len(found)
        problems = compare_rows(
            table, show_rows(table, written), list(found), self._left_out(table)
        )
        self._outcome.add(engine.name, problems)

    # What changes while it is watched.

    def _add_column(self) -> None:
        self._alter(lambda table, name: f"ALTER TABLE {table} ADD COLUMN {name} {self._text}")

    def _drop_column(self) -> None:
        self._alter(lambda table, name: f"ALTER TABLE {table} DROP COLUMN {name}")

    @property
    def _text(self) -> str:
        return "STRING(MAX)" if self._dialect is Dialect.GOOGLESQL else "character varying"

    def _alter(self, write: Callable[[str, str], str]) -> None:
        table = quote_table(self._watched[0].name, self._dialect)
        self._run_ddl(write(table, quote(ADDED, self._dialect)))

    # What is left.

    def _read_all(self) -> dict[str, Mapping[Key, Row]]:
        return {table.name: self.application.read(table) for table in self.application.tables}

    def _clear(self) -> None:
        before = self._read_all()
        watcher = Watcher(parse_watch_config(self._settings("watcher")))
        watcher.on_batch(lambda _: None)
        watcher.run_once()
        for engine in self._subject.choice.engines:
            self._copy(engine)
        positions = SpannerPositions(self._subject.choice.positions or self._database)
        for table in self._watched:
            watched = discover_table(self._database, table.name)
            Clearing(self._database, watched, positions, 0.0, Method.PARTITIONED).clear()
            left = len(self._list_stamped_keys(table))
            if left:
                self._outcome.add("clear", [f"{table.name}: {left} rows keep their timestamp"])
        self._compare_all("clear", before)

    def _roll_back(self) -> None:
        before = self._read_all()
        if self._stream_start:
            self._run_ddl(f"DROP CHANGE STREAM {quote(STREAM, self._dialect)}")
        roll_back(self._database)
        after = read_schema(self._database)
        self._outcome.add("rollback", list_differences(self._before, after))
        self._compare_all("rollback", before)

    def _compare_all(self, stage: str, before: Mapping[str, Mapping[Key, Row]]) -> None:
        for table in self.application.tables:
            rows = self.application.read(table)
            problems = compare_rows(table, before[table.name], list(rows.values()))
            self._outcome.add(stage, problems)


def list_numerics(table: TableFacts) -> list[str]:
    """The columns of PostgreSQL's numeric, and of its arrays."""
    kinds = {c.name: (c.type.element or c.type).kind for c in table.columns.values()}
    return [name for name, kind in kinds.items() if kind == "PG_NUMERIC"]


def drop_columns(row: Row, names: Collection[str]) -> Row:
    """A row without some of its columns that are not in its key."""
    return {name: cell for name, cell in row.items() if name not in names}


def drop_signs(row: Row) -> Row:
    """A row whose zeros have no sign."""
    return {name: drop_sign(cell) for name, cell in row.items()}


def drop_sign(cell: Any) -> Any:
    """A cell or an array whose zeros have no sign."""
    if isinstance(cell, list):
        return [drop_sign(each) for each in cell]
    return "0.0" if cell == "-0.0" else cell


def show_rows(table: TableFacts, rows: Mapping[Key, Row]) -> dict[Key, Row]:
    """Rows as lines and copies have them: microseconds, but all digits of a key."""
    return {key: truncate_row(table, row) for key, row in rows.items()}


def list_differences(before: Schema, after: Schema) -> list[str]:
    """The statements that only one of two schemas has, but those of the product's own tables."""
    old = [text for text in render_schema(before) if not is_own(text)]
    new = [text for text in render_schema(after) if not is_own(text)]
    gone = [f"gone: {text}" for text in old if text not in new]
    return gone + [f"new: {text}" for text in new if text not in old]
