"""Who meets whom: each scenario says its tables, its actors and what its consumers promise."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from interleavings.actors import Run
from interleavings.judges import Expectation

ROWS = "CREATE TABLE Rows (Id INT64, Version STRING(MAX)) PRIMARY KEY (Id)"
MORE = "CREATE TABLE More (Id INT64, Version STRING(MAX)) PRIMARY KEY (Id)"
LEASE = 15.0

Body = Callable[[Run], object]
NO_RPC: tuple[str, ...] = ("INFORMATION_SCHEMA",)


@dataclass(frozen=True)
class Scenario:
    """``prelude`` runs before the actors, ``finale`` after them, neither is explored. An actor in
    ``crashes`` may crash so often, at any RPC. ``allowed`` are errors that end an actor lawfully.
    ``quiet``: queries that no actor changes."""

    name: str
    actors: Mapping[str, Body]
    expectations: Callable[[Run], list[Expectation]]
    statements: tuple[str, ...] = (ROWS,)
    watchable: tuple[str, ...] = ("Rows",)
    prelude: Body = lambda _run: None
    finale: Body = lambda _run: None
    crashes: Mapping[str, int] | None = None
    allowed: tuple[type, ...] = ()
    schema_changes: bool = False
    quiet: tuple[str, ...] = NO_RPC


def a_delivers_and_clears(run: Run) -> None:
    """Consumer A: a whole watcher that polls and clears."""
    run.watcher(
        "a", tables=["*"], start="earliest", interval=0.001, clearing={"every": 0.001}
    ).run()


def begin_with_rows(run: Run) -> None:
    """A is registered and three rows are there that it has not delivered."""
    run.register("a", ["Rows"])
    run.write(*(("Rows", key, f"{key}.0") for key in (1, 2, 3)))


def write_rows(run: Run) -> None:
    """Updates and inserts."""
    run.write(("Rows", 1, "1.1"))
    run.write(("Rows", 2, "2.1"), ("Rows", 4, "4.0"))
    run.write(("Rows", 1, "1.2"))


def fill(run: Run) -> None:
    """Consumer B: begins with a backfill."""
    run.watcher("b", tables=["*"], backfill=["*"], backfill_rows=2).run_once()


def catch_up(*consumers: str) -> Body:
    """In the end every consumer delivers what is there."""

    def finale(run: Run) -> None:
        for consumer in consumers:
            run.watcher(consumer, tables=["*"], start="earliest").run_once()

    return finale


BACKFILL = Scenario(
    "backfill",
    {"W": write_rows, "A": a_delivers_and_clears, "B": fill},
    lambda _run: [Expectation("a"), Expectation("b")],
    prelude=begin_with_rows,
    finale=catch_up("a", "b"),
)

ALL = {each.name: each for each in (BACKFILL,)}
