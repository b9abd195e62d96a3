"""Judges of a schedule: each reads its record and says what is wrong."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from conformance.judges.polled_windows import Line, find_invented
from conformance.truth import History, Row, live_rows
from interleavings.record import Clears, Delivered, Moved, Record

NO_WINDOW = (0, 0)
"""That of a row which a Spark query has."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a consumer promises: every row that lives in the end; or what was committed above the
    timestamp that the run keeps under ``begin_key``; or, with ``from_registration``, above its
    first position. ``exactly``: a sink like Spark's, where nothing comes twice."""

    consumer: str
    begin_key: str = ""
    from_registration: bool = False
    exactly: bool = False
    tables: tuple[str, ...] = ()
    name: str = ""
    """The consumer under whose name it has positions, where that is another one's, too."""
    actors: tuple[str, ...] = ()
    """Whose moves of the position count then."""


def find_problems(
    record: Record, expectations: Iterable[Expectation], kept: Mapping[str, Any]
) -> list[str]:
    """Everything that is wrong."""
    history = record.truth.history()
    problems = [f"{name} ended with {type(e).__name__}: {e}" for name, e in record.endings]
    problems += record.problems
    for each in expectations:
        lines = [line for line in record.delivered if line.consumer == each.consumer]
        problems += find_lost(record, history, each, lines, kept.get(each.begin_key, 0))
        problems += find_disordered(each, lines)
        problems += find_wrong_values(record, each, lines)
        problems += find_torn(record, each, lines)
        problems += find_invented(lines_of_windows(lines), history)
        if each.exactly:
            problems += find_doubled(each, lines)
    return problems


def find_lost(
    record: Record, history: History, expected: Expectation, lines: list[Delivered], begin: int
) -> Iterator[str]:
    """The newest version of every row that lives in the end was delivered."""
    last = max((states[-1].at for states in history.values()), default=0)
    seen = {(line.row, line.values["Version"]) for line in lines if line.values is not None}
    for row, state in sorted(live_rows(history, last).items()):
        if expected.tables and row[0] not in expected.tables:
            continue
        if record.part_of.get(row, expected.consumer) != expected.consumer:
            continue
        if state.at <= delivery_begin(record, expected, row[0], begin):
            continue
        if (row, state.version) not in seen:
            yield f"{expected.consumer} lost {row} version {state.version} of {state.at}"


def delivery_begin(record: Record, expected: Expectation, table: str, begin: int) -> int:
    """Above which commit timestamp a consumer has to deliver."""
    moves = [m for m in record.moves_of(expected.consumer) if m.table == table]
    if expected.from_registration:
        stood = [None, *(move.position for move in moves)]
        begun = [now for before, now in pairwise(stood) if before is None]
        return next((at for at in reversed(begun) if at is not None), 0)
    if not expected.begin_key:
        return 0
    return max(begin, lawful_clearing(record, expected, table))


def lawful_clearing(record: Record, expected: Expectation, table: str) -> int:
    """Up to where was cleared while the consumer was not there or had said that it may be. One
    that is taken away and registered again counts as if it had been there in between."""
    place = (expected.name or expected.consumer, table)
    position: int | None = None
    reached = 0
    for event in record.events:
        if isinstance(event, Moved) and (event.consumer, event.table) == place:
            if expected.actors and event.actor not in expected.actors:
                continue
            position = event.position if event.position is not None else position
        elif isinstance(event, Clears) and event.table == table:
            lawful = position is None or event.safe <= position
            reached = max(reached, event.safe) if lawful else reached
    return reached


def find_disordered(expected: Expectation, lines: list[Delivered]) -> Iterator[str]:
    """The versions of a row never go back, over all instances of a consumer.

    A window that was not saved is delivered again, of a change stream with every version: one that
    came before may come again (as in CockroachDB's cdctest). Not so from an instance that another
    has replaced.
    """
    newest: dict[Row, Delivered] = {}
    seen: set[tuple[Row, int | None]] = set()
    current = ""
    replaced: set[str] = set()
    for line in lines:
        if line.instance != current and line.instance not in replaced:
            replaced |= {current}
            current = line.instance
        before = newest.get(line.row)
        again = (line.row, line.at) in seen and line.instance == current
        seen.add((line.row, line.at))
        if before is None or moment(line) >= moment(before):
            newest[line.row] = line
        elif not again:
            yield (
                f"{expected.consumer} got {line.row} of {line.at} by {line.instance} after that of"
                f" {before.at} by {before.instance}"
            )


def moment(line: Delivered) -> int:
    """The commit timestamp of a version; a row of a snapshot may have lost its own."""
    return line.at if line.at is not None else 0


def find_wrong_values(
    record: Record, expected: Expectation, lines: list[Delivered]
) -> Iterator[str]:
    """A version comes with the values that were written, every column of them."""
    for line in lines:
        truth = record.values.get((line.row, moment(line)))
        if line.values is None or truth is None:
            continue
        if different := columns_that_differ(truth, line.values):
            yield f"{expected.consumer} got {line.row} of {line.at} with wrong {different}"


def lines_of_windows(lines: Iterable[Delivered]) -> list[Line]:
    """What a watcher delivered of windows, as the judges of random faults have it."""
    return [
        Line("", line.row[0], line.row[1], line.at, line.values["Version"], *line.window)
        for line in lines
        if line.at is not None and line.values is not None and not line.backfill
        if line.window != NO_WINDOW
    ]


def find_torn(record: Record, expected: Expectation, lines: list[Delivered]) -> Iterator[str]:
    """What an instance delivers of a transaction comes in one window, over all tables.

    A window that failed, because the lease expired in it, is delivered again from the same start up
    to another end. What it had handed over until then is not judged: the versions of it that are
    still the newest come again.
    """
    windows_in_order = [line for line in lines if not line.backfill and line.window != NO_WINDOW]
    delivered = {(line.instance, line.window[0]): line.window[1] for line in windows_in_order}
    ends: dict[tuple[str, Row, int], set[int]] = defaultdict(set)
    for line in windows_in_order:
        start, end = line.window
        if line.at is not None and delivered[line.instance, start] == end:
            ends[line.instance, line.row, line.at].add(end)
    for instance in {instance for instance, _, _ in ends}:
        for commit in record.truth.commits:
            places = [ends.get((instance, write.row, commit.at)) for write in commit.writes]
            windows = [each for each in places if each is not None]
            if windows and not set.intersection(*windows):
                yield f"{expected.consumer} got the transaction at {commit.at} in several windows"


def columns_that_differ(truth: Mapping[str, object], values: Mapping[str, object]) -> list[str]:
    """The columns whose values are not the ones that were written."""
    return [name for name, value in truth.items() if values.get(name) != value]


def find_doubled(expected: Expectation, lines: list[Delivered]) -> Iterator[str]:
    """Nothing comes in two batches."""
    batches: dict[tuple[Row, object], set[int]] = defaultdict(set)
    for line in lines:
        version = line.values["Version"] if line.values is not None else None
        batches[line.row, version].add(line.batch)
    for (row, version), ids in batches.items():
        if len(ids) > 1:
            yield f"{expected.consumer} has {row} version {version} in batches {sorted(ids)}"
