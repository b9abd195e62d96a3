"""The demo's verdict is tested too: what is lost, doubled, reordered or invented is found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.demo.settings import TABLE
from conformance.demo.verification import (
    DemoVerdict,
    MicroBatch,
    measure_latencies,
    percentile,
    verify,
)
from conformance.judges.polled_windows import Line
from conformance.truth import Commit, Truth, Write

Version = tuple[int, int, str]
"""A commit timestamp, a key, the name of a write."""
TRUTH = Truth(
    [
        Commit(at, tuple(Write((TABLE, (key,)), name) for key, name in names.items()))
        for at, names in {
            10: {1: "v1", 2: "v2"},
            15: {1: "v3"},
            25: {1: "v4"},
            30: {3: "v5", 4: "v6"},
        }.items()
    ]
)


def make_batch(start: int, end: int, versions: list[Version]) -> MicroBatch:
    lines = [Line(f"{key} {at}", TABLE, (key,), at, name, start, end) for at, key, name in versions]
    return MicroBatch(start, end, 100.0, tuple(lines), [(key, name) for _, key, name in versions])


FIRST: list[Version] = [(15, 1, "v3"), (10, 2, "v2")]
SECOND: list[Version] = [(25, 1, "v4"), (30, 3, "v5"), (30, 4, "v6")]
RIGHT = [make_batch(0, 20, FIRST), make_batch(20, 30, SECOND)]
TABLE_NOW = {1: (1, "v4"), 2: (2, "v2"), 3: (3, "v5"), 4: (4, "v6"), 9: (9, "never written by it")}


def deliver(first: list[Version], second: list[Version]) -> list[MicroBatch]:
    return [make_batch(0, 20, first), make_batch(20, 30, second)]


def test_a_right_delivery_is_found_right() -> None:
    verdict = verify(TRUTH, RIGHT, TABLE_NOW)
    assert verdict == DemoVerdict(6, 5, [], [], [], [], [], [], [])
    assert verdict.mismatches == []


@pytest.mark.parametrize(
    ("batches", "kind"),
    [
        pytest.param(deliver(FIRST[1:], SECOND), "missing", id="dropped"),
        pytest.param(deliver(FIRST, [*SECOND, SECOND[0]]), "duplicates", id="doubled"),
        pytest.param(deliver(FIRST, [*SECOND, FIRST[0]]), "duplicates", id="in two batches"),
        pytest.param(deliver(FIRST, [*SECOND, (10, 1, "v1")]), "backwards", id="reordered"),
        pytest.param(deliver(FIRST, [*SECOND, (10, 1, "v1")]), "invented", id="replaced"),
        pytest.param(deliver(FIRST, [*SECOND, (22, 7, "v9")]), "wrong", id="never written"),
        pytest.param(deliver(FIRST, [*SECOND[:2], (30, 4, "v5")]), "wrong", id="other content"),
    ],
)
def test_a_wrong_delivery_is_found_wrong(batches: list[MicroBatch], kind: str) -> None:
    verdict = verify(TRUTH, batches, TABLE_NOW)
    assert len(getattr(verdict, kind)) == 1
    assert verdict.mismatches


def test_a_row_that_differs_from_the_table_in_any_column_is_found() -> None:
    verdict = verify(TRUTH, RIGHT, TABLE_NOW | {2: (2, "somebody else's")})
    assert len(verdict.different_from_table) == 1
    assert verdict.mismatches


def test_a_gap_between_windows_is_found() -> None:
    batches = [RIGHT[0], make_batch(21, 30, SECOND)]
    assert len(verify(TRUTH, batches, TABLE_NOW).windows) == 1


def test_a_commit_after_the_last_window_is_found() -> None:
    assert len(verify(TRUTH, RIGHT[:1], TABLE_NOW).windows) == len(SECOND)


def test_a_transaction_in_two_windows_is_found() -> None:
    batches = [RIGHT[0], make_batch(20, 30, SECOND[:2]), make_batch(30, 31, SECOND[2:])]
    (text,) = verify(TRUTH, batches, TABLE_NOW).windows
    assert text == "the transaction at 30 is in windows that end at [30, 31]"


def test_latencies_are_from_the_commit_of_the_row_to_that_of_its_batch() -> None:
    batch = replace(make_batch(0, 5_000_000, [(2_000_000, 1, "a")]), committed_at=5.0)
    assert measure_latencies([batch]) == [3.0]
    assert percentile([1.0, 2.0, 3.0, 4.0], 0.5) == 3.0
    assert percentile([1.0], 0.99) == 1.0
