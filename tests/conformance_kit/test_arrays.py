"""The judge of millions of rows: what a broken consumer does to a stream is found, to the row, and
wherever the judges of single rows find it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.load.records import DELIVERED, WINDOWS, WRITTEN, Records
from conformance.judges.arrays import verify
from conformance.judges.polled_windows import Line, find_problems
from conformance.truth import Commit, Truth, Write

ROWS = 200_000
KEYS = 50_000
WINDOW_MICROS = 1_000_000


def written_rows() -> Records:
    """Each key is written four times, 10 microseconds after the one before it: 2 s in all."""
    rows = np.zeros(ROWS, WRITTEN)
    rows["key"] = np.arange(ROWS) % KEYS
    rows["version"] = np.arange(ROWS)
    rows["commit"] = 1_000 + 10 * np.arange(ROWS)
    return rows


def windows() -> Records:
    rows = np.zeros(2, WINDOWS)
    rows["start"] = [0, WINDOW_MICROS]
    rows["end"] = [WINDOW_MICROS, 3 * WINDOW_MICROS]
    return rows


def deliver_newest(written: Records) -> Records:
    """What a perfect consumer gets: the newest version of each key in each window."""
    rows = np.zeros(len(written), DELIVERED)
    for name in ("table", "key", "version", "commit"):
        rows[name] = written[name]
    rows["at"] = rows["commit"] // WINDOW_MICROS * WINDOW_MICROS + WINDOW_MICROS + 1
    first = rows[rows["commit"] <= WINDOW_MICROS]
    second = rows[rows["commit"] > WINDOW_MICROS]
    return np.concatenate([newest(first), newest(second)])


def newest(rows: Records) -> Records:
    _, places = np.unique(rows["key"][::-1], return_index=True)
    return rows[::-1][np.sort(places)]


@pytest.fixture(scope="module")
def written() -> Records:
    return written_rows()


@pytest.fixture(scope="module")
def delivered(written: Records) -> Records:
    return deliver_newest(written)


def test_a_change_stream_must_deliver_every_version(written: Records, delivered: Records) -> None:
    newest_only = verify(written, delivered, windows(), every_version=True)
    assert newest_only.missing == len(written) - len(delivered)
    assert newest_only.superseded == 0


def test_a_perfect_consumer_is_exact(written: Records, delivered: Records) -> None:
    verdict = verify(written, delivered, windows())
    assert verdict.exact
    assert verdict.superseded == ROWS - 2 * KEYS
    assert len(delivered) == 2 * KEYS


@pytest.mark.parametrize("place", [0, 12_345, 99_999])
def test_one_dropped_row_in_a_hundred_thousand_is_missing(
    written: Records, delivered: Records, place: int
) -> None:
    verdict = verify(written, np.delete(delivered, place), windows())
    assert verdict.missing == 1
    assert not verdict.lost_nothing


def test_without_windows_the_newest_version_of_a_key_must_still_come(
    written: Records, delivered: Records
) -> None:
    none = np.zeros(0, WINDOWS)
    assert verify(written, delivered, none).exact
    assert verify(written, np.delete(delivered, len(delivered) - 1), none).missing == 1


def test_a_row_that_comes_twice_is_a_duplicate(written: Records, delivered: Records) -> None:
    again = np.concatenate([delivered, delivered[777:778]])
    verdict = verify(written, again, windows())
    assert (verdict.duplicates, verdict.missing) == (1, 0)
    assert verdict.lost_nothing
    assert not verdict.exact


def test_a_version_that_was_never_written_is_invented(written: Records, delivered: Records) -> None:
    more = delivered[:1].copy()
    more["commit"] += 1
    assert verify(written, np.concatenate([delivered, more]), windows()).invented == 1


def test_the_content_of_another_version_is_wrong(written: Records, delivered: Records) -> None:
    mixed = delivered.copy()
    mixed["version"][5] += 1
    assert verify(written, mixed, windows()).wrong == 1


def test_an_older_version_after_a_newer_one_is_reordered(
    written: Records, delivered: Records
) -> None:
    mixed = delivered.copy()
    mixed["at"][0] += 10 * WINDOW_MICROS
    verdict = verify(written, mixed, windows())
    assert (verdict.reordered, verdict.missing) == (1, 0)


def test_a_whole_window_that_was_skipped_is_missing(written: Records, delivered: Records) -> None:
    late = delivered["commit"] > WINDOW_MICROS
    verdict = verify(written, delivered[late], windows()[1:])
    assert verdict.missing == np.count_nonzero(written["commit"] <= WINDOW_MICROS)


def test_nothing_delivered_is_everything_missing(written: Records) -> None:
    verdict = verify(written, np.zeros(0, DELIVERED), np.zeros(0, WINDOWS))
    assert verdict.missing == KEYS


def test_nothing_written_and_nothing_delivered_is_exact() -> None:
    assert verify(np.zeros(0, WRITTEN), np.zeros(0, DELIVERED), np.zeros(0, WINDOWS)).exact


Version = tuple[int, int, int]
"""A commit timestamp, a key, a version."""
FAULTS = ("none", "lost", "twice", "other content", "invented", "stale")


def deliver_spoiled(
    written: Sequence[Version], ends: Sequence[int], fault: str, place: int
) -> list[tuple[Version, int, int]]:
    """What a consumer delivers of windows up to each end, with a fault somewhere."""
    rows: list[tuple[Version, int, int]] = []
    for start, end in zip([0, *ends], ends, strict=False):
        newest = {each[1]: each for each in written if start < each[0] <= end}
        rows += [(each, start, end) for each in newest.values()]
    if not rows:
        return rows
    place %= len(rows)
    (at, key, version), start, end = rows[place]
    if fault == "lost":
        del rows[place]
    elif fault == "twice":
        rows.insert(place, rows[place])
    elif fault == "other content":
        rows[place] = ((at, key, version + 1), start, end)
    elif fault == "invented":
        rows.append(((at, 100, version), start, end))
    elif fault == "stale":
        older = next((each for each in written if each[1] == key), rows[place][0])
        rows.append((older, start, end))
    return rows


@given(
    st.lists(st.tuples(st.integers(1, 50), st.integers(0, 4)), min_size=1, unique=True),
    st.sets(st.integers(1, 49), max_size=4),
    st.sampled_from(FAULTS),
    st.integers(0, 1_000),
)
def test_it_finds_what_the_judges_of_single_rows_find(
    pairs: list[tuple[int, int]], cuts: set[int], fault: str, place: int
) -> None:
    versions = [(at, key, 10 * number) for number, (at, key) in enumerate(sorted(pairs))]
    ends = [*sorted(cuts), 50]
    rows = deliver_spoiled(versions, ends, fault, place)
    truth = Truth([Commit(at, (Write(("T", (key,)), str(v)),)) for at, key, v in versions])
    lines = [Line(f"{k} {at}", "T", (k,), at, str(v), *span) for (at, k, v), *span in rows]
    verdict = verify(
        np.array([(0, k, v, at, 0, 0, 0) for at, k, v in versions], WRITTEN),
        np.array([(0, k, v, at, n) for n, ((at, k, v), *_) in enumerate(rows)], DELIVERED),
        np.array([(0, *span) for span in zip([0, *ends], ends, strict=False)], WINDOWS),
    )
    assert verdict.exact == (find_problems(lines, truth, ["T"], crashes=0) == [])
    assert verdict.exact == (fault == "none")
