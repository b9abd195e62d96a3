"""Plans the next window: where it ends, and the tables of the schema at its end.

Nothing here calls Spanner. ``plan_window`` is a generator: it yields a question, and whoever drives
it (a watcher, a Spark query, a test) sends the answer. Rules 8 to 10 of docs/protocol.md hold for
every driver alike.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, Protocol, TypeVar

from watcher.model.window import Window
from watcher.planning.limits import WindowLimit

SchemaT = TypeVar("SchemaT")


@dataclass(frozen=True, slots=True)
class Look:
    """``end`` is a timestamp at which a strong read was served; ``changed`` are the tables that
    have rows between their position and it."""

    end: int
    changed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Watched(Generic[SchemaT]):
    """The tables of one schema with the consumer's position in each. ``schema`` is the driver's
    own object: another object is another schema."""

    schema: SchemaT
    positions: Mapping[str, int]


# Questions.


@dataclass(frozen=True, slots=True)
class LookAt(Generic[SchemaT]):
    """Which tables have changed between their positions and ``at`` a timestamp? Answered by a Look.
    If Spanner no longer keeps that timestamp, the answer is ``assumed``: the rows will be read as
    of now."""

    watched: Watched[SchemaT]
    at: int
    assumed: frozenset[str]


@dataclass(frozen=True, slots=True)
class ReadSchema:
    """Which tables are watched in the schema ``at`` a timestamp? Answered by Watched, those of now
    if Spanner no longer keeps that timestamp. If one of the tables cannot be read there, the answer
    is None, or an error if the window must end there (``required``)."""

    at: int
    required: bool


@dataclass(frozen=True, slots=True)
class FindFirstChange(Generic[SchemaT]):
    """Before which timestamp has nothing in the windows changed? Answered by a timestamp."""

    watched: Watched[SchemaT]
    windows: Mapping[str, Window]


@dataclass(frozen=True, slots=True)
class FindCut(Generic[SchemaT]):
    """At which end do the windows hold about as much as a limit says? Answered by a timestamp, at
    most their own end."""

    watched: Watched[SchemaT]
    windows: Mapping[str, Window]
    limit: WindowLimit


Question = LookAt[SchemaT] | ReadSchema | FindFirstChange[SchemaT] | FindCut[SchemaT]


class Answers(Protocol[SchemaT]):
    """Who drives a plan answers each kind of question."""

    def look_at(self, question: LookAt[SchemaT]) -> Look:
        """As LookAt says."""
        ...

    def read_schema(self, question: ReadSchema) -> Watched[SchemaT] | None:
        """As ReadSchema says."""
        ...

    def find_first_change(self, question: FindFirstChange[SchemaT]) -> int:
        """As FindFirstChange says."""
        ...

    def find_cut(self, question: FindCut[SchemaT]) -> int:
        """As FindCut says."""
        ...


# What is asked for, and the plan.


def raise_end(least: Mapping[str, int], positions: Mapping[str, int], end: int, latest: int) -> int:
    """The end, or a later one if a table that the window is of needs it; at most ``latest``.
    ``least``: up to where rows of a table may have been handed over above its position. A window
    that comes again with an earlier end would bring older versions behind newer ones."""
    while True:
        inside = (table for table, at in positions.items() if at < end)
        needed = max((least.get(table, 0) for table in inside), default=0)
        if needed <= end or end >= latest:
            return end
        end = min(needed, latest)


@dataclass(frozen=True, slots=True)
class Request(Generic[SchemaT]):
    """``watched`` are the tables of the latest schema that is known. The window ends at ``until``
    at most. ``advances``: positions advance even if nothing changed. ``least_ends``: as for
    ``raise_end`` (rule 8)."""

    watched: Watched[SchemaT]
    limit: WindowLimit
    until: int | None = None
    advances: bool = False
    least_ends: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class WindowPlan(Generic[SchemaT]):
    """The window of each ``changed`` table goes from its position to ``end``; ``watched`` is the
    schema that is valid there, and ``latest`` the newest one that is known. ``wanted``: where the
    window would have ended without limits."""

    watched: Watched[SchemaT]
    latest: Watched[SchemaT]
    end: int
    wanted: int
    changed: frozenset[str]

    @property
    def windows(self) -> dict[str, Window]:
        """The windows that may hold rows."""
        return list_windows(self.watched.positions, self.end, self.changed)

    @property
    def more(self) -> bool:
        """Whether the limits have left something for the next window."""
        return self.end < self.wanted

    @property
    def in_latest_schema(self) -> bool:
        """Whether the window is read with the newest schema that is known."""
        return self.watched.schema is self.latest.schema


Plan = Generator[Question[SchemaT], Any, WindowPlan[SchemaT]]


def answer(plan: Plan[SchemaT], answers: Answers[SchemaT]) -> WindowPlan[SchemaT]:
    """Drives a plan to its end."""
    question = next(plan)
    while True:
        try:
            question = plan.send(answer_question(question, answers))
        except StopIteration as done:
            result: WindowPlan[SchemaT] = done.value
            return result


def answer_question(question: Question[SchemaT], answers: Answers[SchemaT]) -> object:
    """The answer to one question."""
    match question:
        case LookAt():
            return answers.look_at(question)
        case ReadSchema():
            return answers.read_schema(question)
        case FindFirstChange():
            return answers.find_first_change(question)
        case FindCut():
            return answers.find_cut(question)


def needs_window(request: Request[SchemaT], look: Look) -> bool:
    """Whether there is a window to plan after a look as of now."""
    positions = request.watched.positions
    end = limit_by_until(look.end, request.until, positions)
    return request.advances or (bool(look.changed) and end > min(positions.values()))


def plan_window(request: Request[SchemaT], look: Look) -> Plan[SchemaT]:
    """Plans the window that follows a look as of now.

    A cut is looked for with the tables of the latest schema that is known. The schema is then read
    at the cut: Spanner judges every read by the schema at its timestamp.
    """
    watched, latest = request.watched, look.end
    end = limit_by_until(latest, request.until, watched.positions)
    end = raise_end(request.least_ends, watched.positions, end, latest)
    end, cut, at_cut = yield from find_end(request, watched, look, end, latest)
    if cut == end and at_cut.schema is not watched.schema:
        # New tables and shards have not been looked at, nor counted.
        watched = at_cut
        look = yield LookAt(watched, end, look.changed | watched.positions.keys())
        end, cut, at_cut = yield from find_end(request, watched, look, end, latest)
    changed = look.changed
    if cut < look.end or at_cut.positions != watched.positions:
        # A row that was deleted, or written again, since the cut is seen only at the cut.
        unseen = at_cut.positions.keys() - watched.positions.keys()
        changed = (yield LookAt(at_cut, cut, look.changed | unseen)).changed
    return WindowPlan(at_cut, watched, cut, end, changed & at_cut.positions.keys())


def limit_by_until(end: int, until: int | None, positions: Mapping[str, int]) -> int:
    """The end, or ``until`` if that is earlier; not before any position."""
    return end if until is None else max(min(end, until), *positions.values())


def find_end(
    request: Request[SchemaT], watched: Watched[SchemaT], look: Look, end: int, latest: int
) -> Generator[Question[SchemaT], Any, tuple[int, int, Watched[SchemaT]]]:
    """The end that is wanted, the one within the limits, and the tables of the schema there. The
    whole window is taken if a table cannot be read at an earlier end."""
    cut = yield from limit_window(request, watched, look, end)
    while True:
        at_cut = yield ReadSchema(cut, required=cut == end)
        if at_cut is None:
            cut, at_cut = end, (yield ReadSchema(end, required=True))
        # The schema there may have tables that the latest one has not: rule 8 holds for them, too.
        raised = raise_end(request.least_ends, at_cut.positions, cut, latest)
        if raised == cut:
            return end, cut, at_cut
        cut, end = raised, max(end, raised)


def limit_window(
    request: Request[SchemaT], watched: Watched[SchemaT], look: Look, end: int
) -> Generator[Question[SchemaT], Any, int]:
    """The end, or an earlier one for the limits of time, rows and bytes."""
    windows = list_windows(watched.positions, end, look.changed)
    limit, cut = request.limit, end
    if not windows:
        return end
    if limit.span_micros:
        first = yield FindFirstChange(watched, windows)
        cut = min(cut, first + limit.span_micros)
    if limit.limited:
        shorter = {name: shorten_window(window, cut) for name, window in windows.items()}
        cut = min(cut, (yield FindCut(watched, shorter, limit)))
    return raise_end(request.least_ends, watched.positions, cut, end)


def list_windows(
    positions: Mapping[str, int], end: int, changed: frozenset[str]
) -> dict[str, Window]:
    """The windows of the changed tables up to an end, without those that are empty."""
    return {
        name: Window(start, end)
        for name, start in positions.items()
        if name in changed and start < end
    }


def shorten_window(window: Window, end: int) -> Window:
    """The part of a window up to ``end``."""
    return replace(window, end=max(window.start, min(window.end, end)))
