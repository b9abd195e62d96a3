"""What plans ask of the tables of a schema, and the answers that are the same for every driver."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Generic, Protocol, TypeVar

from watcher.model.errors import VersionExpiredError
from watcher.model.window import Window
from watcher.planning.limits import WindowLimit
from watcher.planning.windows import FindCut, FindFirstChange, Look, LookAt

SchemaT = TypeVar("SchemaT")


class PlannedSource(Protocol):
    """The tables of one schema, as far as a window is planned."""

    def look(self, starts: Mapping[str, int], at: int | None = None) -> Look:
        """What changed since each table's position, as of now or of a timestamp: a cheap call.

        A row that is deleted between two timestamps is there at one and not at the other: a window
        that ends earlier than the look must be looked at again, at its own end.
        """
        ...

    def find_first_change(self, windows: Mapping[str, Window]) -> int:
        """A timestamp before which nothing in the windows changed."""
        ...

    def cut(self, windows: Mapping[str, Window], limit: WindowLimit) -> int:
        """An end at which the windows hold about as much as a limit says, or their own end."""
        ...


class SourceAnswers(ABC, Generic[SchemaT]):
    """Answers all questions but that for a schema (``watcher.planning.windows.Answers``)."""

    @abstractmethod
    def find_source(self, schema: SchemaT) -> PlannedSource:
        """The tables of a schema of the driver's."""

    def look_at(self, question: LookAt[SchemaT]) -> Look:
        """As ``Answers.look_at``."""
        watched = question.watched
        try:
            return self.find_source(watched.schema).look(watched.positions, question.at)
        except VersionExpiredError:
            return Look(question.at, question.assumed)

    def find_first_change(self, question: FindFirstChange[SchemaT]) -> int:
        """As ``Answers.find_first_change``."""
        return self.find_source(question.watched.schema).find_first_change(question.windows)

    def find_cut(self, question: FindCut[SchemaT]) -> int:
        """As ``Answers.find_cut``."""
        return self.find_source(question.watched.schema).cut(question.windows, question.limit)
