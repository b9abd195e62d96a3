"""Whether a ``ChangeSink`` keeps what a watcher promises: for tests of sinks that others write."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from spanner_schema.model.column_types import Type, TypeCode
from watcher.model.change import Change, Operation, Shape, ValueCapture
from watcher.model.window import Window
from watcher.sinks.contract import ChangeSink

AT = 1_700_000_000_000_000
KEYS, VERSIONS = 5, 3
SHAPE = Shape("Checked", (("Id", Type(TypeCode.INT64)), ("Name", Type(TypeCode.STRING))), ("Id",))


def make_changes(first: int, count: int) -> list[Change]:
    """Versions of some rows, the oldest first; the last version of a row is a delete."""
    changes = []
    for version in range(first, first + count):
        for key in range(KEYS):
            deleted = key == 0 and version == first + count - 1
            at = AT + version
            changes.append(
                Change(
                    id=f"{key}-{version}",
                    database="projects/my-project/instances/my-instance/databases/my-database",
                    shape=SHAPE,
                    operation=Operation.DELETE if deleted else Operation.UPSERT,
                    commit_timestamp=at,
                    key={"Id": key},
                    new_values={"Name": f"version {version}"},
                    old_values=None,
                    captured=ValueCapture.NEW_ROW,
                    window=Window(AT + first - 1, AT + first + count - 1),
                )
            )
    return changes


def check_sink(open_sink: Callable[[], ChangeSink], read_ids: Callable[[], Sequence[str]]) -> None:
    """Raises AssertionError, which says which promise is broken.

    ``open_sink`` gives a sink as a watcher that starts has it, each time of the same empty place.
    ``read_ids`` gives the ids of the changes that a reader finds there, in their order: all of
    them, or, where a newer version replaces the older one, of the newest of each row, deletes too.
    """
    sink, changes = open_sink(), make_changes(1, VERSIONS)
    write(sink, changes)
    sink.flush()
    expect_newest(changes, read_ids(), "after flush(), the newest version of each row can be read")
    sink.flush()
    before = list(read_ids())
    expect_newest(changes, before, "a flush() without changes changes nothing")
    later = make_changes(VERSIONS + 1, VERSIONS)
    for tried in (later, later[: len(later) // 2]):
        write(sink, tried)
        sink.discard()
    write(sink, later)
    sink.flush()
    expect_newest(later, read_ids(), "a window that was discarded comes again, and arrives whole")
    last = make_changes(2 * VERSIONS + 1, VERSIONS)
    write(sink, last[: len(last) // 2])
    again = open_sink()  # the process was killed: nobody flushes or discards
    write(again, last)
    again.flush()
    expect_newest(last, read_ids(), "the window of a process that was killed comes again")


def write(sink: ChangeSink, changes: Sequence[Change]) -> None:
    """Hands over changes."""
    for change in changes:
        sink.write_change(change)


def expect_newest(changes: Sequence[Change], ids: Sequence[str], promise: str) -> None:
    """Raises AssertionError where what is read of a row does not end with its newest version."""
    newest = {change.id.partition("-")[0]: change.id for change in changes}
    found = {each.partition("-")[0]: each for each in ids}
    for key, expected in newest.items():
        last = found.get(key)
        if last != expected:
            raise AssertionError(
                f"broken promise: {promise}. Row {key} was written as {expected}, and"
                f" {'nothing' if last is None else last} is what a reader finds last"
            )
