"""The demo's verdict is tested too: what is lost, doubled, reordered or invented is found."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from watcher.cli.demo.verification import (
    DemoVerdict,
    MicroBatch,
    Version,
    measure_latencies,
    percentile,
    select_newest_per_window,
    verify,
)
from watcher.model.window import Window

TRUTH = [
    Version(1, 10, "v1"),
    Version(2, 10, "v2"),
    Version(1, 15, "v3"),
    Version(1, 25, "v4"),
    Version(3, 30, "v5"),
]


def whole(version: Version) -> Version:
    return replace(version, values=(version.key, version.name))


def delivery(*batches: tuple[int, int, list[Version]]) -> list[MicroBatch]:
    return [
        MicroBatch(number, Window(start, end), 100.0, [whole(v) for v in versions])
        for number, (start, end, versions) in enumerate(batches)
    ]


RIGHT = delivery((0, 20, [TRUTH[2], TRUTH[1]]), (20, 30, [TRUTH[3], TRUTH[4]]))
TABLE = {1: (1, "v4"), 2: (2, "v2"), 3: (3, "v5"), 9: (9, "never written by the writer")}


def replace_batch(number: int, versions: list[Version]) -> list[MicroBatch]:
    changed = replace(RIGHT[number], versions=[whole(v) for v in versions])
    return [changed if batch.number == number else batch for batch in RIGHT]


def test_a_right_delivery_is_found_right() -> None:
    verdict = verify(TRUTH, RIGHT, TABLE)
    assert verdict == DemoVerdict(mutations=5, delivered=4)
    assert verdict.right


@pytest.mark.parametrize(
    ("batches", "count"),
    [
        pytest.param(replace_batch(0, [TRUTH[1]]), "missing", id="dropped"),
        pytest.param(replace_batch(1, [TRUTH[3], TRUTH[4], TRUTH[4]]), "duplicates", id="doubled"),
        pytest.param(
            replace_batch(1, [TRUTH[3], TRUTH[4], TRUTH[2]]),
            "duplicates",
            id="doubled across batches",
        ),
        pytest.param(replace_batch(1, [TRUTH[3], TRUTH[4], TRUTH[0]]), "backwards", id="reordered"),
        pytest.param(
            replace_batch(1, [TRUTH[3], TRUTH[4], Version(7, 22, "v9")]), "invented", id="invented"
        ),
        pytest.param(
            replace_batch(1, [TRUTH[3], Version(3, 30, "v6")]), "missing", id="other content"
        ),
    ],
)
def test_a_wrong_delivery_is_found_wrong(batches: list[MicroBatch], count: str) -> None:
    verdict = verify(TRUTH, batches, TABLE)
    assert not verdict.right
    assert getattr(verdict, count) >= 1


def test_a_row_that_differs_from_the_table_in_any_column_is_found() -> None:
    verdict = verify(TRUTH, RIGHT, TABLE | {2: (2, "somebody else's")})
    assert verdict.different_from_table == 1
    assert not verdict.right


def test_a_gap_between_windows_is_found() -> None:
    batches = delivery((0, 20, [TRUTH[2], TRUTH[1]]), (21, 30, [TRUTH[3], TRUTH[4]]))
    assert not verify(TRUTH, batches, TABLE).right


def test_a_commit_after_the_last_window_is_found() -> None:
    assert not verify(TRUTH, RIGHT[:1], TABLE).right


writes = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 60)), max_size=40, unique=True)
cuts = st.lists(st.integers(1, 59), max_size=6, unique=True)


@given(writes, cuts)
def test_windows_deliver_the_newest_version_of_every_key_however_they_are_cut(
    pairs: list[tuple[int, int]], ends: list[int]
) -> None:
    truth = [Version(key, timestamp, f"{key}@{timestamp}") for key, timestamp in pairs]
    bounds = [0, *sorted(ends), 60]
    windows = [Window(a, b) for a, b in pairwise(bounds)]
    contents = select_newest_per_window(truth, windows)
    for window, content in zip(windows, contents, strict=True):
        inside = [v for v in truth if window.start < v.timestamp <= window.end]
        assert content == {
            key: max((v for v in inside if v.key == key), key=lambda v: v.timestamp)
            for key in {v.key for v in inside}
        }
    newest = {key: version for content in contents for key, version in content.items()}
    assert {v.key: v.timestamp for v in newest.values()} == {
        key: max(t for k, t in pairs if k == key) for key, _ in pairs
    }


def test_latencies_are_from_the_commit_of_the_row_to_that_of_its_batch() -> None:
    batch = MicroBatch(0, Window(0, 5_000_000), 5.0, [Version(1, 2_000_000, "a")])
    assert measure_latencies([batch]) == [3.0]
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 3.0
    assert percentile([1.0], 0.99) == 1.0
