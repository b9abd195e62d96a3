"""The judges are judged: a right output passes, and a dropped, a doubled, a reordered, an invented,
a torn or a late row is found wherever it is, each by the judge that is there for it."""

from __future__ import annotations

import os
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from conformance.judges.polled_windows import (
    Delivery,
    Line,
    deliveries,
    find_differences,
    find_disordered,
    find_foreign,
    find_gaps,
    find_invented,
    find_misnamed,
    find_missing,
    find_needless,
    find_problems,
    find_repeated,
    find_rewound,
    find_scattered,
    find_skipped,
    find_torn,
    settle_windows,
)
from conformance.truth import CHILD, PARENT, Commit, History, Row, State, Truth, Write
from nemesis.perfect import TABLES, Recorded, poll_windows, recordings

A, B = (PARENT, (1,)), ("Events", ("b",))
EXAMPLES = int(os.environ.get("NEMESIS_EXAMPLES", "40"))


def truth() -> Truth:
    return Truth(
        [
            Commit(5, (Write(A, "a1"), Write(B, "b1"))),
            Commit(7, (Write(A, "a2"),)),
            Commit(12, (Write(A, "a3"), Write(B, "b2"))),
            Commit(15, (Write(B, None),)),
        ]
    )


def history() -> History:
    return truth().history()


def line(row: Row, at: int, version: str, start: int, end: int) -> Line:
    return Line(f"{row}{at}", row[0], row[1], at, version, start, end)


def output() -> list[Line]:
    return [
        line(B, 5, "b1", 0, 10),
        line(A, 7, "a2", 0, 10),
        line(A, 12, "a3", 10, 13),
        line(B, 12, "b2", 10, 13),
    ]


def problems(recorded: Recorded, lines: list[Line]) -> list[str]:
    return find_problems(
        lines,
        recorded.truth,
        TABLES,
        transactions=True,
        snapshots=recorded.snapshots(),
        crashes=recorded.crashes,
    )


# A right output.


@settings(max_examples=EXAMPLES)
@given(recordings())
def test_a_right_output_is_accepted(recorded: Recorded) -> None:
    assert problems(recorded, list(recorded.lines)) == []


def test_a_window_that_was_cut_off_comes_again_with_the_same_end_or_a_later_one() -> None:
    for cut in (1, 2):
        lines, crashes = poll_windows(history(), [10, 13, 20], [cut, 0, 0])
        assert crashes == 1
        assert [w.complete for w in deliveries(lines)][:2] == [False, True]
        assert find_problems(lines, truth(), TABLES) == []


def test_a_window_that_comes_again_may_come_in_another_order() -> None:
    first, second, *others = output()
    right = [[first], [second], [first, second], [second, first]]
    for cut in right:
        for again in ([first, second], [second, first]):
            lines = [*cut, *again, *others]
            assert find_problems(lines, truth(), TABLES) == [], (cut, again)
            assert find_problems(lines, truth(), TABLES, crashes=0)
    assert find_problems([first, first, *others], truth(), TABLES)


def test_a_row_that_was_deleted_before_the_windows_end_need_not_come() -> None:
    assert find_problems([line(A, 12, "a3", 0, 20)], truth(), TABLES) == []


def test_deletes_of_a_parent_take_its_children() -> None:
    child = (CHILD, (1, 7))
    commits = Truth([Commit(5, (Write(A, "a"), Write(child, "c"))), Commit(9, (Write(A, None),))])
    assert commits.history()[child] == [State(5, "c"), State(9, None)]


def test_a_window_that_was_cut_off_may_come_again_without_a_row() -> None:
    commits = Truth([*truth().commits, Commit(16, (Write(A, None),))])
    cut_off = [line(B, 5, "b1", 0, 10)]
    assert find_problems(cut_off, commits, TABLES) == []
    assert find_problems([*cut_off, line(A, 18, "a4", 17, 20)], commits, TABLES)
    commits.add(Commit(18, (Write(A, "a4"),)))
    assert find_problems([*cut_off, line(A, 18, "a4", 17, 20)], commits, TABLES) == []
    assert find_problems([*cut_off, line(A, 18, "a4", 15, 20)], commits, TABLES)


# One wrong row, anywhere in any right output.


def windows_delivered_once(lines: list[Line]) -> list[Delivery]:
    """The windows of more than one row that were not cut off before, and that the next one shows
    to be complete."""
    windows = deliveries(lines)
    again = {w.start for w in windows if not w.complete}
    starts = {w.start for w in windows}
    return [w for w in windows if w.start not in again and len(w.lines) > 1 and w.end in starts]


def crashes_show(recorded: Recorded) -> bool:
    """Whether every window that was cut off came again with rows."""
    return sum(not w.complete for w in deliveries(recorded.lines)) == recorded.crashes


@settings(max_examples=EXAMPLES)
@given(recordings(), st.data())
def test_a_dropped_row_is_found(recorded: Recorded, data: st.DataObject) -> None:
    lines = list(recorded.lines)
    whole = windows_delivered_once(lines)
    assume(whole)
    lines.remove(data.draw(st.sampled_from(data.draw(st.sampled_from(whole)).lines)))
    assert problems(recorded, lines)


