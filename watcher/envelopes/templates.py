"""Each format is described once, for each kind of change, as a tree of constants and leaves. Both
ways of writing it come from that: change by change, and by column.

Changes that come one by one are not batches of one row: those cost 15 to 45 times as much.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Generic, TypeAlias, TypeVar

import pyarrow as pa

from watcher.envelopes.by_column.changes import ChangeColumns
from watcher.envelopes.kinds import Kind, LackingError, find_kind, refuse_change
from watcher.envelopes.leaves import Leaf, Texts
from watcher.envelopes.message import EnvelopeOptions, Message, id_header
from watcher.envelopes.values import CellStyle
from watcher.model.change import Change, Shape
from watcher.spanner.json_columns import objects
from watcher.spanner.json_columns.objects import (
    Punctuation,
    join_pieces,
    list_pieces,
    merge_constants,
)

Tree: TypeAlias = "objects.Tree[Leaf]"
"""A JSON value of constant texts, leaves, objects and arrays."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Template:
    """Constant texts and leaves, one after another."""

    pieces: tuple[str | Leaf, ...]

    def write(self, change: Change) -> str:
        """The JSON text of a change."""
        return "".join([p if isinstance(p, str) else p.write(change) for p in self.pieces])

    def render(self, changes: ChangeColumns) -> pa.Array:
        """The JSON texts of a batch."""
        return join_pieces(self._list_columns(changes), changes.rows)

    def _list_columns(self, changes: ChangeColumns) -> Iterator[Texts]:
        for piece in self.pieces:
            if isinstance(piece, str):
                yield piece
            else:
                yield from piece.list_columns(changes)


@dataclass(frozen=True)
class Messages(Generic[T]):
    """The messages of a change, described or compiled: one, and with ``tombstone`` a second one of
    the same key."""

    key: T
    value: T
    tombstone: bool = False


Described: TypeAlias = Messages[Tree]
Compiled: TypeAlias = Messages[Template]


class DescribedEnvelope(EnvelopeOptions):
    """An envelope that says what it writes of each kind of change."""

    @property
    @abstractmethod
    def style(self) -> CellStyle:
        """How cells are written, and what stands between the members of objects."""

    @abstractmethod
    def describe(self, kind: Kind, database: str, shape: Shape) -> Described:
        """What is written of changes of a kind. Raises LackingError."""

    def compile_for(self, change: Change) -> Compiled:
        """What is written of changes like this one. Raises EnvelopeError."""
        try:
            return compile_messages(self, change.database, change.shape, find_kind(change))
        except LackingError as error:
            raise refuse_change(change, error) from error


class JsonEnvelope(DescribedEnvelope):
    """One whose values are the JSON that it describes."""

    def encode(self, change: Change) -> tuple[Message, ...]:
        """As ``Envelope.encode``."""
        compiled, headers = self.compile_for(change), id_header(change.id, self.headers)
        key = compiled.key.write(change).encode()
        message = Message(key, compiled.value.write(change).encode(), headers)
        return (message, Message(key, None, headers)) if compiled.tombstone else (message,)

    def render(self, changes: ChangeColumns, database: str) -> Messages[pa.Array]:
        """As ``ColumnWriter.render``."""
        compiled = compile_messages(self, database, changes.shape, changes.kind)
        key, value = compiled.key.render(changes), compiled.value.render(changes)
        return Messages(key, value, compiled.tombstone)


@lru_cache(maxsize=1024)
def compile_messages(
    chosen: DescribedEnvelope, database: str, shape: Shape, kind: Kind
) -> Compiled:
    """The messages of changes of a kind, once for all of them. Raises LackingError."""
    described, punctuation = chosen.describe(kind, database, shape), chosen.style.punctuation
    return Compiled(
        compile_tree(described.key, punctuation),
        compile_tree(described.value, punctuation),
        described.tombstone,
    )


def compile_tree(tree: Tree, punctuation: Punctuation) -> Template:
    """A tree as a template."""
    return Template(tuple(merge_constants(list_pieces(tree, punctuation))))
