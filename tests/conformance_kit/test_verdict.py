"""The judges of any system are judged: what a right one delivers passes, and every way to deliver
it wrong is found, by the judge that is there for it."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from nemesis.perfect import truths

from conformance.changes import UNKNOWN, Blow, Line
from conformance.judges.arrivals import measure_latency
from conformance.recording import Ending, Promises, Recording, Unreadable
from conformance.truth import Commit, Truth, Write
from conformance.verdict import judge
from conformance_kit.delivered import EVERY_VERSION, NEWEST_ROW, deliver, kinds

EXAMPLES = int(os.environ.get("NEMESIS_EXAMPLES", "40"))
A, B = ("Accounts", (1,)), ("Events", ("b",))
SECOND = 1_000_000


def small_truth() -> Truth:
    return Truth(
        [
            Commit(5, (Write(A, "a1"), Write(B, "b1"))),
            Commit(7, (Write(A, "a2"),)),
            Commit(9, (Write(A, "a3"), Write(B, None))),
        ]
    )


@settings(max_examples=EXAMPLES)
@given(truths())
def test_a_right_output_is_accepted(truth: Truth) -> None:
    assert kinds(truth, deliver(truth)) == set()
    assert kinds(truth, deliver(truth), Promises(exactly_once=True)) == set()


@settings(max_examples=EXAMPLES)
@given(truths())
def test_the_newest_versions_are_enough_for_who_promises_no_more(truth: Truth) -> None:
    newest = {line.row: line for line in deliver(truth)}
    alive = [line for line in newest.values() if line.change.new is not None]
    assert kinds(truth, alive, NEWEST_ROW) == set()


@settings(max_examples=EXAMPLES)
@given(truths(), st.data())
def test_a_lost_change_is_found_wherever_it_is(truth: Truth, data: st.DataObject) -> None:
    lines = deliver(truth)
    del lines[data.draw(st.integers(0, len(lines) - 1))]
    assert "lost" in kinds(truth, lines)


@settings(max_examples=EXAMPLES)
@given(truths(), st.data())
def test_a_lost_newest_version_is_found(truth: Truth, data: st.DataObject) -> None:
    newest = {line.row: line for line in deliver(truth) if line.change.new is not None}
    last = {line.row: line for line in deliver(truth)}
    alive = [line for row, line in newest.items() if last[row] == line]
    assume(alive)
    del alive[data.draw(st.integers(0, len(alive) - 1))]
    assert "lost" in kinds(truth, alive, NEWEST_ROW)


@settings(max_examples=EXAMPLES)
@given(truths(), st.data())
def test_a_doubled_change_is_found_wherever_it_is(truth: Truth, data: st.DataObject) -> None:
    lines = deliver(truth)
    place = data.draw(st.integers(0, len(lines) - 1))
    assert "doubled" in kinds(truth, [*lines[: place + 1], *lines[place:]])


@settings(max_examples=EXAMPLES)
@given(truths(), st.data())
def test_versions_in_another_order_are_found(truth: Truth, data: st.DataObject) -> None:
    lines = deliver(truth)
    later = [n for n, line in enumerate(lines) if line.row in {each.row for each in lines[:n]}]
    assume(later)
    place = data.draw(st.sampled_from(later))
    before = max(n for n in range(place) if lines[n].row == lines[place].row)
    lines[before], lines[place] = lines[place], lines[before]
    assert "reordered" in kinds(truth, lines)


@settings(max_examples=EXAMPLES)
@given(truths(), st.data())
def test_a_wrong_value_is_found_wherever_it_is(truth: Truth, data: st.DataObject) -> None:
    lines = deliver(truth)
    place = data.draw(st.integers(0, len(lines) - 1))
    line = lines[place]
    wrong = data.draw(
        st.sampled_from(
            [
                replace(line.change, new="another"),
                replace(line.change, old="another"),
                replace(line.change, at=line.at + 1_000),
                replace(line.change, table="Log"),
                replace(line.change, operation="TRUNCATE"),
            ]
        )
    )
    lines[place] = replace(line, change=wrong)
    assert "wrong" in kinds(truth, lines)


@settings(max_examples=EXAMPLES)
@given(truths(), st.data())
def test_a_transaction_of_another_id_is_found(truth: Truth, data: st.DataObject) -> None:
    lines = deliver(truth)
    place = data.draw(st.integers(0, len(lines) - 1))
    other = lines[place - 1].transaction
    assume(other != lines[place].transaction)
    lines[place] = replace(lines[place], change=replace(lines[place].change, transaction=other))
    assert "torn" in kinds(truth, lines)


# Single judges.


def test_a_transaction_that_is_interleaved_is_torn_only_for_who_promises_it() -> None:
    truth = small_truth()
    lines = deliver(truth)
    lines[1], lines[2] = lines[2], lines[1]
    assert "torn" in kinds(truth, lines)
    assert "torn" not in kinds(truth, lines, Promises())


def test_a_transaction_that_came_in_part_is_torn_and_lost() -> None:
    truth = small_truth()
    assert kinds(truth, deliver(truth)[:-1], Promises()) == {"lost", "torn"}


def killed(lines: list[Line], after: int) -> Recording:
    """An output that is cut after so many lines, and comes again as a whole."""
    again = [replace(line, start=2, arrived=line.arrived + SECOND) for line in lines]
    blow = Blow("kill", lines[after - 1].arrived, lines[after - 1].arrived + 1)
    return Recording(0, small_truth(), [*lines[:after], *again], [blow])


@pytest.mark.parametrize("after", [1, 2, 3, 4])
def test_after_a_kill_changes_may_come_again(after: int) -> None:
    recording = killed(deliver(small_truth()), after)
    assert judge(recording, EVERY_VERSION) == []
    exactly_once = judge(recording, Promises(exactly_once=True))
    assert {finding.kind for finding in exactly_once} == {"doubled"}
    assert len(exactly_once) == after


@pytest.mark.parametrize(("begin", "found"), [(-9, {"doubled"}), (1, set()), (9, {"doubled"})])
def test_a_repeat_is_excused_by_trouble_since_the_delivery_before(
    begin: int, found: set[str]
) -> None:
    lines = deliver(small_truth())
    again = replace(lines[-1], arrived=lines[-1].arrived + 5 * SECOND)
    blow = Blow("trouble", begin * SECOND, (begin + 2) * SECOND)
    recording = Recording(0, small_truth(), [*lines, again], [blow])
    assert {finding.kind for finding in judge(recording, Promises())} == found


def test_a_schema_change_excuses_no_repeat() -> None:
    lines = deliver(small_truth())
    blow = Blow("change_schema", 0, SECOND)
    recording = Recording(0, small_truth(), [*lines, lines[-1]], [blow])
    assert {finding.kind for finding in judge(recording, Promises())} == {"doubled"}


def test_who_ends_with_an_old_version_is_found_even_after_a_kill() -> None:
    lines = deliver(small_truth())
    again = replace(lines[0], start=2)
    blow = Blow("kill", lines[-1].arrived, lines[-1].arrived)
    recording = Recording(0, small_truth(), [*lines, again], [blow])
    findings = judge(recording, Promises())
    assert [finding.kind for finding in findings] == ["reordered"]
    assert findings[0].lines[-1] == again.number


def late_by(seconds: int) -> tuple[Truth, list[Line]]:
    """An output whose last change, a minute after the others, comes so much later."""
    truth = small_truth()
    truth.add(Commit(60 * SECOND, (Write(A, "a4"),)))
    lines = deliver(truth)
    lines[-1] = replace(lines[-1], arrived=lines[-1].at + seconds * SECOND)
    return truth, lines


def test_a_late_change_is_found() -> None:
    truth, lines = late_by(11)
    assert kinds(truth, lines) == {"late"}
    assert kinds(truth, lines, Promises(late_seconds_max=0)) == set()
    assert kinds(truth, lines, Promises(late_seconds_max=12)) == set()


@pytest.mark.parametrize(("begin", "found"), [(30, {"late"}), (59, set()), (65, set())])
def test_a_change_that_a_blow_has_delayed_is_not_late(begin: int, found: set[str]) -> None:
    truth, lines = late_by(11)
    blow = Blow("freeze", begin * SECOND, (begin + 1) * SECOND)
    recording = Recording(0, truth, lines, [blow])
    assert {finding.kind for finding in judge(recording, Promises())} == found


def test_who_works_off_what_a_blow_has_left_is_not_late() -> None:
    truth, lines = late_by(11)
    truth.add(Commit(65 * SECOND, (Write(B, "b2"),)))
    following = deliver(truth)[-1]
    following = replace(following, arrived=following.at + 20 * SECOND)
    blow = Blow("freeze", 60 * SECOND, 61 * SECOND)
    recording = Recording(0, truth, [*lines, following], [blow])
    assert judge(recording, Promises()) == []
    recording.blows = []
    assert {finding.kind for finding in judge(recording, Promises())} == {"late"}


def test_what_a_line_does_not_say_is_not_judged() -> None:
    truth = small_truth()
    lines = [
        replace(
            line,
            change=replace(
                line.change,
                operation="DELETE" if line.change.new is None else "UPSERT",
                new=UNKNOWN,
                old=UNKNOWN,
                transaction=None,
                id=None,
            ),
        )
        for line in deliver(truth)
    ]
    assert kinds(truth, lines, Promises()) == set()


def test_ids_that_change_or_are_shared_are_found() -> None:
    truth = small_truth()
    lines = deliver(truth)
    shared = [*lines[:-1], replace(lines[-1], change=replace(lines[-1].change, id=lines[0].id))]
    assert kinds(truth, shared) == {"misnamed"}


def test_windows_are_judged_where_lines_have_them() -> None:
    truth = small_truth()
    lines = [
        replace(line, change=replace(line.change, window=(0, 5) if line.at <= 5 else (5, 9)))
        for line in deliver(truth)
    ]
    assert kinds(truth, lines) == set()
    misplaced = replace(lines[2], change=replace(lines[2].change, window=(7, 9)))
    assert kinds(truth, [*lines[:2], misplaced, *lines[3:]]) == {"windows"}
    assert kinds(truth, [*lines[:2], misplaced, *lines[3:]], Promises(windows=False)) == set()


def test_an_end_that_nobody_asked_for_a_hang_and_a_strange_line_are_findings() -> None:
    truth = small_truth()
    recording = Recording(
        0,
        truth,
        deliver(truth),
        unreadable=[Unreadable(3, "Traceback", "not JSON")],
        endings=[Ending(30 * SECOND, 1)],
        hung=1,
    )
    assert {finding.kind for finding in judge(recording, Promises())} == {
        "unreadable",
        "ended",
        "hung",
    }
    recording.blows = [Blow("restart_server", 25 * SECOND, 26 * SECOND)]
    assert "ended" not in {finding.kind for finding in judge(recording, Promises())}


def test_latencies_are_measured_from_commits_to_arrivals() -> None:
    latency = measure_latency(deliver(small_truth()))
    assert latency is not None
    assert (latency.changes, latency.p50, latency.max) == (5, 0.00001, 0.00001)
    assert measure_latency([]) is None
