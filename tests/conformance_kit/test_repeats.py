"""Repeats: which of them a blow explains. Each rule of ``docs/conformance.md`` is kept once and
broken once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from conformance.changes import Blow, Line
from conformance.judges.repeats import explain_repeats
from conformance.recording import Finding, Promises, Recording
from conformance.truth import Commit, Truth, Write
from conformance.verdict import judge
from conformance_kit.delivered import deliver

SECOND = 1_000_000
ROW = ("Events", ("e",))
KILL, SECOND_KILL = Blow("kill", 10 * SECOND, 11 * SECOND), Blow("kill", 40 * SECOND, 41 * SECOND)
BEFORE, AFTER, LATER = 5, 20, 50
"""Commits before the first kill, after it, and after the second one, in seconds."""


def record(blows: list[Blow], *came: tuple[int, int, float]) -> Recording:
    """A run with a version of a row at each of three moments. ``came``: for each line which version
    (by the second of its commit), which start of the command, and when it arrived."""
    truth = Truth([Commit(at * SECOND, (Write(ROW, f"v{at}"),)) for at in (BEFORE, AFTER, LATER)])
    first = {line.at // SECOND: line for line in deliver(truth)}
    lines: list[Line] = [
        replace(first[at], number=number, start=start, arrived=round(arrived * SECOND))
        for number, (at, start, arrived) in enumerate(came, 1)
    ]
    return Recording(0, truth, lines, blows)


def judge_repeats(recording: Recording, stages: int = 1) -> tuple[list[str], list[Finding]]:
    """The causes of the repeats ("" for none), and the findings about them."""
    promises = Promises(stages=stages, late_seconds_max=0)
    causes = [repeat.cause for repeat in explain_repeats(recording, promises)]
    findings = judge(recording, promises)
    return causes, [finding for finding in findings if finding.kind == "doubled"]


def test_a_kill_explains_what_comes_again_after_the_next_start() -> None:
    recording = record([KILL], (BEFORE, 1, 6), (BEFORE, 2, 12), (AFTER, 2, 21), (LATER, 2, 51))
    assert judge_repeats(recording) == (["kill"], [])


def test_a_broker_may_print_the_first_copy_after_the_kill_too() -> None:
    recording = record([KILL], (BEFORE, 2, 12), (BEFORE, 2, 13), (AFTER, 2, 21), (LATER, 2, 51))
    assert judge_repeats(recording) == (["kill"], [])


@pytest.mark.parametrize("kind", ["freeze", "restart_server", "trouble"])
def test_other_blows_explain_any_number_of_repeats(kind: str) -> None:
    recording = record(
        [Blow(kind, 4 * SECOND, 9 * SECOND)],
        *((BEFORE, 1, moment) for moment in (6, 7, 8, 9)),
        (AFTER, 1, 21),
        (LATER, 1, 51),
    )
    assert judge_repeats(recording) == ([kind] * 3, [])


# Rule 1: in time.


def test_a_change_that_was_committed_after_the_kill_is_not_explained_by_it() -> None:
    recording = record([KILL], (BEFORE, 1, 6), (AFTER, 2, 21), (AFTER, 2, 22), (LATER, 2, 51))
    causes, findings = judge_repeats(recording)
    assert causes == [""]
    assert "no blow between its commit and its arrival" in findings[0].text
    assert findings[0].lines == (2, 3)


def test_a_repeat_before_the_kill_is_not_explained_by_it() -> None:
    recording = record([KILL], (BEFORE, 1, 6), (BEFORE, 1, 7), (AFTER, 2, 21), (LATER, 2, 51))
    assert judge_repeats(recording)[0] == [""]


def test_what_the_killed_process_had_left_in_its_pipe_came_before_the_kill() -> None:
    late = record([KILL], (BEFORE, 1, 6), (BEFORE, 1, 10.5), (AFTER, 2, 21), (LATER, 2, 51))
    assert judge_repeats(late)[0] == [""]


@pytest.mark.parametrize(("at", "cause"), [(AFTER, ""), (BEFORE, "trouble")])
def test_trouble_is_over_a_second_after_its_end(at: int, cause: str) -> None:
    trouble = Blow("trouble", 4 * SECOND, round(4.5 * SECOND))
    came = {BEFORE: 6.0, AFTER: 21.0, LATER: 51.0}
    lines = [(each, 1, moment) for each, moment in came.items() for _ in range(1 + (each == at))]
    assert judge_repeats(record([trouble], *lines))[0] == [cause]


# Rule 2: not passed.


def test_after_a_newer_version_from_after_the_kill_it_explains_no_repeat() -> None:
    recording = record([KILL], (BEFORE, 2, 12), (AFTER, 2, 21), (BEFORE, 2, 22), (LATER, 2, 51))
    causes, findings = judge_repeats(recording)
    assert causes == [""]
    assert "after a newer version" in findings[0].text


def test_newer_versions_from_before_the_second_kill_come_again_with_it() -> None:
    came = [(BEFORE, 1, 6), (BEFORE, 2, 12), (AFTER, 2, 21)]
    again = [(BEFORE, 3, 42), (AFTER, 3, 43), (LATER, 3, 51)]
    recording = record([KILL, SECOND_KILL], *came, *again)
    assert judge_repeats(recording) == (["kill"] * 3, [])


# Rule 3: not durable.


def test_a_change_that_a_restart_has_shown_to_be_kept_is_explained_by_no_later_kill() -> None:
    came = [(BEFORE, 1, 6), (AFTER, 2, 21), (BEFORE, 3, 42), (AFTER, 3, 43), (LATER, 3, 51)]
    causes, findings = judge_repeats(record([KILL, SECOND_KILL], *came))
    assert causes == ["", "kill"]
    assert "had gone on without it" in findings[0].text


def test_a_start_that_was_killed_before_it_came_so_far_has_shown_nothing() -> None:
    came = [(BEFORE, 1, 6), (BEFORE, 3, 42), (AFTER, 3, 43), (LATER, 3, 51)]
    assert judge_repeats(record([KILL, SECOND_KILL], *came)) == (["kill"], [])


# Rule 4: not used up.


def test_a_kill_explains_one_repeat_of_each_change_for_each_stage() -> None:
    came = [(BEFORE, 1, 6), (BEFORE, 2, 12), (BEFORE, 2, 13), (AFTER, 2, 21), (LATER, 2, 51)]
    recording = record([KILL], *came)
    causes, findings = judge_repeats(recording)
    assert causes == ["kill", ""]
    assert "more often than the blows explain" in findings[0].text
    assert judge_repeats(recording, stages=2) == (["kill", "kill"], [])


def test_two_kills_explain_two_repeats() -> None:
    came = [(BEFORE, 1, 6), (BEFORE, 3, 42), (BEFORE, 3, 43), (AFTER, 3, 44), (LATER, 3, 51)]
    assert judge_repeats(record([KILL, SECOND_KILL], *came)) == (["kill", "kill"], [])


# What was promised.


def test_who_promises_exactly_once_fails_with_explained_repeats() -> None:
    recording = record([KILL], (BEFORE, 1, 6), (BEFORE, 2, 12), (AFTER, 2, 21), (LATER, 2, 51))
    findings = judge(recording, Promises(exactly_once=True, late_seconds_max=0))
    assert [finding.kind for finding in findings] == ["doubled"]
    assert "after a blow (kill)" in findings[0].text
