"""The judges of schedules, judged themselves."""

from __future__ import annotations

from nemesis.truth import Commit, Row, Truth, Write

from interleavings.judges import Expectation, find_torn
from interleavings.record import Delivered, Record

FIRST: Row = ("Rows", (1,))
SECOND: Row = ("Rows", (2,))
COMMIT = Commit(5, (Write(FIRST, "1"), Write(SECOND, "1")))


def find_torn_in(*lines: Delivered) -> list[str]:
    """What the judge says of these deliveries of one transaction with two rows."""
    return list(find_torn(Record(truth=Truth([COMMIT])), Expectation("a"), list(lines)))


def deliver(row: Row, start: int, end: int) -> Delivered:
    """A delivery of the version of a row that the transaction wrote."""
    return Delivered("a", "B#1", row, COMMIT.at, {"Version": "1"}, False, (start, end))


def test_a_transaction_in_two_windows_is_torn() -> None:
    assert find_torn_in(deliver(FIRST, 1, 5), deliver(SECOND, 1, 5)) == []
    assert find_torn_in(deliver(FIRST, 1, 4), deliver(SECOND, 4, 6))


def test_a_window_that_failed_does_not_tear_a_transaction() -> None:
    """The lease expired after the first row, which has another version when the window is read
    again up to a later end."""
    assert find_torn_in(deliver(FIRST, 1, 5), deliver(SECOND, 1, 9)) == []
