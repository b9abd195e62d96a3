"""The nodes of libpg_query's trees; a field that nobody has read is refused by its name."""

from __future__ import annotations

from typing import Any

from emulator import errors
from emulator.sql.postgres.parser import Fields

PLACES = {"location", "stmt_location", "stmt_len", "list_start", "list_end"}
DEFAULTS = {
    "SORTBY_NULLS_DEFAULT",
    "SORTBY_DEFAULT",
    "SETOP_NONE",
    "LIMIT_OPTION_DEFAULT",
    "OVERRIDING_NOT_SET",
    "COERCE_EXPLICIT_CALL",
    "COERCE_SQL_SYNTAX",
    "CTEMaterializeDefault",
}
"""Values that say that nothing was written."""


class Node:
    """A node of a tree: its kind, and its fields, whose reading is recorded."""

    __slots__ = ("_fields", "_read", "kind")

    def __init__(self, kind: str, fields: Fields) -> None:
        self.kind = kind
        self._fields = fields
        self._read: set[str] = set(PLACES)

    @classmethod
    def of(cls, wrapped: Fields) -> Node:
        """A node out of {kind: fields}."""
        if len(wrapped) != 1:
            raise errors.unimplemented("A form of this statement")
        ((kind, fields),) = wrapped.items()
        return cls(kind, fields)

    def get(self, name: str) -> Any:
        """A field as it is; None where it is missing."""
        self._read.add(name)
        return self._fields.get(name)

    def text(self, name: str) -> str:
        """A field that is a text; empty where it is missing."""
        return str(self.get(name) or "")

    def node(self, name: str) -> Node:
        """A field that holds a node of any kind."""
        return Node.of(self.get(name))

    def part(self, name: str, kind: str = "") -> Node | None:
        """A field that holds the fields of a node of one kind."""
        fields = self.get(name)
        return None if fields is None else Node(kind or name, fields)

    def nodes(self, name: str) -> list[Node]:
        """A field that is a list of nodes."""
        return [Node.of(each) for each in self.get(name) or [] if each]

    def names(self, name: str) -> list[str]:
        """A field that is a list of names."""
        return [str(each.get("sval")) for each in self.nodes(name)]

    def ignore(self, *names: str) -> None:
        """Takes fields for read that say nothing here."""
        self._read.update(names)

    def finish(self) -> None:
        """Raises UNIMPLEMENTED for a field that says something and was not read."""
        for name, value in self._fields.items():
            if name not in self._read and value not in (None, False, [], "", *DEFAULTS):
                raise errors.unimplemented(f"{name} of {self.kind}")

    @property
    def location(self) -> int:
        """Where the node begins, in bytes; -1 where nobody knows."""
        return int(self._fields.get("location", 0 if self._fields else -1))
