"""The judges of change streams are judged: a right output passes, and a line that is dropped,
doubled, reordered, late, invented, or torn from its transaction is found wherever it is."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from conformance.judges.streamed_windows import (
    Line,
    Mod,
    deliveries,
    find_differences,
    find_disordered,
    find_incomplete,
    find_invented,
    find_needless,
    find_problems,
    find_repeated,
    find_scattered,
    find_skipped,
    find_torn,
    mods_of,
)
from conformance.truth import CHILD, PARENT, Commit, Row, Truth, Write
from nemesis.perfect import TABLES
from nemesis.perfect_stream import Streamed, streams

PARENT_ROW, CHILD_ROW, EVENT = (PARENT, (1,)), (CHILD, (1, 7)), ("Events", ("b",))
EXAMPLES = int(os.environ.get("NEMESIS_EXAMPLES", "40"))


def truth() -> Truth:
    return Truth(
        [
            Commit(5, (Write(PARENT_ROW, "p1"), Write(CHILD_ROW, "c1"))),
            Commit(7, (Write(PARENT_ROW, "p2"), Write(EVENT, "e1"))),
            Commit(12, (Write(PARENT_ROW, None),)),
        ]
    )


def line(row: Row, at: int, mod: Mod, start: int, end: int) -> Line:
    """A line of the transaction at ``at``."""
    name = f"{row} {at}"
    return Line(name, *row, at, mod.operation, mod.old, mod.new, f"t{at}", start, end)


def output() -> list[Line]:
    return [
        line(CHILD_ROW, 5, Mod("INSERT", None, "c1"), 0, 10),
        line(PARENT_ROW, 5, Mod("INSERT", None, "p1"), 0, 10),
        line(PARENT_ROW, 7, Mod("UPDATE", "p1", "p2"), 0, 10),
        line(EVENT, 7, Mod("INSERT", None, "e1"), 0, 10),
        line(CHILD_ROW, 12, Mod("DELETE", "c1", None), 10, 13),
        line(PARENT_ROW, 12, Mod("DELETE", "p2", None), 10, 13),
    ]


def problems(streamed: Streamed, lines: list[Line]) -> list[str]:
    return find_problems(
        lines,
        streamed.truth,
        TABLES,
        begin=streamed.begin,
        transactions=streamed.transactions,
        snapshots=streamed.snapshots(),
        crashes=streamed.crashes,
    )


# A right output.


@settings(max_examples=EXAMPLES)
@given(streams())
def test_a_right_output_is_accepted(streamed: Streamed) -> None:
    assert problems(streamed, list(streamed.lines)) == []


def test_deletes_of_children_belong_to_the_transaction_that_deletes_the_parent() -> None:
    assert find_problems(output(), truth(), TABLES, transactions=True, crashes=0) == []


def test_a_row_that_is_deleted_and_inserted_again_in_a_transaction_is_updated() -> None:
    commits = Truth(
        [
            Commit(5, (Write(EVENT, "e1"),)),
            Commit(6, (Write(EVENT, None), Write(EVENT, "e2"))),
            Commit(8, (Write(PARENT_ROW, "p1"), Write(PARENT_ROW, None))),
        ]
    )
    assert mods_of(commits.history(), TABLES) == {
        (EVENT, 5): Mod("INSERT", None, "e1"),
        (EVENT, 6): Mod("UPDATE", "e1", "e2"),
    }


def test_a_stream_may_begin_after_rows_were_written_and_capture_no_old_values() -> None:
    later = [replace(each, start=6) if each.end == 10 else each for each in output()[2:]]
    assert find_problems(later, truth(), TABLES, begin=6) == []
    without = [replace(each, old=None) for each in later]
    assert find_problems(without, truth(), TABLES, begin=6)
    assert find_problems(without, truth(), TABLES, begin=6, old_values=False) == []


# One wrong line, anywhere in any right output.


def lines_delivered_once(streamed: Streamed) -> list[Line]:
    """The lines of windows that were not cut off."""
    again = {w.start for w in deliveries(streamed.lines) if not w.whole}
    times = Counter((each.row, each.at) for each in streamed.lines)
    again |= {each.start for each in streamed.lines if times[each.row, each.at] > 1}
    return [each for each in streamed.lines if each.start not in again]


def replace_line(streamed: Streamed, before: Line, after: Line) -> list[Line]:
    return [after if each is before else each for each in streamed.lines]


@settings(max_examples=EXAMPLES)
@given(streams(), st.data())
def test_a_dropped_version_is_found(streamed: Streamed, data: st.DataObject) -> None:
    assume(streamed.lines)
    dropped = data.draw(st.sampled_from(streamed.lines))
    assert problems(streamed, [each for each in streamed.lines if each.id != dropped.id])


@settings(max_examples=EXAMPLES)
@given(streams(), st.data())
def test_a_doubled_version_is_found(streamed: Streamed, data: st.DataObject) -> None:
    once, lines = lines_delivered_once(streamed), list(streamed.lines)
    assume(once)
    doubled = data.draw(st.sampled_from(once))
    lines.insert(data.draw(st.integers(0, len(lines))), doubled)
    assert problems(streamed, lines)


@settings(max_examples=EXAMPLES)
@given(streams(), st.data())
def test_a_window_that_comes_twice_without_a_crash_is_found(
    streamed: Streamed, data: st.DataObject
) -> None:
    windows = deliveries(streamed.lines)
    assume(windows)
    place = data.draw(st.integers(0, len(windows) - 1))
    doubled = [*windows[: place + 1], *windows[place:]]
    assert problems(streamed, [each for window in doubled for each in window.lines])


@settings(max_examples=EXAMPLES)
@given(streams(), st.data())
def test_a_version_that_comes_before_an_older_one_is_found(
    streamed: Streamed, data: st.DataObject
) -> None:
    once = lines_delivered_once(streamed)
    pairs = [(a, b) for a in once for b in once if a.row == b.row and a.at < b.at]
    assume(pairs)
    older, newer = data.draw(st.sampled_from(pairs))
    swapped = {older.id: newer, newer.id: older}
    assert problems(streamed, [swapped.get(each.id, each) for each in streamed.lines])


@settings(max_examples=EXAMPLES)
@given(streams(), st.data())
def test_a_late_version_is_found(streamed: Streamed, data: st.DataObject) -> None:
    """As a line of its own window or of the later one."""
    once = lines_delivered_once(streamed)
    windows = deliveries(streamed.lines)
    pairs = [(each, w) for each in once for w in windows if w.start >= each.end]
    assume(pairs)
    late, later = data.draw(st.sampled_from(pairs))
    lines = [each for each in streamed.lines if each is not late]
    place = lines.index(later.lines[-1]) + 1
    moved = replace(late, start=later.start, end=later.end)
    assert problems(streamed, [*lines[:place], late, *lines[place:]])
    assert problems(streamed, [*lines[:place], moved, *lines[place:]])


@settings(max_examples=EXAMPLES)
@given(streams(), st.data())
def test_a_wrong_line_is_found(streamed: Streamed, data: st.DataObject) -> None:
    assume(streamed.lines)
    before = data.draw(st.sampled_from(streamed.lines))
    wrong = data.draw(
        st.sampled_from(
            [
                replace(before, key=("nobody",)),
                replace(before, at=before.at + 1),
                replace(before, at=before.at - 1),
                replace(before, operation="READ"),
                replace(before, old="never written"),
                replace(before, new="never written"),
                replace(before, start=before.at),
                replace(before, end=before.at - 1),
            ]
        )
    )
    assert problems(streamed, replace_line(streamed, before, wrong))


@settings(max_examples=EXAMPLES)
@given(streams(), st.data())
def test_a_transaction_under_two_ids_or_with_anothers_is_found(
    streamed: Streamed, data: st.DataObject
) -> None:
    # A change that came again is one change: both of its lines are replaced.
    changes = {each.id: each for each in streamed.lines}
    transactions = Counter(each.transaction for each in changes.values())
    parts = [each for each in streamed.lines if transactions[each.transaction] > 1]
    assume(parts)
    before = data.draw(st.sampled_from(parts))
    another = data.draw(st.sampled_from([*transactions, "another"]))
    assume(another != before.transaction)
    assert problems(streamed, replace_line(streamed, before, replace(before, transaction=another)))


@settings(max_examples=EXAMPLES)
@given(streams(), st.data())
def test_a_wrong_table_is_found(streamed: Streamed, data: st.DataObject) -> None:
    ends = sorted({w.end for w in deliveries(streamed.lines) if w.whole})
    assume(ends)
    end = data.draw(st.sampled_from(ends))
    snapshots = streamed.snapshots()
    wrong = snapshots | {end: snapshots[end] | {(PARENT, (99,)): "unheard of"}}
    assert find_problems(
        streamed.lines, streamed.truth, TABLES, begin=streamed.begin, snapshots=wrong
    )


# Each judge by itself.


def mods() -> dict[tuple[Row, int], Mod]:
    return mods_of(truth().history(), TABLES)


def test_the_judge_of_completeness_finds_every_line_and_every_doubled_one() -> None:
    for number, each in enumerate(output()):
        rows = output()
        del rows[number]
        assert list(find_incomplete(deliveries(rows), mods())), number
        assert list(find_incomplete(deliveries([*rows, each, each]), mods())), number


def test_the_judge_of_completeness_excuses_what_came_before_a_crash() -> None:
    rows = output()
    for count in range(1, 5):
        again = [*rows[:count], *rows]
        assert not list(find_incomplete(deliveries(again), mods())), count


def test_the_judge_of_order_finds_a_version_that_was_overtaken() -> None:
    rows = output()
    assert list(find_disordered(deliveries([rows[2], rows[1]]), mods()))
    assert list(find_disordered(deliveries([rows[2]]), mods()))
    assert not list(find_disordered(deliveries([rows[1], rows[0], rows[1], rows[2]]), mods()))


def test_the_judge_of_invention_finds_wrong_operations_and_old_values() -> None:
    update = output()[2]
    for wrong in (
        replace(update, operation="INSERT"),
        replace(update, old=None),
        replace(update, old="p0"),
        replace(update, new="p3"),
        replace(update, at=8),
        replace(update, start=7),
    ):
        assert list(find_invented([wrong], mods(), old_values=True))
    assert not list(find_invented([replace(update, old=None)], mods(), old_values=False))


def test_the_judge_of_repetition_finds_a_version_in_two_windows() -> None:
    rows = output()
    assert list(find_repeated(deliveries([*rows, replace(rows[0], start=13, end=14)])))
    assert not list(find_repeated(deliveries([replace(rows[0], end=8), *rows])))


def test_the_judge_of_crashes_counts_windows_that_come_again() -> None:
    rows = output()
    once = deliveries([rows[0], *rows])
    assert list(find_needless(once, crashes=0))
    assert not list(find_needless(once, crashes=1))
    assert list(find_needless(deliveries([replace(rows[0], end=8), *rows]), crashes=0))


def test_the_judge_of_gaps_finds_a_window_that_never_came() -> None:
    for rows in (output()[4:], output()[:4], []):
        assert list(find_skipped(deliveries(rows), mods(), 0))
    assert not list(find_skipped(deliveries(output()), mods(), 0))


def test_the_judge_of_transactions_knows_disjoint_ones_of_the_same_timestamp() -> None:
    separate = Truth([Commit(5, (Write(PARENT_ROW, "p1"),)), Commit(5, (Write(EVENT, "e1"),))])
    together = Truth([Commit(5, (Write(PARENT_ROW, "p1"), Write(EVENT, "e1")))])
    rows = [
        line(PARENT_ROW, 5, Mod("INSERT", None, "p1"), 0, 10),
        line(EVENT, 5, Mod("INSERT", None, "e1"), 0, 10),
    ]
    apart = [rows[0], replace(rows[1], transaction="another")]
    assert list(find_torn(rows, separate))
    assert not list(find_torn(apart, separate))
    assert list(find_torn(apart, together))
    assert not list(find_torn(rows, together))


def test_the_judge_of_the_order_of_transactions_finds_a_late_or_a_divided_one() -> None:
    rows = output()
    assert not list(find_scattered(deliveries(rows), mods()))
    assert list(find_scattered(deliveries([rows[0], rows[2], rows[1], rows[3]]), mods()))
    stranger = replace(rows[1], transaction="another")
    assert list(find_scattered(deliveries([rows[2], stranger, rows[3], rows[0]]), mods()))


def test_the_judge_of_tables_finds_a_row_that_should_be_gone() -> None:
    windows = deliveries(output())
    tables: dict[int, dict[Row, str]] = {
        10: {PARENT_ROW: "p2", CHILD_ROW: "c1", EVENT: "e1"},
        13: {EVENT: "e1"},
    }
    assert not list(find_differences(windows, mods(), tables, {}))
    for end, rows in tables.items():
        wrong = tables | {end: rows | {("Events", ("left",)): "e0"}}
        assert list(find_differences(windows, mods(), wrong, {}))
    assert list(find_differences(windows, mods(), tables, {("Events", ("left",)): "e0"}))
