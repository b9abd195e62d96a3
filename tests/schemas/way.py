"""The whole way of a schema: planned, applied, written, polled, replicated, changed, verified,
cleared, rolled back; with what the application reads itself as the truth."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fixtures.any_application import Application
from fixtures.replicas import verify_folder
from fixtures.same_values import (
    Key,
    Row,
    compare_rows,
    read_copied_cell,
    read_line_cell,
    read_row,
    truncate_timestamps,
)
from fixtures.singers import address_of
from fixtures.table_facts import TableFacts, quote, quote_table
from google.cloud.spanner_v1.database import Database

from ddl.apply import apply_plan, read_schema, roll_back
from ddl.errors import DdlError
from ddl.lint import lint_schema
from ddl.options import WatchOptions
from ddl.plan import make_plan
from ddl.render import render_schema
from ddl.schema import Dialect, Schema
from ddl.selection import select_tables
from ddl.status import list_statuses
from schemas.facts import is_own, read_facts
from schemas.outcomes import SchemaOutcome
from watcher.cli.actions.clear import ClearRequest, open_clearing
from watcher.cli.actions.watch import make_sink
from watcher.consumers.positions import TABLE
from watcher.replica.cuts import Cut
from watcher.replica.manifest import Manifest
from watcher.replica.reading import as_of
from watcher.runners.replicator import Replicator
from watcher.runners.watcher import Watcher
from watcher.settings.watcher import parse_watch_config
from watcher.spanner.timestamps import to_datetime

NEVER_DELIVERED = frozenset({"PROTO", "ENUM", "INTERVAL"})
"""Kinds of columns that polls and copies leave out (docs/spark.md)."""
ADDED = "added_later"
DDL_SECONDS_MAX = 300
Replicate = Callable[[Database, Sequence[str], Path], None]
"""Keeps copies of tables in a folder, up to now."""


@dataclass(frozen=True, slots=True)
class Engine:
    """What writes copies, and in which format."""

    name: str
    format: str
    replicate: Replicate


def replicate_by_delta_rs(database: Database, tables: Sequence[str], folder: Path) -> None:
    """By this process."""
    settings = common_settings(database, tables) | {"replica": {"to": f"delta:{folder}"}}
    Replicator(parse_watch_config(settings)).run_once()


DELTA_RS = Engine("delta-rs", "delta", replicate_by_delta_rs)


def common_settings(database: Database, tables: Sequence[str]) -> dict[str, Any]:
    """What watchers and replicators have in common."""
    return {"database": str(address_of(database)), "tables": list(tables), "interval": "20ms"}


class Way:
    """A database with a schema, on its way."""

    def __init__(
        self, database: Database, dialect: Dialect, seed: str, folder: Path, outcome: SchemaOutcome
    ) -> None:
        self._database, self._dialect = database, dialect
        self._folder, self._outcome = folder, outcome
        self._before = read_schema(database)
        facts = read_facts(database, dialect)
        self.application = Application(database, dialect, facts, seed)
        self._options = WatchOptions().for_dialect(dialect)
        self._watched: list[TableFacts] = []
        outcome.counts["tables"] += len(facts)
        for table in facts:
            outcome.left_out |= {
                f"{table.name}.{column.name}": "HIDDEN" if column.hidden else column.type.kind
                for column in table.columns.values()
                if column.hidden or column.type.kind in NEVER_DELIVERED
            }

    def run(self, engines: Sequence[Engine]) -> None:
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
                self._run_watched(engines)
            with stage("rollback"):
                self._roll_back()
        self._outcome.counts["rows written"] += application.written
        empty = (table.name for table in application.tables if not application.read(table))
        self._outcome.not_written |= {name: application.refusals[name] for name in empty}

    def _run_watched(self, engines: Sequence[Engine]) -> None:
        stage, application = self._outcome.stage, self.application
        with stage("write"):
            application.insert(3)
            application.update(2)
        with stage("poll"):
            self._poll()
        for engine in engines:
            with stage(engine.name):
                self._replicate(engine)
        with stage("change"):
            application.insert(1)
            application.update(1)
            self._add_column()
        for engine in engines:
            with stage(engine.name):
                self._replicate(engine)
        with stage("change"):
            self._drop_column()
        with stage("clear"):
            self._clear(engines)

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

    # What was delivered.

    def _poll(self) -> None:
        path = self._folder / "changes.jsonl"
        config = parse_watch_config(
            common_settings(self._database, self._names)
            | {"consumer": "poller", "start": "earliest", "delivery": {"to": str(path)}}
        )
        watcher = Watcher(config)
        watcher.deliver_to(make_sink(config))
        watcher.run_once()
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self._outcome.counts["rows polled"] += len(lines)
        by_table = {table.name: list[Row]() for table in self._watched}
        for line in lines:
            table = next(each for each in self._watched if each.name == line["table"])
            cells = {**line["key"], **line["values"]}
            by_table[table.name].append(read_row(table.columns, cells, read_line_cell))
        for table in self._watched:
            written = show_rows(table, self._read_stamped(table))
            found = by_table[table.name]
            self._outcome.add("poll", compare_rows(table, written, found, self._left_out(table)))

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

    def _replicate(self, engine: Engine) -> None:
        folder = self._folder / engine.name
        engine.replicate(self._database, self._names, folder)
        report = verify_folder(self._database, folder)
        for each in report.tables:
            if not each.equal:
                self._outcome.add(engine.name, [f"verify: {json.dumps(each.to_json())}"])
        cut = Manifest(str(folder)).find_exact()
        for table in self._watched:
            self._compare_copy(engine, folder, cut, table)

    def _compare_copy(self, engine: Engine, folder: Path, cut: Cut, table: TableFacts) -> None:
        copy = as_of(f"{engine.format}:{folder}").read(table.name).to_pylist()
        found = [read_row(table.columns, row, read_copied_cell) for row in copy]
        written = self.application.read(table, to_datetime(cut.end))
        self._outcome.counts["rows copied"] += len(found)
        problems = compare_rows(table, show_rows(table, written), found, self._left_out(table))
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
        statement = write(table, quote(ADDED, self._dialect))
        self._database.update_ddl([statement]).result(DDL_SECONDS_MAX)

    # What is left.

    def _read_all(self) -> dict[str, Mapping[Key, Row]]:
        return {table.name: self.application.read(table) for table in self.application.tables}

    def _clear(self, engines: Sequence[Engine]) -> None:
        before = self._read_all()
        self._poll_again()
        for engine in engines:
            engine.replicate(self._database, self._names, self._folder / engine.name)
        for table in self._watched:
            request = ClearRequest(
                database=str(address_of(self._database)),
                table=table.name,
                margin="0s",
                method="partitioned",
                dry_run=False,
                positions_table=TABLE,
                json_output=False,
            )
            _, clearing, _ = open_clearing(request)
            clearing.clear()
            left = len(self._list_stamped_keys(table))
            if left:
                self._outcome.add("clear", [f"{table.name}: {left} rows keep their timestamp"])
        self._compare_all("clear", before)

    def _poll_again(self) -> None:
        watcher = Watcher(
            parse_watch_config(
                common_settings(self._database, self._names) | {"consumer": "poller"}
            )
        )
        watcher.on_batch(lambda _: None)
        watcher.run_once()

    def _roll_back(self) -> None:
        before = self._read_all()
        roll_back(self._database)
        after = read_schema(self._database)
        self._outcome.add("rollback", list_differences(self._before, after))
        self._compare_all("rollback", before)

    def _compare_all(self, stage: str, before: Mapping[str, Mapping[Key, Row]]) -> None:
        for table in self.application.tables:
            rows = self.application.read(table)
            problems = compare_rows(table, before[table.name], list(rows.values()))
            self._outcome.add(stage, problems)


def show_rows(table: TableFacts, rows: Mapping[Key, Row]) -> dict[Key, Row]:
    """Rows as lines and copies have them: microseconds, but all digits of a key."""
    return {key: truncate_row(table, row) for key, row in rows.items()}


def truncate_row(table: TableFacts, row: Row) -> Row:
    """One of them."""
    return {
        name: cell if name in table.key else truncate_timestamps(table.columns[name].type, cell)
        for name, cell in row.items()
    }


def list_differences(before: Schema, after: Schema) -> list[str]:
    """The statements that only one of two schemas has, but those of the product's own tables."""
    old = [text for text in render_schema(before) if not is_own(text)]
    new = [text for text in render_schema(after) if not is_own(text)]
    gone = [f"gone: {text}" for text in old if text not in new]
    return gone + [f"new: {text}" for text in new if text not in old]
