"""Judges of transactions: torn."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise

from conformance.changes import Line
from conformance.judges.streamed_windows import find_torn, owners_of
from conformance.recording import Finding, Promises, Recording, find
from conformance.truth import Row
from conformance.writers import WATCHED

Owners = Mapping[tuple[Row, int], int]


def find_torn_transactions(recording: Recording, promises: Promises) -> Iterator[Finding]:
    """Ids belong to one transaction each, and none came in part."""
    owners = {
        version: number
        for version, number in owners_of(recording.truth).items()
        if version[0][0] in WATCHED
    }
    for text in find_torn([line for line in recording.lines if line.transaction], recording.truth):
        yield Finding("torn", text)
    if promises.every_version:
        yield from find_partial(recording, owners)
    if promises.transactions:
        yield from find_interleaved(recording, owners)


def find_partial(recording: Recording, owners: Owners) -> Iterator[Finding]:
    """Of each transaction all changes came, or none."""
    came = {(line.row, line.at) for line in recording.lines}
    missing: dict[int, list[tuple[Row, int]]] = defaultdict(list)
    delivered: Counter[int] = Counter()
    for version, number in owners.items():
        if version in came:
            delivered[number] += 1
        else:
            missing[number].append(version)
    for number, versions in sorted(missing.items()):
        if delivered[number]:
            row, at = versions[0]
            text = (
                f"the transaction at {at}: {delivered[number]} of its changes came,"
                f" {len(versions)} never did, such as {row}"
            )
            yield Finding("torn", text)


def find_interleaved(recording: Recording, owners: Owners) -> Iterator[Finding]:
    """The lines of a transaction come one after another, all of them, unless a blow falls."""
    sizes = Counter(owners.values())
    for _, group in groupby(recording.lines, key=lambda line: line.start):
        parts = [list(part) for _, part in groupby(group, key=lambda line: line.transaction)]
        for part, following in pairwise(parts):
            number = owners.get((part[0].row, part[0].at))
            if number is None or covers(part, sizes[number]):
                continue
            last, first = part[-1], following[0]
            if not recording.disturbed(last.arrived, first.arrived):
                text = (
                    f"the transaction {last.transaction} at {last.at}: {len(part)} of its"
                    f" {sizes[number]} changes came before another one's"
                )
                yield find("torn", text, part[0], last, first)


def covers(part: list[Line], size: int) -> bool:
    """Whether lines are all changes of their transaction."""
    return len({(line.row, line.at) for line in part}) >= size
