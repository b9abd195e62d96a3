"""The schedule and the choices of writers: what makes a load repeatable, and its log a truth."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load.arrivals import arrivals
from benchmarks.load.choices import Choices
from benchmarks.load.workload import KeyDistribution, Workload
from benchmarks.load.writer import rows_of


def test_a_steady_load_is_even() -> None:
    due = arrivals(Workload(transactions=10, seconds=3))
    assert len(due) == 30
    assert np.allclose(np.diff(due), 0.1)


def test_a_ramp_ends_at_its_last_rate() -> None:
    due = arrivals(Workload(transactions=10, until=30, profile="ramp", seconds=10))
    assert len(due) == 200
    assert np.count_nonzero(due < 5) == pytest.approx(75, abs=1)
    assert 1 / np.diff(due)[-1] == pytest.approx(30, rel=0.05)


def test_steps_rise_one_after_another() -> None:
    due = arrivals(Workload(transactions=10, until=30, profile="steps", steps=3, seconds=6))
    assert [np.count_nonzero((due >= a) & (due < a + 2)) for a in (0, 2, 4)] == [20, 40, 60]


@given(
    st.floats(1, 500), st.floats(1, 500), st.sampled_from(["steady", "ramp", "steps"]), st.data()
)
def test_arrivals_ascend_and_stay_within_the_time(
    first: float, last: float, profile: str, data: st.DataObject
) -> None:
    seconds = data.draw(st.floats(1, 20))
    load = Workload(transactions=first, until=last, profile=profile, seconds=seconds)
    due = arrivals(load)
    assert np.all(np.diff(due) >= 0)
    assert not len(due) or (due[0] >= 0 and due[-1] <= seconds)


@pytest.mark.parametrize("keys", ["uniform", "zipf", "sequential"])
@pytest.mark.parametrize("inserts", [0.0, 0.5, 1.0])
def test_writers_never_choose_the_same_key_and_versions_are_unique(
    keys: KeyDistribution, inserts: float
) -> None:
    load = Workload(writers=3, inserts=inserts, keys=keys, rows=300, mutations=20)
    seen: list[set[int]] = []
    versions: list[int] = []
    for writer in range(load.writers):
        choices = Choices(load, writer)
        transactions = [choices.next() for _ in range(50)]
        seen.append({key for t in transactions for key in t.keys.tolist()})
        versions += [v for t in transactions for v in t.versions.tolist()]
    assert len(set.union(*seen)) == sum(map(len, seen))
    assert len(versions) == len(set(versions))


def test_inserted_keys_are_new_and_updated_ones_are_there() -> None:
    load = Workload(inserts=0.5, rows=100, mutations=10)
    choices = Choices(load, 0)
    inserted: set[int] = set()
    for _ in range(200):
        transactions = choices.next()
        keys = set(transactions.keys.tolist())
        assert len(keys) == len(transactions.keys)
        if transactions.insert:
            assert min(keys) >= load.rows
            assert not keys & inserted
            inserted |= keys
        else:
            assert keys <= set(range(load.rows))


def test_zipf_prefers_few_keys() -> None:
    def share_of_hottest(keys: KeyDistribution) -> float:
        choices = Choices(Workload(inserts=0, keys=keys, rows=10_000, mutations=10), 0)
        all_keys = np.concatenate([choices.next().keys for _ in range(500)])
        return float(np.max(np.unique(all_keys, return_counts=True)[1]) / len(all_keys))

    assert share_of_hottest("zipf") > 10 * share_of_hottest("uniform")


def test_the_same_seed_writes_the_same() -> None:
    first, second = Choices(Workload(), 0), Choices(Workload(), 0)
    for _ in range(20):
        mine, theirs = first.next(), second.next()
        assert mine.keys.tolist() == theirs.keys.tolist()
        assert mine.insert == theirs.insert


def test_tables_take_turns() -> None:
    choices = Choices(Workload(tables=3), 0)
    assert [choices.next().table for _ in range(6)] == [0, 1, 2, 0, 1, 2]


def test_rows_have_their_size_and_tell_their_version() -> None:
    transactions = Choices(Workload(), 0).next()
    rows = rows_of(transactions, 100)
    assert all(len(payload) == 100 and payload.startswith(f"{v} ") for _, v, payload in rows)


def test_a_burst_takes_the_next_rows_and_the_others_stay_within_the_latest() -> None:
    load = Workload(rows=1_000, burst=100, burst_every=4, mutations=10)
    choices = Choices(load, 0)
    transactions = [choices.next() for _ in range(12)]
    assert [len(t.keys) == 100 for t in transactions] == [n % 4 == 0 for n in range(12)]
    for number, transaction in enumerate(transactions):
        burst = transactions[number // 4 * 4]
        assert set(transaction.keys.tolist()) <= set(burst.keys.tolist())
        assert not transaction.insert
    assert len({key for t in transactions[::4] for key in t.keys.tolist()}) == 300
    versions = [v for t in transactions for v in t.versions.tolist()]
    assert len(set(versions)) == len(versions)


def test_a_burst_needs_rows_enough() -> None:
    with pytest.raises(ValueError, match="enough rows for each writer"):
        Workload(rows=100, burst=101)
    with pytest.raises(ValueError, match="one table"):
        Workload(rows=100, burst=10, tables=2)
