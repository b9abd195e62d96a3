"""What is the matter with a consumer, derived from facts: the one place that decides it, for
``status``, its JSON, the page and the metrics. No I/O."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from watcher.consumers.states import State
from watcher.model.window import BEGINNING
from watcher.overview.values import ConsumerOverview

BEHIND_SECONDS = 60.0
STANDING_STILL_SECONDS = 1_800.0
"""A Spark query reports no rows, and may have minutes between its triggers."""
LOSES_SOON_SECONDS = 21_600.0
"""As the alert of deploy/prometheus."""


class Level(StrEnum):
    """How urgent a condition is, the worst first."""

    TROUBLE = "trouble"
    """Somebody has to do something."""
    ATTENTION = "attention"
    OK = "ok"
    ENDED = "ended"


class Condition(StrEnum):
    """What a consumer is in, the worst first."""

    LOSING_DATA = "losing-data"
    """The change stream may have deleted records that it has not read."""
    LOSES_DATA_SOON = "loses-data-soon"
    FAILED = "failed"
    """It has ended by an error."""
    NOT_ALIVE = "not-alive"
    """It has not ended, and no instance renews its lease."""
    FAILING = "failing"
    """It tries again and again, and delivers nothing."""
    WAITING_FOR_INDEX = "waiting-for-index"
    STANDING_STILL = "standing-still"
    """It is far behind, delivers nothing, and has met no error."""
    HAS_DEAD_LETTERS = "has-dead-letters"
    BEHIND = "behind"
    PAUSED = "paused"
    DRAINING = "draining"
    STARTING = "starting"
    RUNNING = "running"
    FINISHED = "finished"
    """It has delivered all that there was (--once)."""
    STOPPED = "stopped"
    NOT_STARTED = "not-started"


LEVELS = {
    Condition.BEHIND: Level.ATTENTION,
    Condition.PAUSED: Level.ATTENTION,
    Condition.DRAINING: Level.ATTENTION,
    Condition.STARTING: Level.OK,
    Condition.RUNNING: Level.OK,
    Condition.FINISHED: Level.ENDED,
    Condition.STOPPED: Level.ENDED,
    Condition.NOT_STARTED: Level.ENDED,
}
"""Those that are no trouble."""
WORST_FIRST = {each: number for number, each in enumerate(Condition)}
QUIET = {
    State.STARTING: Condition.STARTING,
    State.PAUSED: Condition.PAUSED,
    State.DRAINING: Condition.DRAINING,
}
FINISHED_REASON = "(--once)"


@dataclass(frozen=True, slots=True)
class Finding:
    """A condition that holds, in words. ``since``: microseconds since 1970, where it is known.
    ``advice``: what to do; ``command``: what to paste for it, quoted for a shell."""

    condition: Condition
    text: str
    since: int | None = None
    advice: str = ""
    command: str = ""

    @property
    def level(self) -> Level:
        """How urgent it is."""
        return LEVELS.get(self.condition, Level.TROUBLE)


@dataclass(frozen=True, slots=True)
class Health:
    """Everything that holds of a consumer, the worst first; there is always something."""

    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Finding:
        """The worst."""
        return self.findings[0]

    @property
    def rank(self) -> int:
        """Worse consumers have a lower one."""
        return WORST_FIRST[self.worst.condition]


def judge(consumer: ConsumerOverview, database: str) -> Health:
    """What is the matter with a consumer."""
    findings = [*find_loss(consumer, database), *find_state(consumer, database)]
    findings += [*find_lag(consumer, database), *find_dead_letters(consumer, database)]
    return Health(tuple(sorted(findings, key=lambda each: WORST_FIRST[each.condition])))


def find_loss(consumer: ConsumerOverview, database: str) -> Iterator[Finding]:
    """Records of a change stream that go before they are read. One that has finished may be meant
    not to read them."""
    left = consumer.lost_in_seconds
    if left is None or left > LOSES_SOON_SECONDS or is_finished(consumer):
        return
    command = write_command("status --errors --consumer", consumer.consumer, "-d", database)
    if left <= 0:
        advice = f"start it again from a new copy of the table; {FORGET}"
        yield Finding(Condition.LOSING_DATA, "records may be lost", None, advice, command)
    else:
        hours = f"{left / 3_600:.1f} h" if left >= 3_600 else f"{left / 60:.0f} min"
        advice = f"let it run, or lengthen the stream's retention; {FORGET}"
        yield Finding(
            Condition.LOSES_DATA_SOON, f"will lose data in {hours}", None, advice, command
        )


def find_state(consumer: ConsumerOverview, database: str) -> Iterator[Finding]:
    """Whether it runs, has ended or fails."""
    name, error = consumer.consumer, consumer.last_error
    errors = write_command("status --errors --consumer", name, "-d", database)
    if consumer.state == State.FAILED_PERMANENTLY and not consumer.alive:
        why = consumer.reason or (f"{error.kind}: {error.message}" if error else "see its log")
        advice = "fix the cause and start it again; its errors:"
        yield Finding(Condition.FAILED, f"has ended: {why}", consumer.ended_at, advice, errors)
    elif consumer.ended_at is not None:
        done = Condition.FINISHED if is_finished(consumer) else Condition.STOPPED
        yield Finding(done, consumer.reason or "has ended", consumer.ended_at)
    elif not consumer.alive and consumer.state == State.NOT_STARTED:
        yield Finding(Condition.NOT_STARTED, "has never run")
    elif not consumer.alive:
        advice = f"start it; {FORGET}"
        text = "no instance renews its lease: it was killed, or cannot reach Spanner"
        yield Finding(Condition.NOT_ALIVE, text, consumer.seen_at, advice, errors)
    elif is_failing(consumer):
        why = f"; its last error: {error.kind}: {error.message}" if error else ""
        since = find_failing_since(consumer)
        text = f"fails, and tries again{why}"
        yield Finding(Condition.FAILING, text, since, "see its log, and its errors:", errors)
    elif State(consumer.state) in QUIET:
        paused = consumer.state == State.PAUSED
        resume = write_command("ctl resume", name, "-d", database) if paused else ""
        advice = "resume it when it may go on" if paused else ""
        condition = QUIET[State(consumer.state)]
        yield Finding(condition, f"is {condition}", None, advice, resume)
    else:
        yield Finding(Condition.RUNNING, "runs")


def find_lag(consumer: ConsumerOverview, database: str) -> Iterator[Finding]:
    """How far a consumer that runs is behind, and whether it comes any nearer."""
    if not consumer.alive or is_failing(consumer) or consumer.state == State.PAUSED:
        return
    for table in consumer.tables:
        followed = table.lag_seconds is not None and table.lag_seconds <= BEHIND_SECONDS
        if table.note is not None and not followed and not table.note.startswith(NOT_COUNTED):
            plan = write_command("ddl plan -d", database, "-t", table.table)
            text = f"waits for the index of {table.table}: {table.note}"
            yield Finding(Condition.WAITING_FOR_INDEX, text, None, "see what is missing:", plan)
    lag, rows = consumer.lag_seconds, consumer.rows_behind
    if rows is not None and rows.rows == 0:
        return
    counted = f"{rows.rows:,}{' or more' if rows.at_least else ''} rows behind" if rows else ""
    if lag is None:
        if counted:
            yield Finding(Condition.BEHIND, f"{counted}, from the beginning")
    elif lag > STANDING_STILL_SECONDS and not consumer.rows_per_second:
        text = f"delivers nothing, and is {lag:,.0f} s behind"
        yield Finding(Condition.STANDING_STILL, text, find_position(consumer), "see its log")
    elif lag > BEHIND_SECONDS:
        yield Finding(Condition.BEHIND, ", ".join(filter(None, [f"{lag:,.0f} s behind", counted])))


FORGET = "where nobody needs it: spanner-watcher ctl forget"
"""No command to paste in a hurry: what it forgets is gone."""
REPLAY = "spanner-watcher replay FILE --callback MODULE:FUNCTION"
NOT_COUNTED = "not counted"
"""How a note begins that is about counting alone. Others are also those of tables that are polled
by what a watcher's own file says of them, which are followed."""


