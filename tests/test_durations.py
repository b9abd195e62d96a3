"""What is slow and what is long follows from durations that were measured."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures.durations import (
    LONG_SECONDS,
    QUICK_SECONDS,
    merge_durations,
    name_test,
    read_durations,
)

ROOT = Path(__file__).resolve().parent.parent


def is_there(test: str) -> bool:
    """Whether a test still exists, by its file and its last name."""
    path, _, name = test.rpartition("::")
    file, _, group = path.partition("::")
    text = (ROOT / file).read_text() if (ROOT / file).exists() else ""
    return f"def {name}(" in text or (bool(group) and group in text)


def test_every_duration_is_of_a_test_that_exists() -> None:
    gone = [test for test in read_durations() if not is_there(test)]
    assert not gone, "measure again: make test-all PYTEST_ARGS=--store-durations"


def test_tests_are_marked_by_their_durations(request: pytest.FixtureRequest) -> None:
    durations = read_durations()
    for item in request.session.items:
        seconds = durations.get(name_test(item.nodeid), 0.0)
        marks = {mark.name for mark in item.iter_markers()}
        assert ("slow" in marks) == (seconds > QUICK_SECONDS), item.nodeid
        if seconds > LONG_SECONDS:
            assert marks & {"long", "essential"}, item.nodeid
        assert not {"long", "essential"} <= marks, item.nodeid


def test_examples_of_a_test_are_one_entry_and_short_ones_none() -> None:
    measured = {"a.py::test_a[1]": 1.0, "a.py::test_a[2]": 3.04, "a.py::test_b": 0.1}
    stored = {"a.py::test_a": 9.0, "a.py::test_b": 5.0, "b.py::test_c": 7.0}
    assert merge_durations(stored, measured) == {"a.py::test_a": 2.0, "b.py::test_c": 7.0}
