"""A slow sink makes progress: windows are as large as it can deliver in a while."""

from __future__ import annotations

import time
from types import SimpleNamespace

import pytest
from fixtures.singers import SINGERS, make_watchable
from google.cloud.spanner_v1.database import Database
from hypothesis import given
from hypothesis import strategies as st

from watcher import Change, Watcher
from watcher.runners.delivery import pace, windows
from watcher.runners.delivery.pace import ROWS_FIRST, WINDOW_SECONDS, Pace

ROWS = 60


@given(
    st.integers(1, 10**6),
    st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 10**5), st.booleans())),
)
def test_a_window_has_at_least_one_row_and_no_more_than_configured(
    rows_max: int, windows: list[tuple[int, float, bool]]
) -> None:
    pace = Pace(rows_max)
    assert pace.rows <= ROWS_FIRST
    for rows, seconds, whole in windows:
        before = pace.rows
        pace.note(rows, seconds, whole)
        assert 1 <= pace.rows <= rows_max
        if rows and seconds > WINDOW_SECONDS:
            assert pace.rows <= max(1, rows * WINDOW_SECONDS / seconds)
        elif not whole:
            assert pace.rows == before


@pytest.mark.ddl(SINGERS)
def test_a_slow_sink_saves_its_position_again_and_again(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_watchable(database)
    for key in range(ROWS):
        with database.batch() as batch:
            batch.insert("Singers", ("SingerId", "LastName"), [(key, "name")])
    now = [0.0]
    monkeypatch.setattr(
        windows, "time", SimpleNamespace(monotonic=lambda: now[0], time_ns=time.time_ns)
    )
    monkeypatch.setattr(pace, "ROWS_FIRST", 20)
    monkeypatch.setattr(pace, "WINDOW_SECONDS", 5.0)
    delivered: list[Change] = []

    def take_a_second(change: Change) -> None:
        """A second a change; the process dies in the 41st."""
        now[0] += 1
        if len(delivered) == 40:
            raise KeyboardInterrupt
        delivered.append(change)

    watcher = Watcher(
        database=database.name, tables=["Singers"], consumer="slow", start="earliest", refresh=0
    )
    watcher.on_change(take_a_second)
    with pytest.raises(KeyboardInterrupt):
        watcher.run_once()
    before = {change.id for change in delivered}
    assert len(before) == 40, "the first window must not come again for ever"
    again: list[Change] = []
    following = Watcher(database=database.name, tables=["Singers"], consumer="slow", refresh=0)
    following.on_change(again.append)
    following.run_once()
    repeated = [change for change in again if change.id in before]
    assert len(repeated) <= 5, "only the window under way comes again"
    assert len(before | {change.id for change in again}) == ROWS