@settings(max_examples=EXAMPLES)
@given(recordings(), st.data())
def test_a_doubled_row_is_found(recorded: Recorded, data: st.DataObject) -> None:
    lines = list(recorded.lines)
    whole = windows_delivered_once(lines)
    assume(whole and crashes_show(recorded))
    line = data.draw(st.sampled_from(data.draw(st.sampled_from(whole)).lines))
    lines.insert(data.draw(st.integers(lines.index(line) + 1, len(lines))), line)
    assert problems(recorded, lines)


@settings(max_examples=EXAMPLES)
@given(recordings(), st.data())
def test_a_window_that_comes_twice_without_a_crash_is_found(
    recorded: Recorded, data: st.DataObject
) -> None:
    windows = deliveries(recorded.lines)
    assume(windows and crashes_show(recorded))
    place = data.draw(st.integers(0, len(windows) - 1))
    doubled = [*windows[: place + 1], *windows[place:]]
    assert problems(recorded, [line for window in doubled for line in window.lines])


@settings(max_examples=EXAMPLES)
@given(recordings(), st.data())
def test_a_late_row_is_found(recorded: Recorded, data: st.DataObject) -> None:
    """As a row of its own window, or of a later one: then its transaction may be torn."""
    lines = list(recorded.lines)
    windows = [w for w in deliveries(lines) if w.complete]
    whole = [w for w in windows_delivered_once(lines) if w != windows[-1]]
    assume(whole)
    window = data.draw(st.sampled_from(whole))
    late = data.draw(st.sampled_from(window.lines))
    later = data.draw(st.sampled_from([w for w in windows if w.start >= window.end]))
    lines.remove(late)
    place = lines.index(later.lines[-1]) + 1
    moved = replace(late, start=later.start, end=later.end)
    assert problems(recorded, [*lines[:place], late, *lines[place:]])
    assert problems(recorded, [*lines[:place], moved, *lines[place:]])


@settings(max_examples=EXAMPLES)
@given(recordings(), st.data())
def test_a_reordered_row_is_found(recorded: Recorded, data: st.DataObject) -> None:
    lines = list(recorded.lines)
    whole = [w for w in deliveries(lines) if w.complete]
    assume(len(whole) > 1)
    early = data.draw(st.integers(0, len(whole) - 2))
    late = data.draw(st.integers(early + 1, len(whole) - 1))
    earlier, later = whole[early].lines[0], whole[late].lines[0]
    swapped = [{earlier: later, later: earlier}.get(each, each) for each in lines]
    assert problems(recorded, swapped)


@settings(max_examples=EXAMPLES)
@given(recordings(), st.data())
def test_an_invented_row_is_found(recorded: Recorded, data: st.DataObject) -> None:
    lines = list(recorded.lines)
    assume(lines)
    place = data.draw(st.integers(0, len(lines) - 1))
    before = lines[place]
    wrong = data.draw(
        st.sampled_from(
            [
                replace(before, version="never written"),
                replace(before, key=("nobody",)),
                replace(before, at=before.at + 1),
                replace(before, at=before.at - 1),
                replace(before, start=before.at),
                replace(before, end=before.at - 1),
            ]
        )
    )
    assert problems(recorded, [*lines[:place], wrong, *lines[place + 1 :]])
    assert problems(recorded, [*lines[:place], before, wrong, *lines[place + 1 :]])


@settings(max_examples=EXAMPLES)
@given(recordings(), st.data())
def test_an_older_version_in_place_of_the_newest_is_found(
    recorded: Recorded, data: st.DataObject
) -> None:
    lines, history = list(recorded.lines), recorded.truth.history()
    older = {
        place: [
            s for s in history[each.row] if each.start < s.at < each.at and s.version is not None
        ]
        for place, each in enumerate(lines)
    }
    places = [place for place, states in older.items() if states]
    assume(places)
    place = data.draw(st.sampled_from(places))
    state = data.draw(st.sampled_from(older[place]))
    lines[place] = replace(lines[place], at=state.at, version=str(state.version), id="another")
    assert problems(recorded, lines)


@settings(max_examples=EXAMPLES)
@given(recordings(), st.data())
def test_a_wrong_table_is_found(recorded: Recorded, data: st.DataObject) -> None:
    snapshots = recorded.snapshots()
    windows = settle_windows(deliveries(recorded.lines), recorded.truth.history(), TABLES)
    ends = sorted(window.end for window in windows if window.complete and snapshots[window.end])
    assume(ends)
    end = data.draw(st.sampled_from(ends))
    row = data.draw(st.sampled_from(sorted(snapshots[end], key=repr)))
    wrong = snapshots | {end: snapshots[end] | {row: "something else"}}
    assert find_problems(recorded.lines, recorded.truth, TABLES, snapshots=wrong)


# Faults that watchers had.


