"""What decides how a change is written besides its values, and the rows that it has."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, TypeAlias

from watcher.model.change import Change, Operation, ValueCapture
from watcher.model.errors import EnvelopeError


class Kind(NamedTuple):
    """What a format asks of a change: changes of one kind are written alike.

    ``has_new`` and ``has_old``: whether there are values from after and from before, be they empty.
    ``streamed``: whether a change stream gave it, so that it has an origin.
    """

    operation: Operation
    captured: ValueCapture
    has_new: bool
    has_old: bool
    streamed: bool

    @property
    def deleted(self) -> bool:
        """Whether the row is gone."""
        return self.operation is Operation.DELETE

    @property
    def backfilled(self) -> bool:
        """Whether it is a row of a snapshot."""
        return self.operation is Operation.READ

    @property
    def has_whole_new_row(self) -> bool:
        """Whether the new row has every column: only updates may leave some out."""
        return self.operation is not Operation.UPDATE or self.captured.whole_row

    @property
    def has_whole_last_row(self) -> bool:
        """The same of ``last_row``; a delete needs its old values, or a row that is still there."""
        if self.deleted:
            return self.captured.keeps_old or self.has_new
        return self.has_whole_new_row


class LackingError(Exception):
    """Changes of a kind lack what a format needs; the message continues 'the change ...'."""


class Layer(Enum):
    """Values of a change that a row is made of."""

    KEY = "the primary key"
    NEW = "the values afterwards"
    OLD = "the values before"
    CHANGED = "the values afterwards of columns that have a value before"


Layers: TypeAlias = tuple[Layer, ...]
"""A row; values of a layer come before those of later ones."""


def find_kind(change: Change) -> Kind:
    """The kind of a change."""
    return Kind(
        change.operation,
        change.captured,
        change.new_values is not None,
        change.old_values is not None,
        change.origin is not None,
    )


def new_row(kind: Kind) -> Layers | None:
    """The row afterwards; None for a delete. Raises LackingError."""
    if kind.deleted:
        return None
    if not kind.has_new:
        raise LackingError("has no new values")
    return Layer.NEW, Layer.KEY


def old_row(kind: Kind) -> Layers | None:
    """The row before; None if there was no row, or if nothing is known of it.

    Where an update carries the whole new row, the columns that are not among the old values did
    not change: the old row is complete, too.
    """
    if not kind.captured.keeps_old or not kind.has_old:
        return None
    if kind.deleted:
        return Layer.OLD, Layer.KEY
    if kind.operation is not Operation.UPDATE:
        return None
    return (Layer.OLD, Layer.NEW, Layer.KEY) if kind.captured.whole_row else (Layer.OLD, Layer.KEY)


def last_row(kind: Kind) -> Layers:
    """The row as it is, or as it was before it was deleted. A soft delete still has its row; a
    delete without old values has only the key. Raises LackingError."""
    return new_row(kind) or old_row(kind) or (Layer.NEW, Layer.KEY)


def refuse_part(kind: Kind, whole: bool, need: str) -> None:
    """Raises LackingError if a row is not complete: missing columns would look like NULLs."""
    if not whole:
        raise LackingError(
            f"has only some of the row's values (captured as {kind.captured}), and {need}: set the"
            " change stream's value_capture_type to NEW_ROW_AND_OLD_VALUES, or the envelope's"
            " partial to 'omit'"
        )


def refuse_change(change: Change, lack: LackingError) -> EnvelopeError:
    """The error of a change of a kind that lacks something. Names it without its values."""
    return EnvelopeError(f"{change.operation} {change.id} of {change.table} {lack}")
