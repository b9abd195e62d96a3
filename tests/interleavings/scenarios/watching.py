"""Watchers that start, take over and receive commands."""

from __future__ import annotations

from interleavings.actors import SHORT_SECONDS, Run
from interleavings.judges import Expectation
from interleavings.scenarios.base import (
    ROWS,
    Body,
    Variant,
    begin_with_rows,
    catch_up,
    deliver_and_clear,
    write_rows,
)
from watcher.consumers.leases import Consumers
from watcher.consumers.positions.unregister import unregister
from watcher.consumers.positions.values import TABLE as POSITIONS
from watcher.consumers.states import Command, ConsumerProgress, State
from watcher.model.errors import (
    LeaseHeldError,
    LeaseLostError,
    PositionConflictError,
)

MORE = "CREATE TABLE More (Id INT64, Version STRING(MAX)) PRIMARY KEY (Id)"
LONG_AGO_SECONDS = 100
TAKEN_OVER = (LeaseLostError, LeaseHeldError, PositionConflictError)
"""How an instance may end that another has replaced."""


def fill(run: Run) -> None:
    """Consumer B: begins with a backfill."""
    run.watcher("b", tables=["*"], backfill=["*"], backfill_rows=2, lease=SHORT_SECONDS).run_once()


def start_latest(run: Run) -> None:
    """Consumer B: begins with what is written from now on."""
    run.watcher("b", tables=["*"], lease=SHORT_SECONDS).run_once()


BACKFILL = Variant(
    "backfill",
    {"W": write_rows, "A": deliver_and_clear, "B": fill},
    (Expectation("a"), Expectation("b")),
    prelude=begin_with_rows,
    finale=catch_up("a", "b"),
    crashes={"B": 1},
)
LATEST = Variant(
    "latest",
    {"W": write_rows, "A": deliver_and_clear, "B": start_latest},
    (Expectation("a"), Expectation("b", from_registration=True)),
    prelude=begin_with_rows,
    finale=catch_up("a", "b"),
    crashes={"B": 1},
)


def time_passes(run: Run) -> None:
    """Twice, enough time for the leases of instances that do not run to expire."""
    run.pass_time(SHORT_SECONDS * 2)
    run.pass_time(SHORT_SECONDS * 2)


def instance(**options: object) -> Body:
    """An instance of consumer A that waits while another one holds the lease."""
    chosen = {"tables": ["*"], "start": "earliest", "lease": SHORT_SECONDS, "standby": True}

    def body(run: Run) -> None:
        run.watcher("a", **(chosen | options)).run_once()

    return body


def begin_slowly(run: Run) -> None:
    """Three rows are there; a callback takes its time."""
    run.slow_callbacks = True
    run.write(*(("Rows", key, f"{key}.0") for key in (1, 2, 3)))


TAKEOVER = Variant(
    "takeover",
    {"W": write_rows, "A": instance(), "B": instance(), "T": time_passes},
    (Expectation("a"),),
    prelude=begin_slowly,
    finale=catch_up("a"),
    allowed=TAKEN_OVER,
)
FILLING = {"start": "latest", "backfill": ["*"], "backfill_rows": 2}
TAKEOVER_BACKFILL = Variant(
    "takeover-backfill",
    {"W": write_rows, "A": instance(**FILLING), "B": instance(**FILLING), "T": time_passes},
    (Expectation("a"),),
    prelude=begin_slowly,
    finale=catch_up("a", **FILLING),
    allowed=TAKEN_OVER,
)


def write_and_wait(run: Run) -> None:
    """Every row gets another version; then leases that are not renewed expire."""
    run.write(*(("Rows", key, f"{key}.1") for key in (1, 2, 3)))
    run.pass_time(SHORT_SECONDS * 2)


FROZEN = Variant(
    "frozen",
    {"W": write_and_wait, "A": instance(), "B": instance()},
    (Expectation("a"),),
    prelude=begin_slowly,
    finale=catch_up("a"),
    allowed=TAKEN_OVER,
)
FROZEN_BACKFILL = Variant(
    "frozen-backfill",
    {"W": write_and_wait, "A": instance(**FILLING), "B": instance(**FILLING)},
    (Expectation("a"),),
    prelude=begin_slowly,
    finale=catch_up("a", **FILLING),
    allowed=TAKEN_OVER,
)


def begin_long_ago(run: Run) -> None:
    """Two rows were written long before all that follows, and nothing was delivered since."""
    run.slow_callbacks = True
    run.register("a", ["Rows", "More"])
    run.write(("Rows", 1, "1.0"), ("More", 1, "1.0"))
    run.world.clock.advance(LONG_AGO_SECONDS)


def write_too_many(run: Run) -> None:
    """One of the two changes again. Then there are more rows than a window may hold, and where it
    is cut the older version is the newest."""
    run.write(("More", 1, "1.1"))
    run.write(("More", 2, "2.0"))
    run.write(("Rows", 2, "2.0"), ("More", 1, "1.2"))


CUT = Variant(
    "cut",
    {"W": write_too_many, "A": instance(max_rows=2)},
    (Expectation("a"),),
    statements=(ROWS, MORE),
    watchable=("Rows", "More"),
    prelude=begin_long_ago,
    finale=catch_up("a", max_rows=2),
    crashes={"A": 1},
    allowed=TAKEN_OVER,
)


def standby(run: Run) -> None:
    """Waits for the name, delivers, and gives it back."""
    run.watcher("a", tables=["*"], start="earliest", standby=True).run_once()


STANDBY = Variant(
    "standby",
    {"W": write_rows, "A": standby, "B": standby, "C": standby},
    (Expectation("a"),),
    prelude=begin_with_rows,
    finale=catch_up("a"),
)


def forget(run: Run) -> None:
    """An operator unregisters consumer B unless it is alive: what ``ctl forget`` does."""
    unregister(run.database, POSITIONS, "b")


def pause_and_resume(run: Run) -> None:
    """An operator pauses consumer A and lets it go on."""
    consumers = Consumers(run.database, POSITIONS)
    consumers.ask("a", Command.PAUSE)
    run.pass_time(SHORT_SECONDS)
    consumers.ask("a", Command.RESUME)


def begin_with_two(run: Run) -> None:
    """As ``begin_with_rows``; B was there once and is not alive."""
    begin_with_rows(run)
    consumers = Consumers(run.database, POSITIONS)
    consumers.release(consumers.acquire("b"), State.NOT_STARTED, ConsumerProgress())
    run.register("b", ["Rows"])
    run.write(("Rows", 5, "5.0"))


def start_again(run: Run) -> None:
    """Consumer B starts; if it was unregistered it would begin with new changes only."""
    run.watcher("b", tables=["*"], lease=SHORT_SECONDS).run_once()
    run.kept["started"] = True
    run.write(("Rows", 6, "6.0"))


def both_catch_up(run: Run) -> None:
    """In the end both deliver what is there; B may be new."""
    catch_up("a")(run)
    catch_up("b", start="latest")(run)


OPERATOR = Variant(
    "operator",
    {"W": write_rows, "A": deliver_and_clear, "B": start_again, "O": forget},
    (Expectation("a"), Expectation("b", from_registration=True)),
    prelude=begin_with_two,
    finale=both_catch_up,
    allowed=(LeaseHeldError,),
)
