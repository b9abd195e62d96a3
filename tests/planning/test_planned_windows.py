"""Windows of a random database, planned without a server: nothing is lost, nothing goes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from watcher.model.window import BEGINNING, Window
from watcher.planning.limits import WindowLimit
from watcher.planning.windows import (
    FindCut,
    FindFirstChange,
    Look,
    LookAt,
    ReadSchema,
    Request,
    Watched,
    WindowPlan,
    answer,
    needs_window,
    plan_window,
)

LAST = 40
TABLES = ("A", "B", "C")
STEPS_MAX = 500


@dataclass(frozen=True)
class Schema:
    """The tables of an epoch. One object an epoch, though another may have the same tables."""

    tables: frozenset[str]
    broken: bool
    """Whether its tables cannot be read."""


@dataclass(frozen=True)
class Database:
    """Commits (a table, a key, and whether the row is there afterwards) and schemas by timestamp.
    Versions and schemas from before ``kept`` are gone."""

    commits: Mapping[int, tuple[str, int, bool]]
    schemas: Mapping[int, Schema]
    kept: int

    def schema_at(self, at: int) -> Schema:
        return self.schemas[max(each for each in self.schemas if each <= at)]

    def rows_at(self, table: str, at: int) -> dict[int, int]:
        """The commit timestamp of each row that is there; a table that is not there has none."""
        rows: dict[int, int] = {}
        for time in range(at + 1):
            if table not in self.schema_at(time).tables:
                rows.clear()
            elif time in self.commits and self.commits[time][0] == table:
                _, key, there = self.commits[time]
                rows.pop(key, None)
                if there:
                    rows[key] = time
        return rows

    def rows_in(self, table: str, window: Window) -> dict[int, int]:
        """The rows that a window holds, as of its end."""
        rows = self.rows_at(table, window.end)
        return {key: at for key, at in rows.items() if at > window.start}


@dataclass
class Consumer:
    """Answers the questions of plans, and keeps what was handed over."""

    database: Database
    limit: WindowLimit
    latest: Schema
    now: int = 0
    positions: dict[str, int] = field(default_factory=dict)
    seen: dict[tuple[str, int], int] = field(default_factory=dict)
    handed_to: dict[str, int] = field(default_factory=dict)
    """Up to where rows were handed over, also by windows whose end was not saved."""

    def watch(self, schema: Schema) -> Watched[Schema]:
        starts = {name: self.positions.get(name, BEGINNING) for name in sorted(schema.tables)}
        return Watched(schema, starts)

    def look(self, watched: Watched[Schema], at: int) -> Look:
        changed = {
            name
            for name, start in watched.positions.items()
            if start < at and self.database.rows_in(name, Window(start, at))
        }
        return Look(max(at, *watched.positions.values()), frozenset(changed))

    # Answers.

    def look_at(self, question: LookAt[Schema]) -> Look:
        if question.at < self.database.kept:
            return Look(question.at, question.assumed)
        return self.look(question.watched, question.at)

    def read_schema(self, question: ReadSchema) -> Watched[Schema] | None:
        at = question.at if question.at >= self.database.kept else self.now
        schema = self.database.schema_at(at)
        if schema.broken:
            assert not question.required, "a test does not end where nothing can be read"
            return None
        return self.watch(schema)

    def find_first_change(self, question: FindFirstChange[Schema]) -> int:
        rows = self.list_changes(question.windows)
        return min(rows, default=min(window.end for window in question.windows.values()))

    def find_cut(self, question: FindCut[Schema]) -> int:
        rows, end = (
            self.list_changes(question.windows),
            max(window.end for window in question.windows.values()),
        )
        return rows[question.limit.rows - 1] if len(rows) > question.limit.rows else end

    def list_changes(self, windows: Mapping[str, Window]) -> list[int]:
        return sorted(
            at
            for name, window in windows.items()
            for at in self.database.rows_in(name, window).values()
        )

    # Windows.

    def step(self, until: int | None, saves: bool, advances: bool) -> WindowPlan[Schema] | None:
        """Delivers a window; its end is saved unless the consumer fails before that."""
        watched = self.watch(self.latest)
        request = Request(watched, self.limit, until, advances, self.handed_to)
        look = self.look(watched, self.now)
        if not needs_window(request, look):
            return None
        plan = answer(plan_window(request, look), self)
        self.check(plan, until)
        for name, window in plan.windows.items():
            self.hand_over(name, window)
        if saves:
            self.positions |= dict.fromkeys(plan.watched.positions, plan.end)
        self.latest = plan.latest.schema
        return plan

    def hand_over(self, table: str, window: Window) -> None:
        """Rows as they are at the window's end, or as they are now."""
        read_at = window.end if window.end >= self.database.kept else self.now
        for key, at in self.database.rows_at(table, read_at).items():
            if window.start < at <= window.end:
                assert self.seen.get((table, key), 0) <= at, "an older version came later"
                self.seen[table, key] = at
        self.handed_to[table] = max(self.handed_to.get(table, 0), window.end)

    def check(self, plan: WindowPlan[Schema], until: int | None) -> None:
        """What holds of every plan."""
        assert plan.end <= self.now
        assert plan.end <= plan.wanted
        if until is not None:
            latest = (until, *self.handed_to.values(), *self.positions.values())
            assert plan.end <= max(latest)
        if plan.end >= self.database.kept:
            assert plan.watched.schema is self.database.schema_at(plan.end)
            missed = self.look(plan.watched, plan.end).changed - plan.changed
            assert not missed, f"{missed} have changed"