def test_a_window_that_lacks_what_was_deleted_between_its_end_and_now_is_found() -> None:
    """Only tables that have changes now were read at the end of a window that was cut."""
    lines = [row for row in output() if row != line(B, 12, "b2", 10, 13)]
    windows = settle_windows(deliveries(lines), history(), TABLES)
    assert list(find_missing(windows, history(), TABLES))


def test_two_watchers_that_deliver_at_once_are_found() -> None:
    """One went on delivering after its lease had run out."""
    rest = output()
    early = [replace(row, end=8) for row in rest[:2]]
    assert not find_problems([*early, *rest], truth(), TABLES), "as after a crash"
    mixed = [rest.pop(0), early[0], rest.pop(0), early[1], *rest]
    assert find_problems(mixed, truth(), TABLES)


# Each judge by itself.


def test_the_judge_of_completeness_finds_every_row() -> None:
    for number in range(4):
        rows = output()
        del rows[number]
        assert list(find_missing(deliveries(rows), history(), TABLES)), number


def test_the_judge_of_foreign_rows_finds_one_that_is_of_another_window() -> None:
    for number, other in enumerate([line(A, 5, "a1", 0, 10), line(B, 5, "b1", 10, 13)]):
        assert list(find_foreign(deliveries([*output(), other]), history(), TABLES)), number
    assert not list(find_foreign(deliveries(output()), history(), TABLES))


def test_the_judge_of_all_windows_finds_a_gap_without_rows() -> None:
    """For who knows the windows without rows, too."""
    right = [Delivery(0, 10, (), True), Delivery(10, 13, (), True)]
    assert not list(find_gaps(right))
    assert list(find_gaps([right[0], Delivery(11, 13, (), True)]))
    assert list(find_gaps([right[0], Delivery(9, 13, (), True)]))


def test_the_judge_of_skipped_windows_finds_one_that_never_came() -> None:
    for rows in (output()[2:], output()[:2], []):
        assert list(find_skipped(deliveries(rows), history(), TABLES))
    late = [line(A, 12, "a3", 11, 13), line(B, 12, "b2", 11, 13)]
    assert not list(find_skipped(deliveries(late), {A: [State(12, "a3")]}, TABLES))
    assert list(find_skipped(deliveries(late), {A: [State(9, "a2"), State(12, "a3")]}, TABLES))


def test_the_judge_of_repetition_knows_a_crash_from_a_doubled_row() -> None:
    rows = output()
    assert list(find_repeated(deliveries([*rows, rows[0]])))
    assert list(find_missing(deliveries([*rows, rows[3]]), history(), TABLES))
    assert not list(find_repeated(deliveries([rows[0], *rows])))
    assert list(find_repeated([Delivery(0, 10, (rows[0], rows[0]), True)]))


def test_the_judge_of_crashes_counts_windows_that_come_again() -> None:
    rows = output()
    assert list(find_needless(deliveries([*rows[:2], *rows]), crashes=0))
    assert not list(find_needless(deliveries([*rows[:2], *rows]), crashes=1))
    assert not list(find_needless(deliveries(rows), crashes=0))


def test_the_judge_of_names_finds_two_ids_of_a_version_and_two_versions_of_an_id() -> None:
    rows = output()
    assert list(find_misnamed([*rows, replace(rows[3], id="another id")]))
    assert list(find_misnamed([*rows[:3], replace(rows[3], id=rows[2].id)]))
    assert not list(find_misnamed([*rows, rows[3]]))


def test_the_judge_of_order_finds_a_row_that_goes_back() -> None:
    rows = output()
    assert list(find_disordered([rows[2], rows[1]]))


def test_the_judge_of_positions_finds_one_that_goes_back() -> None:
    rows = output()
    assert list(find_rewound(deliveries([*rows[2:], *rows[:2]])))
    assert not list(find_rewound(deliveries(rows)))


def test_the_judge_of_invention_finds_it() -> None:
    assert list(find_invented([line(A, 13, "a4", 13, 14)], history()))
    assert list(find_invented([line(A, 12, "another", 10, 13)], history()))
    assert list(find_invented([line(A, 12, "a3", 12, 13)], history()))


def test_the_judge_of_transactions_finds_a_torn_one() -> None:
    rows = output()
    rows[3] = replace(rows[3], start=13, end=14)
    assert list(find_torn(deliveries(rows), truth()))


def test_the_judge_of_the_order_of_transactions_finds_a_late_one() -> None:
    rows = output()
    assert list(find_scattered(deliveries([rows[1], rows[0], *rows[2:]])))
    assert not list(find_scattered(deliveries(rows)))


def test_the_judge_of_tables_accounts_for_deleted_rows_only() -> None:
    windows = deliveries([*output(), line(A, 20, "a4", 13, 21)])
    known = Truth([*truth().commits, Commit(20, (Write(A, "a4"),))]).history()
    tables: dict[int, dict[Row, str]] = {
        10: {A: "a2", B: "b1"},
        13: {A: "a3", B: "b2"},
        21: {A: "a4"},
    }
    assert not list(find_differences(windows, known, TABLES, tables))
    without = tables | {13: {A: "a3"}}
    assert list(find_differences(windows, known, TABLES, without))
