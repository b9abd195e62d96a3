"""The lag of the last day: a ring of five minutes each, the worst of each."""

from __future__ import annotations

from dataclasses import replace

from fixtures.bad_days import NOW, consumer, ended, overview_of, table
from hypothesis import given
from hypothesis import strategies as st

from watcher.overview.lag_history import SLOT_MICROS, SLOTS_MAX, LagHistory

LAGS = st.lists(st.tuples(st.integers(0, 700), st.none() | st.floats(0, 1e6)), max_size=60)


@given(LAGS)
def test_each_five_minutes_have_their_worst_lag(read: list[tuple[int, float | None]]) -> None:
    history, expected, at = LagHistory(), dict[int, float](), NOW
    for seconds, lag in read:
        at += seconds * 1_000_000
        one = consumer(table(lag_seconds=lag))
        history.record(replace(overview_of([one], []), read_at=at))
        if lag is not None:
            slot = at // SLOT_MICROS
            expected[slot] = max(lag, expected.get(slot, lag))
    lags = history.find("me")
    assert {each.at // SLOT_MICROS: each.seconds for each in lags} == expected
    assert [each.at for each in lags] == sorted(each.at for each in lags)


def test_a_day_is_kept_and_one_that_has_gone_is_forgotten() -> None:
    history = LagHistory()
    for number in range(SLOTS_MAX + 10):
        at = NOW + number * SLOT_MICROS
        history.record(replace(overview_of([consumer()], []), read_at=at))
    assert len(history.find("me")) == SLOTS_MAX
    assert history.find("me")[-1].at - history.find("me")[0].at == (SLOTS_MAX - 1) * SLOT_MICROS
    history.record(overview_of([ended()], []))
    assert len(history.find("me")) == SLOTS_MAX
    history.record(overview_of([], []))
    assert history.find("me") == ()