@st.composite
def databases(draw: st.DrawFn) -> Database:
    """Schemas that come and go, in which the last one can be read, and commits in their tables."""
    epochs = draw(st.sets(st.integers(1, LAST - 1), max_size=4))
    schemas = {
        at: Schema(
            frozenset(draw(st.sets(st.sampled_from(TABLES), min_size=1))),
            at not in (0, max(epochs, default=0)) and draw(st.booleans()),
        )
        for at in sorted({0, *epochs})
    }
    commits: dict[int, tuple[str, int, bool]] = {}
    for at in sorted(draw(st.sets(st.integers(1, LAST), max_size=25))):
        tables = schemas[max(each for each in schemas if each <= at)].tables
        table = draw(st.sampled_from(sorted(tables)))
        commits[at] = (table, draw(st.integers(0, 3)), draw(st.booleans()))
    return Database(commits, schemas, draw(st.sampled_from((0, 0, LAST // 2))))


@settings(max_examples=300)
@given(databases(), st.integers(0, 3), st.integers(0, 9), st.data())
def test_nothing_is_lost_and_no_row_goes_back(
    database: Database, rows: int, span: int, data: st.DataObject
) -> None:
    """Windows while rows are written and schemas change, with failures before ends are saved; then
    without either until nothing is left: every row that is there was seen in its newest version."""
    consumer = Consumer(database, WindowLimit(rows=rows, span_micros=span), database.schemas[0])
    while consumer.now < LAST:
        consumer.now = min(LAST, consumer.now + data.draw(st.integers(1, 9)))
        until = data.draw(st.none() | st.integers(0, consumer.now))
        ends = consumer.now if until is None else until
        if not database.schema_at(ends).broken and not database.schema_at(consumer.now).broken:
            consumer.step(until, saves=data.draw(st.booleans()), advances=data.draw(st.booleans()))
    last = database.schema_at(LAST)
    for _ in range(STEPS_MAX):
        plan = consumer.step(None, saves=True, advances=True)
        assert plan is not None
        if plan.end == LAST and not plan.changed and consumer.latest is last:
            break
    else:
        pytest.fail("it does not come to an end")
    for table in last.tables:
        for key, at in database.rows_at(table, LAST).items():
            assert consumer.seen.get((table, key)) == at, f"row {key} of {table} was lost"
