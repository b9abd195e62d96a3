"""The judges of schedules, judged themselves."""

from __future__ import annotations

from conformance.truth import Commit, Row, Truth, Write
from interleavings.judges import Expectation, find_disordered, find_torn
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


def find_disordered_in(*lines: tuple[str, int]) -> list[str]:
    """What the judge says of versions of one row: the instance, the commit timestamp."""
    delivered = [
        Delivered("a", instance, FIRST, at, {"Version": str(at)}, False, (0, 9))
        for instance, at in lines
    ]
    return list(find_disordered(Expectation("a"), delivered))


def test_an_older_version_behind_a_newer_one_is_out_of_order() -> None:
    assert find_disordered_in(("B#1", 1), ("B#1", 2)) == []
    assert find_disordered_in(("B#1", 2), ("B#1", 1))
    assert find_disordered_in(("B#1", 2), ("B#2", 1))


def test_versions_that_came_before_may_come_again_after_a_restart() -> None:
    assert find_disordered_in(("B#1", 1), ("B#1", 2), ("B#2", 1), ("B#2", 2)) == []


def test_an_instance_that_was_replaced_may_not_repeat_older_versions() -> None:
    assert find_disordered_in(("B#1", 1), ("B#2", 1), ("B#2", 2), ("B#1", 1))
