"""The row before and after a change, as far as the capture knows it."""

from __future__ import annotations

from watcher.model.change import Change, Operation, Value, ValueCapture
from watcher.model.errors import EnvelopeError

Row = dict[str, Value]

ROWS = (ValueCapture.NEW_ROW, ValueCapture.NEW_ROW_AND_OLD_VALUES)
OLD = (ValueCapture.OLD_AND_NEW_VALUES, ValueCapture.NEW_ROW_AND_OLD_VALUES)


def new_row(change: Change) -> Row | None:
    """The key and the values afterwards; None for a delete."""
    if change.operation is Operation.DELETE:
        return None
    if change.new_values is None:
        raise EnvelopeError(f"{describe_change(change)} has no new values")
    return dict(change.key) | dict(change.new_values)


def old_row(change: Change) -> Row | None:
    """The key and the values before; None if there was no row, or if nothing is known of it.

    Where an update carries the whole new row, the columns that are not among the old values did
    not change: the old row is complete, too.
    """
    if change.captured not in OLD or change.old_values is None:
        return None
    if change.operation is Operation.DELETE:
        return dict(change.key) | dict(change.old_values)
    if change.operation is not Operation.UPDATE:
        return None
    unchanged = change.new_values or {} if change.captured in ROWS else {}
    return dict(change.key) | dict(unchanged) | dict(change.old_values)


def last_row(change: Change) -> Row:
    """The row as it is, or as it was before it was deleted. A soft delete still has its row; a
    delete without old values has only the key."""
    row = new_row(change) or old_row(change)
    return row if row is not None else dict(change.key) | dict(change.new_values or {})


def has_whole_new_row(change: Change) -> bool:
    """True if the new row has every column: only updates may leave some out."""
    return change.operation is not Operation.UPDATE or change.captured in ROWS


def has_whole_last_row(change: Change) -> bool:
    """As ``has_whole_new_row``; a delete needs its old values, or a row that is still there."""
    if change.operation is Operation.DELETE:
        return change.captured in OLD or change.new_values is not None
    return has_whole_new_row(change)


def refuse_part(change: Change, whole: bool, need: str) -> None:
    """Raises EnvelopeError if a row is not complete: missing columns would look like NULLs."""
    if not whole:
        raise EnvelopeError(
            f"{describe_change(change)} has only some of the row's values"
            f" (captured as {change.captured}), and {need}: set the change stream's"
            " value_capture_type to NEW_ROW_AND_OLD_VALUES, or the envelope's partial to 'omit'"
        )


def describe_change(change: Change) -> str:
    """Names a change for a message, without its values."""
    return f"{change.operation} {change.id} of {change.table}"
