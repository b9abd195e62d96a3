"""The judges of the long run, and a run of seconds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from conformance.judges import polled_windows
from conformance.judges.polled_windows import Line
from conformance.truth import Commit, Truth, Write
from endurance.deliveries import Delivery, Rows
from endurance.gauges import Event, count_late_seconds, find_recoveries, grows
from endurance.judge import count_repeats, find_problems, newest_rows
from endurance.load import DELETED
from endurance.run import parse_arguments, run

ENDS = (10, 20, 25, 40)
Deliveries = list[Delivery]


def rows_of(*rows: tuple[int, int, int]) -> Rows:
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def tuples_of(rows: Rows) -> list[tuple[int, int, int]]:
    return [(at, key, version) for at, key, version in rows.tolist()]


TRUTH = rows_of(
    (3, 1, 100),
    (5, 2, 101),
    (5, 3, 101),
    (8, 2, 102),
    (12, 1, 103),
    (14, 3, DELETED),
    (22, 1, 104),
    (31, 3, 105),
    (33, 2, DELETED),
    (40, 4, 106),
)


def deliver_all() -> Deliveries:
    """What a consumer without a fault delivers, by another way than that of the judge."""
    deliveries, start = [], 0
    for end in ENDS:
        newest = {
            key: (at, key, version) for at, key, version in TRUTH.tolist() if start < at <= end
        }
        rows = [row for row in newest.values() if row[2] != DELETED]
        deliveries.append(Delivery(1, start, end, rows_of(*rows)))
        start = end
    return deliveries


def lose_a_row(deliveries: Deliveries) -> None:
    deliveries[0] = replace(deliveries[0], rows=deliveries[0].rows[1:])


def lose_the_last_row(deliveries: Deliveries) -> None:
    deliveries[-1] = replace(deliveries[-1], rows=deliveries[-1].rows[:-1])


def lose_a_window(deliveries: Deliveries) -> None:
    del deliveries[1]


def lose_the_last_window(deliveries: Deliveries) -> None:
    del deliveries[-1]


def deliver_an_older_version(deliveries: Deliveries) -> None:
    rows = [(5, 2, 101) if row[1] == 2 else row for row in tuples_of(deliveries[0].rows)]
    deliveries[0] = replace(deliveries[0], rows=rows_of(*rows))


def deliver_a_row_that_is_gone(deliveries: Deliveries) -> None:
    rows = [*tuples_of(deliveries[1].rows), (5, 3, 101)]
    deliveries[1] = replace(deliveries[1], rows=rows_of(*rows))


def invent_a_row(deliveries: Deliveries) -> None:
    rows = [*tuples_of(deliveries[2].rows), (24, 9, 900)]
    deliveries[2] = replace(deliveries[2], rows=rows_of(*rows))


def swap_windows(deliveries: Deliveries) -> None:
    deliveries[1:3] = [deliveries[2], deliveries[1]]


def go_back_to_no_boundary(deliveries: Deliveries) -> None:
    rows = newest_rows(TRUTH, 8, 25)
    deliveries[2] = Delivery(2, 8, 25, rows)


def judge_rows(deliveries: Deliveries) -> list[str]:
    """What the judges of single rows say."""
    commits = [
        Commit(at, (Write(("T", (key,)), None if version == DELETED else str(version)),))
        for at, key, version in tuples_of(TRUTH)
    ]
    lines = [
        Line(f"{key} {at}", "T", (key,), at, str(version), each.start, each.end)
        for each in deliveries
        for at, key, version in tuples_of(each.rows)
    ]
    return polled_windows.find_problems(lines, Truth(commits), ["T"])


def test_the_judge_finds_nothing_in_a_right_delivery() -> None:
    assert list(find_problems(TRUTH, deliver_all())) == []
    assert judge_rows(deliver_all()) == []
    assert count_repeats(deliver_all()) == 0


@pytest.mark.parametrize(
    "spoil",
    [
        lose_a_row,
        lose_the_last_row,
        lose_a_window,
        lose_the_last_window,
        deliver_an_older_version,
        deliver_a_row_that_is_gone,
        invent_a_row,
        swap_windows,
        go_back_to_no_boundary,
    ],
)
def test_the_judge_finds_what_the_judges_of_single_rows_find(
    spoil: Callable[[Deliveries], None],
) -> None:
    deliveries = deliver_all()
    spoil(deliveries)
    assert list(find_problems(TRUTH, deliveries))
    assert judge_rows(deliveries)


def test_a_window_that_was_cut_off_comes_again() -> None:
    first, second, *others = deliver_all()
    cut = replace(second, rows=second.rows[:0])
    again = [replace(each, instance=2) for each in (second, *others)]
    assert list(find_problems(TRUTH, [first, cut, *again])) == []
    assert count_repeats([first, cut, *again]) == 1


def test_a_recovery_counts_from_the_kill_to_what_was_committed_after_it() -> None:
    points = [(100.5, 0.5), (101.0, 1.0), (102.5, 2.5), (104.0, 4.0), (105.0, 0.5), (106.0, 1.5)]
    kill, other = Event(100.6, "watcher"), Event(105.5, "watcher")
    assert find_recoveries(points, [kill, other]) == [(kill, pytest.approx(4.4)), (other, None)]
    assert count_late_seconds(points, [kill], 10.0) == 0
    assert count_late_seconds(points, [], 10.0) == pytest.approx(3.0)


def test_growth_is_seen_behind_noise() -> None:
    assert grows([100.0, 101, 99, 120, 121, 119, 140, 141, 139], 0.15, 30.0)
    assert not grows([100.0, 140, 99, 100, 141, 99, 100, 141, 99], 0.15, 30.0)


def test_what_was_written_is_delivered_beside_kills_and_schema_changes(tmp_path: Path) -> None:
    options = ["--minutes", "0.25", "--rate", "600", "--keys", "3000"]
    options += ["--kill-every", "4", "--change-every", "3", "--clear-every", "1s"]
    report = run(tmp_path, parse_arguments(options))
    assert report["wrong"] == []
    assert report["mutations"] > 1_000
    assert report["kills"] == {"killed": 2, "server": 1}
