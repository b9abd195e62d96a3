"""The judges are judged: a dropped, a doubled, a reordered, an invented row is found, each by the
judge that is there for it."""

from __future__ import annotations

from dataclasses import replace

from nemesis.truth import Commit, Truth, Write
from nemesis.validators import (
    Line,
    differences,
    disordered,
    invented,
    missing,
    repeated,
    torn,
    verdict,
)

A, B = ("T", (1,)), ("U", (2,))
TABLES = ("T", "U")


def truth() -> Truth:
    return Truth(
        [
            Commit(5, (Write(A, "a1"), Write(B, "b1"))),
            Commit(7, (Write(A, "a2"),)),
            Commit(12, (Write(A, "a3"), Write(B, "b2"))),
            Commit(15, (Write(B, None),)),
        ]
    )


def line(row: tuple[str, tuple[object, ...]], at: int, version: str, start: int, end: int) -> Line:
    return Line(f"{row}{at}", row[0], row[1], at, version, start, end)


def output() -> list[Line]:
    return [
        line(A, 7, "a2", 0, 10),
        line(B, 5, "b1", 0, 10),
        line(A, 12, "a3", 10, 13),
        line(B, 12, "b2", 10, 13),
    ]


def test_a_right_output_is_accepted() -> None:
    assert verdict(output(), truth(), TABLES) == []


def test_a_window_that_comes_again_after_a_crash_is_accepted() -> None:
    crashed = [line(A, 7, "a2", 0, 9), *output()]
    assert verdict(crashed, truth(), TABLES) == []


def test_a_dropped_row_is_found() -> None:
    for number in range(3):
        rows = output()
        del rows[number]
        assert list(missing(rows, truth(), TABLES)), number


def test_a_doubled_row_is_found() -> None:
    rows = output()
    assert list(repeated([*rows, rows[2]]))
    other = replace(rows[2], id="another id")
    assert list(disordered([*rows, other]))


def test_a_reordered_row_is_found() -> None:
    rows = output()
    assert list(disordered([rows[2], rows[0]]))


def test_an_invented_row_is_found() -> None:
    assert list(invented([*output(), line(A, 13, "a4", 13, 14)], truth()))
    assert list(invented([*output(), line(A, 12, "another", 10, 13)], truth()))
    assert list(invented([line(A, 12, "a3", 12, 13)], truth()))


def test_a_torn_transaction_is_found() -> None:
    rows = output()
    rows[3] = replace(rows[3], start=13, end=14)
    assert list(torn(rows, truth()))


def test_a_wrong_fingerprint_is_found() -> None:
    stored = {A: "a3", B: "b2"}
    assert not list(differences(output(), truth(), 13, stored))
    assert list(differences(output(), truth(), 13, {A: "other", B: "b2"}))
    assert list(differences(output()[:2], truth(), 13, stored))
    assert list(differences(output(), truth(), 13, {A: "a3"}))
    assert not list(differences(output(), truth(), 16, {A: "a3"}))