def find_dead_letters(consumer: ConsumerOverview, database: str) -> Iterator[Finding]:
    """Changes that were skipped, and not delivered again since."""
    if consumer.dead_letters:
        advice = "fix the cause, then deliver its file of dead letters again:"
        text = f"its file of dead letters has {consumer.dead_letters:,} changes"
        running = write_command("ctl replay", consumer.consumer, "-d", database)
        command = running if consumer.alive else REPLAY
        yield Finding(Condition.HAS_DEAD_LETTERS, text, None, advice, command)


def write_command(words: str, *values: str) -> str:
    """A command of ours to paste into a shell."""
    return f"spanner-watcher {words} {shlex.join(values)}"


def is_finished(consumer: ConsumerOverview) -> bool:
    """Whether it has ended because all was delivered."""
    return consumer.ended_at is not None and FINISHED_REASON in (consumer.reason or "")


def is_failing(consumer: ConsumerOverview) -> bool:
    """Whether it runs, and nothing was delivered since its last error."""
    if not consumer.alive:
        return False
    if consumer.state == State.FAILED:
        return True
    error = consumer.last_error
    return error is not None and error.occurred_at > find_position(consumer, newest=True)


def find_failing_since(consumer: ConsumerOverview) -> int | None:
    """Since when nothing is delivered; at the beginning, since its last error."""
    position = find_position(consumer, newest=True)
    if position > BEGINNING:
        return position
    return consumer.last_error.occurred_at if consumer.last_error else None


def find_position(consumer: ConsumerOverview, *, newest: bool = False) -> int:
    """The oldest position of its tables, or the newest."""
    choose = max if newest else min
    return choose((table.position for table in consumer.tables), default=BEGINNING)
