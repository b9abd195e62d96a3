"""Outcomes of suites are read and judged, so that a list of exceptions cannot rot."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from clients.go_modules import name_tests, replace_in
from clients.judging import format_table, judge, list_exceptions
from clients.outcomes import Outcome, Verdict, read_go, read_junit
from clients.run import main
from clients.suites import ALL

PASSED, FAILED, SKIPPED = Verdict.PASSED, Verdict.FAILED, Verdict.SKIPPED
PYTEST = """<testsuites><testsuite>
<testcase classname="tests.test_a" name="test_one" />
<testcase classname="tests.test_a" name="test_two">
<failure message="1 is not 2">x</failure></testcase>
<testcase classname="tests.test_a" name="test_three"><skipped message="no room" /></testcase>
<testcase classname="tests.test_a" name="test_four"><error message="no fixture">x</error></testcase>
<testcase classname="tests.test_a" name="test_five" />
<testcase classname="tests.test_a" name="test_five"><error message="in the end">x</error></testcase>
</testsuite></testsuites>"""


def write_events(*events: tuple[str, str]) -> list[str]:
    """Lines of ``go test -json``: actions by test."""
    lines = [json.dumps({"Action": action, "Test": test}) for test, action in events]
    return ["go: downloading something", *lines, json.dumps({"Action": "fail"})]


def test_cases_of_junit_are_read(tmp_path: Path) -> None:
    path = tmp_path / "report.xml"
    path.write_text(PYTEST)
    assert read_junit(path) == [
        Outcome("tests.test_a.test_one", PASSED),
        Outcome("tests.test_a.test_two", FAILED, "1 is not 2"),
        Outcome("tests.test_a.test_three", SKIPPED, "no room"),
        Outcome("tests.test_a.test_four", FAILED, "no fixture"),
        Outcome("tests.test_a.test_five", FAILED, "in the end"),
    ]


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([("A", "run"), ("A", "pass"), ("B", "skip")], {"A": PASSED, "B": SKIPPED}),
        ([("A", "run"), ("A/x", "pass"), ("A/y", "pass"), ("A", "pass")], 2),
        ([("A/x", "fail"), ("A/y", "pass"), ("A", "fail")], {"A/x": FAILED, "A/y": PASSED}),
        ([("A/x", "pass"), ("A", "fail")], {"A/x": PASSED, "A": FAILED}),
        ([("A/x", "run"), ("A", "run")], {"A/x": FAILED}),
        ([("A/x/1", "fail"), ("A/x", "fail"), ("A", "fail")], {"A/x/1": FAILED}),
    ],
)
def test_cases_of_go_are_read(
    events: Sequence[tuple[str, str]], expected: dict[str, Verdict] | int
) -> None:
    verdicts = {each.case: each.verdict for each in read_go(write_events(*events))}
    assert (len(verdicts) if isinstance(expected, int) else verdicts) == expected


def test_what_a_test_of_go_said_is_kept_where_it_failed() -> None:
    said = [
        {"Action": "output", "Test": "A", "Output": "=== RUN A\n"},
        {"Action": "output", "Test": "A", "Output": "    a_test.go:7: 1 is not 2\n"},
        {"Action": "fail", "Test": "A"},
    ]
    assert read_go(map(json.dumps, said)) == [Outcome("A", FAILED, "a_test.go:7: 1 is not 2")]


RUN = [Outcome("a", PASSED), Outcome("b", FAILED, "broken"), Outcome("c", SKIPPED)]


@pytest.mark.parametrize(
    ("outcomes", "exceptions", "problem"),
    [
        (RUN, {"b": "why"}, None),
        (RUN, {}, "b: failed: broken"),
        (RUN, {"b": "why", "a": "why"}, "a: passes, take it off the list"),
        (RUN, {"b": "why", "c": "why"}, "c: is an exception, and no case that was run"),
        (RUN, {"b": "why", "d": "why"}, "d: is an exception, and no case that was run"),
        (RUN[1:], {"b": "why"}, "no case has passed"),
        ([], {}, "no case has passed"),
    ],
)
def test_a_run_is_judged(
    outcomes: list[Outcome], exceptions: dict[str, str], problem: str | None
) -> None:
    judgement = judge("suite", outcomes, exceptions)
    assert len(judgement.problems) == (problem is not None)
    assert all(each.startswith(problem or "") for each in judgement.problems)
    assert (problem or "") in format_table([judgement])


def test_a_run_is_counted() -> None:
    judgement = judge("suite", RUN, list_exceptions({"why": ["b"]}))
    assert (judgement.passed, judgement.known, judgement.skipped) == (1, 1, 1)


def test_every_exception_has_a_reason_of_its_own_words() -> None:
    for suite in ALL.values():
        for case, reason in suite.exceptions.items():
            assert len(reason.split()) >= 4, f"{suite.name}: {case}"


def test_a_suite_that_is_not_known_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["none"])
    assert "there is no suite 'none'; the suites are python," in capsys.readouterr().err


def test_the_tests_of_a_file_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a_test.go"
    path.write_text("func TestMain(m *M) {}\nfunc TestA(t *T) {}\nfunc TestMainly(t *T) {}\n")
    assert name_tests(path) == "^(TestA|TestMainly)$"


def test_a_change_to_a_suite_is_made_once_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.go"
    path.write_text("return x")
    replace_in(path, "return x", "return y")
    assert path.read_text() == "return y"
    with pytest.raises(ValueError, match="has 0 times: return x"):
        replace_in(path, "return x", "return y")
